//! The chord step: how islands with joints move.
//!
//! Bodies drift to the middle pose B, forces act there along the chord of the step, and joints are closed at its end:
//!
//! ```text
//!     M_B (V⁺ − V) = h f + J̄ᵀ λ ,     φ(q⁺) + h C λ = 0 ,     q⁺ = B drifted ½h by V⁺
//! ```
//!
//! J̄ is the discrete gradient of φ between the poses q and q⁺ (see [`discrete`]), so closed joints do no work at any step. The equations
//! are solved by a simplified Newton's method (see [`pass`]): geometric stiffness K is in its tangent alone. What is converged does not
//! depend on K, so K brakes nothing and adds no inertia; it only helps to arrive. One factorization serves several right-hand sides.
//!
//! | what follows what | when |
//! |---|---|
//! | another right-hand side with the same factor | joints are open by more than 1 µm, or 1e-7 of the energy is work that no row does |
//! | another factorization | the error fell by less than half |
//! | two and four parts of the step | sixteen passes were not enough, or energy came from nowhere |
//! | forces at the start (θ = 1) of the step, its halves, quarters and eighths, which only loses ½\|V⁺ − V\|² | parts were not enough |
//! | the wings of the old step (newton, hold) | none of these arrived |
//!
//! Where the step does not resolve the turning of bodies, velocities across their joints are projected afterwards (see [`velocity`]).

mod acceleration;
pub mod attempt;
pub mod discrete;
pub mod pass;
pub mod velocity;

use super::couple::{self, HELPED, is_shared};
use super::drift::fly;
use super::parallel::for_each;
use super::rows::{Ease, find};
use super::stiffness::add;
use super::{assemble, gather};
use crate::components::BodyKind;
use crate::constraint::{BodyView, Stiffness, Twist};
use crate::schedule::Step;
use crate::settings::{Integrator, Settings};
use crate::solver::Method;
use crate::state::{
    Bodies, Closing, ConstraintBlock, EvaluateAt, Island, RowSample, RowVisitor, Rows, Scheme, Work,
};
use attempt::{Attempt, Moment};
use discrete::Motion;
use glam::DVec3;
use pass::State;
use rayon::prelude::*;

/// Parts of a step that are tried where the whole is not followed, and whether a part may lose energy.
const FALLBACKS: [(u32, bool); 6] = [(2, false), (4, false), (1, true), (2, true), (4, true), (8, true)];

/// hω of springs that the step does not resolve: islands with such (cables that resist bending) take the step of before.
const STIFFEST: f64 = 2.0;

/// Buffers by slot and by row, kept from step to step.
#[derive(Default)]
pub struct Memory {
    /// Poses at which constraints are evaluated.
    poses: Vec<BodyView>,
    /// Poses at the end of the step, where their violations are.
    ends: Vec<BodyView>,
    /// Bodies of islands that are being followed.
    chosen: Vec<bool>,
    /// Bodies that rows of these tie and no impulse moves, at the start of the step.
    carriers: Vec<(u32, BodyView, Motion)>,
    /// J at `poses`.
    jacobian: Vec<[f64; 6]>,
    /// φ at `ends`.
    violation: Vec<f64>,
    /// Geometric stiffness of the impulses by slot.
    stiffness: Vec<[f64; 36]>,
    /// Impulses by row.
    lambda: Vec<f64>,
    /// Share of h²K for which rows of geometric stiffness were written.
    beta: f64,
}

/// Follows islands with joints; those that do not arrive are left to the solve that comes next.
pub fn follow_joints(step: &mut Step<'_>) {
    let (settings, dt) = (step.settings, step.dt);
    let Work { islands, bodies, rows, .. } = &mut *step.work;
    let mut any = false;
    for island in islands.iter_mut() {
        let follows = is_followed(island, bodies, rows, settings, dt);
        island.chord.state = if follows { State::Active } else { State::Idle };
        any |= follows;
    }
    if !any {
        return;
    }
    let mut memory = std::mem::take(&mut step.work.chord);
    memory.beta = settings.tuning.geometric_stiffness;
    memory.begin(step.work, dt);
    memory.choose(step.work);
    let whole = Moment { after: 0.0, dt, step: dt };
    memory.attempt(step, &Attempt::chord(whole));
    memory.finish(step.work, dt, true);
    for (parts, decays) in FALLBACKS {
        memory.again(step.work, parts);
        if !step.work.islands.iter().any(|i| i.chord.state == State::Active) {
            break;
        }
        memory.follow_in_parts(step, parts, decays);
        memory.finish(step.work, dt, false);
    }
    step.work.chord = memory;
    give_back(step);
}

