//! A body on a plane: slides two ways and turns about the normal.

use super::anchored::push_coordinate;
use super::axis::Axis;
use super::frame::{Frames, Placed};
use super::revolute::push_parallel_rows;
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Keeps the second anchor on the plane through the first whose normal is x, and the x axes parallel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planar {
    /// First body, which carries the plane.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits; x is the normal.
    pub frames: Frames,
    /// The slide along y of the first frame.
    pub slide_y: Axis,
    /// The slide along z of the first frame.
    pub slide_z: Axis,
    /// The turn about the normal.
    pub turn: Axis,
}

impl Planar {
    /// A free planar joint of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Planar {
        Planar { a, b, frames, slide_y: Axis::FREE, slide_z: Axis::FREE, turn: Axis::FREE }
    }
}

impl Constraint for Planar {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.slide_y.check()?;
        self.slide_z.check()?;
        self.turn.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_coordinate(placed.slide(placed.axes_a.x_axis), 0, out);
        push_parallel_rows(&placed, 1, out);
        self.slide_y.write_slide(placed.slide(placed.axes_a.y_axis), views, 0, out);
        self.slide_z.write_slide(placed.slide(placed.axes_a.z_axis), views, 1, out);
        self.turn.write_turn(placed.twist(), views, 2, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
