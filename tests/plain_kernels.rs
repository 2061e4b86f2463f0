//! Whole runs with plain arithmetic: the same motion as with the machine's own instructions, and the same bits on any
//! number of threads.

use turnbuckle::components::Position;
use turnbuckle::scene::{self, LoadOptions, Scene};
use turnbuckle::settings::Integrator;
use turnbuckle::testing::state_hash;

fn run(name: &str, integrator: Integrator, plain: bool, threads: usize, steps: u32) -> Scene {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap();
    scene.physics.settings.plain_kernels = plain;
    scene.physics.settings.integrator = integrator;
    scene.physics.set_threads(threads);
    let dt = scene.dt();
    for _ in 0..steps {
        let report = scene.physics.step(&mut scene.world, dt);
        assert!(report.converged, "{name} at step {}: {:.1e}", report.step, report.residual_relative);
    }
    scene
}

fn positions(scene: &mut Scene) -> Vec<[f64; 3]> {
    scene.world.query_mut::<&Position>().into_iter().map(|p| p.0.to_array()).collect()
}

#[test]
fn plain_runs_follow_the_others_and_repeat_their_bits() {
    use Integrator::{Midpoint, SemiImplicit};
    // A smooth swing, a net under load, and a box that comes to rest on others. The kernels differ by fused multiply–add only: 1e-16 a
    // step. A taut chain multiplies that by its stiffness, 1e5 at the very most, and a second has 60 steps. Passes of the chord step end
    // where joints are open by less than a micrometre: the net, whose bars are softer across than that, is as near as such ends are.
    let cases = [
        ("chain_load", 60, Midpoint, 1e-7),
        ("net_load", 30, SemiImplicit, 1e-7),
        ("net_load", 30, Midpoint, 2e-6),
        ("stack", 60, Midpoint, 1e-7),
    ];
    for (name, steps, integrator, near) in cases {
        let mut fast = run(name, integrator, false, 2, steps);
        let mut plain = run(name, integrator, true, 1, steps);
        let also = run(name, integrator, true, 2, steps);
        assert_eq!(state_hash(&plain.world), state_hash(&also.world), "{name} on one and two threads");
        let (a, b) = (positions(&mut fast), positions(&mut plain));
        assert_eq!(a.len(), b.len());
        let off = a.iter().flatten().zip(b.iter().flatten()).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
        println!("{name}: plain and other kernels are {off:.1e} m apart after {steps} steps");
        assert!(off < near, "{name}: {off:.1e} m");
    }
}

#[test]
fn one_thread_is_the_one_that_asks_for_the_step() {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};
    use std::thread::{ThreadId, current};
    // Contacts, islands side by side, an island in partitions: whatever is done in parallel elsewhere.
    for name in ["rock_pile", "net_load"] {
        let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
        let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap();
        let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let note = |seen: &Mutex<BTreeSet<String>>| {
            let id: ThreadId = current().id();
            seen.lock().unwrap().insert(format!("{id:?}"));
        };
        scene.physics.set_threads(1);
        let filter = seen.clone();
        scene.physics.set_contact_filter(move |_, _| {
            note(&filter);
            true
        });
        let system = seen.clone();
        scene.physics.add_system(turnbuckle::Stage::Forces, "where am I", move |_| note(&system));
        let dt = scene.dt();
        for _ in 0..5 {
            scene.physics.step(&mut scene.world, dt);
        }
        let caller: ThreadId = current().id();
        assert_eq!(*seen.lock().unwrap(), BTreeSet::from([format!("{caller:?}")]), "{name}");
    }
}
