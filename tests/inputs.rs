//! Numbers are held against their ranges where they enter, and snapshots against what they can say.

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::components::*;
use turnbuckle::constraint::*;
use turnbuckle::geometry::{Shape, ShapeHandle};
use turnbuckle::scene::{LoadOptions, Scene, load_with};
use turnbuckle::snapshot::{Snapshot, SnapshotError, seal};
use turnbuckle::testing::state_hash;
use turnbuckle::{Physics, Settings, Stage};

const H: f64 = 1.0 / 60.0;

fn ball(at: DVec3) -> (RigidBody, Colliders) {
    let inertia = DMat3::from_diagonal(DVec3::splat(0.1));
    let shape = Collider::new(ShapeHandle::sphere(0.5));
    (RigidBody::dynamic(1.0, inertia).at(at), Colliders::one(shape))
}

/// A floor and a ball that lies on it.
fn ball_on_floor() -> (World, Entity) {
    let mut world = World::new();
    let floor = ShapeHandle::new(Shape::HalfSpace { normal: DVec3::Z }).unwrap();
    world.spawn((RigidBody::fixed(), Colliders::one(Collider::new(floor))));
    let (body, colliders) = ball(DVec3::Z * 0.5);
    let ball = world.spawn((body, colliders));
    (world, ball)
}

fn troubles(physics: &Physics) -> Vec<String> {
    physics.report().troubles.iter().map(ToString::to_string).collect()
}

fn assert_all_finite(world: &World) {
    type All<'a> = (&'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity);
    for (x, q, v, w) in world.query::<All<'_>>().iter() {
        assert!(x.0.is_finite() && q.0.is_finite() && v.0.is_finite() && w.0.is_finite());
    }
}

/// Steps a ball on a floor with settings changed in the middle; the state's hash, and what was told.
fn with_settings(change: impl Fn(&mut Settings)) -> (u64, Vec<String>) {
    let (mut world, _) = ball_on_floor();
    let (mut physics, mut told) = (Physics::new(), Vec::new());
    for step in 0..60 {
        if step == 10 {
            change(&mut physics.settings);
        }
        physics.step(&mut world, H);
        assert!(physics.report().converged);
        told.extend(troubles(&physics));
    }
    (state_hash(&world), told)
}

#[test]
fn a_setting_out_of_its_range_is_told_once_and_the_last_good_one_stays() {
    let (good, told) = with_settings(|_| ());
    assert!(told.is_empty());
    type Change = fn(&mut Settings);
    let changes: [(&str, Change); 6] = [
        ("`gravity` is NaN; it must be from -1e5 to 1e5 m/s²", |s| s.gravity.z = f64::NAN),
        ("`contact_margin` is inf; it must be from 0 to 10 m", |s| s.contact_margin = f64::INFINITY),
        ("`contact_compliance` is -5.0; it must be from 1e-12 to 1e6", |s| {
            s.tuning.contact_compliance = -5.0
        }),
        ("`max_correction_speed` is NaN; it must be at least 0 m/s", |s| {
            s.tuning.max_correction_speed = f64::NAN
        }),
        ("`substeps` is 0.0; it must be from 1 to 1000", |s| s.substeps = 0),
        ("`max_position` is NaN", |s| s.tuning.max_position = f64::NAN),
    ];
    for (what, change) in changes {
        let (hash, told) = with_settings(change);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(what) && told[0].contains("last good value is in force"), "{told:?}");
        assert_eq!(hash, good, "{what}");
    }
}

#[test]
fn settings_that_are_bad_from_the_start_are_the_defaults() {
    let (mut world, ball) = ball_on_floor();
    let settings = Settings { contact_margin: f64::INFINITY, gravity: DVec3::NAN, ..Settings::default() };
    let mut physics = Physics::with_settings(settings);
    physics.step(&mut world, H);
    assert_eq!(troubles(&physics).len(), 2);
    assert_eq!(physics.settings, Settings::default());
    (0..60).for_each(|_| drop(physics.step(&mut world, H).clone()));
    // 1e-3: the ball may sink by nanometres, and must not fall.
    assert!((world.get::<&Position>(ball).unwrap().0.z - 0.5).abs() < 1e-3);
}

