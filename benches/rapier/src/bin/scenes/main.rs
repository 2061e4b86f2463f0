//! Whole scenes of ours in rapier3d-f64: error and time side by side, same scene, same run, one thread each.
//!
//! `cargo run --release --bin scenes -- [SCENE..] [NAME=VALUE..] [--iterations N]`; values are parameters of the scenes, N one more
//! row of rapier's. For every scene: ours with the scene's own settings; rapier as it comes
//! (4 iterations, which are its substeps); and rapier with iterations doubled until the scene's promise holds. Poses after every
//! frame are measured by one ruler (`measure.rs`); what the conversion cannot carry over is said in `convert.rs`.

mod convert;
mod measure;

use convert::{Joints, Model, Twin, pose};
use glam::DVec3;
use measure::{Depths, separation, worse};
use rapier3d_f64::prelude as r;
use std::time::Instant;
use turnbuckle::components::*;
use turnbuckle::scene::{self, Scene};

/// What a scene must do to count as held.
struct Promise {
    /// Joints may open by this (m).
    joints: f64,
    /// Dynamic bodies whose name starts so …
    standing: &'static str,
    /// … may move by this (m) …
    moved: f64,
    /// … until then (s).
    until: f64,
    /// Surfaces may overlap by this (m).
    depth: f64,
}

struct Case {
    name: &'static str,
    seconds: f64,
    /// Whose path is compared.
    load: &'static str,
    promise: Promise,
    /// Substeps of the reference, ours; 0 for scenes at rest, where the start is the reference.
    reference: u32,
}

const fn jointed(name: &'static str, load: &'static str, seconds: f64, reference: u32) -> Case {
    let promise =
        Promise { joints: 1e-3, standing: "", moved: f64::INFINITY, until: 0.0, depth: f64::INFINITY };
    Case { name, seconds, load, promise, reference }
}

const fn at_rest(name: &'static str, load: &'static str, seconds: f64, promise: Promise) -> Case {
    Case { name, seconds, load, promise, reference: 0 }
}

const fn stands(standing: &'static str, moved: f64, until: f64, depth: f64) -> Promise {
    Promise { joints: f64::INFINITY, standing, moved, until, depth }
}

/// Standing is 1 cm of motion and 5 mm of overlap, or what the scene file promises where it says more: log_tower's box
/// is dropped from 1 cm; wall is hit after half a second and stands until then.
const CASES: [Case; 9] = [
    jointed("chain_load", "load", 5.0, 16),
    jointed("net_load", "slab", 5.0, 16),
    jointed("rope_bridge", "ball", 4.0, 16),
    jointed("bridge", "plank_64", 1.0, 4),
    jointed("chain_wrap", "box", 4.0, 16),
    at_rest("stack", "heavy", 5.0, stands("", 0.01, 9.0, 5e-3)),
    at_rest("tower_boxes", "box", 5.0, stands("", 0.01, 9.0, 5e-3)),
    at_rest("log_tower", "box", 1.9, stands("box", 0.03, 1.9, 5e-3)),
    at_rest("wall", "brick_5_2", 2.0, stands("brick", 0.02, 0.45, 0.01)),
];

/// Most iterations tried.
const MOST: usize = 1024;
/// Seconds after which a run is cut short.
const PATIENCE: f64 = 30.0;

/// What one run showed.
#[derive(Default)]
struct Outcome {
    separation: f64,
    moved: f64,
    depth: f64,
    path: Vec<DVec3>,
    frames_ms: Vec<f64>,
    /// When the promise broke first (s).
    broke: Option<f64>,
    cut: bool,
}

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

