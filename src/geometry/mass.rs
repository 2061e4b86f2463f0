//! Mass, centre of mass and inertia from shape and density, in closed form.

use super::shape::Shape;
use crate::math;
use glam::{DMat3, DQuat, DVec3};
use parry3d_f64::shape::SharedShape;

/// How heavy something is, where its centre of mass lies and how hard it is to turn about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MassProperties {
    /// Mass (kg).
    pub mass: f64,
    /// Centre of mass in the shape's frame (m).
    pub center: DVec3,
    /// Inertia about the centre of mass, in the axes of the shape's frame (kg·m²).
    pub inertia: DMat3,
}

impl MassProperties {
    /// A point of mass, to be extended.
    pub const ZERO: MassProperties = MassProperties { mass: 0.0, center: DVec3::ZERO, inertia: DMat3::ZERO };

    /// The same thing, `factor` times as dense.
    pub fn scaled(self, factor: f64) -> MassProperties {
        MassProperties { mass: self.mass * factor, inertia: self.inertia * factor, ..self }
    }

    /// The same thing, seen from a frame in which it is turned and then moved.
    pub fn moved(self, position: DVec3, rotation: DQuat) -> MassProperties {
        let r = DMat3::from_quat(rotation);
        MassProperties {
            mass: self.mass,
            center: position + rotation * self.center,
            inertia: r * self.inertia * r.transpose(),
        }
    }

    /// Two things as one (parallel axis theorem).
    pub fn joined(self, other: MassProperties) -> MassProperties {
        let mass = self.mass + other.mass;
        if mass <= 0.0 {
            return self;
        }
        let center = (self.center * self.mass + other.center * other.mass) / mass;
        let inertia = self.inertia
            + shifted(self.mass, self.center - center)
            + other.inertia
            + shifted(other.mass, other.center - center);
        MassProperties { mass, center, inertia }
    }
}

/// m (r·r I − r rᵀ).
fn shifted(mass: f64, r: DVec3) -> DMat3 {
    let outer = DMat3::from_cols(r * r.x, r * r.y, r * r.z);
    (DMat3::from_diagonal(DVec3::splat(r.length_squared())) - outer) * mass
}

fn diagonal(mass: f64, x: f64, y: f64, z: f64) -> MassProperties {
    MassProperties { mass, center: DVec3::ZERO, inertia: DMat3::from_diagonal(DVec3::new(x, y, z)) }
}

/// Mass properties at unit density; `None` for shapes without a volume.
pub(super) fn of_shape(shape: &Shape, parry: &SharedShape) -> Option<MassProperties> {
    use std::f64::consts::PI;
    Some(match shape {
        Shape::Sphere { radius: r } => {
            let m = 4.0 / 3.0 * PI * math::cube(*r);
            let i = 0.4 * m * r * r;
            diagonal(m, i, i, i)
        }
        Shape::Box { half_extents: e } => {
            let m = 8.0 * e.x * e.y * e.z;
            let s = *e * *e * (m / 3.0);
            diagonal(m, s.y + s.z, s.x + s.z, s.x + s.y)
        }
        Shape::Capsule { half_length: h, radius: r } => {
            let cylinder = PI * r * r * 2.0 * h;
            let ball = 4.0 / 3.0 * PI * math::cube(*r);
            let along = cylinder * 0.5 * r * r + ball * 0.4 * r * r;
            // half-ball about the capsule's centre: 0.4 r² + h² + 3/4 h r, per mass of both halves
            let across = cylinder * (r * r / 4.0 + h * h / 3.0) + ball * (0.4 * r * r + h * h + 0.75 * h * r);
            diagonal(cylinder + ball, across, along, across)
        }
        Shape::Cylinder { half_length: h, radius: r } => {
            let m = PI * r * r * 2.0 * h;
            let across = m * (r * r / 4.0 + h * h / 3.0);
            diagonal(m, across, 0.5 * m * r * r, across)
        }
        Shape::Cone { half_height, radius: r } => {
            let h = 2.0 * half_height;
            let m = PI * r * r * h / 3.0;
            let across = m * (0.15 * r * r + 0.0375 * h * h);
            let cone = diagonal(m, across, 0.3 * m * r * r, across);
            MassProperties { center: DVec3::new(0.0, -h / 4.0, 0.0), ..cone }
        }
        Shape::ConvexHull { .. } => {
            let (points, triangles) = parry.as_convex_polyhedron()?.to_trimesh();
            of_closed_mesh(&points, &triangles)
        }
        Shape::Compound { parts } => {
            let mut sum = MassProperties::ZERO;
            let compound = parry.as_compound()?;
            for ((position, rotation, part), (_, compiled)) in parts.iter().zip(compound.shapes()) {
                sum = sum.joined(of_shape(part, compiled)?.moved(*position, *rotation));
            }
            sum
        }
        Shape::HalfSpace { .. } | Shape::TriMesh { .. } | Shape::HeightField { .. } => return None,
    })
}

