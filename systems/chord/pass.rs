//! A pass: how far an island is from the equations of the chord step, and a Newton step towards them.
//!
//! ```text
//!     [ M_B + ½θh²K   −J̄ᵀ  ] [ δV ]     [ −g ]      g = M_B (V⁺ − V) − h f − J̄ᵀ λ
//!     [ J̄              C/θ  ] [ δλ ]  =  [ −r ]      r = (φ(q⁺) + h C λ)/(θ h)
//! ```
//!
//! Springs have φ(q) + θₛ(φ(q⁺) − φ(q)) in place of φ(q⁺), times their stiffness, and their damper on (φ(q⁺) − φ(q))/h; θₛ is ½, which keeps
//! their energy, where the step resolves them, and goes to 1 from hω = 2 to 4.
//!
//! θ = ½ is the chord step; θ = 1 puts the forces at the start of the step and loses ½|V⁺ − V|².

use super::Memory;
use super::acceleration::History;
use super::attempt::{Attempt, Moment};
use super::discrete::{self, Motion, half_way, subtract_impulses};
use super::twice_kinetic;
use crate::constraint::BodyView;
use crate::report::Cause;
use crate::solver::linear::LinearSystem;
use crate::solver::{Label, RowProblem, Solution, SolveStats};
use crate::state::{Bodies, Closing, Island, Rows, Scheme};
use crate::systems::assemble::{mass_block, times};
use crate::systems::drift::fly;
use crate::systems::stiffness::cut_negative;
use glam::DVec3;

/// (hω)² beyond which a body's turning counts as unresolved.
const UNRESOLVED: f64 = 36.0;

/// The same for steps that were not followed as a whole.
const DOUBTFUL: f64 = 4.0;

/// Where the error falls to more than this share, a pass is factored anew.
const SLOW: f64 = 0.8;

/// Openings below this (m or rad) are round-off: the work of joints' forces on them is not missed.
const ROUND_OFF: f64 = 1e-12;

/// (hω) of a spring from which on it is damped as the step takes it; from twice that on it is as damped as can be.
const STIFF_SPRING: f64 = 2.0;

/// Joints open by more than this (m or rad) after the last pass: the step has failed.
const OPEN: f64 = 1e-4;

/// More work than this share of the energy that nothing did: the step has failed.
const GAIN: f64 = 1e-3;

/// Share of the energy that a free step would gain by forces which counts as energy at rest.
const AT_REST: f64 = 0.005;

/// Where an island is in its step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is not followed.
    #[default]
    Idle,
    /// Passes go on.
    Active,
    /// It has arrived.
    Closed,
    /// It has not, and passes are over.
    Open,
}

/// What an island keeps between passes.
#[derive(Default)]
pub struct Chord {
    /// Where it is.
    pub state: State,
    /// Share of the velocity across joints that is to be projected away.
    pub sigma: f64,
    /// (hω)² of every body.
    pub unresolved: Vec<f64>,
    /// Factorizations of this step.
    pub factorizations: u32,
    /// Solves of this step: why, and how far rows were off before.
    pub log: Vec<(Cause, f64)>,
    /// Is it followed in parts?
    pub in_parts: bool,
    /// Did a part with θ = 1 fail?
    pub gave_up: bool,
    /// Are its bodies where the last half step begins?
    pub finished: bool,
    /// Its bodies at the start of the stretch.
    pub start: Vec<BodyView>,
    /// At the mean pose.
    pub mean: Vec<BodyView>,
    /// At the end.
    pub end: Vec<BodyView>,
    /// λ.
    pub lambda: Vec<f64>,
    /// φ at the start of the stretch.
    pub violation: Vec<f64>,
    /// Change of φ as J̄ has it.
    pub along: Vec<f64>,
    /// J M⁻¹ Jᵀ of every row, roughly.
    pub tied: Vec<f64>,
    /// Motion of every body.
    pub motion: Vec<Motion>,
    /// Memory of [`discrete`].
    pub parts: Vec<Motion>,
    /// At the start of the step.
    from: Vec<BodyView>,
    /// Where forces act, with V.
    kicked: Vec<BodyView>,
    mass: Vec<[f64; 36]>,
    /// h f of the whole step.
    kick: Vec<[f64; 6]>,
    /// V⁺.
    velocity: Vec<[DVec3; 2]>,
    /// Impulses of the step so far, and of the last step.
    total: Vec<f64>,
    before: Vec<f64>,
    guess: Vec<f64>,
    pub(super) g: Vec<f64>,
    pub(super) r: Vec<f64>,
    pub(super) dv: Vec<f64>,
    /// Memory of [`super::velocity`].
    pub(super) damping: Vec<[f64; 9]>,
    pub(super) ease: Vec<[f64; 2]>,
    dlambda: Vec<f64>,
    labels: Vec<Label>,
    bounded: Vec<bool>,
    /// J̄ and C/θ of the factor.
    tangent: Vec<f64>,
    tangent_compliance: Vec<f64>,
    error: f64,
    factored: bool,
    history: History,
    residual: [f64; 2],
}

