//! Substructuring on the problems of the scenes: speed against the paper's baseline and against one factorization of the
//! whole, and the critical path. The paper's own loop is in `papers`.
//!
//! `cargo bench --bench coupling [-- [--dense] [--frames|--anatomy] SCENE…]`; `--dense` takes four times as many frames of the same stretch,
//! `--frames` prints a line for every frame too, `--anatomy` where the time of single frames goes instead.
//!
//! Times for more threads than one are estimated from the measured critical path (`support/critical.rs`). Wall times on two real
//! threads are printed beside it, median against median of runs taken in turns; on a busy machine they say little. What `auto` does is
//! what its cost model chooses for two threads, whether that is the best or not: whole or cut.

#[path = "support/critical.rs"]
mod critical;
#[path = "support/frames.rs"]
mod frames;

use critical::{Seen, Timed, Trace, Watched, anatomy, fastest, makespan, wake};
use frames::{Frame, capture};
use std::time::Instant;
use turnbuckle::coupling::cost;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::cutting_graph;
use turnbuckle::coupling::executor::{Executor, Serial};
use turnbuckle::coupling::substructured::Substructured;
use turnbuckle::graph::{Grouping, bisection};
use turnbuckle::solver::auto::{Engine, Settings};
use turnbuckle::solver::condensed::{Marks, Outline};
use turnbuckle::solver::linear::LinearSystem;
use turnbuckle::solver::matrix_system::{MatrixMemory, MatrixSystem};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, SolveStats, residual};
use turnbuckle::systems::parallel::Crew;

/// Scene, first step, steps between captures, captures, the paper's best speed-up. Captures are spread over the length of each
/// scene: the first seconds of most are nothing but joints, on which the baseline needs one factorization.
const SCENES: [(&str, u64, u64, u64, f64); 8] = [
    ("log_tower", 20, 40, 15, 3.9),
    ("cable_spinner", 20, 40, 15, 16.2),
    ("chain_wrap", 20, 40, 15, 4.7),
    ("chain_drop", 20, 40, 15, 5.4),
    ("rock_pile", 20, 40, 15, 3.2),
    ("net_truck", 20, 40, 15, 21.1),
    ("tandem_cranes", 20, 80, 15, 13.9),
    ("bridge", 5, 40, 5, 0.0),
];

