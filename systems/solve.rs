//! Impulses and velocities come back from the islands, and what the solves had to say (000 eqs. 8–12).

use crate::report::{Cause, StepReport, Trouble};
use crate::schedule::Step;
use crate::state::{Bodies, Island, Rows, Scheme};
use glam::DVec3;

/// Notes why an island was solved, and the solves that bounded its friction after that.
pub(super) fn note_solves(report: &mut StepReport, number: usize, island: &mut Island, cause: Cause) {
    let friction = std::mem::take(&mut island.friction_solves);
    for cause in std::iter::once(cause).chain((0..friction).map(|_| Cause::Friction)) {
        report.resolve(number, cause, island.rows.len(), island.stats.residual);
    }
}

/// Brings impulses and velocities back, island by island, in order.
pub fn collect_impulses(step: &mut Step<'_>) {
    let work = &mut *step.work;
    for (number, island) in work.islands.iter_mut().enumerate() {
        if !island.is_followed() {
            note_solves(step.report, number, island, Cause::First);
        }
        bring_back(island, &mut work.bodies, &mut work.rows);
    }
}

/// Brings one island's impulses and velocities back.
pub fn bring_back(island: &Island, bodies: &mut Bodies, rows: &mut Rows) {
    for (&slot, v) in island.bodies.iter().zip(island.solution.v.chunks_exact(6)) {
        bodies.velocity[slot as usize] = [DVec3::new(v[0], v[1], v[2]), DVec3::new(v[3], v[4], v[5])];
    }
    for (k, &row) in island.rows.iter().enumerate() {
        rows.lambda[row as usize] = island.solution.lambda[k];
        rows.label[row as usize] = island.solution.labels[k];
    }
}

/// Tells of the last solve of every island, however often it was solved, and of the work of all.
pub fn report_solves(step: &mut Step<'_>) {
    let mut squares = 0.0;
    let report = &mut *step.report;
    let spent = std::mem::take(&mut step.work.spent);
    report.pivots += spent.0;
    report.factorizations += spent.1;
    for island in &step.work.islands {
        let stats = &island.stats;
        squares += stats.residual * stats.residual;
        report.residual_relative = report.residual_relative.max(stats.residual_relative.min(f64::MAX));
        report.residual_energy = report.residual_energy.max(stats.residual_energy.min(f64::MAX));
        report.pivots += stats.pivots + stats.ipm_iterations;
        report.factorizations += stats.factorizations;
        report.inner_iterations += stats.inner_iterations;
        report.imaginary_share = report.imaginary_share.max(stats.imaginary_share);
        report.softened_rows += stats.softened_rows;
        report.friction_bound_shift = report.friction_bound_shift.max(island.friction_shift);
        report.coupling_iterations = report.coupling_iterations.max(island.cut.iterations);
        report.coupling_at_limit |= island.cut.at_limit;
        report.interface_rows +=
            match (island.cut.scheme, &island.cut.substructured, &island.cut.coupling_loop) {
                (Scheme::Substructured, Some(flat), _) => flat.linear().stats().interface_rows,
                (Scheme::CouplingLoop, _, Some(nested)) => nested.cut().interface_rows() as u32,
                _ => 0,
            };
        if !stats.converged {
            report.converged = false;
            report.trouble(unsolved(island, &step.work.rows));
        }
    }
    report.residual = report.residual.max(squares.sqrt().min(f64::MAX));
}

/// What is to be said of an island whose solve did not arrive.
fn unsolved(island: &Island, rows: &Rows) -> Trouble {
    let (n, residual) = (island.rows.len() as u32, island.stats.residual_relative);
    let blocks = island.blocks.iter().map(|&b| &rows.blocks[b as usize]);
    let sizes = blocks.map(|block| {
        let entries = block.entry as usize..(block.entry + block.rows * block.bodies) as usize;
        (rows.jacobian[entries].iter().flatten().fold(0.0f64, |m, x| m.max(x.abs())), block.entity)
    });
    match sizes.reduce(|most, next| if next.0 > most.0 { next } else { most }) {
        Some((size, entity)) if !residual.is_finite() => Trouble::OutOfRange { entity, rows: n, size },
        _ => Trouble::Unconverged { rows: n, residual },
    }
}
