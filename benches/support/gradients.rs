//! 003 Tables 6.2 to 6.4 and the inner iterations of §6.2.4: conjugate gradients inside pivoting against direct pivoting, on
//! the same recorded problems of whole scenes.
//!
//! As in the paper only frames with something tight count, times, outer iterations and errors are summed over the islands of a
//! frame, inner iterations are those of the island that takes longest, errors are the largest of all frames. Every frame of
//! every solver is a process of its own and is ended after `--limit` seconds.

use crate::spool::{self, Spool, Spooled};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use turnbuckle::Stage;
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::{Label, Method, RowSolver, generate};

/// The paper's figures of `bpp-pcg`, `pgcg` and `bpp`: mean outer iterations, largest error (J), mean ms.
type Paper = ([f64; 3], [f64; 3], [f64; 3]);

/// Name in the paper, scene, seconds over which frames are spread. Boxes come to rest within half a second, and nothing is tight
/// then: of them every frame of the first second counts.
const SCENES: [(&str, &str, f64, Paper); 7] = [
    ("boxes", "boxes", 1.0, ([1.6, 1.5, 1.6], [2.3e-11, 9.7e-23, 2.3e-11], [22.0, 27.0, 68.0])),
    (
        "tower",
        "log_tower",
        f64::INFINITY,
        ([40.9, 31.7, 40.9], [1.9e-11, 7.6e-12, 2.8e-17], [67.0, 160.0, 35.0]),
    ),
    (
        "spinner",
        "cable_spinner",
        f64::INFINITY,
        ([9.6, 9.5, 9.6], [6.3e-14, 6.0e-14, 2.7e-22], [1.3, 1.0, 5.3]),
    ),
    (
        "chain",
        "chain_wrap",
        f64::INFINITY,
        ([68.0, 17.2, 68.0], [1.2e-13, 1.1e-13, 3.5e-20], [1.1e3, 1.4e3, 5.1e2]),
    ),
    (
        "trucks",
        "trucks",
        f64::INFINITY,
        ([47.6, 7.8, 47.6], [8.6e-11, 9.3e-11, 1.4e-13], [9.3e3, 5.1e3, 9.8e2]),
    ),
    (
        "rocks",
        "rock_pile",
        f64::INFINITY,
        ([17.5, 64.4, 17.5], [9.4e-17, 2.4e-16, 6.4e-19], [2.0e4, 5.0e4, 6.3e2]),
    ),
    ("wall", "wall", f64::INFINITY, ([1.3e3, 32.9, 1.9e3], [1.8e10, 1.1e-11, 1.8e10], [5.4e4, 6.0e2, 4.7e3])),
];

/// In the paper's order, and ours last.
const METHODS: [Method; 4] = [Method::BppPcg, Method::Pgcg, Method::Bpp, Method::Auto];
/// Most outer iterations, as in the paper.
const MOST_OUTER: u32 = 20_000;

/// What a solver did on one frame; nothing if it was ended.
#[derive(Clone, Copy)]
struct Solved {
    ms: f64,
    outer: f64,
    inner: f64,
    error: f64,
    arrived: bool,
}

/// A scene's frames by every solver.
struct Results {
    scene: usize,
    rows: usize,
    islands: usize,
    /// Frames that were looked at, with something tight or not.
    seen: usize,
    /// By solver and frame.
    solved: [Vec<Option<Solved>>; 4],
}

/// The islands of `count` steps spread evenly over a scene's length, or so many seconds of it; nothing asleep.
fn record(name: &str, seconds: f64, count: u64) -> Vec<Vec<Spooled>> {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &LoadOptions::default()).expect("a scene of ours");
    scene.physics.settings.sleep = false;
    let dt = scene.dt();
    let steps = scene.steps(dt).min((seconds / dt).round() as u64);
    let every = (steps / count).max(1);
    let frames = Arc::new(Mutex::new(Vec::new()));
    let (sink, mut last) = (frames.clone(), 0);
    scene.physics.add_system(Stage::Factor, "record", move |step| {
        let number = step.report.step;
        if !number.is_multiple_of(every) || number == last {
            return;
        }
        last = number;
        let islands = step.work.islands.iter().filter(|i| i.problem.rows() > 0);
        let keep = |i: &turnbuckle::state::Island| Spooled {
            problem: i.problem.clone(),
            start: i.solution.clone(),
            hints: Vec::new(),
        };
        sink.lock().expect("one thread").push(islands.map(|i| keep(i)).collect());
    });
    for _ in 0..steps {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    std::mem::take(&mut *frames.lock().expect("one thread"))
}