/// Is the island one of joints alone, whose rows the step knows how to close?
fn is_followed(island: &Island, bodies: &Bodies, rows: &Rows, settings: &Settings, dt: f64) -> bool {
    let direct = matches!(settings.method, Method::Auto | Method::Bpp | Method::Ipm | Method::SchurIpm);
    if settings.integrator != Integrator::Midpoint
        || !direct
        || island.cut.scheme == Scheme::CouplingLoop
        || !island.cut.running
        || !island.elements.is_empty()
    {
        return false;
    }
    let moves = |slot: &u32| bodies.is_dynamic(*slot);
    let closes = |&b: &u32| {
        let block = &rows.blocks[b as usize];
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let mut own = block.row as usize..(block.row + block.rows) as usize;
        !block.fold && slots.iter().any(moves) && own.all(|i| is_closed(block, i, bodies, rows, dt))
    };
    let holds = |&i: &u32| rows.closing[i as usize] != Closing::Tangent;
    island.blocks.iter().all(closes) && island.rows.iter().any(holds)
}

/// Is it a row without bounds whose violation the step can close?
fn is_closed(block: &ConstraintBlock, i: usize, bodies: &Bodies, rows: &Rows, dt: f64) -> bool {
    if rows.lo[i] != f64::NEG_INFINITY || rows.hi[i] != f64::INFINITY {
        return false;
    }
    match rows.closing[i] {
        Closing::Share(_) => rows.position_level[i],
        Closing::Tangent => true,
        Closing::Spring { stiffness, .. } => {
            // No w₀: of d = kφ/(hk + c) − w₀ nothing is left but the first term, C being 1/(h(hk + c)).
            let rest = stiffness * rows.violation[i] * dt * rows.compliance[i];
            let rests = (rest - rows.d[i]).abs() <= 1e-9 * rest.abs();
            rests && dt * (stiffness * tied(block, i, bodies, rows)).sqrt() < STIFFEST
        }
        Closing::Velocity | Closing::Contact => false,
    }
}

/// J M⁻¹ Jᵀ of a row, roughly.
fn tied(block: &ConstraintBlock, i: usize, bodies: &Bodies, rows: &Rows) -> f64 {
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let first = block.entry as usize + (i - block.row as usize) * slots.len();
    let of = |(j, &slot): (&[f64; 6], &u32)| {
        let twist = Twist { linear: DVec3::new(j[0], j[1], j[2]), angular: DVec3::new(j[3], j[4], j[5]) };
        Ease::of(bodies, slot).along(&twist)
    };
    rows.jacobian[first..].iter().zip(slots).map(of).sum()
}

/// Islands that did not arrive get their problems back, for the solve that comes next; the others are done.
fn give_back(step: &mut Step<'_>) {
    let mut lost = false;
    for (number, island) in step.work.islands.iter_mut().enumerate() {
        if island.chord.state != State::Idle {
            for &(cause, residual) in &island.chord.log {
                step.report.resolve(number, cause, island.rows.len(), residual);
            }
        }
        match island.chord.state {
            State::Closed => {
                island.cut.running = false;
                island.cut.iterations = 1;
                island.position_level = false;
                island.friction_shift = 0.0;
                island.chord.answer(&mut island.problem, &mut island.solution, &mut island.stats);
            }
            State::Open | State::Active => {
                island.chord.state = State::Idle;
                island.needs_solve = true;
                step.work.spent.1 += island.chord.factorizations;
                lost = true;
            }
            State::Idle => {}
        }
    }
    if lost {
        assemble::assemble_needed(step);
        couple::load_partitions(step);
    }
}

impl Memory {
    /// Where everything begins, and the kicks of the forces.
    fn begin(&mut self, work: &mut Work, dt: f64) {
        let Work { islands, bodies, rows, .. } = work;
        let n = bodies.len();
        self.poses.resize(n, BodyView::WORLD);
        self.ends.resize(n, BodyView::WORLD);
        self.stiffness.resize(n, [0.0; 36]);
        self.jacobian.clone_from(&rows.jacobian);
        self.violation.clone_from(&rows.violation);
        self.lambda.clone_from(&rows.lambda);
        self.chosen.clear();
        self.chosen.resize(n, false);
        self.carriers.clear();
        for island in islands.iter_mut().filter(|i| i.chord.state == State::Active) {
            island.chord.begin(&island.bodies, &island.rows, bodies, rows, dt);
            for block in island.blocks.iter().map(|&b| &rows.blocks[b as usize]) {
                let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
                for &slot in slots.iter().filter(|&&slot| !bodies.is_dynamic(slot)) {
                    let mut view = bodies.view[slot as usize];
                    // Sleepers and bodies in quarantine stand still.
                    if view.kind == BodyKind::Dynamic {
                        view.kind = BodyKind::Fixed;
                    }
                    fly(&mut view, -0.5 * dt);
                    self.carriers.push((slot, view, Motion::default()));
                }
            }
        }
        self.carriers.sort_unstable_by_key(|(slot, ..)| *slot);
        self.carriers.dedup_by_key(|(slot, ..)| *slot);
    }

