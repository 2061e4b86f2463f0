//! Motion against closed forms and fine references.

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::components::*;
use turnbuckle::constraint::{BodyView, Constraint, Row, RowWriter, Twist};
use turnbuckle::{Physics, Settings};

fn weightless() -> Physics {
    Physics::with_settings(Settings { gravity: DVec3::ZERO, ..Settings::default() })
}

fn x(world: &World, body: Entity) -> DVec3 {
    world.get::<&Position>(body).unwrap().0
}

fn v(world: &World, body: Entity) -> DVec3 {
    world.get::<&LinearVelocity>(body).unwrap().0
}

fn w(world: &World, body: Entity) -> DVec3 {
    world.get::<&AngularVelocity>(body).unwrap().0
}

fn q(world: &World, body: Entity) -> DQuat {
    world.get::<&Rotation>(body).unwrap().0
}

#[test]
fn a_projectile_follows_its_parabola() {
    let (h, n) = (1.0 / 60.0, 600);
    let (x0, v0, g) = (DVec3::new(1.0, 2.0, 3.0), DVec3::new(4.0, -5.0, 20.0), DVec3::new(0.0, 0.0, -9.81));
    let mut world = World::new();
    let body = world.spawn(RigidBody::dynamic(2.5, DMat3::IDENTITY).at(x0).moving(v0, DVec3::ZERO));
    let mut physics = Physics::new();
    for _ in 0..n {
        physics.step(&mut world, h);
    }
    let n = f64::from(n);
    // v = v₀ + t g;  x = x₀ + t v₀ + ½t² g: the midpoint step is exact for a constant force
    let v_exact = v0 + g * (n * h);
    let x_exact = x0 + v0 * (n * h) + g * (0.5 * n * n * h * h);
    // 1e-12 relative to the sizes met on the way (100 m/s, 500 m): a few hundred roundings
    assert!((v(&world, body) - v_exact).length() < 1e-12 * 100.0);
    assert!((x(&world, body) - x_exact).length() < 1e-12 * 500.0);
}

#[test]
fn the_semi_implicit_integrator_has_its_exact_values() {
    let (h, n) = (1.0 / 60.0, 600);
    let (v0, g) = (DVec3::new(4.0, -5.0, 20.0), DVec3::new(0.0, 0.0, -9.81));
    let mut world = World::new();
    let body = world.spawn(RigidBody::dynamic(2.5, DMat3::IDENTITY).moving(v0, DVec3::ZERO));
    let integrator = turnbuckle::settings::Integrator::SemiImplicit;
    let mut physics = Physics::with_settings(Settings { integrator, ..Settings::default() });
    for _ in 0..n {
        physics.step(&mut world, h);
    }
    let n = f64::from(n);
    // v = v₀ + n h g;  x = n h v₀ + n (n + 1)/2 h² g; 1e-12 of the sizes met on the way: a few hundred roundings
    assert!((v(&world, body) - v0 - g * (n * h)).length() < 1e-12 * 100.0);
    let exact = v0 * (n * h) + g * (0.5 * n * (n + 1.0) * h * h);
    assert!((x(&world, body) - exact).length() < 1e-12 * 500.0);
}

/// Flip times, largest relative change of energy and of |L|, of a torque-free spin about the middle axis.
fn spin(h: f64, seconds: f64) -> (Vec<f64>, f64, f64) {
    let inertia = DMat3::from_diagonal(DVec3::new(1.0, 2.0, 3.0));
    let mut world = World::new();
    let start = DVec3::new(1e-3, 5.0, 0.0);
    let body = world.spawn(RigidBody::dynamic(1.0, inertia).moving(DVec3::ZERO, start));
    let mut physics = weightless();
    let measure = |world: &World| {
        let local = q(world, body).conjugate() * w(world, body);
        (0.5 * local.dot(inertia * local), (inertia * local).length(), local.y)
    };
    let (e0, l0, mut last) = measure(&world);
    let (mut flips, mut de, mut dl) = (Vec::new(), 0.0f64, 0.0f64);
    for step in 1..=(seconds / h).round() as u32 {
        physics.step(&mut world, h);
        let (e, l, y) = measure(&world);
        de = de.max((e / e0 - 1.0).abs());
        dl = dl.max((l / l0 - 1.0).abs());
        if y * last < 0.0 {
            // linear interpolation of the crossing
            flips.push(h * (f64::from(step) - y / (y - last)));
        }
        last = y;
    }
    (flips, de, dl)
}