fn compare(case: &Case) -> Result<(), String> {
    let mut scene = load(case)?;
    let model = Model::of(&mut scene)?;
    let ours = run_ours(case, &model, 0)?;
    let reference =
        if case.reference > 0 { run_ours(case, &model, case.reference)?.path } else { Vec::new() };
    let substeps = scene.physics.settings.substeps.max(1);
    let label = if substeps == 1 { "ours".into() } else { format!("ours, {substeps} substeps") };
    print(case, &label, &ours, &reference);
    let default = run_rapier(case, &scene, &model, Way::default(), false)?;
    print(case, "rapier, default (4 iterations)", &default, &reference);
    if default.broke.is_some() {
        search(case, &scene, &model, &reference)?;
    }
    let asked = std::env::args().skip_while(|a| a != "--iterations").nth(1).and_then(|n| n.parse().ok());
    if let Some(iterations) = asked {
        let run = run_rapier(case, &scene, &model, Way { iterations, ..Way::default() }, false)?;
        print(case, &format!("rapier, {iterations} iterations (asked for)"), &run, &reference);
    }
    // Reduced coordinates cannot open; only trees have them.
    let multibody = Way { joints: Joints::Multibody, patience: 6.0, ..Way::default() };
    if !model.links.is_empty()
        && let Ok(run) = run_rapier(case, &scene, &model, multibody, false)
    {
        print(case, "rapier, multibody joints, 4 iterations", &run, &reference);
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

/// Doubles iterations until the promise holds; where they do not help, steps a frame, and then iterations with stiff contacts.
fn search(case: &Case, scene: &Scene, model: &Model, reference: &[DVec3]) -> Result<(), String> {
    let powers = |least: usize, most: usize| {
        (1..).map(|k| 1usize << k).skip_while(move |&n| n < least).take_while(move |&n| n <= most)
    };
    let more = |iterations| Way { iterations, ..Way::default() };
    let split = |splits| Way { splits, ..Way::default() };
    let stiff = |iterations| Way { iterations, stiff: true, ..Way::default() };
    let held = first(case, scene, model, reference, powers(8, MOST).map(more))?
        || first(case, scene, model, reference, powers(2, MOST / 4).map(split))?;
    if !held && case.promise.depth.is_finite() {
        first(case, scene, model, reference, powers(4, MOST).map(stiff))?;
    }
    Ok(())
}

/// Prints the first way that holds, or the last if none does; is there one?
fn first(
    case: &Case,
    scene: &Scene,
    model: &Model,
    reference: &[DVec3],
    ways: impl Iterator<Item = Way>,
) -> Result<bool, String> {
    let mut last = Way::default();
    for way in ways {
        last = way;
        if let Some(run) = held(case, scene, model, way)? {
            print(case, &format!("rapier, {}", way.label()), &run, reference);
            return Ok(true);
        }
    }
    let run = run_rapier(case, scene, model, Way { patience: 6.0, ..last }, false)?;
    print(case, &format!("rapier, {} (most tried)", last.label()), &run, reference);
    Ok(false)
}

fn held(case: &Case, scene: &Scene, model: &Model, way: Way) -> Result<Option<Outcome>, String> {
    let run = run_rapier(case, scene, model, way, true)?;
    Ok((run.broke.is_none() && !run.cut).then_some(run))
}

fn run_ours(case: &Case, model: &Model, substeps: u32) -> Result<Outcome, String> {
    let mut scene = load(case)?;
    if substeps > 0 {
        scene.physics.settings.substeps = substeps;
    }
    let dt = scene.dt();
    let mut watch = Watch::new(case, model, &scene)?;
    let Scene { mut world, mut physics, .. } = scene;
    while watch.goes_on(false) {
        let start = Instant::now();
        physics.step(&mut world, dt);
        let ms = 1e3 * start.elapsed().as_secs_f64();
        let at = |&e| world.query_one::<(&Position, &Rotation)>(e).get().map(|(x, q)| pose(x.0, q.0));
        let poses: Result<Vec<_>, _> = model.bodies.iter().map(at).collect();
        watch.look(ms, dt, &poses.map_err(|e| e.to_string())?);
    }
    Ok(watch.outcome)
}

fn run_rapier(case: &Case, scene: &Scene, model: &Model, way: Way, hasty: bool) -> Result<Outcome, String> {
    let Twin { mut world, handles } = model.twin(scene, way.joints)?;
    let dt = scene.dt();
    way.apply(&mut world.integration_parameters, dt);
    let mut watch = Watch::new(case, model, scene)?;
    watch.patience = way.patience;
    while watch.goes_on(hasty) {
        let start = Instant::now();
        for _ in 0..way.splits {
            world.step();
        }
        let ms = 1e3 * start.elapsed().as_secs_f64();
        let poses: Vec<r::Pose> = handles.iter().map(|&h| *world.bodies[h].position()).collect();
        watch.look(ms, dt, &poses);
    }
    Ok(watch.outcome)
}

/// Looks at poses after each frame.
struct Watch<'a> {
    case: &'a Case,
    model: &'a Model,
    depths: Depths,
    load: usize,
    /// Bodies that are to stand, and where.
    standing: Vec<(usize, DVec3)>,
    start: Instant,
    patience: f64,
    outcome: Outcome,
    frames: usize,
}

impl<'a> Watch<'a> {
    fn new(case: &'a Case, model: &'a Model, scene: &Scene) -> Result<Watch<'a>, String> {
        let index = |e: hecs::Entity| model.bodies.iter().position(|b| *b == e);
        let dynamic =
            |i: usize| scene.world.get::<&BodyKind>(model.bodies[i]).is_ok_and(|k| *k == BodyKind::Dynamic);
        let moves: Vec<bool> = (0..model.bodies.len()).map(dynamic).collect();
        let named = |name: &str| {
            let of = |i: usize| index(scene.bodies[i]).map(|at| (at, scene.plan.bodies[i].position));
            let fits = |i: &usize| scene.plan.bodies[*i].name.starts_with(name);
            (0..scene.bodies.len()).filter(fits).filter_map(of).filter(|(i, _)| moves[*i]).collect::<Vec<_>>()
        };
        let load = named(case.load).first().ok_or(format!("no body is called {}", case.load))?.0;
        Ok(Watch {
            depths: Depths::new(model, &moves),
            load,
            standing: named(case.promise.standing),
            start: Instant::now(),
            patience: f64::INFINITY,
            outcome: Outcome::default(),
            frames: (case.seconds / scene.dt()).round() as usize,
            case,
            model,
        })
    }

    /// Is there another frame? A hasty run ends when the promise breaks.
    fn goes_on(&mut self, hasty: bool) -> bool {
        self.outcome.cut |= self.start.elapsed().as_secs_f64() > self.patience;
        let done = self.outcome.path.len() >= self.frames;
        !done && !self.outcome.cut && !(hasty && self.outcome.broke.is_some())
    }

    fn look(&mut self, ms: f64, dt: f64, poses: &[r::Pose]) {
        let (out, promise) = (&mut self.outcome, &self.case.promise);
        out.frames_ms.push(ms);
        out.path.push(poses[self.load].translation);
        let time = dt * out.path.len() as f64;
        out.separation = worse(out.separation, separation(self.model, poses));
        out.depth = worse(out.depth, self.depths.deepest(self.model, poses));
        if time <= promise.until + 1e-9 {
            let moved = |(i, at): &(usize, DVec3)| poses[*i].translation.distance(*at);
            out.moved = self.standing.iter().map(moved).fold(out.moved, worse);
        }
        let broken =
            out.separation > promise.joints || out.moved > promise.moved || out.depth > promise.depth;
        if broken && out.broke.is_none() {
            out.broke = Some(time);
        }
    }
}

