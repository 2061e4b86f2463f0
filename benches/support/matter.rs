//! What a point costs beside a rigid body: a hanging sheet that is factored, a hanging chain that is stepped.

use std::sync::{Arc, Mutex};
use std::time::Instant;
use turnbuckle::prelude::*;
use turnbuckle::solver::mixed::MixedSystem;
use turnbuckle::solver::{Label, RowProblem};

const H: f64 = 1.0 / 60.0;

fn body(world: &mut World, points: bool, at: DVec3) -> Entity {
    match points {
        true => world.spawn(PointBody::new(0.05).at(at)),
        false => world.spawn(RigidBody::dynamic(0.05, DMat3::IDENTITY * 2e-4).at(at)),
    }
}

/// The problem of a sheet of n × n bodies that hangs on its upper edge by stiff springs, after some steps.
fn sheet(n: usize, points: bool) -> RowProblem {
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.set_threads(1);
    let at = |k: usize| DVec3::new(0.05 * (k % n) as f64, 0.0, -0.05 * (k / n) as f64);
    let bodies: Vec<Entity> = (0..n * n).map(|k| body(&mut world, points, at(k))).collect();
    for k in 0..n * n {
        let (right, down) = ((k + 1) % n != 0, k + n < n * n);
        for (a, b, there) in [
            (k, k + 1, right),
            (k, k + n, down),
            (k, k + n + 1, right && down),
            (k + 1, k + n, right && down),
        ] {
            if there {
                world.spawn((Spring::between(bodies[a], bodies[b], at(a).distance(at(b)), 1e5).damped(5.0),));
            }
        }
    }
    for &k in &[0, n / 2, n - 1] {
        let pin = world.spawn(RigidBody::fixed().at(at(k)));
        world.spawn((Ball::between(pin, DVec3::ZERO, bodies[k], DVec3::ZERO),));
    }
    let kept = Arc::new(Mutex::new(RowProblem::default()));
    let to = kept.clone();
    physics.add_system(Stage::IndexSets, "keep", move |step| {
        to.lock().expect("one thread").clone_from(&step.work.islands[0].problem);
    });
    for _ in 0..5 {
        let report = physics.step(&mut world, H);
        assert!(report.converged && report.troubles.is_empty(), "{:?}", report.troubles);
    }
    kept.lock().expect("one thread").clone()
}

/// Time of a factorization (ms), and its operations.
fn factor(system: &mut MixedSystem, problem: &RowProblem) -> (f64, u64) {
    let labels = vec![Label::Free; problem.rows()];
    system.load(problem);
    let start = Instant::now();
    let stats = system.factor(problem, &labels, None);
    (1e3 * start.elapsed().as_secs_f64(), stats.flops)
}

/// What a chain is made of.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    /// Points on rods.
    Rods,
    /// Points on stiff springs.
    Springs,
    /// Rigid bodies on ball joints.
    Bodies,
}

/// A chain of n bodies, 0.1 m apart, that hangs down.
fn chain(n: usize, links: Links) -> (World, Physics) {
    let (mut world, mut physics) = (World::new(), Physics::new());
    physics.set_threads(1);
    let at = |k: usize| DVec3::NEG_Z * 0.1 * k as f64;
    let mut before = world.spawn(RigidBody::fixed());
    for k in 1..=n {
        let next = body(&mut world, links != Links::Bodies, at(k));
        match links {
            Links::Springs => world.spawn((Spring::between(before, next, 0.1, 1e8).damped(1e3),)),
            Links::Rods => world.spawn((Distance::between(before, DVec3::ZERO, next, DVec3::ZERO, 0.1),)),
            Links::Bodies => {
                let half = DVec3::Z * 0.05;
                world.spawn((Ball::between(before, -half, next, half),))
            }
        };
        before = next;
    }
    (world, physics)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints both ratios; the two are measured in turns.
pub fn print() {
    let problems = [sheet(51, true), sheet(51, false)];
    let mut systems = [MixedSystem::default(), MixedSystem::default()];
    let (mut times, mut operations) = ([Vec::new(), Vec::new()], [0; 2]);
    for round in 0..22 {
        for k in 0..2 {
            let (time, flops) = factor(&mut systems[k], &problems[k]);
            operations[k] = flops;
            // The first factorization analyses.
            if round > 0 {
                times[k].push(time);
            }
        }
    }
    let [points, bodies] = times.map(median);
    println!(
        "\nsheet of 51 × 51, {} couplings: factor {points:.2} ms of points, {bodies:.2} ms of bodies: {:.1} × (aim: at least 6); \
         operations {:.1} ×: {:.0} and {:.0} million",
        problems[0].couplings.len(),
        bodies / points,
        operations[1] as f64 / operations[0] as f64,
        operations[0] as f64 * 1e-6,
        operations[1] as f64 * 1e-6
    );
    let kinds = [Links::Rods, Links::Springs, Links::Bodies];
    let mut chains = kinds.map(|links| chain(10_000, links));
    let (mut solves, mut steps) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for round in 0..12 {
        for (k, (world, physics)) in chains.iter_mut().enumerate() {
            let report = physics.step(world, H);
            assert!(report.converged && report.troubles.is_empty(), "{:?}", report.troubles);
            if round >= 3 {
                solves[k].push(report.solve_ms);
                steps[k].push(report.step_ms);
            }
        }
    }
    let (solves, steps) = (solves.map(median), steps.map(median));
    for (k, what) in ["points on rods", "points on springs"].into_iter().enumerate() {
        println!(
            "chain of 10,000 {what}: solve {:.1} ms, of bodies {:.1}: {:.2} ×; step {:.1} and {:.1} ms: {:.2} × (aim: at most 0.25)",
            solves[k],
            solves[2],
            solves[k] / solves[2],
            steps[k],
            steps[2],
            steps[k] / steps[2]
        );
    }
}
