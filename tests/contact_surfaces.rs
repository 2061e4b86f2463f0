//! Surfaces in motion: torsion and rolling resistance against closed forms, meshes without bumps, impulses that persist.

mod contact_support;

use contact_support::*;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::geometry::{Shape, ShapeHandle};

const H: f64 = 1.0 / 60.0;
const G: f64 = 9.81;

/// A ball of 0.2 m on the floor with a material of its own.
fn ball(world: &mut World, material: Material) -> (Entity, f64, f64) {
    let (radius, shape) = (0.2, ShapeHandle::sphere(0.2));
    floor(world, material.friction);
    let body = spawn(world, &shape, 1000.0, material.friction, DVec3::Z * radius);
    world.get::<&mut Colliders>(body).expect("a body").0[0].material = material;
    let mass = shape.mass_properties(1000.0).expect("a ball");
    (body, mass.mass, mass.inertia.x_axis.x)
}

/// A ball spinning about the normal: torque μ N r, so ω falls by μ m g r / I a second.
#[test]
fn torsional_friction_brakes_a_spin_as_the_closed_form_says() {
    let material = Material { friction: 0.5, torsion_radius: 0.02, ..Material::default() };
    let (mut world, mut physics) = (World::new(), awake());
    let (body, mass, inertia) = ball(&mut world, material);
    for _ in 0..5 {
        physics.step(&mut world, H);
    }
    let (start, rate) = (20.0, 0.5 * mass * G * 0.02 / inertia);
    world.get::<&mut AngularVelocity>(body).expect("a body").0 = DVec3::Z * start;
    let half = (0.5 * start / rate / H).round();
    for _ in 0..half as usize {
        physics.step(&mut world, H);
    }
    let expected = start - rate * half * H;
    println!("spin {} rad/s, closed form {expected}", w(&world, body).z);
    // The bound is μ r λₙ of a ball at rest, exact but for the compliance of 1e-6.
    assert!((w(&world, body).z / expected - 1.0).abs() < 1e-3);
    for _ in 0..(1.1 * half) as usize {
        physics.step(&mut world, H);
    }
    assert!(w(&world, body).length() < 1e-6 && v(&world, body).length() < 1e-6, "it stands");
}

/// A ball that rolls: torque ρ N against rolling, so v falls by ρ g / (R (1 + I / m R²)) a second.
#[test]
fn rolling_resistance_stops_a_ball_after_the_distance_of_the_closed_form() {
    let material = Material { friction: 0.8, rolling_radius: 2e-3, ..Material::default() };
    let (mut world, mut physics) = (World::new(), awake());
    let (body, ..) = ball(&mut world, material);
    for _ in 0..5 {
        physics.step(&mut world, H);
    }
    let (speed, start) = (0.5, x(&world, body).x);
    world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::X * speed;
    world.get::<&mut AngularVelocity>(body).expect("a body").0 = DVec3::Y * speed / 0.2;
    for _ in 0..900 {
        physics.step(&mut world, H);
    }
    let exact = speed * speed * 0.2 * 1.4 / (2.0 * 2e-3 * G);
    let way = x(&world, body).x - start;
    println!("rolls {way} m, closed form {exact}: {:.3} %", 100.0 * (way / exact - 1.0));
    // Braking begins and ends within a step: v h / 2 of either end, 0.5 % of the way.
    assert!((way / exact - 1.0).abs() < 5e-3);
    assert!(v(&world, body).length() < 1e-6);
}

/// A flat grid of triangles, 4 m × 4 m around the origin.
fn grid(cells: u32) -> Shape {
    let side = cells + 1;
    let place = |i: u32| 4.0 * f64::from(i) / f64::from(cells) - 2.0;
    let vertices = (0..side * side).map(|i| DVec3::new(place(i % side), place(i / side), 0.0)).collect();
    let corners = (0..cells * cells).map(|c| c / cells * side + c % cells);
    let indices = corners.flat_map(|i| [[i, i + 1, i + side + 1], [i, i + side + 1, i + side]]).collect();
    Shape::TriMesh { vertices, indices }
}

