//! Newton's method for islands whose joints are surprised.
//!
//! The step takes directions of joint forces from the middle pose, and their geometric stiffness from the forces of the last
//! step. That is one Newton iteration of an implicit midpoint step, and where forces change little it is as good as
//! many. It is not when a slack chain snaps taut or a load is struck: the stiffness of a step ago says nothing about
//! the force of now, light links are thrown about, and each closing of their joints tugs at the load until it flies.
//!
//! For such islands the step is solved implicitly, for the velocity v⁺ whose joints are closed at the **next** middle pose B
//! under forces that act at the pose A half-way there:
//!
//! ```text
//!     M (v⁺ − v) = h f + J(A)ᵀ λ ,      φ(B) = 0 ,      A = Q ⊕ ½h v⁺ ,   B = Q ⊕ h v⁺
//! ```
//!
//! A chord's slope is that of its middle: h J(A) v⁺ = φ(B) − φ(Q) = 0, so joints do no work on v⁺ and the island loses
//! ½|v⁺ − v|² of kinetic energy, whatever the forces, the masses and the step: nothing can be whirled up. In a smooth swing
//! that loss would be felt (0.7 m of 10 m on a 20 m chain in 10 s), which is why only surprised islands are solved so.
//!
//! Each iteration is one solve of the step's own form: (M + ½h²K(λ)) v⁺ with ½h²K v⁺ᵏ on the right, so that K only helps to
//! arrive. An iteration turns no body by more than `MAX_TURN`; unbounded ones go round in circles. Contacts, stops and ropes
//! are decided in every iteration, mostly by confirming the last one's (see [`super::resolve`]). Where no iteration closes
//! the joints, a link whipped about in a pile of others, say, the island is held (see [`super::hold`]).

use super::assemble::{add_elements, mass_block, times};
use super::drift::fly;
use super::energy;
use super::hold::{Before, hold_lost_islands};
use super::integrate::store_impulses;
use super::parallel::for_each;
use super::refine::with_new_velocity;
use super::resolve::{has_sides, resolve_island};
use super::rows::find;
use super::solve::bring_back;
use super::stiffness::{add, cut_negative};
use crate::constraint::{BodyView, Stiffness};
use crate::report::Cause;
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::{Bodies, Closing, ConstraintBlock, EvaluateAt, Island, RowSample, RowVisitor, Rows, Work};
use glam::DVec3;
use rayon::prelude::*;
use std::cell::LazyCell;

/// Greatest turn of a body in one iteration (rad).
const MAX_TURN: f64 = 0.7;

/// A joint is surprised when its force grows by more than this factor from one step to the next. In the fastest swings
/// measured (a chain released horizontally) it is two, and the β = ½ of the regular step is stable up to just that.
const MAX_GROWTH: f64 = 3.0;

/// A joint between bodies that are both stiff is surprised when they turn against each other by more than this in a step
/// (rad). Links of a swinging chain, which turn together, stay below a fifth of it, its fixed end below two thirds.
const MAX_BEND: f64 = 0.1;

/// Joints of stiff bodies are surprised when they would add more than this share to the island's kinetic energy, which true
/// joints never do. In smooth swings it is below 1e-4 of it; planks of a bridge that bounce under a load trade up to 0.06
/// with what geometric stiffness holds for them.
const MAX_GAIN: f64 = 0.1;

/// A body is stiff where (hω)² of a joint's force on it is beyond this: the step no longer resolves its turning.
const STIFF: f64 = 1.0;

/// Beyond this (hω)², a step that does not know of the force is unstable.
const UNSTABLE: f64 = 4.0;

/// Closed to this (m or rad), iterations end: a tenth of the millimetre that joints are to hold.
const CLOSED: f64 = 1e-4;

/// So many iterations without getting closer end it where contacts or stops may be in the way.
const PATIENCE: u32 = 4;

/// Open by more than this (m or rad) after the last iteration, an island is lost.
const LOST: f64 = 5e-3;

/// Greatest opening that one iteration tries to close (m or rad).
const MAX_CLOSING: f64 = 0.05;

/// Buffers, kept from step to step.
#[derive(Default)]
pub struct Memory {
    half: Vec<BodyView>,
    end: Vec<BodyView>,
    stiffness: Vec<[f64; 36]>,
    violation: Vec<f64>,
    chosen: Vec<bool>,
    /// Bodies at joints that could not be closed.
    lost: Vec<bool>,
    before: Before,
}

