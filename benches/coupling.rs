//! Substructuring on the problems of the scenes: speed against the paper's baseline and against one factorization of the
//! whole, convergence of the published loop, and the critical path.
//!
//! `cargo bench --bench coupling [-- SCENE…]`
//!
//! Times for more threads than one are estimated from the measured critical path: every partition's part of every
//! parallel region is timed on one thread, and P threads take the longest of them (list scheduling) plus all that is
//! serial plus [`WAKE`] per region. The wall time on two real threads is printed beside it; on a busy machine it says
//! little.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use turnbuckle::coupling::body_graph;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::{Executor, Serial};
use turnbuckle::coupling::flat::Substructured;
use turnbuckle::coupling::nested::{self, Nested};
use turnbuckle::coupling::schur::CouplingSettings;
use turnbuckle::graph::{Grouping, bisection, min_degree};
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::auto::{Engine, Settings};
use turnbuckle::solver::matrix_system::{MatrixMemory, MatrixSystem};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, residual};
use turnbuckle::systems::parallel::Parallel;
use turnbuckle::{Stage, work::Scheme};

/// Milliseconds to give a region to waiting threads and to wait for the last.
const WAKE: f64 = 0.006;

/// Scene, first step, steps between captures, captures, the paper's best speed-up.
const SCENES: [(&str, u32, u32, u32, f64); 8] = [
    ("log_tower", 60, 30, 5, 3.9),
    ("cable_spinner", 20, 10, 5, 16.0),
    ("chain_wrap", 60, 30, 5, 4.7),
    ("chain_drop", 60, 30, 5, 5.4),
    ("rock_pile", 60, 15, 5, 3.2),
    ("net_truck", 20, 10, 5, 21.0),
    ("tandem_cranes", 10, 5, 5, 14.0),
    ("bridge", 5, 5, 3, 0.0),
];

/// One problem of a scene: the largest island of a step.
struct Frame {
    problem: RowProblem,
    labels: Vec<Label>,
    grouping: Option<Grouping>,
}

