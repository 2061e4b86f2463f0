//! From a joint of the plan to the component that solves it.

use super::plan::{Anchor, JointKind, JointPlan, Limit, Motor as MotorPlan};
use crate::components::{Breakable, JointForce, Name};
use crate::constraint::frame::rotation_with_xy;
use crate::constraint::*;
use hecs::{DynamicBundle, Entity, World};

/// Most points of a rope over sheaves.
pub(super) const MOST_ROPE_POINTS: usize = 6;

/// Spawns the joint between entities.
pub(super) fn spawn_joint(
    world: &mut World,
    plan: &JointPlan,
    entity: impl Fn(Option<u32>) -> Entity,
) -> Entity {
    let (a, b) = (entity(plan.a.body), entity(plan.b.body));
    let frames = Frames { a: frame(&plan.a), b: frame(&plan.b) };
    let first = axis(plan, 0);
    let second = axis(plan, 1);
    let joint = match &plan.kind {
        JointKind::Fixed => world.spawn((Fixed::new(a, b, frames),)),
        JointKind::Revolute => world.spawn((Revolute { axis: first, ..Revolute::new(a, b, frames) },)),
        JointKind::Prismatic => world.spawn((Prismatic { axis: first, ..Prismatic::new(a, b, frames) },)),
        JointKind::Cylindrical => {
            world.spawn((Cylindrical { slide: first, turn: second, ..Cylindrical::new(a, b, frames) },))
        }
        JointKind::Ball => {
            let swing = plan.limits[0].map(limits);
            world.spawn((Ball { swing, twist: second, ..Ball::new(a, b, frames) },))
        }
        JointKind::Universal => world.spawn((Universal { first, second, ..Universal::new(a, b, frames) },)),
        JointKind::Planar => world.spawn((Planar { turn: first, ..Planar::new(a, b, frames) },)),
        JointKind::PointOnLine => {
            world.spawn((PointOnLine { slide: first, ..PointOnLine::new(a, b, frames) },))
        }
        JointKind::Distance(length) => {
            world.spawn((Distance::between(a, plan.a.point, b, plan.b.point, *length),))
        }
        JointKind::Rope(length) => world.spawn((Rope::between(a, plan.a.point, b, plan.b.point, *length),)),
        JointKind::Spring { length, stiffness, damping } => {
            let spring = SpringDamper::between(a, plan.a.point, b, plan.b.point, *length);
            world.spawn((spring.with(*stiffness, *damping),))
        }
        JointKind::Cable(c) => {
            let rod = Rod {
                youngs_modulus: c.young,
                shear_modulus: c.shear,
                radius: c.radius,
                length: c.length,
                damping_time: c.damping_time,
            };
            world.spawn((Cable::new(a, b, frames, &rod),))
        }
        JointKind::Gear { ratio, frame: carrier } => {
            let (first, second) = teeth(*ratio);
            let bodies = [entity(*carrier), a, b];
            let wheels = [
                GearWheel { frame: Frame::IDENTITY, carrier: Frame::IDENTITY, teeth: 1 },
                wheel(world, bodies[0], a, frames.a, first),
                wheel(world, bodies[0], b, frames.b, -second),
            ];
            world.spawn((GearTrain { bodies, wheels },))
        }
        JointKind::Rack { ratio, frame: carrier } => {
            let bodies = [entity(*carrier), a, b];
            let (carrier_pose, rack_pose) = (pose(world, bodies[0]), pose(world, b));
            let at = rack_pose.position + rack_pose.rotation * frames.b.anchor;
            let rail = Frame::from_world(&carrier_pose, at, rack_pose.rotation * frames.b.rotation);
            let pinion = wheel(world, bodies[0], a, frames.a, 1);
            world.spawn((RackPinion { bodies, pinion, rail, rack: frames.b.anchor, radius: *ratio },))
        }
        JointKind::Wheel { stiffness, damping, steer, rest } => {
            let frames = Frames { a: wheel_frame(&plan.a), b: wheel_frame(&plan.b) };
            world.spawn((Wheel {
                suspension_rest: *rest,
                suspension_limits: plan.limits[0].map(limits),
                steering: *steer,
                drive: motor(plan.motors[0]),
                brake: plan.friction[0],
                ..Wheel::new(a, b, frames, *stiffness, *damping)
            },))
        }
        JointKind::Pulley { .. } => spawn_rope(world, plan, &entity),
    };
    add(world, joint, (JointForce::default(),));
    if let Some([force, torque]) = plan.breaks {
        add(world, joint, (Breakable { force, torque },));
    }
    if !plan.name.is_empty() {
        add(world, joint, (Name(plan.name.clone()),));
    }
    joint
}

fn add(world: &mut World, entity: Entity, components: impl DynamicBundle) {
    world.insert(entity, components).expect("the entity has just been spawned");
}

fn frame(anchor: &Anchor) -> Frame {
    Frame { anchor: anchor.point, rotation: rotation_with_xy(anchor.axis, anchor.side) }
}

/// Scenes give the suspension's direction as the side; the component wants it along z.
fn wheel_frame(anchor: &Anchor) -> Frame {
    Frame { anchor: anchor.point, rotation: rotation_with_xy(anchor.axis, anchor.side.cross(anchor.axis)) }
}

