//! From which size on do conjugate gradients pay? Nets and piles of boxes up to more than 100,000 rows, solved by the direct
//! solver (`auto`), `bpp-pcg` and `pgcg`: seconds of a warm solve, as within a simulation, and the most memory. (A cold one
//! by conjugate gradients takes minutes from some thousand contacts on: every row that reaches a bound costs a restart.)
//!
//! `cargo bench --bench crossing` prints the table and writes the figure `docs/pictures/crossing.svg`. Every solve is a process
//! of its own, so that its memory is its own, and is ended after `--limit` seconds (120). `--most ROWS` leaves larger
//! problems out. `-- --preconditioners` prints the inner iterations of `pgcg` by preconditioner instead (003 Figs. 6.1–6.3).

#[path = "support/child.rs"]
mod child;

use std::fmt::Write as _;
use std::time::{Duration, Instant};
use turnbuckle::linalg::incomplete::Kind;
use turnbuckle::solver::{Method, RowProblem, RowSolver, Solution, generate, index_sets};

/// Name, method and preconditioner.
const METHODS: [(&str, Method, Kind); 4] = [
    ("direct (auto)", Method::Auto, Kind::Imaginary),
    ("bpp-pcg", Method::BppPcg, Kind::Imaginary),
    ("pgcg", Method::Pgcg, Kind::Imaginary),
    ("bpp-pcg, ICT 1e-5", Method::BppPcg, Kind::Ict { drop: 1e-5, keep: usize::MAX }),
];
const COLORS: [&str; 4] = ["#3b82b0", "#d2552c", "#4c9f70", "#a06cb4"];
/// Cables of a net, each crossing all others; links a cable.
const NETS: [(usize, usize); 5] = [(4, 20), (8, 40), (16, 80), (28, 140), (40, 200)];
/// Boxes along an edge of a pile.
const PILES: [usize; 5] = [4, 8, 12, 16, 21];
/// Compliance of the rows (1/kg), as the engine's default.
const COMPLIANCE: f64 = 1e-6;

/// What one process found out.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    rows: f64,
    cold: f64,
    warm: f64,
    megabytes: f64,
    converged: bool,
    residual: f64,
    outer: f64,
    inner: f64,
}

fn problem(case: &str, size: usize) -> RowProblem {
    match case {
        "net" => generate::net(NETS[size].0, NETS[size].1, 0.0, COMPLIANCE),
        _ => generate::pile(PILES[size], COMPLIANCE),
    }
}

/// Solves one problem and says what it took, on one line. The direct solver comes first and leaves its cold answer in `file`,
/// from which all start.
fn one(case: &str, size: usize, method: usize, file: &str) {
    let mut problem = problem(case, size);
    let mut solver = RowSolver::new(METHODS[method].1);
    solver.settings.inner.preconditioner = METHODS[method].2;
    let mut solution = Solution::default();
    let mut cold = f64::NAN;
    if method == 0 {
        let clock = Instant::now();
        solver.solve(&problem, &mut solution);
        cold = clock.elapsed().as_secs_f64();
        let bytes: Vec<u8> = solution.lambda.iter().flat_map(|l| l.to_le_bytes()).collect();
        std::fs::write(file, bytes).expect("a temporary file");
    } else {
        let bytes = std::fs::read(file).unwrap_or_default();
        let number = |c: &[u8]| f64::from_le_bytes(c.try_into().expect("eight bytes"));
        solution.lambda = bytes.chunks_exact(8).map(number).collect();
        solution.labels = index_sets::labels_of(&solution.lambda, &problem.lo, &problem.hi);
    }
    // The next step of a scene at rest: everything moves a little differently.
    let mut random = generate::Random::new(3);
    for p in problem.momentum.iter_mut().flatten() {
        *p *= 1.0 + 1e-3 * random.normal();
    }
    let clock = Instant::now();
    let stats = solver.solve(&problem, &mut solution);
    let warm = clock.elapsed().as_secs_f64();
    println!(
        "{} {cold} {warm} {} {} {} {} {}",
        problem.rows(),
        most_memory(),
        u8::from(stats.converged),
        stats.residual_relative,
        stats.pivots + stats.ipm_iterations,
        stats.inner_iterations
    );
}