impl Chord {
    /// Takes the step's bodies: poses at its start, where free flight leads back to, and the kicks of its forces.
    pub fn begin(&mut self, slots: &[u32], numbers: &[u32], bodies: &Bodies, rows: &Rows, dt: f64) {
        self.from.clear();
        self.kick.clear();
        for &slot in slots {
            let view = bodies.view[slot as usize];
            let [v, w] = bodies.free[slot as usize];
            let change = [v - view.linear_velocity, w - view.angular_velocity];
            self.kick.push(times(&mass_block(&view), change));
            let mut from = view;
            fly(&mut from, -0.5 * dt);
            self.from.push(from);
        }
        self.before.clear();
        self.before.extend(numbers.iter().map(|&i| rows.lambda[i as usize]));
        self.labels.clear();
        self.labels.resize(numbers.len(), Label::Free);
        self.factorizations = 0;
        self.log.clear();
        self.restart(1);
    }

    /// Back to the start of the step, which goes on in so many parts.
    pub fn restart(&mut self, parts: u32) {
        self.state = State::Active;
        self.in_parts = parts > 1;
        (self.gave_up, self.finished) = (false, false);
        self.start.clone_from(&self.from);
        self.guess.clear();
        self.guess.extend(self.before.iter().map(|l| l / f64::from(parts)));
        self.total.clear();
        self.total.resize(self.before.len(), 0.0);
        self.sigma = 0.0;
    }

    /// Brings the bodies to where the forces of this stretch act.
    pub fn begin_attempt(&mut self, attempt: &Attempt, slots: &[u32], bodies: &Bodies) {
        let Moment { dt, step, .. } = attempt.moment;
        self.kicked.clear();
        self.mass.clear();
        self.velocity.clear();
        let middle = attempt.theta == 0.5 && dt == step;
        for (start, &slot) in self.start.iter().zip(slots) {
            let mut view = *start;
            match middle {
                // The very bits from which the last half step leads on.
                true => view = bodies.view[slot as usize],
                false => fly(&mut view, (1.0 - attempt.theta) * dt),
            }
            self.velocity.push([view.linear_velocity, view.angular_velocity]);
            self.mass.push(mass_block(&view));
            self.kicked.push(view);
        }
        self.lambda.clone_from(&self.guess);
        self.factored = false;
        self.error = f64::INFINITY;
    }

    /// Keeps φ at the start of the stretch.
    pub fn note_start(&mut self, numbers: &[u32], violation: &[f64]) {
        self.violation.clear();
        self.violation.extend(numbers.iter().map(|&i| violation[i as usize]));
        self.along.clear();
        self.along.resize(numbers.len(), 0.0);
        self.tied.clear();
        self.tied.resize(numbers.len(), 0.0);
    }

