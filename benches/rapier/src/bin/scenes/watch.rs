//! Looks at poses after each frame of either engine.

use crate::cases::{Case, Empty, Path};
use crate::convert::Model;
use crate::measure::{Depths, separation, worse};
use crate::script::Script;
use glam::DVec3;
use rapier3d_f64::prelude as r;
use std::time::Instant;
use turnbuckle::components::BodyKind;
use turnbuckle::scene::Scene;

/// What one run showed.
#[derive(Default)]
pub struct Outcome {
    separation: f64,
    moved: f64,
    depth: f64,
    /// Of bodies that are to stay upright, the most (degrees).
    tilt: f64,
    /// Of bodies that are to be at rest, the fastest (m/s).
    speed: f64,
    /// Most bodies where none may be.
    strays: usize,
    pub path: Vec<DVec3>,
    frames_ms: Vec<f64>,
    /// When the promise broke first (s).
    pub broke: Option<f64>,
    pub cut: bool,
}

pub struct Watch<'a> {
    case: &'a Case,
    model: &'a Model,
    script: &'a Script,
    depths: Depths,
    load: usize,
    /// Bodies that are to stand, and where.
    standing: Vec<(usize, r::Pose)>,
    /// Which may not come near which.
    empty: Option<(&'a Empty, usize, Vec<usize>)>,
    last: Vec<r::Pose>,
    start: Instant,
    pub patience: f64,
    pub outcome: Outcome,
    frames: usize,
}

impl<'a> Watch<'a> {
    pub fn new(
        case: &'a Case,
        model: &'a Model,
        script: &'a Script,
        scene: &Scene,
    ) -> Result<Watch<'a>, String> {
        let index = |e: hecs::Entity| model.bodies.iter().position(|b| *b == e);
        let dynamic =
            |i: usize| scene.world.get::<&BodyKind>(model.bodies[i]).is_ok_and(|k| *k == BodyKind::Dynamic);
        let moves: Vec<bool> = (0..model.bodies.len()).map(dynamic).collect();
        let named = |name: &str| {
            let plan = |i: usize| &scene.plan.bodies[i];
            let of = |i: usize| {
                index(scene.bodies[i]).map(|at| (at, r::Pose::from_parts(plan(i).position, plan(i).rotation)))
            };
            let fits = |i: &usize| plan(*i).name.starts_with(name);
            (0..scene.bodies.len()).filter(fits).filter_map(of).filter(|(i, _)| moves[*i]).collect::<Vec<_>>()
        };
        let one = |name: &str| named(name).first().map(|n| n.0).ok_or(format!("no body is called {name}"));
        let empty = match &case.promise.empty {
            Some(e) => Some((e, one(e.with)?, named(e.of).iter().map(|n| n.0).collect())),
            None => None,
        };
        Ok(Watch {
            depths: Depths::new(model, &moves),
            load: one(case.load)?,
            standing: named(case.promise.standing),
            empty,
            last: Vec::new(),
            start: Instant::now(),
            patience: f64::INFINITY,
            outcome: Outcome::default(),
            frames: (case.seconds / scene.dt()).round() as usize,
            case,
            model,
            script,
        })
    }

    /// Is there another frame? A hasty run ends when the promise breaks.
    pub fn goes_on(&mut self, hasty: bool) -> bool {
        self.outcome.cut |= self.start.elapsed().as_secs_f64() > self.patience;
        let done = self.outcome.path.len() >= self.frames;
        let enough = hasty && self.outcome.broke.is_some();
        !(done || enough || self.outcome.cut)
    }

    /// When the frame at hand ends (s).
    pub fn time(&self, dt: f64) -> f64 {
        dt * (self.outcome.path.len() + 1) as f64
    }

    pub fn look(&mut self, ms: f64, dt: f64, poses: &[r::Pose]) {
        let time = self.time(dt);
        let promise = &self.case.promise;
        let out = &mut self.outcome;
        out.frames_ms.push(ms);
        out.path.push(poses[self.load].translation);
        let script = self.script;
        let held = |l: &crate::links::Link| script.released(l.number).is_none_or(|t| time <= t);
        out.separation = worse(out.separation, separation(self.model, poses, held));
        if time >= promise.depth_from {
            out.depth = worse(out.depth, self.depths.deepest(self.model, poses));
        }
        for (i, at) in &self.standing {
            if time <= promise.until + 1e-9 {
                out.moved = worse(out.moved, poses[*i].translation.distance(at.translation));
            }
            // A shape is drawn along its own axes; up is z of the world.
            let up = at.rotation.inverse() * DVec3::Z;
            out.tilt = worse(out.tilt, (poses[*i].rotation * up).angle_between(DVec3::Z).to_degrees());
            if time > promise.resting_fraction.1 + 1e-9 && !self.last.is_empty() {
                let way = poses[*i].translation.distance(self.last[*i].translation);
                out.speed = worse(out.speed, way / dt);
            }
        }
        if let Some((place, with, of)) = &self.empty {
            let within = |i: &&usize| {
                let at = poses[*with].inverse() * poses[**i].translation;
                let [low, high] = [place.least, place.most].map(DVec3::from_array);
                at.cmpge(low).all() && at.cmple(high).all()
            };
            out.strays = out.strays.max(of.iter().filter(within).count());
        }
        let broken = out.separation > promise.joints
            || out.moved > promise.moved
            || out.depth > promise.depth
            || out.tilt > promise.tilt
            || out.speed > promise.resting_fraction.0
            || out.strays > 0;
        if broken && out.broke.is_none() {
            out.broke = Some(time);
        }
        self.last = poses.to_vec();
    }
}

/// One row.
pub fn print(case: &Case, engine: &str, run: &Outcome, reference: &[DVec3]) {
    let path = match case.path {
        Path::Start => millimetres(run.moved),
        Path::Reference(_) => {
            millimetres(run.path.iter().zip(reference).map(|(a, b)| a.distance(*b)).fold(0.0, worse))
        }
        Path::Untold => String::new(),
    };
    let mut ms = run.frames_ms.clone();
    ms.sort_by(f64::total_cmp);
    let (median, p99) = (ms[ms.len() / 2], ms[(ms.len() * 99 / 100).min(ms.len() - 1)]);
    let separation =
        if case.promise.joints.is_finite() { millimetres(run.separation) } else { String::new() };
    println!(
        "| {} | {engine} | {separation} | {} | {path} | {median:.2} / {p99:.2} | {} |",
        case.name,
        millimetres(run.depth),
        verdict(case, run),
    );
}

/// Does it hold, or from when on not; and what else is wrong that no column tells.
fn verdict(case: &Case, run: &Outcome) -> String {
    let mut text = run.broke.map_or("yes".to_string(), |t| format!("no, from {t:.2} s"));
    if run.tilt > case.promise.tilt {
        text += &format!("; leans by {:.0}°", run.tilt);
    }
    if run.speed > case.promise.resting_fraction.0 {
        text += &format!("; {:.2} m/s where it is to rest", run.speed);
    }
    if run.strays > 0 {
        text += &format!("; {} slip through", run.strays);
    }
    if run.cut {
        text += &format!(" (cut at {:.1} s)", run.path.len() as f64 / 60.0);
    }
    text
}

fn millimetres(x: f64) -> String {
    match 1e3 * x {
        0.0 => "0".into(),
        x if x < 1e-3 => "< 0.001".into(),
        x if x < 1.0 => format!("{x:.3}"),
        x if x < 100.0 => format!("{x:.1}"),
        x if x < 1e6 => format!("{x:.0}"),
        _ => "> 1 km".into(),
    }
}