#[test]
fn the_table_of_settings_is_the_documentation() {
    let table = turnbuckle::settings::table::markdown();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text.contains(&table), "docs/settings.md must hold this table:\n{table}");
}

/// Spawns a joint between a fixed body and a ball beside another ball, steps, and gives what was told.
fn joint_told<T: hecs::Component>(make: impl Fn(Entity, Entity) -> T) -> Vec<String> {
    let (mut world, other) = ball_on_floor();
    let a = world.spawn(RigidBody::fixed().at(DVec3::new(5.0, 0.0, 3.0)));
    let (body, _) = ball(DVec3::new(6.0, 0.0, 3.0));
    let b = world.spawn(body);
    world.spawn((make(a, b),));
    let mut physics = Physics::new();
    for _ in 0..3 {
        let report = physics.step(&mut world, H);
        assert!(report.converged && report.joint_error_rms.is_finite() && report.kinetic.is_finite());
        assert_all_finite(&world);
    }
    assert!((world.get::<&Position>(other).unwrap().0.z - 0.5).abs() < 1e-3);
    troubles(&physics)
}

#[test]
fn numbers_of_joints_are_told_with_their_ranges() {
    let frames = Frames { a: Frame::at(DVec3::X), b: Frame::IDENTITY };
    let motor =
        |motor| move |a, b| Revolute { axis: Axis::FREE.driven(motor), ..Revolute::new(a, b, frames) };
    let nan = f64::NAN;
    let limits = Limits::hard(1.0, -1.0);
    let tilted =
        Frames { b: Frame { rotation: DQuat::from_xyzw(0.0, 0.0, 3.0, 4.0), ..Frame::IDENTITY }, ..frames };
    let o = DVec3::ZERO;
    for (told, what) in [
        (joint_told(motor(Motor::Velocity { target: nan, max_force: 1.0 })), "`motor target` is NaN"),
        (
            joint_told(motor(Motor::Velocity { target: 1.0, max_force: -1.0 })),
            "`greatest force` is -1.0; it must be at least 0",
        ),
        (
            joint_told(motor(Motor::Position { target: 0.0, stiffness: -5.0, damping: 1.0, max_force: 1.0 })),
            "`stiffness` is -5.0",
        ),
        (
            joint_told(move |a, b| Prismatic {
                axis: Axis::FREE.limited(limits),
                ..Prismatic::new(a, b, frames)
            }),
            "`limit` is -1.0; it must be at least 1",
        ),
        (
            joint_told(move |a, b| Prismatic {
                axis: Axis::FREE.rubbing(nan),
                ..Prismatic::new(a, b, frames)
            }),
            "`friction` is NaN",
        ),
        (joint_told(move |a, b| Fixed::new(a, b, tilted)), "`frame rotation's length²` is 25.0"),
        (
            joint_told(move |a, b| Fixed::new(a, b, Frames { a: Frame::at(DVec3::X * 1e300), ..frames })),
            "`anchor` is 1e300",
        ),
        (joint_told(move |a, b| Rope::between(a, o, b, o, -1.0)), "`length` is -1.0"),
        (joint_told(move |a, b| Distance::between(a, o, b, o, nan)), "`length` is NaN"),
        (joint_told(move |a, b| SpringDamper { damping: nan, ..spring(a, b) }), "`damping` is NaN"),
        (
            joint_told(move |a, b| Wheel { brake: nan, ..Wheel::new(a, b, frames, 1.0, 1.0) }),
            "`greatest force` is NaN",
        ),
        (
            joint_told(move |a, b| {
                PulleyRope::new([RopePoint::new(a, o), RopePoint::new(b, DVec3::NAN)], 1.0)
            }),
            "`anchor` is NaN",
        ),
        (
            joint_told(move |a, b| Gear {
                a,
                b,
                wheels: [GearWheel { frame: Frame::IDENTITY, carrier: Frame::IDENTITY, teeth: i32::MIN }; 2],
            }),
            "`teeth`",
        ),
    ] {
        assert_eq!(told.len(), 1, "{told:?} for {what}");
        assert!(told[0].contains(what) && told[0].contains("is skipped"), "{told:?} for {what}");
    }
}

fn spring(a: Entity, b: Entity) -> SpringDamper {
    SpringDamper {
        a,
        b,
        anchor_a: DVec3::ZERO,
        anchor_b: DVec3::ZERO,
        length: 1.0,
        stiffness: 10.0,
        damping: 1.0,
        pull_only: false,
    }
}

