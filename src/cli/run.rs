//! `turnbuckle run`.

use super::output::{Output, write_text};
use super::{Failure, SceneArgs, SolveArgs, replay, table};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use turnbuckle::StepReport;
use turnbuckle::replay::{RecordOptions, Recorder};
use turnbuckle::scene::summary::{Summary, Tally, Watched};
use turnbuckle::scene::{Judge, Scene, Watch};
use turnbuckle::testing::state_hash;

/// Options of `run`.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    scene: SceneArgs,
    #[command(flatten)]
    solve: SolveArgs,
    /// How many steps [default: the scene's length]
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// How many seconds
    #[arg(long, value_name = "S", value_parser = positive)]
    seconds: Option<f64>,
    /// Length of a step in seconds [default: the scene's]
    #[arg(long, value_name = "H", value_parser = positive)]
    dt: Option<f64>,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Write one CSV line per step
    #[arg(long, value_name = "FILE.csv")]
    trace: Option<PathBuf>,
    /// Read out bodies and joints by their names, in which * stands for anything: poses and velocities (NAME.x .y .z .qw … .vx … .wz),
    /// coordinates, rates and forces (NAME.q0 .qd0 .f0 …, .fx … .tz), into --trace and --report; may be repeated
    #[arg(long, value_name = "PATTERN")]
    watch: Vec<String>,
    /// Write a page that replays the run [default: out/SCENE.html, unless --quiet]
    #[arg(long, value_name = "FILE.html")]
    replay: Option<PathBuf>,
    /// Write no replay page
    #[arg(long, conflicts_with = "replay")]
    no_replay: bool,
    /// Write every MLCP as a folder of files
    #[arg(long, value_name = "DIR")]
    dump_mlcp: Option<PathBuf>,
    /// Dump only every K-th step
    #[arg(long, value_name = "K", requires = "dump_mlcp", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Fail (exit code 1) if the scene breaks one of its promises
    #[arg(long)]
    expect: bool,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
}

/// A positive number of seconds.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() && v > 0.0 => Ok(v),
        _ => Err("expected a positive finite number of seconds".into()),
    }
}

/// Runs a scene.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut scene = args.scene.load()?;
    let threads = args.solve.apply(&mut scene);
    let dt = args.dt.unwrap_or_else(|| scene.dt());
    let steps = match (args.steps, args.seconds) {
        (Some(n), _) => n,
        (None, Some(s)) => (s / dt).round().max(1.0) as u64,
        _ => scene.steps(dt),
    };
    let mut readout = Readout::new(&scene, &args.watch)?;
    let columns = readout.watch.columns();
    let mut trace = args.trace.as_deref().map(|p| Trace::new(p, &scene, columns)).transpose()?;
    if let Some(folder) = &args.dump_mlcp {
        dump::attach(&mut scene, folder, args.every)?;
    }
    let mut film = args.replay_path(&scene).map(|path| Film::new(path, &scene, dt, threads));
    let outputs =
        Outputs { trace: trace.as_mut(), film: film.as_mut(), readout: Some(&mut readout), watch: None };
    let summary = simulate(&mut scene, steps, dt, threads, args.quiet, outputs)?;
    if let Some(trace) = trace {
        trace.output.finish()?;
    }
    if let Some(path) = &args.report {
        let mut json =
            serde_json::to_string_pretty(&summary).map_err(|e| Failure::Simulation(e.to_string()))?;
        json.push('\n');
        write_text(path, &json)?;
    }
    let page = film.map(Film::finish).transpose()?;
    if !args.quiet {
        print!("{}", table::of_run(&summary, &scene.plan.about));
        if let Some(page) = page {
            replay::say(&page);
        }
    }
    if !summary.completed {
        return Err(Failure::Simulation(summary.reason));
    }
    let broken = summary.expectations.iter().find(|p| !p.kept);
    match broken {
        Some(p) if args.expect => {
            Err(Failure::Simulation(format!("the scene breaks a promise: {}", p.promise)))
        }
        _ => Ok(()),
    }
}

/// Steps the scene to its end and adds everything up.
pub fn simulate(
    scene: &mut Scene,
    steps: u64,
    dt: f64,
    threads: usize,
    quiet: bool,
    mut outputs: Outputs<'_>,
) -> Result<Summary, Failure> {
    let mut judge = Judge::new(scene);
    let mut tally = Tally::new(judge.start_energy());
    let bar = progress(steps, quiet, &scene.plan.name);
    let mut reason = String::new();
    for n in 1..=steps {
        let report = scene.physics.step(&mut scene.world, dt).clone();
        tally.add(&report);
        judge.observe(scene, &report, n == steps);
        if let Some(readout) = &mut outputs.readout {
            readout.look(scene);
        }
        if let Some(trace) = &mut outputs.trace {
            let values = outputs.readout.as_ref().map_or(&[][..], |r| &r.values);
            trace.add(&report, &scene.physics.last_step_timings(), values)?;
        }
        if let Some(watch) = &mut outputs.watch {
            watch(&report);
        }
        if let Some(film) = &mut outputs.film {
            film.recorder.observe(&scene.world, &mut scene.physics);
        }
        bar.inc(1);
        if report.quarantined > 0 && report.quarantined as usize >= dynamic_bodies(scene) {
            reason = format!(
                "at {:.3} s every body that moves is in quarantine; nothing is left to simulate",
                report.time
            );
            break;
        }
    }
    bar.finish_and_clear();
    let hash = state_hash(&scene.world);
    let mut summary = tally.summary(&scene.plan.name, &mut scene.physics, &judge, threads, dt, hash);
    if let Some(readout) = &outputs.readout {
        let columns = readout.watch.columns().iter().cloned();
        summary.watch = columns.zip(readout.seen.iter().copied()).collect();
    }
    summary.completed = reason.is_empty();
    summary.reason = reason;
    Ok(summary)
}

