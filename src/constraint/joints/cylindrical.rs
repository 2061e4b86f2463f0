//! A shaft in a sleeve: slides along its axis and turns about it.

use super::axis::Axis;
use super::frame::{Frames, Placed};
use super::prismatic::push_rail_rows;
use super::revolute::push_parallel_rows;
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Lets the second body slide along the x axis of the first frame and turn about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cylindrical {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits.
    pub frames: Frames,
    /// The slide along x.
    pub slide: Axis,
    /// The turn about x.
    pub turn: Axis,
}

impl Cylindrical {
    /// A free cylindrical joint of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Cylindrical {
        Cylindrical { a, b, frames, slide: Axis::FREE, turn: Axis::FREE }
    }
}

impl Constraint for Cylindrical {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.slide.check()?;
        self.turn.check()
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        push_rail_rows(&placed, out);
        push_parallel_rows(&placed, 2, out);
        self.slide.write_slide(placed.slide(placed.axes_a.x_axis), views, 0, out);
        self.turn.write_turn(placed.twist(), views, 1, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
