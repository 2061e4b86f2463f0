//! Couplings, nets of points and subsystems: against the same matter written otherwise, and bad input.

use glam::DVec3;
use std::sync::{Arc, Mutex};
use turnbuckle::prelude::*;
use turnbuckle::settings::Integrator;
use turnbuckle::solver::{RowProblem, Solution};
use turnbuckle::testing::state_hash;

#[allow(dead_code)]
#[path = "../examples/custom_matter.rs"]
mod custom_matter;

const H: f64 = 1.0 / 60.0;

fn x(world: &World, body: Entity) -> DVec3 {
    world.get::<&Position>(body).unwrap().0
}

fn v(world: &World, body: Entity) -> DVec3 {
    world.get::<&LinearVelocity>(body).unwrap().0
}

fn run(world: &mut World, physics: &mut Physics, steps: u32) {
    for _ in 0..steps {
        let report = physics.step(world, H);
        assert!(
            report.converged && report.troubles.is_empty(),
            "step {}: {:?}",
            report.step,
            report.troubles
        );
    }
}

/// n × n bodies 0.1 m apart, tied to their neighbours and across by springs.
fn net(world: &mut World, n: usize, mut body: impl FnMut(&mut World, DVec3) -> Entity) -> Vec<Entity> {
    let at = |k: usize| DVec3::new(0.1 * (k % n) as f64, 0.1 * (k / n) as f64, 0.02 * (k % 3) as f64);
    let bodies: Vec<Entity> = (0..n * n).map(|k| body(world, at(k))).collect();
    for k in 0..n * n {
        let (right, up) = ((k + 1) % n != 0, k + n < n * n);
        for (other, there) in [(k + 1, right), (k + n, up), (k + n + 1, right && up)] {
            if there {
                let length = 0.98 * at(k).distance(at(other));
                world.spawn((Spring::between(bodies[k], bodies[other], length, 800.0).damped(0.3),));
            }
        }
    }
    bodies
}

fn hang(world: &mut World, bodies: &[Entity], corners: &[usize]) -> Vec<Entity> {
    let hold = |world: &mut World, k: usize| {
        let at = x(world, bodies[k]);
        let pin = world.spawn(RigidBody::fixed().at(at));
        world.spawn((Ball::between(pin, DVec3::ZERO, bodies[k], DVec3::ZERO),))
    };
    corners.iter().map(|&k| hold(world, k)).collect()
}

/// Keeps a body from turning.
struct Lock(Entity, Entity);

impl Constraint for Lock {
    fn bodies(&self) -> [Entity; 2] {
        [self.0, self.1]
    }
    fn write_rows(&self, _: [&BodyView; 2], out: &mut RowWriter) {
        for axis in DVec3::AXES {
            out.push(Row { jacobian: [Twist::angular(-axis), Twist::angular(axis)], ..Row::default() });
        }
    }
}

type Problems = Arc<Mutex<Vec<(RowProblem, Solution)>>>;

fn keep_problems(physics: &mut Physics) -> Problems {
    let kept = Problems::default();
    let to = kept.clone();
    physics.add_system(Stage::IndexSets, "keep", move |step| {
        let islands = step.work.islands.iter().map(|i| (i.problem.clone(), i.solution.clone()));
        *to.lock().unwrap() = islands.collect();
    });
    kept
}

