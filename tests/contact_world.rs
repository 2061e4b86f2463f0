//! Contacts as a game sees them: every shape on every other, sleeping, events, sensors, queries.

mod contact_support;

use contact_support::*;
use glam::{DMat3, DQuat, DVec3};
use hecs::World;
use turnbuckle::components::*;
use turnbuckle::constraint::*;
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

/// Slow is not at rest: ten metres of rope let go 1 to 3 mm off stood still there for ever, asleep.
#[test]
fn a_long_pendulum_swings_however_little() {
    for millimetres in [1.0, 1.5, 2.0, 3.0] {
        let (mut world, mut physics) = (World::new(), Physics::new());
        let hook = world.spawn(RigidBody::fixed());
        let off = 1e-3 * millimetres;
        let start = DVec3::new(off, 0.0, -10.0);
        let stone = world.spawn(RigidBody::dynamic(10.0, DMat3::IDENTITY).at(start));
        world.spawn((Ball::between(hook, DVec3::ZERO, stone, -start),));
        let (mut least, mut most) = (off, -off);
        // Three periods of 2π √(l/g) = 6.34 s (a little more: the stone turns with its rod).
        for step in 0..1200 {
            physics.step(&mut world, H);
            assert!(
                !world.get::<&Rest>(stone).expect("a body").asleep,
                "{millimetres} mm: asleep in step {step}"
            );
            let x = x(&world, stone).x;
            (least, most) = (least.min(x), most.max(x));
        }
        // 2 %: the swing of three periods, in steps of 1/380 of one, with the joint's compliance of some µm.
        assert!((least / -off - 1.0).abs() < 0.02 && (most / off - 1.0).abs() < 0.02, "{least} {most}");
    }
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
            ContactEvent::Started { pair, touch } => {
                assert_eq!((pair.a, pair.b), (ground, cube));
                assert_eq!(touch.normal, DVec3::Z);
                // 0.2 mm: what is left of the fall after the step in which it is stopped ends on the surface.
                assert!(touch.point.z.abs() < 2e-4, "{touch:?}");
                // √(2 g · 3.7 m); up to g · 1.5 h less: rows look one step ahead from the middle of the step.
                let fall = (2.0 * 9.81 * 3.7f64).sqrt();
                assert!((touch.approach - fall).abs() < 1.5 * 9.81 * H, "{touch:?}");
                assert!(physics_contact(&world, touch.contact), "the contact is an entity");
                "started"
            }
            ContactEvent::Hit { impulse, .. } => {
                assert!(*impulse > 100.0);
                "hit"
            }
            _ => "other",
        })
        .collect();
    // A fast landing takes two steps, down to the surface and to rest on it, and is one hit.
    kinds.retain(|k| *k != "other");
    assert_eq!(kinds, ["entered", "left", "started", "hit"], "{told:?}");
    world.despawn(cube).expect("the cube");
    physics.step(&mut world, H);
    assert!(matches!(physics.events(), [ContactEvent::Stopped(_)]));
}

fn physics_contact(world: &World, contact: hecs::Entity) -> bool {
    world.satisfies::<(&Contact, &Manifold, &RowImpulses)>(contact)
}

/// The hits of a run: step, bodies, impulse, approach.
fn hits(events: &[(u32, ContactEvent)]) -> Vec<(u32, hecs::Entity, f64, f64)> {
    let hit = |(step, event): &(u32, ContactEvent)| match event {
        ContactEvent::Hit { pair, touch, impulse } => Some((*step, pair.b, *impulse, touch.approach)),
        _ => None,
    };
    events.iter().filter_map(hit).collect()
}