/// Flat grounds of many triangles, as they lie in the world.
fn flat_grounds() -> [(ShapeHandle, DQuat); 2] {
    let field =
        Shape::HeightField { size: [21, 21], heights: vec![0.0; 441], scale: DVec3::new(4.0, 1.0, 4.0) };
    [
        (ShapeHandle::new(grid(20)).expect("a mesh"), DQuat::IDENTITY),
        (ShapeHandle::new(field).expect("a field"), DQuat::from_rotation_x(std::f64::consts::FRAC_PI_2)),
    ]
}

/// Boxes, balls, capsules, cylinders and hulls that cross dozens of inner edges rise and sink by nothing.
#[test]
fn flat_meshes_have_no_bumps() {
    let hull = (0..8u32).map(|i| {
        let sign = |bit: u32| if i >> bit & 1 == 0 { -1.0 } else { 1.0 };
        DVec3::new(0.15 * sign(0), 0.1 * sign(1), 0.12 * sign(2))
    });
    let shapes = [
        (Shape::Box { half_extents: DVec3::new(0.15, 0.1, 0.12) }, 0.12),
        (Shape::Sphere { radius: 0.12 }, 0.12),
        (Shape::Capsule { half_length: 0.1, radius: 0.12 }, 0.12),
        (Shape::ConvexHull { points: hull.collect() }, 0.12),
        (Shape::Cylinder { half_length: 0.12, radius: 0.1 }, 0.1),
    ];
    for (number, (ground, turn)) in flat_grounds().into_iter().enumerate() {
        for (shape, height) in &shapes {
            for friction in [0.0, 0.3] {
                let handle = ShapeHandle::new(shape.clone()).expect("a shape");
                let (mut world, mut physics) = (World::new(), awake());
                spawn_fixed(&mut world, &ground, friction, DVec3::ZERO, turn);
                let start = DVec3::new(-1.5, -0.83, *height);
                let body = spawn(&mut world, &handle, 1000.0, friction, start);
                for _ in 0..5 {
                    physics.step(&mut world, H);
                }
                world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::new(2.0, 1.1, 0.0);
                let (mut rise, mut most) = (0.0f64, 0.0f64);
                for _ in 0..75 {
                    physics.step(&mut world, H);
                    most = most.max(v(&world, body).z.abs());
                    rise = rise.max((x(&world, body).z - height).abs());
                }
                // Micrometres: rounding of the clipped corners and the 27 nm of compliance, no bump.
                assert!(
                    rise < 1e-6 && most < 1e-5,
                    "ground {number}, {shape:?}, μ {friction}: rises {rise} m, {most} m/s"
                );
            }
        }
    }
}

/// Solid meshes lie on every kind of ground and on each other.
#[test]
fn a_mesh_rests_on_meshes_fields_planes_and_boxes() {
    let corner = |i: u32| {
        let sign = |bit: u32| if i >> bit & 1 == 0 { -0.25 } else { 0.25 };
        DVec3::new(sign(0), sign(1), sign(2))
    };
    let faces = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let indices = faces.iter().flat_map(|f| [[f[0], f[1], f[2]], [f[0], f[2], f[3]]]).collect();
    let cube =
        ShapeHandle::new(Shape::TriMesh { vertices: (0..8).map(corner).collect(), indices }).expect("a mesh");
    let [mesh, field] = flat_grounds();
    let plane = ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).expect("a plane");
    let inertia = 125.0 * 0.25 / 6.0;
    for far in [DVec3::ZERO, DVec3::new(1e6, -1e6, 1e6)] {
        let slab = ShapeHandle::cuboid(DVec3::new(5.0, 5.0, 0.5));
        let grounds = [
            (mesh.clone(), far),
            (field.clone(), far),
            ((plane.clone(), DQuat::IDENTITY), far),
            ((slab, DQuat::IDENTITY), far - 0.5 * DVec3::Z),
        ];
        for (number, ((ground, turn), at)) in grounds.into_iter().enumerate() {
            let (mut world, mut physics) = (World::new(), awake());
            spawn_fixed(&mut world, &ground, 0.6, at, turn);
            let bodies: Vec<Entity> = (0..2)
                .map(|i| {
                    let place = far + DVec3::new(0.03 * f64::from(i), 0.02, 0.26 + 0.51 * f64::from(i));
                    let body = world.spawn(
                        RigidBody::dynamic(125.0, glam::DMat3::from_diagonal(DVec3::splat(inertia)))
                            .at(place),
                    );
                    let _ = world.insert_one(body, colliders(&cube, material(0.6)));
                    body
                })
                .collect();
            for _ in 0..150 {
                physics.step(&mut world, H);
            }
            for (i, body) in bodies.iter().enumerate() {
                let z = (x(&world, *body) - far).z;
                // A millionth of a millimetre of rounding at 10⁶ m is 1e-10; 0.1 mm is the bar of a standing stack.
                let expected = 0.25 + 0.5 * i as f64;
                assert!((z - expected).abs() < 1e-4, "cube {i} on ground {number} at {far}: {z}");
                assert!(
                    v(&world, *body).length() < 1e-4,
                    "cube {i} on ground {number}: {}",
                    v(&world, *body)
                );
            }
        }
    }
}

