//! What a moving shape passes by is not in its way.
//!
//! A contact row along n lets the gap g(n) close by no more than there is: n·v h ≥ −g. Any direction along which two convex shapes are
//! apart gives such a row, and each keeps them apart; but all except one take motion that meets nothing. What slides over flush
//! boxes is nearest to the side face of the next one, which it will pass above: a row along that face stops it. So the direction is not
//! the one in which the shapes are furthest apart now, if their motion m would close that gap. It is one that
//!
//! ```text
//!     g(n) ≥ −ε   and   g(n) + n·m ≥ −ε ,
//! ```
//!
//! parts them before and after the motion, hence all the way: nothing is met, and along n nothing is hindered. It is looked for where the
//! shapes will be; boxes look among the normals of their faces, and take the one that parts them longest even where all gaps
//! close, which is the one that is met.
//!
//! ε is what surfaces that are said to be flush may be out of plane by: the depth of contacts at rest, and places that were
//! computed. A step that is lower is climbed as an overlap of that depth is.

use super::clip::Touch;
use super::direction::{self, Nearest};
use super::part::Part;
use glam::{DQuat, DVec3};
use parry3d_f64::math::Pose;

/// Approaches below this (m in the step) hinder nothing worth a second look: 6 μm/s at 60 steps a second.
const LITTLE: f64 = 1e-7;

/// How far and along which way two shapes are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    /// Points are looked for within this distance (m).
    pub reach: f64,
    /// Motion of the second shape over the first in the step (m), without turning.
    pub motion: DVec3,
    /// Surfaces that are out of plane by less are flush (m).
    pub flush: f64,
}

impl Approach {
    /// Shapes that stand still.
    pub fn still(reach: f64) -> Approach {
        Approach { reach, motion: DVec3::ZERO, flush: 0.0 }
    }

    /// The same in a turned frame.
    pub(super) fn seen_from(&self, rotation: DQuat) -> Approach {
        Approach { motion: rotation.inverse() * self.motion, ..*self }
    }

    /// Does the motion close a gap along a unit vector?
    #[inline]
    pub(super) fn closes(&self, gap: f64, n: DVec3) -> bool {
        let along = self.motion.dot(n);
        along < -LITTLE && gap + along < 0.0
    }

    /// Does the motion leave the shapes apart along a unit vector, before and after?
    pub(super) fn passes(&self, gap: f64, n: DVec3) -> bool {
        gap.min(gap + self.motion.dot(n)) >= -self.flush
    }

    /// The share of the motion for which a gap lasts: endless if it does not close, negative if there is none.
    pub(super) fn lasts(&self, gap: f64, n: DVec3) -> f64 {
        let closing = -self.motion.dot(n);
        match gap + self.flush {
            room if room < 0.0 => f64::NEG_INFINITY,
            _ if closing <= LITTLE => f64::INFINITY,
            room => room / closing,
        }
    }
}

/// The direction in which two parts pass each other, if the gap along `normal` would close and they do.
pub(super) fn passed(
    a: &Part,
    b: &Part,
    b_in_a: &Pose,
    approach: &Approach,
    normal: DVec3,
) -> Option<Nearest> {
    if !approach.closes(gap(a, b, b_in_a, normal)?, normal) {
        return None;
    }
    let then = Pose::from_parts(b_in_a.translation + approach.motion, b_in_a.rotation);
    let found = direction::nearest(a, b, &then, approach.motion.length() + approach.reach)?;
    let gap = gap(a, b, b_in_a, found.normal)?;
    if !approach.passes(gap, found.normal) {
        return None;
    }
    // A ball has one point, and is held from passing through it.
    let between = found.normal * (gap + a.radius() + b.radius());
    let touch = match (a, b) {
        (_, Part::Ball(_)) => Some(Touch::between(b_in_a.translation - between, b_in_a.translation)),
        (Part::Ball(_), _) => Some(Touch::between(DVec3::ZERO, between)),
        _ => None,
    };
    Some(Nearest { normal: found.normal, touch })
}

/// The width of the gap between two parts along a unit vector.
fn gap(a: &Part, b: &Part, b_in_a: &Pose, n: DVec3) -> Option<f64> {
    let on_a = a.support(n)?;
    let on_b = b_in_a.transform_point(b.support(b_in_a.rotation.inverse() * -n)?);
    Some(n.dot(on_b - on_a))
}
