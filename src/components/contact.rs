//! Contacts are entities: one for each pair of colliders that touch, or are about to.
//!
//! The *collide* stage spawns one when a pair comes near, updates it in place while it stays, and despawns it when it
//! parts. Between *collide* and *rows* a game may look at them and change them: give a [`Surface`] another friction, a
//! velocity of its own (a conveyor belt), or switch it off (a platform that lets through from below).
//!
//! [`RowImpulses`](super::RowImpulses) holds the impulses of the last step: keys `8 k`, `8 k + 1`, `8 k + 2` for the
//! normal and the two tangents of the point with key `k`, `8 k + 3` for its torsion, `8 k + 4` and `8 k + 5` for rolling.

use crate::geometry::{Rides, Turns};
use glam::{DQuat, DVec3};
use hecs::Entity;

/// The two colliders that touch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// The body that was created first.
    pub a: Entity,
    /// The other one.
    pub b: Entity,
    /// Which of the first body's colliders.
    pub collider_a: u32,
    /// Which of the second body's colliders.
    pub collider_b: u32,
    /// Does one of the colliders only report? Sensors never push.
    pub sensor: bool,
    /// Did the pair touch at the end of the last step (overlap, or push)?
    pub touching: bool,
    /// Greatest speed with which the surfaces came together in the blow under way (m/s); zero between blows.
    pub approach: f64,
    /// Impulse that has stopped the approach so far, beyond what forces press the pair together with (N·s).
    pub blow: f64,
}

/// Where a pair touches: at most four points for each direction of the normal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifold {
    /// The points.
    pub points: Vec<ManifoldPoint>,
}

/// One point of a [`Manifold`]. Vectors are in world axes.
///
/// The order of the fields is that of memory: first what the *collide* stage looks at in every step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct ManifoldPoint {
    /// Unit normal from a to b.
    pub normal: DVec3,
    /// Distance of the surfaces (m), negative where they overlap.
    pub separation: f64,
    /// From the centre of mass of a to the point (m).
    pub arm_a: DVec3,
    /// From the centre of mass of b to the point (m).
    pub arm_b: DVec3,
    /// Its place on the surface of a in the frame of that body, by which it is found again.
    pub anchor_a: DVec3,
    /// Its place on the surface of b, likewise.
    pub anchor_b: DVec3,
    /// The separation when the shapes were last looked at (m).
    pub seen: f64,
    /// Steps it has lived.
    pub age: u32,
    /// May it be carried along by the bodies while these hardly move against each other, without a look at the shapes? Points of a
    /// manifold that are carried have one normal.
    pub carried: bool,
    /// If so: with which of the bodies the normal turns.
    pub turns: Turns,
    /// If so: with which of the bodies the point moves.
    pub rides: Rides,
    /// Names the point for as long as it persists.
    pub key: u32,
    /// If it is carried: the normal in the frame of a when the shapes were last looked at.
    pub normal_a: DVec3,
    /// If so: the normal in the frame of b, likewise.
    pub normal_b: DVec3,
    /// First tangent: along sliding, or along what friction held back in the last step.
    pub tangent: DVec3,
    /// Has an impact answered it in this step, or is it passed by fast, so that no row holds it? Written anew in every step.
    pub answered: bool,
    /// Normal impulse that bounds friction in this step (N·s): a running mean of the last steps'.
    pub load: f64,
    /// Share of the last step's normal impulse that carried, the rest having stopped an approach.
    pub resting_fraction: f64,
    /// Share of it that belonged to a blow: it stopped an approach or threw the bodies back. Written anew in every step.
    pub impacting: f64,
}

/// How two surfaces meet. Written anew in every step from the materials of the two colliders; what a system changes
/// between *collide* and *rows* holds for the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// Coulomb friction coefficient.
    pub friction: f64,
    /// Share of the approach velocity that comes back.
    pub restitution: f64,
    /// Compliance C of the normal rows (m/s per N·s).
    pub compliance: f64,
    /// Compliance C of the friction rows (m/s per N·s).
    pub friction_compliance: f64,
    /// Velocity of the surface of b over that of a that friction strives for (m/s, world axes): conveyor belts.
    pub velocity: DVec3,
    /// Radius (m) by which friction also resists spinning about the normal; zero for none.
    pub torsion_radius: f64,
    /// Radius (m) by which the normal force also resists rolling; zero for none.
    pub rolling_radius: f64,
    /// Does the pair push at all?
    pub enabled: bool,
}

/// How long a body has been at rest, and whether it sleeps. Given to every body by the engine; to wake one, set its
/// velocity, push it, move it, or call `Physics::wake`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rest {
    /// Seconds below the speed of `Settings::sleep_speed`.
    pub time: f64,
    /// Did it neither go anywhere nor gain speed in the last `sleep_time / 2` of them that were looked at?
    pub steady: bool,
    /// Does it sleep?
    pub asleep: bool,
    /// Where it fell asleep (m); a body found elsewhere was moved and wakes. Awake, where the present `sleep_time / 2` began.
    pub position: DVec3,
    /// How it was turned there.
    pub rotation: DQuat,
}