    /// Mean and end poses for the velocities as they are now.
    pub fn place(&mut self, attempt: &Attempt) {
        let (theta, dt) = (attempt.theta, attempt.moment.dt);
        self.mean.clear();
        self.end.clear();
        self.motion.clear();
        for (k, kicked) in self.kicked.iter().enumerate() {
            let ([v, w], start) = (self.velocity[k], &self.start[k]);
            let mut end = *kicked;
            (end.linear_velocity, end.angular_velocity) = (v, w);
            fly(&mut end, theta * dt);
            let (rotation, arc) = half_way(start.rotation, kicked.rotation, end.rotation);
            let mut mean = *kicked;
            mean.position = 0.5 * (start.position + end.position);
            mean.rotation = rotation;
            mean.linear_velocity = kicked.linear_velocity * (1.0 - theta) + v * theta;
            mean.angular_velocity = kicked.angular_velocity * (1.0 - theta) + w * theta;
            let way = mean.linear_velocity * dt;
            self.motion.push(Motion::new(way, mean.angular_velocity * dt, arc, &self.mass[k]));
            self.mean.push(mean);
            self.end.push(end);
        }
    }

    /// A stretch has arrived: the next one begins at its end.
    pub fn take_part(&mut self) {
        self.total.iter_mut().zip(&self.lambda).for_each(|(sum, l)| *sum += l);
        self.guess.clone_from(&self.lambda);
        self.start.clone_from(&self.end);
    }

    /// Bodies go to where free flight of half a step leads to the end, unless they are there.
    pub fn finish(&mut self, slots: &[u32], bodies: &mut Bodies, dt: f64, at_middle: bool) {
        self.finished = true;
        if at_middle {
            return;
        }
        if self.in_parts {
            self.lambda.clone_from(&self.total);
        }
        for (k, &slot) in slots.iter().enumerate() {
            let mut view = self.end[k];
            fly(&mut view, -0.5 * dt);
            self.velocity[k] = [view.linear_velocity, view.angular_velocity];
            bodies.view[slot as usize] = view;
        }
    }

    /// The answer, its problem and what is to be said of it.
    pub fn answer(&self, problem: &mut RowProblem, solution: &mut Solution, stats: &mut SolveStats) {
        solution.v.clear();
        solution.v.extend(self.velocity.iter().flat_map(|[v, w]| [v.x, v.y, v.z, w.x, w.y, w.z]));
        solution.lambda.clone_from(&self.lambda);
        solution.labels.clone_from(&self.labels);
        for (k, p) in problem.momentum.iter_mut().enumerate() {
            let m = times(&problem.mass[k], self.velocity[k]);
            *p = std::array::from_fn(|i| m[i] - self.g[6 * k + i]);
        }
        let mut momenta = std::mem::take(&mut problem.momentum);
        subtract_impulses(problem, &self.lambda, momenta.as_flattened_mut());
        problem.momentum = momenta;
        *stats = SolveStats {
            residual: self.residual[0],
            residual_relative: self.residual[0] / self.residual[1].max(1.0),
            residual_energy: 0.0,
            converged: true,
            factorizations: self.factorizations,
            ..SolveStats::default()
        };
    }
}

/// Relative residual that the last linear solve may leave: what every other solver calls converged.
const SOLVED: f64 = 1e-9;

