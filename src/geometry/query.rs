//! Rays, points and shapes against one placed shape.

use super::narrow::{Placed, relative};
use glam::DVec3;
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

/// Distance of a point from the shape; negative inside (zero for shapes without an inside).
pub fn distance_to_point(shape: &Placed, point: DVec3) -> f64 {
    let local = shape.rotation.inverse() * (point - shape.position);
    let projection = shape.shape.parry().project_local_point(local, false);
    let distance = (projection.point - local).length();
    if projection.is_inside { -distance } else { distance }
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
