//! Contacts as a game sees them: every shape on every other, sleeping, events, sensors, queries.

mod contact_support;

use contact_support::*;
use glam::{DQuat, DVec3};
use hecs::World;
use turnbuckle::components::*;
use turnbuckle::events::ContactEvent;
use turnbuckle::geometry::{Placed, Shape, ShapeHandle};
use turnbuckle::{Physics, Settings};

const H: f64 = 1.0 / 60.0;

fn shapes() -> Vec<ShapeHandle> {
    let hull = (0..14).map(|i| {
        let (a, z) = (f64::from(i) * 2.4, f64::from(i) / 6.5 - 1.0);
        DVec3::new(a.cos() * (1.1 - z * z).sqrt(), a.sin() * (1.1 - z * z).sqrt(), z) * 0.3
    });
    let ell = vec![
        (DVec3::new(0.15, 0.0, 0.0), DQuat::IDENTITY, Shape::Box { half_extents: DVec3::new(0.3, 0.1, 0.1) }),
        (
            DVec3::new(-0.15, 0.0, 0.2),
            DQuat::IDENTITY,
            Shape::Box { half_extents: DVec3::new(0.1, 0.1, 0.2) },
        ),
    ];
    [
        Shape::Sphere { radius: 0.3 },
        Shape::Box { half_extents: DVec3::new(0.3, 0.25, 0.2) },
        Shape::Capsule { half_length: 0.25, radius: 0.2 },
        Shape::Cylinder { half_length: 0.3, radius: 0.25 },
        Shape::Cone { half_height: 0.3, radius: 0.3 },
        Shape::ConvexHull { points: hull.collect() },
        Shape::Compound { parts: ell },
    ]
    .into_iter()
    .map(|s| ShapeHandle::new(s).expect("a valid shape"))
    .collect()
}

fn grounds() -> Vec<(ShapeHandle, DQuat)> {
    let flat = vec![
        DVec3::new(-5.0, -5.0, 0.0),
        DVec3::new(5.0, -5.0, 0.0),
        DVec3::new(5.0, 5.0, 0.0),
        DVec3::new(-5.0, 5.0, 0.0),
    ];
    let mesh = Shape::TriMesh { vertices: flat, indices: vec![[0, 1, 2], [0, 2, 3]] };
    let field =
        Shape::HeightField { size: [11, 11], heights: vec![0.0; 121], scale: DVec3::new(10.0, 1.0, 10.0) };
    let up = DQuat::from_rotation_x(std::f64::consts::FRAC_PI_2);
    vec![
        (ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).expect("valid"), DQuat::IDENTITY),
        (ShapeHandle::new(mesh).expect("valid"), DQuat::IDENTITY),
        (ShapeHandle::new(field).expect("valid"), up),
    ]
}

/// Every shape falls on every other, on every kind of ground, at the origin and a thousand kilometres from it: all numbers
/// stay finite, nothing falls through, nothing gains energy, and what moves at the end rolls slowly.
#[test]
fn every_shape_meets_every_other() {
    for far in [DVec3::ZERO, DVec3::new(1e6, -1e6, 1e6)] {
        for (ground, turn) in grounds() {
            let (mut world, mut physics) = (World::new(), awake());
            let all = shapes();
            spawn_fixed(&mut world, &ground, 0.6, far, turn);
            let mut bodies = Vec::new();
            // One ground for all pairs: each pair in a cell of its own.
            for (i, lower) in all.iter().enumerate() {
                for (j, upper) in all.iter().enumerate() {
                    let cell = far + DVec3::new(1.3 * i as f64 - 3.9, 1.3 * j as f64 - 3.9, 0.0);
                    bodies.push(spawn(&mut world, lower, 1000.0, 0.6, cell + DVec3::new(0.0, 0.0, 0.5)));
                    bodies.push(spawn(&mut world, upper, 1000.0, 0.6, cell + DVec3::new(0.05, 0.03, 1.3)));
                }
            }
            let mut energy = f64::INFINITY;
            for step in 0..120 {
                let report = physics.step(&mut world, H);
                let now = report.kinetic + report.potential;
                assert!(now.is_finite());
                // Recovery from penetration may lift; a thousandth of the 1e5 J of the fall is room for it.
                assert!(now < energy + 1e-3 * 1e5, "step {step}: {now} after {energy}");
                energy = energy.min(now);
            }
            for body in &bodies {
                let (at, q) = pose(&world, *body);
                assert!(at.is_finite() && q.is_finite() && v(&world, *body).is_finite());
                let inside = (at - far).abs().truncate().max_element() < 4.9;
                // What rolled over the rim of the mesh is on its way down.
                assert!(!inside || (at - far).z > 0.05, "a body fell through the ground: {}", at - far);
                assert!(!inside || v(&world, *body).length() < 5.0);
            }
        }
    }
}