/// Solves islands implicitly whose joints are surprised.
pub fn solve_surprised_islands(step: &mut Step<'_>) {
    step.work.islands.iter_mut().for_each(|i| i.surprised = false);
    solve_those_still_open(step);
}

/// Once more for islands that were solved anew since, because surfaces would overlap where the joints led.
pub fn solve_those_still_open(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let (dt, bodies, rows) = (step.dt, &work.bodies, &work.rows);
    let wanted = step.settings.tuning.newton > 0 && step.settings.integrator == Integrator::Midpoint;
    for_each(work.islands.par_iter_mut(), |i| {
        i.followed = i.surprised;
        i.surprised = wanted && !i.is_followed() && is_surprised(i, bodies, rows, dt);
    });
    if !work.islands.iter().any(|i| i.surprised) {
        return;
    }
    let mut memory = std::mem::take(&mut work.newton);
    memory.choose(work);
    memory.before.keep(&work.rows);
    follow(step, &mut memory);
    if memory.find_lost(step) {
        hold_lost_islands(step, &memory.before, &memory.lost);
    }
    step.work.newton = memory;
}

/// Newton's iterations. The last thing done is to look how far the joints are open.
fn follow(step: &mut Step<'_>, memory: &mut Memory) {
    let work = &mut *step.work;
    let sided = work.islands.iter().any(|i| i.surprised && has_sides(i));
    let (mut least, mut idle) = (f64::INFINITY, 0);
    for iteration in 0..=step.settings.tuning.newton {
        memory.look_ahead(step);
        let open = memory.gauge(step, true);
        let followed = iteration > 0 || step.work.islands.iter().all(|i| !i.surprised || i.followed);
        let ends = iteration == step.settings.tuning.newton || open <= CLOSED || sided && idle >= PATIENCE;
        if followed && ends {
            break;
        }
        idle = if open < 0.9 * least { 0 } else { idle + 1 };
        least = least.min(open);
        // Constraints read the forces behind their geometric stiffness from where the last step's are kept.
        store_impulses(step);
        memory.gauge(step, false);
        iterate(step, memory);
    }
}

/// Does one of the island's joints carry a force, or turn, in a way that the last step's forces do not foretell?
fn is_surprised(island: &Island, bodies: &Bodies, rows: &Rows, dt: f64) -> bool {
    let gains = LazyCell::new(|| {
        energy::gain_by_joints(island, bodies, rows) > MAX_GAIN * energy::free(island, bodies)
    });
    island.blocks.iter().any(|&b| {
        let block = &rows.blocks[b as usize];
        let range = block.row as usize..(block.row + block.rows) as usize;
        if !range.clone().any(|i| rows.position_level[i]) {
            return false;
        }
        let size = |l: &[f64]| {
            range.clone().filter(|&i| rows.position_level[i]).map(|i| l[i] * l[i]).sum::<f64>().sqrt()
        };
        let (now, before) = (size(&rows.lambda), size(&rows.before));
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let stiffness = |k: usize| stiffness(block, k, now, bodies, rows, dt);
        let all_stiff = || (0..slots.len()).all(|k| !bodies.is_dynamic(slots[k]) || stiffness(k) > STIFF);
        let grown = now > MAX_GROWTH * before && (0..slots.len()).any(|k| stiffness(k) > UNSTABLE);
        grown || all_stiff() && (dt * bend(block, bodies, rows) > MAX_BEND || *gains)
    })
}

/// (hω)² of the turning that a force of this impulse at the block's arms gives a body; zero for those that do not move.
fn stiffness(block: &ConstraintBlock, k: usize, impulse: f64, bodies: &Bodies, rows: &Rows, dt: f64) -> f64 {
    let slot = rows.body[block.body as usize + k];
    if !bodies.is_dynamic(slot) {
        return 0.0;
    }
    let view = &bodies.view[slot as usize];
    if !view.rotates() {
        return 0.0;
    }
    let inertia = (view.inertia.x_axis.x + view.inertia.y_axis.y + view.inertia.z_axis.z) / 3.0;
    dt * impulse * arm(block, k, rows) / inertia
}

