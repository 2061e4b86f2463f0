//! Semismooth Newton on the law of Alart and Curnier: pivoting for cones.
//!
//! Source: Alart and Curnier 1991; Cadoux 2009; Acary, Brémond and Huber 2018. Every cone stands on a piece of its law (open, stick, slip
//! in a direction), every other row on one of its box; the point of the pieces is computed, and the pieces are read off anew. On all pieces
//! the matrix is symmetric but for λ_∥ = μ λ_n of contacts that slide: these few unknowns are closed by GMRES around the symmetric factor.
//! One step is exact where no piece and no direction changes.

use super::krylov::{Gmres, Reach};
use super::law::{Laws, Side, steps, three};
use super::system::{Block, ConeSystem, Shift};
use crate::math::hypot;
use crate::solver::Label;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct NewtonSettings {
    /// Most steps; each is one factorization.
    pub steps: u32,
    /// Relative residual at which it ends.
    pub target: f64,
    /// Steps without a smaller residual after which it gives up.
    pub patience: u32,
    /// Most products of GMRES a step.
    pub products: usize,
}

impl Default for NewtonSettings {
    fn default() -> Self {
        NewtonSettings { steps: 12, target: 1e-11, patience: 4, products: 20 }
    }
}

/// Where GMRES ends, relative: well below what the target asks for of impulses that are ten times the scale.
const CLOSED: f64 = 1e-13;

/// Memory of a run, kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct NewtonMemory {
    shift: Shift,
    sides: Vec<Side>,
    sliding: Vec<u32>,
    lambda: Vec<f64>,
    w: Vec<f64>,
    next: Vec<f64>,
    next_w: Vec<f64>,
    trial: Vec<f64>,
    trial_w: Vec<f64>,
    zero: Vec<f64>,
    gap: Vec<f64>,
    gmres: Gmres,
    /// Responses of the vectors of GMRES: x and A x.
    responses: Vec<(Vec<f64>, Vec<f64>)>,
}

/// The best point of all runs on a problem.
#[derive(Clone, Debug, Default)]
pub struct BestPoint {
    /// λ, within the law's bounds.
    pub lambda: Vec<f64>,
    /// w = A λ + b.
    pub w: Vec<f64>,
    /// Relative residual ([`Laws::residual`]).
    pub residual: f64,
}

impl BestPoint {
    /// Forgets the last problem.
    pub fn reset(&mut self) {
        self.lambda.clear();
        self.w.clear();
        self.residual = f64::INFINITY;
    }

    /// Keeps a point if it is the best so far.
    pub fn offer(&mut self, lambda: &[f64], w: &[f64], residual: f64) {
        if residual < self.residual || self.lambda.is_empty() {
            self.residual = residual;
            self.lambda.clear();
            self.lambda.extend_from_slice(lambda);
            self.w.clear();
            self.w.extend_from_slice(w);
        }
    }
}

/// Where a run begins.
pub enum From<'a> {
    /// A point: its pieces are read off.
    Point(&'a [f64], &'a [f64]),
    /// The labels and impulses of a step before.
    Labels(&'a [Label], &'a [f64]),
}

impl NewtonMemory {
    /// Runs until the residual is at its target or nothing gets better; the best point goes into `best`. Returns the number of steps.
    pub fn run<S: ConeSystem>(
        &mut self,
        system: &mut S,
        laws: &Laws,
        from: From<'_>,
        settings: &NewtonSettings,
        best: &mut BestPoint,
    ) -> u32 {
        let n = laws.lo.len();
        for buffer in [&mut self.next, &mut self.next_w, &mut self.trial, &mut self.trial_w, &mut self.zero] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        let mut at_point = false;
        match from {
            From::Point(lambda, w) => {
                self.lambda.clear();
                self.lambda.extend_from_slice(lambda);
                self.w.clear();
                self.w.extend_from_slice(w);
                self.read_sides(laws, system.diagonal());
                at_point = true;
            }
            From::Labels(labels, lambda) => {
                self.lambda.clear();
                self.lambda.extend_from_slice(lambda);
                self.w.clear();
                self.w.resize(n, 0.0);
                self.take_labels(laws, labels, system.b(), system.diagonal());
            }
        }
        let (mut idle, mut smallest) = (0, f64::INFINITY);
        for step in 1..=settings.steps {
            self.place(system, laws, settings);
            if at_point {
                self.shorten(laws, system.diagonal());
            }
            std::mem::swap(&mut self.lambda, &mut self.next);
            std::mem::swap(&mut self.w, &mut self.next_w);
            at_point = true;
            let residual = self.offer(system, laws, best);
            if residual <= settings.target || !residual.is_finite() {
                return step;
            }
            idle = if residual < 0.5 * smallest { 0 } else { idle + 1 };
            smallest = smallest.min(residual);
            if idle >= settings.patience {
                return step;
            }
            self.read_sides(laws, system.diagonal());
        }
        settings.steps
    }

