//! A hinge: one free turn.

use super::anchored::{push_anchor_rows, push_coordinate};
use super::axis::Axis;
use super::frame::{Frames, Placed};
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Lets the second body turn about the common x axis, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Revolute {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits.
    pub frames: Frames,
    /// The turn: angle of the second frame about x, zero where the frames coincide.
    pub axis: Axis,
}

impl Revolute {
    /// A free hinge of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Revolute {
        Revolute { a, b, frames, axis: Axis::FREE }
    }

    /// The angle now (rad, within half a turn of zero).
    pub fn angle(&self, [a, b]: [&BodyView; 2]) -> f64 {
        Placed::new(&self.frames, a, b).twist().value
    }
}

/// Two rows (keys `key`, `key + 1`) that keep the x axes parallel.
pub(in crate::constraint) fn push_parallel_rows(placed: &Placed, key: u32, out: &mut RowWriter<'_, 2>) {
    let x = placed.axes_b.x_axis;
    push_coordinate(placed.perpendicular(placed.axes_a.y_axis, x), key, out);
    push_coordinate(placed.perpendicular(placed.axes_a.z_axis, x), key + 1, out);
}

impl Constraint for Revolute {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.axis.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_anchor_rows(&placed, out);
        push_parallel_rows(&placed, 3, out);
        if !self.axis.is_free() {
            self.axis.write_turn(placed.twist(), views, 0, out);
        }
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
