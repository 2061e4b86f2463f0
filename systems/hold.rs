//! The step of last resort, for islands whose joints Newton's method could not follow.
//!
//! A light link that is whipped about between a taut cable and a pile of contacts may turn so far in a step that no iteration
//! closes its joints. Whatever the last one left is no answer: its next closing would throw the load. So such an
//! island takes a step that can only lose energy. Joints hold as they stand at the middle pose and are closed gently if at
//! all, and a bound of their geometric stiffness resists the velocity itself:
//!
//! ```text
//!     (M + h²K) v⁺ = M v + Jᵀλ ,   J v⁺ = 0     ⇒     |v⁺|² in M + h²K = v⁺ᵀM v   ⇒   |v⁺| ≤ |v| in M
//! ```
//!
//! Contacts may only take energy too, but for their recovery from overlap, which is capped as ever. What it costs is the
//! whipping of the light links, which the step could not resolve anyway, and some of the swing while it lasts.

use super::assemble::{add_elements, mass_block, times};
use super::couple::solve_once;
use super::energy;
use super::newton::load_rows;
use super::parallel::for_each;
use super::solve::bring_back;
use crate::report::Cause;
use crate::schedule::Step;
use crate::solver::RowKind;
use crate::state::{Bodies, Island, Rows, Work};
use glam::DVec3;
use rayon::prelude::*;

/// Bodies at open joints may turn by so much in a step (rad).
const MAX_TURN: f64 = 0.5;

/// Greatest speed at which joints are closed (m/s or rad/s): slow enough to carry no energy worth mentioning.
const MAX_CLOSING_SPEED: f64 = 0.1;

/// Rows as they were before Newton's method.
#[derive(Default)]
pub struct Before {
    jacobian: Vec<[f64; 6]>,
    d: Vec<f64>,
    lambda: Vec<f64>,
}

impl Before {
    /// Keeps these.
    pub fn keep(&mut self, rows: &Rows) {
        self.jacobian.clone_from(&rows.jacobian);
        self.d.clone_from(&rows.d);
        self.lambda.clone_from(&rows.lambda);
    }

    /// Gives an island's rows back what they were.
    fn restore(&self, island: &Island, rows: &mut Rows) {
        for &b in &island.blocks {
            let block = &rows.blocks[b as usize];
            let entries = block.entry as usize..(block.entry + block.rows * block.bodies) as usize;
            let range = block.row as usize..(block.row + block.rows) as usize;
            rows.jacobian[entries.clone()].copy_from_slice(&self.jacobian[entries]);
            rows.d[range.clone()].copy_from_slice(&self.d[range]);
        }
    }
}

/// Holds the islands that are lost.
pub fn hold_lost_islands(step: &mut Step<'_>, before: &Before, lost_bodies: &[bool]) {
    let (dt, settings) = (step.dt, step.settings);
    step.report.held += step.work.islands.iter().filter(|i| i.lost).count() as u32;
    let Work { islands, bodies, rows, local, .. } = &mut *step.work;
    for island in islands.iter().filter(|i| i.lost) {
        before.restore(island, rows);
        limit_speeds(island, rows, [MAX_CLOSING_SPEED, settings.tuning.max_recovery_speed]);
    }
    for closing in [true, false] {
        let (b, r, local) = (&*bodies, &*rows, local.as_slice());
        for_each(islands.par_iter_mut(), |island| {
            if !island.lost {
                return;
            }
            load_rows(island, b, r, |_| true);
            load_masses(island, b, lost_bodies, dt);
            add_elements(island, b, r, local);
            load_bound(island, r, &before.lambda, dt);
            let earlier = island.stats.factorizations;
            island.stats = solve_once(island, settings);
            island.stats.factorizations += earlier;
        });
        for (number, island) in islands.iter_mut().enumerate().filter(|(_, i)| i.lost) {
            step.report.resolve(number, Cause::Held, island.rows.len(), island.stats.residual);
            bring_back(island, bodies, rows);
            // Without any closing there is nothing left that joints could have added.
            island.lost = closing && energy::gain(island, bodies) > 0.0;
            if island.lost {
                limit_speeds(island, rows, [0.0, settings.tuning.max_recovery_speed]);
            }
        }
    }
}

/// Limits the speeds at which joints are closed and overlaps recover.
fn limit_speeds(island: &Island, rows: &mut Rows, [joints, overlaps]: [f64; 2]) {
    for i in island.rows.iter().map(|&i| i as usize) {
        if rows.position_level[i] {
            rows.d[i] = rows.d[i].clamp(-joints, joints);
        } else if rows.kind[i] == RowKind::Normal {
            rows.d[i] = rows.d[i].max(-overlaps);
        }
    }
}

/// M and M v; what is lost keeps no more of its turning than a step can follow.
fn load_masses(island: &mut Island, bodies: &Bodies, lost: &[bool], dt: f64) {
    for (k, &slot) in island.bodies.iter().enumerate() {
        let mass = mass_block(&bodies.view[slot as usize]);
        let [v, mut w] = bodies.free[slot as usize];
        if lost[slot as usize] {
            w = w.clamp_length_max(MAX_TURN / dt);
        }
        let momentum = times(&mass, [v, w]);
        (island.problem.mass[k], island.problem.momentum[k]) = (mass, momentum);
    }
}

/// Adds h²K, bounded body by body: a force |λ|/h whose direction stays or turns with one of the bodies has at most |λ|/h
/// times its arm about every axis.
fn load_bound(island: &mut Island, rows: &Rows, lambda: &[f64], dt: f64) {
    let Island { problem, rows: numbers, .. } = island;
    for block in &problem.blocks {
        for row in 0..block.rows {
            let number = numbers[(block.row + row) as usize] as usize;
            if rows.kind[number] != RowKind::Joint {
                continue;
            }
            for k in 0..block.bodies {
                let j = &problem.jacobian[(block.entry + 6 * (row * block.bodies + k)) as usize + 3..][..3];
                let bound = dt * lambda[number].abs() * DVec3::from_slice(j).length();
                let body = problem.block_bodies[(block.body + k) as usize] as usize;
                (3..problem.width_of(body)).for_each(|c| problem.mass[body][7 * c] += bound);
            }
        }
    }
}
