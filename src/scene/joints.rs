//! From a joint of the plan to the component that solves it.

use super::plan::{Anchor, JointKind, JointPlan, Limit, Motor as MotorPlan};
use crate::components::{Breakable, JointCollision, JointForce, Name};
use crate::constraint::joints::axis::AXIS_KEYS;
use crate::constraint::joints::frame::{Coordinate, Placed, rotation_with_xy};
use crate::constraint::*;
use glam::DVec3;
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
        JointKind::Spring { length, stiffness, damping, coupled: true } => {
            let spring = Spring::between(a, b, *length, *stiffness).damped(*damping);
            world.spawn((Spring { anchor_a: plan.a.point, anchor_b: plan.b.point, ..spring },))
        }
        JointKind::Spring { length, stiffness, damping, .. } => {
            let spring = SpringDamper::between(a, plan.a.point, b, plan.b.point, *length, *stiffness);
            world.spawn((spring.damped(*damping),))
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
    if let Some(collide) = plan.collide {
        add(world, joint, (JointCollision(collide),));
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

/// Does something with a motor of a joint; `None` if the joint has no such motor.
fn with_motor<R>(
    world: &World,
    joint: Entity,
    kind: &JointKind,
    number: usize,
    act: impl FnOnce(&mut Motor) -> R,
) -> Option<R> {
    macro_rules! on {
        ($component:ty, $($field:ident).+) => {
            world.get::<&mut $component>(joint).ok().map(|mut j| act(&mut j.$($field).+))
        };
    }
    match (kind, number) {
        (JointKind::Revolute, 0) => on!(Revolute, axis.motor),
        (JointKind::Prismatic, 0) => on!(Prismatic, axis.motor),
        (JointKind::Planar, 0) => on!(Planar, turn.motor),
        (JointKind::PointOnLine, 0) => on!(PointOnLine, slide.motor),
        (JointKind::Ball, _) => on!(Ball, twist.motor),
        (JointKind::Wheel { .. }, 0) => on!(Wheel, drive),
        (JointKind::Cylindrical, 0) => on!(Cylindrical, slide.motor),
        (JointKind::Cylindrical, _) => on!(Cylindrical, turn.motor),
        (JointKind::Universal, 0) => on!(Universal, first.motor),
        (JointKind::Universal, _) => on!(Universal, second.motor),
        _ => None,
    }
}

/// Does something with what is steered or hauled without a motor of its own: the angle of a wheel, the speed of a winch.
fn with_setting<R>(
    world: &World,
    joint: Entity,
    kind: &JointKind,
    number: usize,
    act: impl FnOnce(&mut f64) -> R,
) -> Option<R> {
    match (kind, number) {
        (JointKind::Wheel { .. }, 1) => world.get::<&mut Wheel>(joint).ok().map(|mut w| act(&mut w.steering)),
        (JointKind::Pulley { points, .. }, _) => with_points!(points.len(), N => {
            let mut rope = world.get::<&mut PulleyRope<N>>(joint).ok()?;
            match &mut rope.winch {
                Winch::Rate { speed, .. } => Some(act(speed)),
                _ => None,
            }
        }, None),
        _ => None,
    }
}

/// Gives a motor of a joint another target; false if it has none.
pub(super) fn set_motor(world: &World, joint: Entity, kind: &JointKind, number: usize, target: f64) -> bool {
    with_setting(world, joint, kind, number, |setting| *setting = target).is_some()
        || with_motor(world, joint, kind, number, |motor| retarget(motor, target)).unwrap_or(false)
}

/// The target of a motor of a joint, of its steering or of its winch.
pub(super) fn target(world: &World, joint: Entity, kind: &JointKind, number: usize) -> Option<f64> {
    let motor = || match motor_of(world, joint, kind, number)? {
        Motor::Velocity { target, .. } | Motor::Position { target, .. } | Motor::Servo { target, .. } => {
            Some(target)
        }
        Motor::Off => None,
    };
    with_setting(world, joint, kind, number, |setting| *setting).or_else(motor)
}

/// A motor of a joint.
pub(super) fn motor_of(world: &World, joint: Entity, kind: &JointKind, number: usize) -> Option<Motor> {
    with_motor(world, joint, kind, number, |motor| *motor)
}

/// Gives a joint another motor; false if it has no place for one.
pub(super) fn replace_motor(
    world: &World,
    joint: Entity,
    kind: &JointKind,
    number: usize,
    motor: Motor,
) -> bool {
    with_motor(world, joint, kind, number, |place| *place = motor).is_some()
}

fn retarget(motor: &mut Motor, to: f64) -> bool {
    match motor {
        Motor::Velocity { target, .. } | Motor::Position { target, .. } | Motor::Servo { target, .. } => {
            *target = to;
            true
        }
        Motor::Off => false,
    }
}

/// The free coordinates of a joint: value, rate, and the first of the four keys of the rows along it, with one more key
/// that acts along it.
pub(super) fn coordinates(
    world: &World,
    joint: Entity,
    kind: &JointKind,
    tell: &mut dyn FnMut(f64, f64, [u32; 2]),
) {
    let number = |n: u32| [AXIS_KEYS + 4 * n, AXIS_KEYS + 4 * n];
    macro_rules! placed {
        ($component:ty, |$j:ident, $p:ident| $list:expr) => {{
            let Ok($j) = world.get::<&$component>(joint) else { return };
            let (a, b) = (view(world, $j.a), view(world, $j.b));
            let $p = Placed::new(&$j.frames, &a, &b);
            for (at, keys) in $list {
                tell(at.value, at.speed(&a, &b), keys);
            }
        }};
    }
    macro_rules! apart {
        ($component:ty) => {{
            let Ok(j) = world.get::<&$component>(joint) else { return };
            let (a, b) = (view(world, j.a), view(world, j.b));
            let (from, to) = (a.point(j.anchor_a), b.point(j.anchor_b));
            let along = (to - from).normalize_or_zero();
            tell(from.distance(to), along.dot(b.velocity_at(to) - a.velocity_at(from)), [0, 0]);
        }};
    }
    match kind {
        JointKind::Revolute => placed!(Revolute, |_j, p| [(p.twist(), number(0))]),
        JointKind::Prismatic => placed!(Prismatic, |_j, p| [(p.slide(p.axes_a.x_axis), number(0))]),
        JointKind::PointOnLine => placed!(PointOnLine, |_j, p| [(p.slide(p.axes_a.x_axis), number(0))]),
        JointKind::Cylindrical => {
            placed!(Cylindrical, |_j, p| [(p.slide(p.axes_a.x_axis), number(0)), (p.twist(), number(1))])
        }
        JointKind::Universal => {
            placed!(Universal, |_j, p| Universal::turns(&p).into_iter().zip([number(0), number(1)]))
        }
        JointKind::Planar => placed!(Planar, |_j, p| [
            (p.twist(), number(2)),
            (p.slide(p.axes_a.y_axis), number(0)),
            (p.slide(p.axes_a.z_axis), number(1)),
        ]),
        JointKind::Ball => placed!(Ball, |_j, p| [(p.swing(), [NO_KEY, 3]), (p.twist(), number(0))]),
        // The spring of the suspension has key 4.
        JointKind::Wheel { .. } => placed!(Wheel, |j, p| [
            (p.slide(p.axes_a.z_axis), [AXIS_KEYS, 4]),
            (Coordinate { value: p.twist().value, ..p.spin(j.axle(&p)) }, number(1)),
        ]),
        JointKind::Distance(_) => apart!(Distance),
        JointKind::Rope(_) => apart!(Rope),
        JointKind::Spring { .. } => apart!(SpringDamper),
        JointKind::Pulley { points, .. } => with_points!(points.len(), N => {
            let Ok(rope) = world.get::<&PulleyRope<N>>(joint) else { return };
            let views = rope.points.map(|p| view(world, p.body));
            let views = views.each_ref();
            tell(rope.path_length(views), rope.path_rate(views), [NO_KEY, 0]);
        }, ()),
        JointKind::Fixed | JointKind::Cable(_) | JointKind::Gear { .. } | JointKind::Rack { .. } => {}
    }
}

/// No row has it.
const NO_KEY: u32 = u32::MAX - 8;

/// A body as constraints see it; one that is gone is the world.
fn view(world: &World, body: Entity) -> BodyView {
    use crate::components::{AngularVelocity, LinearVelocity};
    let at = pose(world, body);
    BodyView {
        position: at.position,
        rotation: at.rotation,
        linear_velocity: world.get::<&LinearVelocity>(body).map_or(DVec3::ZERO, |v| v.0),
        angular_velocity: world.get::<&AngularVelocity>(body).map_or(DVec3::ZERO, |w| w.0),
        ..BodyView::WORLD
    }
}