/// One row. The path is measured against the reference for jointed scenes, against the start for those at rest.
fn print(case: &Case, engine: &str, run: &Outcome, reference: &[DVec3]) {
    let path = match case.reference {
        0 => run.moved,
        _ => run.path.iter().zip(reference).map(|(a, b)| a.distance(*b)).fold(0.0, worse),
    };
    let mut ms = run.frames_ms.clone();
    ms.sort_by(f64::total_cmp);
    let (median, p99) = (ms[ms.len() / 2], ms[(ms.len() * 99 / 100).min(ms.len() - 1)]);
    let cut =
        if run.cut { format!(" (cut at {:.1} s)", run.path.len() as f64 / 60.0) } else { String::new() };
    let holds = run.broke.map_or("yes".to_string(), |t| format!("no, from {t:.2} s"));
    let separation =
        if case.promise.joints.is_finite() { millimetres(run.separation) } else { String::new() };
    println!(
        "| {} | {engine} | {separation} | {} | {} | {median:.2} / {p99:.2} | {holds}{cut} |",
        case.name,
        millimetres(run.depth),
        millimetres(path),
    );
}

fn millimetres(x: f64) -> String {
    match 1e3 * x {
        x if x == 0.0 => "0".into(),
        x if x < 1e-3 => "< 0.001".into(),
        x if x < 1.0 => format!("{x:.3}"),
        x if x < 100.0 => format!("{x:.1}"),
        x if x < 1e6 => format!("{x:.0}"),
        _ => "> 1 km".into(),
    }
}