/// A load at rest fired a hit in every step once its weight times the step was beyond the threshold.
#[test]
fn only_blows_are_hits_and_bodies_have_thresholds_of_their_own() {
    let settings = Settings { sleep: false, ..Settings::default() };
    let (mut world, mut physics) = (World::new(), Physics::with_settings(settings));
    floor(&mut world, 0.6);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    let all = HitThreshold { impulse: 0.0, speed: 0.2 };
    let at = |x: f64, z: f64| DVec3::new(x, 0.0, z);
    let told = spawn_mass(&mut world, &cube, 1000.0, 0.6, at(0.0, 2.0));
    let heavy = spawn_mass(&mut world, &cube, 1e5, 0.6, at(3.0, 0.5));
    let untold = spawn_mass(&mut world, &cube, 1000.0, 0.6, at(6.0, 2.0));
    let deaf = spawn_mass(&mut world, &cube, 1000.0, 0.6, at(9.0, 2.0));
    let ball = spawn_mass(&mut world, &ShapeHandle::sphere(0.2), 2.0, 0.6, at(12.0, 1.2));
    world.get::<&mut Colliders>(ball).expect("colliders").0[0].material.restitution = 0.5;
    for body in [told, heavy, ball] {
        world.insert_one(body, all).expect("a body");
    }
    world.insert_one(deaf, HitThreshold { impulse: 1e4, speed: 0.2 }).expect("a body");
    let mut events = Vec::new();
    for step in 0..150 {
        physics.step(&mut world, H);
        events.extend(physics.events().iter().map(|e| (step, *e)));
    }
    let hits = hits(&events);
    let of = |body| hits.iter().filter(|h| h.1 == body).collect::<Vec<_>>();
    assert!(of(heavy).is_empty() && of(untold).is_empty() && of(deaf).is_empty(), "{hits:?}");
    let blows = of(told);
    assert_eq!(blows.len(), 1, "{hits:?}");
    // Height 1.5 m: m √(2 g s). 6 %: what gravity adds on the way down within the two steps is on the side of the weight.
    let momentum = 1000.0 * (2.0 * 9.81 * 1.5f64).sqrt();
    assert!((blows[0].2 / momentum - 1.0).abs() < 0.06, "{} for {momentum}", blows[0].2);
    // The ball comes back with half of its speed: m (1 + e) v, each bounce half of the one before, down to 0.2 m/s.
    let bounces = of(ball);
    assert!(bounces.len() >= 3, "{hits:?}");
    for (k, bounce) in bounces.iter().enumerate().take(3) {
        let speed = (2.0 * 9.81f64).sqrt() * 0.5f64.powi(k as i32);
        assert!((bounce.2 / (1.5 * 2.0 * speed) - 1.0).abs() < 0.15, "{k}: {bounce:?} for {speed}");
        assert!((bounce.3 - speed).abs() < 1.5 * 9.81 * H, "{k}: {bounce:?} for {speed}");
    }
}

/// A run that is saved and restored after every step tells the same events, a blow that takes two steps included.
#[test]
fn events_are_the_same_after_a_restore() {
    let run = |restored: bool, threads: usize| {
        let settings = Settings { impulse_event_threshold: 1.0, ..Settings::default() };
        let (mut world, mut physics) = (World::new(), Physics::with_settings(settings));
        physics.set_threads(threads);
        floor(&mut world, 0.6);
        for i in 0..6 {
            let shape = if i % 2 == 0 {
                ShapeHandle::sphere(0.2)
            } else {
                ShapeHandle::cuboid(DVec3::new(0.3, 0.2, 0.1))
            };
            spawn_mass(
                &mut world,
                &shape,
                5.0,
                0.6,
                DVec3::new(0.1 * f64::from(i), 0.0, 0.7 + 0.8 * f64::from(i)),
            );
        }
        let mut events = Vec::new();
        for _ in 0..120 {
            physics.step(&mut world, H);
            // Contacts are the engine's own entities and get new names when they are restored.
            let nameless = |e: &ContactEvent| match *e {
                ContactEvent::Started { pair, touch } => {
                    format!("{pair:?} {:?} {}", touch.point, touch.approach)
                }
                ContactEvent::Hit { pair, touch, impulse } => {
                    format!("{pair:?} {} {impulse}", touch.approach)
                }
                other => format!("{other:?}"),
            };
            events.extend(physics.events().iter().map(nameless));
            if restored {
                let snapshot = physics.snapshot(&world);
                physics.restore(&mut world, &snapshot).expect("a snapshot of this world");
            }
        }
        events
    };
    let plain = run(false, 1);
    assert!(plain.len() > 20, "{plain:?}");
    assert_eq!(plain, run(false, 2));
    assert_eq!(plain, run(true, 1));
}

/// A bar of a user's own.
struct Bar(hecs::Entity, hecs::Entity);

impl Constraint for Bar {
    fn bodies(&self) -> [hecs::Entity; 2] {
        [self.0, self.1]
    }
    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let jacobian = [Twist::linear(-DVec3::X), Twist::linear(DVec3::X)];
        out.push(Row { jacobian, violation: b.position.x - a.position.x - 0.9, ..Row::default() });
    }
}