/// The most memory this process ever had (MB), where the system says so.
fn most_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// Runs [`one`] in a process of its own; nothing if it takes too long.
fn measure(case: &str, size: usize, method: usize, file: &str, limit: Duration) -> Option<Outcome> {
    let n = child::numbers([case, &size.to_string(), &method.to_string(), file], limit)?;
    let &[rows, cold, warm, megabytes, converged, residual, outer, inner] = &n[..] else { return None };
    Some(Outcome { rows, cold, warm, megabytes, converged: converged == 1.0, residual, outer, inner })
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let after = |name: &str| args.iter().position(|a| a == name).map(|i| &args[i + 1..]);
    if let Some([case, size, method, file, ..]) = after("--one") {
        return one(case, size.parse().expect("a number"), method.parse().expect("a number"), file);
    }
    if args.iter().any(|a| a == "--preconditioners") {
        return preconditioners();
    }
    let number = |name: &str, or: f64| after(name).and_then(|a| a.first()?.parse::<f64>().ok()).unwrap_or(or);
    let limit = Duration::from_secs_f64(number("--limit", 120.0));
    let most = number("--most", f64::INFINITY);
    println!("| problem | rows | solver | cold s | warm s | memory MB | outer | inner | residual |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut found: Vec<(&str, usize, Outcome)> = Vec::new();
    let file = std::env::temp_dir().join(format!("turnbuckle-crossing-{}", std::process::id()));
    let file = file.to_str().expect("a path of letters");
    for case in ["net", "pile"] {
        for size in 0..5 {
            let _ = std::fs::remove_file(file);
            let rows = problem(case, size).rows();
            if rows as f64 > most {
                continue;
            }
            for (k, (name, ..)) in METHODS.into_iter().enumerate() {
                // All others start from the direct solver's answer: it gets all the time it needs.
                let limit = if k == 0 { 5 * limit } else { limit };
                match measure(case, size, k, file, limit) {
                    Some(o) => {
                        let told = if o.converged { "" } else { " (says: not converged)" };
                        println!(
                            "| {case} | {rows} | {} | {} | {:.3} | {:.0} | {} | {} | {:.0e}{told} |",
                            name,
                            if o.cold.is_nan() { String::new() } else { format!("{:.3}", o.cold) },
                            o.warm,
                            o.megabytes,
                            o.outer,
                            o.inner,
                            o.residual
                        );
                        found.push((case, k, o));
                    }
                    None => {
                        println!("| {case} | {rows} | {name} | | > {:.0} | | | | |", limit.as_secs_f64());
                    }
                }
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures/crossing.svg");
    std::fs::write(path, figure(&found)).expect("the figure can be written");
    println!("\nthe figure is docs/pictures/crossing.svg");
}

/// Inner iterations of `pgcg` from a cold start, by preconditioner.
fn preconditioners() {
    let kinds = [
        Kind::Jacobi,
        Kind::BlockJacobi,
        Kind::Ic0,
        Kind::Compensated,
        Kind::PartialShift,
        Kind::Imaginary,
        Kind::Ict { drop: 1e-3, keep: usize::MAX },
        Kind::Ict { drop: 1e-5, keep: usize::MAX },
    ];
    println!("| preconditioner | chain of 100, 2,000 : 1 | net of 1,104 rows | pile of 633 rows |");
    println!("|---|---|---|---|");
    let chain = generate::chain(100, 500.0, 1e-8);
    let problems = [chain, problem("net", 0), problem("pile", 0)];
    for kind in kinds {
        let mut line = format!("| {kind:?} ");
        for problem in &problems {
            let mut solver = RowSolver::new(Method::Pgcg);
            solver.settings.inner.preconditioner = kind;
            let mut solution = Solution::default();
            let stats = solver.solve(problem, &mut solution);
            let told = if stats.converged { "" } else { " (no)" };
            let _ = write!(line, "| {}{told}", stats.inner_iterations);
            line.push(' ');
        }
        println!("{line}|");
    }
    println!("\n(no): did not reach 1e-9, and says so");
}

/// Time above, memory below; nets left, piles right; both axes logarithmic.
fn figure(found: &[(&str, usize, Outcome)]) -> String {
    let mut out = String::from(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 900 640' font-family='system-ui,sans-serif' font-size='12'>\
         <rect width='900' height='640' fill='#fff'/>",
    );
    let value: [fn(&Outcome) -> f64; 2] = [|o| o.warm, |o| o.megabytes];
    for (column, case) in ["net", "pile"].into_iter().enumerate() {
        for (row, (name, value)) in ["warm solve, s", "memory, MB"].into_iter().zip(value).enumerate() {
            let (left, top) = (70.0 + 440.0 * column as f64, 40.0 + 300.0 * row as f64);
            let all: Vec<f64> = found.iter().map(|f| value(&f.2)).filter(|v| *v > 0.0).collect();
            let low = all.iter().fold(f64::INFINITY, |m, v| m.min(*v)).log10().floor();
            let high = all.iter().fold(0.0f64, |m, v| m.max(*v)).log10().ceil().max(low + 1.0);
            let x = |rows: f64| left + (rows.log10() - 2.5) / 2.7 * 350.0;
            let y = |v: f64| top + (high - v.log10()) / (high - low) * 230.0;
            let _ =
                write!(out, "<text x='{left}' y='{}' font-weight='600'>{case}: {name}</text>", top - 14.0);
            for d in low as i32..=high as i32 {
                let at = y(10f64.powi(d));
                let _ = write!(
                    out,
                    "<path d='M{left} {at:.1}h350' stroke='#ddd'/><text x='{}' y='{:.1}' text-anchor='end'>1e{d}</text>",
                    left - 6.0,
                    at + 4.0
                );
            }
            for d in 3..=5 {
                let at = x(10f64.powi(d));
                let _ = write!(
                    out,
                    "<path d='M{at:.1} {top}v230' stroke='#eee'/><text x='{at:.1}' y='{}' text-anchor='middle'>1e{d} rows</text>",
                    top + 246.0
                );
            }
            for (k, color) in COLORS.into_iter().enumerate() {
                let mine: Vec<&Outcome> =
                    found.iter().filter(|f| f.0 == case && f.1 == k).map(|f| &f.2).collect();
                let points: String = mine.iter().fold(String::new(), |mut s, o| {
                    let _ = write!(s, "{:.1},{:.1} ", x(o.rows), y(value(o)));
                    s
                });
                let _ = write!(
                    out,
                    "<polyline fill='none' stroke='{color}' stroke-width='2' points='{points}'/>"
                );
                for o in mine {
                    // What did not converge is hollow.
                    let fill = if o.converged { color } else { "#fff" };
                    let _ = write!(
                        out,
                        "<circle cx='{:.1}' cy='{:.1}' r='4' fill='{fill}' stroke='{color}' stroke-width='2'/>",
                        x(o.rows),
                        y(value(o))
                    );
                }
            }
        }
    }
    for (k, (name, ..)) in METHODS.iter().enumerate() {
        let at = 70.0 + 130.0 * k as f64;
        let _ = write!(
            out,
            "<rect x='{at}' y='616' width='18' height='4' fill='{}'/><text x='{}' y='623'>{name}</text>",
            COLORS[k],
            at + 24.0
        );
    }
    out.push_str("<text x='640' y='623'>hollow: says that it did not converge</text></svg>\n");
    out
}
