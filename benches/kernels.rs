//! Factor and solve of the mixed form against the papers' baseline.
//!
//! `cargo bench --bench kernels` samples with criterion. `cargo bench --bench kernels -- --table` prints the whole
//! picture in half a minute: ratios per pivot and per step, share of the machine's dense peak, growth.

#[path = "support/baseline.rs"]
mod baseline;
#[path = "support/cases.rs"]
mod cases;

use baseline::Baseline;
use cases::{Case, all_free, cases, mostly_free, tight};
use criterion::{Criterion, criterion_group};
use std::hint::black_box;
use std::time::Instant;
use turnbuckle::linalg::kernels::{self, Isa, Kernels};
use turnbuckle::solver::mixed::{MixedOptions, MixedSystem, OrderingKind};
use turnbuckle::solver::{Label, RowProblem, generate};

/// Microseconds of the fastest of several runs: the machine is shared, and only delays are random.
fn fastest(seconds: f64, mut run: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || (begin.elapsed().as_secs_f64() < seconds && runs < 100_000) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    1e6 * best
}

/// Seconds this thread has computed, where the system says so (Linux); else the clock on the wall.
fn cpu_seconds(begin: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.map_or_else(|| begin.elapsed().as_secs_f64(), |n| 1e-9 * n)
}

/// Microseconds of computing per run, over enough runs for the coarse clock of the system: what the machine does
/// meanwhile does not count. Asking for that clock takes microseconds, as a chain of a hundred bodies does: it is asked once in
/// some milliseconds.
fn average_cpu(mut run: impl FnMut()) -> f64 {
    run();
    let begin = Instant::now();
    run();
    let batch = (5e-3 / begin.elapsed().as_secs_f64()).ceil() as u32;
    let start = cpu_seconds(begin);
    let mut runs = 0;
    loop {
        for _ in 0..batch {
            run();
        }
        runs += batch;
        let spent = cpu_seconds(begin) - start;
        if spent > 0.4 {
            return 1e6 * spent / f64::from(runs);
        }
    }
}

/// The fastest run if it is short, computing time if it is too long to be left alone by a busy machine.
fn undisturbed(mut run: impl FnMut()) -> f64 {
    let shortest = fastest(0.1, &mut run);
    if shortest < 1000.0 { shortest } else { shortest.min(average_cpu(run)) }
}

/// A problem with its index set, factored once.
struct Ready<'a> {
    problem: &'a RowProblem,
    labels: Vec<Label>,
    system: MixedSystem,
    diagonal: [Vec<f64>; 2],
    v: Vec<f64>,
    lambda: Vec<f64>,
    turn: usize,
}

impl<'a> Ready<'a> {
    fn new(problem: &'a RowProblem, labels: Vec<Label>, options: MixedOptions) -> Self {
        let mut system = MixedSystem::new(options);
        system.load(problem);
        system.factor(problem, &labels, None);
        // Two diagonals that differ on every row with a bound: all that can depend on an index set.
        let diagonal = [1e-3, 2e-3].map(|s| {
            (0..problem.rows())
                .map(|r| {
                    let bounded = problem.lo[r].is_finite() || problem.hi[r].is_finite();
                    if bounded { s * problem.compliance[r] } else { 0.0 }
                })
                .collect()
        });
        let lambda = tight(problem, &labels);
        Self { problem, labels, system, diagonal, v: vec![0.0; 6 * problem.bodies()], lambda, turn: 0 }
    }

    fn refactor_bounded(&mut self) {
        self.turn ^= 1;
        let d = &self.diagonal[self.turn];
        self.system.factor(self.problem, &self.labels, Some(d));
    }

    fn refactor_all(&mut self) {
        self.system.load(self.problem);
        self.system.factor(self.problem, &self.labels, None);
    }

    fn flip_one(&mut self) {
        let row = self.problem.rows() / 3;
        self.labels[row] = if self.labels[row] == Label::Free { Label::Lower } else { Label::Free };
        self.system.factor(self.problem, &self.labels, None);
    }

    fn solve(&mut self, refinements: u32) {
        self.system.solve_pivot(self.problem, &mut self.v, &mut self.lambda, refinements);
        black_box(&self.v);
    }
}

