//! The same bits with contacts, sleeping and despawns, for any number of threads; and after save and restore in a pile.

mod contact_support;

use contact_support::*;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::constraint::{BodyView, Constraint, Row, RowWriter, Twist};
use turnbuckle::geometry::{Shape, ShapeHandle};
use turnbuckle::testing::state_hash;

const H: f64 = 1.0 / 60.0;

/// Keeps two centres of mass at a distance.
struct Rod {
    a: Entity,
    b: Entity,
    length: f64,
}

impl Constraint for Rod {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let span = b.position - a.position;
        let n = span.normalize_or(DVec3::Z);
        let violation = span.length() - self.length;
        out.push(Row { jacobian: [Twist::linear(-n), Twist::linear(n)], violation, ..Row::default() });
    }
}

fn engine() -> Physics {
    let mut physics = Physics::new();
    physics.add_constraint::<Rod>();
    physics
}

/// A bin into which boxes, balls, capsules, cylinders, cones and hulls fall, some of them tied in pairs.
fn bin(world: &mut World, count: u32) -> Vec<Entity> {
    floor(world, 0.6);
    for (x, y) in [(1.5, 0.0), (-1.5, 0.0), (0.0, 1.5), (0.0, -1.5)] {
        let wall = ShapeHandle::cuboid(DVec3::new(
            if x == 0.0 { 1.5 } else { 0.1 },
            if y == 0.0 { 1.5 } else { 0.1 },
            2.0,
        ));
        spawn_fixed(world, &wall, 0.6, DVec3::new(x, y, 2.0), DQuat::IDENTITY);
    }
    let corners =
        (0..8).map(|i| DVec3::new((i & 1) as f64, (i >> 1 & 1) as f64, (i >> 2 & 1) as f64) * 0.3 - 0.15);
    let corners = corners.enumerate().map(|(i, c)| c * (1.0 + 0.05 * i as f64)).collect();
    let shapes = [
        Shape::Box { half_extents: DVec3::new(0.15, 0.2, 0.1) },
        Shape::Sphere { radius: 0.15 },
        Shape::Capsule { half_length: 0.12, radius: 0.1 },
        Shape::Cylinder { half_length: 0.15, radius: 0.12 },
        Shape::Cone { half_height: 0.18, radius: 0.15 },
        Shape::ConvexHull { points: corners },
    ]
    .map(|s| ShapeHandle::new(s).expect("a valid shape"));
    let mut bodies: Vec<Entity> = Vec::new();
    for i in 0..count {
        let (column, layer) = (i % 25, i / 25);
        let at = DVec3::new(
            0.5 * f64::from(column % 5) - 1.0 + 0.01 * f64::from(i % 7),
            0.5 * f64::from(column / 5) - 1.0 + 0.01 * f64::from(i % 3),
            0.3 + 0.5 * f64::from(layer),
        );
        let body = spawn(world, &shapes[(i % 6) as usize], 1000.0, 0.6, at);
        world.get::<&mut Rotation>(body).expect("a body").0 = DQuat::from_rotation_x(0.3 * f64::from(i));
        if i % 10 == 9 {
            let last = bodies[bodies.len() - 1];
            let joint = Rod { a: last, b: body, length: (x(world, last) - x(world, body)).length() };
            world.spawn((joint,));
        }
        bodies.push(body);
    }
    bodies
}

fn run(physics: &mut Physics, world: &mut World, steps: u32) -> Vec<u64> {
    (0..steps)
        .map(|_| {
            physics.step(world, H);
            state_hash(world)
        })
        .collect()
}

const BODIES: u32 = 75;
const STEPS: u32 = 360;

fn hashes(threads: usize, steps: u32) -> (Vec<u64>, usize) {
    let (mut world, mut physics) = (World::new(), engine());
    physics.set_threads(threads);
    let bodies = bin(&mut world, BODIES);
    let mut asleep = 0;
    let hashes = (0..steps)
        .map(|step| {
            if step % 60 == 50 {
                let _ = world.despawn(bodies[(step as usize * 7) % bodies.len()]);
            }
            physics.step(&mut world, H);
            asleep = asleep.max(world.query_mut::<&Rest>().into_iter().filter(|r| r.asleep).count());
            state_hash(&world)
        })
        .collect();
    (hashes, asleep)
}

#[test]
fn threads_agree_with_contacts_sleeping_and_despawns() {
    let (one, asleep) = hashes(1, STEPS);
    println!("at most {asleep} of {BODIES} slept");
    for threads in [2, 5] {
        let (many, _) = hashes(threads, STEPS);
        for (step, (a, b)) in one.iter().zip(&many).enumerate() {
            assert_eq!(a, b, "{threads} threads differ from 1 at step {step}");
        }
    }
}

/// A stack that sleeps while a ball is on its way: saved asleep, restored asleep, woken by the same blow to the bit.
#[test]
fn a_snapshot_of_sleepers_restores_to_the_bit() {
    let (mut world, mut physics) = (World::new(), engine());
    floor(&mut world, 0.6);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.25));
    for i in 0..6 {
        let at = DVec3::new(0.55 * f64::from(i % 2), 0.0, 0.25 + 0.5 * f64::from(i / 2));
        spawn(&mut world, &cube, 500.0, 0.6, at);
    }
    spawn(&mut world, &ShapeHandle::sphere(0.3), 2000.0, 0.6, DVec3::new(0.2, 0.05, 14.0));
    run(&mut physics, &mut world, 70);
    let asleep = |world: &mut World| world.query_mut::<&Rest>().into_iter().filter(|r| r.asleep).count();
    assert_eq!(asleep(&mut world), 6, "the stack sleeps");
    let saved = physics.snapshot(&world);
    let stayed = run(&mut physics, &mut world, 60);
    assert!(asleep(&mut world) < 6, "the ball woke the stack");
    for threads in [1, 2, 5] {
        let mut other = engine();
        other.set_threads(threads);
        other.restore(&mut world, &saved).expect("a good snapshot");
        assert_eq!(asleep(&mut world), 6, "it sleeps again");
        assert_eq!(stayed, run(&mut other, &mut world, 60), "{threads} threads");
    }
}

#[test]
fn a_snapshot_in_mid_pile_restores_to_the_bit() {
    let (mut world, mut physics) = (World::new(), engine());
    bin(&mut world, 30);
    for steps in [40, 60] {
        run(&mut physics, &mut world, steps);
        let saved = physics.snapshot(&world);
        let stayed = run(&mut physics, &mut world, 30);
        physics.restore(&mut world, &saved).expect("a good snapshot");
        assert_eq!(stayed, run(&mut physics, &mut world, 30), "after {steps}");
        let mut other = engine();
        other.restore(&mut world, &saved).expect("a good snapshot");
        other.set_threads(3);
        assert_eq!(stayed, run(&mut other, &mut world, 30), "another engine, after {steps}");
        physics.restore(&mut world, &saved).expect("a good snapshot");
    }
}
