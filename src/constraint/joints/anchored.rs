//! Rows and geometric stiffness shared by the joints that hold two anchors together.

use super::frame::{Coordinate, Placed};
use crate::constraint::row::Stiffness;
use crate::constraint::{Row, RowWriter, Softness};
use glam::{DMat3, DVec3};

/// A rigid row on a coordinate.
pub(in crate::constraint) fn push_coordinate(at: Coordinate, key: u32, out: &mut RowWriter<'_, 2>) {
    out.push(Row { jacobian: at.jacobian, violation: at.value, key, ..Row::default() });
}

/// A row on a coordinate with a softness of its own; springs do not count as joint error.
pub(in crate::constraint) fn push_soft(
    at: Coordinate,
    softness: Softness,
    key: u32,
    out: &mut RowWriter<'_, 2>,
) {
    let measured = !matches!(softness, Softness::Spring { .. });
    out.push(Row { jacobian: at.jacobian, violation: at.value, softness, key, measured, ..Row::default() });
}

/// Three rows (keys 0, 1, 2) that hold the anchors together, and the geometric stiffness of the force they
/// carried in the last step.
///
/// The rows stand along the world's axes: the force then keeps its direction while the bodies turn, and the
/// whole geometric stiffness is in the two bodies' own blocks.
pub(in crate::constraint) fn push_anchor_rows(placed: &Placed, out: &mut RowWriter<'_, 2>) {
    for (i, axis) in DVec3::AXES.into_iter().enumerate() {
        push_coordinate(placed.gap(axis), i as u32, out);
    }
    push_force_stiffness(placed.arm_a, placed.arm_b, out.last_force(), out);
}

/// Geometric stiffness of a force `force` on the second body (and its opposite on the first) at these arms.
pub(in crate::constraint) fn push_force_stiffness(
    arm_a: DVec3,
    arm_b: DVec3,
    force: DVec3,
    out: &mut RowWriter<'_, 2>,
) {
    if force != DVec3::ZERO {
        out.push_stiffness(0, Stiffness::of_force(arm_a, -force));
        out.push_stiffness(1, Stiffness::of_force(arm_b, force));
    }
}

impl Stiffness {
    /// That of a force of constant direction at an arm that turns with the body.
    ///
    /// τ = r × f with dr = dθ × r gives −dτ/dθ = (f·r) I − r fᵀ; the symmetric part is what a mass block can take
    /// (the antisymmetric rest does no work on a single axis).
    pub fn of_force(arm: DVec3, force: DVec3) -> Stiffness {
        let outer = DMat3::from_cols(arm * force.x, arm * force.y, arm * force.z);
        Stiffness {
            angular: DMat3::from_diagonal(DVec3::splat(force.dot(arm))) - (outer + outer.transpose()) * 0.5,
            ..Stiffness::default()
        }
    }
}
