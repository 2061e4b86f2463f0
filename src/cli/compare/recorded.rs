//! The same problems for every solver: recorded from one run, so that trajectories cannot drift apart.

use super::{Choice, CompareArgs, Row, Table, name_of};
use crate::cli::Failure;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use turnbuckle::coupling::coupling_loop::CouplingLoop;
use turnbuckle::coupling::cut::Seam;
use turnbuckle::coupling::executor::Serial;
use turnbuckle::coupling::substructured::Substructured;
use turnbuckle::graph::Grouping;
use turnbuckle::schedule::{Stage, quantile};
use turnbuckle::settings::{CouplingOptions, Partitioning, Settings};
use turnbuckle::solver::row_solver::Solver;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, SolveStats};
use turnbuckle::state::Scheme;
use turnbuckle::systems::couple::coupling_settings;
use turnbuckle::systems::partition::cut_islands;

/// One island of one step, with the warm start it had.
struct Recorded {
    step: u64,
    island: usize,
    problem: RowProblem,
    start: Solution,
    /// How it is cut under each of the settings compared, in their order; none where it stays whole.
    cuts: Vec<Option<(Scheme, Grouping)>>,
}

/// What one step of one choice came to.
struct Solved {
    step: u64,
    ms: f64,
    squares: f64,
    rows: u32,
    partitions: u32,
    cut: bool,
    /// Coupling iterations, the most of an island, and whether one ended at the limit.
    coupling: (u32, bool),
    stats: SolveStats,
}

/// Slack (m/s) from which on a row at a bound is there in every solution.
const CLEAR: f64 = 1e-4;

