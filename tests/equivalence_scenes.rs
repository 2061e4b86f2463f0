//! Substructured = whole on the problems that the papers' scenes really pose, for every partitioner and size.
//!
//! `TURNBUCKLE_EQUIVALENCE_STEPS=300 cargo test --release --test equivalence_scenes -- --nocapture` looks at every step of
//! 300, in eight ways of cutting it each (some five minutes); by default a few steps of each scene are taken.
//! `TURNBUCKLE_EQUIVALENCE_SCENES=net_truck,bridge` names the scenes.

use std::sync::{Arc, Mutex};
use std::time::Instant;
use turnbuckle::Stage;
use turnbuckle::coupling::cost;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Serial;
use turnbuckle::coupling::substructured::Substructured;
use turnbuckle::coupling::{body_graph, cutting_graph};
use turnbuckle::graph::{Grouping, min_degree, semantic};
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution};

/// Scene and the step from which on it has something to solve.
const SCENES: [(&str, u64); 8] = [
    ("log_tower", 2),
    ("cable_spinner", 2),
    ("chain_wrap", 40),
    ("chain_drop", 30),
    ("rock_pile", 40),
    ("net_truck", 22),
    ("tandem_cranes", 6),
    ("bridge", 3),
];

struct Frame {
    step: u64,
    problem: RowProblem,
    labels: Vec<Label>,
    hints: Vec<Option<u32>>,
}

/// Calls `look` with the largest island of every `every`-th step from `first` to `last`.
fn watch(name: &str, first: u64, every: u64, last: u64, mut look: impl FnMut(Frame)) {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap();
    let seen = Arc::new(Mutex::new(None));
    let sink = seen.clone();
    scene.physics.add_system(Stage::Factor, "capture", move |step| {
        let number = step.report.step;
        if number < first || !(number - first).is_multiple_of(every) || step.work.substep.0 > 0 {
            return;
        }
        if let Some(island) = step.work.islands.iter().max_by_key(|i| i.rows.len()) {
            *sink.lock().unwrap() = Some(Frame {
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
        let frame = seen.lock().unwrap().take();
        frame.into_iter().for_each(&mut look);
    }
}

/// A way of cutting: its name and what it makes of a frame.
type Way = (&'static str, fn(&Frame) -> Grouping);

/// Minimum degree from 4 to 64 bodies, semantic where bodies have names, and what `auto` would do for two threads and eight.
const WAYS: [Way; 8] = [
    ("min-degree:4", |frame| by_degree(frame, 4)),
    ("min-degree:8", |frame| by_degree(frame, 8)),
    ("min-degree:16", |frame| by_degree(frame, 16)),
    ("min-degree:32", |frame| by_degree(frame, 32)),
    ("min-degree:64", |frame| by_degree(frame, 64)),
    ("semantic", |frame| semantic::partition(&body_graph(&frame.problem), &frame.hints)),
    ("auto for 2", |frame| by_cost(frame, 2)),
    ("auto for 8", |frame| by_cost(frame, 8)),
];

fn by_degree(frame: &Frame, most: u32) -> Grouping {
    min_degree::partition(&body_graph(&frame.problem), most)
}

fn by_cost(frame: &Frame, threads: u32) -> Grouping {
    let (graph, rows) = cutting_graph(&frame.problem);
    cost::choose(&graph, rows, threads)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

/// What a scene's cut solves came to.
#[derive(Default)]
struct Tally {
    solves: [u32; WAYS.len()],
    unsettled: u32,
    worst: f64,
    worst_residual: f64,
}

/// Solves a frame whole and cut, and compares.
fn compare(name: &str, frame: &Frame, ways: impl Iterator<Item = usize>, tally: &mut Tally) {
    let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let mut whole = warm.clone();
    let stats = RowSolver::new(Method::Auto).solve(&frame.problem, &mut whole);
    assert!(stats.converged, "{name}, step {}: {:.1e}", frame.step, stats.residual_relative);
    for way in ways {
        let (how, cut_up) = WAYS[way];
        let grouping = cut_up(frame);
        if grouping.count < 2 {
            continue;
        }
        let mut solver = Solver::<Substructured<Serial>>::new(Method::Auto);
        solver.linear_mut().set_grouping(&grouping, Seam::Bodies);
        let mut cut = warm.clone();
        let stats = solver.solve(&frame.problem, &mut cut);
        tally.solves[way] += 1;
        tally.worst_residual = tally.worst_residual.max(stats.residual_relative);
        if !stats.converged {
            tally.unsettled += 1;
            println!("{name}, step {}, {how}: residual {:.1e}", frame.step, stats.residual_relative);
            continue;
        }
        let off = distance(&whole.v, &cut.v);
        tally.worst = tally.worst.max(off);
        // The bound: velocities of solves with a residual below 1e-9 agree to 1e-8 of the largest.
        assert!(off <= 1e-8, "{name}, step {}, {how}: v is off by {off:.1e}", frame.step);
    }
}

#[test]
fn every_partitioner_gives_the_velocities_of_the_whole_on_the_papers_scenes() {
    let steps = std::env::var("TURNBUCKLE_EQUIVALENCE_STEPS").ok().and_then(|n| n.parse::<u64>().ok());
    let asked = std::env::var("TURNBUCKLE_EQUIVALENCE_SCENES").ok();
    for (name, first) in SCENES {
        if asked.as_ref().is_some_and(|asked| !asked.split(',').any(|a| a == name)) {
            continue;
        }
        let (first, every, last) = steps.map_or((first, 4, first + 8), |n| (1, 1, n));
        let (mut tally, start) = (Tally::default(), Instant::now());
        watch(name, first, every, last, |frame| {
            compare(name, &frame, 0..WAYS.len(), &mut tally);
        });
        let Tally { solves, unsettled, worst, worst_residual } = tally;
        println!(
            "{name}: {} cut solves ({}), {unsettled} unsettled, worst residual {worst_residual:.1e}, v off by {worst:.1e}; {:.0} s",
            solves.iter().sum::<u32>(),
            WAYS.iter().zip(&solves).map(|((how, _), n)| format!("{how} {n}")).collect::<Vec<_>>().join(", "),
            start.elapsed().as_secs_f64(),
        );
        assert_eq!(unsettled, 0, "{name}");
    }
}
