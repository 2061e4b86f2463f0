use super::*;
use crate::geometry::Shape;

fn handle(shape: Shape) -> ShapeHandle {
    ShapeHandle::new(shape).expect("a valid shape")
}

fn at(shape: &ShapeHandle, position: DVec3) -> Placed<'_> {
    Placed { shape, position, rotation: DQuat::IDENTITY }
}

fn turned(shape: &ShapeHandle, position: DVec3, rotation: DQuat) -> Placed<'_> {
    Placed { shape, position, rotation }
}

fn touch(a: &Placed, b: &Placed, reach: f64) -> Vec<ContactPoint> {
    let mut out = Vec::new();
    collide(a, b, reach, &mut NarrowScratch::default(), &mut out);
    out
}

fn grid_mesh(n: u32, size: f64) -> ShapeHandle {
    let step = size / n as f64;
    let mut vertices = Vec::new();
    for i in 0..=n {
        for j in 0..=n {
            vertices.push(DVec3::new(i as f64 * step - 0.5 * size, j as f64 * step - 0.5 * size, 0.0));
        }
    }
    let mut indices = Vec::new();
    for i in 0..n {
        for j in 0..n {
            let v = i * (n + 1) + j;
            indices.push([v, v + n + 1, v + 1]);
            indices.push([v + 1, v + n + 1, v + n + 2]);
        }
    }
    handle(Shape::TriMesh { vertices, indices })
}

/// A cylinder (or cone, capsule) stands along y; this lays it so that y points up along z.
fn upright() -> DQuat {
    DQuat::from_rotation_x(std::f64::consts::FRAC_PI_2)
}

#[test]
fn aligned_boxes_touch_at_four_corners() {
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    for (dx, dz) in [(0.0, 1.0), (0.3, 0.9999), (0.0, 1.0001)] {
        let points = touch(&at(&cube, DVec3::ZERO), &at(&cube, DVec3::new(dx, 0.0, dz)), 0.01);
        assert_eq!(points.len(), 4, "{points:?}");
        for p in &points {
            assert_eq!(p.normal, DVec3::Z);
            // a few roundings of numbers of order one
            assert!((p.separation - (dz - 1.0)).abs() < 1e-14);
        }
    }
}

#[test]
fn a_box_on_a_grid_mesh_touches_at_its_four_corners() {
    let mesh = grid_mesh(20, 10.0);
    let cube = ShapeHandle::cuboid(DVec3::new(0.8, 0.7, 0.5));
    for angle in [0.0, 0.3, 1.0] {
        let b = turned(&cube, DVec3::new(0.123, 0.456, 0.4999), DQuat::from_rotation_z(angle));
        let points = touch(&at(&mesh, DVec3::ZERO), &b, 0.01);
        assert_eq!(points.len(), 4, "{points:?}");
        for p in &points {
            assert!((p.normal - DVec3::Z).length() < 1e-9);
            assert!((p.separation + 1e-4).abs() < 1e-9);
            let local = b.rotation.inverse() * (p.offset - b.position);
            assert!((local.x.abs() - 0.8).abs() < 1e-6 && (local.y.abs() - 0.7).abs() < 1e-6, "{local}");
        }
    }
}