    /// Islands that did not arrive are active once more, from the start of the step.
    fn again(&mut self, work: &mut Work, parts: u32) {
        for island in work.islands.iter_mut().filter(|i| i.chord.state == State::Open) {
            island.chord.restart(parts);
        }
        self.choose(work);
    }

    /// Bodies of active islands, and no others, are evaluated.
    fn choose(&mut self, work: &Work) {
        self.chosen.fill(false);
        for island in work.islands.iter().filter(|i| i.chord.state == State::Active) {
            island.bodies.iter().for_each(|&slot| self.chosen[slot as usize] = true);
        }
    }

    /// One step, or a part of it, of all active islands. Were there any?
    fn attempt(&mut self, step: &mut Step<'_>, attempt: &Attempt) -> bool {
        let active = |i: &Island| i.chord.state == State::Active;
        if !step.work.islands.iter().any(|i| active(i)) {
            return false;
        }
        let Work { islands, bodies, .. } = &mut *step.work;
        for island in islands.iter_mut().filter(|i| active(i)) {
            island.chord.begin_attempt(attempt, &island.bodies, bodies);
            for (&slot, view) in island.bodies.iter().zip(&island.chord.start) {
                self.ends[slot as usize] = *view;
            }
        }
        for &(slot, start, _) in &self.carriers {
            let mut view = start;
            fly(&mut view, attempt.moment.after);
            self.ends[slot as usize] = view;
        }
        self.evaluate_ends(step);
        let violation = &self.violation;
        for island in step.work.islands.iter_mut().filter(|i| active(i)) {
            island.chord.note_start(&island.rows, violation);
        }
        self.place_carriers(attempt);
        for pass in 0..=attempt.passes {
            let Work { islands, .. } = &mut *step.work;
            for island in islands.iter_mut().filter(|i| active(i)) {
                island.chord.place(attempt);
                for (k, &slot) in island.bodies.iter().enumerate() {
                    self.poses[slot as usize] = island.chord.mean[k];
                    self.ends[slot as usize] = island.chord.end[k];
                    self.stiffness[slot as usize] = [0.0; 36];
                }
                for (&row, &lambda) in island.rows.iter().zip(&island.chord.lambda) {
                    self.lambda[row as usize] = lambda;
                }
            }
            self.evaluate(step, attempt);
            let Work { islands, bodies, rows, .. } = &mut *step.work;
            let (memory, bodies, rows) = (&*self, &*bodies, &*rows);
            let advance = |island: &mut Island| pass::advance(island, memory, bodies, rows, attempt, pass);
            for island in islands.iter_mut().filter(|i| active(i) && is_shared(i)) {
                let crew = island.cut.substructured.as_ref().map(|flat| flat.linear().executor().share());
                match crew {
                    Some(crew) => crew.together(HELPED, || advance(island)),
                    None => advance(island),
                }
            }
            for_each(islands.par_iter_mut(), |island| {
                if active(island) && !is_shared(island) {
                    advance(island);
                }
            });
            for island in islands.iter().filter(|i| !active(i)) {
                for &slot in &island.bodies {
                    self.chosen[slot as usize] = false;
                }
            }
            if !islands.iter().any(|i| active(i)) {
                break;
            }
        }
        true
    }

    /// The step in so many parts, each with θ = ½ and, where that does not arrive, with θ = 1.
    fn follow_in_parts(&mut self, step: &mut Step<'_>, parts: u32, decays: bool) {
        let dt = step.dt / f64::from(parts);
        for part in 0..parts {
            let moment = Moment { after: f64::from(part) * dt, dt, step: step.dt };
            // The whole has been tried.
            if parts > 1 {
                self.attempt(step, &Attempt { project: decays, ..Attempt::chord(moment) });
            }
            if decays {
                // Those whose part did not arrive try it once more.
                let open = |i: &Island| i.chord.state == State::Open && i.chord.in_parts && !i.chord.gave_up;
                for island in step.work.islands.iter_mut().filter(|i| open(i)) {
                    island.chord.state = State::Active;
                }
                self.choose(step.work);
                self.attempt(step, &Attempt::decay(moment));
            }
            let last = part + 1 == parts;
            let arrived = |i: &Island| i.chord.state == State::Closed && !i.chord.finished;
            for island in step.work.islands.iter_mut().filter(|i| arrived(i)) {
                island.chord.take_part();
                if !last {
                    island.chord.state = State::Active;
                }
            }
            self.choose(step.work);
        }
    }

