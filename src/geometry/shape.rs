//! Shapes as plain data, and handles that share their compiled form.

use super::mass::{self, MassProperties};
use crate::math;
use glam::{DQuat, DVec3};
use parry3d_f64::math::Pose;
use parry3d_f64::shape::{HeightField, HeightFieldFlags, SharedShape, TriMeshFlags};
use std::sync::Arc;

/// A shape as its author describes it. Capsules, cylinders and cones stand along the local **y** axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A ball.
    Sphere {
        /// Radius (m).
        radius: f64,
    },
    /// A box.
    Box {
        /// Half of each edge (m).
        half_extents: DVec3,
    },
    /// A cylinder with half-balls at its ends.
    Capsule {
        /// Half the distance between the centres of the half-balls (m).
        half_length: f64,
        /// Radius (m).
        radius: f64,
    },
    /// A cylinder.
    Cylinder {
        /// Half its length (m).
        half_length: f64,
        /// Radius (m).
        radius: f64,
    },
    /// A cone with its tip at +y; the origin is half way up.
    Cone {
        /// Half its height (m).
        half_height: f64,
        /// Radius of the base (m).
        radius: f64,
    },
    /// The convex hull of points.
    ConvexHull {
        /// Points; those inside the hull are ignored.
        points: Vec<DVec3>,
    },
    /// Everything below a plane through the origin.
    HalfSpace {
        /// Outward normal.
        normal: DVec3,
    },
    /// Triangles, for bodies that do not move by forces.
    TriMesh {
        /// Corners.
        vertices: Vec<DVec3>,
        /// Three corners a triangle, counter-clockwise from outside.
        indices: Vec<[u32; 3]>,
    },
    /// Heights over a grid in the local x–z plane, y up.
    HeightField {
        /// Number of samples along z (rows) and x (columns), each at least 2.
        size: [usize; 2],
        /// Heights, row by row.
        heights: Vec<f64>,
        /// Extent along x, factor on heights, extent along z.
        scale: DVec3,
    },
    /// Several shapes as one.
    Compound {
        /// Position, rotation and shape of each part.
        parts: Vec<(DVec3, DQuat, Shape)>,
    },
}

/// Why a shape cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// A measure is zero, negative, not finite, or of another world than the rest.
    #[error("{shape}: {what} is {value:?}; it must be a positive finite number of metres, from 1e-9 to 1e9")]
    Measure {
        /// Which shape.
        shape: &'static str,
        /// Which measure.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// The points of a hull lie in one plane or are too few.
    #[error("convex hull of {points} points has no volume; give at least 4 points that are not in one plane")]
    FlatHull {
        /// How many points there were.
        points: usize,
    },
    /// A mesh or height field is malformed.
    #[error("{shape}: {what}")]
    Malformed {
        /// Which shape.
        shape: &'static str,
        /// What is wrong.
        what: String,
    },
}

/// A compiled shape, shared between colliders. Cloning copies a pointer.
#[derive(Clone)]
pub struct ShapeHandle(Arc<Compiled>);

/// The shapes that closed forms know, as plain numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A ball of this radius (m).
    Ball(f64),
    /// A box with these half edges (m).
    Box(DVec3),
    /// Anything else.
    Other,
}

struct Compiled {
    shape: Shape,
    parry: SharedShape,
    unit_mass: Option<MassProperties>,
}

impl std::fmt::Debug for ShapeHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.shape.fmt(f)
    }
}

impl ShapeHandle {
    /// Checks and compiles a shape.
    ///
    /// # Errors
    /// Measures that are not positive and finite, hulls without volume, malformed meshes.
    pub fn new(shape: Shape) -> Result<ShapeHandle, ShapeError> {
        let parry = compile(&shape)?;
        let unit_mass = mass::of_shape(&shape, &parry);
        Ok(ShapeHandle(Arc::new(Compiled { shape, parry, unit_mass })))
    }