/// Steps a ball on a floor with a change of it in the middle; what was told, and how far it is from where it lay.
fn body_told(change: impl Fn(&mut World, Entity)) -> (Vec<String>, f64) {
    let (mut world, ball) = ball_on_floor();
    let (mut physics, mut told) = (Physics::new(), Vec::new());
    for step in 0..40 {
        if step == 10 {
            change(&mut world, ball);
        }
        physics.step(&mut world, H);
        assert_all_finite(&world);
        told.extend(troubles(&physics));
    }
    let at = world.get::<&Position>(ball).unwrap().0;
    (told, at.distance(DVec3::Z * 0.5))
}

#[test]
fn numbers_of_bodies_and_colliders_are_told_and_the_last_good_ones_stay() {
    fn collider(world: &mut World, ball: Entity, change: impl Fn(&mut Collider)) {
        change(&mut world.get::<&mut Colliders>(ball).unwrap().0[0]);
    }
    type Change = fn(&mut World, Entity);
    let changes: [(&str, Change); 8] = [
        ("`friction` is NaN", |w, b| collider(w, b, |c| c.material.friction = f64::NAN)),
        ("`restitution` is 2.0; it must be from 0 to 1", |w, b| {
            collider(w, b, |c| c.material.restitution = 2.0)
        }),
        ("`collider position` is inf", |w, b| collider(w, b, |c| c.position.y = f64::INFINITY)),
        ("`rotation length²` is 0.0", |w, b| {
            collider(w, b, |c| c.rotation = DQuat::from_xyzw(0.0, 0.0, 0.0, 0.0))
        }),
        ("`damping` is NaN", |w, b| w.insert_one(b, Damping { linear: f64::NAN, angular: 0.0 }).unwrap()),
        ("`damping` is -1.0", |w, b| w.insert_one(b, Damping { linear: 0.0, angular: -1.0 }).unwrap()),
        ("`gravity scale` is NaN", |w, b| w.insert_one(b, GravityScale(f64::NAN)).unwrap()),
        ("mass is not a positive finite number", |w, b| w.insert_one(b, Mass(1e300)).unwrap()),
    ];
    for (what, change) in changes {
        let (told, off) = body_told(change);
        assert_eq!(told.len(), 1, "{told:?} for {what}");
        assert!(told[0].contains(what), "{told:?} for {what}");
        // 1e-3: it lies where it lay.
        assert!(off < 1e-3, "{what}: {off}");
    }
}

#[test]
fn an_overwritten_number_of_a_body_changes_nothing() {
    let run = |number: Option<u32>| {
        let (mut world, first) = ball_on_floor();
        let mut physics = Physics::new();
        world.spawn(ball(DVec3::new(0.2, 0.1, 1.6)));
        for step in 0..40 {
            if let Some(number) = number.filter(|_| step == 14) {
                *world.get::<&mut BodyIndex>(first).unwrap() = BodyIndex(number);
            }
            physics.step(&mut world, H);
        }
        state_hash(&world)
    };
    let untouched = run(None);
    for number in [0, 2, 7, u32::MAX] {
        assert_eq!(run(Some(number)), untouched, "{number}");
    }
}

#[test]
fn no_number_that_is_none_stays_in_a_quarantined_body() {
    let (mut world, ball) = ball_on_floor();
    let mut physics = Physics::new();
    physics.step(&mut world, H);
    world.get::<&mut Position>(ball).unwrap().0.x = f64::NAN;
    physics.step(&mut world, H);
    assert_eq!(physics.report().quarantined, 1);
    world.get::<&mut LinearVelocity>(ball).unwrap().0.x = f64::NEG_INFINITY;
    physics.step(&mut world, H);
    assert_all_finite(&world);
    // Mended and let in again, it goes on.
    world.get::<&mut Position>(ball).unwrap().0 = DVec3::Z * 3.0;
    world.remove_one::<Quarantined>(ball).unwrap();
    physics.step(&mut world, H);
    assert!(physics.report().quarantined == 0 && world.get::<&Position>(ball).unwrap().0.z < 3.0);
}

