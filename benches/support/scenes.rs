//! Warmed-up scenes for the benches: the files of `scenes/`, the ones the tests run.

use turnbuckle::scene::{self, LoadOptions, Scene};
use turnbuckle::snapshot::Snapshot;

/// The papers' scenes and the seconds after which each is in full swing.
pub const SCENES: &[(&str, f64)] = &[
    ("log_tower", 3.0),
    ("cable_spinner", 3.0),
    ("chain_wrap", 4.0),
    ("chain_drop", 2.0),
    ("rock_pile", 1.5),
    ("net_truck", 1.0),
    ("tandem_cranes", 1.0),
    ("bridge", 1.0),
    ("boxes", 0.5),
    ("wall", 0.6),
    ("hello", 1.2),
];

/// A scene with a history, and the state to go back to before each sample.
pub struct Warm {
    /// World and stage.
    pub scene: Scene,
    /// Its step (s).
    pub dt: f64,
    state: Snapshot,
}

impl Warm {
    /// Loads a scene, sets threads and runs it for a while. Islands stay awake: a bench of sleeping bodies says nothing.
    pub fn new(name: &str, seconds: f64, threads: usize) -> Warm {
        let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
        let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        scene.physics.set_threads(threads);
        scene.physics.settings.sleep = false;
        let dt = scene.dt();
        for _ in 0..(seconds / dt).round() as u32 {
            scene.physics.step(&mut scene.world, dt);
        }
        let state = scene.physics.snapshot(&scene.world);
        Warm { scene, dt, state }
    }

    /// Back to the warmed-up state, and one untimed step so that solvers have their memory of the scene again.
    pub fn rewind(&mut self) {
        self.scene
            .physics
            .restore(&mut self.scene.world, &self.state)
            .expect("the snapshot is of this world");
        self.scene.physics.step(&mut self.scene.world, self.dt);
    }

    /// One step.
    pub fn step(&mut self) {
        self.scene.physics.step(&mut self.scene.world, self.dt);
    }
}
