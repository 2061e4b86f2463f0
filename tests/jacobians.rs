//! Every constraint against differences of its violation, 1,000 random poses each.

use glam::{DQuat, DVec3};
use hecs::Entity;
use turnbuckle::constraint::*;
use turnbuckle::testing::{RandomPoses, check_jacobian, check_jacobian_with};

const E: Entity = Entity::DANGLING;

/// Frames in general position: nothing aligned, nothing zero.
fn frames() -> Frames {
    let mut random = RandomPoses::new(7);
    Frames {
        a: Frame { anchor: random.vector(), rotation: random.rotation() },
        b: Frame { anchor: random.vector(), rotation: random.rotation() },
    }
}

fn axis() -> Axis {
    Axis::FREE.limited(Limits::hard(-0.3, 0.4)).driven(Motor::Position {
        target: 0.2,
        stiffness: 10.0,
        damping: 1.0,
        max_force: 5.0,
    })
}

fn rotation_motor() -> RotationMotor {
    RotationMotor::Position {
        target: DQuat::from_rotation_y(0.4),
        stiffness: 1.0,
        damping: 0.1,
        max_torque: 9.0,
    }
}

fn passes<const N: usize>(name: &str, constraint: &impl Constraint<N>) {
    match check_jacobian(constraint) {
        Ok(report) => assert!(report.rows >= 1000, "{name}: only {} rows were compared", report.rows),
        Err(error) => panic!("{name}: {error}"),
    }
}

#[test]
fn fixed() {
    passes("fixed", &Fixed::new(E, E, frames()));
}

#[test]
fn revolute() {
    passes("revolute", &Revolute { axis: axis(), ..Revolute::new(E, E, frames()) });
}

#[test]
fn prismatic() {
    passes("prismatic", &Prismatic { axis: axis(), ..Prismatic::new(E, E, frames()) });
}

#[test]
fn cylindrical() {
    passes("cylindrical", &Cylindrical { slide: axis(), turn: axis(), ..Cylindrical::new(E, E, frames()) });
}

#[test]
fn ball() {
    let swing = Some(Limits::hard(0.0, 0.5));
    passes("ball", &Ball { swing, twist: axis(), motor: rotation_motor(), ..Ball::new(E, E, frames()) });
}

#[test]
fn universal() {
    passes("universal", &Universal { first: axis(), second: axis(), ..Universal::new(E, E, frames()) });
}

#[test]
fn planar() {
    let joint = Planar { slide_y: axis(), slide_z: axis(), turn: axis(), ..Planar::new(E, E, frames()) };
    passes("planar", &joint);
}

#[test]
fn point_on_line() {
    passes(
        "point on line",
        &PointOnLine { slide: axis(), motor: rotation_motor(), ..PointOnLine::new(E, E, frames()) },
    );
}

#[test]
fn distance_rope_and_spring() {
    let (p, q) = (frames().a.anchor, frames().b.anchor);
    passes("distance", &Distance::between(E, p, E, q, 1.0));
    passes("rope", &Rope::between(E, p, E, q, 1.0));
    passes("spring", &SpringDamper::between(E, p, E, q, 1.0, 100.0).damped(1.0));
}

#[test]
fn cable() {
    let rod = Rod { youngs_modulus: 1e9, shear_modulus: 4e8, radius: 0.01, length: 0.2, damping_time: 0.01 };
    passes("cable", &Cable::new(E, E, frames(), &rod));
    passes("elastic cable", &Cable::new(E, E, frames(), &rod).elastic(&rod));
}

#[test]
fn gears() {
    let mut random = RandomPoses::new(3);
    let mut wheel = |teeth| GearWheel {
        frame: Frame { anchor: random.vector(), rotation: random.rotation() },
        carrier: Frame { anchor: random.vector(), rotation: random.rotation() },
        teeth,
    };
    let gear = Gear { a: E, b: E, wheels: [wheel(12), wheel(31)] };
    passes("gear", &gear);
    let differential: Differential =
        GearTrain { bodies: [E; 4], wheels: [wheel(0), wheel(-2), wheel(1), wheel(1)] };
    passes("differential", &differential);
    let rack = RackPinion {
        bodies: [E; 3],
        pinion: wheel(1),
        rail: frames().a,
        rack: DVec3::new(0.1, 0.2, 0.3),
        radius: 0.7,
    };
    passes("rack", &rack);
}

#[test]
fn wheel() {
    let mut wheel = Wheel::new(E, E, frames(), 1e4, 1e3);
    wheel.steering = 0.3;
    wheel.drive = Motor::Velocity { target: 3.0, max_force: 100.0 };
    wheel.suspension_limits = Some(Limits::hard(-0.1, 0.1));
    passes("wheel", &wheel);
}

#[test]
fn pulley_ropes() {
    let mut random = RandomPoses::new(5);
    let mut point = || RopePoint::rubbing(E, random.vector(), 0.2);
    passes("pulley", &PulleyRope::new([point(), point(), point(), point()], 3.0));
    let drum = Winch::Drum { axis: DVec3::new(0.3, -0.5, 0.8), radius: 0.2, wound: 40.0 };
    passes("winch", &PulleyRope::new([point(), point(), point()], 3.0).with_winch(drum));
}

/// A check that cannot fail proves nothing: a wrong sign must be found, and said where.
#[test]
fn a_wrong_sign_is_found() {
    struct Wrong;
    impl Constraint for Wrong {
        fn bodies(&self) -> [Entity; 2] {
            [E, E]
        }
        fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
            let n = (b.position - a.position).normalize_or(DVec3::Z);
            out.push(Row {
                jacobian: [Twist::linear(n), Twist::linear(n)],
                violation: b.position.distance(a.position),
                ..Row::default()
            });
        }
    }
    let error = check_jacobian(&Wrong).unwrap_err();
    assert!(error.to_string().contains("body 0"), "{error}");
}

/// Near the closed pose, where joints live, small errors of the derivative would show as slow drift.
#[test]
fn near_closed_poses() {
    let joint = Revolute { axis: axis(), ..Revolute::new(E, E, frames()) };
    let result = check_jacobian_with(&joint, 1000, 11, |random| {
        let a = random.body();
        let mut b = a;
        let f = frames();
        let turn = DQuat::from_scaled_axis(random.vector() * 0.05);
        b.rotation = turn * a.rotation * f.a.rotation * f.b.rotation.inverse();
        b.position = a.point(f.a.anchor) - b.rotation * f.b.anchor + random.vector() * 0.01;
        [a, b]
    });
    assert!(result.is_ok(), "{result:?}");
}
