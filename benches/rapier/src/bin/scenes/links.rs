//! Joints of ours as rapier's generic joints.
//!
//! A cable joint locks the three slides and has a spring on each turn (`MotorModel::ForceBased`, the same stiffness and damping).
//! Motors are force-based, so that newtons mean the same; a velocity motor has ours' compliance of 1e-9. Rapier has
//! no rod of fixed length between two points (its rope only pulls): such a rod is a spring of 1e9 N/m.

use crate::convert::pose;
use glam::DVec3;
use hecs::Entity;
use rapier3d_f64::prelude as r;
use rapier3d_f64::prelude::{JointAxesMask as Mask, JointAxis};
use std::collections::BTreeMap;
use turnbuckle::constraint::*;
use turnbuckle::scene::Scene;
use turnbuckle::scene::plan::JointKind;

/// What of a joint can come open.
#[derive(Clone, Copy)]
pub enum Opening {
    /// The anchors lie on each other.
    Point,
    /// The second anchor lies on the x axis of the first frame.
    Rail,
    /// The anchors are this far apart (m).
    Length(f64),
    /// The anchors are at most this far apart (m).
    AtMost(f64),
}

/// A joint in numbers.
pub struct Link {
    pub bodies: [usize; 2],
    pub frames: Frames,
    pub opening: Opening,
    pub joint: r::GenericJoint,
    /// Its number in the scene's plan.
    pub number: usize,
}

/// Two turns, the third component of the relative quaternion locked.
pub const TWO_TURNS: Mask = Mask::LIN_AXES.union(Mask::ANG_Z);
/// N/m of a rod between two points.
const ROD: f64 = 1e9;
/// 1/kg of a velocity motor.
const MOTOR_COMPLIANCE: f64 = 1e-9;

impl Link {
    /// Do the bodies it ties collide with each other?
    pub fn collides(&self) -> bool {
        self.joint.contacts_enabled
    }
}

/// The axis of rapier's joint that a motor of the plan drives.
pub fn motor_axis(kind: &JointKind, motor: usize) -> Option<JointAxis> {
    match (kind, motor) {
        (JointKind::Revolute, 0) | (JointKind::Cylindrical, 1) => Some(JointAxis::AngX),
        (JointKind::Prismatic | JointKind::PointOnLine | JointKind::Cylindrical, 0) => Some(JointAxis::LinX),
        _ => None,
    }
}

/// The joints of a scene; says which of them rapier cannot have.
pub fn links(scene: &Scene, index: &BTreeMap<Entity, usize>) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    let mut strange: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, &entity) in scene.joints.iter().enumerate() {
        match link(scene, entity)? {
            Some((bodies, frames, opening, joint)) => {
                links.push(Link { bodies: bodies.map(|e| index[&e]), frames, opening, joint, number });
            }
            None => *strange.entry(name(&scene.plan.joints[number].kind)).or_default() += 1,
        }
    }
    if strange.is_empty() {
        return Ok(links);
    }
    let told: Vec<String> = strange.iter().map(|(name, count)| format!("{count} {name}")).collect();
    Err(format!("rapier has no counterpart to {} of its {} joints", told.join(" and "), scene.joints.len()))
}

fn name(kind: &JointKind) -> &'static str {
    match kind {
        JointKind::Gear { .. } => "gears",
        JointKind::Rack { .. } => "racks",
        JointKind::Wheel { .. } => "sprung wheels",
        JointKind::Pulley { .. } => "ropes over sheaves",
        JointKind::Planar => "planar joints",
        _ => "others",
    }
}

type Parts = ([Entity; 2], Frames, Opening, r::GenericJoint);

