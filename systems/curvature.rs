//! Joints close where the bodies will be, not where the tangent leads.
//!
//! A row asks for φ + h J v⁺ = 0; the bodies turn meanwhile, and the joint is left open by e ≈ ½h²φ̈. With the
//! present velocity, e = φ(ahead) − φ − h J v goes into d, and the joint closes to a higher order.
//!
//! In the midpoint step φ stands at the half-way points, and the pose that is shown lies on the chord between two of
//! them, ⅛h²φ̈ inside: ¾e would leave the joint closed there.
//!
//! The present velocity is a step old, and what it overstates drives the motion: half of e errs to the other side and takes
//! a little energy instead of giving it. Foretelling the velocity by the last step's impulses was tried: better on
//! chains, unstable wherever joints are redundant.

use super::integrate::turned;
use super::stiffness::unresolved;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::work::{Bodies, Rows, Violation};
use glam::DVec3;

/// Adds what the curvature of the motion will open to the rows of joints.
pub fn look_ahead(step: &mut Step<'_>) {
    if !step.settings.curvature || !step.work.rows.bends.contains(&true) {
        return;
    }
    let (dt, settings) = (step.dt, step.settings);
    let share = if settings.integrator == Integrator::Midpoint { 0.5 } else { 1.0 };
    let mut gauges = std::mem::take(&mut step.work.gauges);
    let mut ahead = std::mem::take(&mut step.work.bodies.ahead);
    let bodies = &step.work.bodies;
    ahead.clear();
    ahead.extend_from_slice(&bodies.view);
    for (slot, view) in ahead.iter_mut().enumerate() {
        advance(bodies, slot, view, dt);
    }
    let rows = &mut step.work.rows;
    let mut block = 0;
    for gauge in &mut gauges {
        gauge(step.world, bodies, &ahead, &mut |told: Violation| {
            let Some(i) = find(rows, &mut block, &told) else { return };
            if rows.bends[i] {
                let linear = rows.violation[i] + dt * speed(rows, block, i, &ahead);
                let most = settings.max_correction_speed;
                rows.d[i] += (share * (told.violation - linear) / dt).clamp(-most, most);
            }
        });
    }
    step.work.bodies.ahead = ahead;
    step.work.gauges = gauges;
}

/// Moves a body by a step of its velocity, which is kept in the result.
///
/// Turning that the step cannot resolve (hω of the geometric stiffness above one) is noise from step to step, and its
/// square would be fed back: that much of the angular velocity is left out.
fn advance(bodies: &Bodies, slot: usize, view: &mut BodyView, dt: f64) {
    if let Some(k) = bodies.stiffness.get(slot).filter(|_| view.is_dynamic()) {
        view.angular_velocity *= 1.0 - unresolved(k, view, dt);
    }
    view.position += view.linear_velocity * dt;
    let half = turned(view.rotation, view.angular_velocity, 0.5 * dt);
    view.rotation = turned(half, view.angular_velocity, 0.5 * dt);
}

/// The row that was told about. Constraints are told in the order in which they wrote their rows.
pub(super) fn find(rows: &Rows, block: &mut usize, told: &Violation) -> Option<usize> {
    let ahead = rows.blocks[*block..].iter().position(|b| b.entity == told.entity)?;
    *block += ahead;
    let range =
        rows.blocks[*block].row as usize..(rows.blocks[*block].row + rows.blocks[*block].rows) as usize;
    range.into_iter().find(|&i| rows.key[i] == told.key)
}

/// J v of row i of a block for the velocities in `views`.
fn speed(rows: &Rows, block: usize, i: usize, views: &[BodyView]) -> f64 {
    let block = &rows.blocks[block];
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let first = block.entry as usize + (i - block.row as usize) * block.bodies as usize;
    let jacobian = &rows.jacobian[first..first + slots.len()];
    let parts = jacobian.iter().zip(slots).map(|(j, &slot)| {
        let view = &views[slot as usize];
        DVec3::new(j[0], j[1], j[2]).dot(view.linear_velocity)
            + DVec3::new(j[3], j[4], j[5]).dot(view.angular_velocity)
    });
    parts.sum()
}