#[test]
fn flat_meshes_and_height_fields_have_no_bumps() {
    let mesh = grid_mesh(20, 10.0);
    let field = handle(Shape::HeightField {
        size: [21, 21],
        heights: vec![0.0; 441],
        scale: DVec3::new(10.0, 1.0, 10.0),
    });
    let shapes = [
        ShapeHandle::sphere(0.3),
        ShapeHandle::cuboid(DVec3::new(0.3, 0.3, 0.3)),
        handle(Shape::Cylinder { half_length: 0.3, radius: 0.3 }),
        handle(Shape::Capsule { half_length: 0.3, radius: 0.3 }),
        handle(Shape::Cone { half_height: 0.3, radius: 0.3 }),
    ];
    for (ground, up, turn) in [
        (&mesh, DVec3::Z, DQuat::IDENTITY),
        (&field, DVec3::Z, DQuat::from_rotation_x(std::f64::consts::FRAC_PI_2)),
    ] {
        for shape in &shapes {
            let tall = if matches!(shape.shape(), Shape::Capsule { .. }) { 0.6 } else { 0.3 };
            for i in 0..50 {
                let x = -1.0 + 0.04 * i as f64;
                let place = DVec3::new(x, 0.37 * x, tall - 1e-4);
                let b = turned(shape, place, upright());
                let points = touch(&turned(ground, DVec3::ZERO, turn), &b, 0.005);
                assert!(!points.is_empty(), "{shape:?} at {x}");
                for p in &points {
                    assert!(p.normal.dot(up) > 1.0 - 1e-9, "{shape:?} at {x}: {p:?}");
                    assert!((p.separation + 1e-4).abs() < 1e-9, "{shape:?} at {x}: {p:?}");
                }
            }
        }
    }
}

#[test]
fn crossing_logs_touch_once_and_lying_logs_along_a_line() {
    let log = handle(Shape::Cylinder { half_length: 1.0, radius: 0.15 });
    let capsule = handle(Shape::Capsule { half_length: 1.0, radius: 0.15 });
    let across = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2);
    for shape in [&log, &capsule] {
        for gap in [-1e-4, 0.0, 1e-3] {
            let above = turned(shape, DVec3::new(0.2, 0.1, 0.3 + gap), across);
            let points = touch(&at(shape, DVec3::ZERO), &above, 0.01);
            assert_eq!(points.len(), 1, "{shape:?} {points:?}");
            assert!((points[0].separation - gap).abs() < 1e-12);
            assert!((points[0].normal - DVec3::Z).length() < 1e-9);
        }
        let beside = at(shape, DVec3::new(0.0, 0.5, 0.3));
        let points = touch(&at(shape, DVec3::ZERO), &beside, 0.01);
        assert_eq!(points.len(), 2, "{shape:?} {points:?}");
        let slab = ShapeHandle::cuboid(DVec3::new(5.0, 5.0, 0.5));
        let points = touch(&at(&slab, DVec3::ZERO), &at(shape, DVec3::new(0.3, 0.2, 0.65)), 0.01);
        assert_eq!(points.len(), 2, "{shape:?} {points:?}");
        assert!(((points[0].offset - points[1].offset).length() - 2.0).abs() < 1e-6);
    }
}

#[test]
fn a_standing_cylinder_keeps_its_points() {
    let drum = handle(Shape::Cylinder { half_length: 0.5, radius: 0.5 });
    let slab = ShapeHandle::cuboid(DVec3::new(5.0, 5.0, 0.5));
    let floor = handle(Shape::HalfSpace { normal: DVec3::Z });
    let mut last: Option<Vec<ContactPoint>> = None;
    for i in 0..20 {
        let jitter = 1e-10 * DVec3::new((i * 7 % 5) as f64, (i * 3 % 4) as f64, (i % 3) as f64);
        let lean = DQuat::from_scaled_axis(1e-10 * DVec3::new((i % 4) as f64 - 2.0, (i % 3) as f64, 0.0));
        let b = turned(&drum, DVec3::new(0.0, 0.0, 1.0 - 1e-9) + jitter, lean * upright());
        let points = touch(&at(&slab, DVec3::ZERO), &b, 0.01);
        assert_eq!(points.len(), 4, "{points:?}");
        let on_floor = touch(&at(&floor, DVec3::new(0.0, 0.0, 0.5)), &b, 0.01);
        assert_eq!(on_floor.len(), 4, "{on_floor:?}");
        if let Some(last) = &last {
            for (p, q) in points.iter().zip(last) {
                // moved no further than the jitter of the drum, doubled by the half-way rule
                assert!((p.offset - q.offset).length() < 1e-8, "{p:?} {q:?}");
            }
        }
        last = Some(points);
    }
}

