//! Velocities, forces and torques become momenta: p = M v + h f (000 eq. 4).

use super::gyro;
use crate::components::{AngularVelocity, BodyIndex, BodyKind, Force, LinearVelocity, Torque};
use crate::constraint::BodyView;
use crate::report::{BadQuantity, Trouble};
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::Bodies;
use glam::{DMat3, DVec3};
use hecs::Entity;

/// Reads what users' systems did to velocities and forces, and finds every body's free velocity.
pub fn gather_forces(step: &mut Step<'_>) {
    let (dt, integrator, bodies) = (step.dt, step.settings.integrator, &mut step.work.bodies);
    type Input<'a> = (
        Entity,
        &'a BodyIndex,
        &'a mut LinearVelocity,
        &'a mut AngularVelocity,
        &'a mut Force,
        &'a mut Torque,
    );
    for (entity, index, v, w, f, t) in step.world.query_mut::<Input<'_>>() {
        let slot = index.0 as usize;
        if bodies.entity.get(slot) != Some(&entity) || bodies.quarantined[slot] {
            continue;
        }
        if let Some(quantity) = first_bad(v.0, w.0, f.0, t.0, step.settings.tuning.max_speed) {
            // What is wrong with a force or a fresh velocity is dropped for this step; the body stays.
            (v.0, w.0) = (bodies.view[slot].linear_velocity, bodies.view[slot].angular_velocity);
            (f.0, t.0) = (DVec3::ZERO, DVec3::ZERO);
            step.report.trouble(Trouble::Ignored { entity, quantity });
        }
        bodies.view[slot].linear_velocity = v.0;
        bodies.view[slot].angular_velocity = if bodies.view[slot].rotates() { w.0 } else { DVec3::ZERO };
        bodies.force[slot][0] += f.0;
        bodies.force[slot][1] += t.0;
        free_motion(bodies, slot, integrator, dt);
    }
}

/// Forces beyond this (N, N·m) throw the heaviest of bodies out of every bound.
const MOST_FORCE: f64 = 1e18;

fn first_bad(v: DVec3, w: DVec3, f: DVec3, t: DVec3, max_speed: f64) -> Option<BadQuantity> {
    let within = |x: DVec3, most: f64| x.is_finite() && x.abs().max_element() <= most;
    if !within(v, max_speed) {
        Some(BadQuantity::LinearVelocity)
    } else if !within(w, max_speed) {
        Some(BadQuantity::AngularVelocity)
    } else if !within(f, MOST_FORCE) {
        Some(BadQuantity::Force)
    } else if !within(t, MOST_FORCE) {
        Some(BadQuantity::Torque)
    } else {
        None
    }
}

/// The velocity a body would have without constraints, and its angular momentum then.
pub(super) fn free_motion(bodies: &mut Bodies, slot: usize, integrator: Integrator, dt: f64) {
    let view = &bodies.view[slot];
    if view.kind != BodyKind::Dynamic || bodies.asleep[slot] {
        bodies.velocity[slot] = match view.kind {
            BodyKind::Kinematic => [view.linear_velocity, view.angular_velocity],
            _ => [DVec3::ZERO; 2],
        };
        return;
    }
    let ([force, torque], damping) = (bodies.force[slot], bodies.damping[slot]);
    // Implicit damping: v⁺ (1 + h c) = v + h f/m; stable for any rate.
    let keep = DVec3::new(1.0 / (1.0 + dt * damping.linear), 1.0 / (1.0 + dt * damping.angular), 0.0);
    let linear = (view.linear_velocity + force * (dt / view.mass)) * keep.x;
    if integrator == Integrator::Midpoint && torque == DVec3::ZERO {
        // The gyroscopic part is in the free flight before and after, which keeps the angular momentum by itself.
        bodies.velocity[slot] = [linear, view.angular_velocity * keep.y];
        return;
    }
    let inertia = world_inertia(view);
    let momentum = inertia * view.angular_velocity;
    let mut angular = match integrator {
        Integrator::Midpoint => view.angular_velocity,
        Integrator::SemiImplicit => gyro::mid_velocity(view, momentum, dt),
    };
    if torque != DVec3::ZERO && view.rotates() {
        angular += inertia.inverse() * torque * dt;
    }
    bodies.velocity[slot] = [linear, angular * keep.y];
    // What the kept angular momentum has over I ω_free; with I ω⁺ added it is L + hτ + Jᵀλ (see integrate).
    bodies.angular_momentum[slot] = (momentum + torque * dt - inertia * angular) * keep.y;
}

/// The inertia tensor in world axes.
pub fn world_inertia(view: &BodyView) -> DMat3 {
    let r = DMat3::from_quat(view.rotation);
    r * view.inertia * r.transpose()
}