#[test]
fn a_kinematic_target_that_is_none_leaves_the_body_where_it_is() {
    let mut world = World::new();
    let body = world.spawn(RigidBody::kinematic());
    let target = KinematicTarget { position: DVec3::X * 1e300, rotation: DQuat::IDENTITY };
    world.insert_one(body, target).unwrap();
    let mut physics = Physics::new();
    physics.step(&mut world, H);
    assert!(troubles(&physics)[0].contains("`kinematic target` is 1e300"), "{:?}", troubles(&physics));
    assert_eq!(world.get::<&Position>(body).unwrap().0, DVec3::ZERO);
}

#[test]
fn a_surface_that_a_system_spoils_is_told_and_made_anew() {
    let (mut world, ball) = ball_on_floor();
    let mut physics = Physics::new();
    physics.add_system(Stage::Forces, "spoil", |step| {
        for surface in step.world.query_mut::<&mut Surface>() {
            (surface.restitution, surface.friction) = (f64::INFINITY, -1.0);
        }
    });
    for _ in 0..30 {
        physics.step(&mut world, H);
        assert!(troubles(&physics)[0].contains("`friction` is -1.0"), "{:?}", troubles(&physics));
    }
    assert!((world.get::<&Position>(ball).unwrap().0.z - 0.5).abs() < 1e-3);
}

fn scene(name: &str) -> Scene {
    load_with(format!("scenes/{name}.ron"), &LoadOptions::default()).unwrap()
}

fn run(scene: &mut Scene, steps: usize) -> u64 {
    let dt = scene.dt();
    for _ in 0..steps {
        scene.physics.step(&mut scene.world, dt);
    }
    state_hash(&scene.world)
}

#[test]
fn a_snapshot_from_before_the_first_step_is_where_the_level_starts_again() {
    for name in ["crane", "boxes", "ragdoll"] {
        let mut scene = scene(name);
        let start = scene.physics.snapshot(&scene.world);
        let first = run(&mut scene, 30);
        for _ in 0..2 {
            scene.physics.restore(&mut scene.world, &start).unwrap();
            assert_eq!(run(&mut scene, 30), first, "{name}");
        }
    }
}

#[test]
fn a_snapshot_holds_bodies_that_no_step_has_seen() {
    let mut world = World::new();
    // A bundle in a tuple is no body yet.
    let packed = world.spawn((ball(DVec3::Z * 2.0).0, Name("packed".into())));
    let (body, colliders) = ball(DVec3::Z * 4.0);
    let plain = world.spawn(body);
    world.insert_one(plain, colliders).unwrap();
    let mut physics = Physics::new();
    let start = physics.snapshot(&world);
    physics.restore(&mut world, &start).unwrap();
    (0..30).for_each(|_| drop(physics.step(&mut world, H).clone()));
    assert!(world.get::<&Position>(packed).unwrap().0.z < 1.0);
    physics.restore(&mut world, &start).unwrap();
    assert_eq!(world.get::<&Position>(packed).unwrap().0, DVec3::Z * 2.0);
    assert_eq!(world.get::<&Position>(plain).unwrap().0, DVec3::Z * 4.0);
    assert_eq!(world.get::<&LinearVelocity>(plain).unwrap().0, DVec3::ZERO);
    assert_eq!((physics.report().step, physics.report().time), (0, 0.0));
}

#[test]
fn bodies_behind_a_gap_in_the_numbers_are_in_the_snapshot() {
    let mut world = World::new();
    let bodies: Vec<Entity> = (0..3).map(|k| world.spawn(ball(DVec3::X * f64::from(k) * 3.0).0)).collect();
    let mut physics = Physics::new();
    physics.step(&mut world, H);
    world.despawn(bodies[1]).unwrap();
    let saved = physics.snapshot(&world);
    let at = world.get::<&Position>(bodies[2]).unwrap().0;
    (0..10).for_each(|_| drop(physics.step(&mut world, H).clone()));
    physics.restore(&mut world, &saved).unwrap();
    assert_eq!(world.get::<&Position>(bodies[2]).unwrap().0, at);
}