/// v and λ of A v − Jᵀλ = p, J v + C λ = −d by elimination with pivots.
fn dense(problem: &RowProblem) -> (Vec<f64>, Vec<f64>) {
    let (n, m) = (6 * problem.bodies(), problem.rows());
    let size = n + m;
    let mut a = vec![vec![0.0; size + 1]; size];
    for (body, mass) in problem.mass.iter().enumerate() {
        for i in 0..6 {
            (0..6).for_each(|j| a[6 * body + i][6 * body + j] += mass[6 * i + j]);
            a[6 * body + i][size] = problem.momentum[body][i];
            if i >= problem.width_of(body) {
                a[6 * body + i][6 * body + i] = 1.0;
            }
        }
    }
    for c in &problem.couplings {
        for i in 0..6 {
            for j in 0..6 {
                a[6 * c.a as usize + i][6 * c.b as usize + j] += c.block[6 * i + j];
                a[6 * c.b as usize + j][6 * c.a as usize + i] += c.block[6 * i + j];
            }
        }
    }
    for block in &problem.blocks {
        for row in 0..block.rows {
            let r = (block.row + row) as usize;
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                for (c, j) in problem.jacobian_of(block, row, k as u32).iter().enumerate() {
                    a[6 * body as usize + c][n + r] -= j;
                    a[n + r][6 * body as usize + c] += j;
                }
            }
            a[n + r][n + r] = problem.compliance[r];
            a[n + r][size] = -problem.d[r];
        }
    }
    for k in 0..size {
        let pivot = (k..size).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        let top = a[k].clone();
        for row in a[k + 1..].iter_mut().filter(|row| row[k] != 0.0) {
            let factor = row[k] / top[k];
            (k..=size).for_each(|j| row[j] -= factor * top[j]);
        }
    }
    let mut solved = vec![0.0; size];
    for k in (0..size).rev() {
        let rest: f64 = (k + 1..size).map(|j| a[k][j] * solved[j]).sum();
        solved[k] = (a[k][size] - rest) / a[k][k];
    }
    let lambda = solved.split_off(n);
    (solved, lambda)
}

fn close(a: &[f64], b: &[f64], what: &str) {
    let size = a.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let off = a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(a.len() == b.len() && off <= 1e-10 * size, "{what}: off by {off:e} of {size:e}");
}

#[test]
fn a_net_of_points_is_one_of_locked_bodies_and_what_elimination_finds() {
    let build = |points: bool| {
        let (mut world, mut physics) = (World::new(), Physics::new());
        physics.add_constraint::<Lock>();
        let ground = world.spawn(RigidBody::fixed());
        let bodies = net(&mut world, 5, |world, at| match points {
            true => world.spawn(PointBody::new(0.02).at(at)),
            false => {
                let body = world.spawn(RigidBody::dynamic(0.02, DMat3::IDENTITY * 1e-4).at(at));
                world.spawn((Lock(ground, body),));
                body
            }
        });
        let joints = hang(&mut world, &bodies, &[0, 4]);
        let kept = keep_problems(&mut physics);
        (world, physics, bodies, joints, kept)
    };
    let (mut narrow, mut wide) = (build(true), build(false));
    for step in 0..20 {
        let told = |(world, physics, bodies, joints, kept): &mut (
            World,
            Physics,
            Vec<Entity>,
            Vec<Entity>,
            Problems,
        )| {
            run(world, physics, 1);
            let velocities: Vec<f64> = bodies.iter().flat_map(|&b| v(world, b).to_array()).collect();
            let rows = |joint: &Entity| world.get::<&RowImpulses>(*joint).unwrap().0.clone();
            let lambda: Vec<f64> = joints.iter().flat_map(rows).map(|row| row.lambda).collect();
            let problems = kept.lock().unwrap();
            assert_eq!(problems.len(), 1, "one island");
            let (problem, solution) = &problems[0];
            let (exact_v, exact_lambda) = dense(problem);
            close(&exact_v, &solution.v, &format!("v, step {step}"));
            close(&exact_lambda, &solution.lambda, &format!("λ, step {step}"));
            (velocities, lambda, problem.width.len(), problem.couplings.len())
        };
        let (a, b) = (told(&mut narrow), told(&mut wide));
        close(&a.0, &b.0, "v of points and of locked bodies");
        close(&a.1, &b.1, "λ of points and of locked bodies");
        assert_eq!((a.2, b.2), (25, 0), "points are narrow, bodies are not");
        assert!(a.3 > 50 && a.3 == b.3, "springs are blocks of A");
    }
}

