//! Solves every friction problem (`.fc`) of a folder by exact cones, one row each: `cargo run --release --example cones -- FOLDER [METHOD]`.
//!
//! `told` is what the solver says of its answer, `rel` and `scaled` are recomputed from the file as its `check.py` does.

#[path = "../tests/support/fclib.rs"]
mod fclib;

use std::path::PathBuf;
use std::time::Instant;
use turnbuckle::solver::{Method, Settings};

fn main() {
    let mut words = std::env::args().skip(1);
    let Some(folder) = words.next().map(PathBuf::from).filter(|f| f.is_dir()) else {
        eprintln!("Which folder? One that holds .fc files.");
        std::process::exit(2);
    };
    let method =
        words.next().map_or(Some(Method::Auto), |name| Method::from_name(&name)).expect("a solver's name");
    let only = words.next();
    let out = std::env::var_os("CONES_OUT").map(PathBuf::from);
    println!(
        "{:<44} {:>5} {:>4} {:>4} {:>4} {:>8} {:>8} {:>8} {:>8}",
        "problem", "nc", "fact", "ipm", "nsn", "told", "rel", "scaled", "ms"
    );
    let (mut good, mut fine, mut all, mut work) = (0, 0, 0, 0);
    for path in fclib::files(&folder, &["fc"]) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let contacts = fclib::read(&path).cones();
        let start = Instant::now();
        let (r, _, stats) = contacts.solve(method, &Settings::default());
        let ms = 1e3 * start.elapsed().as_secs_f64();
        let (rel, scaled) = contacts.residuals(&r);
        println!(
            "{name:<44} {:>5} {:>4} {:>4} {:>4} {:>8.1e} {rel:>8.1e} {scaled:>8.1e} {ms:>8.1}",
            contacts.problem.cones.len(),
            stats.factorizations,
            stats.ipm_iterations,
            stats.pivots,
            stats.residual_relative
        );
        good += usize::from(rel.max(scaled) <= 1e-6);
        fine += usize::from(rel.max(scaled) <= 1e-8);
        all += 1;
        work += stats.factorizations;
        if let Some(out) = &out {
            let text: String = contacts.as_in_file(&r).iter().map(|r| format!("{r:e}\n")).collect();
            std::fs::write(out.join(format!("{name}.txt")), text).expect("a folder to write to");
        }
    }
    println!(
        "{all} problems: {good} to 1e-6, {fine} to 1e-8, {:.1} factorizations in the mean",
        f64::from(work) / f64::from(all.max(1))
    );
}