/// Length of a body's arm: three rows along the axes at an arm r have the angular parts r × e, of which the squares sum to 2r².
fn arm(block: &ConstraintBlock, k: usize, rows: &Rows) -> f64 {
    let squares = angular_parts(block, k, rows).map(|w| w.length_squared()).sum::<f64>();
    (0.5 * squares).sqrt()
}

fn angular_parts<'a>(
    block: &'a ConstraintBlock,
    k: usize,
    rows: &'a Rows,
) -> impl Iterator<Item = DVec3> + 'a {
    (0..block.rows.min(3)).map(move |row| {
        let j = &rows.jacobian[(block.entry + row * block.bodies) as usize + k];
        DVec3::new(j[3], j[4], j[5])
    })
}

/// Greatest angular velocity (rad/s) with which two bodies of a block turn the arm of one against the other's. Spin about
/// the arm, which a ball joint leaves free and which moves no anchor, is not in it.
fn bend(block: &ConstraintBlock, bodies: &Bodies, rows: &Rows) -> f64 {
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let turning = |k: usize| bodies.velocity[slots[k] as usize][1];
    let mut most = 0.0f64;
    for k in 1..slots.len() {
        let between = turning(k) - turning(k - 1);
        for body in [k - 1, k].into_iter().filter(|&b| bodies.is_dynamic(slots[b])) {
            let moved = angular_parts(block, body, rows)
                .map(|w| w.dot(between))
                .map(|turn| turn * turn)
                .sum::<f64>()
                .sqrt();
            most = most.max(moved / arm(block, body, rows).max(1e-9));
        }
    }
    most
}

impl Memory {
    fn choose(&mut self, work: &Work) {
        self.chosen.clear();
        self.chosen.resize(work.bodies.len(), false);
        for island in work.islands.iter().filter(|i| i.surprised) {
            island.bodies.iter().for_each(|&slot| self.chosen[slot as usize] = true);
        }
    }

    /// Marks islands and bodies whose joints are still open, or were and could only be closed with violence. Are there any?
    fn find_lost(&mut self, step: &mut Step<'_>) -> bool {
        let Work { islands, rows, bodies, .. } = &mut *step.work;
        self.lost.clear();
        self.lost.resize(self.chosen.len(), false);
        for island in islands.iter_mut() {
            island.lost = false;
            let gained = island.surprised && energy::gain(island, bodies) > 0.0;
            for block in island.blocks.iter().map(|&b| &rows.blocks[b as usize]).filter(|_| island.surprised)
            {
                let range = block.row as usize..(block.row + block.rows) as usize;
                let open =
                    |i: usize| self.violation[i].abs() > LOST || gained && rows.violation[i].abs() > LOST;
                if range.into_iter().any(|i| rows.position_level[i] && open(i)) {
                    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
                    slots.iter().for_each(|&slot| self.lost[slot as usize] = true);
                    island.lost = true;
                }
            }
        }
        islands.iter().any(|i| i.lost)
    }

    /// Poses A and B for the velocity as it is now.
    fn look_ahead(&mut self, step: &Step<'_>) {
        let (bodies, half) = (&step.work.bodies, 0.5 * step.dt);
        self.half.clear();
        self.half.extend((0..bodies.len()).map(|slot| with_new_velocity(bodies, slot)));
        for (view, _) in self.half.iter_mut().zip(&self.chosen).filter(|(v, c)| **c || !v.is_dynamic()) {
            fly(view, half);
        }
        self.end.clone_from(&self.half);
        for (view, _) in self.end.iter_mut().zip(&self.chosen).filter(|(v, c)| **c || !v.is_dynamic()) {
            fly(view, half);
        }
    }

