//! Every kind of convex shape, with its support function written out by hand.

use glam::{DQuat, DVec3};
use turnbuckle::geometry::{Shape, ShapeHandle};

/// Surfaces closer to a supporting plane than this lie in it (shapes of half a metre).
const IN_PLANE: f64 = 1e-9;

/// What is furthest along a direction.
enum Outline {
    /// The hull of these points, with a radius around it.
    Points(Vec<DVec3>, f64),
    /// The hull of circles about y: height and radius.
    Circles(Vec<(f64, f64)>),
}

/// A shape, its outline, and directions that say something: those of faces come first.
pub struct Kind {
    pub name: &'static str,
    pub shape: ShapeHandle,
    outline: Outline,
    /// Convex parts.
    pub parts: usize,
    pub faces: Vec<DVec3>,
    pub others: Vec<DVec3>,
}

impl Kind {
    /// How far the shape reaches along a direction, and the middle of what lies there.
    pub fn support(&self, n: DVec3) -> (f64, DVec3) {
        let middle = |points: &[DVec3]| {
            let most = points.iter().map(|p| p.dot(n)).fold(f64::NEG_INFINITY, f64::max);
            let there: Vec<_> = points.iter().filter(|p| p.dot(n) > most - IN_PLANE).collect();
            (most, there.iter().fold(DVec3::ZERO, |s, p| s + **p) / there.len() as f64)
        };
        match &self.outline {
            Outline::Points(points, radius) => {
                let (most, p) = middle(points);
                (most + radius, p + n * *radius)
            }
            Outline::Circles(circles) => {
                let out = DVec3::new(n.x, 0.0, n.z);
                let out = if out.length() > IN_PLANE { out.normalize() } else { DVec3::ZERO };
                middle(&circles.iter().map(|(y, r)| DVec3::Y * *y + out * *r).collect::<Vec<_>>())
            }
        }
    }
}

fn kind(name: &'static str, shape: Shape, outline: Outline, faces: Vec<DVec3>, others: Vec<DVec3>) -> Kind {
    let shape = ShapeHandle::new(shape).expect("a valid shape");
    let unit = |list: Vec<DVec3>| list.into_iter().map(DVec3::normalize).collect();
    let parts = match shape.shape() {
        Shape::Compound { parts } => parts.len(),
        Shape::TriMesh { indices, .. } => indices.len(),
        _ => 1,
    };
    Kind { name, shape, outline, parts, faces: unit(faces), others: unit(others) }
}

pub fn corners(half: DVec3) -> Vec<DVec3> {
    let sign = |i: u32, bit: u32| if i >> bit & 1 == 0 { -1.0 } else { 1.0 };
    (0..8).map(|i| half * DVec3::new(sign(i, 0), sign(i, 1), sign(i, 2))).collect()
}

fn axes() -> Vec<DVec3> {
    vec![DVec3::X, DVec3::Y, DVec3::Z, -DVec3::X, -DVec3::Y, -DVec3::Z]
}

fn askew() -> Vec<DVec3> {
    [[1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [1.0, 1.0, 1.0], [-1.0, 0.3, 0.2], [0.2, 0.9, -0.5]]
        .map(DVec3::from)
        .to_vec()
}

/// A box of triangles, all seen from outside.
fn box_mesh(half: DVec3) -> Shape {
    let quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let indices = quads.iter().flat_map(|q| [[q[0], q[1], q[2]], [q[0], q[2], q[3]]]).collect();
    Shape::TriMesh { vertices: corners(half), indices }
}

/// A stone of an arch: a wedge between two radii.
pub fn voussoir(inner: f64, outer: f64, half_angle: f64, half_depth: f64) -> Vec<DVec3> {
    let mid = 0.5 * (inner + outer);
    let mut points = Vec::new();
    for r in [inner, outer] {
        for a in [-half_angle, half_angle] {
            for z in [-half_depth, half_depth] {
                points.push(DVec3::new(r * a.sin(), r * a.cos() - mid, z));
            }
        }
    }
    points
}

pub fn kinds() -> Vec<Kind> {
    let half = DVec3::new(0.3, 0.25, 0.2);
    let wedge = voussoir(0.9, 1.1, 0.1, 0.15);
    let tilt = DVec3::new(0.1f64.cos(), -(0.1f64.sin()), 0.0);
    let sides = vec![tilt, tilt * DVec3::new(-1.0, 1.0, 1.0), DVec3::Z, -DVec3::Z];
    let twins = [DVec3::new(0.15, 0.0, 0.0), DVec3::new(-0.15, 0.0, 0.0)];
    let part = Shape::Box { half_extents: DVec3::new(0.15, 0.1, 0.2) };
    let parts = twins.iter().map(|p| (*p, DQuat::IDENTITY, part.clone())).collect();
    let slope = DVec3::new(0.6, 0.3, 0.0);
    let turned = |angle: f64| DQuat::from_rotation_y(angle) * slope;
    use Outline::{Circles, Points};
    vec![
        kind("sphere", Shape::Sphere { radius: 0.3 }, Points(vec![DVec3::ZERO], 0.3), vec![], askew()),
        kind("box", Shape::Box { half_extents: half }, Points(corners(half), 0.0), axes(), askew()),
        kind(
            "capsule",
            Shape::Capsule { half_length: 0.25, radius: 0.2 },
            Points(vec![DVec3::Y * 0.25, DVec3::Y * -0.25], 0.2),
            vec![],
            [askew(), axes()].concat(),
        ),
        kind(
            "cylinder",
            Shape::Cylinder { half_length: 0.3, radius: 0.25 },
            Circles(vec![(0.3, 0.25), (-0.3, 0.25)]),
            vec![DVec3::Y, -DVec3::Y],
            [askew(), axes()].concat(),
        ),
        kind(
            "cone",
            Shape::Cone { half_height: 0.3, radius: 0.3 },
            Circles(vec![(0.3, 0.0), (-0.3, 0.3)]),
            vec![-DVec3::Y],
            [vec![slope, turned(1.0), turned(4.0), DVec3::Y, DVec3::X], askew()].concat(),
        ),
        kind(
            "wedge",
            Shape::ConvexHull { points: wedge.clone() },
            Points(wedge, 0.0),
            sides,
            [askew(), vec![DVec3::Y]].concat(),
        ),
        kind(
            "compound",
            Shape::Compound { parts },
            Points(corners(DVec3::new(0.3, 0.1, 0.2)), 0.0),
            axes(),
            // Where the seam ends in an edge, the parts have corners of their own.
            vec![],
        ),
        kind("mesh", box_mesh(half), Points(corners(half), 0.0), axes(), vec![]),
    ]
}
