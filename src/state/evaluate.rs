//! Constraints evaluated at any poses, without writing the rows of the step.

use super::{Bodies, Rows};
use crate::constraint::BodyView;
use hecs::Entity;
use std::any::TypeId;

/// A registered type of constraints.
pub struct ConstraintType {
    /// Its component.
    pub component: TypeId,
    /// Has the world any? See [`crate::systems::census`].
    pub present: bool,
    /// Measures their violations.
    pub gauge: ConstraintEvaluator,
}

/// Evaluates the constraints of one type at given poses and tells a witness what they write there.
pub type ConstraintEvaluator =
    Box<dyn FnMut(&hecs::World, &Bodies, &EvaluateAt<'_>, &mut dyn RowVisitor) + Send + Sync>;

/// Where and how constraints are evaluated.
#[derive(Clone, Copy)]
pub struct EvaluateAt<'a> {
    /// One pose a slot, with velocities.
    pub poses: &'a [BodyView],
    /// Poses for which violations are told, if those are others.
    pub ends: Option<&'a [BodyView]>,
    /// The step (s).
    pub dt: f64,
    /// β for constraints that write geometric stiffness; zero asks for none.
    pub stiffness_share: f64,
    /// Only constraints on one of these slots, if given.
    pub only: Option<&'a [bool]>,
    /// Impulses in the order of the step's rows that constraints are shown in place of the last step's, if given.
    pub impulses: Option<(&'a Rows, &'a [f64])>,
}

impl<'a> EvaluateAt<'a> {
    /// Asks for violations only. The step's length only matters for motors and friction, which are not measured.
    pub fn violations(poses: &'a [BodyView]) -> EvaluateAt<'a> {
        EvaluateAt { poses, ends: None, dt: 1.0, stiffness_share: 0.0, only: None, impulses: None }
    }
}

/// Who is told what constraints write.
pub trait RowVisitor {
    /// A row.
    fn row(&mut self, told: &RowSample<'_>);
    /// Geometric stiffness on a slot.
    fn stiffness(&mut self, _slot: u32, _stiffness: &crate::constraint::Stiffness) {}
}

impl<F: FnMut(&RowSample<'_>)> RowVisitor for F {
    fn row(&mut self, told: &RowSample<'_>) {
        self(told);
    }
}

/// A row as it would be written at the poses asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSample<'a> {
    /// Whose row.
    pub entity: Entity,
    /// The slots of its bodies.
    pub slots: &'a [u32],
    /// Which one.
    pub key: u32,
    /// φ (m or rad).
    pub violation: f64,
    /// Does it count as an error of a joint?
    pub measured: bool,
    /// w₀ (m/s or rad/s).
    pub target_velocity: f64,
    /// Six numbers for each of the constraint's distinct bodies.
    pub jacobian: &'a [[f64; 6]],
}
