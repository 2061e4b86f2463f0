//! Bodies without rotation: gravity, springs, ropes, joints with rigid bodies, contacts, snapshots.

use glam::DVec3;
use turnbuckle::prelude::*;
use turnbuckle::testing::state_hash;

const H: f64 = 1.0 / 60.0;

fn x(world: &World, body: Entity) -> DVec3 {
    world.get::<&Position>(body).unwrap().0
}

fn run(world: &mut World, physics: &mut Physics, steps: u32) {
    for _ in 0..steps {
        let report = physics.step(world, H);
        assert!(report.converged && report.quarantined == 0, "step {}: {:?}", report.step, report.troubles);
    }
}

/// A sheet of n × n points 0.1 m apart, tied by springs to their neighbours and held at two corners.
fn sheet(world: &mut World, n: usize) -> Vec<Entity> {
    let at = |i: usize, j: usize| DVec3::new(0.1 * i as f64, 0.1 * j as f64, 0.0);
    let points: Vec<Entity> =
        (0..n * n).map(|k| world.spawn(PointBody::new(0.01).at(at(k % n, k / n)))).collect();
    for k in 0..n * n {
        for (other, there) in [(k + 1, (k + 1) % n != 0), (k + n, k + n < n * n)] {
            if there {
                let spring =
                    SpringDamper::between(points[k], DVec3::ZERO, points[other], DVec3::ZERO, 0.1, 500.0);
                world.spawn((spring.damped(0.1),));
            }
        }
    }
    for k in [0, n - 1] {
        let pin = world.spawn(RigidBody::fixed().at(at(k, 0)));
        world.spawn((Ball::between(pin, DVec3::ZERO, points[k], DVec3::ZERO),));
    }
    points
}

#[test]
fn a_point_falls_along_its_parabola_and_does_not_turn() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let v0 = DVec3::new(1.0, 2.0, 5.0);
    let point = world.spawn(PointBody::new(0.2).moving(v0));
    for _ in 0..60 {
        world.get::<&mut Torque>(point).unwrap().0 = DVec3::ONE;
        physics.step(&mut world, H);
    }
    let exact = v0 - 0.5 * 9.81 * DVec3::Z;
    // The midpoint step is exact for a constant force: a hundred roundings of some metres.
    assert!((x(&world, point) - exact).length() < 1e-13 * 100.0);
    assert_eq!(world.get::<&Rotation>(point).unwrap().0, DQuat::IDENTITY);
    assert_eq!(world.get::<&AngularVelocity>(point).unwrap().0, DVec3::ZERO);
}

#[test]
fn a_point_on_a_spring_swings_as_a_ball_on_its_centre_does() {
    let swing = |point: bool| {
        let (mut world, mut physics) = (World::new(), Physics::new());
        let pin = world.spawn(RigidBody::fixed());
        let at = DVec3::new(0.6, 0.1, -0.2);
        let bob = match point {
            true => world.spawn(PointBody::new(0.3).at(at)),
            false => world.spawn(RigidBody::dynamic(0.3, DMat3::IDENTITY * 0.01).at(at)),
        };
        world.spawn((SpringDamper::between(pin, DVec3::ZERO, bob, DVec3::ZERO, 0.5, 80.0).damped(0.2),));
        run(&mut world, &mut physics, 120);
        x(&world, bob)
    };
    let (a, b) = (swing(true), swing(false));
    // The ball's rotation takes no part, so that the two solve the same three equations: round-off of 120 steps.
    assert!((a - b).length() < 1e-11, "{a} {b}");
}

#[test]
fn a_chain_of_points_and_a_rigid_load_hang_at_the_right_length() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let mut above = world.spawn(RigidBody::fixed());
    let mut points = Vec::new();
    for k in 1..=10 {
        let point = world.spawn(PointBody::new(0.05).at(DVec3::NEG_Z * 0.2 * f64::from(k)));
        world.spawn((Distance::between(above, DVec3::ZERO, point, DVec3::ZERO, 0.2),));
        points.push(point);
        above = point;
    }
    let load = world.spawn(Solid::cuboid(DVec3::splat(0.5), 1000.0).weighing(500.0).at(DVec3::NEG_Z * 2.5));
    world.spawn((Ball::between(above, DVec3::ZERO, load, DVec3::Z * 0.5),));
    run(&mut world, &mut physics, 240);
    // Ten rods hold 500 kg; the engine's promise for joints under such loads is a millimetre.
    assert!((x(&world, points[9]) + DVec3::Z * 2.0).length() < 1e-3, "{}", x(&world, points[9]));
    assert!((x(&world, load) + DVec3::Z * 2.5).length() < 1e-3, "{}", x(&world, load));
}

#[test]
fn a_ball_falls_onto_a_sheet_of_points_and_is_carried() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let points = sheet(&mut world, 8);
    for &point in &points {
        let ball = Collider::new(ShapeHandle::sphere(0.03));
        world.insert_one(point, Colliders::one(ball)).unwrap();
    }
    run(&mut world, &mut physics, 60);
    let saved = physics.snapshot(&world);
    run(&mut world, &mut physics, 30);
    let there = state_hash(&world);
    physics.restore(&mut world, &saved).unwrap();
    physics.set_threads(2);
    run(&mut world, &mut physics, 30);
    assert_eq!(there, state_hash(&world), "restored, and on two threads");
    assert!(points.iter().all(|&p| x(&world, p).is_finite() && x(&world, p).z > -3.0));
}

#[test]
fn a_resting_point_is_carried_by_the_ground_and_falls_asleep() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let ground = ShapeHandle::cuboid(DVec3::new(5.0, 5.0, 0.5));
    world.spawn(Solid::fixed(ground).at(DVec3::NEG_Z * 0.5));
    let point = world.spawn(PointBody::new(1.0).at(DVec3::Z * 0.1));
    world.insert_one(point, Colliders::one(Collider::new(ShapeHandle::sphere(0.1)))).unwrap();
    run(&mut world, &mut physics, 180);
    // Tuning::contact_compliance: a body sinks by nanometres; carried over 180 steps at most micrometres.
    assert!((x(&world, point) - DVec3::Z * 0.1).length() < 1e-6, "{}", x(&world, point));
    assert!(world.get::<&LinearVelocity>(point).unwrap().0 == DVec3::ZERO, "asleep");
}

#[test]
fn a_point_without_mass_is_quarantined_and_named() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let bad = world.spawn(PointBody::new(0.0));
    let good = world.spawn(PointBody::new(1.0));
    let report = physics.step(&mut world, H);
    assert_eq!(report.quarantined, 1);
    assert!(report.troubles[0].to_string().contains("mass"), "{}", report.troubles[0]);
    assert!(x(&world, bad) == DVec3::ZERO && x(&world, good).z < 0.0);
}