#[test]
fn swapping_the_shapes_swaps_the_normal() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let (a, b) = (random.shape(1.0), random.shape(1.0));
        let (qa, qb) = (random.rotation(), random.rotation());
        let place = random.vector() * 0.9;
        let one = touch(&turned(&a, DVec3::ZERO, qa), &turned(&b, place, qb), 0.05);
        let two = touch(&turned(&b, place, qb), &turned(&a, DVec3::ZERO, qa), 0.05);
        assert_eq!(one.is_empty(), two.is_empty(), "{a:?} {b:?} {qa} {qb} {place}");
        let deepest =
            |points: &[ContactPoint]| points.iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
        if !one.is_empty() {
            // EPA stops at a tolerance of its own on curved shapes
            let (d, e) = (deepest(&one), deepest(&two));
            assert!((d - e).abs() < 2e-2, "{a:?} {b:?}: {d} {e}");
        }
    }
}

/// Depth is never under-reported by much: moving `b` out along the normal by the depth separates the pair.
#[test]
fn the_reported_depth_separates_the_pair() {
    let mut random = Random(11);
    for _ in 0..3000 {
        let (a, b) = (random.shape(1.0), random.shape(1.0));
        let (qa, qb) = (random.rotation(), random.rotation());
        let place = random.vector() * 0.9;
        if [&a, &b].iter().any(|s| matches!(s.shape(), Shape::Compound { .. })) {
            continue; // each part has a normal of its own
        }
        let points = touch(&turned(&a, DVec3::ZERO, qa), &turned(&b, place, qb), 0.0);
        let Some(p) = points.iter().min_by(|p, q| p.separation.total_cmp(&q.separation)) else { continue };
        let out = place + p.normal * (-p.separation + 1e-6);
        let again = touch(&turned(&a, DVec3::ZERO, qa), &turned(&b, out, qb), 0.0);
        let left = again.iter().map(|p| p.separation).fold(0.0, f64::min);
        // 2 %: EPA's tolerance on curved shapes and the 4 mrad of snapping, on shapes of about a metre
        assert!(left > -0.02, "{a:?} {b:?} {qa} {qb} {place}: {p:?} leaves {left}");
    }
}

#[test]
fn random_shapes_sizes_and_poses_give_finite_points() {
    // The soak of a million pairs is this test with TURNBUCKLE_FUZZ_PAIRS=1000000.
    let pairs = std::env::var("TURNBUCKLE_FUZZ_PAIRS").ok().and_then(|s| s.parse().ok()).unwrap_or(20_000);
    let mut random = Random(1);
    let mut scratch = NarrowScratch::default();
    let mut out = Vec::new();
    let mut touching = 0;
    for i in 0..pairs {
        let (sa, sb) = (random.size(), random.size());
        let (a, b) = (random.any_shape(sa), random.any_shape(sb));
        let far = if i % 3 == 0 { DVec3::new(1e6, -1e6, 1e6) } else { DVec3::ZERO };
        let apart = random.vector() * (sa + sb) * random.unit();
        let reach = sa.min(sb) * 0.2 * random.unit();
        let (pa, pb) = (turned(&a, far, random.rotation()), turned(&b, far + apart, random.rotation()));
        collide(&pa, &pb, reach, &mut scratch, &mut out);
        touching += usize::from(!out.is_empty());
        for p in &out {
            assert!(p.offset.is_finite() && p.separation.is_finite(), "pair {i}: {a:?} {b:?} {p:?}");
            assert!((p.normal.length() - 1.0).abs() < 1e-6, "pair {i}: {a:?} {b:?} {p:?}");
            assert!(p.separation <= reach);
            // Half-spaces have no end, but their partners have.
            assert!(p.offset.length() < 20.0 * (sa + sb), "pair {i}: {a:?} {b:?} {p:?}");
        }
    }
    assert!(touching * 10 > pairs, "only {touching} of {pairs} touch: the fuzz tests nothing");
}