/// Median wall times (ms) of two ways to the same answer, in turns of five runs each: at least 100 ms of both, or one turn. Those of
/// the second are within `together`, after a run that wakes the helpers.
fn in_turns(
    mut first: impl FnMut(),
    mut second: impl FnMut() + Send,
    together: impl Fn(&mut (dyn FnMut() + Send)),
) -> [f64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let timed = |f: &mut dyn FnMut(), times: &mut Vec<f64>| {
        for _ in 0..5 {
            let start = Instant::now();
            f();
            times.push(1e3 * start.elapsed().as_secs_f64());
        }
    };
    let clock = Instant::now();
    while times[0].is_empty() || clock.elapsed().as_millis() < 200 {
        timed(&mut first, &mut times[0]);
        together(&mut || {
            second();
            timed(&mut second, &mut times[1]);
        });
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn cut_into(problem: &RowProblem, parts: u32) -> Grouping {
    bisection::partition(&cutting_graph(problem).0, parts)
}

/// What the cost model of `auto` chooses for two threads, as `systems::partition` asks it.
fn own_choice(problem: &RowProblem) -> Grouping {
    if cost::stays_whole(&Outline::of(problem, &mut Marks::default())) {
        return Grouping::whole(problem.bodies());
    }
    let (graph, rows) = cutting_graph(problem);
    cost::choose(&graph, rows, 2)
}

fn cut_solver<E: Executor + Default + Clone + std::fmt::Debug>(
    grouping: &Grouping,
) -> Solver<Substructured<E>> {
    let mut solver = Solver::<Substructured<E>>::new(Method::Auto);
    solver.linear_mut().set_grouping(grouping, Seam::Bodies);
    solver
}

/// One solve from the index set of the step before.
fn solve<L: LinearSystem>(
    solver: &mut Solver<L>,
    frame: &Frame,
    warm: &Solution,
    to: &mut Solution,
) -> SolveStats {
    solver.set_pivoting_failed(false);
    to.clone_from(warm);
    solver.solve(&frame.problem, to)
}

/// Monolithic block pivoting on A with a scalar sparse Cholesky, from the same index set; A is given. Milliseconds, whether
/// it solved the frame, and its pivots.
fn baseline(frame: &Frame) -> (f64, bool, u32) {
    let problem = frame.problem.to_matrix();
    let mut memory = MatrixMemory::default();
    let start = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let settings = Settings::default();
    let (mut converged, mut pivots) = (false, 0);
    let trace = fastest(1, || {
        let mut system = MatrixSystem::new(&problem, &mut memory);
        let mut engine = Engine::default();
        let mut warm = start.clone();
        warm.labels.resize(problem.b.len(), Label::Free);
        let mut stats = engine.run(Method::Bpp, &mut system, &warm, &settings);
        let mut w = Vec::new();
        let tolerance = settings.tolerance;
        residual::judge(&mut system, &engine.best.lambda, &problem.hi, tolerance, &mut w, &mut stats);
        (converged, pivots) = (stats.converged, stats.pivots);
    });
    (trace.elapsed, converged, pivots)
}

/// Largest difference relative to the largest velocity, or to what one step of free fall gives where everything stands.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(9.81 / 60.0, |m: f64, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

#[derive(Default)]
struct Sums {
    frames: f64,
    solved: f64,
    /// The baseline on all frames and on those it solves, its pivots, and what forming A takes it besides.
    base_all: f64,
    base_solved: f64,
    base_pivots: f64,
    forming: f64,
    /// One factorization of the whole, on one thread: core time, and how often it factors.
    whole: f64,
    factorizations: f64,
    /// The better cut into two or four parts: on one thread, its regions, what is in them, and the longer halves of it.
    flat1: f64,
    regions: usize,
    parallel: f64,
    longest: f64,
    parts: f64,
    interface: u32,
    unsettled: u32,
    worst_v: f64,
    /// As the cost model chooses, on two threads: critical path (on all frames and on those the baseline solves), wall time, and that of
    /// the whole.
    own: f64,
    own_solved: f64,
    own_cut: f64,
    wall_own: f64,
    wall_whole: f64,
    worst_own: f64,
    worst_wall: f64,
}

/// Whole and cut solves of one frame.
fn compare(frame: &Frame, pool: &rayon::ThreadPool, sums: &mut Sums) {
    let problem = &frame.problem;
    let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let (mut a, mut b) = (Solution::default(), Solution::default());
    let mut whole = RowSolver::new(Method::Auto);
    let mut told = SolveStats::default();
    let tw = fastest(4, || told = solve(&mut whole, frame, &warm, &mut a));
    let (mut best, mut flat_ok) = (None::<(Trace, u32, u32)>, false);
    for parts in [2, 4] {
        let cut = cut_into(problem, parts);
        let mut tried = cut_solver::<Timed>(&cut);
        let (mut c, mut ok) = (Solution::default(), false);
        let t = fastest(5, || ok = solve(&mut tried, frame, &warm, &mut c).converged);
        if best.as_ref().is_none_or(|(best, ..)| t.on(2) < best.on(2)) {
            best = Some((t, cut.count, tried.linear().stats().interface_rows));
            (flat_ok, b) = (ok, c);
        }
    }
    let (tf, parts, interface) = best.expect("two cuts were tried");
    let (base, solved, pivots) = baseline(frame);
    let clock = Instant::now();
    std::hint::black_box(problem.to_matrix());
    sums.forming += 1e3 * clock.elapsed().as_secs_f64();
    let choice = own_choice(problem);
    // Where the whole is chosen, the two are the same.
    let (mut two, mut wall) = (tw.elapsed, None);
    if choice.count > 1 {
        let mut own = cut_solver::<Timed>(&choice);
        two = fastest(5, || {
            solve(&mut own, frame, &warm, &mut a);
        })
        .on(2);
        let mut own = cut_solver::<Crew>(&choice);
        wall = Some(pool.install(|| {
            let crew = own.linear().executor().share();
            let (mut c, mut d) = (Solution::default(), Solution::default());
            in_turns(
                || {
                    solve(&mut whole, frame, &warm, &mut c);
                },
                || {
                    solve(&mut own, frame, &warm, &mut d);
                },
                |work| crew.together(2, work),
            )
        }));
    }
    let [wall_whole, wall_own] = wall.unwrap_or([tw.elapsed; 2]);
    if std::env::args().any(|a| a == "--frames") {
        println!(
            "    {} rows: baseline {base:.3} ({pivots} pivots, {}), whole {:.3} ({} pivots, {} iterations), wall {wall_whole:.3}, `auto` {wall_own:.3}: {:.2}×, {:.0}× the baseline",
            problem.rows(),
            if solved { "solved" } else { "not solved" },
            tw.elapsed,
            told.pivots,
            told.ipm_iterations,
            wall_whole / wall_own,
            base / wall_own,
        );
    }
    sums.frames += 1.0;
    sums.base_all += base;
    sums.base_pivots += f64::from(pivots);
    sums.whole += tw.elapsed;
    sums.factorizations += f64::from(told.factorizations);
    sums.flat1 += tf.elapsed;
    sums.regions += tf.regions.len();
    sums.parallel += tf.parallel();
    sums.longest += tf.regions.iter().map(|r| makespan(r, 2)).sum::<f64>();
    sums.parts += f64::from(parts);
    sums.interface = sums.interface.max(interface);
    sums.unsettled += u32::from(!flat_ok);
    sums.own += two;
    sums.own_cut += f64::from(u8::from(choice.count > 1));
    sums.wall_own += wall_own;
    sums.wall_whole += wall_whole;
    sums.worst_own = sums.worst_own.max(two / tw.elapsed);
    sums.worst_wall = sums.worst_wall.max(wall_own / wall_whole);
    if solved {
        sums.solved += 1.0;
        sums.base_solved += base;
        sums.own_solved += two;
    }
    if told.converged && flat_ok {
        sums.worst_v = sums.worst_v.max(distance(&a.v, &b.v));
    }
}

impl Sums {
    fn print(&self, name: &str, rows: usize, paper: f64) {
        let n = self.frames;
        println!(
            "{name:14} rows {rows:5} frames {n:.0}: baseline {:.2} (solves {:.0} %; forming A, {:.2}, not counted), whole {:.3}; `auto` on two threads \
             {:.3}: {:.0}× the baseline on all frames, {:.0}× on those it solves (paper {paper}×)",
            self.base_all / n,
            100.0 * self.solved / n,
            self.forming / n,
            self.whole / n,
            self.own / n,
            self.base_all / self.own,
            if self.own_solved > 1e-3 { self.base_solved / self.own_solved } else { f64::NAN },
        );
        println!(
            "    `auto` against the whole, two threads (cut in {:.0} of {n:.0} frames, {:.1} µs a region): critical path {:.2}×, worst frame {:.2}×; \
             wall {:.3} against {:.3}: {:.2}×, worst frame {:.2}×",
            self.own_cut,
            1e3 * wake(),
            self.whole / self.own,
            1.0 / self.worst_own,
            self.wall_own / n,
            self.wall_whole / n,
            self.wall_whole / self.wall_own,
            1.0 / self.worst_wall,
        );
        println!(
            "    cut in {:.1} on one thread {:.3}, interface {} rows at most, {:.0} % in {:.0} parallel regions, whose longer halves are {:.0} %; \
             unsettled {}, v off {:.1e}",
            self.parts / n,
            self.flat1 / n,
            self.interface,
            100.0 * self.parallel / self.flat1,
            self.regions as f64 / n,
            100.0 * self.longest / self.flat1,
            self.unsettled,
            self.worst_v,
        );
        println!(
            "    the baseline factors {:.1} times a frame, {:.2} ms each with its solve; ours {:.1} times, {:.3} ms each with all else",
            self.base_pivots / n,
            self.base_all / self.base_pivots.max(1.0),
            self.factorizations / n,
            self.whole / self.factorizations.max(1.0),
        );
    }
}

/// What every region of one frame takes, cut in two, on one thread and on two, beside the whole.
fn dissect(frame: &Frame, pool: &rayon::ThreadPool) {
    let (problem, mut to) = (&frame.problem, Solution::default());
    let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let mut whole = RowSolver::new(Method::Auto);
    let mut told = SolveStats::default();
    let tw = fastest(4, || told = solve(&mut whole, frame, &warm, &mut to));
    let mut cut = cut_solver::<Watched>(&cut_into(problem, 2));
    let (alone, after_alone) = anatomy(|| {
        solve(&mut cut, frame, &warm, &mut to);
    });
    let (shared, after) = pool.install(|| {
        Crew::default().together(2, || {
            anatomy(|| {
                solve(&mut cut, frame, &warm, &mut to);
            })
        })
    });
    let total = |seen: &[Seen], after: f64| after + seen.iter().map(|s| s.before + s.end).sum::<f64>();
    println!(
        "  {:?}: whole {:.0} µs ({} pivots, {} iterations, {} factorizations); cut {:.0} on one thread, {:.0} on two",
        Outline::of(problem, &mut Marks::default()),
        1e3 * tw.elapsed,
        told.pivots,
        told.ipm_iterations,
        told.factorizations,
        total(&alone, after_alone),
        total(&shared, after),
    );
    for (one, two) in alone.iter().zip(&shared) {
        let lengths: Vec<String> = one.parts.iter().map(|[a, b]| format!("{:.1}", b - a)).collect();
        let spans: Vec<String> = two.parts.iter().map(|[a, b]| format!("{a:.1}–{b:.1}")).collect();
        println!(
            "    {:5.1} + [{}]; on two threads {:5.1} + {:.1} [{}]",
            one.before,
            lengths.join(", "),
            two.before,
            two.end,
            spans.join(", ")
        );
    }
    println!("    {after_alone:5.1}; on two threads {after:.1}");
}

/// Strong scaling of one problem: from an answer's index set as within a run, and cold.
fn scaling(name: &str, problem: &RowProblem, pool: &rayon::ThreadPool) {
    println!("\n{name}: {} bodies, {} rows", problem.bodies(), problem.rows());
    let mut answer = Solution::default();
    RowSolver::new(Method::Auto).solve(problem, &mut answer);
    for (start, labels) in [("warm", answer.labels), ("cold", Vec::new())] {
        let frame = Frame { problem: problem.clone(), labels, hints: Vec::new() };
        let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
        let (mut whole, mut to) = (RowSolver::new(Method::Auto), Solution::default());
        let tw = fastest(4, || {
            solve(&mut whole, &frame, &warm, &mut to);
        });
        println!("  {start}: whole, 1 thread: {:.2} ms", tw.elapsed);
        for parts in [2, 4, 8, 16] {
            let grouping = cut_into(problem, parts);
            let mut flat = cut_solver::<Timed>(&grouping);
            let t = fastest(4, || {
                solve(&mut flat, &frame, &warm, &mut to);
            });
            let mut real = cut_solver::<Crew>(&grouping);
            let [wall1, wall2] = pool.install(|| {
                let crew = real.linear().executor().share();
                let mut alone = cut_solver::<Serial>(&grouping);
                let (mut c, mut d) = (Solution::default(), Solution::default());
                in_turns(
                    || {
                        solve(&mut alone, &frame, &warm, &mut c);
                    },
                    || {
                        solve(&mut real, &frame, &warm, &mut d);
                    },
                    |work| crew.together(2, work),
                )
            });
            println!(
                "  {parts:2} parts, {:4} interface rows: 1 thread {:.2} ms, serial share {:.0} %, 1→2 {:.2}× (wall {:.2}×), \
                 against the whole on 2/8/16 threads {:.2}× {:.2}× {:.2}×",
                flat.linear().stats().interface_rows,
                t.elapsed,
                100.0 * (1.0 - t.parallel() / t.elapsed),
                t.elapsed / t.on(2),
                wall1 / wall2,
                tw.elapsed / t.on(2),
                tw.elapsed / t.on(8),
                tw.elapsed / t.on(16),
            );
        }
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let asked = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    println!("times in ms per solve");
    for (name, first, every, count, paper) in SCENES {
        if !asked(name) {
            continue;
        }
        let dense = if std::env::args().any(|a| a == "--dense") { 4 } else { 1 };
        let frames = capture(name, &[], first, every / dense, count * dense);
        if frames.is_empty() {
            println!("{name}: cannot be loaded");
            continue;
        }
        if std::env::args().any(|a| a == "--anatomy") {
            println!("{name}");
            frames.iter().skip(1).step_by(4).for_each(|frame| dissect(frame, &pool));
            continue;
        }
        let mut sums = Sums::default();
        frames.iter().for_each(|frame| compare(frame, &pool, &mut sums));
        sums.print(name, frames[0].problem.rows(), paper);
    }
    if asked("scaling") {
        for frame in capture("bridge", &[("planks", 512.0)], 3, 1, 1) {
            scaling("bridge × 4", &frame.problem, &pool);
        }
        scaling("net × 4", &turnbuckle::solver::generate::net(24, 100, 8000.0, 1e-9), &pool);
    }
}
