//! How right mechanisms move: energy, openings, distance from the true motion, and what a step costs.
//!
//! `cargo run --release --example motion [steps a second]`

#[path = "../tests/support/mechanisms.rs"]
mod mechanisms;

use glam::DVec3;
use mechanisms::{
    Mechanism, Planar, disc, distance_chain, follow, rotor, slider_crank, slider_reference, spring, top,
    top_reference, twisting_chain,
};
use turnbuckle::report::Cause;

fn main() {
    let rate: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let h = 1.0 / rate;
    println!(
        "{:<26}{:>9}{:>9}{:>10}{:>10}{:>9}{:>7}{:>6}  causes",
        "mechanism", "dE low %", "high %", "error mm", "open mm", "factors", "most", "held"
    );
    let fine = (12_000.0 * h) as usize;
    let planar = |name: &str, p: Planar, time: f64, judged: f64| {
        line(name, p.build(), h, time, Some(&p.reference(judged, h, fine).0));
    };
    planar("double pendulum small", Planar::double(0.3, -0.2), 5.0, 5.0);
    planar("double pendulum, 1 s", Planar::double(2.0, 0.5), 5.0, 1.0);
    planar("arm, 0.5 s", Planar::arm(), 5.0, 0.5);
    planar("chain of 10, 0.5 s", Planar::chain(10), 5.0, 0.5);
    line("chain of 10, y z y z", twisting_chain(), h, 5.0, None);
    for spin in [0.0, 10.0] {
        let truth = slider_reference(spin, 5.0, h, fine).0;
        line(&format!("slider-crank {spin} rad/s"), slider_crank(spin), h, 5.0, Some(&truth));
    }
    line("distance chain", distance_chain(10), h, 10.0, None);
    for spin in [10.0, 50.0, 300.0] {
        turning(&format!("rotor {spin}"), rotor(spin, 0.0), h, DVec3::Y * spin);
        turning(&format!("rotor {spin}, 10 mm off"), rotor(spin, 0.01), h, DVec3::Y * spin);
        turning(&format!("disc {spin}"), disc(spin), h, DVec3::X * spin);
    }
    for spin in [50.0, 100.0, 200.0] {
        let truth: Vec<_> = top_reference(spin, 3.0, h, fine).into_iter().map(|x| vec![x]).collect();
        line(&format!("top {spin}"), top(spin), h, 3.0, Some(&truth));
    }
    springs(h);
}

fn turning(name: &str, m: Mechanism, h: f64, spin: DVec3) {
    let m = line(name, m, h, 10.0, None);
    let kept = m.spin(m.bodies[0]).dot(spin) / spin.length_squared();
    println!("{:<26}spin kept {:+.1e}", "", kept - 1.0);
}

/// Runs a mechanism and prints its line; energies are shares of the largest kinetic energy.
fn line(name: &str, mut m: Mechanism, h: f64, time: f64, truth: Option<&[Vec<DVec3>]>) -> Mechanism {
    let run = follow(&mut m, h, time, truth);
    let steps = (time / h).round();
    let cause = |(c, n): (&Cause, &u32)| format!("{c:?} {:.2}", f64::from(*n) / steps);
    let causes: Vec<String> = run.causes.iter().map(cause).collect();
    println!(
        "{name:<26}{:>9.4}{:>9.4}{:>10.2}{:>10.4}{:>9.2}{:>7}{:>6}  {}",
        100.0 * run.low,
        100.0 * run.high,
        1e3 * run.error,
        1e3 * run.open,
        run.factors,
        run.most,
        run.held,
        causes.join(", ")
    );
    m
}

/// How much of its amplitude a spring keeps a period, how far its frequency is off, and what is left after ten steps.
fn springs(h: f64) {
    println!("{:<26}{:>16}{:>16}{:>16}", "spring", "kept a period", "frequency %", "after 10 steps");
    for (frequency, ratio) in
        [(1.6, 0.0), (3.2, 0.0), (1.6, 0.1), (20.0, 0.0), (100.0 / (std::f64::consts::TAU * h), 0.0)]
    {
        let mut m = spring(frequency, ratio);
        let length = |m: &Mechanism| m.place(m.bodies[0]).distance(m.place(m.bodies[1])) - 2.0;
        let mut x = vec![length(&m)];
        for _ in 0..600 {
            m.physics.step(&mut m.world, h);
            x.push(length(&m));
        }
        let crossings: Vec<f64> = (1..x.len())
            .filter(|&k| x[k] * x[k - 1] < 0.0)
            .map(|k| k as f64 - x[k] / (x[k] - x[k - 1]))
            .collect();
        let periods = 0.5 * (crossings.len().max(1) - 1) as f64;
        let time = (crossings.last().unwrap_or(&0.0) - crossings.first().unwrap_or(&0.0)) * h;
        let n = ((1.0 / frequency / h).round() as usize).clamp(2, 300);
        let most = |from: usize| x[from..from + n].iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let kept = (most(601 - n) / most(0)).powf(1.0 / ((601 - n) as f64 * h * frequency));
        println!(
            "{:<26}{kept:>16.4}{:>16.2}{:>16.1e}",
            format!("{frequency:.1} Hz, ratio {ratio}"),
            100.0 * (periods / time / frequency - 1.0),
            x[10].abs() / 0.05
        );
    }
}
