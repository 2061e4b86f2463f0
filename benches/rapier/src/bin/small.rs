//! Small worlds: what a step costs where there is little to solve, ours and rapier's side by side.
//!
//! `cargo run --release --bin small [-- PART OF A NAME..] [--blocks N] [--ours] [--systems]`. Both engines run on one thread, in turns: a block of
//! steps of ours, a block of rapier's, and so on; medians over the blocks of the mean step of a block (a step of 2 µs is less than what
//! a clock costs to read). `--ours` leaves rapier out, for a profiler; `--systems` prints what each system of ours takes.

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use rapier3d_f64::prelude as r;
use std::time::Instant;
use turnbuckle::components::*;
use turnbuckle::constraint::joints::frame;
use turnbuckle::constraint::{Ball, Revolute};
use turnbuckle::geometry::ShapeHandle;
use turnbuckle::{Physics, Settings};

const H: f64 = 1.0 / 60.0;

/// The same world in both engines.
struct Pair {
    world: World,
    physics: Physics,
    rapier: r::PhysicsWorld,
    sleeps: bool,
}

/// A body in both.
#[derive(Clone, Copy)]
struct Body(Entity, r::RigidBodyHandle);

impl Pair {
    fn new(gravity: f64, sleeps: bool) -> Pair {
        let gravity = DVec3::new(0.0, 0.0, gravity);
        let settings = Settings { gravity, sleep: sleeps, measure: false, ..Settings::default() };
        let mut physics = Physics::with_settings(settings);
        physics.set_threads(1);
        let mut rapier = r::PhysicsWorld { gravity, ..Default::default() };
        rapier.integration_parameters.dt = H;
        Pair { world: World::new(), physics, rapier, sleeps }
    }

    /// A rod of 1 kg and 1 m along x that collides with nothing, or a fixed body.
    fn rod(&mut self, at: DVec3, fixed: bool) -> Body {
        let inertia = DMat3::from_diagonal(DVec3::new(0.01, 0.0842, 0.0842));
        let ours = if fixed { RigidBody::fixed() } else { RigidBody::dynamic(1.0, inertia) };
        let theirs = if fixed { r::RigidBodyBuilder::fixed() } else { r::RigidBodyBuilder::dynamic() };
        let mass = r::MassProperties::with_inertia_matrix(DVec3::ZERO, 1.0, inertia);
        let theirs = theirs.translation(at).additional_mass_properties(mass).can_sleep(self.sleeps);
        Body(self.world.spawn(ours.at(at)), self.rapier.insert_body(theirs))
    }

    /// Ties two rods: a ball in the middle between them, or a hinge along y.
    fn tie(&mut self, a: Body, b: Body, [on_a, on_b]: [DVec3; 2], hinge: bool) {
        let turn = frame::rotation_with_xy(DVec3::Y, DVec3::X);
        let at =
            |anchor: DVec3| frame::Frame { anchor, rotation: if hinge { turn } else { DQuat::IDENTITY } };
        let frames = frame::Frames { a: at(on_a), b: at(on_b) };
        if hinge {
            self.world.spawn((Revolute::new(a.0, b.0, frames),));
        } else {
            self.world.spawn((Ball::new(a.0, b.0, frames),));
        }
        let mask = if hinge {
            r::JointAxesMask::LOCKED_REVOLUTE_AXES
        } else {
            r::JointAxesMask::LOCKED_SPHERICAL_AXES
        };
        let mut joint = r::GenericJoint::new(mask);
        let pose = |f: frame::Frame| r::Pose::from_parts(f.anchor, f.rotation);
        joint.set_local_frame1(pose(frames.a)).set_local_frame2(pose(frames.b)).set_contacts_enabled(false);
        self.rapier.insert_impulse_joint(a.1, b.1, joint);
    }

    /// A box or a ball of 1,000 kg/m³.
    fn solid(&mut self, at: DVec3, ball: Option<f64>, half: DVec3, fixed: bool) -> Body {
        let (shape, collider) = match ball {
            Some(radius) => (ShapeHandle::sphere(radius), r::ColliderBuilder::ball(radius)),
            None => (ShapeHandle::cuboid(half), r::ColliderBuilder::cuboid(half.x, half.y, half.z)),
        };
        let mass = shape.mass_properties(1000.0).expect("volume");
        let ours = if fixed { RigidBody::fixed() } else { RigidBody::dynamic(mass.mass, mass.inertia) };
        let theirs = if fixed { r::RigidBodyBuilder::fixed() } else { r::RigidBodyBuilder::dynamic() };
        let entity = self.world.spawn(ours.at(at));
        let _ = self.world.insert_one(entity, Colliders::one(Collider::new(shape)));
        let body = theirs.translation(at).can_sleep(self.sleeps);
        Body(entity, self.rapier.insert(body, collider.density(1000.0).friction(0.6)).0)
    }