#[test]
fn a_spin_about_the_middle_axis_flips_on_time_and_keeps_energy_and_momentum() {
    let (flips, energy, momentum) = spin(1.0 / 240.0, 60.0);
    let (fine, ..) = spin(1.0 / 3840.0, 60.0);
    let period = |f: &[f64]| (f[f.len() - 1] - f[0]) / (f.len() - 1) as f64;
    println!("energy {energy:.1e}, |L| {momentum:.1e}, period {} against {}", period(&flips), period(&fine));
    assert!(energy < 1e-3 && momentum < 1e-3); // the promise; measured 1e-11
    assert_eq!(flips.len(), fine.len());
    // second order: (hω)²/12 ≈ 4e-5, with room for the logarithm in the escape time
    assert!((period(&flips) / period(&fine) - 1.0).abs() < 1e-3);
}

#[test]
fn a_thin_fast_rotor_gains_no_energy() {
    // a needle at up to 3 turns a step, tumbling
    for speed in [1.0, 30.0, 300.0, 1000.0] {
        let inertia = DMat3::from_diagonal(DVec3::new(1.0, 1e-4, 1.0001));
        let mut world = World::new();
        let start = DVec3::new(0.3, 1.0, 0.2).normalize() * speed;
        let body = world.spawn(RigidBody::dynamic(1.0, inertia).moving(DVec3::ZERO, start));
        let mut physics = weightless();
        let energy = |world: &World| {
            let local = q(world, body).conjugate() * w(world, body);
            local.dot(inertia * local)
        };
        let start = energy(&world);
        for _ in 0..3600 {
            physics.step(&mut world, 1.0 / 60.0);
            // 1e-9: round-off of 3,600 steps; the midpoint rule itself keeps it exactly
            assert!(energy(&world) < start * (1.0 + 1e-9), "at {speed} rad/s: {}", energy(&world) / start);
        }
    }
}

#[test]
fn damping_is_implicit_and_stable_at_any_rate() {
    let mut world = World::new();
    let start = DVec3::new(10.0, 0.0, 0.0);
    let mild = world.spawn(RigidBody::dynamic(1.0, DMat3::IDENTITY).moving(start, start));
    let wild = world.spawn(RigidBody::dynamic(1.0, DMat3::IDENTITY).moving(start, start));
    world.insert_one(mild, Damping { linear: 0.5, angular: 0.25 }).unwrap();
    world.insert_one(wild, Damping { linear: 1e6, angular: 1e6 }).unwrap();
    let (mut physics, h) = (weightless(), 0.01);
    for _ in 0..100 {
        physics.step(&mut world, h);
    }
    // 1e-12: a hundred roundings of numbers of order 10
    assert!((v(&world, mild).x - 10.0 / (1.0 + 0.5 * h).powi(100)).abs() < 1e-12);
    assert!((w(&world, mild).x - 10.0 / (1.0 + 0.25 * h).powi(100)).abs() < 1e-12);
    assert!(v(&world, wild).length() < 1e-12 && w(&world, wild).length() < 1e-12);
}

