//! Looks for input that the engine does not survive: changed scenes, damaged snapshots, problem folders and random values.
//!
//! ```text
//! cargo run --release --example fuzz -- --minutes 10 --seed 7
//! ```
//!
//! A case is a function of mode, seed and number, so that it can be repeated alone (`--first N --cases 1`). Cases run in a child
//! process on one thread: a panic is caught there, a hang or the death of the process is seen here. Found are panics,
//! steps over the limit (in worlds of at most 2,000 bodies and 20,000 rows), state or residuals that are not finite, and
//! reports that are not true. Each found case is written as a folder into `--out`, with a line that says how to repeat it.
//! Ends with exit code 1 if anything was found.

#[path = "support/fuzz/mod.rs"]
mod support;

use clap::Parser as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use support::{Fault, Mode, Patience, parent, scenes::SceneCase, worker};

#[derive(clap::Parser)]
#[command(about = "Looks for input that the engine does not survive")]
struct Options {
    /// What cases are made of
    #[arg(long, value_enum, default_value = "all")]
    mode: Mode,
    /// Which cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many cases (default: 1,000, or without end with --minutes)
    #[arg(long)]
    cases: Option<u64>,
    /// How long to look
    #[arg(long)]
    minutes: Option<f64>,
    /// Steps of each case
    #[arg(long, default_value_t = 30)]
    steps: u64,
    /// How long a step may take
    #[arg(long, default_value_t = 5.0)]
    step_limit_seconds: f64,
    /// Where found cases go
    #[arg(long, default_value = "target/found")]
    out: PathBuf,
    /// Keep cases that are told as unconverged, too; they do not count as found
    #[arg(long)]
    keep_unconverged: bool,
    /// Run one scene file instead, with the parts of the shipped scenes
    #[arg(long, value_name = "FILE.ron")]
    replay: Option<PathBuf>,
    /// This is the child process
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let patience = Patience { steps: options.steps, step_seconds: options.step_limit_seconds };
    let cases = options.cases.unwrap_or(if options.minutes.is_some() { u64::MAX >> 1 } else { 1_000 });
    if let Some(path) = &options.replay {
        return replay(path, &patience);
    }
    if options.worker {
        worker::work(options.mode, options.seed, options.first, cases, &patience);
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let order = parent::Order {
        mode: options.mode,
        seed: options.seed,
        first: options.first,
        cases,
        until: options.minutes.map(|m| start + Duration::from_secs_f64(60.0 * m)),
        steps: options.steps,
        step_seconds: options.step_limit_seconds,
        out: options.out,
        keep_unconverged: options.keep_unconverged,
    };
    match parent::run(&order) {
        Ok(tallies) => {
            println!("seed {}, {:.0} s", order.seed, start.elapsed().as_secs_f64());
            print(&tallies)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn print(tallies: &[parent::Tally; 4]) -> ExitCode {
    print!("{:<10} {:>9} {:>9} {:>9} {:>6} {:>11}", "", "cases", "valid", "refused", "large", "unconverged");
    println!("{}", Fault::ALL.map(|f| format!(" {:>6}", f.name())).concat());
    let mut found = 0;
    for (mode, t) in Mode::SINGLE.iter().zip(tallies).filter(|(_, t)| t.cases > 0) {
        print!(
            "{:<10} {:>9} {:>9} {:>9} {:>6} {:>11}",
            mode.name(),
            t.cases,
            t.valid,
            t.refused,
            t.large,
            t.unconverged
        );
        println!("{}", t.faults.map(|n| format!(" {n:>6}")).concat());
        found += t.faults.iter().sum::<u64>();
    }
    ExitCode::from(u8::from(found > 0))
}

fn replay(path: &std::path::Path, patience: &Patience) -> ExitCode {
    let case = match SceneCase::of_file(path) {
        Ok(case) => case,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    let verdict = worker::run(|| support::Case::Scene(case), patience);
    println!("{verdict:?}");
    ExitCode::from(u8::from(verdict.fault.is_some()))
}
