//! Problems that scenes pose: the largest island of chosen steps.

use std::sync::{Arc, Mutex};
use turnbuckle::Stage;
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::{Label, RowProblem};

/// One problem of a scene: the largest island of a step, as it is first solved.
pub struct Frame {
    /// The problem.
    pub problem: RowProblem,
    /// Index set of the step before.
    pub labels: Vec<Label>,
    /// Partitions that the scene names.
    #[allow(dead_code)] // not every bench cuts by name
    pub hints: Vec<Option<u32>>,
}

/// Runs a scene with its parameters changed by `set` and keeps the frames of `count` steps, `every` steps apart.
pub fn capture(name: &str, set: &[(&str, f64)], first: u64, every: u64, count: u64) -> Vec<Frame> {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let options =
        LoadOptions { set: set.iter().map(|&(n, v)| (n.to_string(), v)).collect(), ..LoadOptions::default() };
    let Ok(mut scene) = scene::load_with(path, &options) else { return Vec::new() };
    // What sleeps is not solved, and the largest of what is left says nothing.
    scene.physics.settings.sleep = false;
    let frames = Arc::new(Mutex::new(Vec::new()));
    let (sink, mut last) = (frames.clone(), 0);
    scene.physics.add_system(Stage::Factor, "capture", move |step| {
        let number = step.report.step;
        if number < first || !(number - first).is_multiple_of(every) || number == last {
            return;
        }
        last = number;
        if let Some(island) = step.work.islands.iter().max_by_key(|i| i.rows.len()) {
            sink.lock().expect("one thread").push(Frame {
                problem: island.problem.clone(),
                labels: island.solution.labels.clone(),
                hints: island.bodies.iter().map(|&slot| step.work.hints[slot as usize]).collect(),
            });
        }
    });
    let dt = scene.dt();
    for _ in 0..first + every * count.saturating_sub(1) {
        scene.physics.step(&mut scene.world, dt);
    }
    drop(scene);
    std::mem::take(&mut *frames.lock().expect("one thread"))
}