/// Solves the recorded problems with every solver and partitioning.
pub fn rows(args: &CompareArgs, table: &mut Table) -> Result<Vec<Row>, Failure> {
    let mut choices = args.choices()?;
    // Problems are solved one after another on one thread, and are those of one size.
    if let Some(first) = choices.first().map(|c| (c.threads, c.size.clone())) {
        choices.retain(|c| (c.threads, &c.size) == (first.0, &first.1));
    }
    let (problems, settings) = record(args, &choices)?;
    let mut rows = Vec::new();
    let mut first = Vec::new();
    for (number, (choice, settings)) in choices.iter().zip(&settings).enumerate() {
        table.add(solve_all(number, choice, settings, &problems, &mut first), &mut rows);
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

/// The problems of a run with `auto`, and the settings of every choice.
fn record(args: &CompareArgs, choices: &[Choice]) -> Result<(Vec<Recorded>, Vec<Settings>), Failure> {
    let choice =
        Choice { solver: Method::Auto, inside: None, partition: None, threads: 1, warm: true, size: None };
    let mut scene = args.load(&choice)?;
    let (dt, steps, every) = (scene.dt(), args.steps(&scene), args.every);
    let own = &scene.physics.settings;
    let settings: Vec<Settings> = choices
        .iter()
        .map(|choice| Settings {
            method: choice.solver,
            partitioning: choice.partition.unwrap_or(own.partitioning),
            coupling: CouplingOptions {
                partition_solver: choice.inside,
                interface_solver: args.interface_solver,
                ..own.coupling.clone()
            },
            ..own.clone()
        })
        .collect();
    let kept: Arc<Mutex<Vec<Recorded>>> = Arc::default();
    let (sink, asked) = (Arc::clone(&kept), settings.clone());
    scene.physics.add_system(Stage::Assemble, "record", move |step| {
        if !(step.report.step - 1).is_multiple_of(every) {
            return;
        }
        // A poisoned lock would mean that this very closure panicked before.
        let Ok(mut kept) = sink.lock() else { return };
        let first = kept.len();
        for (island, group) in step.work.islands.iter().enumerate().filter(|(_, g)| g.problem.rows() > 0) {
            let (problem, start) = (group.problem.clone(), group.solution.clone());
            kept.push(Recorded { step: step.report.step, island, problem, start, cuts: Vec::new() });
        }
        for settings in &asked {
            cut_islands(step.work, settings);
            for recorded in &mut kept[first..] {
                let cut = &step.work.islands[recorded.island].cut;
                let is_cut = cut.scheme != Scheme::Monolithic;
                recorded.cuts.push(is_cut.then(|| (cut.scheme, cut.grouping.clone())));
            }
        }
        // The run itself goes on as its own settings have it.
        cut_islands(step.work, step.settings);
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
    Ok((problems, settings))
}

/// What one place in the list of islands is solved by: each keeps its analysis while the scene keeps its shape, as in the
/// engine.
struct Place {
    whole: RowSolver,
    flat: Solver<Substructured<Serial>>,
    nested: CouplingLoop,
}

impl Place {
    fn new(settings: &Settings) -> Place {
        let mut nested = CouplingLoop::default();
        nested.set_inside(settings.coupling.partition_solver, settings.coupling.partition_solver_rows);
        Place {
            whole: RowSolver::new(settings.method.of_whole()),
            flat: Solver::new(settings.method),
            nested,
        }
    }

    /// Solves a problem cut like this; also gives the coupling iterations and whether they ended at their limit.
    fn solve(
        &mut self,
        problem: &RowProblem,
        cut: Option<&(Scheme, Grouping)>,
        settings: &Settings,
        solution: &mut Solution,
    ) -> (SolveStats, (u32, bool)) {
        let Some((scheme, grouping)) = cut else {
            return (self.whole.solve(problem, solution), (1, false));
        };
        if *scheme == Scheme::Substructured {
            self.flat.linear_mut().set_grouping(grouping, Seam::Bodies);
            return (self.flat.solve(problem, solution), (1, false));
        }
        let (nested, tolerance) = (&mut self.nested, self.whole.settings.tolerance);
        nested.load(problem, grouping, &solution.labels, settings.coupling.as_published, &Serial);
        let force = settings.method == Method::Fbic;
        match force {
            true => nested.exchange_forces(&Serial),
            false => nested.coupling().run(&coupling_settings(settings), &Serial),
        }
        let (iterations, settled) = nested.outcome();
        let agree = !settings.coupling.as_published && !force;
        (nested.finish(problem, solution, tolerance, agree, &Serial), (iterations, !settled))
    }
}

fn solve_all(
    number: usize,
    choice: &Choice,
    settings: &Settings,
    problems: &[Recorded],
    first: &mut Vec<Solution>,
) -> Row {
    let baseline = first.is_empty();
    let (mut arrived, mut agreed) = (0u64, 0u64);
    let mut places: Vec<Place> = Vec::new();
    let mut steps: Vec<Solved> = Vec::new();
    for (k, p) in problems.iter().enumerate() {
        places.resize_with(places.len().max(p.island + 1), || Place::new(settings));
        let mut solution = if choice.warm { p.start.clone() } else { Solution::default() };
        let cut = p.cuts[number].as_ref();
        let clock = Instant::now();
        let (stats, coupling) = places[p.island].solve(&p.problem, cut, settings, &mut solution);
        let ms = 1e3 * clock.elapsed().as_secs_f64();
        if baseline {
            first.push(solution);
        } else if stats.converged {
            arrived += 1;
            agreed += u64::from(agree(&p.problem, &first[k], &solution));
        }
        let own = Solved {
            step: p.step,
            ms,
            squares: stats.residual * stats.residual,
            rows: p.problem.rows() as u32,
            partitions: cut.map_or(1, |(_, grouping)| grouping.count),
            cut: cut.is_some(),
            coupling,
            stats: SolveStats { pivots: stats.pivots + stats.ipm_iterations, ..stats },
        };
        match steps.last_mut().filter(|s| s.step == p.step) {
            Some(last) => last.add(&own),
            None => steps.push(own),
        }
    }
    row(
        choice,
        settings.partitioning,
        &steps,
        (!baseline && arrived > 0).then(|| agreed as f64 / arrived as f64),
    )
}

impl Solved {
    /// Another island of the same step.
    fn add(&mut self, other: &Solved) {
        self.ms += other.ms;
        self.squares += other.squares;
        self.rows += other.rows;
        self.partitions += other.partitions;
        self.cut |= other.cut;
        self.coupling = (self.coupling.0.max(other.coupling.0), self.coupling.1 | other.coupling.1);
        let (own, other) = (&mut self.stats, &other.stats);
        own.pivots += other.pivots;
        own.inner_iterations += other.inner_iterations;
        own.imaginary_share = own.imaginary_share.max(other.imaginary_share);
        own.softened_rows += other.softened_rows;
        own.converged &= other.converged;
    }
}

fn row(choice: &Choice, partitioning: Partitioning, steps: &[Solved], agree: Option<f64>) -> Row {
    let n = steps.len().max(1) as f64;
    let mean = |f: &dyn Fn(&Solved) -> f64| steps.iter().map(f).sum::<f64>() / n;
    let sorted = |f: &dyn Fn(&Solved) -> f64| {
        let mut values: Vec<f64> = steps.iter().map(f).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (times, residuals) = (sorted(&|s| s.ms), sorted(&|s| s.squares.sqrt()));
    Row {
        solver: choice.solver.name().to_string(),
        inside: name_of(choice.inside),
        partition: partitioning.to_string(),
        partitions: mean(&|s| f64::from(s.partitions)),
        cut: mean(&|s| f64::from(u8::from(s.cut))),
        threads: 1,
        warm_start: choice.warm,
        steps: steps.len() as u64,
        rows: mean(&|s| f64::from(s.rows)),
        solve_mean: times.iter().sum::<f64>() / n,
        solve_median: quantile(&times, 0.5),
        solve_p99: quantile(&times, 0.99),
        coupling: mean(&|s| f64::from(s.coupling.0)),
        at_limit: mean(&|s| f64::from(u8::from(s.coupling.1))),
        outer: mean(&|s| f64::from(s.stats.pivots)),
        inner: mean(&|s| s.stats.inner_iterations as f64),
        imaginary: steps.iter().map(|s| s.stats.imaginary_share).fold(0.0, f64::max),
        softened: steps.iter().map(|s| s.stats.softened_rows).max().unwrap_or(0),
        agree,
        unsettled: mean(&|s| f64::from(u8::from(!s.stats.converged))),
        residual_median: quantile(&residuals, 0.5),
        residual_max: residuals.last().copied().unwrap_or(0.0),
        curve: steps.iter().map(|s| [s.step as f64, s.ms, s.squares.sqrt(), 0.0, 0.0]).collect(),
        ..Row::default()
    }
}