    /// Evaluates the chosen constraints: violations at B, or everything else at A. Returns the largest opening of a
    /// two-sided rigid row.
    fn gauge(&mut self, step: &mut Step<'_>, at_end: bool) -> f64 {
        let mut constraints = std::mem::take(&mut step.work.constraints);
        let Work { bodies, rows, .. } = &mut *step.work;
        let (poses, share) = if at_end { (&self.end, 0.0) } else { (&self.half, 0.5) };
        let question = EvaluateAt {
            dt: step.dt,
            stiffness_share: share,
            only: Some(self.chosen.as_slice()),
            ..EvaluateAt::violations(poses)
        };
        let mut open = 0.0f64;
        if at_end {
            self.violation.clear();
            self.violation.resize(rows.len(), 0.0);
            let mut block = 0;
            for of in constraints.iter_mut().filter(|of| of.present) {
                (of.gauge)(step.world, bodies, &question, &mut |told: &RowSample<'_>| {
                    let Some(i) = find(rows, &mut block, told) else { return };
                    self.violation[i] = told.violation;
                    if rows.position_level[i] {
                        open = open.max(told.violation.abs());
                    }
                });
            }
        } else {
            self.stiffness.clear();
            self.stiffness.resize(bodies.len(), [0.0; 36]);
            let stiffness = &mut self.stiffness;
            let mut rewrite =
                Rewrite { rows, bodies, stiffness, violation: &self.violation, dt: step.dt, block: 0 };
            for of in constraints.iter_mut().filter(|of| of.present) {
                (of.gauge)(step.world, bodies, &question, &mut rewrite);
            }
        }
        step.work.constraints = constraints;
        open
    }
}

/// Takes J and d at A into the rows.
struct Rewrite<'a> {
    rows: &'a mut Rows,
    bodies: &'a Bodies,
    stiffness: &'a mut [[f64; 36]],
    violation: &'a [f64],
    dt: f64,
    block: usize,
}

impl RowVisitor for Rewrite<'_> {
    fn row(&mut self, told: &RowSample<'_>) {
        let Some(i) = find(self.rows, &mut self.block, told) else { return };
        if is_sprung(self.rows.closing[i]) {
            return;
        }
        let block = &self.rows.blocks[self.block];
        let first = block.entry as usize + (i - block.row as usize) * block.bodies as usize;
        self.rows.jacobian[first..first + told.jacobian.len()].copy_from_slice(told.jacobian);
        let slots = &self.rows.body[block.body as usize..(block.body + block.bodies) as usize];
        self.rows.d[i] = match self.rows.closing[i] {
            // φ(B) at the velocity sought is φ(B) at the present one and h J times the difference; what the row does
            // not correct in a step stays open.
            Closing::Share(share) => {
                let open = self.violation[i] - (1.0 - share) * violated(self.rows, i);
                open.clamp(-MAX_CLOSING, MAX_CLOSING) / self.dt
                    - speed(told.jacobian, slots, self.bodies)
                    - told.target_velocity
            }
            _ => -told.target_velocity,
        };
    }

    fn stiffness(&mut self, slot: u32, stiffness: &Stiffness) {
        add(&mut self.stiffness[slot as usize], stiffness);
    }
}

/// Does the row keep its J and d, as springs and contacts do?
fn is_sprung(closing: Closing) -> bool {
    matches!(closing, Closing::Spring { .. } | Closing::Contact)
}

/// By how much a row was violated at the start of the step; a one-sided row on its slack side was not.
fn violated(rows: &Rows, i: usize) -> f64 {
    let phi = rows.violation[i];
    let slack = (rows.lo[i] == 0.0 && phi > 0.0) || (rows.hi[i] == 0.0 && phi < 0.0);
    if slack { 0.0 } else { phi }
}

/// J v⁺ with the velocities as they are now.
fn speed(jacobian: &[[f64; 6]], slots: &[u32], bodies: &Bodies) -> f64 {
    let parts = jacobian.iter().zip(slots).map(|(j, &slot)| {
        let [v, w] = bodies.velocity[slot as usize];
        DVec3::new(j[0], j[1], j[2]).dot(v) + DVec3::new(j[3], j[4], j[5]).dot(w)
    });
    parts.sum()
}

/// One solve of every surprised island with what was found at A and B.
fn iterate(step: &mut Step<'_>, memory: &Memory) {
    let (dt, settings) = (step.dt, step.settings);
    let Work { islands, bodies, rows, local, .. } = &mut *step.work;
    let (b, r, local) = (&*bodies, &*rows, local.as_slice());
    for_each(islands.par_iter_mut(), |island| {
        if !island.surprised {
            return;
        }
        load_masses(island, b, &memory.stiffness, dt);
        add_elements(island, b, r, local);
        load_rows(island, b, r, |i| !is_sprung(r.closing[i]));
        load_torques(island, b, dt);
        resolve_island(island, settings);
        limit_turn(island, b, dt);
    });
    for (number, island) in islands.iter().enumerate().filter(|(_, i)| i.surprised) {
        step.report.resolve(number, Cause::Surprise, island.rows.len(), island.stats.residual);
        bring_back(island, bodies, rows);
    }
}