/// One rule: joints that hold bodies together at an anchor keep them from touching, all others do not; and a switch for each.
#[test]
fn whether_tied_bodies_touch_follows_one_rule_and_a_switch() {
    type Tie = fn(&mut World, hecs::Entity, hecs::Entity) -> hecs::Entity;
    let ties: [(&str, bool, Tie); 7] = [
        ("Distance", true, |w, a, b| w.spawn((Distance::between(a, DVec3::ZERO, b, DVec3::ZERO, 0.9),))),
        ("Rope", true, |w, a, b| w.spawn((Rope::between(a, DVec3::ZERO, b, DVec3::ZERO, 0.9),))),
        ("Spring", true, |w, a, b| {
            w.spawn((SpringDamper::between(a, DVec3::ZERO, b, DVec3::ZERO, 0.9, 10.0).damped(1.0),))
        }),
        ("Pulley", true, |w, a, b| {
            w.spawn((PulleyRope::new([a, b].map(|e| RopePoint::rubbing(e, DVec3::ZERO, 0.0)), 0.9),))
        }),
        ("of a user", true, |w, a, b| w.spawn((Bar(a, b),))),
        ("Ball", false, |w, a, b| w.spawn((Ball::between(a, DVec3::X * 0.45, b, DVec3::X * -0.45),))),
        ("Fixed", false, |w, a, b| {
            let at = |x: f64| Frame { anchor: DVec3::X * x, ..Frame::IDENTITY };
            w.spawn((Fixed::new(a, b, Frames { a: at(0.45), b: at(-0.45) }),))
        }),
    ];
    for (name, collides, tie) in ties {
        for switch in [None, Some(true), Some(false)] {
            let (mut world, mut physics) = (World::new(), awake());
            physics.settings.gravity = DVec3::ZERO;
            physics.add_constraint::<Bar>();
            let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
            let [a, b] = [0.0, 0.9].map(|x| spawn(&mut world, &cube, 100.0, 0.6, DVec3::X * x));
            let joint = tie(&mut world, a, b);
            if let Some(collide) = switch {
                world.insert_one(joint, JointCollision(collide)).expect("the joint");
            }
            let mut touched = false;
            for _ in 0..3 {
                physics.step(&mut world, H);
                touched |= physics.events().iter().any(|e| matches!(e, ContactEvent::Started { .. }));
            }
            assert_eq!(touched, switch.unwrap_or(collides), "{name}, switch {switch:?}");
        }
    }
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

/// A heap at rest on a floor, beside a lift that stands.
struct Heap {
    world: World,
    physics: Physics,
    floor: hecs::Entity,
    lift: hecs::Entity,
    boxes: Vec<hecs::Entity>,
}

impl Heap {
    /// With a system of the game's no step is left out.
    fn asleep(computed: bool) -> Heap {
        let (mut world, mut physics) = (World::new(), Physics::new());
        if computed {
            physics.add_system(turnbuckle::Stage::Finish, "nothing", |_| {});
        }
        let floor = spawn_fixed(
            &mut world,
            &ShapeHandle::cuboid(DVec3::new(9.0, 9.0, 0.5)),
            0.6,
            DVec3::Z * -0.5,
            DQuat::IDENTITY,
        );
        let lift = world.spawn(RigidBody::kinematic().at(DVec3::X * 5.0));
        let there = KinematicTarget { position: DVec3::X * 5.0, rotation: DQuat::IDENTITY };
        world.insert_one(lift, there).expect("a body");
        let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
        let at = |i: usize| DVec3::new((i / 2) as f64 * 1.2, 0.0, 0.5 + (i % 2) as f64);
        let boxes = (0..4).map(|i| spawn(&mut world, &cube, 100.0, 0.6, at(i))).collect();
        let mut heap = Heap { world, physics, floor, lift, boxes };
        for _ in 0..90 {
            heap.step();
        }
        heap
    }

    /// All that a step shows of itself, but for times.
    fn step(&mut self) -> String {
        let mut report = self.physics.step(&mut self.world, H).clone();
        (report.step_ms, report.solve_ms) = (0.0, 0.0);
        type State<'a> =
            (hecs::Entity, &'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity, &'a Rest);
        let bodies: Vec<String> =
            self.world.query_mut::<State<'_>>().into_iter().map(|s| format!("{s:?}")).collect();
        format!("{report:?} {:?} {bodies:?}", self.physics.events())
    }

    fn computed(&mut self) -> u64 {
        self.physics.timings().iter().find(|t| t.name == "integrate").expect("a system").calls
    }

    fn collider(&mut self, body: hecs::Entity, edit: impl Fn(&mut Collider)) {
        edit(&mut self.world.get::<&mut Colliders>(body).expect("a body").0[0]);
    }
}

/// Steps in which everything sleeps are left out, and whatever a game may do then has the outcome that it has where each is computed.
#[test]
fn steps_of_a_world_asleep_are_left_out_and_nothing_is_missed() {
    type Edit = fn(&mut Heap);
    let edits: &[(&str, Edit)] = &[
        ("nothing", |_| {}),
        ("velocity", |h| h.world.get::<&mut LinearVelocity>(h.boxes[1]).expect("a body").0.x = 0.5),
        ("spin", |h| h.world.get::<&mut AngularVelocity>(h.boxes[1]).expect("a body").0.z = 0.5),
        ("force", |h| h.world.get::<&mut Force>(h.boxes[1]).expect("a body").0.x = 9e3),
        ("torque", |h| h.world.get::<&mut Torque>(h.boxes[1]).expect("a body").0.z = 9e3),
        ("place", |h| h.world.get::<&mut Position>(h.boxes[1]).expect("a body").0.z += 0.2),
        ("rotation", |h| {
            h.world.get::<&mut Rotation>(h.boxes[1]).expect("a body").0 = DQuat::from_rotation_z(0.3);
        }),
        ("no number", |h| h.world.get::<&mut Position>(h.boxes[1]).expect("a body").0.z = f64::NAN),
        ("mass", |h| h.world.get::<&mut Mass>(h.boxes[1]).expect("a body").0 *= 2.0),
        ("no mass", |h| h.world.get::<&mut Mass>(h.boxes[1]).expect("a body").0 = f64::NAN),
        ("no inertia", |h| h.world.get::<&mut Inertia>(h.boxes[1]).expect("a body").0 = DMat3::ZERO),
        ("kind", |h| *h.world.get::<&mut BodyKind>(h.boxes[0]).expect("a body") = BodyKind::Fixed),
        ("gravity", |h| h.physics.settings.gravity.x = 4.0),
        ("sleep", |h| h.physics.settings.sleep = false),
        ("wake", |h| h.physics.wake(h.boxes[0])),
        ("rest", |h| h.world.get::<&mut Rest>(h.boxes[1]).expect("a body").asleep = false),
        ("bed", |h| h.world.get::<&mut Rest>(h.boxes[1]).expect("a body").position.x += 0.1),
        ("lift", |h| h.world.get::<&mut KinematicTarget>(h.lift).expect("a body").position.z = 1.0),
        ("driven", |h| h.world.get::<&mut LinearVelocity>(h.lift).expect("a body").0.z = 1.0),
        ("one more", |h| {
            spawn(&mut h.world, &ShapeHandle::sphere(0.3), 100.0, 0.6, DVec3::Z * 2.5);
        }),
        ("one less", |h| h.world.despawn(h.boxes[0]).expect("a body")),
        ("one for another", |h| {
            h.world.despawn(h.boxes[0]).expect("a body");
            spawn(&mut h.world, &ShapeHandle::sphere(0.3), 100.0, 0.6, DVec3::Z * 2.5);
        }),
        ("no floor", |h| h.world.despawn(h.floor).expect("a body")),
        ("floor below", |h| h.world.get::<&mut Position>(h.floor).expect("a body").0.z -= 1.0),
        ("floor aside", |h| h.collider(h.floor, |c| c.position.x = 30.0)),
        ("floor turned", |h| h.collider(h.floor, |c| c.rotation = DQuat::from_rotation_x(1.0))),
        ("floor of air", |h| h.collider(h.floor, |c| c.filter.mask = 0)),
        ("floor that feels", |h| h.collider(h.floor, |c| c.sensor = true)),
        ("floor of another shape", |h| h.collider(h.floor, |c| c.shape = ShapeHandle::sphere(0.1))),
        ("bare floor", |h| h.world.get::<&mut Colliders>(h.floor).expect("a body").0.clear()),
        ("slippery box", |h| h.collider(h.boxes[0], |c| c.material.friction = 0.0)),
        ("no friction", |h| h.collider(h.boxes[0], |c| c.material.friction = f64::NAN)),
        ("box that grows", |h| {
            h.collider(h.boxes[0], |c| c.shape = ShapeHandle::cuboid(DVec3::splat(0.7)));
        }),
        ("queries", |h| {
            h.world.get::<&mut Position>(h.floor).expect("a body").0.z -= 1.0;
            h.physics.refresh(&mut h.world);
        }),
        ("filter", |h| h.physics.set_contact_filter(|_, _| false)),
        ("contact", |h| {
            let one = h.world.query_mut::<(hecs::Entity, &Contact)>().into_iter().map(|c| c.0).next();
            h.world.despawn(one.expect("a contact")).expect("it was there");
        }),
        ("joint", |h| {
            h.world.spawn((Distance::between(h.boxes[1], DVec3::ZERO, h.boxes[3], DVec3::ZERO, 1.0),));
        }),
    ];
    for (name, edit) in edits {
        let (mut skips, mut computes) = (Heap::asleep(false), Heap::asleep(true));
        let before = skips.computed();
        assert!(before < 80 && computes.computed() == 90, "{before}");
        edit(&mut skips);
        edit(&mut computes);
        for step in 0..30 {
            assert_eq!(skips.step(), computes.step(), "{name}, {step} steps later");
        }
        let after = skips.computed();
        assert!((after > before) != (*name == "nothing"), "{name}: {before} and then {after}");
        assert_eq!(computes.computed(), 120);
    }
}