#[test]
fn a_joint_that_came_later_keeps_a_number_of_its_own() {
    let mut world = World::new();
    let a = world.spawn(RigidBody::fixed());
    let b = world.spawn(ball(DVec3::X).0);
    let first = world.spawn((Distance::between(a, DVec3::ZERO, b, DVec3::ZERO, 1.0),));
    let mut physics = Physics::new();
    let start = physics.snapshot(&world);
    physics.step(&mut world, H);
    let later = world.spawn((Rope::between(a, DVec3::ZERO, b, DVec3::ZERO, 2.0),));
    physics.step(&mut world, H);
    physics.restore(&mut world, &start).unwrap();
    physics.step(&mut world, H);
    let number = |e| *world.get::<&ConstraintIndex>(e).unwrap();
    assert_ne!(number(first), number(later));
}

/// A small generator: the same damage everywhere.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize >> 1
}

#[test]
fn a_damaged_snapshot_is_refused_and_the_world_untouched() {
    let mut scene = scene("crane");
    run(&mut scene, 5);
    let good = scene.physics.snapshot(&scene.world);
    let mut state = 7;
    for _ in 0..500 {
        let mut bytes = good.as_bytes().to_vec();
        let at = random(&mut state) % bytes.len();
        bytes[at] ^= 1 << (random(&mut state) % 8);
        let told =
            scene.physics.restore(&mut scene.world, &Snapshot::from_bytes(bytes)).unwrap_err().to_string();
        assert!(told.contains("damaged") || told.contains("format"), "{told}");
    }
    assert_eq!(scene.physics.snapshot(&scene.world), good);
    scene.physics.restore(&mut scene.world, &good).unwrap();
}

#[test]
fn a_damaged_snapshot_whose_checksum_fits_panics_nowhere() {
    let mut scene = scene("crane");
    run(&mut scene, 5);
    let good = scene.physics.snapshot(&scene.world);
    let (mut state, mut accepted) = (11, 0);
    for _ in 0..300 {
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..1 + random(&mut state) % 3 {
            let at = 8 + random(&mut state) % (bytes.len() - 8);
            bytes[at] ^= 1 << (random(&mut state) % 8);
        }
        seal(&mut bytes);
        match scene.physics.restore(&mut scene.world, &Snapshot::from_bytes(bytes)) {
            Err(_) => assert_eq!(scene.physics.snapshot(&scene.world), good),
            Ok(()) => {
                accepted += 1;
                if accepted % 4 == 0 {
                    run(&mut scene, 1);
                    assert_all_finite(&scene.world);
                }
                scene.physics.restore(&mut scene.world, &good).unwrap();
            }
        }
    }
    assert!(accepted > 20, "numbers that could be are accepted: {accepted}");
}

#[test]
fn a_snapshot_of_another_format_says_so() {
    let (world, _) = ball_on_floor();
    let mut bytes = Physics::new().snapshot(&world).as_bytes().to_vec();
    bytes[4] = 5;
    let (mut world, mut physics) = (world, Physics::new());
    let error = physics.restore(&mut world, &Snapshot::from_bytes(bytes)).unwrap_err();
    assert_eq!(error, SnapshotError::Version { found: 5 });
    assert!(
        error.to_string().contains("the snapshot has format 5, this build reads format 8; take a new one")
    );
}

#[test]
fn settings_of_a_scene_are_held_against_the_same_table() {
    let load = |settings: &str| {
        let text = format!("Scene(settings: ({settings}), items: [])");
        let files = turnbuckle::scene::Memory([("s.ron".into(), text)].into());
        turnbuckle::scene::plan_from("s.ron", &LoadOptions::default(), &files).map_err(|e| e.to_string())
    };
    let plan = load("contact_margin: 0.02, newton: 3, sleep_time: 2").unwrap();
    let settings = Scene::new(plan).physics.settings;
    assert_eq!((settings.contact_margin, settings.tuning.newton, settings.sleep_time), (0.02, 3, 2.0));
    for (bad, what) in [
        ("contact_compliance: -5", "`contact_compliance` is -5.0; it must be from 1e-12 to 1e6"),
        ("substeps: 0", "`substeps` is 0.0; it must be from 1 to 1000"),
        ("gravity: (0, 0, -1e6)", "`gravity` is -1000000.0; it must be from -1e5 to 1e5 m/s²"),
    ] {
        let told = load(bad).map(|_| ()).unwrap_err();
        assert!(told.contains(what) && told.contains("s.ron:1"), "{told}");
    }
}
