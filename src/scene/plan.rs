//! A scene after parameters, generators and prefabs: flat lists of plain data, no entities yet.

use super::error::{SceneError, Span};
use super::expect::Expectation;
use super::expr::Expr;
use crate::components::{Appearance, BodyKind, CableLink, Collider};
use crate::settings::Partitioning;
use crate::solver::Method;
use glam::{DMat3, DQuat, DVec3};

/// Everything a scene says, ready to be put into a world.
#[derive(Clone, Debug, Default)]
pub struct ScenePlan {
    /// Short name.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Parameters with the values used, in the order of the file.
    pub parameters: Vec<(String, f64)>,
    /// Numbers for the engine.
    pub settings: SceneSettings,
    /// Viewpoints for pictures.
    pub cameras: Vec<Camera>,
    /// Bodies in creation order.
    pub bodies: Vec<BodyPlan>,
    /// Joints in creation order.
    pub joints: Vec<JointPlan>,
    /// Names of partitions; bodies refer to them by number.
    pub partitions: Vec<String>,
    /// What happens by itself.
    pub scripts: Vec<ScriptPlan>,
    /// What must hold.
    pub expectations: Vec<Expectation>,
    /// Files read, by the numbers that spans use.
    pub files: Vec<String>,
    /// What is legal and yet hardly meant.
    pub warnings: Vec<SceneError>,
}

/// What a scene says about how it is to be simulated. `None` leaves the engine's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SceneSettings {
    /// Step (s).
    pub dt: Option<f64>,
    /// How long the scene lasts (s).
    pub seconds: Option<f64>,
    /// How long a test runs it (s).
    pub test_seconds: Option<f64>,
    /// Gravity (m/s²).
    pub gravity: Option<DVec3>,
    /// Solver.
    pub solver: Option<Method>,
    /// Partitioning.
    pub partition: Option<Partitioning>,
    /// Do islands at rest fall asleep?
    pub sleep: Option<bool>,
    /// Law of friction.
    pub friction_law: Option<crate::settings::FrictionLaw>,
    /// Other numbers of [`crate::Settings`] by their names, within their ranges.
    pub numbers: Vec<(&'static str, f64)>,
}

/// A viewpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Where the eye is (m).
    pub eye: DVec3,
    /// What it looks at (m).
    pub target: DVec3,
    /// Vertical field of view (degrees).
    pub fov: f64,
}

/// A body.
#[derive(Clone, Debug)]
pub struct BodyPlan {
    /// Its full name, with the names of the parts it is in; empty if it has none.
    pub name: String,
    /// How it takes part.
    pub kind: BodyKind,
    /// Centre of mass in the world (m).
    pub position: DVec3,
    /// Orientation.
    pub rotation: DQuat,
    /// Velocity (m/s).
    pub velocity: DVec3,
    /// Angular velocity (rad/s).
    pub spin: DVec3,
    /// Mass (kg).
    pub mass: f64,
    /// Inertia about the centre of mass (kg·m²).
    pub inertia: DMat3,
    /// The author's origin in the body frame (m).
    pub origin: DVec3,
    /// Shapes, placed relative to the centre of mass.
    pub colliders: Vec<Collider>,
    /// Factor on gravity.
    pub gravity_scale: f64,
    /// Damping of linear and angular velocity (1/s).
    pub damping: [f64; 2],
    /// Number of its partition, and whether that is one of its own whatever else is cut.
    pub partition: Option<u32>,
    /// See `partition`.
    pub pinned: bool,
    /// Is it a point mass: without rotation?
    pub point: bool,
    /// Colour in pictures.
    pub color: Option<Appearance>,
    /// Its place in a cable, for pictures.
    pub cable: Option<CableLink>,
    /// Where the file says so.
    pub at: Span,
}

/// A body by number, or the world.
pub type BodyRef = Option<u32>;

/// Where a joint holds on to a body: a point and two perpendicular unit directions in the body's frame
/// (for the world: in the world's).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// The body.
    pub body: BodyRef,
    /// Point relative to the centre of mass (m).
    pub point: DVec3,
    /// The joint's main axis.
    pub axis: DVec3,
    /// A direction across it: zero of the angle, second axis of a universal joint, steering axis of a wheel.
    pub side: DVec3,
}

/// A joint.
#[derive(Clone, Debug)]
pub struct JointPlan {
    /// Its full name; empty if it has none.
    pub name: String,
    /// What it allows and forbids.
    pub kind: JointKind,
    /// Where it holds the first body.
    pub a: Anchor,
    /// Where it holds the second body.
    pub b: Anchor,
    /// Range of its first and second free coordinate.
    pub limits: [Option<Limit>; 2],
    /// Motor on its first and second free coordinate.
    pub motors: [Option<Motor>; 2],
    /// Dry friction (N or N·m) on its first and second free coordinate.
    pub friction: [f64; 2],
    /// It breaks beyond this force (N) and torque (N·m).
    pub breaks: Option<[f64; 2]>,
    /// May its bodies touch each other? If not said, as the joint's kind has it.
    pub collide: Option<bool>,
    /// Where the file says so.
    pub at: Span,
    /// Where it says which points.
    pub points_at: [Span; 2],
}

