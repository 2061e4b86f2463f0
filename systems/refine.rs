//! Solving a step again along the curve that the bodies really take.
//!
//! With φ₀ at the pose of the rows, φ₁ at the pose after the step and φ₂ at the pose of the next rows, both for the velocity
//! just found, φ₁ + ½(φ₂ − φ₀) goes into d and the islands whose joints would be open are solved once more: Newton on the
//! joints' closing, with the same J. Nothing is foretold from the last step, so nothing can be driven by it.

use super::couple::{Solved, bound_friction};
use super::drift::fly;
use super::parallel::for_each;
use super::resolve::resolve_island;
use super::rows::find;
use super::solve::{bring_back, note_solves};
use super::stiffness::unresolved;
use crate::constraint::BodyView;
use crate::report::Cause;
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::{Bodies, EvaluateAt, Island, RowSample, Rows};
use rayon::prelude::*;

/// Follows joints along the curve as a rough solve foretells it, before friction is bounded and the end is sought: where the
/// interior point is at work, one solve to the end then does for two. How far a joint opens in a step goes with the square
/// of its turning, so that a thousandth of the velocities matters little; what it misses is left to
/// [`solve_along_the_curve`].
pub fn bend_rough_islands(step: &mut Step<'_>) {
    if !step.work.islands.iter().any(|i| i.position_level) {
        return;
    }
    let curve = openings(step);
    let Curve { shift, open } = &curve;
    let work = &mut *step.work;
    let (dt, settings, rows) = (step.dt, step.settings, &work.rows);
    for_each(work.islands.par_iter_mut(), |island| {
        if !island.position_level {
            return;
        }
        let bends = island.rows.iter().any(|&i| open[i as usize] > settings.tuning.refine_tolerance);
        if !bends {
            return bound_friction(island, rows, settings, Solved::Roughly);
        }
        let before = energy(island);
        bend(island, shift, 1.0 / dt);
        bound_friction(island, rows, settings, Solved::Before);
        if !island.stats.converged || energy(island) > MAX_ENERGY * before {
            bend(island, shift, -1.0 / dt);
            bound_friction(island, rows, settings, Solved::Before);
        }
    });
    for (number, island) in work.islands.iter_mut().enumerate().filter(|(_, i)| i.position_level) {
        note_solves(step.report, number, island, Cause::Curve);
        bring_back(island, &mut work.bodies, &mut work.rows);
        island.position_level = false;
    }
    work.curve = curve;
}

fn bend(island: &mut Island, shift: &[f64], rate: f64) {
    for (k, &i) in island.rows.iter().enumerate() {
        island.problem.d[k] += rate * shift[i as usize];
    }
}

/// Closing joints by a millimetre takes next to no energy. Where it seems to take more than this share, the joints cannot be
/// closed (a chain torn by a blow), and following them would only throw the bodies about.
const MAX_ENERGY: f64 = 1.5;

/// Solves islands again whose joints would be open.
pub fn solve_along_the_curve(step: &mut Step<'_>) {
    if step.work.islands.iter().all(|i| i.is_followed()) {
        return;
    }
    for _ in 0..step.settings.tuning.refine {
        let curve = openings(step);
        let Curve { shift, open } = &curve;
        let work = &mut *step.work;
        let (dt, settings, tolerance) = (step.dt, step.settings, step.settings.tuning.refine_tolerance);
        let again = |island: &Island| {
            !island.surprised
                && !island.is_followed()
                && island.rows.iter().any(|&i| open[i as usize] > tolerance)
        };
        for_each(work.islands.par_iter_mut(), |island| {
            if !again(island) {
                return;
            }
            bend(island, shift, 1.0 / dt);
            let before = (island.solution.clone(), island.stats, energy(island));
            resolve_island(island, settings);
            if !island.stats.converged || energy(island) > MAX_ENERGY * before.2 {
                let spent = island.stats.factorizations;
                (island.solution, island.stats) = (before.0, before.1);
                island.stats.factorizations = spent;
            }
        });
        for (number, island) in work.islands.iter().enumerate().filter(|(_, i)| again(i)) {
            step.report.resolve(number, Cause::Curve, island.rows.len(), island.stats.residual);
            bring_back(island, &mut work.bodies, &mut work.rows);
        }
        let done = !work.islands.iter().any(|i| again(i));
        work.curve = curve;
        if done {
            return;
        }
    }
}

