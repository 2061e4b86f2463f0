//! Watches a run and says which of the scene's promises were kept.

use super::expect::{Claim, Expectation};
use super::instantiate::Scene;
use super::plan::ScenePlan;
use crate::components::{LinearVelocity, Position, Rotation};
use crate::math;
use crate::report::StepReport;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// How one promise was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The promise, as a sentence.
    pub promise: String,
    /// Was it kept, as far as the run went?
    pub kept: bool,
    /// Was there a step at which it was to hold?
    pub tested: bool,
    /// The worst value seen, in the unit of the promise.
    pub worst: f64,
    /// When that was (s).
    pub time: f64,
    /// The body it was about, if it was one.
    pub body: String,
}

/// Watches a run.
pub struct Judge {
    expectations: Vec<Expectation>,
    verdicts: Vec<Verdict>,
    start: Vec<(DVec3, DQuat)>,
    reference: Vec<Option<Vec<DVec3>>>,
    energy: f64,
}

impl Judge {
    /// Takes down the state before the first step.
    pub fn new(scene: &Scene) -> Judge {
        let verdicts = scene.plan.expectations.iter().map(|e| Verdict {
            promise: e.sentence(),
            kept: true,
            tested: false,
            worst: f64::NEG_INFINITY,
            time: 0.0,
            body: String::new(),
        });
        Judge {
            verdicts: verdicts.collect(),
            expectations: scene.plan.expectations.clone(),
            start: scene.bodies.iter().map(|e| pose(&scene.world, *e)).collect(),
            reference: vec![None; scene.plan.expectations.len()],
            energy: energy(&scene.plan, scene.physics.settings.gravity),
        }
    }

    /// Energy of the start (J), as the report counts it.
    pub fn start_energy(&self) -> f64 {
        self.energy
    }

    /// Looks at the world after a step. `last` says that the run ends with it.
    pub fn observe(&mut self, scene: &Scene, report: &StepReport, last: bool) {
        let time = report.time;
        for i in 0..self.expectations.len() {
            let e = &self.expectations[i];
            let slack = 1e-9;
            let in_time = time + slack >= e.from && time <= e.until + slack;
            if !in_time || (e.at_end && !last) {
                continue;
            }
            let (excess, value, body) = self.measure(i, scene, report);
            let verdict = &mut self.verdicts[i];
            verdict.tested = true;
            verdict.kept &= excess <= 0.0;
            if excess > verdict.worst {
                (verdict.worst, verdict.time) = (excess, time);
                verdict.body = match self.expectations[i].claim {
                    Claim::JointError(_) => joint_name(scene, report),
                    _ => body.map_or(String::new(), |b| scene.plan.bodies[b as usize].name.clone()),
                };
                verdict.promise = format!("{} (worst {value:.4})", self.expectations[i].sentence());
            }
        }
    }

    /// How far the promise is from being kept (negative: kept), the value looked at, and the body.
    fn measure(&mut self, i: usize, scene: &Scene, report: &StepReport) -> (f64, f64, Option<u32>) {
        let e = &self.expectations[i];
        let below = |value: f64, limit: f64| (value - limit, value, None);
        match e.claim {
            Claim::JointError(v) => below(report.joint_error_max, v),
            Claim::Penetration(v) => below(report.penetration_max, v),
            Claim::EnergyGain(v) => below(report.kinetic + report.potential - self.energy, v),
            Claim::Residual(v) => below(report.residual, v),
            Claim::Inside { min, max, of, at_least, at_most } => {
                let frame = of.map(|b| pose(&scene.world, scene.bodies[b as usize]));
                let inside = e.bodies.iter().filter(|b| {
                    let p = pose(&scene.world, scene.bodies[**b as usize]).0;
                    let p = frame.map_or(p, |(at, r)| r.inverse() * (p - at));
                    p.cmpge(min).all() && p.cmple(max).all()
                });
                let n = inside.count();
                let excess = (at_least as f64 - n as f64).max(n as f64 - at_most as f64);
                (excess, n as f64, None)
            }
            Claim::MovesLess(limit) => {
                let at: Vec<DVec3> = positions(e, scene);
                let from = self.reference[i].get_or_insert_with(|| {
                    if e.from > 0.0 {
                        at.clone()
                    } else {
                        e.bodies.iter().map(|b| self.start[*b as usize].0).collect()
                    }
                });
                let moved = at.iter().zip(from.iter()).map(|(p, q)| p.distance(*q));
                largest(moved.map(|d| (d - limit, d)), &e.bodies)
            }
            claim => {
                let each = e.bodies.iter().map(|b| self.one(claim, scene, *b));
                largest(each, &e.bodies)
            }
        }
    }

