//! What the numbers of joints may be ([`Constraint::check`](super::Constraint::check)).

use super::joints::pulley::{RopePoint, Winch};
use super::{Axis, Frame, Frames, GearWheel, Limits, Motor, RotationMotor, Softness};
use crate::range::{OutOfRange, Range};
use glam::{DQuat, DVec3};

type Checked = Result<(), OutOfRange>;

const ANY: f64 = f64::INFINITY;
const ANCHOR: Range = Range::new("anchor", "m", -1e9, 1e9);
/// Frames are unit quaternions; hand-written ones have three to four digits.
const ROTATION: Range = Range::new("frame rotation's length²", "", 0.99, 1.01);
const LENGTH: Range = Range::new("length", "m", 0.0, 1e9);
const STIFFNESS: Range = Range::new("stiffness", "N/m or N·m/rad", 0.0, 1e18);
/// A suspension without springs is infinitely stiff.
const SUSPENSION: Range = Range::new("suspension stiffness", "N/m", 0.0, ANY);
const DAMPING: Range = Range::new("damping", "N·s/m or N·m·s/rad", 0.0, 1e18);
const COMPLIANCE: Range = Range::new("compliance", "m/s per N·s", 0.0, 1e18);
const CORRECTION: Range = Range::new("correction", "", 0.0, 1.0);
const FORCE: Range = Range::new("greatest force", "N or N·m", 0.0, ANY);
const FRICTION: Range = Range::new("friction", "", 0.0, ANY);
const TARGET: Range = Range::new("motor target", "m, rad, m/s or rad/s", -1e9, 1e9);
const MAX_SPEED: Range = Range::new("greatest speed", "m/s or rad/s", 0.0, ANY);
const LIMIT: Range = Range::new("limit", "m or rad", -ANY, ANY);
const STEERING: Range = Range::new("steering", "rad", -1e3, 1e3);
const TEETH: Range = Range::new("teeth", "", -1e6, 1e6);
const RADIUS: Range = Range::new("radius", "m", -1e9, 1e9);
const SPEED: Range = Range::new("winch speed", "m/s", -1e6, 1e6);
const WOUND: Range = Range::new("wound angle", "rad", -1e12, 1e12);
const AXIS: Range = Range::new("axis", "", -1e9, 1e9);

/// An anchor in a body's frame.
pub fn anchor(at: DVec3) -> Checked {
    ANCHOR.check_all(at.to_array())
}

fn rotation(q: DQuat) -> Checked {
    ROTATION.check(q.length_squared())
}

/// A rod's or rope's length.
pub fn length(x: f64) -> Checked {
    LENGTH.check(x)
}

/// A spring.
pub fn spring(stiffness: f64, damping: f64) -> Checked {
    STIFFNESS.check(stiffness)?;
    DAMPING.check(damping)
}

/// A wheel's suspension, steering and brake.
pub fn suspension(stiffness: f64, damping: f64, rest: f64, steering: f64, brake: f64) -> Checked {
    SUSPENSION.check(stiffness)?;
    DAMPING.check(damping)?;
    ANCHOR.check(rest)?;
    STEERING.check(steering)?;
    FORCE.check(brake)
}

/// A pitch radius; its sign is a direction.
pub fn radius(x: f64) -> Checked {
    RADIUS.check(x)
}

impl Frame {
    pub(super) fn check(&self) -> Checked {
        anchor(self.anchor)?;
        rotation(self.rotation)
    }
}

impl Frames {
    pub(super) fn check(&self) -> Checked {
        self.a.check()?;
        self.b.check()
    }
}

impl Softness {
    pub(super) fn check(&self) -> Checked {
        match *self {
            Softness::Rigid => Ok(()),
            Softness::Spring { stiffness, damping } => spring(stiffness, damping),
            Softness::Compliant { compliance, correction, max_speed } => {
                COMPLIANCE.check(compliance)?;
                CORRECTION.check(correction)?;
                MAX_SPEED.check(max_speed)
            }
            Softness::Velocity { compliance } => COMPLIANCE.check(compliance),
        }
    }
}

impl Motor {
    pub(super) fn check(&self) -> Checked {
        match *self {
            Motor::Off => Ok(()),
            Motor::Velocity { target, max_force } => {
                TARGET.check(target)?;
                FORCE.check(max_force)
            }
            Motor::Position { target, stiffness, damping, max_force } => {
                TARGET.check(target)?;
                spring(stiffness, damping)?;
                FORCE.check(max_force)
            }
            Motor::Servo { target, max_speed, max_force } => {
                TARGET.check(target)?;
                MAX_SPEED.check(max_speed)?;
                FORCE.check(max_force)
            }
        }
    }
}

impl RotationMotor {
    pub(super) fn check(&self) -> Checked {
        match *self {
            RotationMotor::Off => Ok(()),
            RotationMotor::Velocity { target, max_torque } => {
                TARGET.check_all(target.to_array())?;
                FORCE.check(max_torque)
            }
            RotationMotor::Position { target, stiffness, damping, max_torque } => {
                rotation(target)?;
                spring(stiffness, damping)?;
                FORCE.check(max_torque)
            }
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Checked {
        LIMIT.check(self.lower)?;
        Range { least: self.lower, ..LIMIT }.check(self.upper)?;
        self.softness.check()
    }
}

impl Axis {
    pub(super) fn check(&self) -> Checked {
        self.motor.check()?;
        FRICTION.check(self.friction)?;
        self.limits.iter().try_for_each(Limits::check)
    }
}

impl GearWheel {
    pub(super) fn check(&self) -> Checked {
        self.frame.check()?;
        self.carrier.check()?;
        TEETH.check(f64::from(self.teeth))
    }
}

impl RopePoint {
    pub(super) fn check(&self) -> Checked {
        anchor(self.anchor)?;
        FRICTION.check(self.friction)
    }
}

impl Winch {
    pub(super) fn check(&self) -> Checked {
        match *self {
            Winch::None => Ok(()),
            Winch::Rate { speed, max_force } => {
                SPEED.check(speed)?;
                FORCE.check(max_force)
            }
            Winch::Drum { axis, radius, wound } => {
                AXIS.check_all(axis.to_array())?;
                RADIUS.check(radius)?;
                WOUND.check(wound)
            }
        }
    }
}
