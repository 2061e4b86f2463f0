//! Ragdolls in a pit: the crowd of jointed bodies.

#![allow(dead_code)] // each program uses its own part

use glam::{DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::constraint::*;
use turnbuckle::{Physics, Solid};

/// What a fall has come to.
#[derive(Default)]
pub struct Fall {
    /// Time of a step: the median (ms).
    pub median_ms: f64,
    /// The longest (ms).
    pub worst_ms: f64,
    /// The most that a joint opened by (m).
    pub opening: f64,
    /// Most factorizations of a step.
    pub factorizations: u32,
    /// Steps that did not reach their tolerance.
    pub unconverged: u32,
    /// Steps in which an island was held.
    pub held: u32,
}

/// Half extents and place of the boxes, in the pose in which the ragdoll stands.
const PARTS: [(DVec3, DVec3); 9] = [
    (DVec3::new(0.09, 0.16, 0.10), DVec3::new(0.0, 0.0, 0.95)), // pelvis
    (DVec3::new(0.10, 0.18, 0.22), DVec3::new(0.0, 0.0, 1.29)), // chest
    (DVec3::new(0.09, 0.08, 0.12), DVec3::new(0.0, 0.0, 1.65)), // head
    (DVec3::new(0.05, 0.28, 0.05), DVec3::new(0.0, -0.48, 1.45)), // arms
    (DVec3::new(0.05, 0.28, 0.05), DVec3::new(0.0, 0.48, 1.45)),
    (DVec3::new(0.07, 0.07, 0.21), DVec3::new(0.0, -0.09, 0.63)), // thighs
    (DVec3::new(0.07, 0.07, 0.21), DVec3::new(0.0, 0.09, 0.63)),
    (DVec3::new(0.05, 0.05, 0.20), DVec3::new(0.0, -0.09, 0.21)), // shins
    (DVec3::new(0.05, 0.05, 0.20), DVec3::new(0.0, 0.09, 0.21)),
];

/// Pairs of boxes, the point between them and whether it is a hinge (knees) or a ball.
const JOINTS: [(usize, usize, DVec3, bool); 8] = [
    (0, 1, DVec3::new(0.0, 0.0, 1.06), false),
    (1, 2, DVec3::new(0.0, 0.0, 1.52), false),
    (1, 3, DVec3::new(0.0, -0.19, 1.45), false),
    (1, 4, DVec3::new(0.0, 0.19, 1.45), false),
    (0, 5, DVec3::new(0.0, -0.09, 0.845), false),
    (0, 6, DVec3::new(0.0, 0.09, 0.845), false),
    (5, 7, DVec3::new(0.0, -0.09, 0.415), true),
    (6, 8, DVec3::new(0.0, 0.09, 0.415), true),
];

/// A ragdoll that is turned about its pelvis and put there.
pub fn ragdoll(world: &mut World, at: DVec3, turn: DQuat) -> Vec<Entity> {
    let place = |point: DVec3| at + turn * (point - PARTS[0].1);
    let parts: Vec<Entity> = PARTS
        .iter()
        .map(|(half, point)| {
            world.spawn(Solid::cuboid(*half, 1000.0).at(place(*point)).turned(turn).surface(0.5, 0.0))
        })
        .collect();
    for (a, b, point, hinge) in JOINTS {
        let anchor = |part: usize| point - PARTS[part].1;
        let frame = |part: usize, x: DVec3| Frame::along(anchor(part), x);
        if hinge {
            let frames = Frames { a: frame(a, DVec3::Y), b: frame(b, DVec3::Y) };
            let mut knee = Revolute::new(parts[a], parts[b], frames);
            knee.axis.limits = Some(Limits::hard(0.0, 2.2));
            world.spawn((knee,));
        } else {
            let x = (PARTS[b].1 - PARTS[a].1).normalize();
            let frames = Frames { a: frame(a, x), b: frame(b, x) };
            let mut ball = Ball::new(parts[a], parts[b], frames);
            ball.swing = Some(Limits::hard(0.0, 1.2));
            ball.twist.limits = Some(Limits::hard(-0.6, 0.6));
            world.spawn((ball,));
        }
    }
    parts
}

/// A pit of 3 m × 3 m with walls of 4 m, and ragdolls above it, each turned its own way.
pub fn pit(world: &mut World, count: usize) {
    let wall = |world: &mut World, half: DVec3, at: DVec3| {
        let shape =
            turnbuckle::geometry::ShapeHandle::new(turnbuckle::geometry::Shape::Box { half_extents: half })
                .expect("a box");
        world.spawn(Solid::fixed(shape).at(at).surface(0.5, 0.0));
    };
    wall(world, DVec3::new(3.0, 3.0, 0.5), DVec3::new(0.0, 0.0, -0.5));
    for (x, y) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)] {
        let across = DVec3::new(x, y, 0.0);
        wall(
            world,
            DVec3::new(0.25 + 1.5 * f64::abs(y), 0.25 + 1.5 * f64::abs(x), 2.0),
            across * 1.75 + DVec3::Z * 2.0,
        );
    }
    for i in 0..count {
        let k = i as f64;
        let at = DVec3::new(0.6 * (2.4 * k).sin(), 0.6 * (1.7 * k).cos(), 3.0 + 1.2 * k);
        let turn = DQuat::from_rotation_z(1.1 * k) * DQuat::from_rotation_x(0.7 + 0.9 * k);
        ragdoll(world, at, turn);
    }
}

/// Lets so many ragdolls fall for so many seconds.
pub fn fall(count: usize, seconds: f64) -> Fall {
    let (mut world, mut physics) = (World::new(), Physics::new());
    pit(&mut world, count);
    let (mut fall, mut times) = (Fall::default(), Vec::new());
    for _ in 0..(60.0 * seconds) as u32 {
        let report = physics.step(&mut world, 1.0 / 60.0);
        times.push(report.step_ms);
        fall.opening = fall.opening.max(report.joint_gap_max);
        fall.factorizations = fall.factorizations.max(report.factorizations);
        fall.unconverged += u32::from(!report.converged);
        fall.held += report.held;
    }
    times.sort_by(f64::total_cmp);
    fall.median_ms = times[times.len() / 2];
    fall.worst_ms = times[times.len() - 1];
    fall
}