/// How far an island is from its equations; a Newton step towards them unless it has arrived or passes are over.
pub fn advance(
    island: &mut Island,
    memory: &Memory,
    bodies: &Bodies,
    rows: &Rows,
    attempt: &Attempt,
    pass: u32,
) {
    let (theta, moment) = (attempt.theta, attempt.moment);
    let dt = moment.dt;
    discrete::write(island, memory, bodies, rows);
    let open = violations(island, memory, rows, attempt);
    let Island { problem, chord, bodies: slots, blocks, .. } = &mut *island;
    let n = slots.len();
    chord.g.clear();
    let (mut energy, mut gain) = (0.0, 0.0);
    let share = dt / moment.step;
    for k in 0..n {
        let ([v, w], before) = (chord.velocity[k], &chord.kicked[k]);
        let (kick, [x, y]) = (&chord.kick[k], [before.linear_velocity, before.angular_velocity]);
        let change = times(&chord.mass[k], [v - x, w - y]);
        chord.g.extend((0..6).map(|i| change[i] - share * kick[i]));
        let pushed = DVec3::new(kick[0], kick[1], kick[2]) * share;
        energy += 0.5 * twice_kinetic(before) + AT_REST * pushed.length_squared() / before.mass;
        let sum = [v + x, w + y];
        gain += 0.5 * dot(&change, sum);
        let mean = [x * (1.0 - theta) + v * theta, y * (1.0 - theta) + w * theta];
        gain -= share * dot(kick, mean);
    }
    energy += 1e-12;
    subtract_impulses(problem, &chord.lambda, &mut chord.g);
    let mut missing = 0.0;
    for k in 0..n {
        let ([v, w], before) = (chord.velocity[k], &chord.kicked[k]);
        let g: [f64; 6] = std::array::from_fn(|i| chord.g[6 * k + i]);
        missing += dot(&g, [v + before.linear_velocity, w + before.angular_velocity]);
    }
    let along: f64 = chord.lambda.iter().zip(&chord.r).map(|(l, r)| l * r).sum();
    let missing = 0.5 * missing.abs() + theta * along.abs();
    let driven = blocks.iter().any(|&b| is_driven(&rows.blocks[b as usize], bodies, rows));
    let over = pass == attempt.passes;
    if pass == 0 {
        chord.residual[1] = norm(&chord.r);
    }
    if !(missing.is_finite() && open.is_finite()) {
        chord.give_up(attempt);
        return;
    }
    let round_off = ROUND_OFF / dt * chord.lambda.iter().map(|l| l.abs()).sum::<f64>();
    if pass > 0 && (over || open <= attempt.open && missing <= attempt.work * energy + round_off) {
        // What joints hold by their compliance they may give back.
        let held =
            chord.guess.iter().zip(&chord.violation).map(|(l, open)| (l * open).abs()).sum::<f64>() / dt;
        let fed = !driven && gain > GAIN * energy + held;
        let solved = chord.residual[0] <= SOLVED * chord.residual[1].max(1.0);
        if solved && open <= OPEN && missing <= GAIN * energy + round_off && !fed {
            chord.judge_turning(slots, memory, attempt);
            chord.state = State::Closed;
        } else {
            chord.give_up(attempt);
        }
        return;
    }
    let size =
        if pass == 0 { f64::INFINITY } else { (missing / (energy * attempt.work)).max(open / attempt.open) };
    let factor = !chord.factored || attempt.fresh || pass > 1 && size > SLOW * chord.error;
    chord.error = if factor && pass > 1 { f64::INFINITY } else { size };
    if factor {
        load_tangent(island, memory, rows, attempt);
        let Island { problem, chord, .. } = &mut *island;
        chord.tangent.clone_from(&problem.jacobian);
        chord.tangent_compliance.clone_from(&problem.compliance);
    }
    let cause = match (pass, factor) {
        _ if theta == 1.0 => Cause::Decay,
        (0, _) if dt == moment.step => Cause::First,
        (0, _) => Cause::Part,
        (_, true) => Cause::Tangent,
        (_, false) => Cause::Correction,
    };
    island.chord.log.push((cause, norm(&island.chord.r)));
    solve_signed(island, factor);
    island.chord.residual[0] = left(island);
    island.chord.accelerate(factor);
    island.chord.take_step(attempt);
}

/// What the last solve left of the rows of its tangent.
fn left(island: &Island) -> f64 {
    let Island { problem, chord, .. } = island;
    let mut square = 0.0;
    for block in &problem.blocks {
        let own = problem.bodies_of(block);
        for row in 0..block.rows {
            let k = (block.row + row) as usize;
            let at = (block.entry + 6 * row * block.bodies) as usize;
            let mut w = chord.tangent_compliance[k] * chord.dlambda[k] - chord.r[k];
            for (j, &body) in chord.tangent[at..].chunks_exact(6).zip(own) {
                let dv = &chord.dv[6 * body as usize..6 * body as usize + 6];
                w += j.iter().zip(dv).map(|(j, d)| j * d).sum::<f64>();
            }
            square += w * w;
        }
    }
    square.sqrt()
}

