//! A Cardan joint: two free turns about crossing axes.

use super::anchored::{push_anchor_rows, push_coordinate};
use super::axis::Axis;
use super::frame::{Coordinate, Frames, Placed};
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Holds the anchors together and keeps the x axis of the first frame perpendicular to the y axis of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Universal {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits: x of the first frame and y of the second are the axes.
    pub frames: Frames,
    /// The turn about the x axis of the first frame.
    pub first: Axis,
    /// The turn about the y axis of the second frame.
    pub second: Axis,
}

impl Universal {
    /// A free universal joint of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Universal {
        Universal { a, b, frames, first: Axis::FREE, second: Axis::FREE }
    }

    /// Both turns.
    pub fn turns(placed: &Placed) -> [Coordinate; 2] {
        let (of_a, of_b) = (placed.axes_a, placed.axes_b);
        // x of the first frame seen from the second; the bodies' parts are exchanged, hence the swap.
        let seen = placed.angle(of_a.x_axis, of_b.x_axis, of_b.z_axis);
        let second = Coordinate { value: seen.value, jacobian: [seen.jacobian[1], seen.jacobian[0]] };
        [placed.angle(of_b.y_axis, of_a.y_axis, of_a.z_axis), second]
    }
}

impl Constraint for Universal {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.first.check()?;
        self.second.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        let (of_a, of_b) = (placed.axes_a, placed.axes_b);
        push_anchor_rows(&placed, out);
        push_coordinate(placed.perpendicular(of_a.x_axis, of_b.y_axis), 3, out);
        if !self.first.is_free() || !self.second.is_free() {
            let [first, second] = Universal::turns(&placed);
            self.first.write_turn(first, views, 0, out);
            self.second.write_turn(second, views, 1, out);
        }
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