/// What a joint allows and forbids.
#[derive(Clone, Debug, PartialEq)]
pub enum JointKind {
    /// Nothing moves.
    Fixed,
    /// Turns about the axis.
    Revolute,
    /// Slides along the axis.
    Prismatic,
    /// Turns about and slides along the axis.
    Cylindrical,
    /// Turns every way.
    Ball,
    /// Turns about two crossed axes; no twist.
    Universal,
    /// Slides in the plane across the axis and turns about it.
    Planar,
    /// The second body's point stays on a line of the first.
    PointOnLine,
    /// Two points stay this far apart (m).
    Distance(f64),
    /// Two points come no further apart than this (m).
    Rope(f64),
    /// Spring with damper between two points.
    Spring {
        /// Is it part of the matter, a block of A, in place of a row?
        coupled: bool,
        /// Length at rest (m).
        length: f64,
        /// N/m.
        stiffness: f64,
        /// N·s/m.
        damping: f64,
    },
    /// Six rows: a piece of rod.
    Cable(CablePlan),
    /// Turns of the first body about its axis against turns of the second about its own.
    Gear {
        /// Turns of the second for one turn of the first.
        ratio: f64,
        /// The body that carries both axles.
        frame: BodyRef,
    },
    /// Turning of the first body about its axis against sliding of the second along its own.
    Rack {
        /// Metres for one radian.
        ratio: f64,
        /// The body that carries both.
        frame: BodyRef,
    },
    /// Wheel on a suspension: slides along the side axis of the first body, turns about the axis of the second.
    Wheel {
        /// N/m.
        stiffness: f64,
        /// N·s/m.
        damping: f64,
        /// Steering angle at the start (rad).
        steer: f64,
        /// Where the suspension rests without load, along the side axis (m).
        rest: f64,
    },
    /// A rope through points of several bodies; its length may be driven.
    Pulley {
        /// Points the rope runs through, first to last.
        points: Vec<(BodyRef, DVec3)>,
        /// Length at rest (m).
        length: f64,
        /// Rate of the length (m/s), negative to haul in.
        speed: f64,
        /// Greatest tension the winch gives (N); beyond it the rope slips out.
        max_force: f64,
        /// Friction where it wraps (capstan), 0 for a free sheave.
        friction: f64,
    },
}

/// Stiffness of one cable joint, from a rod's modulus and section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CablePlan {
    /// Length of rod the joint stands for (m).
    pub length: f64,
    /// Radius (m).
    pub radius: f64,
    /// Young's modulus (Pa) for bending; 0 bends freely.
    pub young: f64,
    /// Shear modulus (Pa) for twist.
    pub shear: f64,
    /// Damping ratio of bend and twist as a time: damping = stiffness × this (s).
    pub damping_time: f64,
}

/// Range of a free coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Least (m or rad).
    pub lower: f64,
    /// Greatest (m or rad).
    pub upper: f64,
    /// Stiffness and damping of a soft stop; `None` for a hard one.
    pub soft: Option<[f64; 2]>,
}

/// Motor on a free coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Motor {
    /// Holds a speed (m/s or rad/s).
    Velocity {
        /// The speed.
        target: f64,
        /// Greatest force or torque.
        max: f64,
    },
    /// Holds a place (m or rad) like a spring with damper.
    Position {
        /// The place.
        target: f64,
        /// N/m or N·m/rad.
        stiffness: f64,
        /// N·s/m or N·m·s/rad.
        damping: f64,
        /// Greatest force or torque.
        max: f64,
    },
}

/// Something that happens by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptPlan {
    /// Once, at a time.
    Event {
        /// When (s).
        time: f64,
        /// What.
        action: Action,
    },
    /// A kinematic body follows a motion.
    Move {
        /// The body.
        body: u32,
        /// How.
        motion: Motion,
    },
    /// A motor's target follows an expression of `$t`.
    Drive {
        /// The joint.
        joint: u32,
        /// First or second motor.
        motor: usize,
        /// Its target over time.
        target: Expr,
    },
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Removes a joint.
    Release(u32),
    /// Removes a body.
    Remove(u32),
    /// Makes a fixed or kinematic body dynamic.
    Free(u32),
    /// Makes a body fixed where it is.
    Freeze(u32),
    /// Gives a body velocities (m/s, rad/s).
    Velocity(u32, DVec3, DVec3),
    /// Gives a body an impulse at its centre of mass (N·s).
    Impulse(u32, DVec3),
    /// Gives the first or second motor of a joint another target.
    Motor(u32, usize, f64),
}

/// How a kinematic body moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Motion {
    /// From pose to pose: positions interpolated linearly, rotations along the shortest arc.
    Keys {
        /// Times, positions and rotations.
        keys: Vec<Key>,
        /// Starts again after the last.
        repeat: bool,
    },
    /// Velocity as functions of time.
    Velocity {
        /// m/s.
        linear: [Expr; 3],
        /// rad/s.
        angular: [Expr; 3],
    },
    /// Position as functions of time; the rotation stays.
    Position([Expr; 3]),
}

/// A pose at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// When (s).
    pub time: f64,
    /// Where.
    pub position: DVec3,
    /// How turned.
    pub rotation: DQuat,
}

impl ScenePlan {
    /// Number of a body by its full name.
    pub fn body(&self, name: &str) -> Option<u32> {
        self.bodies.iter().position(|b| b.name == name).map(|i| i as u32)
    }

    /// Total mass of the dynamic bodies (kg).
    pub fn mass(&self) -> f64 {
        self.bodies.iter().filter(|b| b.kind == BodyKind::Dynamic).map(|b| b.mass).sum()
    }
}