/// Kinetic energy of an island's velocities, in the metric of its problem.
fn energy(island: &Island) -> f64 {
    let velocities = island.solution.v.chunks_exact(6);
    let twice: f64 = island.problem.mass.iter().zip(velocities).map(|(m, v)| quadratic(m, v)).sum();
    if island.problem.couplings.is_empty() {
        return 0.5 * twice;
    }
    let (v, mut taken) = (&island.solution.v, vec![0.0; island.solution.v.len()]);
    island.problem.subtract_coupled(v, &mut taken);
    0.5 * (twice - v.iter().zip(&taken).map(|(v, r)| v * r).sum::<f64>())
}

fn quadratic(m: &[f64; 36], v: &[f64]) -> f64 {
    (0..36).map(|k| v[k / 6] * m[k] * v[k % 6]).sum()
}

/// What is found along the curve, for every row that bends; memory is kept from step to step.
#[derive(Default)]
pub struct Curve {
    /// What to add to φ.
    shift: Vec<f64>,
    /// How far it would be open after the step.
    open: Vec<f64>,
}

/// Looks along the curve. Where no joint would be open beyond the tolerance, nothing will ask for the shifts, and they are not completed.
fn openings(step: &mut Step<'_>) -> Curve {
    let midpoint = step.settings.integrator == Integrator::Midpoint;
    let (n, dt) = (step.work.rows.len(), step.dt);
    let Curve { mut shift, mut open } = std::mem::take(&mut step.work.curve);
    for list in [&mut shift, &mut open] {
        list.clear();
        list.resize(n, 0.0);
    }
    if !step.work.rows.position_level.contains(&true) {
        return Curve { shift, open };
    }
    let mut poses = std::mem::take(&mut step.work.bodies.ahead);
    let mut constraints = std::mem::take(&mut step.work.constraints);
    let (bodies, rows) = (&step.work.bodies, &step.work.rows);
    poses.clear();
    poses.extend((0..bodies.len()).map(|slot| with_new_velocity(bodies, slot)));
    let passes: &[(f64, f64)] = if midpoint { &[(0.5, 1.0), (0.5, 0.5)] } else { &[(1.0, 1.0)] };
    for (pass, &(part, weight)) in passes.iter().enumerate() {
        poses.iter_mut().for_each(|view| fly(view, part * dt));
        let mut block = 0;
        for of in constraints.iter_mut().filter(|of| of.present) {
            (of.gauge)(step.world, bodies, &EvaluateAt::violations(&poses), &mut |told: &RowSample<'_>| {
                let Some(i) = find(rows, &mut block, told).filter(|&i| rows.position_level[i]) else {
                    return;
                };
                let weight = weight * resolved(bodies, rows, block, dt);
                shift[i] += weight * told.violation;
                if pass == 0 {
                    open[i] = weight * told.violation.abs();
                } else {
                    shift[i] -= weight * rows.violation[i];
                }
            });
        }
        if !open.iter().any(|&open| open > step.settings.tuning.refine_tolerance) {
            break;
        }
    }
    step.work.constraints = constraints;
    step.work.bodies.ahead = poses;
    Curve { shift, open }
}

/// How much of the turning of a constraint's bodies the step resolves. Between two links of a taut chain there is next to
/// nothing to follow, and following the noise would take away the margin that geometric stiffness gives.
fn resolved(bodies: &Bodies, rows: &Rows, block: usize, dt: f64) -> f64 {
    let block = &rows.blocks[block];
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let moving = slots.iter().filter(|&&slot| bodies.is_dynamic(slot));
    let noise = moving.map(|&slot| match bodies.stiffness.get(slot as usize) {
        Some(k) => unresolved(k, &bodies.view[slot as usize], dt),
        None => 0.0,
    });
    1.0 - noise.fold(1.0, f64::min)
}

pub(super) fn with_new_velocity(bodies: &Bodies, slot: usize) -> BodyView {
    let mut view = bodies.view[slot];
    if bodies.is_dynamic(slot as u32) {
        [view.linear_velocity, view.angular_velocity] = bodies.velocity[slot];
    }
    view
}
