//! A bead on a wire: the anchor slides along a line, everything turns.

use super::axis::{AXIS_KEYS, Axis, RotationMotor};
use super::frame::{Frames, Placed};
use super::prismatic::push_rail_rows;
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Keeps the second anchor on the x axis of the first frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointOnLine {
    /// First body, which carries the line.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits; x is the line.
    pub frames: Frames,
    /// The slide along the line.
    pub slide: Axis,
    /// What drives the rotation.
    pub motor: RotationMotor,
}

impl PointOnLine {
    /// A free bead of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> PointOnLine {
        PointOnLine { a, b, frames, slide: Axis::FREE, motor: RotationMotor::Off }
    }
}

impl Constraint for PointOnLine {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.slide.check()?;
        self.motor.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_rail_rows(&placed, out);
        self.slide.write_slide(placed.slide(placed.axes_a.x_axis), views, 0, out);
        self.motor.write(&placed, AXIS_KEYS + 8, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
