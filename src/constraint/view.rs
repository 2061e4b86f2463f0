//! What a constraint sees of a body.

use super::Twist;
use crate::components::BodyKind;
use glam::{DMat3, DQuat, DVec3};

/// The state of a body at the start of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyView {
    /// How it takes part.
    pub kind: BodyKind,
    /// World position of the centre of mass.
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
    /// Velocity of the centre of mass.
    pub linear_velocity: DVec3,
    /// Angular velocity, world frame.
    pub angular_velocity: DVec3,
    /// Mass.
    pub mass: f64,
    /// Inertia about the centre of mass, body frame; zero for a point mass, which does not turn.
    pub inertia: DMat3,
}

impl BodyView {
    /// A fixed body at the origin; a start for tests and for constraints to the world.
    pub const WORLD: BodyView = BodyView {
        kind: BodyKind::Fixed,
        position: DVec3::ZERO,
        rotation: DQuat::IDENTITY,
        linear_velocity: DVec3::ZERO,
        angular_velocity: DVec3::ZERO,
        mass: 1.0,
        inertia: DMat3::IDENTITY,
    };

    /// Do impulses move it?
    pub fn is_dynamic(&self) -> bool {
        self.kind == BodyKind::Dynamic
    }

    /// Does it turn? A point mass does not.
    pub fn rotates(&self) -> bool {
        self.inertia != DMat3::ZERO
    }

    /// What of a row's twist acts on it: a point mass is not turned.
    pub fn acting(&self, twist: Twist) -> Twist {
        if self.rotates() { twist } else { Twist::linear(twist.linear) }
    }

    /// The inverse of its inertia in world axes; zero where it does not turn.
    pub fn inverse_inertia(&self) -> DMat3 {
        if !self.rotates() {
            return DMat3::ZERO;
        }
        let r = DMat3::from_quat(self.rotation);
        (r * self.inertia * r.transpose()).inverse()
    }

    /// A point of the body frame, in the world.
    pub fn point(&self, local: DVec3) -> DVec3 {
        self.position + self.rotation * local
    }

    /// A direction of the body frame, in the world.
    pub fn direction(&self, local: DVec3) -> DVec3 {
        self.rotation * local
    }

    /// Velocity of a world point that moves with the body.
    pub fn velocity_at(&self, point: DVec3) -> DVec3 {
        self.linear_velocity + self.angular_velocity.cross(point - self.position)
    }
}
