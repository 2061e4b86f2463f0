//! Velocities across joints after the step, where it does not resolve the turning of their bodies.
//!
//! The chord step closes joints in the mean over a step; at its end they move apart by as much as they did at its start, the other way.
//! Where bodies turn so stiffly that nothing of it is resolved (hω beyond 6), a share σ of that velocity is taken away in the metric of the
//! masses, and the turning of joined bodies against each other is damped:
//!
//! ```text
//!     (M + D) δ = −D v + Jᵀ μ ,     J(q⁺) (v + δ) + (1/σ − 1) diag(J M⁻¹ Jᵀ) μ = 0
//! ```
//!
//! It only takes energy, and below hω = 6 nothing is done.

use super::Memory;
use super::attempt::{Attempt, Moment};
use super::pass::{Chord, State, damped, solve};
use crate::report::Cause;
use crate::schedule::Step;
use crate::state::{Bodies, Closing, Island, Rows, Work};
use crate::systems::assemble::mass_block;
use crate::systems::parallel::for_each;
use glam::DVec3;
use rayon::prelude::*;

/// Least compliance of a projected row, relative to J M⁻¹ Jᵀ.
const HARD: f64 = 1e-7;

/// Takes velocities across joints away where the step did not resolve them. Runs at the poses after the step.
pub fn project_velocities(step: &mut Step<'_>) {
    let projects = |i: &Island| i.chord.state == State::Closed && i.chord.sigma > 0.0;
    if !step.work.islands.iter().any(|i| projects(i)) {
        return;
    }
    let mut memory = std::mem::take(&mut step.work.chord);
    memory.look_at_ends(step);
    let Work { islands, bodies, rows, .. } = &mut *step.work;
    let (shown, b, r) = (&memory, &*bodies, &*rows);
    for_each(islands.par_iter_mut(), |island| {
        if projects(island) {
            project(island, shown, b, r);
        }
    });
    for (number, island) in islands.iter().enumerate().filter(|(_, i)| projects(i)) {
        step.report.factorizations += 1;
        step.report.resolve(
            number,
            Cause::Velocity,
            island.rows.len(),
            island.chord.r.iter().fold(0.0, |m: f64, r| m.max(r.abs())),
        );
        for (&slot, d) in island.bodies.iter().zip(island.chord.dv.chunks_exact(6)) {
            if d.iter().all(|x| x.is_finite()) {
                let view = &mut bodies.view[slot as usize];
                view.linear_velocity += DVec3::new(d[0], d[1], d[2]);
                view.angular_velocity += DVec3::new(d[3], d[4], d[5]);
            }
        }
    }
    step.work.chord = memory;
}

impl Memory {
    /// J at the poses after the step.
    fn look_at_ends(&mut self, step: &mut Step<'_>) {
        self.poses.clone_from(&step.work.bodies.view);
        self.chosen.clear();
        self.chosen.resize(self.poses.len(), false);
        for island in
            step.work.islands.iter().filter(|i| i.chord.state == State::Closed && i.chord.sigma > 0.0)
        {
            island.bodies.iter().for_each(|&slot| self.chosen[slot as usize] = true);
        }
        let moment = Moment { after: 0.0, dt: step.dt, step: step.dt };
        self.lambda.clone_from(&step.work.rows.lambda);
        self.jacobian.clone_from(&step.work.rows.jacobian);
        self.ends.clone_from(&self.poses);
        self.evaluate(step, &Attempt::chord(moment));
    }
}

fn project(island: &mut Island, memory: &Memory, bodies: &Bodies, rows: &Rows) {
    let Island { problem, chord, bodies: slots, blocks, .. } = &mut *island;
    let Chord { g, r, sigma, unresolved, damping, ease, .. } = &mut *chord;
    g.clear();
    g.resize(6 * slots.len(), 0.0);
    r.clear();
    r.resize(problem.rows(), 0.0);
    for (mass, &slot) in problem.mass.iter_mut().zip(slots.iter()) {
        *mass = mass_block(&bodies.view[slot as usize]);
    }
    ease.clear();
    ease.extend(problem.mass.iter().map(|m| [1.0 / m[0], ease_of_turning(m)]));
    damping.clear();
    damping.resize(slots.len(), [0.0; 9]);
    for (&b, to) in blocks.iter().zip(&problem.blocks) {
        let block = &rows.blocks[b as usize];
        let own = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let local = &problem.block_bodies[to.body as usize..(to.body + to.bodies) as usize];
        for row in 0..block.rows {
            let (i, k) = ((block.row + row) as usize, (to.row + row) as usize);
            let from = block.entry as usize + (row * block.bodies) as usize;
            let at = (to.entry + 6 * row * to.bodies) as usize;
            let (mut speed, mut tied) = (0.0, 0.0);
            let mut out = problem.jacobian[at..at + 6 * to.bodies as usize].chunks_exact_mut(6).zip(local);
            for (j, &slot) in memory.jacobian[from..].iter().zip(own) {
                let view = &bodies.view[slot as usize];
                let (linear, angular) = (DVec3::new(j[0], j[1], j[2]), DVec3::new(j[3], j[4], j[5]));
                speed += linear.dot(view.linear_velocity) + angular.dot(view.angular_velocity);
                if bodies.is_dynamic(slot)
                    && let Some((out, &body)) = out.next()
                {
                    out.copy_from_slice(j);
                    let [l, a] = ease[body as usize];
                    tied += l * linear.length_squared() + a * angular.length_squared();
                }
            }
            let holds = rows.closing[i] != Closing::Tangent;
            let soft = if holds { (1.0 / *sigma - 1.0).max(HARD) } else { 1.0 / HARD };
            problem.compliance[k] = soft * tied.max(f64::MIN_POSITIVE);
            r[k] = if holds { -speed } else { 0.0 };
        }
        if let [a, b] = *local {
            let (a, b) = (a as usize, b as usize);
            let share = damped(unresolved[a]).min(damped(unresolved[b]));
            if share > 0.0 {
                let turning = |k: usize| bodies.view[slots[k] as usize].angular_velocity;
                damp(share, [a, b], turning(b) - turning(a), &problem.mass, damping, g);
            }
        }
    }
    for (m, d) in problem.mass.iter_mut().zip(damping.iter()) {
        (0..9).for_each(|i| m[6 * (3 + i / 3) + 3 + i % 3] += d[i]);
    }
    solve(island, true);
}

fn ease_of_turning(mass: &[f64; 36]) -> f64 {
    let trace = mass[21] + mass[28] + mass[35];
    if trace > 0.0 { 3.0 / trace } else { 0.0 }
}

/// −D v of the turning of two bodies against each other, and a bound of D body by body: twice its diagonal.
fn damp(
    share: f64,
    [a, b]: [usize; 2],
    between: DVec3,
    mass: &[[f64; 36]],
    damping: &mut [[f64; 9]],
    momenta: &mut [f64],
) {
    let trace = |k: usize| mass[k][21] + mass[k][28] + mass[k][35];
    let lesser = &mass[if trace(a) < trace(b) { a } else { b }];
    let w = between.to_array();
    for i in 0..3 {
        for j in 0..3 {
            let d = share * lesser[6 * (3 + i) + 3 + j];
            damping[a][3 * i + j] += 2.0 * d;
            damping[b][3 * i + j] += 2.0 * d;
            momenta[6 * a + 3 + i] += d * w[j];
            momenta[6 * b + 3 + i] -= d * w[j];
        }
    }
}