#[test]
fn a_coupled_spring_moves_bodies_as_its_row_does() {
    let swing = |coupled: bool| {
        let (mut world, mut physics) = (World::new(), Physics::new());
        // One step for both: the chord step, which is of second order, has springs as rows alone.
        physics.settings.integrator = Integrator::SemiImplicit;
        let box_ = world.spawn(Solid::cuboid(DVec3::new(0.4, 0.2, 0.3), 200.0));
        let bead = world.spawn(PointBody::new(0.5).at(DVec3::new(1.0, 0.2, 0.1)).moving(DVec3::Y));
        let wall = world.spawn(RigidBody::kinematic().at(DVec3::NEG_X).moving(DVec3::Z * 0.3, DVec3::ZERO));
        // Longer than they ever get: they push, and their pull, which turns with them, is none.
        for (a, b, on_a, on_b) in [
            (box_, bead, DVec3::new(0.2, 0.1, 0.0), DVec3::ZERO),
            (wall, box_, DVec3::ZERO, DVec3::new(-0.2, 0.0, 0.1)),
        ] {
            if coupled {
                let spring = Spring::between(a, b, 99.0, 0.3).damped(0.8);
                world.spawn((Spring { anchor_a: on_a, anchor_b: on_b, ..spring },));
            } else {
                world.spawn((SpringDamper::between(a, on_a, b, on_b, 99.0, 0.3).damped(0.8),));
            }
        }
        run(&mut world, &mut physics, 60);
        let work = physics.report().work_done;
        (x(&world, box_), x(&world, bead), work)
    };
    let (a, b) = (swing(true), swing(false));
    // Round-off of 60 steps.
    assert!((a.0 - b.0).length() < 1e-11 && (a.1 - b.1).length() < 1e-11, "{a:?} {b:?}");
    assert!((a.2 - b.2).abs() < 1e-9, "{a:?} {b:?}");
}

#[test]
fn a_net_catches_a_ball_sleeps_wakes_and_is_restored() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let ground = ShapeHandle::cuboid(DVec3::new(5.0, 5.0, 0.5));
    world.spawn(Solid::fixed(ground).at(DVec3::NEG_Z * 0.6));
    let bodies = net(&mut world, 6, |world, at| {
        let bead = Collider::new(ShapeHandle::sphere(0.03));
        let point = world.spawn(PointBody::new(0.02).at(at));
        world.insert_one(point, Colliders::one(bead)).unwrap();
        point
    });
    let ball = world.spawn(Solid::sphere(0.08, 300.0).at(DVec3::new(0.25, 0.25, 0.3)));
    run(&mut world, &mut physics, 20);
    let saved = physics.snapshot(&world);
    run(&mut world, &mut physics, 30);
    let there = state_hash(&world);
    physics.restore(&mut world, &saved).unwrap();
    physics.set_threads(2);
    run(&mut world, &mut physics, 30);
    assert_eq!(there, state_hash(&world), "restored, and on two threads");
    assert!(x(&world, ball).z > -0.1 && bodies.iter().all(|&b| x(&world, b).z > -0.1));
    world.despawn(ball).unwrap();
    run(&mut world, &mut physics, 600);
    assert!(bodies.iter().all(|&b| world.get::<&Rest>(b).unwrap().asleep), "at rest on the ground");
    world.get::<&mut Force>(bodies[0]).unwrap().0 = DVec3::Z;
    run(&mut world, &mut physics, 1);
    assert!(bodies.iter().all(|&b| !world.get::<&Rest>(b).unwrap().asleep), "tied to what was pushed");
}

/// Two bodies and a block of A that gives energy, or is not symmetric.
struct Pushy(Entity, Entity, f64);

impl Constraint for Pushy {
    fn bodies(&self) -> [Entity; 2] {
        [self.0, self.1]
    }
    fn write_rows(&self, _: [&BodyView; 2], out: &mut RowWriter) {
        let mut block = [0.0; 144];
        (0..3).for_each(|i| (block[13 * i], block[13 * (6 + i)]) = (1.0, 1.0));
        (0..3).for_each(|i| (block[12 * i + 6 + i], block[12 * (6 + i) + i]) = (self.2, -1.0));
        out.couple_block(&block, &[0.0; 12]);
    }
}

