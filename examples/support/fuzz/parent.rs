//! The parent process: starts the worker, listens, ends it when it hangs, keeps what was found.

use super::{Case, Fault, Mode};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What is to be run.
pub struct Order {
    /// Where the cases come from.
    pub mode: Mode,
    /// Which cases.
    pub seed: u64,
    /// The first of them.
    pub first: u64,
    /// How many.
    pub cases: u64,
    /// When to stop.
    pub until: Option<Instant>,
    /// Steps of a case.
    pub steps: u64,
    /// Seconds a step may take.
    pub step_seconds: f64,
    /// Where found cases go.
    pub out: PathBuf,
    /// Are cases kept that are told as unconverged?
    pub keep_unconverged: bool,
}

/// The summary of one mode.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Cases.
    pub cases: u64,
    /// Those that could be stepped or solved.
    pub valid: u64,
    /// Those refused with a sentence.
    pub refused: u64,
    /// Those larger than the limits.
    pub large: u64,
    /// Those told as unconverged.
    pub unconverged: u64,
    /// Faults, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
}

struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    fn start(order: &Order, first: u64) -> std::io::Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--worker", "--mode", order.mode.name()])
            .args(["--seed", &order.seed.to_string(), "--first", &first.to_string()])
            .args(["--cases", &(order.first + order.cases - first).to_string()])
            .args(["--steps", &order.steps.to_string()])
            .args(["--step-limit-seconds", &order.step_seconds.to_string()])
            .env("RAYON_NUM_THREADS", std::env::var("RAYON_NUM_THREADS").unwrap_or_else(|_| "1".into()))
            .stdout(Stdio::piped())
            .spawn()?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Worker { child, lines })
    }

    fn end(mut self) -> String {
        let _ = self.child.kill();
        self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string())
    }
}

/// Runs all cases; the tallies by mode.
pub fn run(order: &Order) -> std::io::Result<[Tally; 4]> {
    let mut tallies = [Tally::default(); 4];
    let mut next = order.first;
    // Twice the limit, and what reading a scene or building a base may take.
    let silence = Duration::from_secs_f64(2.0 * order.step_seconds + 20.0);
    'workers: while next < order.first + order.cases {
        let worker = Worker::start(order, next)?;
        loop {
            if order.until.is_some_and(|t| Instant::now() >= t) {
                worker.end();
                break 'workers;
            }
            match worker.lines.recv_timeout(silence) {
                Ok(line) if line.starts_with("done ") => {
                    note(order, &mut tallies, next, line.splitn(3, ' ').nth(2).unwrap_or(""))?;
                    next += 1;
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    worker.end();
                    let told = format!("valid slow no end of a step in {:.0} s", silence.as_secs_f64());
                    note(order, &mut tallies, next, &told)?;
                    next += 1;
                    continue 'workers;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = worker.end();
                    if next < order.first + order.cases {
                        note(order, &mut tallies, next, &format!("valid panic the process ended: {status}"))?;
                        next += 1;
                    }
                    continue 'workers;
                }
            }
        }
    }
    Ok(tallies)
}

/// Counts a case by what the worker said about it, and keeps its files if there is something to keep.
fn note(order: &Order, tallies: &mut [Tally; 4], case: u64, told: &str) -> std::io::Result<()> {
    let mode = order.mode.of_case(case);
    let tally = &mut tallies[Mode::SINGLE.iter().position(|&m| m == mode).unwrap_or(0)];
    let (kind, rest) = told.split_once(' ').unwrap_or((told, ""));
    let (unconverged, rest) =
        rest.strip_prefix("unconverged").map_or((false, rest), |r| (true, r.trim_start()));
    tally.cases += 1;
    match kind {
        "refused" => tally.refused += 1,
        "large" => tally.large += 1,
        _ => tally.valid += 1,
    }
    tally.unconverged += u64::from(unconverged);
    let (word, sentence) = rest.split_once(' ').unwrap_or((rest, ""));
    let fault = Fault::ALL.iter().position(|f| f.name() == word);
    if let Some(k) = fault {
        tally.faults[k] += 1;
        keep(order, mode, case, word, sentence)?;
    } else if unconverged && order.keep_unconverged {
        keep(order, mode, case, "unconverged", "told as unconverged")?;
    }
    Ok(())
}

fn keep(order: &Order, mode: Mode, case: u64, word: &str, sentence: &str) -> std::io::Result<()> {
    let name = format!("{word}_{}_{}_{case}", mode.name(), order.seed);
    let folder = order.out.join(&name);
    std::fs::create_dir_all(&folder)?;
    let repeat = format!(
        "--mode {} --seed {} --first {case} --cases 1 --steps {}",
        order.mode.name(),
        order.seed,
        order.steps
    );
    let (files, other) = Case::new(order.mode, order.seed, case).files();
    let mut text = format!("{sentence}\nrepeat: cargo run --release --example fuzz -- {repeat}\n");
    if !other.is_empty() {
        text += &format!("or: {other}\n");
    }
    for (file, bytes) in files {
        std::fs::write(folder.join(file), bytes)?;
    }
    std::fs::write(folder.join("found.txt"), text)?;
    println!("{name}: {sentence}");
    Ok(())
}
