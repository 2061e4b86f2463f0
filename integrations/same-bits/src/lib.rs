//! Shipped scenes stepped with plain kernels, and the hashes of where they end: the same on every platform. The program of this package
//! prints them for this machine, `compare.mjs` runs the same code as WebAssembly and compares.

mod door;

use std::path::PathBuf;
use turnbuckle::scene::{LoadOptions, Memory, Scene, plan_from};
use turnbuckle::solver::Method;
use turnbuckle::testing::state_hash;

/// Steps of every scene: enough for loads to arrive, boxes to touch and ropes to wrap.
const STEPS: u32 = 60;

/// Steps of what is large, of which plain kernels in a browser make few a second.
const STEPS_OF_LARGE: u32 = 10;

/// Bodies from which on a scene is large.
const LARGE: usize = 400;

/// Every method beside the one by default, on a load that swings and on boxes that rest.
const METHODS: [Method; 7] =
    [Method::Bpp, Method::Ipm, Method::PgsSm, Method::BppPcg, Method::Pgcg, Method::SchurBpp, Method::Fbic];
const SCENES_OF_METHODS: [&str; 2] = ["scenes/chain_load.ron", "scenes/stack.ron"];

/// Scenes and what they are solved by.
pub struct Cases {
    files: Memory,
    cases: Vec<(PathBuf, Method)>,
}

impl Cases {
    /// All that can be made of some files, by path.
    pub fn new(files: Memory) -> Cases {
        let scenes = files.0.keys().filter(|path| path.parent().is_some_and(|p| p.ends_with("scenes")));
        let mut cases: Vec<_> = scenes.map(|path| (path.clone(), Method::Auto)).collect();
        for scene in SCENES_OF_METHODS {
            cases.extend(METHODS.map(|method| (PathBuf::from(scene), method)));
        }
        Cases { files, cases }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.cases.len()
    }

    /// A line with the name of a case and the hash of its state after every tenth step.
    pub fn run(&self, case: usize) -> String {
        let (path, method) = &self.cases[case];
        let name = format!("{} {}", path.display(), method.name());
        let plan = match plan_from(path, &LoadOptions::default(), &self.files) {
            Ok(plan) => plan,
            Err(fault) => return format!("{name}: {fault}"),
        };
        let steps = if plan.bodies.len() < LARGE { STEPS } else { STEPS_OF_LARGE };
        let mut scene = Scene::new(plan);
        let settings = &mut scene.physics.settings;
        settings.plain_kernels = true;
        // Whatever joints leave open is closed as well: one more factorization.
        settings.tuning.projection = settings.tuning.projection.max(1);
        settings.method = *method;
        scene.physics.set_threads(1);
        let dt = scene.dt();
        let mut line = format!("{name} {steps} steps:");
        for step in 1..=steps {
            scene.physics.step(&mut scene.world, dt);
            if step % 10 == 0 {
                line += &format!(" {:016x}", state_hash(&scene.world));
            }
        }
        line
    }
}