fn link(scene: &Scene, entity: Entity) -> Result<Option<Parts>, String> {
    let joint = scene.world.entity(entity).map_err(|e| e.to_string())?;
    let dt = scene.dt();
    let plain = |frames: &Frames, locked| built(frames, locked, false);
    let parts = if let Some(j) = joint.get::<&Ball>() {
        if j.swing.is_some() || !j.twist.is_free() || !matches!(j.motor, RotationMotor::Off) {
            return Err("ball joints with limits, motors or friction are not converted".into());
        }
        ([j.a, j.b], j.frames, Opening::Point, plain(&j.frames, Mask::LOCKED_SPHERICAL_AXES))
    } else if let Some(j) = joint.get::<&Revolute>() {
        let base = plain(&j.frames, Mask::LOCKED_REVOLUTE_AXES);
        ([j.a, j.b], j.frames, Opening::Point, driven(base, JointAxis::AngX, &j.axis, dt)?)
    } else if let Some(j) = joint.get::<&Fixed>() {
        ([j.a, j.b], j.frames, Opening::Point, plain(&j.frames, Mask::LOCKED_FIXED_AXES))
    } else if let Some(j) = joint.get::<&Universal>() {
        if !j.first.is_free() || !j.second.is_free() {
            return Err("universal joints with limits, motors or friction are not converted".into());
        }
        // x of a stays perpendicular to y of b: turns about x and then y, none about z.
        ([j.a, j.b], j.frames, Opening::Point, plain(&j.frames, TWO_TURNS))
    } else if let Some(j) = joint.get::<&Prismatic>() {
        let base = plain(&j.frames, Mask::LOCKED_PRISMATIC_AXES);
        ([j.a, j.b], j.frames, Opening::Rail, driven(base, JointAxis::LinX, &j.axis, dt)?)
    } else if let Some(j) = joint.get::<&Cylindrical>() {
        let base = plain(&j.frames, Mask::LIN_Y | Mask::LIN_Z | Mask::ANG_Y | Mask::ANG_Z);
        let base = driven(base, JointAxis::LinX, &j.slide, dt)?;
        ([j.a, j.b], j.frames, Opening::Rail, driven(base, JointAxis::AngX, &j.turn, dt)?)
    } else if let Some(j) = joint.get::<&PointOnLine>() {
        if !matches!(j.motor, RotationMotor::Off) {
            return Err("beads on a line with motors of rotation are not converted".into());
        }
        let base = plain(&j.frames, Mask::LIN_Y | Mask::LIN_Z);
        ([j.a, j.b], j.frames, Opening::Rail, driven(base, JointAxis::LinX, &j.slide, dt)?)
    } else if let Some(j) = joint.get::<&Cable>() {
        ([j.a, j.b], j.frames, Opening::Point, cable(&j)?)
    } else if let Some(j) = joint.get::<&Distance>() {
        let frames = points(j.anchor_a, j.anchor_b);
        let spring = r::SpringJoint::new(j.length, ROD, 0.0).data;
        ([j.a, j.b], frames, Opening::Length(j.length), anchored(spring, &frames, true))
    } else if let Some(j) = joint.get::<&Rope>() {
        let frames = points(j.anchor_a, j.anchor_b);
        let rope = r::RopeJoint::new(j.length).data;
        ([j.a, j.b], frames, Opening::AtMost(j.length), anchored(rope, &frames, true))
    } else {
        return Ok(None);
    };
    Ok(Some(parts))
}

fn points(a: DVec3, b: DVec3) -> Frames {
    Frames { a: Frame::at(a), b: Frame::at(b) }
}

fn built(frames: &Frames, locked: Mask, contacts: bool) -> r::GenericJoint {
    anchored(r::GenericJoint::new(locked), frames, contacts)
}

fn anchored(mut joint: r::GenericJoint, frames: &Frames, contacts: bool) -> r::GenericJoint {
    let at = |f: &Frame| pose(f.anchor, f.rotation);
    joint.set_local_frame1(at(&frames.a)).set_local_frame2(at(&frames.b)).set_contacts_enabled(contacts);
    joint
}

/// What acts along a free axis.
fn driven(
    mut joint: r::GenericJoint,
    on: JointAxis,
    axis: &Axis,
    dt: f64,
) -> Result<r::GenericJoint, String> {
    if axis.friction > 0.0 {
        return Err("dry friction in a joint is not converted".into());
    }
    match axis.motor {
        Motor::Off => {}
        Motor::Velocity { target, max_force } => {
            let damping = 1.0 / (MOTOR_COMPLIANCE * dt);
            joint.set_motor(on, 0.0, target, 0.0, damping).set_motor_max_force(on, max_force);
        }
        Motor::Position { target, stiffness, damping, max_force } => {
            joint.set_motor(on, target, 0.0, stiffness, damping).set_motor_max_force(on, max_force);
        }
        Motor::Servo { .. } => return Err("servo motors are not converted".into()),
    }
    joint.set_motor_model(on, r::MotorModel::ForceBased);
    match axis.limits {
        None => {}
        Some(Limits { lower, upper, softness: Softness::Rigid }) => {
            joint.set_limits(on, [lower, upper]);
        }
        Some(_) => return Err("soft limits are not converted".into()),
    }
    Ok(joint)
}

fn cable(j: &Cable) -> Result<r::GenericJoint, String> {
    if j.stretch != Softness::Rigid {
        return Err("cables that stretch are not converted".into());
    }
    let mut joint = built(&j.frames, Mask::LIN_AXES, false);
    for (axis, softness) in [(JointAxis::AngX, j.twist), (JointAxis::AngY, j.bend), (JointAxis::AngZ, j.bend)]
    {
        let Softness::Spring { stiffness, damping } = softness else {
            return Err("cables that do not bend like springs are not converted".into());
        };
        joint.set_motor(axis, 0.0, 0.0, stiffness, damping).set_motor_model(axis, r::MotorModel::ForceBased);
    }
    Ok(joint)
}
