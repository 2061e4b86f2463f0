//! `turnbuckle compare`: the same scene by several solvers, partitionings, numbers of threads or sizes; one row each,
//! like 000 Tables 3 and 4, Figs. 9, 12 and 13, and 003 Tables 6.2–6.4.

mod page;
mod recorded;
mod rows;

use super::output::write_text;
use super::run::{Film, Outputs, positive, simulate};
use super::{Failure, SceneArgs, method, partitioning, replay};
use clap::Args;
pub use rows::Row;
use rows::{Table, about_cuts, csv, growth};
use std::path::PathBuf;
use turnbuckle::StepReport;
use turnbuckle::replay::Recording;
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
    /// Solvers inside the partitions of `schur-…` to try [default: the one that suits each]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = method)]
    partition_solvers: Vec<Method>,
    /// Solver of the interface of `schur-…` [default: the one of its name]
    #[arg(long, value_name = "NAME", value_parser = method)]
    interface_solver: Option<Method>,
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
    /// Solve the same problems on one thread, recorded from one run with `auto`, instead of letting the trajectories drift apart
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
    /// Write a page: all runs side by side, the table, and plots
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

/// One choice to try.
#[derive(Clone)]
struct Choice {
    solver: Method,
    inside: Option<Method>,
    partition: Option<Partitioning>,
    threads: usize,
    warm: bool,
    size: Option<(String, f64)>,
}

/// Runs the comparison.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let mut table = Table::new(args);
    let (rows, films) =
        if args.recorded { (recorded::rows(args, &mut table)?, Vec::new()) } else { live(args, &mut table)? };
    let scene = args.scene.path().file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let growth = growth(&rows);
    let notes: Vec<String> = growth.iter().cloned().chain(about_cuts(&rows)).collect();
    for line in &notes {
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
        replay::make_folder(path)?;
        write_text(path, &page::page(&scene, &rows, &notes, &films))?;
        replay::say(path);
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
        let mut insides: Vec<Option<Method>> = self.partition_solvers.iter().copied().map(Some).collect();
        if insides.is_empty() {
            insides.push(None);
        }
        let mut choices = Vec::new();
        for size in self.sizes()? {
            for &solver in &self.solvers {
                for &partition in &partitions {
                    for &inside in if is_nested(solver) { &insides[..] } else { &[None] } {
                        for &threads in &threads {
                            for &warm in warm {
                                let size = size.clone();
                                choices.push(Choice { solver, inside, partition, threads, warm, size });
                            }
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
        settings.tuning.warm_start = choice.warm;
        settings.coupling.partition_solver = choice.inside;
        settings.coupling.interface_solver = self.interface_solver;
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

/// Does this method have solvers inside its partitions?
fn is_nested(method: Method) -> bool {
    method.is_substructured() && method != Method::SchurIpm
}

/// A solver that was asked for inside partitions, as a word.
fn name_of(inside: Option<Method>) -> String {
    inside.map_or_else(String::new, |m| m.name().to_string())
}

/// Every choice runs the scene from its start; with films for the page, if there is to be one.
fn live(args: &CompareArgs, table: &mut Table) -> Result<(Vec<Row>, Vec<Recording>), Failure> {
    let mut rows: Vec<Row> = Vec::new();
    let mut films = Vec::new();
    for choice in args.choices()? {
        let mut scene = args.load(&choice)?;
        let (dt, steps) = (scene.dt(), args.steps(&scene));
        let mut curve = Vec::new();
        let mut watch = |r: &StepReport| {
            curve.push([r.time, r.solve_ms, r.residual, r.joint_error_max, r.penetration_max]);
        };
        // Threads, partitions and warm starts change the time and not what is seen: one film a solver.
        let same = |r: &Row| {
            r.solver == choice.solver.name() && r.inside == name_of(choice.inside) && r.size == rows[0].size
        };
        let new =
            !rows.iter().any(same) && (rows.is_empty() || choice.size.as_ref().map(|s| s.1) == rows[0].size);
        let mut film =
            args.html.as_ref().filter(|_| new).map(|p| Film::new(p.clone(), &scene, dt, choice.threads));
        let outputs = Outputs { film: film.as_mut(), watch: Some(&mut watch), ..Outputs::default() };
        let s = simulate(&mut scene, steps, dt, choice.threads, false, outputs)?;
        let row = Row {
            label: String::new(),
            solver: s.solver,
            inside: name_of(choice.inside),
            partition: s.partition,
            partitions: s.size.partitions_mean,
            cut: s.size.cut,
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
            outer: s.pivots.mean,
            inner: s.conjugate.inner_mean,
            imaginary: s.conjugate.imaginary_share,
            softened: s.conjugate.softened_rows,
            agree: None,
            unsettled: s.unconverged_steps as f64 / s.steps.max(1) as f64,
            residual_median: s.residual.median,
            residual_max: s.residual.max,
            joint_error: s.joint_error.max,
            penetration: s.penetration.max,
            broken: s.expectations.iter().filter(|p| !p.kept).count(),
            curve,
        };
        films.extend(film.map(|f| {
            let mut film = f.recorder.finish();
            film.info.solver.clone_from(&row.solver);
            if !row.inside.is_empty() {
                film.info.solver = format!("{}/{}", row.solver, row.inside);
            }
            film
        }));
        table.add(row, &mut rows);
    }
    Ok((rows, films))
}