#[test]
fn forces_of_the_user_act_through_all_substeps_and_are_cleared_after_the_step() {
    let mut world = World::new();
    let body = world.spawn(RigidBody::dynamic(2.0, DMat3::IDENTITY));
    let mut physics = weightless();
    physics.settings.substeps = 4;
    physics.add_system(turnbuckle::Stage::Forces, "push", |step| {
        for force in step.world.query_mut::<&mut Force>() {
            force.0.y += 3.0;
        }
    });
    world.get::<&mut Force>(body).unwrap().0.x = 8.0;
    physics.step(&mut world, 0.5);
    // m v = f h for both forces, to the last rounding
    assert!((v(&world, body) - DVec3::new(2.0, 0.75, 0.0)).length() < 1e-15);
    assert_eq!(world.get::<&Force>(body).unwrap().0, DVec3::ZERO);
    let push = physics.timings().into_iter().find(|t| t.name == "push").unwrap();
    assert_eq!(push.calls, 4);
}

/// A rod without mass between the centres of two bodies.
struct Rod {
    a: Entity,
    b: Entity,
    length: f64,
}

impl Constraint for Rod {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }
    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter<'_>) {
        let span = b.position - a.position;
        let n = span.normalize_or(DVec3::Z);
        out.push(Row {
            jacobian: [Twist::linear(-n), Twist::linear(n)],
            violation: span.length() - self.length,
            ..Row::default()
        });
    }
}

#[test]
fn a_pendulum_swings_with_the_period_of_the_elliptic_integral() {
    let mut world = World::new();
    let pivot = world.spawn(RigidBody::fixed());
    let bob = world.spawn(RigidBody::dynamic(3.0, DMat3::IDENTITY).at(DVec3::new(1.0, 0.0, 0.0)));
    let rod = world.spawn((Rod { a: pivot, b: bob, length: 1.0 },));
    let mut physics = Physics::new();
    physics.add_constraint::<Rod>();
    let (h, mut crossings, mut last) = (1.0 / 2000.0, Vec::new(), 1.0);
    for step in 1..=10_000 {
        physics.step(&mut world, h);
        let x = x(&world, bob).x;
        if x * last < 0.0 {
            crossings.push(h * (f64::from(step) - x / (x - last)));
        }
        last = x;
    }
    let period = 2.0 * (crossings.last().unwrap() - crossings[0]) / (crossings.len() - 1) as f64;
    // release from the horizontal: T = 4 K(sin 45°) √(l/g), K = 1.8540746773013719
    let exact = 4.0 * 1.854_074_677_301_372 * (1.0 / 9.81f64).sqrt();
    // first order in h = 5e-4
    assert!((period / exact - 1.0).abs() < 1e-3, "{period} against {exact}");
    assert!(physics.report().joint_error_max < 1e-4);
    assert_eq!(world.get::<&RowImpulses>(rod).unwrap().0.len(), 1);
    assert!(physics.systems().contains(&"Rod"));
}

#[test]
fn a_kinematic_body_reaches_its_targets_and_carries_what_hangs_on_it() {
    let mut world = World::new();
    let hand = world.spawn(RigidBody::kinematic());
    let load = world.spawn(RigidBody::dynamic(10.0, DMat3::IDENTITY).at(DVec3::new(0.0, 0.0, -1.0)));
    world.spawn((Rod { a: hand, b: load, length: 1.0 },));
    let mut physics = Physics::new();
    physics.add_constraint::<Rod>();
    let turn = DQuat::from_rotation_z(0.3);
    for step in 1..=60 {
        let position = DVec3::new(0.0, 0.0, 0.01 * f64::from(step));
        world.insert_one(hand, KinematicTarget { position, rotation: turn }).unwrap();
        physics.step(&mut world, 1.0 / 60.0);
        // one rounding of x + h ((t − x)/h) a step
        assert!((x(&world, hand) - position).length() < 1e-14);
    }
    // angle_between is an arc cosine near one: half the digits
    assert!(q(&world, hand).angle_between(turn) < 1e-7);
    // lifted by 0.6 m; the rod gives C λ a step, far below 1 mm
    assert!((x(&world, load).z + 0.4).abs() < 1e-3);
}

