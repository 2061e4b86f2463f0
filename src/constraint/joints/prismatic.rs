//! A slider: one free slide.

use super::anchored::push_coordinate;
use super::axis::Axis;
use super::frame::{Frames, Placed};
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Lets the second body slide along the x axis of the first frame, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prismatic {
    /// First body, which carries the rail.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits.
    pub frames: Frames,
    /// The slide: from the first anchor to the second along x.
    pub axis: Axis,
}

impl Prismatic {
    /// A free slider of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Prismatic {
        Prismatic { a, b, frames, axis: Axis::FREE }
    }

    /// The slide now (m).
    pub fn position(&self, [a, b]: [&BodyView; 2]) -> f64 {
        let placed = Placed::new(&self.frames, a, b);
        placed.slide(placed.axes_a.x_axis).value
    }
}

/// Two rows (keys 0 and 1) that keep the second anchor on the x axis of the first frame.
pub(in crate::constraint) fn push_rail_rows(placed: &Placed, out: &mut RowWriter<'_, 2>) {
    push_coordinate(placed.slide(placed.axes_a.y_axis), 0, out);
    push_coordinate(placed.slide(placed.axes_a.z_axis), 1, out);
}

impl Constraint for Prismatic {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.axis.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_rail_rows(&placed, out);
        for i in 0..3 {
            push_coordinate(placed.misalignment(i), 2 + i as u32, out);
        }
        self.axis.write_slide(placed.slide(placed.axes_a.x_axis), views, 0, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
