//! `turnbuckle compare`: the same scene by several solvers, partitionings, numbers of threads or sizes; one row each,
//! like 000 Tables 3 and 4, Figs. 9, 12 and 13, and 003 Tables 6.2–6.4.

mod page;
mod recorded;

use super::output::write_text;
use super::run::{Film, Outputs, positive, simulate};
use super::table::meters;
use super::{Failure, SceneArgs, method, partitioning, replay};
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use turnbuckle::StepReport;
use turnbuckle::scene::Scene;
use turnbuckle::settings::Partitioning;
use turnbuckle::solver::Method;

/// Options of `compare`.
#[derive(Args)]
pub struct CompareArgs {
    #[command(flatten)]
    scene: SceneArgs,
    /// Solvers, the first is the baseline
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = method)]
    #[arg(default_value = "bpp,auto,ipm,pgs,pgs-sm,schur-bpp,schur-pgs-sm,fbic")]
    solvers: Vec<Method>,
    /// Partitionings to try [default: the scene's]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = partitioning)]
    partitions: Vec<Partitioning>,
    /// Numbers of threads to try [default: all cores]
    #[arg(long, value_name = "N,M,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Try each with and without warm start
    #[arg(long)]
    warm: bool,
    /// Try several values of a parameter, and fit how the solve time grows with the rows
    #[arg(long, value_name = "NAME=A,B,…")]
    grow: Option<String>,
    /// How many steps [default: the scene's length]
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// How many seconds
    #[arg(long, value_name = "S", value_parser = positive)]
    seconds: Option<f64>,
    /// Solve the same problems, recorded from one run with `auto`, instead of letting the trajectories drift apart
    #[arg(long)]
    recorded: bool,
    /// Record only every K-th step
    #[arg(long, value_name = "K", requires = "recorded", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Write the rows as JSON
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Write the rows as CSV
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Write a page with the table and plots
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Write a page that replays all runs side by side
    #[arg(long, value_name = "FILE.html", conflicts_with = "recorded")]
    replay: Option<PathBuf>,
}

/// One row: how one choice did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Solver.
    pub solver: String,
    /// Partitioning.
    pub partition: String,
    /// Threads.
    pub threads: usize,
    /// Warm start?
    pub warm_start: bool,
    /// Value of the parameter that grows, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// Steps or problems.
    pub steps: u64,
    /// Rows, mean.
    pub rows: f64,
    /// Solve time (ms).
    pub solve_mean: f64,
    /// Solve time (ms).
    pub solve_median: f64,
    /// Solve time (ms).
    pub solve_p99: f64,
    /// Baseline's mean solve time over this one's.
    pub speed_up: f64,
    /// Whole step (ms).
    pub step_mean: f64,
    /// Coupling iterations, mean.
    pub coupling: f64,
    /// Share of steps at the limit of coupling iterations.
    pub at_limit: f64,
    /// Pivots or iterations, mean.
    pub pivots: f64,
    /// Share of steps that did not reach the tolerance.
    pub unsettled: f64,
    /// Residual, median.
    pub residual_median: f64,
    /// Residual, largest.
    pub residual_max: f64,
    /// Largest joint error (m).
    pub joint_error: f64,
    /// Deepest penetration (m).
    pub penetration: f64,
    /// Promises of the scene that were broken.
    pub broken: usize,
    /// Time, solve time and residual of every step, for the plots.
    #[serde(skip)]
    pub curve: Vec<[f64; 3]>,
}

/// One choice to try.
struct Choice {
    solver: Method,
    partition: Option<Partitioning>,
    threads: usize,
    warm: bool,
    size: Option<(String, f64)>,
}