fn capture(name: &str, set: &[(&str, f64)], first: u32, every: u32, count: u32) -> Vec<Frame> {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let options =
        LoadOptions { set: set.iter().map(|&(n, v)| (n.to_string(), v)).collect(), ..LoadOptions::default() };
    let Ok(mut scene) = scene::load_with(path, &options) else { return Vec::new() };
    let frames = Arc::new(Mutex::new(Vec::new()));
    let (sink, mut step_number) = (frames.clone(), 0);
    scene.physics.add_system(Stage::Factor, "capture", move |step| {
        step_number += 1;
        if step_number < first || !(step_number - first).is_multiple_of(every) {
            return;
        }
        if let Some(island) = step.work.islands.iter().max_by_key(|i| i.rows.len()) {
            let cut = island.cut.scheme != Scheme::Whole;
            sink.lock().expect("one thread").push(Frame {
                problem: island.problem.clone(),
                labels: island.solution.labels.clone(),
                grouping: cut.then(|| island.cut.grouping.clone()),
            });
        }
    });
    let dt = 1.0 / 60.0;
    for _ in 0..first + every * count.saturating_sub(1) {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    std::mem::take(&mut *frames.lock().expect("one thread"))
}

thread_local! {
    static REGIONS: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// Runs items one after another and keeps the time of each.
#[derive(Clone, Copy, Debug, Default)]
struct Timed;

impl Executor for Timed {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        let times = items
            .iter_mut()
            .enumerate()
            .map(|(k, item)| {
                let start = Instant::now();
                f(k, item);
                1e3 * start.elapsed().as_secs_f64()
            })
            .collect();
        REGIONS.with(|r| r.borrow_mut().push(times));
    }
}

/// One run: elapsed on one thread, and the times of its parallel regions.
#[derive(Clone, Default)]
struct Trace {
    elapsed: f64,
    regions: Vec<Vec<f64>>,
}

impl Trace {
    fn parallel(&self) -> f64 {
        self.regions.iter().flatten().sum()
    }

    /// Time on `p` threads.
    fn on(&self, p: usize) -> f64 {
        let serial = self.elapsed - self.parallel();
        let wake = if p > 1 { WAKE * self.regions.len() as f64 } else { 0.0 };
        serial + wake + self.regions.iter().map(|r| makespan(r, p)).sum::<f64>()
    }
}

fn makespan(times: &[f64], p: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut load = vec![0.0f64; p];
    for t in sorted {
        let least = (0..p).min_by(|&a, &b| load[a].total_cmp(&load[b])).expect("a thread");
        load[least] += t;
    }
    load.into_iter().fold(0.0, f64::max)
}

/// Milliseconds this thread has had a core, where the system tells (Linux): other programs hardly disturb it. It is renewed a
/// few hundred times a second only, so many runs are to be measured at once.
fn on_core(start: &Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let own = told.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    own.map_or_else(|| 1e3 * start.elapsed().as_secs_f64(), |ns| 1e-6 * ns)
}

/// Times of a solve on one thread: the mean time on a core of a few runs, split into regions in the proportions of the least
/// times seen of every part of every region and of all that is outside of regions. So neither other programs nor
/// the clock's readings count, and whole and cut solves are measured alike.
fn fastest(runs: usize, mut f: impl FnMut()) -> Trace {
    let mut least = Trace::default();
    let mut serial = f64::INFINITY;
    f();
    let clock = Instant::now();
    let (mut cpu, mut count) = (on_core(&clock), 0);
    while count < runs || (clock.elapsed().as_millis() < 60 && count < 400) {
        REGIONS.with(|r| r.borrow_mut().clear());
        let start = Instant::now();
        f();
        let elapsed = 1e3 * start.elapsed().as_secs_f64();
        count += 1;
        let run = Trace { elapsed, regions: REGIONS.with(|r| r.borrow().clone()) };
        serial = serial.min(elapsed - run.parallel());
        if least.regions.len() != run.regions.len() {
            least = run;
            continue;
        }
        for (least, now) in least.regions.iter_mut().flatten().zip(run.regions.iter().flatten()) {
            *least = least.min(*now);
        }
    }
    cpu = (on_core(&clock) - cpu) / count as f64;
    let scale = cpu / (serial + least.parallel());
    least.regions.iter_mut().flatten().for_each(|t| *t *= scale);
    Trace { elapsed: cpu, regions: least.regions }
}

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

/// Monolithic block pivoting on A with a scalar sparse Cholesky, from the same index set; A is given.
fn baseline(frame: &Frame) -> (f64, bool) {
    let problem = frame.problem.to_matrix();
    let mut memory = MatrixMemory::default();
    let start = Solution { labels: frame.labels.clone(), ..Solution::default() };
    let settings = Settings::default();
    let mut converged = false;
    let trace = fastest(1, || {
        let mut system = MatrixSystem::new(&problem, &mut memory);
        let mut engine = Engine::default();
        let mut warm = start.clone();
        warm.labels.resize(problem.b.len(), Label::Free);
        let mut stats = engine.run(Method::Bpp, &mut system, &warm, &settings);
        let mut w = Vec::new();
        let tolerance = settings.tolerance;
        residual::judge(&mut system, &engine.best.lambda, &problem.hi, tolerance, &mut w, &mut stats);
        converged = stats.converged;
    });
    (trace.elapsed, converged)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

#[derive(Default)]
struct Sums {
    frames: f64,
    solved: f64,
    base_all: f64,
    base_solved: f64,
    whole: f64,
    whole_solved: f64,
    flat1: f64,
    flat2: f64,
    flat2_solved: f64,
    wall1: f64,
    wall2: f64,
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
    let mut whole_ok = false;
    let tw = fastest(4, || {
        whole.set_pivoting_failed(false);
        a.clone_from(&warm);
        whole_ok = whole.solve(problem, &mut a).converged;
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
    let (base, solved) = baseline(frame);
    sums.frames += 1.0;
    sums.unsettled += u32::from(!flat_ok);
    sums.base_all += base;
    sums.whole += tw.elapsed;
    sums.flat1 += tf.elapsed;
    sums.parallel += tf.parallel();
    sums.longest += tf.regions.iter().map(|r| makespan(r, 2)).sum::<f64>();
    sums.regions += tf.regions.len();
    // `auto` keeps an island whole where cutting does not pay.
    let two = tf.on(2).min(tw.elapsed);
    sums.flat2 += two;
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

/// Mean k, share at the limit, share truly solved, of the loop as published.
fn published(frames: &[Frame], interface: Method) -> (f64, f64, f64) {
    let settings = CouplingSettings { interface, max_iterations: 10, as_published: true };
    let (mut k, mut limit, mut solved) = (0.0, 0.0, 0.0);
    for frame in frames {
        let by_degree = || min_degree::partition(&body_graph(&frame.problem), 16);
        let grouping = frame.grouping.clone().unwrap_or_else(by_degree);
        let mut solution = Solution { labels: frame.labels.clone(), ..Solution::default() };
        let mut nested = Nested::default();
        let stats = nested::solve(&mut nested, &frame.problem, &grouping, &mut solution, &settings, &Serial);
        let (iterations, settled) = nested.outcome();
        k += f64::from(iterations);
        limit += f64::from(u8::from(!settled));
        solved += f64::from(u8::from(stats.converged));
    }
    let n = frames.len().max(1) as f64;
    (k / n, limit / n, solved / n)
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

/// Scene, mean k and share at the limit in 000 Table 3.
const TABLE3: [(&str, f64, f64); 7] = [
    ("log_tower", 5.8, 39.0),
    ("cable_spinner", 4.4, 2.0),
    ("chain_wrap", 4.4, 2.0),
    ("chain_drop", 4.4, 2.0),
    ("rock_pile", 6.3, 10.0),
    ("net_truck", 4.4, 2.0),
    ("tandem_cranes", 4.4, 2.0),
];

/// The loop as published on every sixth step of 300.
fn table3() {
    println!(
        "\nas published, every sixth of 300 steps; the paper's figures behind (\"others at most 4.4 / 2 %\")"
    );
    for (name, k, limit) in TABLE3 {
        let frames = capture(name, &[], 6, 6, 50);
        for method in [Method::Bpp, Method::PgsSm] {
            let (mean, at_limit, solved) = published(&frames, method);
            println!(
                "{name:14} interface by {:6}: {} frames, mean k {mean:.1} ({k}), at limit {:.0} % ({limit:.0} %), truly solved {:.0} %",
                method.name(),
                frames.len(),
                100.0 * at_limit,
                100.0 * solved
            );
        }
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
            "    on one thread {:.0} % of a cut solve is in parallel regions ({:.0} of them), whose longer halves are {:.0} % of it",
            100.0 * s.parallel / s.flat1,
            s.regions as f64 / n,
            100.0 * s.longest / s.flat1,
        );
        for method in [Method::Bpp, Method::PgsSm] {
            let (k, limit, solved) = published(&frames, method);
            println!(
                "    as published, interface by {:6}: mean k {k:.1}, at limit {:.0} %, truly solved {:.0} %",
                method.name(),
                100.0 * limit,
                100.0 * solved
            );
        }
    }
    if wanted.iter().any(|w| w == "table3") {
        table3();
    }
    if asked("scaling") {
        for frame in capture("bridge", &[("planks", 512.0)], 3, 1, 1) {
            scaling("bridge × 4", &frame.problem);
        }
        scaling("net × 4", &turnbuckle::solver::generate::net(24, 100, 8000.0, 1e-9));
    }
}