fn print_table() {
    let isa = Isa::detect(Kernels::Auto);
    let peak = gemm_peak(isa, 96);
    println!(
        "kernels {}; dense peak {peak:.1} GF/s (n = 96), {:.1} (n = 12)",
        isa.name(),
        gemm_peak(isa, 12)
    );
    println!(
        "times in microseconds; pivot = refactor of all that bounds can change + solve; full = refactor of everything + solve"
    );
    println!(
        "late = the same with a third of the bounded rows tight; flip = one label changes; step = analysis, assembly, 5 pivots"
    );
    println!(
        "{:18} {:>5} {:>9} {:>8} {:>7} {:>7} {:>7} {:>6} | {:>6} {:>6} {:>6} {:>6} {:>6} | {:>6} {:>5} | {:>5}",
        "case",
        "rows",
        "baseline",
        "analysis",
        "full",
        "bounded",
        "solve",
        "flip",
        "pivot×",
        "target",
        "full×",
        "late×",
        "flip×",
        "step",
        "step×",
        "peak%"
    );
    let only = std::env::args().find(|a| cases().iter().any(|c| c.name == a));
    for case in cases() {
        if only.as_deref().is_some_and(|name| name != case.name) {
            continue;
        }
        print_case(&case, peak);
    }
}

/// Microseconds of the parts of one case.
struct Times {
    baseline: f64,
    analysis: f64,
    full: f64,
    bounded: f64,
    solve: f64,
    flip: f64,
    step: f64,
}

impl Times {
    /// Several short rounds of everything, so that a busy machine hurts all alike.
    fn measure(problem: &RowProblem, labels: &[Label], base: &mut Baseline) -> Self {
        let best = f64::INFINITY;
        let mut t = Self {
            baseline: best,
            analysis: best,
            full: best,
            bounded: best,
            solve: best,
            flip: best,
            step: best,
        };
        let tiny = generate::chain(1, 1.0, 1e-8);
        let mut ready = Ready::new(problem, labels.to_vec(), MixedOptions::default());
        for _ in 0..5 {
            t.baseline = t.baseline.min(undisturbed(|| _ = black_box(base.pivot(labels))));
            let forget = |r: &mut Ready| _ = r.system.load(&tiny);
            t.analysis =
                t.analysis.min(fastest_after(0.03, &mut ready, forget, |r| _ = r.system.load(problem)));
            ready.refactor_all();
            t.full = t.full.min(undisturbed(|| ready.refactor_all()));
            t.bounded = t.bounded.min(undisturbed(|| ready.refactor_bounded()));
            t.solve = t.solve.min(fastest(0.03, || ready.solve(0)));
            t.flip = t.flip.min(fastest(0.03, || ready.flip_one()));
            ready.labels.copy_from_slice(labels);
            let step = |r: &mut Ready| {
                r.system.load(problem);
                for _ in 0..5 {
                    r.refactor_bounded();
                    r.solve(0);
                }
            };
            t.step = t.step.min(fastest_after(0.03, &mut ready, forget, step));
        }
        t
    }
}

fn print_case(case: &Case, peak: f64) {
    let problem = &case.problem;
    let mut base = Baseline::new(problem.to_matrix());
    let t = Times::measure(problem, &all_free(problem), &mut base);
    let late = Times::measure(problem, &mostly_free(problem), &mut base);
    let mut system = MixedSystem::default();
    system.load(problem);
    println!(
        "{:18} {:>5} {:>9.1} {:>8.1} {:>7.1} {:>7.1} {:>7.1} {:>6.1} | {:>6.1} {:>6.0} {:>6.1} {:>6.1} {:>6.1} | {:>6.0} {:>5.1} | {:>5.1}",
        case.name,
        problem.rows(),
        t.baseline,
        t.analysis,
        t.full,
        t.bounded,
        t.solve,
        t.flip,
        t.baseline / (t.bounded + t.solve),
        case.target,
        t.baseline / (t.full + t.solve),
        late.baseline / (late.bounded + late.solve),
        t.baseline / (t.flip + t.solve),
        t.step,
        5.0 * t.baseline / t.step,
        100.0 * system.symbolic().flops() as f64 / (1e3 * t.full) / peak,
    );
}