/// The process of one frame and one solver: prints ms, outer, inner, error, whether all islands arrived, whether anything is tight.
/// The islands are solved once before, moving a little differently, so that analyses are at hand as in a running scene; where that
/// takes a third of the limit, its numbers count.
pub fn one(method: &str, limit: f64, file: &str) {
    let method = Method::from_name(method).expect("a solver of ours");
    let islands = spool::read(file);
    let mut solvers: Vec<RowSolver> = islands.iter().map(|_| RowSolver::new(method)).collect();
    for solver in &mut solvers {
        (solver.settings.max_pivots, solver.settings.max_outer) = (MOST_OUTER, MOST_OUTER);
    }
    let clock = Instant::now();
    let mut told = pass(&shaken(&islands), &mut solvers);
    if clock.elapsed().as_secs_f64() < 0.3 * limit {
        told = pass(&islands, &mut solvers);
    }
    println!("{}", told.map(|x| x.to_string()).join(" "));
}

/// The same islands with momenta that differ by a thousandth.
fn shaken(islands: &[Spooled]) -> Vec<Spooled> {
    let mut random = generate::Random::new(3);
    let mut shake = |i: &Spooled| {
        let (mut problem, start) = (i.problem.clone(), i.start.clone());
        problem.momentum.iter_mut().flatten().for_each(|p| *p *= 1.0 + 1e-3 * random.normal());
        Spooled { problem, start, hints: Vec::new() }
    };
    islands.iter().map(&mut shake).collect()
}

fn pass(islands: &[Spooled], solvers: &mut [RowSolver]) -> [f64; 6] {
    let [mut ms, mut outer, mut error, mut inner, mut longest] = [0.0; 5];
    let (mut arrived, mut tight) = (true, false);
    for (island, solver) in islands.iter().zip(solvers) {
        let mut solution = island.start.clone();
        solver.set_pivoting_failed(false);
        let clock = Instant::now();
        let stats = solver.solve(&island.problem, &mut solution);
        let own = 1e3 * clock.elapsed().as_secs_f64();
        ms += own;
        outer += f64::from(stats.pivots + stats.ipm_iterations);
        error += stats.residual_energy;
        if own >= longest {
            (longest, inner) = (own, stats.inner_iterations as f64);
        }
        arrived &= stats.converged;
        tight |= solution.labels.iter().any(|l| *l != Label::Free);
    }
    [ms, outer, inner, error, f64::from(u8::from(arrived)), f64::from(u8::from(tight))]
}

fn results(scene: usize, frames: &[Vec<Spooled>], limit: f64) -> Results {
    let every = SCENES[scene].2.is_finite();
    let rows = |f: &Vec<Spooled>| f.iter().map(|i| i.problem.rows()).sum::<usize>();
    let mut results = Results {
        scene,
        rows: frames.iter().map(rows).max().unwrap_or(0),
        islands: frames.iter().map(Vec::len).max().unwrap_or(0),
        seen: frames.len(),
        solved: Default::default(),
    };
    let patience = Duration::from_secs_f64(limit);
    for frame in frames.iter().filter(|f| !f.is_empty()) {
        let file = Spool::new(frame);
        let solve = |m: Method| file.solve(&["islands", m.name(), &limit.to_string()], patience);
        let told =
            |n: &[f64]| Solved { ms: n[0], outer: n[1], inner: n[2], error: n[3], arrived: n[4] == 1.0 };
        // Ours says whether the frame counts.
        let Some(ours) = solve(Method::Auto).filter(|n| n.len() == 6 && (every || n[5] == 1.0)) else {
            continue;
        };
        for (k, method) in METHODS.into_iter().enumerate() {
            let numbers = if method == Method::Auto { Some(ours.clone()) } else { solve(method) };
            results.solved[k].push(numbers.filter(|n| n.len() == 6).map(|n| told(&n)));
        }
    }
    results
}

/// Two digits, small numbers and large ones with an exponent, as in the paper.
fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if !a.is_finite() => "∞".into(),
        a if !(0.01..1e4).contains(&a) => format!("{x:.1e}"),
        a if a < 1.0 => format!("{x:.2}"),
        a if a < 100.0 => format!("{x:.1}"),
        _ => format!("{x:.0}"),
    }
}

