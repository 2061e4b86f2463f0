//! Substructured = whole on the problems that the papers' scenes really pose, for every partitioner and size.
//!
//! A run of `TURNBUCKLE_EQUIVALENCE_STEPS=300 cargo test --release --test equivalence_scenes -- --nocapture` looks at every
//! step of 300; by default a few steps of each scene are taken.

use std::sync::{Arc, Mutex};
use turnbuckle::Stage;
use turnbuckle::coupling::body_graph;
use turnbuckle::coupling::cost;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Serial;
use turnbuckle::coupling::flat::Substructured;
use turnbuckle::graph::{Grouping, min_degree, semantic};
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution};

/// Scene and the step from which on it has something to solve.
const SCENES: [(&str, u64); 7] = [
    ("log_tower", 2),
    ("cable_spinner", 2),
    ("chain_wrap", 40),
    ("chain_drop", 30),
    ("rock_pile", 40),
    ("net_truck", 22),
    ("tandem_cranes", 6),
];

struct Frame {
    step: u64,
    problem: RowProblem,
    labels: Vec<Label>,
    hints: Vec<Option<u32>>,
}

/// The largest island of every `every`-th step from `first` to `last`.
fn capture(name: &str, first: u64, every: u64, last: u64) -> Vec<Frame> {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap();
    let frames = Arc::new(Mutex::new(Vec::new()));
    let sink = frames.clone();
    scene.physics.add_system(Stage::Factor, "capture", move |step| {
        let number = step.report.step;
        if number < first || !(number - first).is_multiple_of(every) || step.work.substep.0 > 0 {
            return;
        }
        if let Some(island) = step.work.islands.iter().max_by_key(|i| i.rows.len()) {
            sink.lock().unwrap().push(Frame {
                step: number,
                problem: island.problem.clone(),
                labels: island.solution.labels.clone(),
                hints: island.bodies.iter().map(|&slot| step.work.hints[slot as usize]).collect(),
            });
        }
    });
    let dt = scene.dt();
    for _ in 0..last {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    std::mem::take(&mut *frames.lock().unwrap())
}

/// Semantic where bodies have names, minimum degree from 4 to 64 bodies, and what `auto` would do for two threads and eight.
fn groupings(frame: &Frame) -> Vec<(String, Grouping)> {
    let graph = body_graph(&frame.problem);
    let mut all: Vec<(String, Grouping)> =
        [4, 8, 16, 32, 64].map(|n| (format!("min-degree:{n}"), min_degree::partition(&graph, n))).into();
    if frame.hints.iter().any(Option::is_some) {
        all.push(("semantic".into(), semantic::partition(&graph, &frame.hints)));
    }
    let mut capped = graph.clone();
    capped.cap_weights(6);
    all.extend([2, 8].map(|threads| (format!("auto for {threads}"), cost::choose(&capped, threads))));
    all.retain(|(_, grouping)| grouping.count > 1);
    all
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

#[test]
fn every_partitioner_gives_the_velocities_of_the_whole_on_the_papers_scenes() {
    let steps = std::env::var("TURNBUCKLE_EQUIVALENCE_STEPS").ok().and_then(|n| n.parse::<u64>().ok());
    for (name, first) in SCENES {
        let (first, every, last) = steps.map_or((first, 4, first + 8), |n| (1, 1, n));
        let (mut solves, mut unsettled, mut worst, mut worst_residual) = (0u32, 0u32, 0.0f64, 0.0f64);
        for frame in capture(name, first, every, last) {
            let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
            let mut whole = warm.clone();
            let stats = RowSolver::new(Method::Auto).solve(&frame.problem, &mut whole);
            assert!(stats.converged, "{name}, step {}: {:.1e}", frame.step, stats.residual_relative);
            for (how, grouping) in groupings(&frame) {
                let mut solver = Solver::<Substructured<Serial>>::new(Method::Auto);
                solver.linear_mut().set_grouping(&grouping, Seam::Bodies);
                let mut cut = warm.clone();
                let stats = solver.solve(&frame.problem, &mut cut);
                solves += 1;
                worst_residual = worst_residual.max(stats.residual_relative);
                if !stats.converged {
                    unsettled += 1;
                    println!("{name}, step {}, {how}: residual {:.1e}", frame.step, stats.residual_relative);
                    continue;
                }
                let off = distance(&whole.v, &cut.v);
                worst = worst.max(off);
                // The bound: velocities of solves with a residual below 1e-9 agree to 1e-8 of the largest.
                assert!(off <= 1e-8, "{name}, step {}, {how}: v is off by {off:.1e}", frame.step);
            }
        }
        println!(
            "{name}: {solves} cut solves, {unsettled} unsettled, worst residual {worst_residual:.1e}, v off by {worst:.1e}"
        );
        assert_eq!(unsettled, 0, "{name}");
    }
}
