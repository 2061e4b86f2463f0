//! What a body is made of.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DQuat, DVec3};

/// How a body takes part in the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BodyKind {
    /// Moved by forces and impulses.
    #[default]
    Dynamic,
    /// Moved by its velocity, or towards its [`KinematicTarget`]; nothing pushes it.
    Kinematic,
    /// Never moves.
    Fixed,
}

/// World position of the **centre of mass** (m).
///
/// Shapes whose centre of mass is elsewhere are shifted when the body is built; [`LocalOrigin`] says by
/// how much, so that a renderer can find the author's origin again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Position(pub DVec3);

/// World orientation, a unit quaternion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Rotation(pub DQuat);

/// Velocity of the centre of mass (m/s, world frame).
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LinearVelocity(pub DVec3);

/// Angular velocity (rad/s, world frame).
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct AngularVelocity(pub DVec3);

/// Mass (kg), positive and finite for dynamic bodies.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Mass(pub f64);

/// Inertia tensor about the centre of mass in the body frame (kg·m²), symmetric positive definite.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Inertia(pub DMat3);

/// A body without rotation: three unknowns of the solver in place of six, and no inertia. What holds or touches it acts at its position
/// or with a fixed offset; torques do nothing. What cloth, ropes of beads and characters that stay upright are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointMass;

/// Force at the centre of mass for the coming step (N, world frame); cleared when the step is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Force(pub DVec3);

/// Torque for the coming step (N·m, world frame); cleared when the step is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Torque(pub DVec3);

/// Factor on gravity; 1 where the component is missing.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct GravityScale(pub f64);

/// Velocity damping rates (1/s); zero where the component is missing. Integrated implicitly, so any
/// non-negative value is stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Damping {
    /// Rate of the linear velocity.
    pub linear: f64,
    /// Rate of the angular velocity.
    pub angular: f64,
}

/// The pose a kinematic body is to have at the end of the coming step; its velocity follows from it.
/// While the component is there it rules, also over the body's own velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KinematicTarget {
    /// World position of the centre of mass.
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
}

/// The pose before the last step, for drawing between steps ([`crate::clock::interpolated_pose`]). Give it to the
/// bodies you draw; the engine keeps it up to date and never reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PreviousPose {
    /// World position of the centre of mass.
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
}

/// Where the author's origin lies, in the body frame (m); zero where the component is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LocalOrigin(pub DVec3);

/// Rank of the body in creation order; written by the engine, read by anyone.
///
/// Dense: 0 .. number of bodies. When a body is despawned, later ones move up; their order never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct BodyIndex(pub u32);

/// Which partition the body is in; written by the partition stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct PartitionIndex(pub u32);

/// The user's own grouping: bodies of the same number share a partition (`--partition semantic`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct PartitionHint(pub u32);

/// Bodies of the same number are a partition of their own wherever they are tied together, whichever way the others are cut
/// (`--partition semantic`, `min-degree:N` or `auto`; with `none` nothing is).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct PartitionPin(pub u32);

/// The body is taken out of the simulation because its state became non-finite or absurd; it stands
/// still at its last good pose. Remove the component (after mending the state) to bring it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Quarantined;

/// A name for reports, scenes and replays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub String);

/// The components every body has, as one bundle: `world.spawn(RigidBody { .. })`.
///
/// `RigidBody::dynamic(mass, inertia)`, `RigidBody::kinematic()` and `RigidBody::fixed()` start one;
/// [`crate::geometry::MassProperties`] gives mass and inertia from shapes.
#[derive(Clone, Copy, Debug, hecs::Bundle)]
pub struct RigidBody {
    /// How it takes part.
    pub kind: BodyKind,
    /// Where its centre of mass is.
    pub position: Position,
    /// How it is turned.
    pub rotation: Rotation,
    /// How fast it moves.
    pub linear_velocity: LinearVelocity,
    /// How fast it turns.
    pub angular_velocity: AngularVelocity,
    /// How heavy it is.
    pub mass: Mass,
    /// How hard it is to turn.
    pub inertia: Inertia,
    /// What pushes it in the coming step.
    pub force: Force,
    /// What turns it in the coming step.
    pub torque: Torque,
}

