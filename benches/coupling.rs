//! Substructuring on the problems of the scenes: speed against the paper's baseline and against one factorization of the
//! whole, and the critical path. The paper's own loop is in `papers`.
//!
//! `cargo bench --bench coupling [-- SCENE…]`
//!
//! Times for more threads than one are estimated from the measured critical path (`support/critical.rs`). The wall time on
//! two real threads is printed beside it; on a busy machine it says little. What `auto` does is what its cost model chooses for two
//! threads, whether that is the best or not: whole, whole with a shared elimination tree, or cut.

#[path = "support/critical.rs"]
mod critical;
#[path = "support/frames.rs"]
mod frames;

use critical::{Timed, Trace, fastest, makespan, wake};
use frames::{Frame, capture};
use std::time::Instant;
use turnbuckle::coupling::body_graph;
use turnbuckle::coupling::cost;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Executor;
use turnbuckle::coupling::flat::Substructured;
use turnbuckle::graph::{Grouping, bisection};
use turnbuckle::solver::auto::{Engine, Settings};
use turnbuckle::solver::linear::LinearSystem;
use turnbuckle::solver::matrix_system::{MatrixMemory, MatrixSystem};
use turnbuckle::solver::mixed::{Mixed, MixedOptions};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, condensed, residual};
use turnbuckle::systems::parallel::{Crew, Parallel};
use turnbuckle::systems::partition::is_worth_sharing;

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

/// Least wall time (ms) of a run, out of 60 ms of them or four.
fn least_wall(mut f: impl FnMut()) -> f64 {
    let (clock, mut least, mut count) = (Instant::now(), f64::INFINITY, 0);
    while count < 4 || (clock.elapsed().as_millis() < 60 && count < 400) {
        let start = Instant::now();
        f();
        least = least.min(1e3 * start.elapsed().as_secs_f64());
        count += 1;
    }
    least
}

fn cut_into(problem: &RowProblem, parts: u32) -> Grouping {
    let mut graph = body_graph(problem);
    graph.cap_weights(6);
    bisection::partition(&graph, parts)
}

/// What the cost model of `auto` chooses for two threads: one partition for the whole, and the parts of its elimination tree.
fn own_choice(problem: &RowProblem) -> (Grouping, u32) {
    let mut touched = vec![false; problem.bodies()];
    for block in &problem.blocks {
        let mut rows = block.row as usize..(block.row + block.rows) as usize;
        if rows.any(|i| problem.lo[i].is_finite() || problem.hi[i].is_finite()) {
            problem.bodies_of(block).iter().for_each(|&body| touched[body as usize] = true);
        }
    }
    let touched = touched.into_iter().filter(|t| *t).count();
    if condensed::pays(problem.rows(), problem.bodies(), touched) {
        let shared = is_worth_sharing(problem.bodies(), problem.rows(), true);
        return (Grouping::whole(problem.bodies()), if shared { 2 } else { 1 });
    }
    let mut graph = body_graph(problem);
    graph.cap_weights(6);
    (cost::choose(&graph, 2), 1)
}

/// A solver as it was chosen, on an executor.
enum Chosen<E: Executor + Default + Clone + std::fmt::Debug> {
    Whole(Box<Solver<Mixed<E>>>),
    Cut(Box<Solver<Substructured<E>>>),
}

impl<E: Executor + Default + Clone + std::fmt::Debug> Chosen<E> {
    fn new((grouping, parts): &(Grouping, u32)) -> Self {
        if grouping.count < 2 {
            let mut solver = Solver::new(Method::Auto);
            solver.set_options(MixedOptions { parts: *parts, ..MixedOptions::default() });
            return Self::Whole(Box::new(solver));
        }
        let mut solver = Solver::<Substructured<E>>::new(Method::Auto);
        solver.linear_mut().set_grouping(grouping, Seam::Bodies);
        Self::Cut(Box::new(solver))
    }

    fn executor(&self) -> &E {
        match self {
            Self::Whole(solver) => solver.linear().executor(),
            Self::Cut(solver) => solver.linear().executor(),
        }
    }

    fn solve(&mut self, problem: &RowProblem, solution: &mut Solution) {
        fn run<L: LinearSystem>(solver: &mut Solver<L>, problem: &RowProblem, solution: &mut Solution) {
            solver.set_pivoting_failed(false);
            solver.solve(problem, solution);
        }
        match self {
            Self::Whole(solver) => run(solver, problem, solution),
            Self::Cut(solver) => run(solver, problem, solution),
        }
    }
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
    base_all: f64,
    base_pivots: f64,
    factorizations: f64,
    base_solved: f64,
    whole: f64,
    whole_solved: f64,
    flat1: f64,
    flat2: f64,
    flat2_solved: f64,
    wall1: f64,
    wall2: f64,
    wall_own: f64,
    wall_woken: f64,
    own_cut: f64,
    own_regions: usize,
    worst_own: f64,
    parts: f64,
    parallel: f64,
    longest: f64,
    regions: usize,
    worst_v: f64,
    unsettled: u32,
    interface: u32,
}

