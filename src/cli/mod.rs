//! Commands and options (clap), exit codes, errors as sentences.
//!
//! Exit codes: 0 done; 1 the simulation could not be completed, or a promise asked for with `--expect` was broken;
//! 2 wrong usage or a bad file.

mod check;
mod compare;
mod output;
mod render;
mod replay;
mod run;
mod scenes;
mod solve;
mod table;

use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use turnbuckle::scene::{LoadOptions, Scene, SceneError};
use turnbuckle::settings::Partitioning;
use turnbuckle::solver::Method;

#[derive(Parser)]
#[command(
    name = "turnbuckle",
    version,
    about = "Simulates scenes with a solver that holds",
    arg_required_else_help = true
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scene, print how it went, write what was asked for
    Run(run::RunArgs),
    /// Simulate a scene with several solvers, one row each
    Compare(compare::CompareArgs),
    /// Draw a scene, a replay page or a recording, without a browser
    Render(render::RenderArgs),
    /// List the scenes there are, one line each
    Scenes(scenes::ScenesArgs),
    /// Solve one problem from files
    Solve(solve::SolveFileArgs),
    /// Load a scene, validate it and explain it
    Check(check::CheckArgs),
}

/// Which scene, and how it is to be simulated.
#[derive(Args, Clone)]
struct SceneArgs {
    /// A scene file, or the name of one in scenes/
    scene: PathBuf,
    /// Give a parameter of the scene another value; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// How to simulate.
#[derive(Args, Clone)]
struct SolveArgs {
    /// Solver
    #[arg(long, value_name = "NAME", value_parser = method)]
    solver: Option<Method>,
    /// How bodies are grouped: none, semantic, min-degree:N or auto
    #[arg(long, value_name = "HOW", value_parser = partitioning)]
    partition: Option<Partitioning>,
    /// Solver inside partitions, with --solver schur-…
    #[arg(long, value_name = "NAME", value_parser = method)]
    partition_solver: Option<Method>,
    /// Solver of the interface, with --solver schur-…
    #[arg(long, value_name = "NAME", value_parser = method)]
    interface_solver: Option<Method>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Start every solve from nothing
    #[arg(long)]
    no_warm_start: bool,
    /// Substeps of each step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    substeps: Option<u32>,
}

fn method(name: &str) -> Result<Method, String> {
    Method::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Method::ALL.iter().map(|m| m.name()).collect();
        format!("there is no solver `{name}`; there are: {}", names.join(", "))
    })
}

fn partitioning(text: &str) -> Result<Partitioning, String> {
    text.parse()
}

/// Why a command ended without success.
enum Failure {
    /// Exit code 1.
    Simulation(String),
    /// Exit code 2.
    Usage(String),
}

impl From<SceneError> for Failure {
    fn from(e: SceneError) -> Failure {
        Failure::Usage(e.explained())
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    end_with_the_reader();
    // clap itself exits with 2 on wrong usage and 0 on --help.
    let result = match Program::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Render(args) => render::render(&args),
        Command::Scenes(args) => scenes::scenes(&args),
        Command::Solve(args) => solve::solve(&args),
        Command::Check(args) => check::check(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Simulation(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// The reader may have read enough (`turnbuckle check SCENE | head -3`); then printing ends the program without a word.
fn end_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let message = info.payload().downcast_ref::<String>();
        if message.is_some_and(|message| message.starts_with("failed printing to stdout")) {
            std::process::exit(0);
        }
        usual(info);
    }));
}

impl SceneArgs {
    fn options(&self) -> Result<LoadOptions, Failure> {
        let mut options = LoadOptions::default();
        for assignment in &self.set {
            options.set(assignment).map_err(|m| Failure::Usage(format!("--set {assignment}: {m}")))?;
        }
        Ok(options)
    }

    /// The file meant: as given, or `scenes/NAME.ron`.
    fn path(&self) -> PathBuf {
        let named = Path::new("scenes").join(&self.scene).with_extension("ron");
        if !self.scene.exists() && self.scene.components().count() == 1 && named.exists() {
            named
        } else {
            self.scene.clone()
        }
    }

    fn load(&self) -> Result<Scene, Failure> {
        Ok(turnbuckle::scene::load_with(self.path(), &self.options()?)?)
    }
}

impl SolveArgs {
    /// Puts the options into the scene's settings; returns the number of threads.
    fn apply(&self, scene: &mut Scene) -> usize {
        let settings = &mut scene.physics.settings;
        if let Some(method) = self.solver {
            settings.method = method;
        }
        if let Some(partition) = self.partition {
            settings.partitioning = partition;
        }
        settings.coupling.partition_solver = self.partition_solver.or(settings.coupling.partition_solver);
        settings.coupling.interface_solver = self.interface_solver.or(settings.coupling.interface_solver);
        if let Some(substeps) = self.substeps {
            settings.substeps = substeps;
        }
        settings.tuning.warm_start &= !self.no_warm_start;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.threads.map_or(cores, usize::from);
        scene.physics.set_threads(threads);
        threads
    }
}
