//! How right mechanisms move: energy, openings, distance from the true motion, and what a step costs.
//!
//! `cargo run --release --example motion [steps a second]`

#[path = "support/loads.rs"]
mod loads;
#[path = "../tests/support/mechanisms.rs"]
mod mechanisms;

use glam::DVec3;
use mechanisms::{
    Mechanism, Planar, disc, distance_chain, rotor, slider_crank, slider_reference, top, top_reference,
    twisting_chain,
};
use std::collections::BTreeMap;

/// True places of the bodies after each step, and the largest kinetic energy.
type Truth = (Vec<Vec<DVec3>>, f64);

fn main() {
    let rate: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let h = 1.0 / rate;
    println!(
        "{:<26}{:>9}{:>9}{:>10}{:>10}{:>9}{:>7}{:>6}  causes",
        "mechanism", "dE low %", "high %", "error mm", "open mm", "factors", "most", "held"
    );
    let fine = (12_000.0 * h) as usize;
    let planar = |name: &str, p: Planar, time: f64, judged: f64| {
        line(name, p.build(), h, time, Some((p.reference(judged, h, fine), p.reference(time, h, fine).1)));
    };
    planar("double pendulum small", Planar::double(0.3, -0.2), 5.0, 5.0);
    planar("double pendulum, 1 s", Planar::double(2.0, 0.5), 5.0, 1.0);
    planar("arm, 0.5 s", Planar::arm(), 5.0, 0.5);
    planar("chain of 10, 0.5 s", Planar::chain(10), 5.0, 0.5);
    line("chain of 10, y z y z", twisting_chain(), h, 5.0, None);
    for spin in [0.0, 10.0] {
        let truth = slider_reference(spin, 5.0, h, fine);
        let most = truth.1;
        line(&format!("slider-crank {spin} rad/s"), slider_crank(spin), h, 5.0, Some((truth, most)));
    }
    line("distance chain", distance_chain(10), h, 10.0, None);
    for spin in [10.0, 50.0, 300.0] {
        turning(&format!("rotor {spin}"), rotor(spin, 0.0), h, DVec3::Y * spin);
        turning(&format!("rotor {spin}, 10 mm off"), rotor(spin, 0.01), h, DVec3::Y * spin);
        turning(&format!("disc {spin}"), disc(spin), h, DVec3::X * spin);
    }
    for spin in [50.0, 100.0, 200.0] {
        let places = top_reference(spin, 3.0, h, fine).into_iter().map(|x| vec![x]).collect();
        let most = 0.5 * mechanisms::TOP.3 * spin * spin;
        line(&format!("top {spin}"), top(spin), h, 3.0, Some(((places, most), most)));
    }
}

fn turning(name: &str, m: Mechanism, h: f64, spin: DVec3) {
    let m = line(name, m, h, 10.0, None);
    let kept = m.spin(m.bodies[0]).dot(spin) / spin.length_squared();
    println!("{:<26}spin kept {:+.1e}", "", kept - 1.0);
}

/// Runs a mechanism and prints its line; energies are shares of the largest kinetic energy.
fn line(name: &str, mut m: Mechanism, h: f64, time: f64, truth: Option<(Truth, f64)>) -> Mechanism {
    let start = m.energy();
    let (mut low, mut high, mut kinetic, mut open, mut error) = (0.0f64, 0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let (mut factors, mut most, mut held) = (0, 0, 0);
    let mut causes = BTreeMap::new();
    let steps = (time / h).round() as usize;
    for k in 0..steps {
        let report = m.physics.step(&mut m.world, h);
        kinetic = kinetic.max(report.kinetic);
        open = open.max(report.joint_error_max);
        factors += report.factorizations;
        most = most.max(report.factorizations);
        held += report.held;
        for resolve in &report.resolves {
            *causes.entry(resolve.cause).or_insert(0u32) += 1;
        }
        let now = m.energy() - start;
        (low, high) = (low.min(now), high.max(now));
        if let Some(places) = truth.as_ref().and_then(|((places, _), _)| places.get(k)) {
            for (&body, x) in m.bodies.iter().zip(places) {
                error = error.max(m.place(body).distance(*x));
            }
        }
    }
    let scale = truth.map_or(kinetic, |(_, most)| most);
    let causes: Vec<String> =
        causes.iter().map(|(c, n)| format!("{c:?} {:.2}", f64::from(*n) / steps as f64)).collect();
    println!(
        "{name:<26}{:>9.4}{:>9.4}{:>10.2}{:>10.4}{:>9.2}{most:>7}{held:>6}  {}",
        100.0 * low / scale,
        100.0 * high / scale,
        1e3 * error,
        1e3 * open,
        f64::from(factors) / steps as f64,
        causes.join(", ")
    );
    m
}
