//! Reading what happens by itself: events, motions of kinematic bodies, motors over time.

use super::error::{Fault, Read, Span, suggestion};
use super::expr::{Expr, Variables};
use super::plan::{Key, Motion};
use super::read::{self, Fields};
use super::scope::Scope;
use super::text::{Node, Value, shorten};
use glam::{DQuat, DVec3};

/// A script before names are looked up.
#[derive(Clone, Debug)]
pub enum ScriptSpec {
    /// Once, at a time.
    Event {
        /// When.
        time: f64,
        /// What.
        action: ActionSpec,
        /// Where it is written.
        at: Span,
    },
    /// A kinematic body follows a motion.
    Move {
        /// Which.
        body: String,
        /// How.
        motion: Motion,
        /// Where it is written.
        at: Span,
    },
    /// A motor follows an expression.
    Drive {
        /// Which joint.
        joint: String,
        /// First or second motor.
        motor: usize,
        /// Target.
        target: Expr,
        /// Where it is written.
        at: Span,
    },
}

/// An action before names are looked up.
#[derive(Clone, Debug)]
pub enum ActionSpec {
    /// Removes a joint.
    Release(String),
    /// Removes a body.
    Remove(String),
    /// Makes a body dynamic.
    Free(String),
    /// Makes a body fixed.
    Freeze(String),
    /// Gives velocities.
    Velocity(String, DVec3, DVec3),
    /// Gives an impulse.
    Impulse(String, DVec3),
    /// Sets a motor.
    Motor(String, usize, f64),
}

/// Reads `After(..)`, `Move(..)` or `Drive(..)`.
///
/// # Errors
/// Unknown fields and actions, keyframes out of order.
pub(super) fn read_script(name: &str, node: &Node, variables: &Variables, scope: &Scope) -> Read<ScriptSpec> {
    let mut f = Fields::of(node, name, variables)?;
    let at = node.at;
    let spec = match name {
        "After" => {
            let time = read::not_negative(f.need("seconds")?, "seconds", variables)?;
            ScriptSpec::Event { time, action: read_action(f.need("action")?, variables, scope)?, at }
        }
        "Move" => {
            let body = read::text(f.need("body")?, variables)?;
            ScriptSpec::Move { body, motion: read_motion(&mut f, scope)?, at }
        }
        _ => {
            let joint = read::text(f.need("joint")?, variables)?;
            let motor = motor_number(&mut f)?;
            ScriptSpec::Drive { joint, motor, target: read::motion(f.need("target")?, variables)?, at }
        }
    };
    f.finish()?;
    Ok(spec)
}

fn motor_number(f: &mut Fields<'_, '_>) -> Read<usize> {
    Ok(match f.count("motor", 2)? {
        Some(2) => 1,
        _ => 0,
    })
}

fn read_action(node: &Node, variables: &Variables, scope: &Scope) -> Read<ActionSpec> {
    const NAMES: [&str; 7] = ["Release", "Remove", "Free", "Freeze", "Velocity", "Impulse", "Motor"];
    let (Value::Struct(Some(name), _) | Value::Tuple(Some(name), _)) = &node.value else {
        let message = format!("expected an action such as `Release(\"joint\")`, found {}", node.kind());
        return Err(Fault::new(node.at, message));
    };
    if !NAMES.contains(&name.as_str()) {
        let hint = suggestion(name, NAMES);
        return Err(Fault::new(node.at, format!("there is no action `{}`{hint}", shorten(name))));
    }
    if let Value::Tuple(_, items) = &node.value {
        let [target] = items.as_slice() else {
            return Err(Fault::new(node.at, format!("expected `{name}(\"name\")`")));
        };
        let target = read::text(target, variables)?;
        return match name.as_str() {
            "Release" => Ok(ActionSpec::Release(target)),
            "Remove" => Ok(ActionSpec::Remove(target)),
            "Free" => Ok(ActionSpec::Free(target)),
            "Freeze" => Ok(ActionSpec::Freeze(target)),
            _ => Err(Fault::new(node.at, format!("`{name}` needs named fields"))),
        };
    }
    let mut f = Fields::of(node, name, variables)?;
    let action = match name.as_str() {
        "Velocity" => {
            let body = read::text(f.need("body")?, variables)?;
            let linear = scope.rotation * f.vector("linear")?.unwrap_or(DVec3::ZERO);
            ActionSpec::Velocity(body, linear, scope.rotation * f.vector("angular")?.unwrap_or(DVec3::ZERO))
        }
        "Impulse" => {
            let body = read::text(f.need("body")?, variables)?;
            ActionSpec::Impulse(body, scope.rotation * f.need_vector("impulse")?)
        }
        "Motor" => {
            let joint = read::text(f.need("joint")?, variables)?;
            let motor = motor_number(&mut f)?;
            ActionSpec::Motor(joint, motor, read::number(f.need("target")?, variables)?)
        }
        _ => return Err(Fault::new(node.at, format!("expected `{name}(\"name\")`"))),
    };
    f.finish()?;
    Ok(action)
}

