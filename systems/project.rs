//! Post-step projection (Cline and Pai 2003): bodies of two-sided joints are put exactly together after the step.
//!
//! Displacements δ of least M-norm with J δ = −φ, by Newton with the step's own J: M δ = Jᵀ μ, J δ + C μ = −φ. One-sided rows
//! and contacts stay out; velocities are not touched.

use super::integrate::turned;
use super::rows::find;
use crate::schedule::Step;
use crate::work::{Island, Question, Rows, Told};
use glam::DVec3;
use rayon::prelude::*;

/// Closed to this (m or rad), joints are left alone: round-off of poses a kilometre out.
const CLOSED: f64 = 1e-13;

/// Greatest opening that one iteration closes (m or rad): what was torn is drawn together over several steps, not at once.
const MOST: f64 = 0.3;

/// Closes joints at the poses after the step.
pub fn close_joints(step: &mut Step<'_>) {
    for _ in 0..step.settings.projection {
        let violation = violations(step);
        if violation.iter().all(|v| v.abs() <= CLOSED) {
            return;
        }
        let work = &mut *step.work;
        let rows = &work.rows;
        work.islands.par_iter_mut().for_each(|island| project(island, rows, &violation));
        for island in &work.islands {
            let moves = island.projection.solution.v.chunks_exact(6);
            for (&slot, m) in island.bodies.iter().zip(moves).filter(|(_, m)| m.iter().all(|x| x.is_finite()))
            {
                let view = &mut work.bodies.view[slot as usize];
                view.position += DVec3::new(m[0], m[1], m[2]);
                view.rotation = turned(view.rotation, DVec3::new(m[3], m[4], m[5]), 1.0);
            }
        }
    }
}

/// φ of every row that is to be closed, at the poses as they are now; zero for the others.
fn violations(step: &mut Step<'_>) -> Vec<f64> {
    let mut out = vec![0.0; step.work.rows.len()];
    let mut gauges = std::mem::take(&mut step.work.gauges);
    let (bodies, rows, mut block) = (&step.work.bodies, &step.work.rows, 0);
    for gauge in &mut gauges {
        gauge(step.world, bodies, &Question::violations(&bodies.view), &mut |told: &Told<'_>| {
            if let Some(i) = find(rows, &mut block, told).filter(|&i| rows.bends[i]) {
                out[i] = told.violation.clamp(-MOST, MOST);
            }
        });
    }
    step.work.gauges = gauges;
    out
}

fn project(island: &mut Island, rows: &Rows, violation: &[f64]) {
    let Island { problem, projection, rows: numbers, .. } = island;
    projection.problem.clone_from(problem);
    let problem = &mut projection.problem;
    problem.momentum.iter_mut().for_each(|p| *p = [0.0; 6]);
    for (k, &i) in numbers.iter().enumerate() {
        problem.d[k] = violation[i as usize];
        if !rows.bends[i as usize] {
            (problem.lo[k], problem.hi[k]) = (0.0, 0.0);
        }
    }
    projection.solver.solve(problem, &mut projection.solution);
}
