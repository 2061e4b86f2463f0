//! The flat or straight piece of surface that a convex part turns towards a direction.

use super::part::Part;
use crate::math;
use glam::DVec3;
use parry3d_f64::math::Pose;

/// Corners of a round cap. Fixed in the body, so that a resting cylinder keeps its points.
const CAP_CORNERS: usize = 8;
/// Most corners a face may have; larger faces are sampled evenly.
const MOST_CORNERS: usize = 16;

/// A polygon (3 or more corners), an edge (2) or a corner (1).
#[derive(Clone, Copy)]
pub(super) struct Feature {
    corners: [DVec3; MOST_CORNERS],
    count: usize,
    /// Outward normal of a polygon, zero otherwise.
    pub normal: DVec3,
}

impl Feature {
    fn new() -> Feature {
        Feature { corners: [DVec3::ZERO; MOST_CORNERS], count: 0, normal: DVec3::ZERO }
    }

    fn edge(a: DVec3, b: DVec3) -> Feature {
        let mut feature = Feature::new();
        feature.push(a);
        feature.push(b);
        feature
    }

    fn push(&mut self, corner: DVec3) {
        if self.count < MOST_CORNERS {
            self.corners[self.count] = corner;
            self.count += 1;
        }
    }

    pub(super) fn corners(&self) -> &[DVec3] {
        &self.corners[..self.count]
    }

    /// The same feature seen from another frame.
    pub(super) fn moved(mut self, pose: &Pose) -> Feature {
        for corner in &mut self.corners[..self.count] {
            *corner = pose.transform_point(*corner);
        }
        self.normal = pose.rotation * self.normal;
        self
    }
}

/// The feature of `part` (without its radius) towards `dir`, in the part's frame.
pub(super) fn feature_towards(part: &Part, dir: DVec3) -> Feature {
    match part {
        Part::Ball(_) => {
            let mut feature = Feature::new();
            feature.push(DVec3::ZERO);
            feature
        }
        Part::Box(s) => box_face(s.half_extents, dir),
        Part::Capsule { core, .. } => Feature::edge(core.a, core.b),
        Part::Cylinder(s) => {
            if dir.y.abs() > 0.5 * dir.length() {
                cap(s.radius, s.half_height * dir.y.signum(), dir.y.signum())
            } else {
                let rim = radial(dir) * s.radius;
                let up = DVec3::Y * s.half_height;
                Feature::edge(rim - up, rim + up)
            }
        }
        Part::Cone(s) => {
            let slope = DVec3::new(0.0, s.radius, 2.0 * s.half_height).normalize();
            let side = slope.y * dir.y + slope.z * math::hypot(dir.x, dir.z);
            if -dir.y > side {
                cap(s.radius, -s.half_height, -1.0)
            } else {
                let up = DVec3::Y * s.half_height;
                Feature::edge(radial(dir) * s.radius - up, up)
            }
        }
        Part::Hull(s) => hull_face(s, dir),
        Part::Triangle { triangle, .. } => {
            let mut feature = Feature::new();
            for corner in [triangle.a, triangle.b, triangle.c] {
                feature.push(corner);
            }
            let normal = triangle.normal().unwrap_or(DVec3::ZERO);
            feature.normal = if normal.dot(dir) < 0.0 { -normal } else { normal };
            feature
        }
        Part::HalfSpace(_) => Feature::new(),
    }
}

fn radial(dir: DVec3) -> DVec3 {
    DVec3::new(dir.x, 0.0, dir.z).try_normalize().unwrap_or(DVec3::X)
}

pub(super) fn box_face(e: DVec3, dir: DVec3) -> Feature {
    let d = dir.abs();
    let axis = if d.x >= d.y && d.x >= d.z { 0 } else { 1 + usize::from(d.z > d.y) };
    let (u, w) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut feature = Feature::new();
    feature.normal[axis] = dir[axis].signum();
    for (a, b) in [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)] {
        let mut corner = DVec3::ZERO;
        corner[axis] = feature.normal[axis] * e[axis];
        corner[u] = a * e[u];
        corner[w] = b * e[w];
        feature.push(corner);
    }
    feature
}

/// A regular polygon inscribed in a round cap.
fn cap(radius: f64, y: f64, side: f64) -> Feature {
    const H: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const AROUND: [(f64, f64); CAP_CORNERS] =
        [(1.0, 0.0), (H, H), (0.0, 1.0), (-H, H), (-1.0, 0.0), (-H, -H), (0.0, -1.0), (H, -H)];
    let mut feature = Feature::new();
    feature.normal = DVec3::Y * side;
    for (c, s) in AROUND {
        feature.push(DVec3::new(c * radius, y, s * radius));
    }
    feature
}

fn hull_face(hull: &parry3d_f64::shape::ConvexPolyhedron, dir: DVec3) -> Feature {
    let mut best = 0;
    let mut most = f64::NEG_INFINITY;
    for (i, face) in hull.faces().iter().enumerate() {
        let along = face.normal.dot(dir);
        if along > most {
            most = along;
            best = i;
        }
    }
    let mut feature = Feature::new();
    let Some(face) = hull.faces().get(best) else { return feature };
    feature.normal = face.normal;
    let first = face.first_vertex_or_edge as usize;
    let count = face.num_vertices_or_edges as usize;
    let corners = &hull.vertices_adj_to_face()[first..first + count];
    for i in 0..count.min(MOST_CORNERS) {
        let pick = if count <= MOST_CORNERS { i } else { i * count / MOST_CORNERS };
        feature.push(hull.points()[corners[pick] as usize]);
    }
    feature
}