fn dynamic_bodies(scene: &Scene) -> usize {
    use turnbuckle::components::BodyKind;
    scene.plan.bodies.iter().filter(|b| b.kind == BodyKind::Dynamic).count()
}

/// A bar on stderr; indicatif draws nothing where that is not a terminal.
fn progress(steps: u64, quiet: bool, name: &str) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} steps, {per_sec}, {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(name.to_string());
    bar
}

/// What is written while the run goes on.
#[derive(Default)]
pub struct Outputs<'a> {
    /// The CSV.
    pub trace: Option<&'a mut Trace>,
    /// A recording for a replay page.
    pub film: Option<&'a mut Film>,
    /// Reads out what is watched.
    pub readout: Option<&'a mut Readout>,
    /// Sees every report.
    pub watch: Option<&'a mut dyn FnMut(&StepReport)>,
}

impl RunArgs {
    fn replay_path(&self, scene: &Scene) -> Option<PathBuf> {
        match &self.replay {
            Some(path) => Some(path.clone()),
            None if self.quiet || self.no_replay => None,
            None => Some(Path::new("out").join(&scene.plan.name).with_extension("html")),
        }
    }
}

/// The replay of a run.
pub struct Film {
    path: PathBuf,
    /// What it has seen.
    pub recorder: Recorder,
}

impl Film {
    /// An empty film of a scene.
    pub fn new(path: PathBuf, scene: &Scene, dt: f64, threads: usize) -> Film {
        Film { path, recorder: Recorder::of_scene(scene, dt, threads, RecordOptions::default()) }
    }

    fn finish(self) -> Result<PathBuf, Failure> {
        replay::write(&self.path, &[self.recorder.finish()])?;
        Ok(self.path)
    }
}

/// What is watched, and what it was so far.
pub struct Readout {
    watch: Watch,
    values: Vec<f64>,
    seen: Vec<Watched>,
}

impl Readout {
    fn new(scene: &Scene, patterns: &[String]) -> Result<Readout, Failure> {
        let watch = Watch::new(scene, patterns).map_err(|m| Failure::Usage(format!("--watch: {m}")))?;
        let mut values = Vec::new();
        watch.read(scene, &mut values);
        let seen = values.iter().copied().map(Watched::new).collect();
        Ok(Readout { watch, values, seen })
    }

    fn look(&mut self, scene: &Scene) {
        self.watch.read(scene, &mut self.values);
        for (seen, &value) in self.seen.iter_mut().zip(&self.values) {
            seen.see(value);
        }
    }
}

/// The CSV of a run.
pub struct Trace {
    output: Output,
}

impl Trace {
    fn new(path: &Path, scene: &Scene, watched: &[String]) -> Result<Trace, Failure> {
        let mut output = Output::create(path)?;
        let mut header = String::from(
            "step,time,bodies,contacts,rows,interface_rows,coupling,pivots,residual,joint_error_max,penetration_max,kinetic,potential",
        );
        for name in scene.physics.systems().into_iter().chain(watched.iter().map(String::as_str)) {
            // A name with a comma or a quote would shift the columns.
            let _ = write!(header, ",{}", name.replace([',', '"', '\n'], " "));
        }
        output.write(&(header + "\n"))?;
        Ok(Trace { output })
    }

    fn add(&mut self, r: &StepReport, systems: &[(String, f64)], watched: &[f64]) -> Result<(), Failure> {
        let mut line = format!(
            "{},{:.9},{},{},{},{},{},{},{:e},{:e},{:e},{},{}",
            r.step,
            r.time,
            r.bodies,
            r.contacts,
            r.rows,
            r.interface_rows,
            r.coupling_iterations,
            r.pivots,
            r.residual,
            r.joint_error_max,
            r.penetration_max,
            r.kinetic,
            r.potential
        );
        for (_, ms) in systems {
            let _ = write!(line, ",{ms:.6}");
        }
        for value in watched {
            let _ = write!(line, ",{value}");
        }
        self.output.write(&(line + "\n"))
    }
}

/// `--dump-mlcp`: a system of its own after the assembly.
mod dump {
    use super::*;
    use turnbuckle::schedule::{Stage, Step};
    use turnbuckle::solver::files;

    /// Adds the system that writes `DIR/step_000012/island_0`.
    pub fn attach(scene: &mut Scene, folder: &Path, every: u64) -> Result<(), Failure> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::Usage(format!("cannot write {}: {e}", folder.display())))?;
        let folder = folder.to_path_buf();
        scene.physics.add_system(Stage::Assemble, "dump", move |step| write(step, &folder, every));
        Ok(())
    }

    fn write(step: &mut Step<'_>, folder: &Path, every: u64) {
        let (substep, _) = step.work.substep;
        if !(step.report.step - 1).is_multiple_of(every) || substep > 0 {
            return;
        }
        for (i, island) in step.work.islands.iter().enumerate() {
            if island.problem.rows() == 0 {
                continue;
            }
            let place = folder.join(format!("step_{:06}/island_{i}", step.report.step));
            if let Err(e) = files::write(&place, &island.problem.to_matrix()) {
                eprintln!("warning: {e}");
            }
        }
    }
}