/// r of every row; returns by how much the worst is open.
fn violations(island: &mut Island, memory: &Memory, rows: &Rows, attempt: &Attempt) -> f64 {
    let Island { problem, chord, rows: numbers, .. } = island;
    let (dt, rate) = (attempt.moment.dt, attempt.moment.step / attempt.moment.dt);
    let scale = 1.0 / (attempt.theta * dt);
    chord.r.clear();
    let mut open = 0.0f64;
    for (k, &i) in numbers.iter().enumerate() {
        let i = i as usize;
        // A force opens a joint as far in a part of a step as in the whole.
        let compliance = rows.compliance[i] * rate * rate;
        problem.compliance[k] = compliance / attempt.theta;
        let off = match rows.closing[i] {
            Closing::Share(share) => {
                let start = chord.violation[k];
                let most = rows.most[i] * dt;
                let wanted = aim(rows, i, share, attempt.moment.step) * dt;
                let target = start - (share * start).clamp(-most, most) + wanted;
                memory.violation[i] - target + dt * compliance * chord.lambda[k]
            }
            Closing::Spring { stiffness, damping } => {
                let x = dt * (stiffness * chord.tied[k]).sqrt();
                let stiff = (x / STIFF_SPRING - 1.0).clamp(0.0, 1.0);
                let theta = if attempt.theta < 1.0 { 0.5 * (1.0 + stiff) } else { 1.0 };
                let total = (stiffness * theta + damping / dt).max(1e-12);
                problem.compliance[k] = 1.0 / (dt * dt * total * attempt.theta);
                let change = chord.along[k] + stiffness * chord.violation[k] / total;
                chord.r.push(scale * (change + chord.lambda[k] / (dt * total)));
                continue;
            }
            _ => {
                chord.lambda[k] = 0.0;
                0.0
            }
        };
        open = open.max(off.abs());
        chord.r.push(scale * off);
    }
    if chord.r.iter().any(|r| r.is_nan()) { f64::NAN } else { open }
}

/// w₀ of a row whose violation is closed: what d has beside that.
fn aim(rows: &Rows, i: usize, share: f64, step: f64) -> f64 {
    let most = rows.most[i];
    (share * rows.violation[i] / step).clamp(-most, most) - rows.d[i]
}

/// Does a body drive one of the block's, or does the block itself?
fn is_driven(block: &crate::state::ConstraintBlock, bodies: &Bodies, rows: &Rows) -> bool {
    let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
    let own = block.row as usize..(block.row + block.rows) as usize;
    slots.iter().any(|&slot| !bodies.is_dynamic(slot) && bodies.is_awake(slot))
        || rows.drives[own].contains(&true)
}

/// The tangent's masses.
fn load_tangent(island: &mut Island, memory: &Memory, rows: &Rows, attempt: &Attempt) {
    let beta = memory.beta;
    let Island { problem, chord, bodies: slots, rows: numbers, .. } = island;
    let share = attempt.share() * attempt.moment.dt * attempt.moment.dt;
    for (k, &slot) in slots.iter().enumerate() {
        let mut stiffness = memory.stiffness[slot as usize];
        cut_negative(&mut stiffness);
        problem.mass[k] = chord.mass[k];
        problem.mass[k].iter_mut().zip(&stiffness).for_each(|(m, k)| *m += share * k);
    }
    for (k, &i) in numbers.iter().enumerate() {
        if rows.closing[i as usize] == Closing::Tangent {
            // Written for β h² K of the whole step.
            let shorter = attempt.moment.step / attempt.moment.dt;
            problem.compliance[k] = rows.compliance[i as usize] * shorter * shorter * beta / attempt.share();
        }
    }
}

/// M δ − Jᵀ μ = g and J δ + C μ = r with the signs that each has here.
pub(super) fn solve_signed(island: &mut Island, factor: bool) {
    island.chord.g.iter_mut().for_each(|g| *g = -*g);
    island.chord.r.iter_mut().for_each(|r| *r = -*r);
    solve(island, factor);
}