#[test]
fn a_stack_falls_asleep_and_a_ball_wakes_it() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    floor(&mut world, 0.6);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    let stack: Vec<_> = (0..4)
        .map(|i| spawn(&mut world, &cube, 100.0, 0.6, DVec3::new(0.0, 0.0, 0.5 + f64::from(i))))
        .collect();
    let mut events = Vec::new();
    for _ in 0..60 {
        physics.step(&mut world, H);
        events.extend_from_slice(physics.events());
    }
    let asleep = |world: &World, b| world.get::<&Rest>(b).expect("a body").asleep;
    assert!(stack.iter().all(|b| asleep(&world, *b)));
    let slept: Vec<_> = events.iter().filter(|e| matches!(e, ContactEvent::FellAsleep(_))).collect();
    assert_eq!(slept.len(), 4);
    assert_eq!(physics.report().rows, 0);
    let before: Vec<_> = stack.iter().map(|b| pose(&world, *b)).collect();
    for _ in 0..60 {
        physics.step(&mut world, H);
    }
    assert_eq!(before, stack.iter().map(|b| pose(&world, *b)).collect::<Vec<_>>());
    let ball = spawn(&mut world, &ShapeHandle::sphere(0.3), 1000.0, 0.6, DVec3::new(-2.0, 0.0, 2.5));
    world.get::<&mut LinearVelocity>(ball).expect("a body").0 = DVec3::new(8.0, 0.0, 2.0);
    let mut woke = 0;
    for _ in 0..40 {
        physics.step(&mut world, H);
        woke += physics.events().iter().filter(|e| matches!(e, ContactEvent::WokeUp(_))).count();
    }
    assert_eq!(woke, 4);
    assert!((x(&world, stack[3]) - before[3].0).length() > 0.01);
    // taking the floor away wakes what sleeps on it
    for _ in 0..400 {
        physics.step(&mut world, H);
    }
    world
        .query_mut::<(hecs::Entity, &BodyKind)>()
        .into_iter()
        .filter(|k| *k.1 == BodyKind::Fixed)
        .map(|k| k.0)
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|e| world.despawn(e).expect("the floor"));
    let height = x(&world, stack[0]).z;
    for _ in 0..30 {
        physics.step(&mut world, H);
    }
    assert!(x(&world, stack[0]).z < height - 0.5);
}

#[test]
fn touching_hitting_and_sensing_are_told_once_and_in_order() {
    let settings = Settings { sleep: false, impulse_event_threshold: 100.0, ..Settings::default() };
    let (mut world, mut physics) = (World::new(), Physics::with_settings(settings));
    let ground = floor(&mut world, 0.6);
    let gate = spawn_fixed(
        &mut world,
        &ShapeHandle::cuboid(DVec3::new(2.0, 2.0, 0.2)),
        0.0,
        DVec3::Z * 2.0,
        DQuat::IDENTITY,
    );
    world.get::<&mut Colliders>(gate).expect("colliders").0[0].sensor = true;
    let cube = spawn(&mut world, &ShapeHandle::cuboid(DVec3::splat(0.3)), 1000.0, 0.6, DVec3::Z * 4.0);
    let mut told = Vec::new();
    for _ in 0..90 {
        physics.step(&mut world, H);
        told.extend_from_slice(physics.events());
    }
    let mut kinds: Vec<&str> = told
        .iter()
        .map(|e| match e {
            ContactEvent::Entered(p) => {
                assert_eq!((p.a, p.b), (gate, cube));
                "entered"
            }
            ContactEvent::Left(_) => "left",
            ContactEvent::Started(p) => {
                assert_eq!((p.a, p.b), (ground, cube));
                "started"
            }
            ContactEvent::Hit { impulse, .. } => {
                assert!(*impulse > 100.0);
                "hit"
            }
            _ => "other",
        })
        .collect();
    // A fast landing takes two steps, down to the surface and to rest on it, and both are hits.
    kinds.dedup();
    assert_eq!(kinds, ["entered", "left", "started", "hit"], "{told:?}");
    world.despawn(cube).expect("the cube");
    physics.step(&mut world, H);
    assert!(matches!(physics.events(), [ContactEvent::Stopped(_)]));
}

