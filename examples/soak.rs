//! Solves many random problems and says how it went: `cargo run --release --example soak -- 1000000`.
//!
//! Arguments: count, first seed, largest number of rows, solver name (all optional).

#[path = "../tests/support/mlcp.rs"]
#[allow(dead_code, missing_docs)]
mod support;

use turnbuckle::solver::{Method, RowSolver, Solution};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(10_000);
    let first: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(0);
    let rows: usize = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(60);
    let name = arguments.next().unwrap_or_else(|| "auto".to_string());
    let Some(method) = Method::from_name(&name) else {
        eprintln!("There is no solver called {name}.");
        std::process::exit(2);
    };
    let start = std::time::Instant::now();
    let (mut worst_seed, mut loose, mut inner) = (first, 0u64, 0u64);
    let (mut failed, mut worst, mut factorizations, mut most, mut interior) = (0u64, 0.0f64, 0u64, 0, 0u64);
    for seed in first..first + count {
        let problem = support::any_problem(seed, rows);
        let mut solution = Solution::default();
        let stats = RowSolver::new(method).solve(&problem, &mut solution);
        if stats.residual_relative >= worst {
            worst_seed = seed;
        }
        worst = worst.max(stats.residual_relative);
        loose += u64::from(stats.residual_relative > 1e-10);
        factorizations += u64::from(stats.factorizations);
        most = most.max(stats.factorizations);
        interior += u64::from(stats.ipm_iterations > 0);
        inner += stats.inner_iterations;
        if !stats.converged {
            failed += 1;
            if failed <= 20 {
                println!("seed {seed}: {} rows, {stats:?}", problem.rows());
            }
        }
    }
    println!(
        "{count} problems up to {rows} rows with {name}: {failed} not converged, worst relative residual {worst:.1e} (seed {worst_seed}), {loose} above 1e-10, \
         {:.2} factorizations on average, {most} at most, {:.1} % by interior point, {:.0} inner iterations on average, {:.1} s",
        factorizations as f64 / count.max(1) as f64,
        100.0 * interior as f64 / count.max(1) as f64,
        inner as f64 / count.max(1) as f64,
        start.elapsed().as_secs_f64()
    );
}