/// Steps for a second; returns the change of energy and the work told.
fn energy_and_work(
    world: &mut World,
    physics: &mut Physics,
    mut before: impl FnMut(&mut World),
) -> (f64, f64) {
    let (mut start, mut work, mut end) = (None, 0.0, 0.0);
    for _ in 0..120 {
        before(world);
        let report = physics.step(world, 1.0 / 120.0);
        end = report.kinetic + report.potential;
        // The first step only says where the energy starts.
        match start {
            None => start = Some(end),
            Some(_) => work += report.work_done,
        }
    }
    (end - start.unwrap(), work)
}

#[test]
fn the_work_of_forces_motors_and_carriers_is_told() {
    use turnbuckle::constraint::{Axis, Frame, Frames, Motor, Prismatic, Revolute};
    // All balances below are exact in exact arithmetic; 1e-9 of the energies met leaves room for the residual of the solves.
    let close = |(gain, work): (f64, f64), what: &str| {
        assert!(gain > 1.0, "{what}: nothing happened, {gain}");
        assert!((gain - work).abs() < 1e-9 * gain.max(1.0), "{what}: {gain} J gained, {work} J put in");
    };
    let at = |p: DVec3| Frame { anchor: p, rotation: DQuat::IDENTITY };
    let body = || RigidBody::dynamic(2.0, DMat3::IDENTITY);

    let mut world = World::new();
    let pushed = world.spawn(body());
    let push = |world: &mut World| {
        *world.get::<&mut Force>(pushed).unwrap() = Force(DVec3::new(3.0, 1.0, 0.0));
        *world.get::<&mut Torque>(pushed).unwrap() = Torque(DVec3::Z * 2.0);
    };
    close(energy_and_work(&mut world, &mut weightless(), push), "a force");

    // A game that sets velocities puts energy in as well.
    let kick = |world: &mut World| world.get::<&mut LinearVelocity>(pushed).unwrap().0 += DVec3::X;
    close(energy_and_work(&mut world, &mut weightless(), kick), "a velocity that is set");

    let mut world = World::new();
    let (ground, wheel) = (world.spawn(RigidBody::fixed()), world.spawn(body()));
    let frames = Frames { a: at(DVec3::ZERO), b: at(DVec3::ZERO) };
    let motor = Motor::Velocity { target: 10.0, max_force: 2.0 };
    world.spawn((Revolute { axis: Axis::FREE.driven(motor), ..Revolute::new(ground, wheel, frames) },));
    close(energy_and_work(&mut world, &mut weightless(), |_| ()), "a motor");

    let mut world = World::new();
    let (lift, load) = (
        world.spawn(RigidBody::kinematic().moving(DVec3::Z, DVec3::ZERO)),
        world.spawn(body().moving(DVec3::Z, DVec3::ZERO)),
    );
    world.spawn((Prismatic::new(lift, load, frames),));
    close(energy_and_work(&mut world, &mut Physics::new(), |_| ()), "a kinematic body that lifts");
}

#[test]
fn angles_of_joints_are_gaps_at_the_size_of_the_smaller_body() {
    use turnbuckle::constraint::{Fixed, Frame, Frames};
    let mut world = World::new();
    // A box of 0.1 m: its diagonal is √3 × 0.1 m, and it is turned by 0.01 rad against the joint.
    let inertia = DMat3::from_diagonal(DVec3::splat(2.0 * 0.01 / 6.0));
    let small = world.spawn(RigidBody::dynamic(2.0, inertia).turned(DQuat::from_rotation_z(0.01)));
    let ground = world.spawn(RigidBody::fixed());
    let frame = Frame { anchor: DVec3::ZERO, rotation: DQuat::IDENTITY };
    world.spawn((Fixed::new(ground, small, Frames { a: frame, b: frame }),));
    let mut physics = weightless();
    physics.settings.tuning.joint_correction = 0.0;
    let report = physics.step(&mut world, 1.0 / 60.0);
    let ratio = report.joint_gap_max / report.joint_error_max;
    // The ratio is a product and a square root: roundings only.
    assert!((ratio - 0.03f64.sqrt()).abs() < 1e-12, "{ratio}");
    assert!(report.joint_error_max > 1e-3, "the joint is open: {}", report.joint_error_max);
}