/// Whole and flat solves of one frame.
fn compare(frame: &Frame, pool: &rayon::ThreadPool, sums: &mut Sums) {
    let problem = &frame.problem;
    let warm = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let (mut a, mut b) = (Solution::default(), Solution::default());
    let mut whole = RowSolver::new(Method::Auto);
    let (mut whole_ok, mut factorizations) = (false, 0);
    let tw = fastest(4, || {
        whole.set_pivoting_failed(false);
        a.clone_from(&warm);
        let stats = whole.solve(problem, &mut a);
        (whole_ok, factorizations) = (stats.converged, stats.factorizations);
    });
    let mut flat = Solver::<Substructured<Timed>>::new(Method::Auto);
    let (mut flat_ok, mut tf, mut grouping) = (false, Trace::default(), Grouping::default());
    for parts in [2, 4] {
        let cut = cut_into(problem, parts);
        let mut tried = Solver::<Substructured<Timed>>::new(Method::Auto);
        tried.linear_mut().set_grouping(&cut, Seam::Bodies);
        let (mut c, mut ok) = (Solution::default(), false);
        let t = fastest(5, || {
            tried.set_pivoting_failed(false);
            c.clone_from(&warm);
            ok = tried.solve(problem, &mut c).converged;
        });
        if std::env::var_os("PARTS").is_some() {
            let own = tried.linear().cut();
            for (k, part) in own.parts.iter().enumerate() {
                let time: f64 = t.regions.iter().map(|r| r.get(k).copied().unwrap_or(0.0)).sum();
                let folded: u32 = part
                    .blocks
                    .iter()
                    .map(|&b| &problem.blocks[b as usize])
                    .filter(|b| b.fold)
                    .map(|b| b.rows)
                    .sum();
                println!(
                    "      part {k} of {parts}: {} bodies, {} rows, {folded} of contacts, {} seam; {time:.2} ms of {:.2}",
                    part.bodies.len(),
                    part.rows.len(),
                    part.interface.len(),
                    t.elapsed
                );
            }
        }
        if tf.regions.is_empty() || t.on(2) < tf.on(2) {
            (tf, flat, flat_ok, grouping, b) = (t, tried, ok, cut, c);
        }
    }
    sums.parts += f64::from(grouping.count);
    let mut real = Solver::<Substructured<Parallel>>::new(Method::Auto);
    real.linear_mut().set_grouping(&grouping, Seam::Bodies);
    let t2 = pool.install(|| {
        least_wall(|| {
            real.set_pivoting_failed(false);
            let mut c = warm.clone();
            real.solve(problem, &mut c);
        })
    });
    let (base, solved, pivots) = baseline(frame);
    sums.base_pivots += f64::from(pivots);
    sums.factorizations += f64::from(factorizations);
    sums.frames += 1.0;
    sums.unsettled += u32::from(!flat_ok);
    sums.base_all += base;
    sums.whole += tw.elapsed;
    sums.flat1 += tf.elapsed;
    sums.parallel += tf.parallel();
    sums.longest += tf.regions.iter().map(|r| makespan(r, 2)).sum::<f64>();
    sums.regions += tf.regions.len();
    let choice = own_choice(problem);
    let mut own = Chosen::<Timed>::new(&choice);
    let to = fastest(5, || {
        a.clone_from(&warm);
        own.solve(problem, &mut a);
    });
    let two = to.on(2);
    sums.flat2 += two;
    sums.own_cut += f64::from(u8::from(choice.0.count > 1));
    sums.own_regions += to.regions.len();
    sums.worst_own = sums.worst_own.max(two / tw.elapsed);
    let mut own = Chosen::<Crew>::new(&choice);
    let (awake, woken) = pool.install(|| {
        own.solve(problem, &mut warm.clone());
        let crew = own.executor().share();
        let hands = if choice.0.count > 1 || choice.1 > 1 { 2 } else { 1 };
        let mut c = Solution::default();
        let woken = least_wall(|| {
            c.clone_from(&warm);
            crew.together(hands, || own.solve(problem, &mut c));
        });
        // As within a step, whose solves find the helpers awake.
        let awake = crew.together(hands, || {
            least_wall(|| {
                c.clone_from(&warm);
                crew.together(hands, || own.solve(problem, &mut c));
            })
        });
        (awake, woken)
    });
    sums.wall_own += awake;
    sums.wall_woken += woken;
    sums.wall1 += least_wall(|| {
        whole.set_pivoting_failed(false);
        a.clone_from(&warm);
        whole.solve(problem, &mut a);
    });
    sums.wall2 += t2;
    sums.interface = sums.interface.max(flat.linear().stats().interface_rows);
    if solved {
        sums.solved += 1.0;
        sums.base_solved += base;
        sums.whole_solved += tw.elapsed;
        sums.flat2_solved += two;
    }
    if whole_ok && flat_ok {
        sums.worst_v = sums.worst_v.max(distance(&a.v, &b.v));
    }
}

