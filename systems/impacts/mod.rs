//! Restitution: what approaches is reflected, at the time at which it meets.
//!
//! **The law** (`strike`): generalized reflections [Smith, Kaufman, Vouga, Tamstorf, Grinspun 2012] in the space of the points that
//! touch and approach. They never raise kinetic energy, keep symmetry, and hand a blow through a row of bodies one wave after another.
//!
//! **The time** (`march`): a step is X⁺ = X + h v⁺. Where a body is struck at the time τ after the pose X,
//!
//! ```text
//!     v ← v + Δv ,     X ← X − τ Δv        so that X⁺ = X + h v + (h − τ) Δv
//! ```
//!
//! the bounce is where and when it happens, and the rows of the step, which see X and v, go on from there. Velocity and pose at the
//! time τ are those of the parabola: v(τ) = v + a (h/2 + τ), and its pose lies a h²/8 beside X. a is what forces do together with what
//! carried the body in the last step.
//!
//! | point of a contact | who answers it |
//! |---|---|
//! | approaches faster than its threshold, and meets within the step | the march |
//! | is fast or far off, and meets no more in this step | nothing: it has no row |
//! | all others | their rows, with the gap that is left |
//!
//! A body that is struck in the second half of a midpoint step is shown as it is at the end of the step, before the blow; a
//! [`Rebound`] keeps the state from which the next step goes on. Bodies with joints bounce where they are.

mod flight;
mod law;
mod lists;
mod march;
mod watch;

use super::collide::narrow::{meet, tied};
use crate::components::{BodyIndex, Contact, Manifold, ManifoldPoint, MotionState, Rebound, Surface};
use crate::constraint::BodyView;
use crate::constraint::contact_rows::{SLOW, relative_velocity};
use crate::report::Trouble;
use crate::schedule::Step;
use crate::state::Bodies;
pub(super) use march::March;

/// An approach (m/s) that is slower than this before forces act is none.
const STILL: f64 = 0.1 * SLOW;

/// What impacts keep from stage to stage, and their buffers.
#[derive(Default)]
pub struct Memory {
    /// Slots of the bodies that were struck in this step, in order.
    pub struck: Vec<u32>,
    /// Slots of the bodies that come back to a [`Rebound`] in this step, in order.
    pub returning: Vec<u32>,
    /// Bodies that are struck after the end of the step, and their state there.
    shown: Vec<(u32, BodyView)>,
    /// Contacts at which something may bounce: places among the pairs.
    hot: Vec<u32>,
    /// Slots of bodies that move further than contacts are looked for, where something bounces.
    fast: Vec<u32>,
    law: law::Law,
}

/// Lets what meets in this step bounce.
pub fn take_impacts(step: &mut Step<'_>) {
    let mut memory = std::mem::take(&mut step.work.impacts);
    memory.struck.clear();
    memory.shown.clear();
    find_hot(step, &mut memory.hot);
    find_fast(step, &mut memory.fast);
    if !memory.hot.is_empty() || !memory.fast.is_empty() {
        March::run(step, &mut memory);
    }
    step.work.impacts = memory;
}

/// Lists the contacts at which something may bounce. One look at each contact that bounces at all.
fn find_hot(step: &mut Step<'_>, hot: &mut Vec<u32>) {
    hot.clear();
    step.work.jointed_pairs.sort_unstable();
    step.work.jointed_pairs.dedup();
    let (bodies, collision, jointed) = (&step.work.bodies, &step.work.collision, &step.work.jointed_pairs);
    if collision.pairs.is_empty() {
        return;
    }
    let mut query = step.world.query::<(&Contact, &Manifold, &mut Surface)>();
    let mut contacts = query.view();
    for (number, pair) in collision.pairs.iter().enumerate() {
        let Some(entity) = pair.entity else { continue };
        let Some((contact, manifold, surface)) = contacts.get_mut(entity) else { continue };
        // Systems of the user may have put anything there.
        if let Err(number) = surface.check() {
            let [a, b] = [pair.ids.0, pair.ids.1].map(|id| &collision.movers[id as usize]);
            *surface = meet(a, b, step.settings);
            step.report.trouble(Trouble::Number { entity, number });
        }
        if surface.restitution <= 0.0 || contact.sensor || !surface.enabled {
            continue;
        }
        let slots = [pair.ids.0, pair.ids.1].map(|id| collision.colliders[id as usize].slot);
        let moves = slots.iter().any(|&slot| bodies.is_dynamic(slot));
        let may_meet = |p: &ManifoldPoint| may_bounce(p, bodies, slots, step.dt);
        if moves && !tied(jointed, slots[0], slots[1]) && manifold.points.iter().any(may_meet) {
            hot.push(number as u32);
        }
    }
}