    /// The residual of the point at hand, brought into the cones where it lies outside.
    fn offer<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, best: &mut BestPoint) -> f64 {
        self.trial.copy_from_slice(&self.lambda);
        laws.project(&mut self.trial);
        let size = self.lambda.iter().fold(0.0f64, |m, l| m.max(l.abs()));
        let moved = self.trial.iter().zip(&self.lambda).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        // Round-off of μ λ_n moves nothing.
        if moved <= 1e-15 * size {
            let (_, residual) = laws.residual(&self.trial, &self.w, system.b());
            best.offer(&self.trial, &self.w, residual);
            return residual;
        }
        let (_, here) = laws.residual(&self.lambda, &self.w, system.b());
        if here < best.residual || best.lambda.is_empty() {
            system.slack(&self.trial, &mut self.trial_w);
            let (_, residual) = laws.residual(&self.trial, &self.trial_w, system.b());
            best.offer(&self.trial, &self.trial_w, residual);
        }
        here
    }

    fn read_sides(&mut self, laws: &Laws, diagonal: &[f64]) {
        self.shift.reset(laws.lo.len(), laws.cones.len());
        self.sides.clear();
        for cone in &laws.cones {
            let rho = steps(diagonal, cone.row as usize);
            self.sides.push(Side::of(cone.mu, three(&self.lambda, cone.row), three(&self.w, cone.row), rho));
        }
        for i in 0..laws.lo.len() {
            if laws.of_row[i] == super::law::NO_CONE {
                let label = laws.label_of_row(i, self.lambda[i], self.w[i], diagonal[i]);
                self.hold(laws, i, label);
            }
        }
    }

    fn hold(&mut self, laws: &Laws, i: usize, label: Label) {
        self.shift.held[i] = label != Label::Free;
        self.next[i] = match label {
            Label::Free => 0.0,
            Label::Lower => laws.lo[i],
            Label::Upper => laws.hi[i],
        };
    }

    /// Pieces of the step before: λ says in which direction a contact slid. How fast it slides now is guessed from b.
    fn take_labels(&mut self, laws: &Laws, labels: &[Label], b: &[f64], diagonal: &[f64]) {
        self.shift.reset(laws.lo.len(), laws.cones.len());
        self.sides.clear();
        for cone in &laws.cones {
            let i = cone.row as usize;
            let (l, free) = (three(&self.lambda, cone.row), three(b, cone.row));
            let [_, tangent] = steps(diagonal, i);
            let size = hypot(l[1], l[2]);
            self.sides.push(match (labels[i], labels[i + 1]) {
                (Label::Free, Label::Free) => Side::Stick,
                (Label::Free, _) if size > 0.0 => {
                    let along = [l[1] / size, l[2] / size];
                    let speed = -(along[0] * free[1] + along[1] * free[2]);
                    Side::Slip { along, across: (speed / size - 1.0 / tangent).max(0.0) }
                }
                (Label::Free, _) => {
                    let speed = hypot(free[1], free[2]).max(f64::MIN_POSITIVE);
                    Side::Slip { along: [-free[1] / speed, -free[2] / speed], across: 0.0 }
                }
                _ => Side::Open,
            });
        }
        for i in 0..laws.lo.len() {
            if laws.of_row[i] == super::law::NO_CONE {
                let legal = match labels[i] {
                    Label::Lower if laws.lo[i].is_finite() => Label::Lower,
                    Label::Upper if laws.hi[i].is_finite() => Label::Upper,
                    _ if laws.lo[i] == laws.hi[i] => Label::Lower,
                    _ => Label::Free,
                };
                self.hold(laws, i, legal);
            }
        }
    }

    /// The point of the pieces, into `next`.
    fn place<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, settings: &NewtonSettings) {
        self.sliding.clear();
        for (k, (cone, side)) in laws.cones.iter().zip(&self.sides).enumerate() {
            let i = cone.row as usize;
            self.next[i..i + 3].fill(0.0);
            self.shift.blocks[k] = match *side {
                Side::Open => Block::Held,
                Side::Stick => Block::Free,
                Side::Slip { along, across } => {
                    self.sliding.push(k as u32);
                    let most = cone.mu * self.lambda[i].max(0.0);
                    (self.next[i + 1], self.next[i + 2]) = (most * along[0], most * along[1]);
                    Block::Slip { along, across }
                }
            };
        }
        system.place(laws, &self.shift, &mut self.next, &mut self.next_w);
        if !self.sliding.is_empty() {
            self.close_friction(system, laws, settings);
        }
    }

    /// λ_∥ = μ λ_n of the contacts that slide: G δ = g with g = μ λ_n − λ_∥ and G δ = δ − μ (response of λ_n to δ).
    fn close_friction<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, settings: &NewtonSettings) {
        let n = laws.lo.len();
        let NewtonMemory { sides, sliding, next, next_w, gap, gmres, responses, shift, zero, .. } = self;
        let along = |k: u32| match sides[k as usize] {
            Side::Slip { along, .. } => along,
            _ => [0.0; 2],
        };
        gap.clear();
        gap.extend(sliding.iter().map(|&k| {
            let cone = laws.cones[k as usize];
            let (l, t) = (three(next, cone.row), along(k));
            cone.mu * l[0] - (t[0] * l[1] + t[1] * l[2])
        }));
        let largest = next.iter().fold(0.0f64, |m, l| m.max(l.abs()));
        let size = gap.iter().map(|g| g * g).sum::<f64>().sqrt();
        if size <= CLOSED * largest {
            return;
        }
        let reach = Reach { tolerance: (CLOSED * largest / size).max(1e-12), products: settings.products };
        let weights = gmres.solve(gap, reach, |k, v, out| {
            if responses.len() <= k {
                responses.push((Vec::new(), Vec::new()));
            }
            let (x, ax) = &mut responses[k];
            x.clear();
            x.resize(n, 0.0);
            ax.resize(n, 0.0);
            for (&k, v) in sliding.iter().zip(v) {
                let (i, t) = (laws.cones[k as usize].row as usize, along(k));
                (x[i + 1], x[i + 2]) = (v * t[0], v * t[1]);
            }
            system.respond(laws, shift, zero, x, ax);
            out.clear();
            out.extend(sliding.iter().zip(v).map(|(&k, v)| {
                let cone = laws.cones[k as usize];
                v - cone.mu * x[cone.row as usize]
            }));
        });
        for (weight, (x, ax)) in weights.iter().zip(responses.iter()) {
            next.iter_mut().zip(x).for_each(|(l, x)| *l += weight * x);
            next_w.iter_mut().zip(ax).for_each(|(w, ax)| *w += weight * ax);
        }
        system.replace(laws, shift, next, next_w);
    }

    /// Goes part of the way where the whole of it makes the law's error larger. λ and w change together, so that nothing is solved.
    fn shorten(&mut self, laws: &Laws, diagonal: &[f64]) {
        let before = merit(laws, &self.lambda, &self.w, diagonal);
        let mut share = 1.0;
        // 1/64 of the way at least: what is shorter leads nowhere, and the pieces change more by going on.
        for _ in 0..6 {
            let go = |from: &[f64], to: &[f64], out: &mut [f64]| {
                for ((out, a), b) in out.iter_mut().zip(from).zip(to) {
                    *out = a + share * (b - a);
                }
            };
            go(&self.lambda, &self.next, &mut self.trial);
            go(&self.w, &self.next_w, &mut self.trial_w);
            if merit(laws, &self.trial, &self.trial_w, diagonal) < (1.0 - 1e-4 * share) * before {
                if share < 1.0 {
                    std::mem::swap(&mut self.trial, &mut self.next);
                    std::mem::swap(&mut self.trial_w, &mut self.next_w);
                }
                return;
            }
            share *= 0.5;
        }
    }
}

