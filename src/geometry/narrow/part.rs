//! Convex parts: what the narrow phase compares, one at a time.

use crate::math;
use glam::DVec3;
use parry3d_f64::bounding_volume::Aabb;
use parry3d_f64::math::Pose;
use parry3d_f64::query::PointQuery;
use parry3d_f64::query::details::NormalConstraints;
use parry3d_f64::shape::{
    Ball, Cone, ConvexPolyhedron, Cuboid, Cylinder, Segment, Shape as ParryShape, SupportMap, Triangle,
    TrianglePseudoNormals, TypedShape,
};

/// One convex piece of a shape. Rounded pieces are a core and a radius around it.
pub(super) enum Part<'a> {
    Ball(&'a Ball),
    Box(&'a Cuboid),
    Capsule { core: Segment, radius: f64 },
    Cylinder(&'a Cylinder),
    Cone(&'a Cone),
    Hull(&'a ConvexPolyhedron),
    Triangle { triangle: Triangle, rim: Option<TrianglePseudoNormals> },
    HalfSpace(DVec3),
}

impl<'a> Part<'a> {
    /// The radius around the core.
    pub(super) fn radius(&self) -> f64 {
        match self {
            Part::Ball(ball) => ball.radius,
            Part::Capsule { radius, .. } => *radius,
            _ => 0.0,
        }
    }

    /// The core as a support map; `None` for balls (a point) and half-spaces (unbounded).
    pub(super) fn core(&self) -> Option<&dyn SupportMap> {
        match self {
            Part::Ball(_) | Part::HalfSpace(_) => None,
            Part::Box(s) => Some(*s),
            Part::Capsule { core, .. } => Some(core),
            Part::Cylinder(s) => Some(*s),
            Part::Cone(s) => Some(*s),
            Part::Hull(s) => Some(*s),
            Part::Triangle { triangle, .. } => Some(triangle),
        }
    }

    /// The point that is furthest along a unit vector; `None` for half-spaces.
    pub(super) fn support(&self, n: DVec3) -> Option<DVec3> {
        match self {
            Part::HalfSpace(_) => None,
            Part::Ball(ball) => Some(n * ball.radius),
            _ => Some(self.core()?.local_support_point(n) + n * self.radius()),
        }
    }

    /// How large the core is about (m).
    pub(super) fn size(&self) -> f64 {
        match self {
            Part::Ball(_) | Part::HalfSpace(_) => 0.0,
            Part::Box(s) => s.half_extents.length(),
            Part::Capsule { core, .. } => 0.5 * core.length(),
            Part::Cylinder(s) => math::hypot(s.radius, s.half_height),
            Part::Cone(s) => math::hypot(s.radius, s.half_height),
            Part::Hull(s) => s.compute_local_aabb().half_extents().length(),
            Part::Triangle { triangle, .. } => triangle.compute_local_aabb().half_extents().length(),
        }
    }

    /// Has the core a curved surface?
    pub(super) fn is_round(&self) -> bool {
        matches!(self, Part::Cylinder(_) | Part::Cone(_))
    }

    /// A point in the middle of the core.
    pub(super) fn middle(&self) -> DVec3 {
        match self {
            Part::Capsule { core, .. } => 0.5 * (core.a + core.b),
            Part::Hull(s) => s.points().iter().sum::<DVec3>() / s.points().len() as f64,
            Part::Triangle { triangle, .. } => triangle.center(),
            _ => DVec3::ZERO,
        }
    }

    /// The piece as something a point can be projected on.
    pub(super) fn as_point_query(&self) -> Option<&dyn PointQuery> {
        match self {
            Part::Ball(s) => Some(*s),
            Part::Box(s) => Some(*s),
            Part::Capsule { core, .. } => Some(core),
            Part::Cylinder(s) => Some(*s),
            Part::Cone(s) => Some(*s),
            Part::Hull(s) => Some(*s),
            Part::Triangle { triangle, .. } => Some(triangle),
            Part::HalfSpace(_) => None,
        }
    }

    /// Turns `normal` (outward, in this part's frame) into one that the neighbours of a mesh triangle allow:
    /// the cure for bumps at the inner edges of flat meshes. `false`: the contact belongs to a neighbour.
    pub(super) fn allow_normal(&self, normal: &mut DVec3) -> bool {
        match self {
            Part::Triangle { rim: Some(rim), .. } => rim.project_local_normal_mut(normal),
            _ => true,
        }
    }
}

/// Calls `f` with every convex part of `shape` that may touch `near` (a box in the frame of the shape), its
/// pose in that frame, in a fixed order.
pub(super) fn each_part<'a>(shape: &'a dyn ParryShape, near: &Aabb, f: &mut dyn FnMut(Part<'a>, &Pose)) {
    let here = Pose::identity();
    match shape.as_typed_shape() {
        TypedShape::Compound(compound) => {
            for (pose, part) in compound.shapes() {
                if let Some(part) = convex(&**part) {
                    f(part, pose);
                }
            }
        }
        TypedShape::TriMesh(mesh) => {
            for id in mesh.bvh().intersect_aabb(near) {
                if id < mesh.num_triangles() as u32 {
                    let rim = mesh.triangle_normal_constraints(id);
                    f(Part::Triangle { triangle: mesh.triangle(id), rim }, &here);
                }
            }
        }
        TypedShape::HeightField(field) => {
            field.map_elements_in_local_aabb(near, &mut |id, triangle| {
                let rim = field.triangle_normal_constraints(id);
                f(Part::Triangle { triangle: *triangle, rim }, &here);
            });
        }
        _ => {
            if let Some(part) = convex(shape) {
                f(part, &here);
            }
        }
    }
}

/// The part of a shape that is convex as it stands.
pub(super) fn convex(shape: &dyn ParryShape) -> Option<Part<'_>> {
    Some(match shape.as_typed_shape() {
        TypedShape::Ball(s) => Part::Ball(s),
        TypedShape::Cuboid(s) => Part::Box(s),
        TypedShape::Capsule(s) => Part::Capsule { core: s.segment, radius: s.radius },
        TypedShape::Cylinder(s) => Part::Cylinder(s),
        TypedShape::Cone(s) => Part::Cone(s),
        TypedShape::ConvexPolyhedron(s) => Part::Hull(s),
        TypedShape::HalfSpace(s) => Part::HalfSpace(s.normal),
        _ => return None,
    })
}