/// Lists the bodies that move further than the narrow phase looks without sweeping, if anything bounces: what forces add in this step
/// may bring them to what it has not found.
fn find_fast(step: &Step<'_>, fast: &mut Vec<u32>) {
    fast.clear();
    let (bodies, collision) = (&step.work.bodies, &step.work.collision);
    if !collision.bounces {
        return;
    }
    for known in collision.by_body.iter().filter(|b| b.entity.is_some()) {
        for mover in known.ids.iter().map(|&id| &collision.movers[id as usize]) {
            let slot = known.ids.first().map(|&id| collision.colliders[id as usize].slot);
            let Some(slot) = slot.filter(|&slot| mover.way > mover.own && bodies.is_dynamic(slot)) else {
                continue;
            };
            fast.push(slot);
        }
    }
    fast.sort_unstable();
    fast.dedup();
}

/// May a point be met fast in this step, whatever of the forces on its bodies is taken up by others?
fn may_bounce(point: &ManifoldPoint, bodies: &Bodies, slots: [u32; 2], dt: f64) -> bool {
    let views = slots.map(|slot| &bodies.view[slot as usize]);
    let [gain_a, gain_b] = slots.map(|slot| {
        let slot = slot as usize;
        point.normal.dot(bodies.velocity[slot][0] - bodies.view[slot].linear_velocity)
    });
    let gain = gain_a.max(-gain_b).max(gain_a - gain_b).max(0.0);
    let swing: f64 = [(views[0], point.arm_a), (views[1], point.arm_b)]
        .map(|(view, arm)| view.angular_velocity.length_squared() * arm.length() * dt)
        .iter()
        .sum();
    let closing = -point.normal.dot(relative_velocity(point, views)) + swing;
    closing > STILL && point.separation <= (closing + 1.5 * gain) * dt
}

/// Brings bodies that were struck after the end of the last step back to the state from which they go on. One that was moved or
/// pushed since then goes on as it is.
pub fn take_back(step: &mut Step<'_>) {
    let (bodies, returning) = (&mut step.work.bodies, &mut step.work.impacts.returning);
    returning.clear();
    for (index, rebound) in step.world.query_mut::<(&BodyIndex, &mut Rebound)>() {
        if !std::mem::take(&mut rebound.pending) || !bodies.is_dynamic(index.0) {
            continue;
        }
        let view = &mut bodies.view[index.0 as usize];
        if state(view) == rebound.shown {
            set_state(view, &rebound.then);
            returning.push(index.0);
        }
    }
    returning.sort_unstable();
}

/// Shows bodies that are struck after the end of the step as they are at its end.
pub fn show_before_blow(step: &mut Step<'_>) {
    let bodies = &mut step.work.bodies;
    for &(slot, shown) in &step.work.impacts.shown {
        let view = &mut bodies.view[slot as usize];
        let rebound = Rebound { pending: true, shown: state(&shown), then: state(view) };
        set_state(view, &rebound.shown);
        let entity = bodies.entity[slot as usize];
        let known = step.world.query_one_mut::<&mut Rebound>(entity).map(|kept| *kept = rebound).is_ok();
        if !known {
            // Bodies of the step are in the world until its end.
            let _ = step.world.insert_one(entity, rebound);
        }
    }
}

fn state(view: &BodyView) -> MotionState {
    MotionState {
        position: view.position,
        rotation: view.rotation,
        linear_velocity: view.linear_velocity,
        angular_velocity: view.angular_velocity,
    }
}

fn set_state(view: &mut BodyView, to: &MotionState) {
    (view.position, view.rotation) = (to.position, to.rotation);
    (view.linear_velocity, view.angular_velocity) = (to.linear_velocity, to.angular_velocity);
}
