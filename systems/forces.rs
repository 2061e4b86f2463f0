//! Forces that every scene has.

use crate::components::{BodyIndex, BodyKind, GravityScale};
use crate::schedule::Step;
use glam::DVec3;

/// Starts every body's force with its weight (each substep anew; the `Force` component stays until the step is done). Users' systems and the `Force` component add to it.
pub fn apply_gravity(step: &mut Step<'_>) {
    let (bodies, gravity) = (&mut step.work.bodies, step.settings.gravity);
    for (force, view) in bodies.force.iter_mut().zip(&bodies.view) {
        let weight = if view.kind == BodyKind::Dynamic { gravity * view.mass } else { DVec3::ZERO };
        *force = [weight, DVec3::ZERO];
    }
    for (index, scale) in step.world.query_mut::<(&BodyIndex, &GravityScale)>() {
        if let Some(force) = bodies.force.get_mut(index.0 as usize) {
            force[0] *= scale.0;
        }
    }
}