/// Sums signed tetrahedra from the mesh's first point, so that accuracy does not depend on where the mesh lies.
fn of_closed_mesh(points: &[DVec3], triangles: &[[u32; 3]]) -> MassProperties {
    let origin = points.first().copied().unwrap_or(DVec3::ZERO);
    let (mut volume, mut moment) = (0.0, DVec3::ZERO);
    let mut second = DMat3::ZERO; // ∫ r rᵀ
    for t in triangles {
        let [a, b, c] = t.map(|i| points[i as usize] - origin);
        let v = a.dot(b.cross(c)) / 6.0;
        let s = a + b + c;
        volume += v;
        moment += s * (v / 4.0);
        // ∫ r rᵀ over a tetrahedron with one corner at the origin = v/20 (Σ pᵢ pᵢᵀ + s sᵀ)
        for p in [a, b, c, s] {
            second += DMat3::from_cols(p * p.x, p * p.y, p * p.z) * (v / 20.0);
        }
    }
    let center = moment / volume;
    let about = second - DMat3::from_cols(center * center.x, center * center.y, center * center.z) * volume;
    let trace = about.x_axis.x + about.y_axis.y + about.z_axis.z;
    let inertia = DMat3::from_diagonal(DVec3::splat(trace)) - about;
    MassProperties { mass: volume, center: origin + center, inertia }
}

#[cfg(test)]
mod tests {
    use super::super::ShapeHandle;
    use super::*;

    fn points_of_box(e: DVec3, at: DVec3) -> Vec<DVec3> {
        let sign = |i: u32, bit: u32| if i >> bit & 1 == 0 { -1.0 } else { 1.0 };
        (0..8).map(|i| at + e * DVec3::new(sign(i, 0), sign(i, 1), sign(i, 2))).collect()
    }

    #[test]
    fn a_hull_of_box_corners_weighs_as_the_box_wherever_it_lies() {
        let e = DVec3::new(0.5, 1.0, 2.0);
        let expected = ShapeHandle::cuboid(e).mass_properties(3.0).expect("a box has volume");
        let hull = Shape::ConvexHull { points: points_of_box(e, DVec3::new(7.0, -3.0, 2.0)) };
        let hull = ShapeHandle::new(hull).expect("a box").mass_properties(3.0).expect("volume");
        // 1e-12: a few dozen roundings of numbers of order 10
        assert!((hull.mass - expected.mass).abs() < 1e-12 * expected.mass);
        assert!((hull.center - DVec3::new(7.0, -3.0, 2.0)).length() < 1e-12);
        for (a, b) in hull.inertia.to_cols_array().iter().zip(expected.inertia.to_cols_array()) {
            assert!((a - b).abs() < 1e-12 * 100.0, "{a} {b}");
        }
    }

    /// Midpoint sum over a fine grid; the reference for shapes whose formula could be mistyped.
    fn by_sampling(inside: impl Fn(DVec3) -> bool, e: DVec3, n: i32) -> MassProperties {
        let cell = e * (2.0 / n as f64);
        let v = cell.x * cell.y * cell.z;
        let (mut m, mut moment, mut second) = (0.0, DVec3::ZERO, DMat3::ZERO);
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let p = -e + cell * (DVec3::new(i as f64, j as f64, k as f64) + 0.5);
                    if inside(p) {
                        m += v;
                        moment += p * v;
                        second += DMat3::from_cols(p * p.x, p * p.y, p * p.z) * v;
                    }
                }
            }
        }
        let c = moment / m;
        let about = second - DMat3::from_cols(c * c.x, c * c.y, c * c.z) * m;
        let trace = about.x_axis.x + about.y_axis.y + about.z_axis.z;
        MassProperties { mass: m, center: c, inertia: DMat3::from_diagonal(DVec3::splat(trace)) - about }
    }

    #[test]
    fn capsule_cylinder_and_cone_match_a_fine_sampling() {
        let (h, r) = (0.7, 0.4);
        let capsule = |p: DVec3| (p - DVec3::Y * p.y.clamp(-h, h)).length() < r;
        let cylinder = |p: DVec3| p.y.abs() < h && p.x.hypot(p.z) < r;
        let cone = |p: DVec3| p.y.abs() < h && p.x.hypot(p.z) < r * (h - p.y) / (2.0 * h);
        // the sampled boxes fit the shapes, so that flat ends do not cut cells
        let (long, e) = (DVec3::new(r, h + r, r), DVec3::new(r, h, r));
        for (shape, sampled) in [
            (Shape::Capsule { half_length: h, radius: r }, by_sampling(capsule, long, 120)),
            (Shape::Cylinder { half_length: h, radius: r }, by_sampling(cylinder, e, 120)),
            (Shape::Cone { half_height: h, radius: r }, by_sampling(cone, e, 120)),
        ] {
            let exact = ShapeHandle::new(shape).expect("valid").mass_properties(1.0).expect("volume");
            // 120 cells across: the sampled surface is off by about one part in a few hundred
            assert!((exact.mass / sampled.mass - 1.0).abs() < 5e-3);
            assert!((exact.center - sampled.center).length() < 5e-3);
            for (a, b) in exact.inertia.to_cols_array().iter().zip(sampled.inertia.to_cols_array()) {
                assert!((a - b).abs() < 1e-2 * exact.inertia.x_axis.x, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_compound_of_two_half_boxes_is_the_whole_box() {
        let half = Shape::Box { half_extents: DVec3::new(0.5, 1.0, 1.0) };
        let parts = vec![
            (DVec3::new(-0.5, 0.0, 0.0), DQuat::IDENTITY, half.clone()),
            (DVec3::new(0.5, 0.0, 0.0), DQuat::from_rotation_x(std::f64::consts::PI), half),
        ];
        let whole = ShapeHandle::cuboid(DVec3::ONE).mass_properties(2.0).expect("volume");
        let compound =
            ShapeHandle::new(Shape::Compound { parts }).expect("valid").mass_properties(2.0).expect("volume");
        assert!((whole.mass - compound.mass).abs() < 1e-12);
        assert!((whole.inertia.x_axis - compound.inertia.x_axis).length() < 1e-12);
    }
}