impl Results {
    fn label(&self) -> String {
        let islands = if self.islands > 1 { format!(", {} islands", self.islands) } else { String::new() };
        let counted = self.solved[3].len();
        format!("{} ({} rows{islands}; {counted} of {} frames)", SCENES[self.scene].0, self.rows, self.seen)
    }

    /// What ended in time.
    fn ended(&self, k: usize) -> Vec<Solved> {
        self.solved[k].iter().flatten().copied().collect()
    }

    fn mean(&self, k: usize, of: impl Fn(&Solved) -> f64) -> f64 {
        let ended = self.ended(k);
        ended.iter().map(of).sum::<f64>() / ended.len() as f64
    }

    fn stopped(&self, k: usize) -> usize {
        self.solved[k].iter().filter(|s| s.is_none()).count()
    }

    /// One line of a table; `cell` of what ended, and the paper's figures in brackets.
    fn line(&self, cell: impl Fn(usize) -> String, paper: Option<[f64; 3]>) {
        let bracket =
            |k: usize| paper.filter(|_| k < 3).map_or(String::new(), |p| format!(" ({})", short(p[k])));
        let cells: Vec<String> = (0..4)
            .map(|k| match self.ended(k).len() {
                0 => format!("–{}", bracket(k)),
                _ => format!("{}{}", cell(k), bracket(k)),
            })
            .collect();
        println!("| {} | {} |", self.label(), cells.join(" | "));
    }

    /// Mean ms, a frame that was ended counted with the limit, and how much faster than `bpp` that is.
    fn time(&self, k: usize, limit: f64) -> String {
        let all = |k: usize| {
            let sum: f64 = self.solved[k].iter().map(|s| s.map_or(1e3 * limit, |s| s.ms)).sum();
            sum / self.solved[k].len() as f64
        };
        let (least, stopped) = (if self.stopped(k) > 0 { "≥ " } else { "" }, self.stopped(k));
        let ended = if stopped > 0 { format!(", {stopped} > {limit} s") } else { String::new() };
        let gain = if k == 2 { String::new() } else { format!(", {}×", short(all(2) / all(k))) };
        format!("{least}{}{gain}{ended}", short(all(k)))
    }

    fn arrived(&self, k: usize) -> String {
        let arrived = self.ended(k).iter().filter(|s| s.arrived).count();
        format!("{arrived} / {} / {}", self.ended(k).len(), self.solved[k].len())
    }
}

fn head(title: &str) {
    println!("\n{title}\n| example | BPP+PCG | PGCG | BPP | auto |\n|---|---|---|---|---|");
}

/// Prints those of the tables that are wanted, for those of the scenes that are asked for.
pub fn tables(wanted: &dyn Fn(&str) -> bool, asked: &[String], count: u64, limit: f64) {
    let narrowed = SCENES.iter().any(|s| asked.iter().any(|a| a == s.0 || a == s.1));
    let scenes = (0..SCENES.len())
        .filter(|k| !narrowed || asked.iter().any(|a| a == SCENES[*k].0 || a == SCENES[*k].1));
    let all: Vec<Results> =
        scenes.map(|k| results(k, &record(SCENES[k].1, SCENES[k].2, count), limit)).collect();
    println!(
        "\n003: {count} frames over the length of each scene (boxes: its first second, every frame counts), of which those with something tight count; {limit} s a frame and solver at most (–: none ended in time); the paper's figures in brackets"
    );
    if wanted("table62") {
        head("Table 6.2, mean outer iterations of the frames that ended");
        all.iter().for_each(|r| r.line(|k| short(r.mean(k, |s| s.outer)), Some(SCENES[r.scene].3.0)));
    }
    if wanted("table63") {
        head("Table 6.3, largest LCP error (J) of the frames that ended");
        let worst = |r: &Results, k| r.ended(k).iter().map(|s| s.error).fold(0.0, f64::max);
        all.iter().for_each(|r| r.line(|k| short(worst(r, k)), Some(SCENES[r.scene].3.1)));
        head("Frames: relative residual at most 1e-9 / ended in time / all");
        all.iter().for_each(|r| r.line(|k| r.arrived(k), None));
    }
    if wanted("table64") {
        head("Table 6.4, mean ms a frame, and times faster than BPP");
        all.iter().for_each(|r| r.line(|k| r.time(k, limit), Some(SCENES[r.scene].3.2)));
        head("§6.2.4, mean inner iterations of the island that takes longest (the paper has a figure only)");
        all.iter().for_each(|r| r.line(|k| short(r.mean(k, |s| s.inner)), None));
    }
}