/// Runs the comparison.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let rows = if args.recorded { recorded::rows(args)? } else { live(args)? };
    let rows = with_speed_up(rows);
    let scene = args.scene.path().display().to_string();
    let growth = growth(&rows);
    print!("{}", table(&rows));
    for line in &growth {
        println!("  {line}");
    }
    if let Some(path) = &args.report {
        let json =
            serde_json::json!({ "scene": scene, "recorded": args.recorded, "rows": rows, "growth": growth });
        write_text(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &args.csv {
        write_text(path, &csv(&rows))?;
    }
    if let Some(path) = &args.html {
        write_text(path, &page::page(&scene, &rows, &growth))?;
        println!("  look at it: {}", path.display());
    }
    Ok(())
}

impl CompareArgs {
    fn choices(&self) -> Result<Vec<Choice>, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads: Vec<usize> = if self.threads.is_empty() {
            vec![cores]
        } else {
            self.threads.iter().map(|t| usize::from(*t)).collect()
        };
        let partitions: Vec<Option<Partitioning>> = if self.partitions.is_empty() {
            vec![None]
        } else {
            self.partitions.iter().copied().map(Some).collect()
        };
        let warm: &[bool] = if self.warm { &[true, false] } else { &[true] };
        let mut choices = Vec::new();
        for size in self.sizes()? {
            for &solver in &self.solvers {
                for &partition in &partitions {
                    for &threads in &threads {
                        for &warm in warm {
                            choices.push(Choice { solver, partition, threads, warm, size: size.clone() });
                        }
                    }
                }
            }
        }
        Ok(choices)
    }

    /// The values of `--grow`, or nothing once.
    fn sizes(&self) -> Result<Vec<Option<(String, f64)>>, Failure> {
        let Some(text) = &self.grow else { return Ok(vec![None]) };
        let bad = || Failure::Usage(format!("--grow {text}: expected NAME=A,B,…"));
        let (name, values) = text.split_once('=').ok_or_else(bad)?;
        values
            .split(',')
            .map(|v| Ok(Some((name.to_string(), v.trim().parse().map_err(|_| bad())?))))
            .collect()
    }

    fn load(&self, choice: &Choice) -> Result<Scene, Failure> {
        let mut options = self.scene.options()?;
        options.set.extend(choice.size.clone());
        let mut scene = turnbuckle::scene::load_with(self.scene.path(), &options)?;
        let settings = &mut scene.physics.settings;
        settings.method = choice.solver;
        settings.warm_start = choice.warm;
        if let Some(partition) = choice.partition {
            settings.partitioning = partition;
        }
        scene.physics.set_threads(choice.threads);
        Ok(scene)
    }

    fn steps(&self, scene: &Scene) -> u64 {
        let dt = scene.dt();
        match (self.steps, self.seconds) {
            (Some(n), _) => n,
            (None, Some(s)) => (s / dt).round().max(1.0) as u64,
            _ => scene.steps(dt),
        }
    }
}

/// Every choice runs the scene from its start.
fn live(args: &CompareArgs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut films = Vec::new();
    for choice in args.choices()? {
        let mut scene = args.load(&choice)?;
        let (dt, steps) = (scene.dt(), args.steps(&scene));
        let mut curve = Vec::new();
        let mut watch = |r: &StepReport| curve.push([r.time, r.solve_ms, r.residual]);
        let mut film = args.replay.as_ref().map(|p| Film::new(p.clone(), &scene, dt, choice.threads));
        let outputs = Outputs { film: film.as_mut(), watch: Some(&mut watch), ..Outputs::default() };
        let s = simulate(&mut scene, steps, dt, choice.threads, false, outputs)?;
        films.extend(film.map(|f| f.recorder.finish()));
        rows.push(Row {
            solver: s.solver,
            partition: s.partition,
            threads: s.threads,
            warm_start: choice.warm,
            size: choice.size.map(|(_, v)| v),
            steps: s.steps,
            rows: s.size.rows_mean,
            solve_mean: s.solve.mean,
            solve_median: s.solve.median,
            solve_p99: s.solve.p99,
            speed_up: 1.0,
            step_mean: s.step.mean,
            coupling: s.coupling.mean,
            at_limit: s.coupling.at_limit,
            pivots: s.pivots.mean,
            unsettled: s.unconverged_steps as f64 / s.steps.max(1) as f64,
            residual_median: s.residual.median,
            residual_max: s.residual.max,
            joint_error: s.joint_error.max,
            penetration: s.penetration.max,
            broken: s.expectations.iter().filter(|p| !p.kept).count(),
            curve,
        });
    }
    if let Some(path) = &args.replay {
        replay::write(path, &films)?;
        replay::say(path);
    }
    Ok(rows)
}

