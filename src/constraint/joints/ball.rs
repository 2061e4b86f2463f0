//! A ball joint: the anchors coincide, everything turns.

use super::anchored::push_anchor_rows;
use super::axis::{AXIS_KEYS, Axis, Limits, RotationMotor, write_limit};
use super::frame::{Frame, Frames, Placed, Pose};
use crate::constraint::{BodyView, Bounds, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Holds two anchors together; cone and twist limits, a motor and friction on the rotation if asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits; the x axes are those of the cone and of the twist.
    pub frames: Frames,
    /// How far the x axes may part (`lower` is not used).
    pub swing: Option<Limits>,
    /// Limits (and motor, and friction) of the turn about the x axis.
    pub twist: Axis,
    /// What drives the whole rotation.
    pub motor: RotationMotor,
}

impl Ball {
    /// A free ball joint of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Ball {
        Ball { a, b, frames, swing: None, twist: Axis::FREE, motor: RotationMotor::Off }
    }

    /// A free ball joint between two points, each in its own body's frame.
    pub fn between(a: Entity, anchor_a: DVec3, b: Entity, anchor_b: DVec3) -> Ball {
        Ball::new(a, b, Frames { a: Frame::at(anchor_a), b: Frame::at(anchor_b) })
    }

    /// A free ball joint at a world point, for bodies that are in these poses.
    pub fn at(a: Entity, pose_a: &Pose, b: Entity, pose_b: &Pose, point: DVec3) -> Ball {
        Ball::new(a, b, Frames::in_world(pose_a, pose_b, point, DVec3::X))
    }
}

/// A stop's row is written only when it is this near (rad).
const NEAR: f64 = 0.1;

impl Constraint for Ball {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.swing.iter().try_for_each(Limits::check)?;
        self.twist.check()?;
        self.motor.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_anchor_rows(&placed, out);
        if let Some(limits) = self.swing {
            let at = placed.swing();
            write_limit(&at, at.value - limits.upper, Bounds::PULL_ONLY, limits.softness, NEAR, 3, out);
        }
        if !self.twist.is_free() {
            self.twist.write_turn(placed.twist(), views, 0, out);
        }
        self.motor.write(&placed, AXIS_KEYS + 8, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
