//! Post-step projection (Cline and Pai 2003): bodies of two-sided joints are put exactly together after the step.
//!
//! Displacements δ of least norm, in the metric in which the step was solved, with J δ = −φ, by Newton: M δ = Jᵀ μ, J δ + C μ = −φ, with J and
//! φ at the poses reached so far. One-sided rows and contacts stay out, so the problem is that of the joints alone, whatever else
//! holds the island together; velocities are not touched.

use super::integrate::turned;
use super::parallel::for_each;
use super::rows::find;
use crate::schedule::Step;
use crate::solver::{RowBlock, RowKind};
use crate::state::{Bodies, ConstraintBlock, EvaluateAt, Island, RowSample, Rows};
use glam::DVec3;
use rayon::prelude::*;

/// Closed to this (m or rad), joints are left alone: round-off of poses a kilometre out.
const CLOSED: f64 = 1e-13;

/// Greatest opening that one iteration closes (m or rad): what was torn is drawn together over several steps, not at once.
const MOST: f64 = 0.3;

/// Joints at the poses reached so far; memory is kept from step to step.
#[derive(Default)]
pub struct Openings {
    /// φ of every row that is to be closed, zero for the others.
    violation: Vec<f64>,
    /// J of these rows, in the order of `Rows::jacobian`.
    jacobian: Vec<[f64; 6]>,
}

/// Closes joints at the poses after the step.
pub fn close_joints(step: &mut Step<'_>) {
    for _ in 0..step.settings.tuning.projection {
        let openings = look(step);
        let open = openings.violation.iter().any(|v| v.abs() > CLOSED);
        let work = &mut *step.work;
        if open {
            let (bodies, rows, local) = (&work.bodies, &work.rows, work.local.as_slice());
            for_each(work.islands.par_iter_mut(), |island| project(island, bodies, rows, &openings, local));
            for island in &work.islands {
                displace(&mut work.bodies, island);
            }
        }
        work.openings = openings;
        if !open {
            return;
        }
    }
}

/// Asks the joints for φ and J at the poses as they are now.
fn look(step: &mut Step<'_>) -> Openings {
    let mut openings = std::mem::take(&mut step.work.openings);
    let mut constraints = std::mem::take(&mut step.work.constraints);
    let (bodies, rows, mut block) = (&step.work.bodies, &step.work.rows, 0);
    openings.violation.clear();
    openings.violation.resize(rows.len(), 0.0);
    openings.jacobian.resize(rows.jacobian.len(), [0.0; 6]);
    for of in constraints.iter_mut().filter(|of| of.present) {
        (of.gauge)(step.world, bodies, &EvaluateAt::violations(&bodies.view), &mut |told: &RowSample<'_>| {
            let Some(i) = find(rows, &mut block, told).filter(|&i| rows.position_level[i]) else { return };
            openings.violation[i] = told.violation.clamp(-MOST, MOST);
            let own = &mut openings.jacobian[entries(&rows.blocks[block], i)];
            own.iter_mut().zip(told.jacobian).for_each(|(to, from)| *to = *from);
        });
    }
    step.work.constraints = constraints;
    openings
}

/// Where row `i` of a block has its twists, one for each of its bodies.
fn entries(block: &ConstraintBlock, i: usize) -> std::ops::Range<usize> {
    let first = block.entry as usize + (i - block.row as usize) * block.bodies as usize;
    first..first + block.bodies as usize
}

/// Displacements that close an island's joints; none where it has no joints.
fn project(island: &mut Island, bodies: &Bodies, rows: &Rows, openings: &Openings, local: &[u32]) {
    load(island, bodies, rows, openings, local);
    let projection = &mut island.projection;
    projection.solution.v.clear();
    if projection.problem.rows() > 0 {
        projection.solver.solve(&projection.problem, &mut projection.solution);
    }
}

/// The island's joints as a problem of their own.
fn load(island: &mut Island, bodies: &Bodies, rows: &Rows, openings: &Openings, local: &[u32]) {
    let problem = &mut island.projection.problem;
    problem.clear();
    // With the geometric stiffness of the step: links of a taut cable would be pushed aside rather than along it.
    problem.width.extend_from_slice(&island.problem.width);
    problem.mass.extend_from_slice(&island.problem.mass);
    problem.couplings.extend_from_slice(&island.problem.couplings);
    problem.momentum.resize(island.bodies.len(), [0.0; 6]);
    for block in island.blocks.iter().map(|&b| &rows.blocks[b as usize]) {
        let bending = (block.row..block.row + block.rows).filter(|&i| rows.position_level[i as usize]);
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let (row, body, entry) = (problem.d.len(), problem.block_bodies.len(), problem.jacobian.len());
        for i in bending.map(|i| i as usize) {
            let twists = slots.iter().zip(&openings.jacobian[entries(block, i)]);
            for (_, twist) in twists.filter(|&(&slot, _)| bodies.is_dynamic(slot)) {
                problem.jacobian.extend_from_slice(twist);
            }
            problem.d.push(openings.violation[i]);
            problem.compliance.push(rows.compliance[i]);
        }
        if problem.d.len() == row {
            continue;
        }
        let moving = slots.iter().filter(|&&slot| bodies.is_dynamic(slot));
        problem.block_bodies.extend(moving.map(|&slot| local[slot as usize]));
        problem.blocks.push(RowBlock {
            row: row as u32,
            rows: (problem.d.len() - row) as u32,
            body: body as u32,
            bodies: (problem.block_bodies.len() - body) as u32,
            entry: entry as u32,
            fold: block.fold,
        });
    }
    let n = problem.d.len();
    problem.lo.resize(n, f64::NEG_INFINITY);
    problem.hi.resize(n, f64::INFINITY);
    problem.kind.resize(n, RowKind::Joint);
}

/// Moves an island's bodies by what was found, unless it is no number.
fn displace(bodies: &mut Bodies, island: &Island) {
    let moves = island.projection.solution.v.chunks_exact(6);
    for (&slot, m) in island.bodies.iter().zip(moves).filter(|(_, m)| m.iter().all(|x| x.is_finite())) {
        let view = &mut bodies.view[slot as usize];
        view.position += DVec3::new(m[0], m[1], m[2]);
        view.rotation = turned(view.rotation, DVec3::new(m[3], m[4], m[5]), 1.0);
    }
}