fn scaling(name: &str, problem: &RowProblem) {
    println!("\n{name}: {} bodies, {} rows", problem.bodies(), problem.rows());
    let mut whole = RowSolver::new(Method::Auto);
    let mut solution = Solution::default();
    let tw = fastest(4, || {
        solution = Solution::default();
        whole.solve(problem, &mut solution);
    });
    println!("  whole, 1 thread: {:.2} ms", tw.elapsed);
    for parts in [2, 4, 8, 16] {
        let mut flat = Solver::<Substructured<Timed>>::new(Method::Auto);
        flat.linear_mut().set_grouping(&cut_into(problem, parts), Seam::Bodies);
        let t = fastest(4, || {
            let mut solution = Solution::default();
            flat.solve(problem, &mut solution);
        });
        let serial = 1.0 - t.parallel() / t.elapsed;
        println!(
            "  {parts:2} parts, {:3} interface rows: 1 thread {:.2} ms, serial share {:.0} %, 1→2 {:.2}×, \
             against the whole on 2/8/16 threads {:.2}× {:.2}× {:.2}×",
            flat.linear().stats().interface_rows,
            t.elapsed,
            100.0 * serial,
            t.elapsed / t.on(2),
            tw.elapsed / t.on(2),
            tw.elapsed / t.on(8),
            tw.elapsed / t.on(16),
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let asked = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    println!(
        "times in ms per solve; ×: against the baseline on the frames it solves (on all frames) and against the whole"
    );
    for (name, first, every, count, paper) in SCENES {
        if !asked(name) {
            continue;
        }
        let frames = capture(name, &[], first, every, count);
        if frames.is_empty() {
            println!("{name}: cannot be loaded");
            continue;
        }
        let mut s = Sums::default();
        frames.iter().for_each(|frame| compare(frame, &pool, &mut s));
        let n = s.frames;
        println!(
            "{name:14} rows {:5} frames {n:.0}: baseline {:.1} (solves {:.0} %), whole {:.2}, cut in {:.1}: {:.2} on one thread, \
             {:.2} on two (wall: whole {:.2}, cut on two threads {:.2}), interface {}; {:.0}× ({:.0}×; paper {paper}×), {:.2}× whole; unsettled {}, v off {:.1e}",
            frames[0].problem.rows(),
            s.base_all / n,
            100.0 * s.solved / n,
            s.whole / n,
            s.parts / n,
            s.flat1 / n,
            s.flat2 / n,
            s.wall1 / n,
            s.wall2 / n,
            s.interface,
            s.base_solved / s.flat2_solved.max(1e-9),
            s.base_all / s.flat2,
            s.whole / s.flat2,
            s.unsettled,
            s.worst_v,
        );
        println!(
            "    `auto` by its own choice (cut in {:.0} of {n:.0} frames, {:.0} regions of {:.1} µs a solve): {:.2} on two threads, {:.2}× whole, worst frame {:.2}×; \
             wall {:.2}, {:.2}× the whole's with a helper awake as within a step, {:.2}× with one woken for each solve",
            s.own_cut,
            s.own_regions as f64 / n,
            1e3 * wake(),
            s.flat2 / n,
            s.whole / s.flat2,
            1.0 / s.worst_own,
            s.wall_own / n,
            s.wall1 / s.wall_own,
            s.wall1 / s.wall_woken,
        );
        println!(
            "    the baseline factors {:.1} times a frame, {:.2} ms each with its solve; ours {:.1} times, {:.2} ms each with all else",
            s.base_pivots / n,
            s.base_all / s.base_pivots.max(1.0),
            s.factorizations / n,
            s.whole / s.factorizations.max(1.0),
        );
        println!(
            "    on one thread {:.0} % of a cut solve is in parallel regions ({:.0} of them), whose longer halves are {:.0} % of it",
            100.0 * s.parallel / s.flat1,
            s.regions as f64 / n,
            100.0 * s.longest / s.flat1,
        );
    }
    if asked("scaling") {
        for frame in capture("bridge", &[("planks", 512.0)], 3, 1, 1) {
            scaling("bridge × 4", &frame.problem);
        }
        scaling("net × 4", &turnbuckle::solver::generate::net(24, 100, 8000.0, 1e-9));
    }
}
