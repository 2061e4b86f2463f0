//! What every constraint entity carries besides its own component.

use crate::solver::Label;
use glam::DVec3;

/// Rank of a constraint in creation order; written by the engine when it first sees the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstraintIndex(pub u64);

/// One row's part of [`RowImpulses`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowImpulse {
    /// Which row of the constraint: the key it was written with.
    pub key: u32,
    /// λ of the last step (N·s or N·m·s).
    pub lambda: f64,
    /// Where the row stood in the index set.
    pub label: Label,
}

/// The impulses a constraint needed in the last step: warm start of the next one, and the place to read
/// forces from (divide by the step). Written by the engine; rows in the order they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowImpulses(pub Vec<RowImpulse>);

impl RowImpulses {
    /// λ of the row with this key, zero if there was none.
    pub fn lambda(&self, key: u32) -> f64 {
        self.0.iter().find(|r| r.key == key).map_or(0.0, |r| r.lambda)
    }
}

/// What a constraint puts on its last body, averaged over the last step. Spawn it with a joint to have it written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JointForce {
    /// N, world frame.
    pub force: DVec3,
    /// N·m about the joint's anchor, world frame.
    pub torque: DVec3,
}

/// May the bodies of this constraint touch each other? Spawn it with a joint, built-in or of a user's own, to have another answer
/// than [`crate::constraint::Constraint::collide`] gives; it may be changed at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointCollision(pub bool);

/// Lets a constraint break: when its force or its torque exceeds these, it is taken out and gets [`Broken`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breakable {
    /// Greatest force (N).
    pub force: f64,
    /// Greatest torque about the joint's anchor (N·m).
    pub torque: f64,
}

/// The constraint has given way and writes no rows any more. Remove the component to mend it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broken {
    /// What broke it.
    pub by: JointForce,
}
