//! Forces that every scene has.

use crate::components::{BodyIndex, BodyKind, GravityScale};
use crate::report::Trouble;
use crate::schedule::Step;
use glam::DVec3;
use hecs::Entity;

/// Starts every body's force with its weight (each substep anew; the `Force` component stays until the step is done). Users' systems and the `Force` component add to it.
pub fn apply_gravity(step: &mut Step<'_>) {
    let (bodies, gravity) = (&mut step.work.bodies, step.settings.gravity);
    for (force, view) in bodies.force.iter_mut().zip(&bodies.view) {
        let weight = if view.kind == BodyKind::Dynamic { gravity * view.mass } else { DVec3::ZERO };
        *force = [weight, DVec3::ZERO];
    }
    for (entity, index, scale) in step.world.query_mut::<(Entity, &BodyIndex, &mut GravityScale)>() {
        if let Err(number) = scale.check() {
            scale.0 = 1.0;
            step.report.trouble(Trouble::Number { entity, number });
        }
        if let Some(force) = bodies.force.get_mut(index.0 as usize) {
            force[0] *= scale.0;
        }
    }
}