/// What a contact pushes with in a step (N·s).
fn push(world: &mut World) -> f64 {
    let impulses = world.query_mut::<(&Contact, &RowImpulses)>();
    let normal = |r: &&RowImpulse| r.key.is_multiple_of(8);
    impulses.into_iter().map(|(_, i)| i.0.iter().filter(normal).map(|r| r.lambda).sum::<f64>()).sum()
}

/// A cylinder that rolls keeps its contact, its points and their impulses, on a plane and over the edges of a mesh.
#[test]
fn impulses_persist_while_a_cylinder_rolls() {
    let drum = ShapeHandle::new(Shape::Cylinder { half_length: 0.3, radius: 0.15 }).expect("a drum");
    let mass = drum.mass_properties(1000.0).expect("a drum").mass;
    let plane = ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).expect("a plane");
    for (number, (ground, turn)) in [(plane, DQuat::IDENTITY)].into_iter().chain(flat_grounds()).enumerate() {
        let (mut world, mut physics) = (World::new(), awake());
        spawn_fixed(&mut world, &ground, 0.6, DVec3::ZERO, turn);
        // Cylinders lie along y in their own frame.
        let body = spawn(&mut world, &drum, 1000.0, 0.6, DVec3::new(-1.2, 0.04, 0.15));
        world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::X * 1.5;
        world.get::<&mut AngularVelocity>(body).expect("a body").0 = DVec3::Y * 10.0;
        for step in 0..90 {
            physics.step(&mut world, H);
            if step < 5 {
                continue;
            }
            let (carried, weight) = (push(&mut world), mass * G * H);
            // One per mille of the weight: what changing points may hand over late.
            assert!(
                (carried / weight - 1.0).abs() < 1e-3,
                "step {step}, ground {number}: {carried} of {weight}"
            );
            let oldest =
                world.query_mut::<&Manifold>().into_iter().flat_map(|m| &m.points).map(|p| p.age).max();
            assert!(oldest >= Some(step.min(4)), "step {step}, ground {number}: points are new again");
        }
        assert!(
            (v(&world, body).x - 1.5).abs() < 1e-3,
            "ground {number} brakes the drum: {}",
            v(&world, body)
        );
    }
}

/// Contacts end when bodies part.
#[test]
fn a_pair_that_parts_has_no_contact() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    floor(&mut world, 0.5);
    let body = spawn(&mut world, &ShapeHandle::sphere(0.2), 1000.0, 0.5, DVec3::Z * 0.2);
    physics.step(&mut world, H);
    assert_eq!(world.query_mut::<&Contact>().into_iter().count(), 1);
    world.get::<&mut LinearVelocity>(body).expect("a body").0 = DVec3::Z * 5.0;
    for _ in 0..5 {
        physics.step(&mut world, H);
    }
    assert_eq!(world.query_mut::<&Contact>().into_iter().count(), 0);
}