/// Solves M δ − Jᵀ μ = g and J δ + C μ = r.
pub(super) fn solve(island: &mut Island, factor: bool) {
    let Island { problem, chord, solver, cut, .. } = island;
    let Chord { g, r, dv, dlambda, labels, bounded, .. } = chord;
    dv.clear();
    dv.resize(g.len(), 0.0);
    dlambda.clear();
    dlambda.resize(r.len(), 0.0);
    match (cut.scheme, &mut cut.substructured) {
        (Scheme::Substructured, Some(flat)) => {
            solve_with(flat.linear_mut(), problem, labels, factor, [g, r, dv, dlambda])
        }
        _ if factor => {
            // The order of elimination is not to be that of bounds which rows had in an earlier step.
            bounded.clear();
            bounded.resize(problem.blocks.len(), false);
            solver.linear_mut().prepare(problem, bounded);
            solve_with(solver.linear_mut(), problem, labels, true, [g, r, dv, dlambda]);
        }
        _ => solve_with(solver.linear_mut(), problem, labels, factor, [g, r, dv, dlambda]),
    }
    if factor {
        chord.factored = true;
        chord.factorizations += 1;
    }
}

pub(super) fn solve_with<L: LinearSystem>(
    linear: &mut L,
    problem: &RowProblem,
    labels: &[Label],
    factor: bool,
    [g, r, dv, dlambda]: [&mut Vec<f64>; 4],
) {
    if factor {
        linear.load(problem);
        linear.factor(problem, labels, None);
    }
    // What is found first is large; later passes mend round-off by themselves.
    linear.solve(problem, g, r, dv, dlambda, u32::from(factor));
}

impl Chord {
    /// Passes are over.
    fn give_up(&mut self, attempt: &Attempt) {
        self.state = State::Open;
        self.gave_up = attempt.theta == 1.0;
    }

    /// Anderson's acceleration: the combination of the last steps whose own step would be least, in the metric of the masses. Fast spin
    /// turns what a torque does at the end of the step by radians, which no symmetric tangent knows; two or three passes tell it.
    fn accelerate(&mut self, fresh: bool) {
        let Chord { history, dv, dlambda, mass, .. } = self;
        if fresh {
            history.forget();
        }
        history.accelerate(dv, dlambda, mass);
    }

    fn take_step(&mut self, attempt: &Attempt) {
        let steps = self.dv.chunks_exact(6);
        let mut share = 1.0;
        if attempt.theta > 0.5 {
            // Half a radian a pass.
            let most = steps.clone().map(|d| DVec3::new(d[3], d[4], d[5]).length()).fold(0.0, f64::max);
            share = (0.5 / (attempt.moment.dt * most + 1e-30)).min(1.0);
        }
        for ([v, w], d) in self.velocity.iter_mut().zip(steps) {
            *v += share * DVec3::new(d[0], d[1], d[2]);
            *w += share * DVec3::new(d[3], d[4], d[5]);
        }
        self.lambda.iter_mut().zip(&self.dlambda).for_each(|(l, d)| *l += d);
    }

    /// (hω)² of the turning of every body under the forces of its joints, and from it the share of velocities to be projected.
    fn judge_turning(&mut self, slots: &[u32], memory: &Memory, attempt: &Attempt) {
        let dt = attempt.moment.dt;
        self.unresolved.clear();
        let mut most = 0.0f64;
        for (k, &slot) in slots.iter().enumerate() {
            let mut stiffness = memory.stiffness[slot as usize];
            cut_negative(&mut stiffness);
            let inertia = self.mass[k][21] + self.mass[k][28] + self.mass[k][35];
            let turning = stiffness[21] + stiffness[28] + stiffness[35];
            let x = if inertia > 0.0 { dt * dt * turning / inertia } else { 0.0 };
            self.unresolved.push(x);
            most = most.max(x);
        }
        // What could not be followed as a whole is resolved worse than it seems.
        let whole = attempt.moment.step / attempt.moment.dt;
        let from = if whole > 1.0 { DOUBTFUL } else { UNRESOLVED };
        let resolved = (most * whole * whole / from).sqrt() - 1.0;
        let sigma = if attempt.project { 1.0 } else { resolved.clamp(0.0, 1.0) };
        self.sigma = self.sigma.max(sigma);
    }
}

/// Share of a body's turning that is to be damped.
pub fn damped(unresolved: f64) -> f64 {
    if unresolved > UNRESOLVED { 1.0 - UNRESOLVED / unresolved } else { 0.0 }
}

fn dot(p: &[f64; 6], [v, w]: [DVec3; 2]) -> f64 {
    DVec3::new(p[0], p[1], p[2]).dot(v) + DVec3::new(p[3], p[4], p[5]).dot(w)
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}
