//! Mechanisms move as their equations in coordinates of their own say: energy, openings, places, spin, and what a step costs.

#[path = "support/mechanisms.rs"]
mod mechanisms;

use glam::DVec3;
use mechanisms::{
    Mechanism, Outcome, Planar, disc, distance_chain, follow, rotor, slider_crank, slider_reference, top,
    top_reference, twisting_chain,
};
use turnbuckle::components::JointForce;
use turnbuckle::report::Cause;

const H: f64 = 1.0 / 60.0;
const G: f64 = 9.81;

/// Joints stay closed to a twentieth of a millimetre, nothing is held, energy rises by 5e-4 at most and falls by `loss`.
fn holds(name: &str, run: &Outcome, loss: f64, error: f64) {
    let Outcome { low, high, open, held, converged, .. } = *run;
    println!("{name}: energy {low:.1e} to {high:.1e}, open {open:.1e} m, off {:.2e} m", run.error);
    assert!(converged && held == 0, "{name}: {held} steps held");
    assert!(low >= -loss && high <= 5e-4, "{name}: energy {low} to {high}");
    assert!(open <= 5e-5, "{name}: open by {open} m");
    assert!(run.error <= error, "{name}: {} m from the true motion", run.error);
}

fn planar(name: &str, of: &Planar, time: f64, error: f64, factors: f64) {
    let truth = of.reference(time, H, 400).0;
    let run = follow(&mut of.build(), H, 5.0, Some(&truth));
    holds(name, &run, 1e-3, error);
    assert!(run.factors <= factors, "{name}: {} factorizations a step", run.factors);
}

#[test]
fn pendulums_arms_and_chains_keep_their_energy_and_their_way() {
    planar("a small double pendulum", &Planar::double(0.3, -0.2), 5.0, 2.5e-3, 1.1);
    planar("a large double pendulum", &Planar::double(2.0, 0.5), 1.0, 5e-3, 1.1);
    planar("an arm of a foot", &Planar::arm(), 0.5, 4.1e-3, 1.2);
    planar("a chain of ten", &Planar::chain(10), 0.5, 2.1e-3, 1.3);
}

#[test]
fn a_slider_crank_keeps_its_energy_though_its_rows_are_too_many() {
    for (spin, error) in [(0.0, 7.5e-3), (10.0, 0.19)] {
        let truth = slider_reference(spin, 5.0, H, 400).0;
        let run = follow(&mut slider_crank(spin), H, 5.0, Some(&truth));
        holds("slider-crank", &run, 1e-3, error);
        assert!(run.factors <= 1.1, "{} factorizations a step", run.factors);
    }
}

#[test]
fn a_chain_whose_hinges_stand_across_one_another_keeps_its_energy() {
    holds("y z y z", &follow(&mut twisting_chain(), H, 5.0, None), 1e-2, 0.0);
}

#[test]
fn what_is_missing_goes_with_the_square_of_the_step() {
    let of = Planar::double(0.3, -0.2);
    let error = |n: usize| {
        let h = H / n as f64;
        follow(&mut of.build(), h, 5.0, Some(&of.reference(5.0, h, 400 / n).0)).error
    };
    let (coarse, fine) = (error(1), error(4));
    let order = (coarse / fine).log2() / 2.0;
    assert!(order >= 1.9, "order {order}: {coarse}, {fine}");
}

#[test]
fn rotors_and_discs_on_hinges_keep_their_spin() {
    let kept = |mut m: Mechanism, spin: DVec3| {
        let run = follow(&mut m, H, 10.0, None);
        let kept = m.spin(m.bodies[0]).dot(spin) / spin.length_squared() - 1.0;
        println!("{spin}: {kept:.1e}, {:.1e} m, {:.2} factorizations", run.open, run.factors);
        assert!(kept.abs() < 1e-3 && run.open < 1e-4 && run.converged, "{spin}: {kept}, {}", run.open);
    };
    for spin in [10.0, 50.0, 100.0, 300.0] {
        kept(rotor(spin, 0.0), DVec3::Y * spin);
        kept(disc(spin), DVec3::X * spin);
    }
}

#[test]
fn tops_do_not_lose_their_energy_nor_their_way() {
    for (spin, error) in [(50.0, 0.03), (100.0, 0.04), (200.0, 0.02)] {
        let truth: Vec<_> = top_reference(spin, 3.0, H, 400).into_iter().map(|x| vec![x]).collect();
        holds(&format!("top {spin}"), &follow(&mut top(spin), H, 3.0, Some(&truth)), 1e-3, error);
    }
}

#[test]
fn chains_of_rods_without_mass_gain_nothing() {
    let run = follow(&mut distance_chain(10), H, 10.0, None);
    holds("distances", &run, 1e-2, 0.0);
}

#[test]
fn the_force_in_a_pendulum_is_what_it_is() {
    let mut of = Planar::new(&[1.0], &[1.0], &[0.0]);
    (of.com, of.inertia) = (vec![1.0], vec![0.4 * 0.05 * 0.05]);
    let mut m = of.build();
    let (joint, body, i) = (m.joints[0], m.bodies[0], 0.4 * 0.05 * 0.05);
    let mut before = 0.0;
    for k in 0..300 {
        m.physics.step(&mut m.world, H);
        let fall = -m.place(body).z / m.place(body).length();
        let now = m.world.get::<&JointForce>(joint).unwrap().force.length();
        // In the middle of the two steps whose mean is told.
        let s = before;
        before = fall;
        if k < 2 {
            continue;
        }
        let along = 2.0 * G * s / (1.0 + i) + G * s;
        let across = G * (1.0 - s * s).sqrt() * i / (1.0 + i);
        let off = (now - along.hypot(across)) / (3.0 * G);
        assert!(off.abs() < 2e-3, "step {k}: {now} N, off by {off} of 3mg");
    }
}

#[test]
fn resolves_name_why_an_island_was_solved_again() {
    let mut m = Planar::double(2.0, 0.5).build();
    for _ in 0..60 {
        let report = m.physics.step(&mut m.world, H);
        let first = report.resolves.first().expect("the island is solved");
        assert!(first.cause == Cause::First && first.pass == 0 && first.rows == 10 && first.island == 0);
        assert!(report.resolves.iter().zip(0..).all(|(r, pass)| r.pass == pass));
        let factored = report.resolves.iter().filter(|r| r.cause != Cause::Correction).count();
        assert_eq!(factored, report.factorizations as usize);
    }
}
