//! What happened in a step, in a stable order: by the creation order of the bodies.

use hecs::Entity;

/// Something that happened between two colliders, or to an island.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContactEvent {
    /// Two colliders touch that did not at the end of the last step.
    Started(PairNames),
    /// Two colliders no longer touch. The bodies may be gone.
    Stopped(PairNames),
    /// The normal impulses of a pair added up to more than `Settings::impulse_event_threshold`.
    Hit {
        /// Who.
        pair: PairNames,
        /// Sum of the normal impulses (N·s).
        impulse: f64,
    },
    /// A collider entered a sensor.
    Entered(PairNames),
    /// A collider left a sensor. The bodies may be gone.
    Left(PairNames),
    /// A body fell asleep with its island.
    FellAsleep(Entity),
    /// A body woke up.
    WokeUp(Entity),
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
