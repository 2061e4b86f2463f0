//! Before the step: poses are kept for interpolation, kinematic bodies follow their targets.

use crate::components::{
    AngularVelocity, BodyIndex, BodyKind, KinematicTarget, LinearVelocity, Position, PreviousPose, Rotation,
};
use crate::report::Trouble;
use crate::schedule::Step;
use crate::settings::Integrator;
use glam::{DQuat, DVec3};
use hecs::Entity;

/// Keeps the pose before the step for those who draw between steps.
pub fn keep_previous_poses(step: &mut Step<'_>) {
    if step.work.substep.0 == 0 {
        for (x, q, previous) in step.world.query_mut::<(&Position, &Rotation, &mut PreviousPose)>() {
            *previous = PreviousPose { position: x.0, rotation: q.0 };
        }
    }
}

/// Gives every kinematic body with a target the velocity that takes it there in this step.
pub fn follow_targets(step: &mut Step<'_>) {
    let bodies = &mut step.work.bodies;
    let query = step.world.query_mut::<(
        Entity,
        &BodyKind,
        &BodyIndex,
        &mut KinematicTarget,
        &mut LinearVelocity,
        &mut AngularVelocity,
    )>();
    for (entity, kind, index, target, linear, angular) in query {
        let slot = index.0 as usize;
        if *kind != BodyKind::Kinematic || bodies.quarantined[slot] {
            continue;
        }
        let view = &mut bodies.view[slot];
        if let Err(number) = target.check() {
            *target = KinematicTarget { position: view.position, rotation: view.rotation };
            step.report.trouble(Trouble::Number { entity, number });
        }
        linear.0 = (target.position - view.position) / step.dt;
        angular.0 = turning(view.rotation, target.rotation.normalize(), step.settings.integrator, step.dt);
        view.linear_velocity = linear.0;
        view.angular_velocity = angular.0;
    }
}

/// The angular velocity whose update (see [`super::integrate::turned`]) leads from one rotation to the other.
fn turning(from: DQuat, to: DQuat, integrator: Integrator, dt: f64) -> DVec3 {
    let mut q = to * from.conjugate();
    if q.w < 0.0 {
        q = -q;
    }
    let v = DVec3::new(q.x, q.y, q.z);
    if integrator == Integrator::Midpoint {
        // Two updates of half a step turn by 4 atan(h|ω|/4).
        return v * (4.0 / (dt * (1.0 + q.w)));
    }
    // The update turns by 2 atan(h|ω|/2); half a turn would need an infinite velocity, so stay just below it.
    v * (2.0 / (dt * q.w.max(1e-6)))
}
