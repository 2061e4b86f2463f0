//! Numbers of bodies and joints, read out by their names after every step.

use super::error::closest;
use super::instantiate::Scene;
use super::resolve::glob;
use crate::components::{AngularVelocity, LinearVelocity, Position, Rotation};
use glam::{DQuat, DVec3};

/// What is read of a body: pose of its centre of mass and velocities.
const OF_BODY: [&str; 13] = ["x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"];
/// What is read of a joint after its coordinates: force and torque on its second body.
const OF_JOINT: [&str; 6] = ["fx", "fy", "fz", "tx", "ty", "tz"];

/// Reads bodies and joints whose names match patterns.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    columns: Vec<String>,
    bodies: Vec<usize>,
    joints: Vec<usize>,
}

impl Watch {
    /// Watches all bodies and joints with names that match one of the patterns, in which `*` stands for anything.
    ///
    /// # Errors
    /// A sentence, if a pattern matches nothing.
    pub fn new(scene: &Scene, patterns: &[String]) -> Result<Watch, String> {
        let plan = &scene.plan;
        let names = || plan.bodies.iter().map(|b| &b.name).chain(plan.joints.iter().map(|j| &j.name));
        let named = || names().map(String::as_str).filter(|n| !n.is_empty());
        for pattern in patterns {
            if !named().any(|name| glob(pattern, name)) {
                let hint = closest(pattern, named().take(2_000));
                let hint = hint.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
                return Err(format!("no body and no joint is called `{pattern}`{hint}"));
            }
        }
        let wanted = |name: &str| !name.is_empty() && patterns.iter().any(|p| glob(p, name));
        let mut watch = Watch::default();
        for (number, body) in plan.bodies.iter().enumerate().filter(|(_, b)| wanted(&b.name)) {
            watch.bodies.push(number);
            watch.columns.extend(OF_BODY.map(|c| format!("{}.{c}", body.name)));
        }
        for (number, joint) in plan.joints.iter().enumerate().filter(|(_, j)| wanted(&j.name)) {
            watch.joints.push(number);
            for k in 0..scene.joint_at(number).readings().len() {
                watch.columns.extend(["q", "qd", "f"].map(|c| format!("{}.{c}{k}", joint.name)));
            }
            watch.columns.extend(OF_JOINT.map(|c| format!("{}.{c}", joint.name)));
        }
        Ok(watch)
    }

    /// The names of what is read, `NAME.x` and so on.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Reads everything, in the order of the columns. What is gone is NaN.
    pub fn read(&self, scene: &Scene, out: &mut Vec<f64>) {
        out.clear();
        let world = &scene.world;
        for entity in self.bodies.iter().map(|&b| scene.bodies[b]) {
            let position = world.get::<&Position>(entity).map_or(DVec3::NAN, |p| p.0);
            let q = world.get::<&Rotation>(entity).map_or(DQuat::NAN, |r| r.0);
            let v = world.get::<&LinearVelocity>(entity).map_or(DVec3::NAN, |v| v.0);
            let w = world.get::<&AngularVelocity>(entity).map_or(DVec3::NAN, |w| w.0);
            out.extend(position.to_array());
            out.extend([q.w, q.x, q.y, q.z]);
            out.extend(v.to_array().into_iter().chain(w.to_array()));
        }
        let mut at = out.len();
        for &number in &self.joints {
            let joint = scene.joint_at(number);
            let start = at;
            at = start + self.width(start);
            if world.contains(joint.entity()) {
                out.extend(joint.readings().iter().flat_map(|r| [r.value, r.rate, r.force]));
                let carried = joint.force();
                out.extend(carried.force.to_array().into_iter().chain(carried.torque.to_array()));
            }
            out.resize(at, f64::NAN);
        }
    }

    /// Columns of the joint that begins at `start`.
    fn width(&self, start: usize) -> usize {
        let last = self.columns[start..].iter().position(|c| c.ends_with(".tz"));
        last.map_or(0, |last| last + 1)
    }
}
