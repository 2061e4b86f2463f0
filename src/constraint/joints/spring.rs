//! A spring that is part of the matter: a block of A in place of a row.
//!
//! With the direction n of the span, its length ℓ and J = [−n, n] at the anchors, implicit in the velocity as every spring here
//! (003 eqs. 2.20–2.25):
//!
//! ```text
//!     A += h (h k + c) JᵀJ + β h² T/ℓ Jₜᵀ Jₜ ,     p −= h k (ℓ − ℓ₀) Jᵀ − β h² T/ℓ Jₜᵀ Jₜ v ,     T = k (ℓ − ℓ₀) > 0
//! ```
//!
//! The second term is how the pull turns with the line, on the change of velocity.

use super::distance::Span;
use super::frame::Pose;
use crate::constraint::{BodyView, Constraint, Row, RowWriter, Softness, check};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// A spring with a damper between two anchors, as [`super::distance::SpringDamper`] moves its bodies, but as part of A: it costs no row and no
/// multiplier, and its force is not reported. What cloth, nets and solids are tied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spring {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Anchor in the frame of the first body.
    pub anchor_a: DVec3,
    /// Anchor in the frame of the second body.
    pub anchor_b: DVec3,
    /// Length at which it does not pull (m).
    pub length: f64,
    /// N/m.
    pub stiffness: f64,
    /// N·s/m.
    pub damping: f64,
}

impl Spring {
    /// Between the centres of two bodies.
    pub fn between(a: Entity, b: Entity, length: f64, stiffness: f64) -> Spring {
        Spring { a, b, anchor_a: DVec3::ZERO, anchor_b: DVec3::ZERO, length, stiffness, damping: 0.0 }
    }

    /// The same with anchors at world points of bodies that stand like this.
    pub fn at(mut self, pose_a: &Pose, on_a: DVec3, pose_b: &Pose, on_b: DVec3) -> Spring {
        (self.anchor_a, self.anchor_b) = (pose_a.local_point(on_a), pose_b.local_point(on_b));
        self
    }

    /// The same with a damper (N·s/m).
    pub fn damped(mut self, damping: f64) -> Spring {
        self.damping = damping;
        self
    }
}

impl Constraint for Spring {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        check::anchor(self.anchor_a)?;
        check::anchor(self.anchor_b)?;
        check::length(self.length)?;
        check::spring(self.stiffness, self.damping)
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let span = Span::new(views, self.anchor_a, self.anchor_b);
        let stretch = span.at.value - self.length;
        out.couple(Row {
            jacobian: span.at.jacobian,
            violation: stretch,
            softness: Softness::Spring { stiffness: self.stiffness, damping: self.damping },
            ..Row::default()
        });
        span.stiffen(views, self.stiffness * stretch, out, RowWriter::couple);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.anchor_b)
    }
}