#[test]
fn bad_couplings_are_named_and_nothing_spreads() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.add_constraint::<Pushy>();
    let points: Vec<Entity> =
        (0..5).map(|k| world.spawn(PointBody::new(1.0).at(DVec3::X * f64::from(k)))).collect();
    let bad = world.spawn(PointBody::new(0.0).at(DVec3::Y));
    let spring = |a, b, k| Spring::between(a, b, 1.0, k);
    let itself = world.spawn((spring(points[0], points[0], 10.0),));
    let negative = world.spawn((spring(points[0], points[1], -10.0),));
    let none = world.spawn((spring(points[0], points[1], f64::NAN),));
    let gives = world.spawn((Pushy(points[1], points[2], -1.5),));
    let uneven = world.spawn((Pushy(points[1], points[2], -0.5),));
    world.spawn((Pushy(points[2], points[3], -1.0),));
    world.spawn((spring(points[4], bad, 50.0),));
    let report = physics.step(&mut world, H);
    assert_eq!((report.quarantined, report.converged), (1, true), "{:?}", report.troubles);
    for entity in [itself, negative, none, gives, uneven, bad] {
        let named = |t: &&turnbuckle::report::Trouble| t.to_string().contains(&format!("{entity:?}"));
        assert!(report.troubles.iter().any(|t| named(&t)), "{entity:?}: {:?}", report.troubles);
    }
    assert_eq!(report.trouble_count, 6, "{:?}", report.troubles);
    for _ in 0..60 {
        assert!(physics.step(&mut world, H).converged);
    }
    let fallen = |k: usize| x(&world, points[k]).z;
    let free = -0.5 * 9.81 * (61.0 * H).powi(2);
    // The midpoint step is exact for a constant force; a block on the difference of two that fall alike does nothing.
    assert!((0..4).all(|k| (fallen(k) - free).abs() < 1e-10), "{} {free}", fallen(0));
    assert!(fallen(4) > -2.0 && x(&world, bad) == DVec3::Y, "hangs on the one that stands still");
}

/// Ports that move as free points of a kilogram do, until they are spoilt.
struct Lumps {
    ports: Vec<Entity>,
    spoilt: Spoilt,
    told: DVec3,
}

#[derive(Clone, Copy, PartialEq)]
enum Spoilt {
    Not,
    Motion,
    Response,
    Silent,
    Uneven,
    Negative,
}

impl Subsystem for Lumps {
    fn ports(&self) -> &[Entity] {
        &self.ports
    }
    fn predict(&mut self, _: &[BodyView], _: f64, velocity: &mut [f64]) {
        if self.spoilt == Spoilt::Motion {
            velocity[0] = f64::NAN;
        }
    }
    fn respond(&mut self, impulse: &[f64], change: &mut [f64]) -> bool {
        change.copy_from_slice(impulse);
        match self.spoilt {
            Spoilt::Response => change[1] = f64::INFINITY,
            Spoilt::Uneven => change[0] += 0.1 * impulse[1],
            Spoilt::Negative => change.iter_mut().for_each(|x| *x = -*x),
            _ => {}
        }
        self.spoilt != Spoilt::Silent
    }
    fn commit(&mut self, impulse: &[f64]) -> bool {
        self.told += DVec3::from_slice(impulse);
        true
    }
}

/// Two ports, or two points, on a rod that carries a box, beside a stone that falls.
fn on_a_rod(subsystem: bool) -> (World, Physics, Vec<Entity>, Entity, Entity) {
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.add_subsystem::<Lumps>();
    let pin = world.spawn(RigidBody::fixed());
    let ports: Vec<Entity> = [0.4, 0.9].map(|x| world.spawn(PointBody::new(1.0).at(DVec3::X * x))).to_vec();
    let load = world.spawn(Solid::cuboid(DVec3::splat(0.2), 100.0).at(DVec3::X * 1.2));
    world.spawn((Distance::between(pin, DVec3::ZERO, ports[0], DVec3::ZERO, 0.4),));
    world.spawn((Distance::between(ports[0], DVec3::ZERO, ports[1], DVec3::ZERO, 0.5),));
    world.spawn((Ball::between(ports[1], DVec3::ZERO, load, DVec3::NEG_X * 0.3),));
    let stone = world.spawn(Solid::sphere(0.1, 1000.0).at(DVec3::Y * 5.0));
    let lumps = Lumps { ports: ports.clone(), spoilt: Spoilt::Not, told: DVec3::ZERO };
    let owner = match subsystem {
        true => world.spawn((lumps,)),
        false => world.spawn(()),
    };
    (world, physics, ports, stone, owner)
}

