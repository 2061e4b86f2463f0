//! What happened in a step, in a stable order: by the creation order of the bodies.

use crate::components::JointForce;
use glam::DVec3;
use hecs::Entity;

/// Something that happened between two colliders, to a joint, or to an island.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContactEvent {
    /// Two colliders touch that did not at the end of the last step.
    Started {
        /// Who.
        pair: PairNames,
        /// Where and how fast.
        touch: Touch,
    },
    /// Two colliders no longer touch. The bodies may be gone.
    Stopped(PairNames),
    /// A pair struck harder than the [`HitThreshold`](crate::components::HitThreshold) of one of its bodies, or than
    /// `Settings::impulse_event_threshold` where none carries one. Sent once a blow, in the step in which the approach ends (a
    /// fast body takes two: down to the surface, and to rest on it). A load at rest strikes nothing, however heavy.
    Hit {
        /// Who.
        pair: PairNames,
        /// Where and how fast.
        touch: Touch,
        /// Normal impulse that stopped the approach, beyond what forces press the pair together with (N·s).
        impulse: f64,
    },
    /// A collider entered a sensor.
    Entered(PairNames),
    /// A collider left a sensor. The bodies may be gone.
    Left(PairNames),
    /// A joint gave way; see [`Breakable`](crate::components::Breakable).
    JointBroke {
        /// The joint.
        joint: Entity,
        /// What broke it.
        by: JointForce,
    },
    /// A one-sided row of a joint began to act: a stop is reached, a rope comes taut.
    LimitReached {
        /// The joint.
        joint: Entity,
        /// Key of the row in its [`RowImpulses`](crate::components::RowImpulses): for axis `n` of a joint
        /// [`AXIS_KEYS`](crate::constraint::joints::axis::AXIS_KEYS) `+ 4 n + 1` is the lower stop and `+ 2` the upper one.
        row: u32,
    },
    /// A body fell asleep with its island.
    FellAsleep(Entity),
    /// A body woke up.
    WokeUp(Entity),
}

/// Where two colliders meet, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// The contact's entity.
    pub contact: Entity,
    /// World point on the first body's surface after the step (m); of several the one that is pushed hardest, or is deepest.
    pub point: DVec3,
    /// Unit normal from the first body to the second.
    pub normal: DVec3,
    /// Greatest speed with which the surfaces came together before the step, or before the blow (m/s).
    pub approach: f64,
}

/// Two colliders by their bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairNames {
    /// The body that was created first.
    pub a: Entity,
    /// The other one.
    pub b: Entity,
    /// Which of the first body's colliders.
    pub collider_a: u32,
    /// Which of the second body's colliders.
    pub collider_b: u32,
}
