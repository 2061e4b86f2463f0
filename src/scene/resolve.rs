//! Names to numbers: joints, scripts and expectations, once every body is known.

use super::error::{Fault, MOST_FAULTS, Read, Span, suggestion};
use super::expand::{Builder, Pending};
use super::expect::{Claim, ExpectationSpec};
use super::expr::Expr;
use super::joint::JointSpec;
use super::plan::{Action, Anchor, BodyPlan, BodyRef, JointKind, JointPlan, Motion, ScenePlan, ScriptPlan};
use super::script::{ActionSpec, ScriptSpec};
use super::text::shorten;
use crate::components::BodyKind;
use glam::DVec3;
use std::collections::HashMap;

/// Finishes the plan, or gives everything that is wrong with it.
pub(super) fn resolve(builder: Builder<'_>) -> Result<ScenePlan, Vec<Fault>> {
    let names = Names { bodies: builder.names, joints: HashMap::new() };
    let mut r = Resolver { plan: builder.plan, names };
    let mut faults = Vec::new();
    each(builder.joints, &mut faults, |pending| r.joint(pending));
    // Scripts name joints: of those that are wrong they would say that they are not there.
    if !faults.is_empty() {
        return Err(faults);
    }
    each(builder.scripts, &mut faults, |pending| r.script(pending));
    each(builder.expectations, &mut faults, |pending| r.expectation(pending));
    if faults.is_empty() { Ok(r.plan) } else { Err(faults) }
}

/// Resolves one after another; what a generator repeats is told once.
fn each<T>(all: Vec<Pending<T>>, faults: &mut Vec<Fault>, mut resolve: impl FnMut(Pending<T>) -> Read<()>) {
    for pending in all {
        let trail = pending.trail.clone();
        let Err(fault) = resolve(pending) else { continue };
        if !faults.iter().any(|f| f.at == fault.at) {
            faults.push(Fault { trail: trail.to_vec(), ..fault });
        }
        if faults.len() >= MOST_FAULTS {
            return;
        }
    }
}

struct Names {
    bodies: HashMap<String, u32>,
    joints: HashMap<String, u32>,
}

struct Resolver {
    plan: ScenePlan,
    names: Names,
}

/// Looks a name up from the inside out: in the part itself, then in the parts around it.
fn find(table: &HashMap<String, u32>, name: &str, prefix: &str) -> Option<u32> {
    let mut scope = prefix;
    loop {
        if let Some(&i) = table.get(&format!("{scope}{name}")) {
            return Some(i);
        }
        if scope.is_empty() {
            return None;
        }
        let outer = scope.trim_end_matches('/');
        scope = outer.rfind('/').map_or("", |i| &outer[..=i]);
    }
}

impl Resolver {
    fn body(&self, name: &str, prefix: &str, at: Span) -> Read<u32> {
        find(&self.names.bodies, name, prefix).ok_or_else(|| {
            // Only a part of the names is searched: a suggestion is not worth a second on a huge scene.
            let known = self.plan.bodies.iter().filter(|b| !b.name.is_empty()).take(2_000);
            let known: Vec<&str> = known.map(|b| b.name.strip_prefix(prefix).unwrap_or(&b.name)).collect();
            let hint = super::error::closest(name, known.iter().copied());
            let hint = hint.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            Fault::new(at, format!("there is no body `{}`{hint}", shorten(name)))
        })
    }

    fn joint_named(&self, name: &str, prefix: &str, at: Span) -> Read<u32> {
        find(&self.names.joints, name, prefix).ok_or_else(|| {
            let known: Vec<&str> = self
                .plan
                .joints
                .iter()
                .map(|j| j.name.as_str())
                .filter(|n| !n.is_empty())
                .take(500)
                .collect();
            Fault::new(
                at,
                format!("there is no joint `{}`{}", shorten(name), suggestion(name, known.iter().copied())),
            )
        })
    }

    fn reference(&self, name: &Option<String>, prefix: &str, at: Span) -> Read<BodyRef> {
        name.as_ref().map(|n| self.body(n, prefix, at)).transpose()
    }

    /// Point and directions in a body's frame.
    fn anchor(&self, body: BodyRef, point: DVec3, axis: DVec3, side: DVec3) -> Anchor {
        let (position, rotation) = match body {
            Some(i) => (self.plan.bodies[i as usize].position, self.plan.bodies[i as usize].rotation),
            None => (DVec3::ZERO, glam::DQuat::IDENTITY),
        };
        let back = rotation.inverse();
        Anchor { body, point: back * (point - position), axis: back * axis, side: back * side }
    }

