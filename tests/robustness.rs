//! What the world's data may do to a step: sentences, never panics, never a spreading NaN.

mod support;

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use support::{CurtainOptions, Tether, curtain};
use turnbuckle::components::*;
use turnbuckle::constraint::Bounds;
use turnbuckle::{Physics, StepReport};

const H: f64 = 1.0 / 60.0;

fn ball() -> RigidBody {
    RigidBody::dynamic(1.0, DMat3::IDENTITY)
}

/// Spawns one bad body among good ones, steps, and gives the sentence about it.
fn sentence(bad: RigidBody) -> String {
    let mut world = World::new();
    let (mut physics, _) = curtain(&mut world, &CurtainOptions { ropes: 2, links: 5, free: 5 });
    let body = world.spawn(bad);
    for _ in 0..3 {
        physics.step(&mut world, H);
        assert_eq!(physics.report().quarantined, 1);
        assert_all_finite(&world);
    }
    assert!(world.satisfies::<&Quarantined>(body));
    assert!(physics.report().troubles.is_empty(), "it is told once");
    let mut again = Physics::new();
    world.remove_one::<Quarantined>(body).unwrap();
    if let Ok((m, i)) = world.query_one_mut::<(&mut Mass, &mut Inertia)>(body) {
        (*m, *i) = (Mass(1.0), Inertia(DMat3::IDENTITY));
    }
    assert_eq!(again.step(&mut world, H).quarantined, 0, "a mended body comes back");
    let mut world = World::new();
    world.spawn(bad);
    Physics::new().step(&mut world, H).troubles[0].to_string()
}

fn assert_all_finite(world: &World) {
    type All<'a> = (&'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity);
    for (x, q, v, w) in world.query::<All<'_>>().iter() {
        assert!(x.0.is_finite() && q.0.is_finite() && v.0.is_finite() && w.0.is_finite());
    }
}

#[test]
fn every_bad_quantity_has_its_sentence() {
    let nan = DVec3::new(0.0, f64::NAN, 0.0);
    let inertia = |x, y, z| DMat3::from_diagonal(DVec3::new(x, y, z));
    for (bad, what) in [
        (ball().at(nan), "position is not finite"),
        (ball().at(DVec3::X * 1e300), "out of bounds"),
        (ball().turned(DQuat::from_xyzw(0.0, 0.0, 0.0, 0.0)), "rotation is not a finite quaternion"),
        (ball().turned(DQuat::from_xyzw(f64::NAN, 0.0, 0.0, 1.0)), "rotation is not a finite quaternion"),
        (ball().moving(nan, DVec3::ZERO), "linear velocity is not finite"),
        (ball().moving(DVec3::X * 1e9, DVec3::ZERO), "above Tuning::max_speed"),
        (ball().moving(DVec3::ZERO, nan), "angular velocity is not finite"),
        (RigidBody::dynamic(0.0, DMat3::IDENTITY), "mass is not a positive finite number"),
        (RigidBody::dynamic(-2.0, DMat3::IDENTITY), "mass is not a positive finite number"),
        (RigidBody::dynamic(f64::INFINITY, DMat3::IDENTITY), "mass is not a positive finite number"),
        (RigidBody::dynamic(1.0, inertia(1.0, 1.0, 2.5)), "triangle inequality"),
        (RigidBody::dynamic(1.0, inertia(1.0, 1.0, 0.0)), "positive definite"),
        (RigidBody::dynamic(1.0, inertia(1.0, -1.0, 1.0)), "positive definite"),
        (RigidBody::dynamic(1.0, inertia(f64::NAN, 1.0, 1.0)), "positive definite"),
    ] {
        let told = sentence(bad);
        assert!(told.contains(what), "{told}");
        assert!(told.contains("quarantined"), "{told}");
    }
}

#[test]
fn a_mass_that_was_spoiled_while_nothing_moved_is_found_when_it_counts() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let body = world.spawn(RigidBody::fixed());
    physics.step(&mut world, H);
    world.get::<&mut Mass>(body).unwrap().0 = -0.0;
    assert!(physics.step(&mut world, H).troubles.is_empty(), "a fixed body needs no mass");
    *world.get::<&mut BodyKind>(body).unwrap() = BodyKind::Dynamic;
    let told = physics.step(&mut world, H).troubles.first().expect("a sentence").to_string();
    assert!(told.contains("mass is not a positive finite number"), "{told}");
    assert!(world.get::<&LinearVelocity>(body).unwrap().0.is_finite());
}

#[test]
fn a_rotation_that_is_not_unit_is_made_unit() {
    let mut world = World::new();
    let body = world.spawn(ball().turned(DQuat::from_xyzw(0.0, 0.0, 3.0, 4.0)));
    let mut physics = Physics::new();
    assert!(physics.step(&mut world, H).troubles.is_empty());
    let q = world.get::<&Rotation>(body).unwrap().0;
    assert!((q - DQuat::from_xyzw(0.0, 0.0, 0.6, 0.8)).length() < 1e-15);
}

#[test]
fn a_body_spawned_inside_a_tuple_is_a_body() {
    let mut world = World::new();
    let body = world.spawn((ball().moving(DVec3::X, DVec3::ZERO), Name("tuple".into())));
    let mut physics = Physics::new();
    assert_eq!(physics.step(&mut world, H).bodies, 1);
    assert!((world.get::<&Position>(body).unwrap().0.x - H).abs() < 1e-15);
}

