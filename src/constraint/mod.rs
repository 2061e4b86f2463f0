//! The door for everything that ties bodies together: a [`Constraint`] writes rows, the engine does the rest.
//!
//! A row is one scalar equation on velocities (000 eq. 3):
//!
//! ```text
//!     J v⁺ + C λ + φ/h = w₀ ,   lower ≤ λ ≤ upper
//! ```
//!
//! Built-in joints and contacts come through this same door.

mod check;
pub mod contact_rows;
pub mod joints;
pub mod row;
pub mod view;

pub use joints::axis::{Axis, Limits, Motor, RotationMotor};
pub use joints::ball::Ball;
pub use joints::cable::{Cable, Rod};
pub use joints::cylindrical::Cylindrical;
pub use joints::distance::{Distance, Rope, SpringDamper};
pub use joints::fixed::Fixed;
pub use joints::frame::{Frame, Frames, Pose};
pub use joints::gear::{Differential, Gear, GearTrain, GearWheel, RackPinion};
pub use joints::planar::Planar;
pub use joints::point_on_line::PointOnLine;
pub use joints::prismatic::Prismatic;
pub use joints::pulley::{PulleyRope, RopePoint, Winch};
pub use joints::revolute::Revolute;
pub use joints::spring::Spring;
pub use joints::universal::Universal;
pub use joints::wheel::Wheel;
pub use row::{Bounds, Row, RowWriter, Softness, Stiffness, Twist};
pub use view::BodyView;

use crate::components::RowImpulses;
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Something that ties `N` bodies together (two, unless said otherwise).
///
/// Implement it for a component, call `physics.add_constraint::<T>()` once, and spawn entities with it.
pub trait Constraint<const N: usize = 2>: Send + Sync + 'static {
    /// The bodies, in the order in which `write_rows` gets them.
    fn bodies(&self) -> [Entity; N];

    /// Are all of its numbers within their ranges? Asked in every step before anything else; if not, the constraint is skipped
    /// and the number told.
    ///
    /// # Errors
    /// The first number that is not, and its range.
    fn check(&self) -> Result<(), OutOfRange> {
        Ok(())
    }

    /// Writes the rows for the current state of the bodies. The number of rows may change from step to step.
    fn write_rows(&self, bodies: [&BodyView; N], out: &mut RowWriter<'_, N>);

    /// Called once per step before the rows are written, for constraints that keep a state of their own: rope on
    /// a drum, wear, a length that changes. `last` holds the impulses of the last step.
    fn advance(&mut self, _bodies: [&BodyView; N], _last: &RowImpulses, _dt: f64) {}

    /// Appends what [`Constraint::advance`] changes, for snapshots. Nothing unless told otherwise.
    fn save(&self, _state: &mut Vec<f64>) {}

    /// Takes back what [`Constraint::save`] gave.
    fn load(&mut self, _state: &[f64]) {}

    /// The world point at which the force of the constraint on its **last** body is reported
    /// ([`crate::components::JointForce`]): the centre of mass unless told otherwise.
    fn anchor(&self, bodies: [&BodyView; N]) -> DVec3 {
        bodies.last().map_or(DVec3::ZERO, |b| b.position)
    }

    /// May the bodies touch each other? One rule: bodies that a joint holds together at an anchor overlap there, so those of
    /// [`Fixed`], [`Revolute`], [`Prismatic`], [`Cylindrical`], [`Ball`], [`Universal`], [`Planar`], [`PointOnLine`], [`Cable`]
    /// and [`Wheel`] do not touch; every other constraint (rods, ropes, springs, gears, those of users) leaves contacts alone.
    ///
    /// [`crate::components::JointCollision`] on the constraint's entity goes before this answer. Of several constraints on
    /// one pair of bodies, one no is enough.
    fn collide(&self) -> bool {
        true
    }
}