    fn joint(&mut self, pending: Pending<JointSpec>) -> Read<()> {
        let Pending { spec, prefix, .. } = pending;
        let at = spec.place;
        let [a, b] =
            [self.reference(&spec.bodies[0], &prefix, at)?, self.reference(&spec.bodies[1], &prefix, at)?];
        if spec.rope.is_empty() && a == b {
            return Err(Fault::new(at, "the joint ties a body to itself"));
        }
        let kind = self.kind(&spec, &prefix)?;
        let index = self.plan.joints.len() as u32;
        if !spec.name.is_empty() && self.names.joints.insert(spec.name.clone(), index).is_some() {
            return Err(Fault::new(at, format!("there are two joints `{}`", shorten(&spec.name))));
        }
        let anchors = match &kind {
            JointKind::Pulley { points, .. } => {
                let last = points.len() - 1;
                let end = |i: usize| Anchor {
                    body: points[i].0,
                    point: points[i].1,
                    axis: DVec3::Z,
                    side: DVec3::X,
                };
                [end(0), end(last)]
            }
            _ => [
                self.anchor(a, spec.points[0], spec.axes[0], spec.side),
                self.anchor(b, spec.points[1], spec.axes[1], spec.side),
            ],
        };
        let [a, b] = anchors;
        self.plan.joints.push(JointPlan {
            name: spec.name,
            kind,
            a,
            b,
            limits: spec.limits,
            motors: spec.motors,
            friction: spec.friction,
            breaks: spec.breaks,
            collide: spec.collide,
            at,
            points_at: spec.points_at,
        });
        Ok(())
    }

    fn kind(&self, spec: &JointSpec, prefix: &str) -> Read<JointKind> {
        let apart = spec.points[0].distance(spec.points[1]);
        let or_apart = |given: f64| if given.is_nan() { apart } else { given };
        let length = |given: f64| {
            let length = or_apart(given);
            if length > 0.0 {
                Ok(length)
            } else {
                Err(Fault::new(spec.place, "the two points are the same; give a `length`"))
            }
        };
        Ok(match spec.kind.clone() {
            JointKind::Distance(l) => JointKind::Distance(length(l)?),
            JointKind::Rope(l) => JointKind::Rope(length(l)?),
            JointKind::Spring { length: l, stiffness, damping, coupled } => {
                JointKind::Spring { length: or_apart(l), stiffness, damping, coupled }
            }
            JointKind::Cable(mut c) => {
                if c.length.is_nan() {
                    c.length = 0.1;
                }
                JointKind::Cable(c)
            }
            JointKind::Gear { ratio, .. } => {
                JointKind::Gear { ratio, frame: self.reference(&spec.frame, prefix, spec.place)? }
            }
            JointKind::Rack { ratio, .. } => {
                JointKind::Rack { ratio, frame: self.reference(&spec.frame, prefix, spec.place)? }
            }
            JointKind::Pulley { length: l, speed, max_force, friction, .. } => {
                let mut points = Vec::with_capacity(spec.rope.len());
                for (name, p) in &spec.rope {
                    let body = self.reference(name, prefix, spec.place)?;
                    points.push((body, self.anchor(body, *p, DVec3::Z, DVec3::X).point));
                }
                let path: f64 = spec.rope.windows(2).map(|w| w[0].1.distance(w[1].1)).sum();
                let length = if l.is_nan() { path } else { l };
                if length <= 0.0 {
                    return Err(Fault::new(spec.place, "the rope has no length"));
                }
                JointKind::Pulley { points, length, speed, max_force, friction }
            }
            other => other,
        })
    }

    fn script(&mut self, pending: Pending<ScriptSpec>) -> Read<()> {
        let Pending { spec, prefix, .. } = pending;
        let script = match spec {
            ScriptSpec::Event { time, action, at } => {
                ScriptPlan::Event { time, action: self.action(action, &prefix, at)? }
            }
            ScriptSpec::Move { body, motion, at } => {
                let body = self.body(&body, &prefix, at)?;
                let plan = &self.plan.bodies[body as usize];
                if plan.kind != BodyKind::Kinematic {
                    let message = format!(
                        "`{}` is not kinematic; only kinematic bodies follow a motion",
                        shorten(&plan.name)
                    );
                    return Err(Fault::new(at, message));
                }
                ScriptPlan::Move { body, motion: at_center(motion, plan) }
            }
            ScriptSpec::Drive { joint, motor, target, at } => {
                let joint = self.joint_named(&joint, &prefix, at)?;
                self.need_motor(joint, motor, at)?;
                ScriptPlan::Drive { joint, motor, target }
            }
        };
        self.plan.scripts.push(script);
        Ok(())
    }

