//! Rays, points and shapes against one placed shape.

use super::narrow::{ContactPoint, NarrowScratch, Placed, collide, relative};
use super::shape::ShapeHandle;
use super::sweep::first_touch;
use glam::{DQuat, DVec3};
use parry3d_f64::math::Pose;
use parry3d_f64::query::{DefaultQueryDispatcher, QueryDispatcher, Ray};

/// Where a ray met a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapeHit {
    /// Distance along the ray, in lengths of its direction.
    pub distance: f64,
    /// Outward normal of the surface there; zero where the ray starts inside.
    pub normal: DVec3,
}

fn pose(placed: &Placed) -> Pose {
    Pose::from_parts(placed.position, placed.rotation)
}

/// The first place where the ray `origin + t direction`, 0 ≤ t ≤ `most`, meets the shape.
pub fn cast_ray(shape: &Placed, origin: DVec3, direction: DVec3, most: f64) -> Option<ShapeHit> {
    // Relative to the shape first: exact far from the origin too.
    let back = shape.rotation.inverse();
    let ray = Ray::new(back * (origin - shape.position), back * direction);
    let hit = shape.shape.parry().cast_local_ray_and_get_normal(&ray, most, true)?;
    Some(ShapeHit { distance: hit.time_of_impact, normal: shape.rotation * hit.normal })
}

/// Do two placed shapes overlap?
pub fn overlaps(a: &Placed, b: &Placed) -> bool {
    let pose = relative(a, b);
    let (sa, sb) = (&**a.shape.parry(), &**b.shape.parry());
    pose.is_finite()
        && DefaultQueryDispatcher.intersection_test(&pose, sa, sb).is_ok_and(|found| found.intersecting)
}

/// Distance of two placed shapes, zero where they overlap; `None` where it is not known (two half-spaces).
pub fn distance(a: &Placed, b: &Placed) -> Option<f64> {
    parry3d_f64::query::distance(&pose(a), &**a.shape.parry(), &pose(b), &**b.shape.parry())
        .ok()
        .map(|d| d.distance)
}

/// Where a question met a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Distance (m); negative inside where that is asked for.
    pub distance: f64,
    /// Where, on the surface of the shape.
    pub point: DVec3,
    /// Outward normal of the surface there.
    pub normal: DVec3,
}

/// Surfaces that are in each other by less are taken to touch (m): what the narrow phase leaves.
const TOUCHING: f64 = 1e-7;
/// Newton's steps at most to the place of touching.
const STEPS: usize = 20;

/// Where two shapes touch or overlap most, on the surface of `a`: the middle of what is equally deep.
pub fn deepest(a: &Placed, b: &Placed, reach: f64) -> Option<Answer> {
    let (mut scratch, mut found) = (NarrowScratch::default(), Vec::new());
    collide(a, b, reach, &mut scratch, &mut found);
    let first = found.iter().min_by(|p, q| p.separation.total_cmp(&q.separation))?;
    let same = |p: &&ContactPoint| {
        p.separation < first.separation + TOUCHING && p.normal.dot(first.normal) > 1.0 - 1e-9
    };
    let (mut sum, mut count) = (DVec3::ZERO, 0.0);
    for p in found.iter().filter(same) {
        sum += p.offset - p.normal * (0.5 * p.separation);
        count += 1.0;
    }
    let point = a.position + sum / count;
    Some(Answer { distance: first.separation, point, normal: first.normal })
}

/// Where `b`, moved by `motion` without turning, first meets `a`; the distance is along the motion. What overlaps at the start
/// is met there, and its normal is the way out; what only touches is met if the motion leads into it.
pub fn cast_shape(a: &Placed, b: &Placed, motion: DVec3) -> Option<Answer> {
    let length = motion.length();
    let along = motion.try_normalize().unwrap_or(DVec3::ZERO);
    if let Some(start) = deepest(a, b, TOUCHING) {
        let inside = start.distance < -TOUCHING;
        // What slides along a surface does not meet it.
        return (inside || along.dot(start.normal) < -1e-9).then_some(Answer { distance: 0.0, ..start });
    }
    if overlaps(a, b) {
        let normal = (b.position - a.position).try_normalize().unwrap_or(DVec3::Z);
        return Some(Answer { distance: 0.0, point: b.position, normal });
    }
    let mut way = first_touch(a, b, motion)? * length;
    // The cast ends within some 1e-6 of the surface; the distance is convex along the way, and Newton's method finds where it is zero.
    let mut met = None;
    for _ in 0..STEPS {
        let there = Placed { position: b.position + along * way, ..*b };
        let Some(now) = deepest(a, &there, 1e-3 * (1.0 + length)) else { break };
        let closing = -along.dot(now.normal);
        met = Some(now);
        if now.distance.abs() < 1e-12 || closing < 1e-6 {
            break;
        }
        way = (way + now.distance / closing).clamp(0.0, length);
    }
    let met = met?;
    Some(Answer { distance: way, ..met })
}

/// The point of a shape's surface that is nearest to a point, its distance (negative inside) and its outward normal.
pub fn nearest_to(shape: &Placed, point: DVec3) -> Answer {
    let local = shape.rotation.inverse() * (point - shape.position);
    let projection = shape.shape.parry().project_local_point(local, false);
    let away = local - projection.point;
    let distance = if projection.is_inside { -away.length() } else { away.length() };
    let on = shape.position + shape.rotation * projection.point;
    let outward = if projection.is_inside { -away } else { away };
    // On the surface itself the direction is that of a small ball that touches there.
    let normal = (outward.length() > 1e-9).then(|| shape.rotation * outward.normalize());
    let normal = normal.or_else(|| {
        let ball = ShapeHandle::sphere(1e-3);
        let placed = Placed { shape: &ball, position: point, rotation: DQuat::IDENTITY };
        deepest(shape, &placed, 1e-3).map(|d| d.normal)
    });
    Answer { distance, point: on, normal: normal.unwrap_or(DVec3::ZERO) }
}
