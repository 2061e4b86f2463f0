//! Velocities become poses (000 eqs. 2, 6), and everything goes back to the world, once.

use super::drift::fly_all;
use super::gather::world_inertia;
use super::parallel::for_each;
use crate::components::*;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::Bodies;
use glam::{DQuat, DVec3};
use hecs::Entity;
use rayon::prelude::*;

/// Bodies per task: fixed, so that the work is cut the same way for any number of threads.
const CHUNK: usize = 1024;

/// Advances every pose by its velocity: half a step from the middle, or the whole step from the start.
pub fn integrate_bodies(step: &mut Step<'_>) {
    let dt = step.dt;
    if step.settings.integrator == Integrator::Midpoint {
        let bodies = &mut step.work.bodies;
        for slot in 0..bodies.len() {
            if bodies.is_dynamic(slot as u32) {
                let view = &mut bodies.view[slot];
                [view.linear_velocity, view.angular_velocity] = bodies.velocity[slot];
            }
        }
        fly_all(step);
        return;
    }
    let Bodies { view, velocity, angular_momentum, quarantined, asleep, .. } = &mut step.work.bodies;
    let moving = view.par_chunks_mut(CHUNK).zip(velocity.par_chunks(CHUNK));
    let still = quarantined.par_chunks(CHUNK).zip(asleep.par_chunks(CHUNK));
    for_each(
        moving.zip(angular_momentum.par_chunks(CHUNK)).zip(still),
        |(((view, velocity), momentum), (quarantined, asleep))| {
            for i in 0..view.len() {
                if !quarantined[i] && !asleep[i] && view[i].kind != BodyKind::Fixed {
                    advance(&mut view[i], velocity[i], momentum[i], dt);
                }
            }
        },
    );
}

/// x⁺ = x + h v⁺, q⁺ = q + h T v⁺ renormalised (6).
///
/// The angular velocity of the solve is that of the middle of the step (see [`super::gyro`]); the one that is kept
/// belongs to the end: it is the one that carries the angular momentum L⁺ = L + h τ + Jᵀλ at the new orientation.
fn advance(view: &mut BodyView, [v, w]: [DVec3; 2], momentum: DVec3, dt: f64) {
    if view.kind == BodyKind::Kinematic {
        view.position += v * dt;
        view.rotation = turned(view.rotation, w, dt);
        return;
    }
    view.position += v * dt;
    view.linear_velocity = v;
    if !view.rotates() {
        return;
    }
    let before = world_inertia(view);
    view.rotation = turned(view.rotation, w, dt);
    view.angular_velocity = carried(view, before * w, momentum, w, dt);
}

/// The angular velocity at the new orientation. `solved` is I ω⁺ at the old one, `momentum` the angular momentum
/// before constraint impulses together with what [`super::gather`] kept of the free velocity.
fn carried(view: &BodyView, solved: DVec3, momentum: DVec3, w: DVec3, dt: f64) -> DVec3 {
    // `momentum` holds L + hτ − I ω_free, so that adding I ω⁺ gives L + hτ + Jᵀλ.
    let total = momentum + solved;
    let after = world_inertia(view).inverse() * total;
    // Beyond half a radian per step the midpoint may not have settled; then no energy may come of it.
    if dt * w.length() > 0.5 {
        let (energy, allowed) = (total.dot(after), solved.dot(w));
        if energy > allowed && energy > 0.0 {
            return after * (allowed.max(0.0) / energy).sqrt();
        }
    }
    after
}

/// The rotation after turning with `w` for `dt`: q + h/2 ω q, renormalised.
pub fn turned(rotation: DQuat, w: DVec3, dt: f64) -> DQuat {
    let half = w * (0.5 * dt);
    (DQuat::from_xyzw(half.x, half.y, half.z, 1.0) * rotation).normalize()
}

/// Writes poses and velocities back to the components.
pub fn scatter_bodies(step: &mut Step<'_>) {
    let bodies = &step.work.bodies;
    type Output<'a> = (
        Entity,
        &'a BodyIndex,
        &'a BodyKind,
        &'a mut Position,
        &'a mut Rotation,
        &'a mut LinearVelocity,
        &'a mut AngularVelocity,
    );
    for (entity, index, kind, x, q, v, w) in step.world.query_mut::<Output<'_>>() {
        let slot = index.0 as usize;
        if *kind == BodyKind::Fixed || bodies.entity.get(slot) != Some(&entity) {
            continue;
        }
        let view = &bodies.view[slot];
        (x.0, q.0) = (view.position, view.rotation);
        (v.0, w.0) = (view.linear_velocity, view.angular_velocity);
    }
}

/// Keeps every constraint's impulses: the next step's warm start, and the forces that users read.
pub fn store_impulses(step: &mut Step<'_>) {
    let rows = &step.work.rows;
    if rows.blocks.is_empty() {
        return;
    }
    let mut query = step.world.query::<&mut RowImpulses>();
    let mut kept = query.view();
    // A contact may have a second block, from looking ahead: all are emptied before any is filled.
    for block in &rows.blocks {
        if let Some(impulses) = kept.get_mut(block.entity) {
            impulses.0.clear();
        }
    }
    for block in &rows.blocks {
        let Some(impulses) = kept.get_mut(block.entity) else { continue };
        let range = block.row as usize..(block.row + block.rows) as usize;
        impulses.0.extend(range.map(|i| RowImpulse {
            key: rows.key[i],
            lambda: rows.lambda[i],
            label: rows.label[i],
        }));
    }
}
