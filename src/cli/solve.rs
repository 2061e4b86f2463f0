//! `turnbuckle solve`: one problem from files, written by `--dump-mlcp` or by anyone.

use super::Failure;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use turnbuckle::solver::{Method, Settings, SolveStats, files, solve_matrix};

/// Options of `solve`.
#[derive(Args)]
pub struct SolveFileArgs {
    /// Folder with A.mtx, b.txt, lo.txt, hi.txt and optional companions
    folder: PathBuf,
    /// Solver
    #[arg(long, value_name = "NAME", value_parser = super::method, default_value = "auto")]
    solver: Method,
    /// Write how it went to this file
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Write the impulses to lambda.txt, beside the report or else in the folder
    #[arg(long)]
    out: bool,
}

/// Reads, solves, prints, writes.
pub fn solve(args: &SolveFileArgs) -> Result<(), Failure> {
    let problem = files::read(&args.folder).map_err(usage)?;
    let start = Instant::now();
    let (solution, stats) = solve_matrix(&problem, args.solver, &Settings::default())
        .map_err(|e| Failure::Usage(format!("{}: {e}", args.folder.display())))?;
    let milliseconds = 1e3 * start.elapsed().as_secs_f64();
    print(args, problem.b.len(), milliseconds, &stats);
    if args.solver.is_substructured() {
        println!("cut        no: {}", not_cut(args, problem.partition.is_some()));
    }
    if let Some(path) = &args.report {
        let text = report(args, problem.b.len(), milliseconds, &stats);
        files::write_whole(path, &text).map_err(usage)?;
    }
    if args.out {
        let beside = args.report.as_deref().and_then(Path::parent).unwrap_or(&args.folder);
        files::write_column(&beside.join("lambda.txt"), solution.lambda.iter()).map_err(usage)?;
    }
    if stats.converged {
        return Ok(());
    }
    let residual = stats.residual_relative;
    Err(Failure::Simulation(format!(
        "{} did not reach a residual of 1e-9: it ended at {residual:.1e}; try --solver auto",
        args.solver.name()
    )))
}

/// Why a method that works on partitions has none here.
fn not_cut(args: &SolveFileArgs, named: bool) -> String {
    let why = match named {
        false => "there is no partition.txt",
        // A partition is a set of bodies, each with its mass; the matrix has summed them up.
        true => "a matrix has no bodies for the partitions of partition.txt",
    };
    format!("{why}, so {} was answered by {}", args.solver.name(), args.solver.of_whole().name())
}

fn usage(error: files::FileError) -> Failure {
    Failure::Usage(error.to_string())
}

fn print(args: &SolveFileArgs, rows: usize, milliseconds: f64, stats: &SolveStats) {
    println!("rows       {rows}");
    println!("solver     {}", args.solver.name());
    println!("time       {milliseconds:.3} ms");
    println!("pivots     {} and {} interior-point iterations", stats.pivots, stats.ipm_iterations);
    println!("residual   {:.3e} ({:.1e} relative)", stats.residual, stats.residual_relative);
}

fn report(args: &SolveFileArgs, rows: usize, milliseconds: f64, stats: &SolveStats) -> String {
    let value = json!({
        "turnbuckle": env!("CARGO_PKG_VERSION"),
        "problem": args.folder.display().to_string(),
        "solver": args.solver.name(),
        "solved_by": args.solver.of_whole().name(),
        "rows": rows,
        "time": milliseconds,
        "converged": stats.converged,
        "residual": stats.residual,
        "residual_relative": stats.residual_relative,
        "residual_energy": stats.residual_energy,
        "pivots": stats.pivots,
        "ipm_iterations": stats.ipm_iterations,
        "factorizations": stats.factorizations,
        "inner_iterations": stats.inner_iterations,
        "imaginary_share": stats.imaginary_share,
    });
    format!("{value:#}\n")
}
