//! Light chains and nets under loads up to 40,000 times heavier: what holds, how well, and at what cost.
//!
//! `cargo run --release --example heavy_loads [seconds]`

#[path = "support/loads.rs"]
mod loads;

use loads::{Loaded, Outcome, cable_net, chain, net_load, path_error, run};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10.0);
    println!(
        "{:<24}{:>9}{:>16}{:>14}{:>12}{:>12}{:>12}",
        "scene", "substeps", "separation mm", "path mm", "gain", "median ms", "unsolved"
    );
    table("chain 2,000 : 1", || chain(100, 0.25, 500.0), seconds, 10.0, &[1, 2, 4]);
    table("chain 25,000 : 1", || chain(100, 0.1, 2500.0), seconds, 10.0, &[1, 2, 4]);
    table("net_load 40,000 : 1", net_load, seconds, 1.0, &[1, 2, 4]);
    table("cable net 40,000 : 1", || cable_net(8000.0), seconds.min(5.0), 1.0, &[1, 2]);
}

fn table(name: &str, scene: impl Fn() -> Loaded, seconds: f64, drop: f64, substeps: &[u32]) {
    let finest = substeps.iter().max().map_or(16, |s| 4 * s);
    let reference = run(scene(), seconds, finest, drop);
    print_line(&format!("{name} (reference)"), finest, &reference, &reference);
    for &n in substeps {
        print_line(name, n, &run(scene(), seconds, n, drop), &reference);
    }
}

fn print_line(name: &str, substeps: u32, outcome: &Outcome, reference: &Outcome) {
    println!(
        "{name:<24}{substeps:>9}{:>16.4}{:>14.2}{:>12.2e}{:>12.3}{:>12}",
        1e3 * outcome.separation,
        1e3 * path_error(&outcome.path, &reference.path),
        outcome.gain,
        outcome.median_ms,
        outcome.unconverged,
    );
}
