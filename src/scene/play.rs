//! The script of a scene, played by a system of its own before the guard looks at the world.
//!
//! It keeps no state: what happens in a step follows from the time alone, so restoring a snapshot also
//! restores the script.

use super::expr::{Expr, Variables};
use super::joints::set_motor;
use super::plan::{Action, JointKind, Key, Motion, ScenePlan, ScriptPlan};
use crate::Physics;
use crate::components::*;
use crate::math;
use crate::schedule::Step;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// The scripts of a scene with the entities they are about.
pub(super) struct Player {
    scripts: Vec<ScriptPlan>,
    bodies: Vec<Entity>,
    joints: Vec<(Entity, JointKind)>,
}

impl Player {
    /// `None` if nothing happens by itself.
    pub fn new(plan: &ScenePlan, bodies: &[Entity], joints: &[Entity]) -> Option<Player> {
        if plan.scripts.is_empty() {
            return None;
        }
        let kinds = plan.joints.iter().map(|j| j.kind.clone());
        Some(Player {
            scripts: plan.scripts.clone(),
            bodies: bodies.to_vec(),
            joints: joints.iter().copied().zip(kinds).collect(),
        })
    }

    /// Adds the system `script` to the pipeline.
    pub fn attach(self, physics: &mut Physics) {
        let added = physics.pipeline().add_before("guard", "script", move |step| self.play(step));
        added.expect("every pipeline has a guard");
    }

    fn play(&self, step: &mut Step<'_>) {
        let (substep, substeps) = step.work.substep;
        let end = step.report.time - f64::from(substeps - 1 - substep) * step.dt;
        let start = end - step.dt;
        // Times are sums of steps: half a millionth of a step covers their rounding.
        let slack = 5e-7 * step.dt;
        for script in &self.scripts {
            match script {
                ScriptPlan::Event { time, action } => {
                    let due = start + slack >= *time && start - step.dt + slack < *time;
                    if due {
                        self.act(step.world, action);
                    }
                }
                ScriptPlan::Move { body, motion } => {
                    follow(step.world, self.bodies[*body as usize], motion, start, end);
                }
                ScriptPlan::Drive { joint, motor, target } => {
                    let (entity, kind) = &self.joints[*joint as usize];
                    set_motor(step.world, *entity, kind, *motor, at_time(target, end));
                }
            }
        }
    }

    fn act(&self, world: &mut World, action: &Action) {
        let body = |i: &u32| self.bodies[*i as usize];
        // What is gone already stays gone: every lookup below may fail without harm.
        match action {
            Action::Release(joint) => drop(world.despawn(self.joints[*joint as usize].0)),
            Action::Remove(b) => drop(world.despawn(body(b))),
            Action::Free(b) => set_kind(world, body(b), BodyKind::Dynamic),
            Action::Freeze(b) => {
                set_kind(world, body(b), BodyKind::Fixed);
                set_velocity(world, body(b), DVec3::ZERO, DVec3::ZERO);
            }
            Action::Velocity(b, linear, angular) => set_velocity(world, body(b), *linear, *angular),
            Action::Impulse(b, impulse) => {
                let kick = world.get::<&Mass>(body(b)).map(|m| *impulse / m.0);
                if let (Ok(kick), Ok(mut v)) = (kick, world.get::<&mut LinearVelocity>(body(b))) {
                    v.0 += kick;
                }
            }
            Action::Motor(joint, motor, target) => {
                let (entity, kind) = &self.joints[*joint as usize];
                set_motor(world, *entity, kind, *motor, *target);
            }
        }
    }
}

fn set_kind(world: &World, body: Entity, kind: BodyKind) {
    if let Ok(mut k) = world.get::<&mut BodyKind>(body) {
        *k = kind;
    }
}

fn set_velocity(world: &World, body: Entity, linear: DVec3, angular: DVec3) {
    if let Ok(mut v) = world.get::<&mut LinearVelocity>(body) {
        v.0 = linear;
    }
    if let Ok(mut w) = world.get::<&mut AngularVelocity>(body) {
        w.0 = angular;
    }
}

/// The value of an expression of `$t`; zero where it has none (1/t at 0).
fn at_time(e: &Expr, t: f64) -> f64 {
    let mut variables = Variables::new(0);
    variables.push("t", t);
    e.value(&variables).ok().filter(|v| v.is_finite()).unwrap_or(0.0)
}

fn follow(world: &mut World, body: Entity, motion: &Motion, start: f64, end: f64) {
    let vector = |e: &[Expr; 3], t: f64| DVec3::from_array(std::array::from_fn(|i| at_time(&e[i], t)));
    match motion {
        // The middle of the step: velocities that are linear in time then move exactly.
        Motion::Velocity { linear, angular } => {
            let t = 0.5 * (start + end);
            set_velocity(world, body, vector(linear, t), vector(angular, t));
        }
        Motion::Position(position) => {
            let rotation = world.get::<&Rotation>(body).map_or(DQuat::IDENTITY, |r| r.0);
            aim(world, body, vector(position, end), rotation);
        }
        Motion::Keys { keys, repeat } => {
            let (position, rotation) = pose_at(keys, *repeat, end);
            aim(world, body, position, rotation);
        }
    }
}

fn aim(world: &mut World, body: Entity, position: DVec3, rotation: DQuat) {
    if world.contains(body) {
        // Cannot fail: the body is there.
        let _ = world.insert_one(body, KinematicTarget { position, rotation });
    }
}

/// The pose between the keys around a time; the first before them, the last after them.
fn pose_at(keys: &[Key], repeat: bool, time: f64) -> (DVec3, DQuat) {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return (DVec3::ZERO, DQuat::IDENTITY);
    };
    let length = last.time - first.time;
    let t = if repeat && length > 0.0 { first.time + (time - first.time).rem_euclid(length) } else { time };
    let next = keys.partition_point(|k| k.time <= t);
    if next == 0 {
        return (first.position, first.rotation);
    }
    let Some(b) = keys.get(next) else { return (last.position, last.rotation) };
    let a = &keys[next - 1];
    let s = (t - a.time) / (b.time - a.time);
    (a.position.lerp(b.position, s), math::slerp(a.rotation, b.rotation, s).normalize())
}
