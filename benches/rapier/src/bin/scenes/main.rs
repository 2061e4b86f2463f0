//! Whole scenes of ours in rapier3d-f64: error and time side by side, same scene, same run, one thread each.
//!
//! `cargo run --release --bin scenes -- [SCENE..] [NAME=VALUE..] [--iterations N]`; values are parameters of the scenes, N one more
//! row of rapier's. For every scene: ours with the scene's own settings; rapier as it comes
//! (4 iterations, which are its substeps); and rapier with iterations doubled until the scene's promise holds. Poses after every
//! frame are measured by one ruler (`measure.rs`); what the conversion cannot carry over is said in `convert.rs`.

mod cases;
mod convert;
mod links;
mod measure;
mod script;
mod watch;

use cases::{CASES, Case, Path};
use convert::{Joints, Model, pose};
use glam::DVec3;
use rapier3d_f64::prelude as r;
use script::Script;
use std::time::Instant;
use turnbuckle::components::*;
use turnbuckle::scene::{self, Scene};
use watch::{Outcome, Watch, print};

/// Most iterations tried.
const MOST: usize = 1024;
/// Seconds after which a run is cut short.
const PATIENCE: f64 = 45.0;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|a| CASES.iter().any(|c| c.name == a)).collect();
    println!(
        "| scene | engine | joints open, mm | overlap, mm | load's path off, mm | ms a frame, median / p99 | holds |"
    );
    println!("|---|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|c| wanted.is_empty() || wanted.iter().any(|w| w == c.name)) {
        if let Err(why) = compare(case) {
            println!("| {} | left out: {why} | | | | | |", case.name);
        }
    }
}

fn load(case: &Case) -> Result<Scene, String> {
    let path = format!("{}/../../scenes/{}.ron", env!("CARGO_MANIFEST_DIR"), case.name);
    let mut options = scene::LoadOptions::default();
    for assignment in std::env::args().skip(1).filter(|a| a.contains('=')) {
        options.set(&assignment)?;
    }
    let mut scene = scene::load_with(path, &options).map_err(|e| e.to_string())?;
    scene.physics.set_threads(1);
    // Nothing sleeps on either side, and the ruler here is the only one.
    (scene.physics.settings.sleep, scene.physics.settings.measure) = (false, false);
    Ok(scene)
}

/// A scene as both engines have it.
struct Pair<'a> {
    case: &'a Case,
    scene: Scene,
    model: Model,
    script: Script,
    reference: Vec<DVec3>,
}

fn compare(case: &Case) -> Result<(), String> {
    let mut scene = load(case)?;
    let model = Model::of(&mut scene)?;
    let script = Script::of(&scene, case.seconds)?;
    let mut pair = Pair { case, scene, model, script, reference: Vec::new() };
    let ours = pair.run_ours(0)?;
    if let Path::Reference(substeps) = case.path {
        pair.reference = pair.run_ours(substeps)?.path;
    }
    let substeps = pair.scene.physics.settings.substeps.max(1);
    let label = if substeps == 1 { "ours".into() } else { format!("ours, {substeps} substeps") };
    pair.print(&label, &ours);
    let default = pair.run_rapier(Way::default(), false)?;
    pair.print("rapier, default (4 iterations)", &default);
    if default.broke.is_some() {
        pair.search()?;
    }
    let asked = std::env::args().skip_while(|a| a != "--iterations").nth(1).and_then(|n| n.parse().ok());
    if let Some(iterations) = asked {
        let run = pair.run_rapier(Way { iterations, ..Way::default() }, false)?;
        pair.print(&format!("rapier, {iterations} iterations (asked for)"), &run);
    }
    // Reduced coordinates cannot open; only trees have them.
    let multibody = Way { joints: Joints::Multibody, patience: 6.0, ..Way::default() };
    if pair.model.links.len() > 1
        && let Ok(run) = pair.run_rapier(multibody, false)
    {
        pair.print("rapier, multibody joints, 4 iterations", &run);
    }
    Ok(())
}

/// How rapier runs.
#[derive(Clone, Copy)]
struct Way {
    iterations: usize,
    splits: usize,
    joints: Joints,
    /// Are contacts as stiff as the substep bears?
    stiff: bool,
    /// Seconds after which the run is cut short.
    patience: f64,
}

impl Way {
    fn label(self) -> String {
        let stiff = if self.stiff { ", stiff contacts" } else { "" };
        match self.splits {
            1 => format!("{} iterations{stiff}", self.iterations),
            n => format!("{n} steps a frame of {} iterations{stiff}", self.iterations),
        }
    }