fn read_motion(f: &mut Fields<'_, '_>, scope: &Scope) -> Read<Motion> {
    let repeat = f.flag("repeat")?.unwrap_or(false);
    let (keys, position) = (f.get("keys"), f.get("position"));
    let (linear, angular) = (f.get("velocity"), f.get("spin"));
    match (keys, position, linear.or(angular)) {
        (Some(node), None, None) => Ok(Motion::Keys { keys: read_keys(node, f.variables, scope)?, repeat }),
        (None, Some(node), None) => {
            let local = three(Some(node), f.variables)?;
            Ok(Motion::Position(in_world(local, scope.rotation, scope.position)))
        }
        (None, None, Some(_)) => Ok(Motion::Velocity {
            linear: in_world(three(linear, f.variables)?, scope.rotation, DVec3::ZERO),
            angular: in_world(three(angular, f.variables)?, scope.rotation, DVec3::ZERO),
        }),
        _ => Err(Fault::new(f.at, "a motion needs one of `keys`, `position`, or `velocity` and `spin`")),
    }
}

/// Three expressions of time.
fn three(node: Option<&Node>, variables: &Variables) -> Read<[Expr; 3]> {
    let zero = || Expr::Number(0.0);
    let Some(node) = node else { return Ok([zero(), zero(), zero()]) };
    let parts = read::items(node, "a vector `(x, y, z)`")?;
    let [x, y, z] = parts else {
        return Err(Fault::new(
            node.at,
            format!("expected a vector `(x, y, z)`, found {} values", parts.len()),
        ));
    };
    Ok([read::motion(x, variables)?, read::motion(y, variables)?, read::motion(z, variables)?])
}

/// The same vector of expressions seen from the world.
fn in_world(local: [Expr; 3], rotation: DQuat, offset: DVec3) -> [Expr; 3] {
    if rotation == DQuat::IDENTITY && offset == DVec3::ZERO {
        return local;
    }
    let columns = glam::DMat3::from_quat(rotation);
    std::array::from_fn(|row| {
        let mut sum = Expr::Number(offset[row]);
        for (column, part) in local.iter().enumerate() {
            let factor = Box::new(Expr::Number(columns.col(column)[row]));
            let product = Expr::Binary('*', factor, Box::new(part.clone()));
            sum = Expr::Binary('+', Box::new(sum), Box::new(product));
        }
        sum
    })
}

fn read_keys(node: &Node, variables: &Variables, scope: &Scope) -> Read<Vec<Key>> {
    let mut keys: Vec<Key> = Vec::new();
    for item in read::items(node, "a list of keys `(time, (x, y, z))`")? {
        let parts = read::items(item, "a key `(time, (x, y, z), rotation)`")?;
        let (time, position, rotation) = match parts {
            [time, position] => (time, position, None),
            [time, position, rotation] => (time, position, Some(rotation)),
            _ => return Err(Fault::new(item.at, "expected a key `(time, (x, y, z))` or with a rotation")),
        };
        let rotation = rotation.map(|r| read::rotation(r, variables)).transpose()?.unwrap_or(DQuat::IDENTITY);
        let key = Key {
            time: read::not_negative(time, "time", variables)?,
            position: scope.point(read::vector(position, variables)?),
            rotation: (scope.rotation * rotation).normalize(),
        };
        if keys.last().is_some_and(|last| last.time >= key.time) {
            return Err(Fault::new(
                item.at,
                format!("the key at {} s does not come after the one before it", key.time),
            ));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(Fault::new(node.at, "a motion needs at least one key"));
    }
    Ok(keys)
}