fn pose(world: &World, body: Entity) -> Pose {
    use crate::components::{Position, Rotation};
    match (world.get::<&Position>(body), world.get::<&Rotation>(body)) {
        (Ok(p), Ok(r)) => Pose { position: p.0, rotation: r.0 },
        _ => Pose::WORLD,
    }
}

/// A wheel on a carrier, with the pose at hand as angle zero.
fn wheel(world: &World, carrier: Entity, body: Entity, frame: Frame, teeth: i32) -> GearWheel {
    let (on, wheel) = (pose(world, carrier), pose(world, body));
    let at = wheel.position + wheel.rotation * frame.anchor;
    GearWheel {
        frame,
        carrier: Frame::from_world(&on, at, (wheel.rotation * frame.rotation).normalize()),
        teeth,
    }
}

/// Whole numbers in the ratio asked for: the best fraction with a denominator up to 1,000.
fn teeth(ratio: f64) -> (i32, i32) {
    let denominator = (1..=1000).find(|d| {
        let n = ratio * f64::from(*d);
        (n - n.round()).abs() < 1e-9 * n.abs().max(1.0)
    });
    let d = denominator.unwrap_or(1000);
    ((ratio * f64::from(d)).round().clamp(-1e6, 1e6) as i32, d)
}

fn limits(limit: Limit) -> Limits {
    match limit.soft {
        Some([stiffness, damping]) => Limits::soft(limit.lower, limit.upper, stiffness, damping),
        None => Limits::hard(limit.lower, limit.upper),
    }
}

fn motor(plan: Option<MotorPlan>) -> Motor {
    match plan {
        None => Motor::Off,
        Some(MotorPlan::Velocity { target, max }) => Motor::Velocity { target, max_force: max },
        Some(MotorPlan::Position { target, stiffness, damping, max }) => {
            Motor::Position { target, stiffness, damping, max_force: max }
        }
    }
}

fn axis(plan: &JointPlan, i: usize) -> Axis {
    Axis { motor: motor(plan.motors[i]), limits: plan.limits[i].map(limits), friction: plan.friction[i] }
}

/// Runs a piece of code with the number of rope points as a constant.
macro_rules! with_points {
    ($count:expr, $n:ident => $body:expr, $else:expr) => {
        match $count {
            2 => {
                const $n: usize = 2;
                $body
            }
            3 => {
                const $n: usize = 3;
                $body
            }
            4 => {
                const $n: usize = 4;
                $body
            }
            5 => {
                const $n: usize = 5;
                $body
            }
            6 => {
                const $n: usize = 6;
                $body
            }
            7 => {
                const $n: usize = 7;
                $body
            }
            8 => {
                const $n: usize = 8;
                $body
            }
            _ => $else,
        }
    };
}

fn spawn_rope(world: &mut World, plan: &JointPlan, entity: &impl Fn(Option<u32>) -> Entity) -> Entity {
    let JointKind::Pulley { points, length, speed, max_force, friction } = &plan.kind else {
        return world.spawn(());
    };
    with_points!(points.len(), N => {
        let at: [RopePoint; N] = std::array::from_fn(|i| {
            let between = i > 0 && i + 1 < N;
            let mu = if between { *friction } else { 0.0 };
            RopePoint::rubbing(entity(points[i].0), points[i].1, mu)
        });
        let winch = Winch::Rate { speed: *speed, max_force: *max_force };
        world.spawn((PulleyRope::new(at, *length).with_winch(winch),))
    }, world.spawn(()))
}

/// Gives a motor of a joint another target.
pub(super) fn set_motor(world: &World, joint: Entity, kind: &JointKind, number: usize, target: f64) {
    macro_rules! on {
        ($component:ty, $field:ident) => {
            if let Ok(mut j) = world.get::<&mut $component>(joint) {
                retarget(&mut j.$field.motor, target);
            }
        };
    }
    match kind {
        JointKind::Revolute => on!(Revolute, axis),
        JointKind::Prismatic => on!(Prismatic, axis),
        JointKind::Planar => on!(Planar, turn),
        JointKind::PointOnLine => on!(PointOnLine, slide),
        JointKind::Ball => on!(Ball, twist),
        JointKind::Wheel { .. } => {
            if let Ok(mut w) = world.get::<&mut Wheel>(joint) {
                if number == 0 { retarget(&mut w.drive, target) } else { w.steering = target }
            }
        }
        JointKind::Cylindrical => {
            if let Ok(mut j) = world.get::<&mut Cylindrical>(joint) {
                retarget(if number == 0 { &mut j.slide.motor } else { &mut j.turn.motor }, target);
            }
        }
        JointKind::Universal => {
            if let Ok(mut j) = world.get::<&mut Universal>(joint) {
                retarget(if number == 0 { &mut j.first.motor } else { &mut j.second.motor }, target);
            }
        }
        JointKind::Pulley { points, .. } => with_points!(points.len(), N => {
            if let Ok(mut rope) = world.get::<&mut PulleyRope<N>>(joint)
                && let Winch::Rate { speed, .. } = &mut rope.winch
            {
                *speed = target;
            }
        }, ()),
        _ => {}
    }
}

fn retarget(motor: &mut Motor, to: f64) {
    match motor {
        Motor::Velocity { target, .. } | Motor::Position { target, .. } | Motor::Servo { target, .. } => {
            *target = to
        }
        Motor::Off => {}
    }
}
