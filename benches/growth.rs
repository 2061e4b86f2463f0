//! How the time of a solve grows with the scene: exponents from a log–log fit.
//!
//! `cargo bench --bench growth` takes a few minutes; `-- log_tower bridge` only these, `-- matter` what points cost beside bodies. One thread, sleeping off. Of each
//! size the median of ten steps after three is taken, with the impulses of the last step to start from and without.

#[path = "support/matter.rs"]
mod matter;

use turnbuckle::scene::{self, LoadOptions};

/// A family of scenes: name, parameter, its sizes, greatest exponent.
type Family = (&'static str, &'static str, &'static [f64], f64);

const FAMILIES: [Family; 4] = [
    ("chain_load", "links", &[100.0, 316.0, 1000.0, 3162.0, 10_000.0], 1.2),
    ("bridge", "planks", &[128.0, 256.0, 512.0, 1024.0, 2048.0], 1.2),
    ("log_tower", "logs", &[40.0, 80.0, 160.0, 320.0, 640.0], 1.6),
    ("net_truck", "piece", &[7.0, 14.0, 28.0, 56.0, 112.0], 1.6),
];

/// One size: bodies, rows, milliseconds of solve and step.
struct Sample {
    bodies: u32,
    rows: u32,
    solve: f64,
    step: f64,
}

fn measure(name: &str, parameter: &str, size: f64, warm: bool) -> Sample {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let options = LoadOptions { set: vec![(parameter.into(), size)], ..LoadOptions::default() };
    let mut scene = scene::load_with(path, &options).expect("a scene of ours");
    scene.physics.set_threads(1);
    scene.physics.settings.sleep = false;
    scene.physics.settings.tuning.warm_start = warm;
    let dt = scene.dt();
    let mut samples = Vec::new();
    for step in 0..13 {
        let report = scene.physics.step(&mut scene.world, dt);
        if step >= 3 {
            samples.push((report.solve_ms, report.step_ms, report.rows, report.bodies));
        }
    }
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (solve, step, rows, bodies) = samples[samples.len() / 2];
    Sample { bodies, rows, solve, step }
}

/// Slope of log y over log x, by least squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (mx, my) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let cross: f64 = logs.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    cross / logs.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>()
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if asked.is_empty() || asked.iter().any(|a| a == "matter") {
        matter::print();
    }
    for (name, parameter, sizes, most) in FAMILIES {
        if !asked.is_empty() && !asked.iter().any(|a| a == name) {
            continue;
        }
        println!("\n{name}, {parameter} = {sizes:?}");
        for warm in [true, false] {
            println!("  {}", if warm { "with the last step's impulses" } else { "without" });
            println!(
                "    {:>8} {:>8} {:>8} {:>11} {:>11}",
                parameter, "bodies", "rows", "solve ms", "step ms"
            );
            let mut points = Vec::new();
            for &size in sizes {
                let s = measure(name, parameter, size, warm);
                println!("    {size:>8} {:>8} {:>8} {:>11.3} {:>11.3}", s.bodies, s.rows, s.solve, s.step);
                points.push((f64::from(s.rows), s.solve));
            }
            println!("    solve time grows with rows^{:.2} (aim: at most {most})", exponent(&points));
        }
    }
}