#[test]
fn rays_points_and_shapes_find_what_is_there() {
    let (mut world, mut physics) = (World::new(), awake());
    floor(&mut world, 0.6);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    let row: Vec<_> = (0..3)
        .map(|i| {
            spawn_fixed(&mut world, &cube, 0.5, DVec3::new(2.0 * f64::from(i), 0.0, 0.5), DQuat::IDENTITY)
        })
        .collect();
    physics.step(&mut world, H);
    let every = CollisionFilter::default();
    let hits = physics.cast_ray_all(&world, DVec3::new(-3.0, 0.1, 0.5), DVec3::X * 2.0, 20.0, every);
    assert_eq!(hits.iter().map(|h| h.body).collect::<Vec<_>>(), row);
    for (i, hit) in hits.iter().enumerate() {
        assert!((hit.distance - (2.5 + 2.0 * i as f64)).abs() < 1e-12);
        assert_eq!(hit.normal, -DVec3::X);
    }
    let down =
        physics.cast_ray(&world, DVec3::new(1.0, 0.0, 3.0), -DVec3::Z, 10.0, every).expect("the floor");
    assert!((down.distance - 3.0).abs() < 1e-12);
    let near = physics.near_point(&world, DVec3::new(1.0, 0.0, 0.8), 0.6, every);
    assert_eq!(near.iter().map(|h| h.body).collect::<Vec<_>>(), row[..2]);
    let ball = ShapeHandle::sphere(0.2);
    let placed = Placed { shape: &ball, position: DVec3::new(-2.0, 0.0, 0.5), rotation: DQuat::IDENTITY };
    let swept = physics.cast_shape(&world, &placed, DVec3::X * 3.0, every);
    assert_eq!(swept.len(), 1);
    assert!((swept[0].distance - 1.3).abs() < 1e-4);
    let inside = Placed { position: DVec3::new(0.6, 0.0, 0.5), ..placed };
    assert_eq!(
        physics.overlapping(&world, &inside, every).iter().map(|h| h.body).collect::<Vec<_>>(),
        row[..1]
    );
    assert!(physics.overlapping(&world, &inside, CollisionFilter { groups: 2, mask: 2 }).is_empty());
}

/// A conveyor of masks: groups, the joint-free filter hook.
#[test]
fn filters_keep_pairs_apart() {
    let (mut world, mut physics) = (World::new(), awake());
    floor(&mut world, 0.6);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    let ghost = spawn(&mut world, &cube, 100.0, 0.6, DVec3::new(0.0, 0.0, 1.0));
    let solid = spawn(&mut world, &cube, 100.0, 0.6, DVec3::new(3.0, 0.0, 1.0));
    let masked = spawn(&mut world, &cube, 100.0, 0.6, DVec3::new(6.0, 0.0, 1.0));
    world.get::<&mut Colliders>(masked).expect("colliders").0[0].filter.mask = 2;
    physics.set_contact_filter(move |a, b| a != ghost && b != ghost);
    for _ in 0..120 {
        physics.step(&mut world, H);
    }
    assert!(x(&world, ghost).z < -1.0 && x(&world, masked).z < -1.0);
    assert!((x(&world, solid).z - 0.5).abs() < 1e-6);
}
