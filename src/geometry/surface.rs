//! Triangles to draw, for the shapes that are not described by a few measures.

use super::shape::{Shape, ShapeHandle};
use glam::DVec3;
use parry3d_f64::shape::TypedShape;

/// A triangle surface in the shape's own frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    /// Corners (m).
    pub vertices: Vec<DVec3>,
    /// Three corners a triangle, counter-clockwise from outside.
    pub triangles: Vec<[u32; 3]>,
}

impl ShapeHandle {
    /// The surface of a hull, mesh or height field; `None` for the shapes with measures (balls, boxes, …)
    /// and for compounds, whose parts are drawn one by one.
    pub fn surface(&self) -> Option<Surface> {
        match self.shape() {
            Shape::ConvexHull { .. } | Shape::TriMesh { .. } | Shape::HeightField { .. } => {}
            _ => return None,
        }
        let (vertices, triangles) = match self.parry().as_typed_shape() {
            TypedShape::ConvexPolyhedron(hull) => hull.to_trimesh(),
            TypedShape::TriMesh(mesh) => (mesh.vertices().to_vec(), mesh.indices().to_vec()),
            TypedShape::HeightField(field) => field.to_trimesh(),
            _ => return None,
        };
        Some(Surface { vertices, triangles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hull_surface_is_closed_and_faces_outwards() {
        let points = (0..8u32).map(|i| {
            let bit = |k: u32| if i >> k & 1 == 1 { 1.0 } else { -1.0 };
            DVec3::new(bit(0), 2.0 * bit(1), 3.0 * bit(2))
        });
        let hull = ShapeHandle::new(Shape::ConvexHull { points: points.collect() }).expect("a box");
        let s = hull.surface().expect("hulls have a surface");
        let volume: f64 = s
            .triangles
            .iter()
            .map(|t| {
                let [a, b, c] = t.map(|i| s.vertices[i as usize]);
                a.dot(b.cross(c)) / 6.0
            })
            .sum();
        // Divergence theorem on a box of 2 × 4 × 6; rounding only.
        assert!((volume - 48.0).abs() < 1e-9, "{volume}");
    }
}