    fn one(&self, claim: Claim, scene: &Scene, body: u32) -> (f64, f64) {
        let entity = scene.bodies[body as usize];
        let (position, rotation) = pose(&scene.world, entity);
        let (start, start_rotation) = self.start[body as usize];
        let speed = || scene.world.get::<&LinearVelocity>(entity).map_or(0.0, |v| v.0.length());
        match claim {
            Claim::Above(z) => (z - position.z, position.z),
            Claim::Below(z) => (position.z - z, position.z),
            Claim::MovesMore(d) => (d - position.distance(start), position.distance(start)),
            Claim::Near(point, d) => (position.distance(point) - d, position.distance(point)),
            Claim::Slower(v) => (speed() - v, speed()),
            Claim::Faster(v) => (v - speed(), speed()),
            Claim::Upright(limit) => {
                let up = start_rotation.inverse() * DVec3::Z;
                let lean = math::angle_between(rotation * up, DVec3::Z);
                (lean - limit, lean.to_degrees())
            }
            _ => (f64::NEG_INFINITY, 0.0),
        }
    }

    /// The verdicts, in the order of the file.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }
}

/// The joint that is open the furthest, by its name or by its place in the file.
fn joint_name(scene: &Scene, report: &StepReport) -> String {
    let Some((entity, key)) = report.joint_error_at else { return String::new() };
    let Some(i) = scene.joints.iter().position(|j| *j == entity) else { return String::new() };
    let plan = &scene.plan.joints[i];
    let body = |b: Option<u32>| b.map_or("world", |b| scene.plan.bodies[b as usize].name.as_str());
    let name = if plan.name.is_empty() { "joint" } else { plan.name.as_str() };
    format!("{name} of {} and {} (row {key})", body(plan.a.body), body(plan.b.body))
}

/// The largest first number, its second, and the body it belongs to. A value that is not a number is the largest.
fn largest(values: impl Iterator<Item = (f64, f64)>, bodies: &[u32]) -> (f64, f64, Option<u32>) {
    let mut worst = (f64::NEG_INFINITY, 0.0, None);
    for ((excess, value), body) in values.zip(bodies) {
        let excess = if excess.is_nan() { f64::INFINITY } else { excess };
        if excess > worst.0 {
            worst = (excess, value, Some(*body));
        }
    }
    worst
}

fn positions(e: &Expectation, scene: &Scene) -> Vec<DVec3> {
    e.bodies.iter().map(|b| pose(&scene.world, scene.bodies[*b as usize]).0).collect()
}

/// Pose of a body; one that is gone is nowhere.
fn pose(world: &World, entity: Entity) -> (DVec3, DQuat) {
    let position = world.get::<&Position>(entity).map_or(DVec3::NAN, |p| p.0);
    (position, world.get::<&Rotation>(entity).map_or(DQuat::IDENTITY, |r| r.0))
}

/// Kinetic and potential energy of a plan, counted as the step's report counts it.
pub(super) fn energy(plan: &ScenePlan, gravity: DVec3) -> f64 {
    let dynamic = plan.bodies.iter().filter(|b| b.kind == crate::components::BodyKind::Dynamic);
    dynamic
        .map(|b| {
            let spin = b.rotation.inverse() * b.spin;
            0.5 * b.mass * b.velocity.length_squared() + 0.5 * spin.dot(b.inertia * spin)
                - b.mass * gravity.dot(b.position)
        })
        .sum()
}