#[test]
fn ports_with_the_response_of_points_move_as_points_do() {
    let swing = |subsystem: bool| {
        let (mut world, mut physics, ports, _, owner) = on_a_rod(subsystem);
        // One step for both: islands with subsystems do not take the chord step.
        physics.settings.integrator = Integrator::SemiImplicit;
        run(&mut world, &mut physics, 120);
        let told = world.get::<&Lumps>(owner).ok().map(|lumps| lumps.told);
        (x(&world, ports[0]), x(&world, ports[1]), v(&world, ports[0]), told)
    };
    let (a, b) = (swing(true), swing(false));
    // Round-off of 120 steps of a double pendulum that swings once.
    assert!((a.0 - b.0).length() < 1e-9 && (a.1 - b.1).length() < 1e-9, "{a:?} {b:?}");
    // What came to the first port in all is what it has now.
    assert!((a.3.expect("it is a subsystem") - a.2).length() < 1e-9, "{a:?}");
}

#[test]
fn spoilt_subsystems_are_quarantined_and_nothing_spreads() {
    use Spoilt::*;
    for spoilt in [Motion, Response, Silent, Uneven, Negative] {
        let (mut world, mut physics, ports, stone, owner) = on_a_rod(true);
        run(&mut world, &mut physics, 10);
        world.get::<&mut Lumps>(owner).unwrap().spoilt = spoilt;
        let report = physics.step(&mut world, H);
        let told = report.troubles[0].to_string();
        assert!(report.trouble_count == 1 && told.contains(&format!("{owner:?}")), "{told}");
        assert!(report.quarantined == 2 && report.converged, "{told}");
        let (stood, before) = (x(&world, ports[1]), x(&world, stone));
        run(&mut world, &mut physics, 30);
        assert!(x(&world, ports[1]) == stood && x(&world, stone).z < before.z - 1.0, "{told}");
        // Mended, it goes on.
        world.get::<&mut Lumps>(owner).unwrap().spoilt = Not;
        for entity in [owner, ports[0], ports[1]] {
            world.remove_one::<Quarantined>(entity).unwrap();
        }
        run(&mut world, &mut physics, 10);
        assert!(x(&world, ports[1]) != stood && v(&world, ports[1]).is_finite(), "{told}");
    }
}

#[test]
fn ports_that_vanish_or_are_taken_are_named() {
    let (mut world, mut physics, ports, stone, owner) = on_a_rod(true);
    run(&mut world, &mut physics, 5);
    world.despawn(ports[0]).unwrap();
    let report = physics.step(&mut world, H);
    let told: Vec<String> = report.troubles.iter().map(|t| t.to_string()).collect();
    let gone = format!("{:?}", ports[0]);
    assert!(
        told.iter().any(|t| t.contains(&gone) && t.contains(&format!("subsystem {owner:?}"))),
        "{told:?}"
    );
    assert!(report.quarantined == 1 && x(&world, stone).is_finite());

    let (mut world, mut physics, ports, _, _) = on_a_rod(true);
    let twin = world.spawn((Lumps { ports: vec![ports[1]], spoilt: Spoilt::Not, told: DVec3::ZERO },));
    let report = physics.step(&mut world, H);
    let told = report.troubles[0].to_string();
    assert!(report.trouble_count == 1 && told.contains(&format!("{twin:?}")), "{told}");
}

#[test]
fn a_quarantined_subsystem_is_mended_by_a_restore() {
    let (mut world, mut physics, ports, _, owner) = on_a_rod(true);
    run(&mut world, &mut physics, 10);
    let saved = physics.snapshot(&world);
    run(&mut world, &mut physics, 20);
    let there = state_hash(&world);
    world.get::<&mut Lumps>(owner).unwrap().spoilt = Spoilt::Motion;
    physics.step(&mut world, H);
    world.get::<&mut Lumps>(owner).unwrap().spoilt = Spoilt::Not;
    physics.restore(&mut world, &saved).unwrap();
    run(&mut world, &mut physics, 20);
    assert_eq!(there, state_hash(&world));
    assert!(!world.satisfies::<&Quarantined>(ports[0]));
}

#[test]
fn a_net_of_ones_own_lives_in_the_pipeline() {
    custom_matter::main();
}
