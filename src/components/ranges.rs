//! What the numbers of components may be. The stage that reads a component first holds it against these.

use super::{Collider, Damping, GravityScale, KinematicTarget, Material, Surface};
use crate::range::{OutOfRange, Range};
use glam::DQuat;

/// Rates (1/s): beyond the upper end a body stops within a nanosecond.
const RATE: Range = Range::new("damping", "1/s", 0.0, 1e9);
const GRAVITY_SCALE: Range = Range::new("gravity scale", "", -1e6, 1e6);
const TARGET: Range = Range::new("kinematic target", "m", -1e12, 1e12);
const COLLIDER: Range = Range::new("collider position", "m", -1e9, 1e9);
/// Squared length of a quaternion: what can still be made a unit quaternion.
const ROTATION: Range = Range::new("rotation length²", "", 1e-12, 1e12);
const FRICTION: Range = Range::new("friction", "", 0.0, 1e6);
const RESTITUTION: Range = Range::new("restitution", "", 0.0, 1.0);
const DENSITY: Range = Range::new("density", "kg/m³", 0.0, 1e12);
const RADIUS: Range = Range::new("torsion or rolling radius", "m", 0.0, 1e6);
/// Zero would be a contact that is harder than any number says.
const COMPLIANCE: Range = Range::new("compliance", "m/s per N·s", f64::MIN_POSITIVE, 1e30);
const BELT: Range = Range::new("surface velocity", "m/s", -1e6, 1e6);

/// Can this quaternion be made a rotation?
fn check_rotation(rotation: DQuat) -> Result<(), OutOfRange> {
    ROTATION.check(rotation.length_squared())
}

impl Damping {
    /// Rates are not negative.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        RATE.check_all([self.linear, self.angular])
    }
}

impl GravityScale {
    /// The factor is a number.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        GRAVITY_SCALE.check(self.0)
    }
}

impl KinematicTarget {
    /// The pose is one.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        TARGET.check_all(self.position.to_array())?;
        check_rotation(self.rotation)
    }
}

impl Material {
    /// Friction and radii are not negative, restitution is a share.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        FRICTION.check(self.friction)?;
        RESTITUTION.check(self.restitution)?;
        DENSITY.check(self.density)?;
        RADIUS.check_all([self.torsion_radius, self.rolling_radius])
    }
}

impl Collider {
    /// Its place on the body is one, and so is its material.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        COLLIDER.check_all(self.position.to_array())?;
        check_rotation(self.rotation)?;
        self.material.check()
    }
}

impl Surface {
    /// As [`Material::check`]; compliance is above zero.
    ///
    /// # Errors
    /// The number and its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        FRICTION.check(self.friction)?;
        RESTITUTION.check(self.restitution)?;
        COMPLIANCE.check_all([self.compliance, self.friction_compliance])?;
        BELT.check_all(self.velocity.to_array())?;
        RADIUS.check_all([self.torsion_radius, self.rolling_radius])
    }
}