/// M + ½h²K and M v_free + ½h²K v⁺ᵏ.
fn load_masses(island: &mut Island, bodies: &Bodies, stiffness: &[[f64; 36]], dt: f64) {
    let share = 0.5 * dt * dt;
    for (k, &slot) in island.bodies.iter().enumerate() {
        let slot = slot as usize;
        let mut mass = mass_block(&bodies.view[slot]);
        let mut momentum = times(&mass, bodies.free[slot]);
        let mut stiffness = stiffness[slot];
        cut_negative(&mut stiffness);
        let kv = times(&stiffness, bodies.velocity[slot]);
        mass.iter_mut().zip(&stiffness).for_each(|(m, k)| *m += share * k);
        momentum.iter_mut().zip(kv).for_each(|(p, kv)| *p += share * kv);
        (island.problem.mass[k], island.problem.momentum[k]) = (mass, momentum);
    }
}

/// Torques of joints turn with their bodies as well. Their stiffness couples the two, so each one's block takes a bound of
/// it: |τ| about every axis.
fn load_torques(island: &mut Island, bodies: &Bodies, dt: f64) {
    let Island { problem, solution, bodies: slots, .. } = island;
    for block in &problem.blocks {
        for row in 0..block.rows {
            let share = 0.5 * dt * solution.lambda[(block.row + row) as usize].abs();
            for k in 0..block.bodies {
                let entry = (block.entry + 6 * (row * block.bodies + k)) as usize;
                if problem.jacobian[entry..entry + 3] != [0.0; 3] {
                    continue;
                }
                let body = problem.block_bodies[(block.body + k) as usize] as usize;
                if problem.width_of(body) < 6 {
                    continue;
                }
                let w = bodies.velocity[slots[body] as usize][1].to_array();
                for (c, w) in w.into_iter().enumerate() {
                    problem.mass[body][7 * (3 + c)] += share;
                    problem.momentum[body][3 + c] += share * w;
                }
            }
        }
    }
}

/// J and d of the rows that are `wanted`, fixed and kinematic bodies moved into d.
pub(super) fn load_rows(island: &mut Island, bodies: &Bodies, rows: &Rows, wanted: impl Fn(usize) -> bool) {
    let problem = &mut island.problem;
    for (&b, to) in island.blocks.iter().zip(&problem.blocks) {
        let block = &rows.blocks[b as usize];
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        for row in 0..block.rows {
            let i = (block.row + row) as usize;
            if !wanted(i) {
                continue;
            }
            let mut d = rows.d[i];
            let mut at = (to.entry + 6 * row * to.bodies) as usize;
            for (k, &slot) in slots.iter().enumerate() {
                let j = &rows.jacobian[(block.entry + row * block.bodies) as usize + k];
                if bodies.is_dynamic(slot) {
                    problem.jacobian[at..at + 6].copy_from_slice(j);
                    at += 6;
                } else {
                    d += speed(std::slice::from_ref(j), &[slot], bodies);
                }
            }
            problem.d[(to.row + row) as usize] = d;
        }
    }
}

/// Each body goes only as far towards its new velocity as [`MAX_TURN`] allows.
fn limit_turn(island: &mut Island, bodies: &Bodies, dt: f64) {
    for (&slot, v) in island.bodies.iter().zip(island.solution.v.chunks_exact_mut(6)) {
        let [a, b] = bodies.velocity[slot as usize];
        let turn = dt * (DVec3::new(v[3], v[4], v[5]) - b).length();
        // Also where the solve failed and the turn is not a number.
        if turn <= MAX_TURN {
            continue;
        }
        let share = if turn.is_finite() { MAX_TURN / turn } else { 0.0 };
        for (v, old) in v.iter_mut().zip([a.x, a.y, a.z, b.x, b.y, b.z]) {
            *v = if share > 0.0 { old + share * (*v - old) } else { old };
        }
    }
}