#[test]
fn far_from_the_origin_the_points_are_the_same() {
    let far = DVec3::new(1e6, 2e6, -1e6);
    let (a, b) = (ShapeHandle::cuboid(DVec3::ONE), handle(Shape::Cylinder { half_length: 1.0, radius: 0.5 }));
    let here = touch(
        &at(&a, DVec3::ZERO),
        &turned(&b, DVec3::new(0.25, 0.5, 1.5), DQuat::from_rotation_z(0.5)),
        0.1,
    );
    let there =
        touch(&at(&a, far), &turned(&b, far + DVec3::new(0.25, 0.5, 1.5), DQuat::from_rotation_z(0.5)), 0.1);
    assert_eq!(here, there);
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    fn vector(&mut self) -> DVec3 {
        DVec3::new(self.signed(), self.signed(), self.signed())
    }

    /// Between 1 mm and 1 km, evenly by order of magnitude.
    fn size(&mut self) -> f64 {
        10f64.powf(-3.0 + 6.0 * self.unit())
    }

    fn rotation(&mut self) -> DQuat {
        if self.unit() < 0.2 {
            return DQuat::IDENTITY; // aligned shapes are the degenerate ones
        }
        DQuat::from_scaled_axis(self.vector() * std::f64::consts::PI)
    }

    /// Also the shapes without volume: half-spaces, meshes, height fields.
    fn any_shape(&mut self, size: f64) -> ShapeHandle {
        let shape = match self.next() % 10 {
            0 => Shape::HalfSpace { normal: self.vector().try_normalize().unwrap_or(DVec3::Z) },
            1 => self.mesh(size),
            2 => {
                let heights = (0..20).map(|_| 0.3 * self.signed()).collect();
                let scale = DVec3::new(size, size * self.unit(), size) * 1.5;
                Shape::HeightField { size: [4, 5], heights, scale }
            }
            _ => return self.shape(size),
        };
        ShapeHandle::new(shape).unwrap_or_else(|_| ShapeHandle::sphere(size))
    }

    /// A tetrahedron, a flat grid, or triangles at random, some of them without area.
    fn mesh(&mut self, size: f64) -> Shape {
        match self.next() % 3 {
            0 => {
                let vertices = (0..4).map(|_| self.vector() * size).collect();
                Shape::TriMesh { vertices, indices: vec![[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]] }
            }
            1 => {
                let corner = |i: u32| DVec3::new(f64::from(i % 3) - 1.0, f64::from(i / 3) - 1.0, 0.0) * size;
                let cells = [0, 1, 3, 4].map(|i| [[i, i + 1, i + 4], [i, i + 4, i + 3]]);
                Shape::TriMesh { vertices: (0..9).map(corner).collect(), indices: cells.concat() }
            }
            _ => {
                let vertices = (0..8).map(|_| self.vector() * size).collect();
                let mut pick = || (self.next() % 8) as u32;
                let indices = (0..6).map(|_| [pick(), pick(), pick()]).collect();
                Shape::TriMesh { vertices, indices }
            }
        }
    }

    fn shape(&mut self, size: f64) -> ShapeHandle {
        let mut measure = || size * (0.1 + 0.9 * self.unit());
        let (x, y, z) = (measure(), measure(), measure());
        let shape = match self.next() % 7 {
            0 => Shape::Sphere { radius: x },
            1 => Shape::Box { half_extents: DVec3::new(x, y, z) },
            2 => Shape::Capsule { half_length: x, radius: y },
            3 => Shape::Cylinder { half_length: x, radius: y },
            4 => Shape::Cone { half_height: x, radius: y },
            5 => {
                let points = (0..12).map(|_| self.vector() * DVec3::new(x, y, z)).collect();
                Shape::ConvexHull { points }
            }
            _ => {
                let part = Shape::Box { half_extents: DVec3::new(0.4 * x, 0.4 * y, 0.4 * z) };
                let side = DVec3::new(0.5 * x, 0.0, 0.0);
                Shape::Compound {
                    parts: vec![
                        (side, self.rotation(), part),
                        (-side, DQuat::IDENTITY, Shape::Sphere { radius: 0.3 * y }),
                    ],
                }
            }
        };
        ShapeHandle::new(shape).unwrap_or_else(|_| ShapeHandle::sphere(size))
    }
}
