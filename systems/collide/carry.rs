//! Points of a pair that hardly moves are carried along with its bodies; the shapes are not looked at again.
//!
//! A corner on a face stays a corner on that face while the bodies move against each other by less than what separates
//! features: its separation is n·(p_b − p_a), p the places on the two surfaces and n the normal of the face, each turned with its
//! own body. That is exact for corners on faces. Where edges cross, the normal is off by no more than the bodies
//! tilted against each other (Δθ), and the separation by Δθ times what they slipped: both have their limits below, and
//! all of it vanishes at rest. Round shapes are not carried: their points roll.
//!
//! What is carried depends on the contact entity and the poses alone, so snapshots restore it.

use super::narrow::Motion;
use crate::collision::Mover;
use crate::components::ManifoldPoint;
use crate::geometry::Rides;
use glam::DVec3;

/// Points of one normal at most: what two convex shapes have.
pub(super) const MOST: usize = 4;
/// By how much the bodies may have tilted against each other (rad). Spinning about the normal is seen as slip.
const TILTED: f64 = 2e-3;
/// Share of the margin by which points may have slipped.
const SLIPPED: f64 = 0.1;
/// Share of the margin by which they may have come nearer, or parted.
const CLOSED: f64 = 0.2;

/// Moves the points of a pair along. Returns the least separation; `None`, and the points as they were, where the shapes
/// must be looked at.
pub(super) fn carry_along(
    points: &mut [ManifoldPoint],
    a: &Mover,
    b: &Mover,
    motion: &Motion,
) -> Option<f64> {
    // A point that was not seen is further away than the margin: slow bodies cannot reach it in this step.
    let slow = motion.way - motion.fall <= 0.5 * motion.margin;
    let known = !points.is_empty() && points.len() <= MOST && points.iter().all(|p| p.carried);
    if !slow || !known || a.reshaped || b.reshaped {
        return None;
    }
    let apart = b.center - a.center;
    let (slipped, closed) = (SLIPPED * motion.margin, CLOSED * motion.margin);
    let mut moved = [(DVec3::ZERO, 0.0, DVec3::ZERO); MOST];
    for (point, moved) in points.iter().zip(&mut moved) {
        let (on_a, on_b) = (a.turn * point.anchor_a, b.turn * point.anchor_b);
        let (by_a, by_b) = (a.turn * point.normal_a, b.turn * point.normal_b);
        let normal = if point.face_of_b { by_b } else { by_a };
        let gap = apart + on_b - on_a;
        let separation = normal.dot(gap);
        let slip = gap - normal * separation;
        let stays = slip.length_squared() <= slipped * slipped
            && (by_a - by_b).length_squared() <= TILTED * TILTED
            && (separation - point.seen).abs() <= closed;
        if !stays {
            return None;
        }
        let arm_a = match point.rides {
            Rides::A => on_a + normal * (0.5 * separation),
            Rides::B => on_a + gap - normal * (0.5 * separation),
            Rides::Between => on_a + gap * 0.5,
        };
        *moved = (normal, separation, arm_a);
    }
    let mut nearest = f64::INFINITY;
    for (point, (normal, separation, arm_a)) in points.iter_mut().zip(moved) {
        (point.normal, point.separation) = (normal, separation);
        (point.arm_a, point.arm_b) = (arm_a, arm_a - apart);
        point.age = point.age.saturating_add(1);
        nearest = nearest.min(separation);
    }
    Some(nearest)
}