/// Speed against the first row of the same size.
fn with_speed_up(mut rows: Vec<Row>) -> Vec<Row> {
    for i in 0..rows.len() {
        let baseline = rows.iter().find(|r| r.size == rows[i].size).map_or(0.0, |r| r.solve_mean);
        rows[i].speed_up = baseline / rows[i].solve_mean.max(1e-12);
    }
    rows
}

/// Exponent of the mean solve time in the mean number of rows, by a log–log fit, for each solver.
fn growth(rows: &[Row]) -> Vec<String> {
    let mut solvers: Vec<&str> = Vec::new();
    for r in rows.iter().filter(|r| r.size.is_some()) {
        if !solvers.contains(&r.solver.as_str()) {
            solvers.push(&r.solver);
        }
    }
    let fit = |solver: &str| {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r.solver == solver && r.rows > 0.0 && r.solve_mean > 0.0)
            .map(|r| (r.rows.ln(), r.solve_mean.ln()))
            .collect();
        let n = points.len() as f64;
        let (mx, my) =
            (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let over: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
        let under: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
        (points.len() > 1 && under > 0.0).then(|| over / under)
    };
    solvers.iter().filter_map(|s| fit(s).map(|e| format!("{s}: solve time grows as rows^{e:.2}"))).collect()
}

fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\n{:<13} {:<14} {:>3} {:<4} {:>7} {:>6} {:>7} {:>9} {:>9} {:>9} {:>8} {:>6} {:>6} {:>7} {:>9} {:>9} {:>9} {:>10} {:>11} {:>6}",
        "solver",
        "partition",
        "thr",
        "warm",
        "size",
        "steps",
        "rows",
        "solve ms",
        "median",
        "p99",
        "speed-up",
        "coupl.",
        "limit",
        "pivots",
        "unsettled",
        "residual",
        "max",
        "joints",
        "penetration",
        "broken"
    );
    for r in rows {
        let size = r.size.map_or(String::from("-"), |v| format!("{v}"));
        let _ = writeln!(
            out,
            "{:<13} {:<14} {:>3} {:<4} {size:>7} {:>6} {:>7.0} {:>9.3} {:>9.3} {:>9.3} {:>7.2}x {:>6.1} {:>5.1}% {:>7.1} {:>8.1}% {:>9.1e} {:>9.1e} {:>10} {:>11} {:>6}",
            r.solver,
            r.partition,
            r.threads,
            if r.warm_start { "yes" } else { "no" },
            r.steps,
            r.rows,
            r.solve_mean,
            r.solve_median,
            r.solve_p99,
            r.speed_up,
            r.coupling,
            100.0 * r.at_limit,
            r.pivots,
            100.0 * r.unsettled,
            r.residual_median,
            r.residual_max,
            meters(r.joint_error),
            meters(r.penetration),
            r.broken
        );
    }
    out
}

fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "solver,partition,threads,warm_start,size,steps,rows,solve_mean,solve_median,solve_p99,speed_up,step_mean,coupling,at_limit,pivots,unsettled,residual_median,residual_max,joint_error,penetration,broken\n",
    );
    for r in rows {
        let size = r.size.map_or(String::new(), |v| v.to_string());
        let _ = writeln!(
            out,
            "{},{},{},{},{size},{},{},{},{},{},{},{},{},{},{},{},{:e},{:e},{:e},{:e},{}",
            r.solver,
            r.partition,
            r.threads,
            r.warm_start,
            r.steps,
            r.rows,
            r.solve_mean,
            r.solve_median,
            r.solve_p99,
            r.speed_up,
            r.step_mean,
            r.coupling,
            r.at_limit,
            r.pivots,
            r.unsettled,
            r.residual_median,
            r.residual_max,
            r.joint_error,
            r.penetration,
            r.broken
        );
    }
    out
}
