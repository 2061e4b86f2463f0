//! From the shapes of a body to the parts that are drawn.

use super::recording::{Form, Mesh, Part};
use crate::components::Collider;
use crate::geometry::{Shape, ShapeHandle, Surface};
use glam::{DQuat, DVec3};

/// Collects the meshes that parts share: the same compiled shape is stored once.
#[derive(Default)]
pub struct PartBuilder {
    meshes: Vec<Mesh>,
    known: Vec<(ShapeHandle, u32)>,
}

impl PartBuilder {
    /// The parts of one collider.
    pub fn parts(&mut self, collider: &Collider) -> Vec<Part> {
        let mut out = Vec::new();
        self.add(&collider.shape, collider.position, collider.rotation, &mut out);
        out
    }

    /// The meshes so far; parts refer to them by number.
    pub fn meshes(&self) -> &[Mesh] {
        &self.meshes
    }

    fn add(&mut self, handle: &ShapeHandle, position: DVec3, rotation: DQuat, out: &mut Vec<Part>) {
        if let Shape::Compound { parts } = handle.shape() {
            for (p, q, shape) in parts {
                if let Ok(inner) = ShapeHandle::new(shape.clone()) {
                    self.add(&inner, position + rotation * *p, rotation * *q, out);
                }
            }
            return;
        }
        let mut push = |form, size: DVec3, offset: DVec3, turn: DQuat, mesh| {
            out.push(Part {
                form,
                size: size.as_vec3().to_array(),
                position: (position + rotation * offset).as_vec3().to_array(),
                rotation: (rotation * turn).as_quat().to_array(),
                mesh,
            });
        };
        let still = DQuat::IDENTITY;
        match handle.shape() {
            Shape::Sphere { radius } => push(Form::Sphere, DVec3::splat(*radius), DVec3::ZERO, still, None),
            Shape::Box { half_extents } => push(Form::Box, *half_extents, DVec3::ZERO, still, None),
            Shape::Capsule { half_length, radius } => {
                let ball = DVec3::splat(*radius);
                push(Form::Cylinder, DVec3::new(*radius, *half_length, *radius), DVec3::ZERO, still, None);
                push(Form::Sphere, ball, DVec3::Y * *half_length, still, None);
                push(Form::Sphere, ball, DVec3::NEG_Y * *half_length, still, None);
            }
            Shape::Cylinder { half_length, radius } => {
                push(Form::Cylinder, DVec3::new(*radius, *half_length, *radius), DVec3::ZERO, still, None);
            }
            Shape::Cone { half_height, radius } => {
                push(Form::Cone, DVec3::new(*radius, *half_height, *radius), DVec3::ZERO, still, None);
            }
            Shape::HalfSpace { normal } => {
                let up = normal.normalize_or(DVec3::Z);
                push(Form::Plane, DVec3::ONE, DVec3::ZERO, DQuat::from_rotation_arc(DVec3::Z, up), None);
            }
            Shape::ConvexHull { .. } | Shape::TriMesh { .. } | Shape::HeightField { .. } => {
                let mesh = mesh_number(&mut self.meshes, &mut self.known, handle);
                push(Form::Mesh, DVec3::ONE, DVec3::ZERO, still, mesh);
            }
            Shape::Compound { .. } => {}
        }
    }
}

fn mesh_number(
    meshes: &mut Vec<Mesh>,
    known: &mut Vec<(ShapeHandle, u32)>,
    handle: &ShapeHandle,
) -> Option<u32> {
    if let Some((_, number)) = known.iter().find(|(h, _)| h.same(handle)) {
        return Some(*number);
    }
    let Surface { vertices, triangles } = handle.surface()?;
    let number = meshes.len() as u32;
    meshes.push(Mesh { vertices: vertices.iter().map(|v| v.as_vec3().to_array()).collect(), triangles });
    known.push((handle.clone(), number));
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_hulls_are_stored_once_and_capsules_have_round_ends() {
        let corners = (0..8).map(|i| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)));
        let hull = ShapeHandle::new(Shape::ConvexHull { points: corners.collect() }).expect("a cube");
        let mut builder = PartBuilder::default();
        let one = builder.parts(&Collider::new(hull.clone()));
        let two = builder.parts(&Collider::new(hull));
        assert_eq!(one, two);
        assert_eq!(builder.meshes().len(), 1);
        let capsule = ShapeHandle::new(Shape::Capsule { half_length: 1.0, radius: 0.2 }).expect("a capsule");
        let parts = builder.parts(&Collider::new(capsule));
        assert_eq!(parts.iter().filter(|p| p.form == Form::Sphere).count(), 2);
        assert_eq!(parts[1].position, [0.0, 1.0, 0.0]);
    }
}