    fn ours(&mut self, steps: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..steps {
            self.physics.step(&mut self.world, H);
        }
        1e6 * start.elapsed().as_secs_f64() / steps as f64
    }

    fn theirs(&mut self, steps: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..steps {
            self.rapier.step();
        }
        1e6 * start.elapsed().as_secs_f64() / steps as f64
    }
}

fn two_jointed() -> Pair {
    let mut pair = Pair::new(0.0, false);
    let (a, b) = (pair.rod(DVec3::ZERO, false), pair.rod(DVec3::X, false));
    pair.tie(a, b, [DVec3::X * 0.5, DVec3::X * -0.5], false);
    // A turn in twenty seconds, so that the joint carries something.
    pair.world.get::<&mut AngularVelocity>(a.0).expect("a body").0 = DVec3::Z * 0.3;
    pair.rapier.bodies[a.1].set_angvel(DVec3::Z * 0.3, true);
    pair
}

fn double_pendula() -> Pair {
    let mut pair = Pair::new(-9.81, false);
    for i in 0..100 {
        let at = DVec3::new(3.0 * f64::from(i % 10), 3.0 * f64::from(i / 10), 0.0);
        let hook = pair.rod(at, true);
        let (a, b) = (pair.rod(at + DVec3::X * 0.5, false), pair.rod(at + DVec3::X * 1.5, false));
        pair.tie(hook, a, [DVec3::ZERO, DVec3::X * -0.5], true);
        pair.tie(a, b, [DVec3::X * 0.5, DVec3::X * -0.5], true);
    }
    pair
}

fn boxes(sleeps: bool) -> Pair {
    let mut pair = Pair::new(-9.81, sleeps);
    let half = DVec3::splat(0.25);
    pair.solid(DVec3::new(25.0, 20.0, -0.5), None, DVec3::new(40.0, 40.0, 0.5), true);
    for i in 0..2000 {
        pair.solid(DVec3::new(f64::from(i % 50), f64::from(i / 50), 0.25), None, half, false);
    }
    pair
}

fn balls() -> Pair {
    let mut pair = Pair::new(0.0, false);
    for i in 0..10_000 {
        let at = DVec3::new(f64::from(i % 100), f64::from(i / 100), 0.0);
        let ball = pair.solid(at, Some(0.2), DVec3::ZERO, false);
        let v = DVec3::new(0.0, 0.0, 0.1 + 1e-5 * f64::from(i));
        pair.world.get::<&mut LinearVelocity>(ball.0).expect("a body").0 = v;
        pair.rapier.bodies[ball.1].set_linvel(v, true);
    }
    pair
}

fn median(mut x: Vec<f64>) -> f64 {
    x.sort_by(f64::total_cmp);
    x.get(x.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Its name, how to make it, steps before the measurement, steps of a block.
type Case = (&'static str, fn() -> Pair, usize, usize);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let blocks = words.iter().position(|w| w == "--blocks").and_then(|i| words.get(i + 1)?.parse().ok());
    let systems = words.iter().any(|w| w == "--systems");
    let ours_only = words.iter().any(|w| w == "--ours");
    let wanted: Vec<&String> =
        words.iter().filter(|w| !w.starts_with("--") && w.parse::<usize>().is_err()).collect();
    let cases: [Case; 5] = [
        ("two jointed bodies", two_jointed, 200, 500),
        ("100 double pendula", double_pendula, 100, 20),
        ("2,000 boxes at rest, awake", || boxes(false), 60, 2),
        ("2,000 boxes at rest, asleep", || boxes(true), 240, 50),
        ("10,000 balls apart", balls, 30, 3),
    ];
    println!("{:30} {:>12} {:>12} {:>8}", "one thread, µs a step", "turnbuckle", "rapier", "ratio");
    for (name, make, warm, steps) in cases {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let mut pair = make();
        pair.ours(warm);
        if !ours_only {
            pair.theirs(warm);
        }
        pair.physics.reset_timings();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..blocks.unwrap_or(41) {
            ours.push(pair.ours(steps));
            if !ours_only {
                theirs.push(pair.theirs(steps));
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{name:30} {ours:12.2} {theirs:12.2} {:8.2}", ours / theirs);
        if systems {
            pair.physics.timings().iter().filter(|t| t.median > 0.0).for_each(|t| {
                println!("{:>30} {:12.2}", t.name, 1e3 * t.median);
            });
        }
    }
}
