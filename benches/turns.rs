//! Step times of two checkouts in turns on one machine: `cargo bench --bench turns -- OTHER [--scenes A,B] [--rounds N]
//! [--steps N] [--threads N]`.
//!
//! OTHER is a folder with another state of the project (`git worktree add ../before HEAD~20`). Both programs are built, then run
//! one after the other, round by round, so that what else the machine does meets both alike. A scene's figure is the median over its
//! steps, and of these the least over the rounds: noise only adds. The last column is what this checkout takes of the other's time.

use std::path::{Path, PathBuf};
use std::process::{Command, exit};

struct Asked {
    other: PathBuf,
    scenes: Vec<String>,
    rounds: u32,
    steps: String,
    threads: String,
}

fn main() {
    let asked = asked().unwrap_or_else(|what| {
        eprintln!("{what}; usage: cargo bench --bench turns -- OTHER [--scenes A,B] [--rounds N] [--steps N] [--threads N]");
        exit(2);
    });
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for checkout in [here, &asked.other] {
        let built =
            Command::new("cargo").args(["build", "--release", "--quiet"]).current_dir(checkout).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("{} does not build", checkout.display());
            exit(1);
        }
    }
    println!("{:<18} {:>12} {:>12} {:>7}   ms a step, median", "scene", "here", "other", "ratio");
    let (mut product, mut count) = (1.0f64, 0);
    for scene in &asked.scenes {
        let mut least = [f64::INFINITY; 2];
        for round in 0..asked.rounds {
            // Who goes first changes from round to round: the second finds the machine warm.
            for side in [round % 2, 1 - round % 2] {
                let checkout = if side == 0 { here } else { &asked.other };
                match median(checkout, scene, &asked) {
                    Ok(ms) => least[side as usize] = least[side as usize].min(ms),
                    Err(what) => eprintln!("{scene} in {}: {what}", checkout.display()),
                }
            }
        }
        let ratio = least[0] / least[1];
        println!("{scene:<18} {:>12.4} {:>12.4} {ratio:>7.3}", least[0], least[1]);
        if ratio.is_finite() {
            product *= ratio;
            count += 1;
        }
    }
    println!("{count} scenes, geometric mean {:.3}", product.powf(1.0 / f64::from(count.max(1))));
}

/// The median step of one run (ms).
fn median(checkout: &Path, scene: &str, asked: &Asked) -> Result<f64, String> {
    let report = std::env::temp_dir().join(format!("turns-{}.json", std::process::id()));
    let mut run = Command::new(checkout.join("target/release/turnbuckle"));
    run.args(["run", &format!("scenes/{scene}.ron"), "--no-replay", "--quiet"]);
    run.args(["--steps", &asked.steps, "--threads", &asked.threads, "--report"]).arg(&report);
    let output = run.current_dir(checkout).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
    }
    let text = std::fs::read_to_string(&report).map_err(|e| e.to_string())?;
    let _ = std::fs::remove_file(&report);
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    report["step"]["median"].as_f64().ok_or_else(|| "the report has no step.median".to_string())
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        other: PathBuf::new(),
        scenes: every_scene(),
        rounds: 5,
        steps: "120".into(),
        threads: "1".into(),
    };
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} asks for a value"));
        match argument.as_str() {
            "--scenes" => asked.scenes = value()?.split(',').map(String::from).collect(),
            "--rounds" => asked.rounds = value()?.parse().map_err(|_| "--rounds asks for a number")?,
            "--steps" => asked.steps = value()?,
            "--threads" => asked.threads = value()?,
            other => asked.other = PathBuf::from(other),
        }
    }
    match asked.other.join("Cargo.toml").is_file() {
        true => Ok(asked),
        false => Err(format!("\"{}\" is no checkout of the project", asked.other.display())),
    }
}

fn every_scene() -> Vec<String> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenes"));
    let files = files.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<String> = files
        .filter(|file| file.extension().is_some_and(|e| e == "ron"))
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}
