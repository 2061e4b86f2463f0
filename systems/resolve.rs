//! Solving an island again after a small change of its numbers.
//!
//! What touches, sticks or stands at a stop mostly still does so afterwards. So every row first keeps the side on which it was
//! found, which makes the solve a linear one; only where the answer contradicts that are the sides decided anew.

use super::couple::{solve_linear, solve_once};
use crate::settings::Settings;
use crate::solver::{Label, Method};
use crate::state::{Island, Scheme};

/// Contradictions below this share of the largest impulse or velocity are round-off: the solver's own tolerance.
const ROUND_OFF: f64 = 1e-9;

/// Solves an island again.
pub fn resolve_island(island: &mut Island, settings: &Settings) {
    let before = island.stats;
    // A contact that slides is no linear row: under cones the labels are where Newton's method starts.
    let cones = !island.problem.cones.is_empty();
    if cones || !has_sides(island) || decides_cheaply(island, settings) {
        island.stats = solve_once(island, settings);
    } else {
        freeze(island);
        island.stats = solve_linear(island, settings);
        thaw(island);
        if !island.stats.converged || contradicts(island) {
            let linear = island.stats.factorizations;
            island.stats = solve_once(island, settings);
            island.stats.factorizations += linear;
        }
    }
    island.stats.pivots += before.pivots;
    island.stats.ipm_iterations += before.ipm_iterations;
    island.stats.factorizations += before.factorizations;
}

/// Does deciding the sides anew cost little more than keeping them? So it does where the rows with bounds are few.
fn decides_cheaply(island: &Island, settings: &Settings) -> bool {
    let condenses = match (island.cut.scheme, &island.cut.substructured) {
        (Scheme::Substructured, Some(flat)) => flat.condenses(),
        _ => island.solver.condenses(),
    };
    settings.method == Method::Auto && condenses
}

/// Does it have rows with bounds?
pub fn has_sides(island: &Island) -> bool {
    let problem = &island.problem;
    problem.lo.iter().chain(&problem.hi).any(|x| x.is_finite())
}

/// Lets every row keep its side: free ones without bounds, tight ones with the impulse of their bound.
pub fn freeze(island: &mut Island) {
    let Island { problem, solution, bounds, .. } = island;
    bounds.clear();
    bounds
        .extend(problem.lo.iter().zip(&problem.hi).zip(&solution.labels).map(|((&lo, &hi), &l)| (lo, hi, l)));
    for (k, label) in solution.labels.iter().enumerate() {
        (problem.lo[k], problem.hi[k]) = match label {
            Label::Free => (f64::NEG_INFINITY, f64::INFINITY),
            Label::Lower => (problem.lo[k], problem.lo[k]),
            Label::Upper => (problem.hi[k], problem.hi[k]),
        };
    }
}

/// Gives the rows their bounds and sides back.
pub fn thaw(island: &mut Island) {
    for (k, &(lo, hi, label)) in island.bounds.iter().enumerate() {
        (island.problem.lo[k], island.problem.hi[k]) = (lo, hi);
        island.solution.labels[k] = label;
    }
}

/// Is an impulse outside its bounds, or does a tight row move to the wrong side?
pub fn contradicts(island: &Island) -> bool {
    let (problem, solution) = (&island.problem, &island.solution);
    let largest = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let (impulse, velocity) = (ROUND_OFF * largest(&solution.lambda), ROUND_OFF * largest(&solution.v));
    problem.blocks.iter().any(|block| {
        let bodies = &problem.block_bodies[block.body as usize..(block.body + block.bodies) as usize];
        (0..block.rows).any(|row| {
            let k = (block.row + row) as usize;
            let (lo, hi, lambda) = (problem.lo[k], problem.hi[k], solution.lambda[k]);
            if solution.labels[k] == Label::Free {
                return lambda < lo - impulse || lambda > hi + impulse;
            }
            let mut w = problem.d[k] + problem.compliance[k] * lambda;
            for (n, &body) in bodies.iter().enumerate() {
                let entry = (block.entry + 6 * (row * block.bodies + n as u32)) as usize;
                let (j, v) = (&problem.jacobian[entry..entry + 6], &solution.v[6 * body as usize..]);
                w += (0..6).map(|c| j[c] * v[c]).sum::<f64>();
            }
            // Equal bounds hold on either side.
            lo != hi && if solution.labels[k] == Label::Lower { w < -velocity } else { w > velocity }
        })
    })
}