    fn need_motor(&self, joint: u32, motor: usize, at: Span) -> Read<()> {
        let plan = &self.plan.joints[joint as usize];
        if plan.motors[motor].is_none() && !matches!(plan.kind, JointKind::Pulley { .. }) {
            return Err(Fault::new(at, format!("the joint `{}` has no motor to drive", shorten(&plan.name))));
        }
        Ok(())
    }

    fn action(&self, action: ActionSpec, prefix: &str, at: Span) -> Read<Action> {
        let body = |name: &str| self.body(name, prefix, at);
        Ok(match action {
            ActionSpec::Release(j) => Action::Release(self.joint_named(&j, prefix, at)?),
            ActionSpec::Remove(b) => Action::Remove(body(&b)?),
            ActionSpec::Free(b) => {
                let body = body(&b)?;
                let mass = &self.plan.bodies[body as usize];
                if mass.inertia.determinant() <= 0.0 {
                    return Err(Fault::new(at, format!("`{}` cannot be freed: it has no mass", shorten(&b))));
                }
                Action::Free(body)
            }
            ActionSpec::Freeze(b) => Action::Freeze(body(&b)?),
            ActionSpec::Velocity(b, linear, angular) => Action::Velocity(body(&b)?, linear, angular),
            ActionSpec::Impulse(b, impulse) => Action::Impulse(body(&b)?, impulse),
            ActionSpec::Motor(j, motor, target) => {
                let joint = self.joint_named(&j, prefix, at)?;
                self.need_motor(joint, motor, at)?;
                Action::Motor(joint, motor, target)
            }
        })
    }

    fn expectation(&mut self, pending: Pending<ExpectationSpec>) -> Read<()> {
        let Pending { spec: ExpectationSpec { mut expectation, of }, prefix, .. } = pending;
        if let (Claim::Inside { of: frame, .. }, Some(name)) = (&mut expectation.claim, &of) {
            *frame = Some(self.body(name, &prefix, expectation.at)?);
        }
        if !expectation.pattern.is_empty() {
            expectation.bodies = self.matching(&expectation.pattern, &prefix, expectation.at)?;
        }
        self.plan.expectations.push(expectation);
        Ok(())
    }

    /// Bodies by name; `*` stands for anything, as in `"log_*"`.
    fn matching(&self, pattern: &str, prefix: &str, at: Span) -> Read<Vec<u32>> {
        if !pattern.contains('*') {
            return Ok(vec![self.body(pattern, prefix, at)?]);
        }
        let found: Vec<u32> = self
            .plan
            .bodies
            .iter()
            .enumerate()
            .filter(|(_, b)| b.kind != BodyKind::Fixed && glob(pattern, &b.name))
            .map(|(i, _)| i as u32)
            .collect();
        if found.is_empty() {
            return Err(Fault::new(at, format!("no body that can move is called `{}`", shorten(pattern))));
        }
        Ok(found)
    }
}

/// A motion of the author's origin as a motion of the centre of mass.
fn at_center(motion: Motion, body: &BodyPlan) -> Motion {
    match motion {
        Motion::Keys { mut keys, repeat } => {
            for k in &mut keys {
                k.position -= k.rotation * body.origin;
            }
            Motion::Keys { keys, repeat }
        }
        Motion::Position(origin) => {
            let shift = -(body.rotation * body.origin);
            let mut axes = origin.into_iter().zip(shift.to_array());
            Motion::Position(std::array::from_fn(|_| match axes.next() {
                Some((e, 0.0)) => e,
                Some((e, s)) => Expr::Binary('+', Box::new(e), Box::new(Expr::Number(s))),
                None => Expr::Number(0.0),
            }))
        }
        velocity => velocity,
    }
}

/// Does the name fit the pattern, in which `*` stands for any letters?
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(previous) = last.replace(part) {
            match rest.find(previous) {
                Some(i) => rest = &rest[i + previous.len()..],
                None => return false,
            }
        }
    }
    last.is_none_or(|l| rest.ends_with(l))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        assert!(glob("log_*", "log_12"));
        assert!(glob("*", ""));
        assert!(glob("a*/b*c", "axx/bxxc"));
        assert!(!glob("a*/b*c", "axx/bxxd"));
        assert!(!glob("log_*", "box"));
        assert!(glob("*_12", "log_12"));
    }

    #[test]
    fn names_are_found_from_the_inside_out() {
        let table: HashMap<String, u32> =
            [("a/b/x", 1), ("a/y", 2), ("z", 3)].map(|(n, i)| (n.into(), i)).into();
        assert_eq!(find(&table, "x", "a/b/"), Some(1));
        assert_eq!(find(&table, "y", "a/b/"), Some(2));
        assert_eq!(find(&table, "z", "a/b/"), Some(3));
        assert_eq!(find(&table, "x", "a/"), None);
        assert_eq!(find(&table, "b/x", "a/"), Some(1));
    }
}
