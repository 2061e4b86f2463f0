//! Two bodies welded together: six rows.

use super::anchored::{push_anchor_rows, push_coordinate};
use super::frame::{Frames, Placed};
use crate::constraint::{BodyView, Constraint, RowWriter};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Welds the second body to the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Where it sits.
    pub frames: Frames,
}

impl Fixed {
    /// A weld of these frames.
    pub fn new(a: Entity, b: Entity, frames: Frames) -> Fixed {
        Fixed { a, b, frames }
    }
}

impl Constraint for Fixed {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()
    }

    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, a, b);
        push_anchor_rows(&placed, out);
        for i in 0..3 {
            push_coordinate(placed.misalignment(i), 3 + i as u32, out);
        }
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