/// The components of a body without rotation, as one bundle: `world.spawn(PointBody::new(0.1).at(position))`. It has the components
/// of a rigid body, so that systems and queries meet it like any other.
#[derive(Clone, Copy, Debug, hecs::Bundle)]
pub struct PointBody {
    /// It does not turn.
    pub point: PointMass,
    /// How it takes part.
    pub kind: BodyKind,
    /// Where it is.
    pub position: Position,
    /// Stays as it is.
    pub rotation: Rotation,
    /// How fast it moves.
    pub linear_velocity: LinearVelocity,
    /// Zero.
    pub angular_velocity: AngularVelocity,
    /// How heavy it is.
    pub mass: Mass,
    /// Zero, and not read.
    pub inertia: Inertia,
    /// What pushes it in the coming step.
    pub force: Force,
    /// Does nothing.
    pub torque: Torque,
}

impl PointBody {
    /// A point moved by forces.
    pub fn new(mass: f64) -> PointBody {
        let RigidBody {
            kind,
            position,
            rotation,
            linear_velocity,
            angular_velocity,
            mass,
            inertia,
            force,
            torque,
        } = RigidBody::dynamic(mass, DMat3::ZERO);
        PointBody {
            point: PointMass,
            kind,
            position,
            rotation,
            linear_velocity,
            angular_velocity,
            mass,
            inertia,
            force,
            torque,
        }
    }

    /// The same point somewhere else.
    pub fn at(mut self, position: DVec3) -> PointBody {
        self.position.0 = position;
        self
    }

    /// The same point in motion.
    pub fn moving(mut self, velocity: DVec3) -> PointBody {
        self.linear_velocity.0 = velocity;
        self
    }
}

impl RigidBody {
    fn new(kind: BodyKind, mass: f64, inertia: DMat3) -> RigidBody {
        RigidBody {
            kind,
            position: Position::default(),
            rotation: Rotation::default(),
            linear_velocity: LinearVelocity::default(),
            angular_velocity: AngularVelocity::default(),
            mass: Mass(mass),
            inertia: Inertia(inertia),
            force: Force::default(),
            torque: Torque::default(),
        }
    }

    /// A body moved by forces, with the inertia tensor about its centre of mass in its own frame.
    pub fn dynamic(mass: f64, inertia: DMat3) -> RigidBody {
        RigidBody::new(BodyKind::Dynamic, mass, inertia)
    }

    /// A body moved by its velocity only.
    pub fn kinematic() -> RigidBody {
        RigidBody::new(BodyKind::Kinematic, 1.0, DMat3::IDENTITY)
    }

    /// A body that never moves.
    pub fn fixed() -> RigidBody {
        RigidBody::new(BodyKind::Fixed, 1.0, DMat3::IDENTITY)
    }

    /// The same body somewhere else.
    pub fn at(mut self, position: DVec3) -> RigidBody {
        self.position.0 = position;
        self
    }

    /// The same body turned.
    pub fn turned(mut self, rotation: DQuat) -> RigidBody {
        self.rotation.0 = rotation;
        self
    }

    /// The same body in motion.
    pub fn moving(mut self, linear: DVec3, angular: DVec3) -> RigidBody {
        self.linear_velocity.0 = linear;
        self.angular_velocity.0 = angular;
        self
    }
}

/// Where a body is and how it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MotionState {
    /// World position of the centre of mass (m).
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
    /// Velocity of the centre of mass (m/s).
    pub linear_velocity: DVec3,
    /// Angular velocity in world axes (rad/s).
    pub angular_velocity: DVec3,
}

/// How a body goes on that a step has found to be struck soon after its end. Given and used by the engine; a body that is moved or pushed
/// by hand in between goes on as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rebound {
    /// Is it still to be used?
    pub pending: bool,
    /// The body as the step left it.
    pub shown: MotionState,
    /// The state from which the next step goes on: on the way that it has after the blow, taken back to the end of the step.
    pub then: MotionState,
}