    /// A ball of radius `radius` metres.
    ///
    /// # Panics
    /// If the radius is not a positive finite number.
    pub fn sphere(radius: f64) -> ShapeHandle {
        ShapeHandle::new(Shape::Sphere { radius }).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A box with these half edges.
    ///
    /// # Panics
    /// If a half edge is not a positive finite number.
    pub fn cuboid(half_extents: DVec3) -> ShapeHandle {
        ShapeHandle::new(Shape::Box { half_extents }).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The shape as it was described.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The shape as plain numbers, if it is so simple.
    pub fn form(&self) -> Form {
        match self.shape() {
            Shape::Sphere { radius } => Form::Ball(*radius),
            Shape::Box { half_extents } => Form::Box(*half_extents),
            _ => Form::Other,
        }
    }

    /// The compiled shape.
    pub(crate) fn parry(&self) -> &SharedShape {
        &self.0.parry
    }

    /// Mass properties at the given density; `None` for shapes without volume (half-spaces, meshes, height fields).
    pub fn mass_properties(&self, density: f64) -> Option<MassProperties> {
        self.0.unit_mass.map(|m| m.scaled(density))
    }

    /// Are these the same compiled shape?
    pub fn same(&self, other: &ShapeHandle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Measures and coordinates of shapes (m): products of three of them keep their digits.
const LARGEST: f64 = 1e9;
/// The same for measures, which must be above zero.
const SMALLEST: f64 = 1e-9;

/// Is this point finite, and not further out than [`LARGEST`]?
fn is_near(point: &DVec3) -> bool {
    point.abs().max_element() <= LARGEST && point.is_finite()
}

fn positive(shape: &'static str, what: &'static str, value: f64) -> Result<(), ShapeError> {
    if (SMALLEST..=LARGEST).contains(&value) {
        Ok(())
    } else {
        Err(ShapeError::Measure { shape, what, value })
    }
}

fn malformed(shape: &'static str, what: impl Into<String>) -> ShapeError {
    ShapeError::Malformed { shape, what: what.into() }
}

fn compile(shape: &Shape) -> Result<SharedShape, ShapeError> {
    match shape {
        Shape::Sphere { radius } => {
            positive("sphere", "radius", *radius)?;
            Ok(SharedShape::ball(*radius))
        }
        Shape::Box { half_extents: e } => {
            for value in e.to_array() {
                positive("box", "half extent", value)?;
            }
            Ok(SharedShape::cuboid(e.x, e.y, e.z))
        }
        Shape::Capsule { half_length, radius } => {
            positive("capsule", "half length", *half_length)?;
            positive("capsule", "radius", *radius)?;
            Ok(SharedShape::capsule_y(*half_length, *radius))
        }
        Shape::Cylinder { half_length, radius } => {
            positive("cylinder", "half length", *half_length)?;
            positive("cylinder", "radius", *radius)?;
            Ok(SharedShape::cylinder(*half_length, *radius))
        }
        Shape::Cone { half_height, radius } => {
            positive("cone", "half height", *half_height)?;
            positive("cone", "radius", *radius)?;
            Ok(SharedShape::cone(*half_height, *radius))
        }
        Shape::ConvexHull { points } => compile_hull(points),
        Shape::HalfSpace { normal } => match normal.try_normalize() {
            Some(n) => Ok(SharedShape::halfspace(n)),
            None => Err(malformed("half-space", format!("normal {normal} has no direction"))),
        },
        Shape::TriMesh { vertices, indices } => compile_mesh(vertices, indices),
        Shape::HeightField { size, heights, scale } => compile_heights(*size, heights, *scale),
        Shape::Compound { parts } => compile_compound(parts),
    }
}

fn compile_hull(points: &[DVec3]) -> Result<SharedShape, ShapeError> {
    if !points.iter().all(is_near) {
        return Err(malformed("convex hull", "a point is not finite, or further out than 1e9 m"));
    }
    let flat = ShapeError::FlatHull { points: points.len() };
    if !spans_volume(points) {
        return Err(flat);
    }
    SharedShape::convex_hull(points).ok_or(flat)
}

/// Do four of the points span a tetrahedron that is not negligible against the hull's size?
fn spans_volume(points: &[DVec3]) -> bool {
    let Some(&a) = points.first() else { return false };
    let far = |f: &dyn Fn(DVec3) -> f64| points.iter().copied().max_by(|p, q| f(*p).total_cmp(&f(*q)));
    let Some(b) = far(&|p| p.distance_squared(a)) else { return false };
    let size = b.distance(a);
    let Some(c) = far(&|p| (b - a).cross(p - a).length_squared()) else { return false };
    let normal = (b - a).cross(c - a);
    let Some(d) = far(&|p| normal.dot(p - a).abs()) else { return false };
    // 1e-6 of the cube of the size: thinner hulls make the hull builder and the inertia degenerate.
    size >= SMALLEST && normal.dot(d - a).abs() > 1e-6 * math::cube(size)
}

fn compile_mesh(vertices: &[DVec3], indices: &[[u32; 3]]) -> Result<SharedShape, ShapeError> {
    if !vertices.iter().all(is_near) {
        return Err(malformed("triangle mesh", "a vertex is not finite, or further out than 1e9 m"));
    }
    if indices.is_empty() {
        return Err(malformed("triangle mesh", "there is no triangle"));
    }
    if let Some(t) = indices.iter().flatten().find(|&&i| i as usize >= vertices.len()) {
        return Err(malformed(
            "triangle mesh",
            format!("vertex {t} is named, but there are {}", vertices.len()),
        ));
    }
    let mut indices = indices.to_vec();
    if is_inside_out(vertices, &indices) {
        indices.iter_mut().for_each(|t| t.swap(1, 2));
    }
    // Inner edges of a flat patch must not catch what slides over them.
    SharedShape::trimesh_with_flags(vertices.to_vec(), indices, TriMeshFlags::FIX_INTERNAL_EDGES)
        .map_err(|e| malformed("triangle mesh", e.to_string()))
}

/// Is the mesh closed, with all its triangles seen clockwise from outside? Such a mesh means its mirror image.
fn is_inside_out(vertices: &[DVec3], indices: &[[u32; 3]]) -> bool {
    let mut edges = std::collections::BTreeSet::new();
    for t in indices {
        for (a, b) in [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])] {
            edges.insert((a, b));
        }
    }
    if !edges.iter().all(|&(a, b)| edges.contains(&(b, a))) {
        return false;
    }
    let at = |i: u32| vertices[i as usize] - vertices[0];
    indices.iter().map(|t| at(t[0]).dot(at(t[1]).cross(at(t[2])))).sum::<f64>() < 0.0
}

fn compile_heights(size: [usize; 2], heights: &[f64], scale: DVec3) -> Result<SharedShape, ShapeError> {
    let [rows, columns] = size;
    if rows < 2 || columns < 2 || rows.checked_mul(columns) != Some(heights.len()) {
        let what = format!(
            "{rows} × {columns} samples asked for, {} heights given; each side needs 2",
            heights.len()
        );
        return Err(malformed("height field", what));
    }
    for value in scale.to_array() {
        positive("height field", "scale", value)?;
    }
    if !heights.iter().all(|h| (h * scale.y).abs() <= LARGEST) {
        return Err(malformed("height field", "a height is not finite, or above 1e9 m"));
    }
    let mut array = parry3d_f64::utils::Array2::repeat(rows, columns, 0.0);
    for r in 0..rows {
        for c in 0..columns {
            array[(r, c)] = heights[r * columns + c];
        }
    }
    let field = HeightField::with_flags(array, scale, HeightFieldFlags::FIX_INTERNAL_EDGES);
    Ok(SharedShape::new(field))
}

fn compile_compound(parts: &[(DVec3, DQuat, Shape)]) -> Result<SharedShape, ShapeError> {
    if parts.is_empty() {
        return Err(malformed("compound", "there is no part"));
    }
    let mut compiled = Vec::with_capacity(parts.len());
    for (position, rotation, shape) in parts {
        if matches!(
            shape,
            Shape::Compound { .. }
                | Shape::TriMesh { .. }
                | Shape::HeightField { .. }
                | Shape::HalfSpace { .. }
        ) {
            return Err(malformed(
                "compound",
                "parts must be convex; put the rest on colliders of their own",
            ));
        }
        if !(is_near(position) && (rotation.length_squared() - 1.0).abs() < 1e-2) {
            return Err(malformed(
                "compound",
                "a part's position is not finite, or its rotation not of length 1",
            ));
        }
        compiled.push((Pose::from_parts(*position, *rotation), compile(shape)?));
    }
    Ok(SharedShape::compound(compiled))
}

impl ShapeHandle {
    /// Half of the smallest edge of the shape's own box (m): how thin it is. Infinite for half-spaces.
    pub fn thickness(&self) -> f64 {
        match self.shape() {
            Shape::HalfSpace { .. } => f64::INFINITY,
            _ => self.parry().compute_local_aabb().half_extents().min_element(),
        }
    }

    /// The largest distance of a point of the shape from `center` in its frame, by its box (m).
    pub fn reach_from(&self, center: DVec3) -> f64 {
        match self.shape() {
            Shape::HalfSpace { .. } => f64::INFINITY,
            _ => {
                let aabb = self.parry().compute_local_aabb();
                (aabb.center() - center).abs().length() + aabb.half_extents().length()
            }
        }
    }
}
