//! Pushes on bodies from outside: forces, torques and impulses at a point.

use crate::components::*;
use glam::{DMat3, DVec3};
use hecs::{Entity, World};

/// Why a push could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PushError {
    /// The entity is not a body.
    #[error("{0:?} is not a body: it needs the components of `RigidBody`")]
    NotABody(Entity),
    /// The push is not finite.
    #[error("the push on {0:?} is not finite")]
    NotFinite(Entity),
}

/// Adds a force (N) at a world point for the coming step.
///
/// # Errors
/// If the entity is no body or the numbers are not finite.
pub fn apply_force_at(world: &mut World, body: Entity, force: DVec3, point: DVec3) -> Result<(), PushError> {
    check(body, force, point)?;
    let (x, f, t) = world
        .query_one_mut::<(&Position, &mut Force, &mut Torque)>(body)
        .map_err(|_| PushError::NotABody(body))?;
    f.0 += force;
    t.0 += (point - x.0).cross(force);
    Ok(())
}

/// Adds a torque (N·m) for the coming step.
///
/// # Errors
/// If the entity is no body or the numbers are not finite.
pub fn apply_torque(world: &mut World, body: Entity, torque: DVec3) -> Result<(), PushError> {
    check(body, torque, DVec3::ZERO)?;
    world.query_one_mut::<&mut Torque>(body).map_err(|_| PushError::NotABody(body))?.0 += torque;
    Ok(())
}

/// Changes the velocity of a dynamic body at once by an impulse (N·s) at a world point. Kinematic and fixed bodies do
/// not answer.
///
/// # Errors
/// If the entity is no body or the numbers are not finite.
pub fn apply_impulse_at(
    world: &mut World,
    body: Entity,
    impulse: DVec3,
    point: DVec3,
) -> Result<(), PushError> {
    check(body, impulse, point)?;
    type Pushed<'a> = (
        &'a BodyKind,
        &'a Position,
        &'a Rotation,
        &'a Mass,
        &'a Inertia,
        &'a mut LinearVelocity,
        &'a mut AngularVelocity,
    );
    let (kind, x, q, mass, inertia, v, w) =
        world.query_one_mut::<Pushed<'_>>(body).map_err(|_| PushError::NotABody(body))?;
    if *kind == BodyKind::Dynamic {
        let r = DMat3::from_quat(q.0);
        v.0 += impulse / mass.0;
        w.0 += r * (inertia.0.inverse() * (r.transpose() * (point - x.0).cross(impulse)));
    }
    Ok(())
}

fn check(body: Entity, push: DVec3, point: DVec3) -> Result<(), PushError> {
    if push.is_finite() && point.is_finite() { Ok(()) } else { Err(PushError::NotFinite(body)) }
}