    /// Islands that have arrived: the poses and velocities from which the last half step leads to where they are.
    fn finish(&mut self, work: &mut Work, dt: f64, at_middle: bool) {
        let Work { islands, bodies, .. } = work;
        for island in islands.iter_mut().filter(|i| i.chord.state == State::Closed && !i.chord.finished) {
            island.chord.finish(&island.bodies, bodies, dt, at_middle);
        }
    }

    /// Poses of bodies that no impulse moves: in the middle and at the end of the part.
    fn place_carriers(&mut self, attempt: &Attempt) {
        let Moment { after, dt, .. } = attempt.moment;
        for (slot, start, motion) in &mut self.carriers {
            let [mut first, mut mean, mut end] = [*start; 3];
            fly(&mut first, after);
            fly(&mut mean, after + 0.5 * dt);
            fly(&mut end, after + dt);
            let (_, arc) = discrete::half_way(first.rotation, mean.rotation, end.rotation);
            *motion = Motion::carried(end.position - first.position, arc);
            (self.poses[*slot as usize], self.ends[*slot as usize]) = (mean, end);
        }
    }

    /// The motion of a body that no impulse moves.
    fn carried(&self, slot: u32) -> Motion {
        let place = self.carriers.binary_search_by_key(&slot, |(slot, ..)| *slot);
        place.map_or(Motion::default(), |k| self.carriers[k].2)
    }

    /// φ at the ends.
    fn evaluate_ends(&mut self, step: &mut Step<'_>) {
        let mut constraints = std::mem::take(&mut step.work.constraints);
        let (bodies, rows) = (&step.work.bodies, &step.work.rows);
        let question = EvaluateAt { only: Some(&self.chosen), ..EvaluateAt::violations(&self.ends) };
        let violation = &mut self.violation;
        let mut block = 0;
        for of in constraints.iter_mut().filter(|of| of.present) {
            (of.gauge)(step.world, bodies, &question, &mut |told: &RowSample<'_>| {
                if let Some(i) = find(rows, &mut block, told) {
                    violation[i] = told.violation;
                }
            });
        }
        step.work.constraints = constraints;
    }

    /// J and the geometric stiffness of the impulses at the means, φ at the ends.
    fn evaluate(&mut self, step: &mut Step<'_>, attempt: &Attempt) {
        let mut constraints = std::mem::take(&mut step.work.constraints);
        let (bodies, rows) = (&step.work.bodies, &step.work.rows);
        let question = EvaluateAt {
            poses: &self.poses,
            ends: Some(&self.ends),
            dt: attempt.moment.dt,
            stiffness_share: attempt.share(),
            only: Some(&self.chosen),
            impulses: Some((rows, &self.lambda)),
        };
        let mut means = Means {
            rows,
            block: 0,
            jacobian: &mut self.jacobian,
            violation: &mut self.violation,
            stiffness: &mut self.stiffness,
        };
        for of in constraints.iter_mut().filter(|of| of.present) {
            (of.gauge)(step.world, bodies, &question, &mut means);
        }
        step.work.constraints = constraints;
    }
}

/// Takes J, φ and K.
struct Means<'a> {
    rows: &'a Rows,
    block: usize,
    jacobian: &'a mut [[f64; 6]],
    violation: &'a mut [f64],
    stiffness: &'a mut [[f64; 36]],
}

impl RowVisitor for Means<'_> {
    fn row(&mut self, told: &RowSample<'_>) {
        let Some(i) = find(self.rows, &mut self.block, told) else { return };
        let block = &self.rows.blocks[self.block];
        let first = block.entry as usize + (i - block.row as usize) * block.bodies as usize;
        self.jacobian[first..first + told.jacobian.len()].copy_from_slice(told.jacobian);
        self.violation[i] = told.violation;
    }

    fn stiffness(&mut self, slot: u32, stiffness: &Stiffness) {
        add(&mut self.stiffness[slot as usize], stiffness);
    }
}

/// Twice the kinetic energy of a body that moves so.
fn twice_kinetic(view: &BodyView) -> f64 {
    let w = view.angular_velocity;
    view.mass * view.linear_velocity.length_squared() + w.dot(gather::world_inertia(view) * w)
}
