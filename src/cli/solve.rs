//! `turnbuckle solve`: one problem from files, written by `--dump-mlcp` or by anyone.

use super::Failure;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use turnbuckle::solver::files::row_form::{self, RowForm};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Method, RowSolver, Settings, Solution, SolveStats, files, solve_matrix};

/// Options of `solve`.
#[derive(Args)]
pub struct SolveFileArgs {
    /// Folder with A.mtx, b.txt (or the row form M.mtx, J.mtx, p.txt, d.txt, C.txt), lo.txt, hi.txt and optional companions
    folder: PathBuf,
    /// Solver
    #[arg(long, value_name = "NAME", value_parser = super::method, default_value = "auto")]
    solver: Method,
    /// Write how it went to this file
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Write the impulses to lambda.txt (and velocities to v.txt where the row form is given), beside the report or else in the folder
    #[arg(long)]
    out: bool,
    /// Exactly N passes of an iterative solver (sweeps, pivots, interior-point iterations)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
}

impl SolveFileArgs {
    fn settings(&self) -> Settings {
        let plain = Settings::default();
        match self.iterations {
            // No residual is below zero, so nothing ends before its last pass.
            Some(n) => Settings {
                target: -1.0,
                max_sweeps: n,
                max_pivots: n,
                max_outer: n,
                max_iterations: n,
                warm_pivots: n,
                ..plain
            },
            None => plain,
        }
    }
}

/// What was solved.
struct Solved {
    rows: usize,
    solution: Solution,
    stats: SolveStats,
    /// Velocities in the order of the files.
    v: Option<Vec<f64>>,
    cones: usize,
    named: bool,
}

/// Reads, solves, prints, writes.
pub fn solve(args: &SolveFileArgs) -> Result<(), Failure> {
    let start;
    let Solved { rows, solution, stats, v, cones, named } = match rows_wanted(args)? {
        Some(form) => {
            start = Instant::now();
            solve_rows(args, &form)
        }
        None => {
            let problem = files::read(&args.folder).map_err(usage)?;
            start = Instant::now();
            let (solution, stats) = solve_matrix(&problem, args.solver, &args.settings())
                .map_err(|e| Failure::Usage(format!("{}: {e}", args.folder.display())))?;
            let (cones, named) = (problem.cones.len(), problem.partition.is_some());
            Solved { rows: problem.b.len(), solution, stats, v: None, cones, named }
        }
    };
    let milliseconds = 1e3 * start.elapsed().as_secs_f64();
    print(args, rows, milliseconds, &stats);
    if cones > 0 {
        println!("law        Coulomb's, {cones} cones; the residual is that of De Saxcé's form");
    }
    if args.solver.is_substructured() {
        println!("cut        no: {}", not_cut(args, named));
    }
    if let Some(path) = &args.report {
        let text = report(args, rows, cones, milliseconds, &stats);
        files::write_whole(path, &text).map_err(usage)?;
    }
    if args.out {
        let beside = args.report.as_deref().and_then(Path::parent).unwrap_or(&args.folder);
        files::write_column(&beside.join("lambda.txt"), solution.lambda.iter()).map_err(usage)?;
        if let Some(v) = &v {
            files::write_column(&beside.join("v.txt"), v.iter()).map_err(usage)?;
        }
    }
    if stats.converged || args.iterations.is_some() {
        return Ok(());
    }
    let residual = stats.residual_relative;
    Err(Failure::Simulation(format!(
        "{} did not reach a residual of 1e-9: it ended at {residual:.1e}; try --solver auto",
        args.solver.name()
    )))
}

/// The row form, where the folder has it and the method works on it; baselines work on A.
fn rows_wanted(args: &SolveFileArgs) -> Result<Option<RowForm>, Failure> {
    let baseline = matches!(args.solver, Method::Pgs | Method::PgsSm | Method::BppPcg | Method::Pgcg);
    if baseline { Ok(None) } else { row_form::read(&args.folder).map_err(usage) }
}

fn solve_rows(args: &SolveFileArgs, form: &RowForm) -> Solved {
    let mut solver: RowSolver = Solver::new(args.solver.of_whole());
    solver.settings = args.settings();
    let mut solution = Solution { lambda: form.lambda0.clone().unwrap_or_default(), ..Solution::default() };
    let stats = solver.solve(&form.problem, &mut solution);
    let v = form.place.iter().map(|&at| solution.v[at]).collect();
    let (rows, cones) = (form.problem.rows(), form.problem.cones.len());
    Solved { rows, solution, stats, v: Some(v), cones, named: form.subsystem.is_some() }
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

fn report(args: &SolveFileArgs, rows: usize, cones: usize, milliseconds: f64, stats: &SolveStats) -> String {
    let value = json!({
        "turnbuckle": env!("CARGO_PKG_VERSION"),
        "problem": args.folder.display().to_string(),
        "solver": args.solver.name(),
        "solved_by": args.solver.of_whole().name(),
        "rows": rows,
        "cones": cones,
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
