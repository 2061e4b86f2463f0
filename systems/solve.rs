//! Impulses and velocities come back from the islands, and what the solves had to say (000 eqs. 8–12).

use crate::report::Trouble;
use crate::schedule::Step;
use crate::work::Scheme;
use glam::DVec3;

/// Brings impulses and velocities back, island by island, in order, and adds up the report.
pub fn collect_impulses(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let mut squares = 0.0;
    step.report.converged = true;
    for island in &work.islands {
        for (k, &slot) in island.bodies.iter().enumerate() {
            let v = &island.solution.v[6 * k..6 * k + 6];
            work.bodies.velocity[slot as usize] =
                [DVec3::new(v[0], v[1], v[2]), DVec3::new(v[3], v[4], v[5])];
        }
        for (k, &row) in island.rows.iter().enumerate() {
            work.rows.lambda[row as usize] = island.solution.lambda[k];
            work.rows.label[row as usize] = island.solution.labels[k];
        }
        let (stats, report) = (&island.stats, &mut *step.report);
        squares += stats.residual * stats.residual;
        report.residual_relative = report.residual_relative.max(stats.residual_relative);
        report.residual_energy = report.residual_energy.max(stats.residual_energy);
        report.pivots += stats.pivots + stats.ipm_iterations;
        report.factorizations += stats.factorizations;
        report.inner_iterations += stats.inner_iterations;
        report.imaginary_share = report.imaginary_share.max(stats.imaginary_share);
        report.softened_rows += stats.softened_rows;
        report.friction_bound_shift = report.friction_bound_shift.max(island.friction_shift);
        report.coupling_iterations = report.coupling_iterations.max(island.cut.iterations);
        report.coupling_at_limit |= island.cut.at_limit;
        report.interface_rows += match (island.cut.scheme, &island.cut.flat, &island.cut.nested) {
            (Scheme::Flat, Some(flat), _) => flat.linear().stats().interface_rows,
            (Scheme::Nested, _, Some(nested)) => nested.cut().interface_rows() as u32,
            _ => 0,
        };
        if !stats.converged {
            report.converged = false;
            let rows = island.rows.len() as u32;
            report.trouble(Trouble::Unconverged { rows, residual: stats.residual_relative });
        }
    }
    step.report.residual = squares.sqrt();
}