#[test]
fn a_bad_force_is_ignored_for_the_step_and_named() {
    let mut world = World::new();
    let body = world.spawn(ball());
    world.get::<&mut Force>(body).unwrap().0.x = f64::NAN;
    let mut physics = Physics::new();
    let told = physics.step(&mut world, H).troubles[0].to_string();
    assert!(told.contains("force is not finite") && told.contains(&format!("{body:?}")), "{told}");
    assert_all_finite(&world);
    assert!(physics.step(&mut world, H).troubles.is_empty(), "the bad force is gone");
}

#[test]
fn a_body_that_goes_bad_in_mid_run_stops_at_its_last_good_pose() {
    let mut world = World::new();
    let (mut physics, bodies) = curtain(&mut world, &CurtainOptions { ropes: 3, links: 8, free: 0 });
    for _ in 0..10 {
        physics.step(&mut world, H);
    }
    let good = world.get::<&Position>(bodies[4]).unwrap().0;
    world.get::<&mut Position>(bodies[4]).unwrap().0 = DVec3::NAN;
    for _ in 0..60 {
        physics.step(&mut world, H);
        assert_all_finite(&world);
        assert_eq!(world.get::<&Position>(bodies[4]).unwrap().0, good);
    }
    assert_eq!(physics.report().quarantined, 1);
}

fn troubles_of(setup: impl FnOnce(&mut World, &[Entity])) -> (StepReport, World) {
    let mut world = World::new();
    let (mut physics, bodies) = curtain(&mut world, &CurtainOptions { ropes: 1, links: 4, free: 0 });
    physics.step(&mut world, H);
    setup(&mut world, &bodies);
    physics.step(&mut world, H);
    assert_all_finite(&world);
    (physics.report().clone(), world)
}

#[test]
fn a_joint_whose_body_is_gone_is_skipped_and_named() {
    let (report, _) = troubles_of(|world, bodies| world.despawn(bodies[1]).unwrap());
    let told: Vec<String> = report.troubles.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "both joints of the body: {told:?}");
    assert!(told.iter().all(|t| t.contains("not a body (any more)") && t.contains("despawn it")), "{told:?}");
}

#[test]
fn a_joint_of_a_body_with_itself_and_a_joint_with_nan_are_skipped_and_named() {
    let tether =
        |a, b, length| Tether { bodies: [a, b], anchors: [DVec3::ZERO; 2], length, bounds: Bounds::BOTH };
    let (report, _) = troubles_of(|world, bodies| {
        world.spawn((tether(bodies[0], bodies[0], 1.0),));
        world.spawn((tether(bodies[0], bodies[2], f64::NAN),));
    });
    let told: Vec<String> = report.troubles.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("to itself"), "{told:?}");
    assert!(told[1].contains("a row is not finite"), "{told:?}");
}

#[test]
fn many_troubles_are_counted_and_few_are_kept() {
    let mut world = World::new();
    for _ in 0..1000 {
        world.spawn(ball().at(DVec3::NAN));
    }
    let mut physics = Physics::new();
    let report = physics.step(&mut world, H);
    assert_eq!((report.trouble_count, report.troubles.len()), (1000, StepReport::MOST_TROUBLES));
    assert_eq!(report.quarantined, 1000);
}

#[test]
fn an_empty_world_and_a_world_of_strangers_can_be_stepped() {
    let mut world = World::new();
    world.spawn(("a game entity", 7u32));
    let mut physics = Physics::new();
    let report = physics.step(&mut world, H);
    assert!(report.converged && report.bodies == 0 && report.rows == 0);
}

#[test]
fn bodies_may_come_go_and_change_kind_at_any_time() {
    let mut world = World::new();
    let (mut physics, mut bodies) = curtain(&mut world, &CurtainOptions { ropes: 4, links: 10, free: 20 });
    for step in 0..120usize {
        match step % 6 {
            0 => {
                let _ = world.despawn(bodies[(step * 13) % bodies.len()]);
            }
            1 => bodies.push(world.spawn(ball().at(DVec3::splat(step as f64)))),
            2 => {
                let body = bodies[(step * 17) % bodies.len()];
                let kinds = [BodyKind::Fixed, BodyKind::Kinematic, BodyKind::Dynamic];
                if let Ok(kind) = world.query_one_mut::<&mut BodyKind>(body) {
                    *kind = kinds[step % 3];
                }
            }
            3 => {
                let body = bodies[(step * 19) % bodies.len()];
                let _ = world.remove_one::<Mass>(body); // no longer a body at all
            }
            _ => {}
        }
        physics.step(&mut world, H);
        assert_all_finite(&world);
        assert!(physics.report().converged);
    }
}

#[test]
#[should_panic(expected = "dt is 0; a step needs a positive finite number of seconds")]
fn a_step_of_zero_is_refused() {
    Physics::new().step(&mut World::new(), 0.0);
}

#[test]
#[should_panic(expected = "dt is NaN; a step needs a positive finite number of seconds")]
fn a_step_of_nan_is_refused() {
    Physics::new().step(&mut World::new(), f64::NAN);
}

#[test]
fn looking_ahead_needs_no_warm_start() {
    // Groups that are about to overlap are solved again while those beside them keep their answers.
    let mut scene = turnbuckle::scene::load_with("scenes/bowling.ron", &Default::default()).unwrap();
    scene.physics.settings.tuning.warm_start = false;
    let dt = scene.dt();
    for _ in 0..100 {
        assert!(scene.physics.step(&mut scene.world, dt).converged);
    }
    assert_all_finite(&scene.world);
}