/// Σ of squares of Alart and Curnier's function, in energies: λ − P(λ − ρ w), the normal first, then the disk of radius μ (λ_n − ρ w_n)⁺.
fn merit(laws: &Laws, lambda: &[f64], w: &[f64], diagonal: &[f64]) -> f64 {
    let mut sum = 0.0;
    for cone in &laws.cones {
        let i = cone.row as usize;
        let [rn, rt] = steps(diagonal, i);
        let (l, w) = (three(lambda, cone.row), three(w, cone.row));
        let normal = (l[0] - rn * w[0]).max(0.0);
        let tau = [l[1] - rt * w[1], l[2] - rt * w[2]];
        let (most, size) = (cone.mu * normal, hypot(tau[0], tau[1]));
        let share = if size > most { most / size } else { 1.0 };
        let f = [l[0] - normal, l[1] - share * tau[0], l[2] - share * tau[1]];
        sum += f[0] * f[0] / rn + (f[1] * f[1] + f[2] * f[2]) / rt;
    }
    for (i, _) in laws.of_row.iter().enumerate().filter(|(_, cone)| **cone == super::law::NO_CONE) {
        let a = if diagonal[i] > 0.0 { diagonal[i] } else { 1.0 };
        let f = lambda[i] - (lambda[i] - w[i] / a).max(laws.lo[i]).min(laws.hi[i]);
        sum += a * f * f;
    }
    sum
}
