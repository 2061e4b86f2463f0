//! The last net for bullets: no body moves further in a step than to the first thing in its way.
//!
//! Contact rows see a fast body's nearest points at the start of the step; what it does after a glancing hit or a spin
//! they cannot see. So once velocities are known, whatever is about to move by more than its own size is swept along its
//! final motion, and its way (not its velocity) is cut where it touches.

use crate::collision::{ColliderRecord, Collision};
use crate::components::BodyKind;
use crate::geometry::{Placed, first_touch};
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::work::Bodies;
use glam::DVec3;

/// Notes how much of its way each fast body may go.
pub fn sweep_fast_bodies(step: &mut Step<'_>) {
    let (bodies, dt) = (&step.work.bodies, step.dt);
    let Collision { pairs, colliders, stops, jointed, .. } = &mut step.work.collision;
    stops.clear();
    let is_fast = |r: &ColliderRecord| {
        let way = bodies.velocity[r.slot as usize][0].length() * dt;
        bodies.view[r.slot as usize].kind == BodyKind::Dynamic && way > 0.5 * r.thickness
    };
    for pair in pairs.iter() {
        let (a, b) = (&colliders[pair.ids.0 as usize], &colliders[pair.ids.1 as usize]);
        let (fast_a, fast_b) = (is_fast(a), is_fast(b));
        let tied = || jointed.binary_search(&(a.slot.min(b.slot), a.slot.max(b.slot))).is_ok();
        if !(fast_a || fast_b) || a.sensor || b.sensor || a.slot == b.slot || pair.surface.is_none() || tied()
        {
            continue;
        }
        for (fast, other) in [(fast_a.then_some(a), b), (fast_b.then_some(b), a)] {
            let Some(fast) = fast else { continue };
            if let Some(share) = free_share(fast, other, pair.nearest, bodies, dt) {
                stops.push((fast.slot, share, bodies.view[fast.slot as usize].position));
            }
        }
    }
}

/// The share of the step after which a fast collider touches another by the final velocities, if its core would get into the
/// other: whoever only touches is the solver's to hold, and may slide on.
fn free_share(
    fast: &ColliderRecord,
    other: &ColliderRecord,
    nearest: f64,
    bodies: &Bodies,
    dt: f64,
) -> Option<f64> {
    let motion: DVec3 =
        (bodies.velocity[fast.slot as usize][0] - bodies.velocity[other.slot as usize][0]) * dt;
    // The core sits at the centre of mass, where spinning does not move it.
    let center = bodies.view[fast.slot as usize].position;
    let still = Placed { shape: &other.shape, position: other.position, rotation: other.rotation };
    let core = Placed { shape: &fast.core, position: center, rotation: fast.rotation };
    let inside = first_touch(&still, &core, motion).filter(|share| *share < 1.0)?;
    if nearest <= 0.1 * fast.thickness {
        return Some(inside);
    }
    let whole = Placed { shape: &fast.shape, position: fast.position, rotation: fast.rotation };
    Some(first_touch(&still, &whole, motion).map_or(inside, |share| share.min(inside)))
}

/// Takes bodies back to where they were stopped.
pub fn stop_fast_bodies(step: &mut Step<'_>) {
    // In the midpoint step bodies stand half a step behind the points whose way was looked at: the next free flight must
    // end at the touch, and what was advanced by now is half of the way.
    let midpoint = step.settings.integrator == Integrator::Midpoint;
    let bodies = &mut step.work.bodies;
    let stops = &mut step.work.collision.stops;
    stops.sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
    stops.dedup_by_key(|s| s.0);
    for &(slot, share, start) in stops.iter() {
        let view = &mut bodies.view[slot as usize];
        let share = if midpoint { 2.0 * share - 1.0 } else { share };
        view.position = start + (view.position - start) * share;
    }
}