    /// Contacts are springs of 30 Hz (60 Hz on fixed bodies) by default, whatever the iterations, so that a light body
    /// under a heavy one gives way by metres. An eighth of the rate of substeps is what a soft step resolves well.
    fn apply(self, parameters: &mut r::IntegrationParameters, dt: f64) {
        parameters.dt = dt / self.splits as f64;
        parameters.num_solver_iterations = self.iterations;
        if self.stiff {
            let frequency = (self.iterations * self.splits) as f64 / dt / 8.0;
            parameters.contact_softness.natural_frequency = frequency.max(30.0);
            parameters.static_contact_softness.natural_frequency = frequency.max(60.0);
        }
    }
}

impl Default for Way {
    fn default() -> Way {
        Way { iterations: 4, splits: 1, joints: Joints::Impulse, stiff: false, patience: PATIENCE }
    }
}

impl Pair<'_> {
    fn print(&self, engine: &str, run: &Outcome) {
        print(self.case, engine, run, &self.reference);
    }

    /// Doubles iterations until the promise holds; where they do not help, steps a frame, and then both again with
    /// stiff contacts.
    fn search(&self) -> Result<(), String> {
        let powers = |least: usize, most: usize| {
            (1..).map(|k| 1usize << k).skip_while(move |&n| n < least).take_while(move |&n| n <= most)
        };
        let more = |iterations| Way { iterations, ..Way::default() };
        let split = |splits| Way { splits, ..Way::default() };
        let stiff = |iterations| Way { iterations, stiff: true, ..Way::default() };
        let held = self.first(powers(8, MOST).map(more))? || self.first(powers(2, MOST / 4).map(split))?;
        if !held && self.case.promise.depth.is_finite() {
            let both = |splits| Way { splits, stiff: true, ..Way::default() };
            let _ = self.first(powers(4, MOST).map(stiff))? || self.first(powers(2, MOST / 4).map(both))?;
        }
        Ok(())
    }

    /// Prints the first way that holds, or the last if none does; is there one? A way that does not break but is too slow to
    /// see the end ends the series: the next would be slower still.
    fn first(&self, ways: impl Iterator<Item = Way>) -> Result<bool, String> {
        let mut last = (Way::default(), Outcome::default());
        for way in ways {
            let run = self.run_rapier(way, true)?;
            if run.broke.is_none() {
                self.print(&format!("rapier, {}", way.label()), &run);
                return Ok(!run.cut);
            }
            last = (way, run);
        }
        // Once more, to see how bad it gets; but not if that ends before it is bad at all.
        let (way, mut hasty) = last;
        hasty.cut = true;
        let patient = self.run_rapier(Way { patience: 6.0, ..way }, false)?;
        let run = if patient.broke.is_some() { patient } else { hasty };
        self.print(&format!("rapier, {} (most tried)", way.label()), &run);
        Ok(false)
    }

    fn run_ours(&self, substeps: u32) -> Result<Outcome, String> {
        let mut scene = load(self.case)?;
        if substeps > 0 {
            scene.physics.settings.substeps = substeps;
        }
        let dt = scene.dt();
        let mut watch = Watch::new(self.case, &self.model, &self.script, &scene)?;
        let Scene { mut world, mut physics, .. } = scene;
        while watch.goes_on(false) {
            let start = Instant::now();
            physics.step(&mut world, dt);
            let ms = 1e3 * start.elapsed().as_secs_f64();
            let at = |&e| world.query_one::<(&Position, &Rotation)>(e).get().map(|(x, q)| pose(x.0, q.0));
            let poses: Result<Vec<_>, _> = self.model.bodies.iter().map(at).collect();
            watch.look(ms, dt, &poses.map_err(|e| e.to_string())?);
        }
        Ok(watch.outcome)
    }

    fn run_rapier(&self, way: Way, hasty: bool) -> Result<Outcome, String> {
        let mut twin = self.model.twin(&self.scene, way.joints)?;
        let dt = self.scene.dt();
        way.apply(&mut twin.world.integration_parameters, dt);
        let mut watch = Watch::new(self.case, &self.model, &self.script, &self.scene)?;
        watch.patience = way.patience;
        let part = dt / way.splits as f64;
        while watch.goes_on(hasty) {
            let end = watch.time(dt);
            let start = Instant::now();
            for left in (0..way.splits).rev() {
                self.script.play(&mut twin, part, end - part * left as f64);
                twin.world.step();
            }
            let ms = 1e3 * start.elapsed().as_secs_f64();
            let poses: Vec<r::Pose> =
                twin.handles.iter().map(|&h| *twin.world.bodies[h].position()).collect();
            watch.look(ms, dt, &poses);
        }
        Ok(watch.outcome)
    }
}