/// Like [`fastest`], with work before each run that is not timed.
fn fastest_after<T>(
    seconds: f64,
    on: &mut T,
    mut before: impl FnMut(&mut T),
    mut run: impl FnMut(&mut T),
) -> f64 {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || begin.elapsed().as_secs_f64() < seconds {
        before(on);
        let start = Instant::now();
        run(on);
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    1e6 * best
}

/// Dense products of our own kernel, in GF/s.
fn gemm_peak(isa: Isa, n: usize) -> f64 {
    let a = vec![1.0; n * n];
    let b = vec![1e-9; n * n];
    let mut c = vec![0.0; n * n];
    let repeat = 1 + 2_000_000 / (n * n * n);
    let time = fastest(0.2, || {
        for _ in 0..repeat {
            kernels::multiply_subtract(isa, (n, n, n), &a, &b, &mut c);
        }
        black_box(&c);
    });
    2e-3 * (n * n * n * repeat) as f64 / time
}

fn print_growth() {
    println!("\ngrowth of factor + solve, 10² to 10⁵ bodies");
    let chains: Vec<RowProblem> =
        [100, 1_000, 10_000, 100_000].map(|n| generate::chain(n, 500.0, 1e-8)).into();
    print_fit("chain", 1.1, &chains);
    let nets: Vec<RowProblem> = [4, 12, 36, 112].map(|k| generate::net(k, 4 * k, 0.0, 1e-8)).into();
    print_fit("net", 1.4, &nets);
}

fn print_fit(name: &str, target: f64, problems: &[RowProblem]) {
    let mut points = Vec::new();
    for problem in problems {
        let mut ready = Ready::new(problem, all_free(problem), MixedOptions::default());
        let begin = Instant::now();
        let start = cpu_seconds(begin);
        let mut fresh = MixedSystem::default();
        fresh.load(problem);
        let analysis = cpu_seconds(begin) - start;
        let time = average_cpu(|| {
            ready.refactor_all();
            ready.solve(0);
        });
        println!(
            "{name:6} {:>7} bodies {:>8} rows: analysis {:>9.1} ms, factor + solve {:>9.4} ms, {:.0} Mflop",
            problem.bodies(),
            problem.rows(),
            1e3 * analysis,
            1e-3 * time,
            1e-6 * fresh.symbolic().flops() as f64
        );
        points.push(((problem.bodies() as f64).ln(), time.ln()));
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>()
        / points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
    println!("{name:6} exponent {slope:.3} (target {target})");
}

fn print_orderings() {
    println!("\norderings: Mflop and share of the longest root path");
    for case in cases() {
        print!("{:18}", case.name);
        for ordering in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
            let mut system = MixedSystem::new(MixedOptions { ordering, ..MixedOptions::default() });
            system.load(&case.problem);
            let plan = system.symbolic();
            let share = 100.0 * plan.critical_path() as f64 / plan.flops() as f64;
            print!("  {ordering:?} {:7.3} ({share:.0} %)", 1e-6 * plan.flops() as f64);
        }
        println!();
    }
}

/// Twenty thousand pivots of the case named on the command line: of what bounds can change, of `--all`, or `--solve` alone.
fn loop_for_a_profiler() {
    for case in cases().iter().filter(|c| std::env::args().any(|a| a == c.name)) {
        let mut ready = Ready::new(&case.problem, all_free(&case.problem), MixedOptions::default());
        let asked = |flag: &str| std::env::args().any(|a| a == flag);
        let (all, solve) = (asked("--all"), asked("--solve"));
        for _ in 0..20_000 {
            match (all, solve) {
                (true, _) => ready.refactor_all(),
                (_, false) => ready.refactor_bounded(),
                _ => {}
            }
            ready.solve(0);
        }
    }
}

fn sample(c: &mut Criterion) {
    for case in cases() {
        let mut ready = Ready::new(&case.problem, all_free(&case.problem), MixedOptions::default());
        let mut base = Baseline::new(case.problem.to_matrix());
        let labels = ready.labels.clone();
        let mut group = c.benchmark_group(case.name);
        group.sample_size(20);
        group.bench_function("baseline", |b| b.iter(|| black_box(base.pivot(&labels)).len()));
        group.bench_function("pivot", |b| {
            b.iter(|| {
                ready.refactor_bounded();
                ready.solve(0);
            })
        });
        group.bench_function("full", |b| {
            b.iter(|| {
                ready.refactor_all();
                ready.solve(0);
            })
        });
        group.finish();
    }
}

criterion_group!(benches, sample);

fn main() {
    let asked = |flag: &str| std::env::args().any(|a| a == flag);
    if asked("--table") {
        print_table();
        print_orderings();
    }
    if asked("--growth") {
        print_growth();
    }
    if asked("--loop") {
        loop_for_a_profiler();
    }
    if !asked("--table") && !asked("--growth") && !asked("--loop") {
        benches();
        Criterion::default().configure_from_args().final_summary();
    }
}
