//! The same problems for every solver: recorded from one run, so that trajectories cannot drift apart.

use super::{Choice, CompareArgs, Row, Table};
use crate::cli::Failure;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use turnbuckle::schedule::{Stage, quantile};
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, SolveStats};

/// One island of one step, with the warm start it had.
struct Recorded {
    step: u64,
    island: usize,
    problem: RowProblem,
    start: Solution,
}

/// One step of one solver: its number, time (ms), squared residual, rows, and what its solves said.
type Solved = (u64, f64, f64, u32, SolveStats);

/// Slack (m/s) from which on a row at a bound is there in every solution.
const CLEAR: f64 = 1e-4;

/// Solves the recorded problems with every solver.
pub fn rows(args: &CompareArgs, table: &mut Table) -> Result<Vec<Row>, Failure> {
    let problems = record(args)?;
    let mut rows = Vec::new();
    let mut first = Vec::new();
    for &solver in &args.solvers {
        table.add(solve_all(solver, true, &problems, &mut first), &mut rows);
        if args.warm {
            table.add(solve_all(solver, false, &problems, &mut first), &mut rows);
        }
    }
    Ok(rows)
}

/// Is a row at a bound in `exact`, beyond doubt, at the same bound in `found`, for all rows?
fn agree(problem: &RowProblem, exact: &Solution, found: &Solution) -> bool {
    let mut w = vec![0.0; problem.rows()];
    problem.slack(&exact.v, &exact.lambda, &mut w);
    let same = |(i, w): (usize, &f64)| {
        exact.labels[i] == Label::Free || w.abs() <= CLEAR || exact.labels[i] == found.labels[i]
    };
    w.iter().enumerate().all(same)
}

fn record(args: &CompareArgs) -> Result<Vec<Recorded>, Failure> {
    let choice =
        Choice { solver: Method::Auto, inside: None, partition: None, threads: 1, warm: true, size: None };
    let mut scene = args.load(&choice)?;
    let (dt, steps, every) = (scene.dt(), args.steps(&scene), args.every);
    let kept: Arc<Mutex<Vec<Recorded>>> = Arc::default();
    let sink = Arc::clone(&kept);
    scene.physics.add_system(Stage::Assemble, "record", move |step| {
        if !(step.report.step - 1).is_multiple_of(every) {
            return;
        }
        // A poisoned lock would mean that this very closure panicked before.
        let Ok(mut kept) = sink.lock() else { return };
        for (island, group) in step.work.islands.iter().enumerate().filter(|(_, g)| g.problem.rows() > 0) {
            let (problem, start) = (group.problem.clone(), group.solution.clone());
            kept.push(Recorded { step: step.report.step, island, problem, start });
        }
    });
    for _ in 0..steps {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    let problems = Arc::into_inner(kept).and_then(|m| m.into_inner().ok()).unwrap_or_default();
    if problems.is_empty() {
        return Err(Failure::Simulation(
            "the run had no constraint rows: there is nothing to compare".into(),
        ));
    }
    Ok(problems)
}

fn solve_all(method: Method, warm: bool, problems: &[Recorded], first: &mut Vec<Solution>) -> Row {
    let baseline = first.is_empty();
    let (mut arrived, mut agreed) = (0u64, 0u64);
    // One solver per place in the list of islands keeps its analysis while the scene keeps its shape, as in the engine.
    let mut solvers: Vec<RowSolver> = Vec::new();
    let mut steps: Vec<Solved> = Vec::new();
    for (number, p) in problems.iter().enumerate() {
        solvers.resize_with(solvers.len().max(p.island + 1), || RowSolver::new(method));
        let mut solution = if warm { p.start.clone() } else { Solution::default() };
        let clock = Instant::now();
        let stats = solvers[p.island].solve(&p.problem, &mut solution);
        let ms = 1e3 * clock.elapsed().as_secs_f64();
        if baseline {
            first.push(solution);
        } else if stats.converged {
            arrived += 1;
            agreed += u64::from(agree(&p.problem, &first[number], &solution));
        }
        let squares = stats.residual * stats.residual;
        match steps.last_mut().filter(|s| s.0 == p.step) {
            Some(last) => {
                last.1 += ms;
                last.2 += squares;
                last.3 += p.problem.rows() as u32;
                last.4.pivots += stats.pivots + stats.ipm_iterations;
                last.4.inner_iterations += stats.inner_iterations;
                last.4.imaginary_share = last.4.imaginary_share.max(stats.imaginary_share);
                last.4.softened_rows += stats.softened_rows;
                last.4.converged &= stats.converged;
            }
            None => {
                let pivots = stats.pivots + stats.ipm_iterations;
                steps.push((p.step, ms, squares, p.problem.rows() as u32, SolveStats { pivots, ..stats }));
            }
        }
    }
    let n = steps.len().max(1) as f64;
    let sorted = |f: &dyn Fn(&Solved) -> f64| {
        let mut values: Vec<f64> = steps.iter().map(f).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (times, residuals) = (sorted(&|s| s.1), sorted(&|s| s.2.sqrt()));
    Row {
        solver: method.name().to_string(),
        partition: "recorded".into(),
        threads: 1,
        warm_start: warm,
        steps: steps.len() as u64,
        rows: steps.iter().map(|s| f64::from(s.3)).sum::<f64>() / n,
        solve_mean: times.iter().sum::<f64>() / n,
        solve_median: quantile(&times, 0.5),
        solve_p99: quantile(&times, 0.99),
        outer: steps.iter().map(|s| f64::from(s.4.pivots)).sum::<f64>() / n,
        inner: steps.iter().map(|s| s.4.inner_iterations as f64).sum::<f64>() / n,
        imaginary: steps.iter().map(|s| s.4.imaginary_share).fold(0.0, f64::max),
        softened: steps.iter().map(|s| s.4.softened_rows).max().unwrap_or(0),
        agree: (!baseline && arrived > 0).then(|| agreed as f64 / arrived as f64),
        unsettled: steps.iter().filter(|s| !s.4.converged).count() as f64 / n,
        residual_median: quantile(&residuals, 0.5),
        residual_max: residuals.last().copied().unwrap_or(0.0),
        curve: steps.iter().map(|s| [s.0 as f64, s.1, s.2.sqrt(), 0.0, 0.0]).collect(),
        ..Row::default()
    }
}
