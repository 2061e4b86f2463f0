//! Every island's problem is solved, all of them in parallel (000 eqs. 8–12).

use super::contacts::settle_friction;
use crate::report::Trouble;
use crate::schedule::Step;
use glam::DVec3;
use rayon::prelude::*;

/// Solves all islands and brings impulses and velocities back, island by island, in order.
pub fn solve_islands(step: &mut Step<'_>) {
    let settings = step.settings;
    let rows = &step.work.rows;
    step.work.islands.par_iter_mut().for_each(|island| {
        island.solver.set_method(settings.method);
        island.stats = island.solver.solve(&island.problem, &mut island.solution);
        island.friction_shift = settle_friction(island, rows, settings);
    });
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
        report.friction_bound_shift = report.friction_bound_shift.max(island.friction_shift);
        if !stats.converged {
            report.converged = false;
            let rows = island.rows.len() as u32;
            report.trouble(Trouble::Unconverged { rows, residual: stats.residual_relative });
        }
    }
    step.report.residual = squares.sqrt();
    step.report.partitions = work.islands.len() as u32;
    step.report.coupling_iterations = u32::from(!work.islands.is_empty());
}
