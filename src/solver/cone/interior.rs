//! Interior point for Coulomb's cones beside boxes: Nesterov–Todd directions, De Saxcé's shift as an unknown.
//!
//! Source: Nesterov and Todd 1997; Acary, Armand, Nguyen and Shpakovych 2023 (friction by interior points). Scaled by P = diag(μ, 1, 1)
//! every cone is the second-order cone: x = P λ, y = P⁻¹ w + s e with s = |y_t|, x ∘ y → 0. A Newton step is
//!
//! ```text
//!     (A + P W⁻² P) Δλ = P (t − r_p − Δs e),   Δy = t − W⁻² P Δλ,   Δs = ȳ_tᵀ Δy_t
//! ```
//!
//! with t from the complementarity, as for boxes: one symmetric factorization. Δs makes the system unsymmetric; GMRES on Δs alone closes
//! it with two to eight solves (an outer loop on s stalls at 1e-3 to 1e-5, GMRES on the whole system fails). Where this stalls the run
//! is recentred from its best point, and s then follows by Picard steps, or by Newton's again after the next stall.

use super::jordan::{Scaling, Three, dot, product, quotient, step_to_boundary, times};
use super::krylov::{Gmres, Reach};
use super::law::{Laws, NO_CONE, three};
use super::newton::BestPoint;
use super::system::{Block, ConeSystem, Shift};
use crate::math::hypot;
use crate::solver::index_sets::is_held;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct InteriorSettings {
    /// Most iterations; each is one factorization.
    pub max_iterations: u32,
    /// Relative residual at which it ends.
    pub target: f64,
    /// Where GMRES ends, relative.
    pub closed: f64,
    /// Most products of GMRES a direction.
    pub products: usize,
    /// Share of the way to the boundary that a step takes.
    pub keep: f64,
    /// Share of |r_pᵀ x| below which complementarity is not taken while r_p is there.
    pub floor: f64,
    /// Iterations without progress that are a stall.
    pub patience: u32,
    /// Start, in units of the typical energy of a row.
    pub margin: f64,
}

impl Default for InteriorSettings {
    fn default() -> Self {
        InteriorSettings {
            max_iterations: 60,
            target: 1e-11,
            closed: 0.1,
            products: 10,
            keep: 0.95,
            floor: 0.3,
            patience: 4,
            margin: 1.0,
        }
    }
}

/// How De Saxcé's shift follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follow {
    Newton,
    Picard,
}

/// Δλ, A Δλ, Δy of the cones and of the rows with bounds.
type Direction = (Vec<f64>, Vec<f64>, Vec<Three>, Vec<Bound>);

/// One side of a box row.
#[derive(Clone, Copy, Debug)]
struct Bound {
    row: u32,
    /// 1: lower, −1: upper.
    sign: f64,
    /// Distance from the bound and its multiplier.
    g: f64,
    z: f64,
    dg: f64,
    dz: f64,
}

/// A run, in memory that is kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct InteriorMemory {
    shift: Shift,
    lambda: Vec<f64>,
    w: Vec<f64>,
    y: Vec<Three>,
    bounds: Vec<Bound>,
    scaling: Vec<Scaling>,
    /// W⁻² and λ̄ = W y of every cone.
    block: Vec<[f64; 6]>,
    middle: Vec<Three>,
    /// ȳ_t = y_t/|y_t|.
    slide: Vec<[f64; 2]>,
    rp: Vec<Three>,
    /// Direction: Δλ, A Δλ, Δy.
    dl: Vec<f64>,
    adl: Vec<f64>,
    dy: Vec<Three>,
    aim: Vec<Three>,
    rhs: Vec<f64>,
    gap: Vec<f64>,
    gmres: Gmres,
    responses: Vec<(Vec<f64>, Vec<f64>)>,
    best_y: Vec<Three>,
    best_bounds: Vec<Bound>,
    best: BestPoint,
    follow: Option<Follow>,
    idle: u32,
    /// Rows that are held: lo = hi.
    held: Vec<bool>,
    /// Starting size of λ√a.
    size: f64,
    iterations: u32,
}

/// Why a run came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The residual reached the target.
    Arrived,
    /// The residual is a decade below that of the last pause.
    Decade,
    /// No iterations are left, or the numbers broke down.
    Over,
}

impl InteriorMemory {
    /// λ and w of the best iterate.
    pub fn best(&self) -> &BestPoint {
        &self.best
    }

    /// Iterations so far.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// A cold start: impulses on the axes of their cones, well inside of the boxes, all products the same.
    pub fn start<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, settings: &InteriorSettings) {
        let n = laws.lo.len();
        let root = |a: f64| if a > 0.0 { a.sqrt() } else { 1.0 };
        let (diagonal, b) = (system.diagonal(), system.b());
        let in_cone = laws.of_row.iter().filter(|c| **c != NO_CONE).count();
        let square: f64 = (0..n)
            .filter(|&i| laws.of_row[i] != NO_CONE || laws.lo[i].is_finite() || laws.hi[i].is_finite())
            .map(|i| b[i] / root(diagonal[i]))
            .map(|x| x * x)
            .sum();
        let count =
            (0..n).filter(|&i| laws.lo[i].is_finite() || laws.hi[i].is_finite()).count().max(in_cone).max(1);
        let typical = (square / count as f64).sqrt();
        self.size = if typical > 0.0 && typical.is_finite() { settings.margin * typical } else { 1.0 };
        self.lambda.clear();
        self.lambda.resize(n, 0.0);
        self.held.clear();
        self.held.resize(n, false);
        self.bounds.clear();
        self.y.clear();
        for cone in &laws.cones {
            let i = cone.row as usize;
            let a = mean_root(diagonal, i, cone.mu);
            self.lambda[i] = self.size / (a * cone.mu);
            self.y.push([self.size * a, 0.0, 0.0]);
        }
        for i in (0..n).filter(|&i| laws.of_row[i] == NO_CONE) {
            let (lo, hi) = (laws.lo[i], laws.hi[i]);
            if is_held(lo, hi) {
                (self.held[i], self.lambda[i]) = (true, lo);
                continue;
            }
            let margin = (self.size / root(diagonal[i])).min(0.5 * (hi - lo));
            self.lambda[i] = 0.0f64.max(lo + margin).min(hi - margin);
            for (sign, bound) in [(1.0, lo), (-1.0, hi)] {
                if bound.is_finite() {
                    let g = sign * (self.lambda[i] - bound);
                    let z = self.size * self.size / g;
                    self.bounds.push(Bound { row: i as u32, sign, g, z, dg: 0.0, dz: 0.0 });
                }
            }
        }
        for buffer in [&mut self.w, &mut self.dl, &mut self.adl, &mut self.rhs] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        system.slack(&self.lambda, &mut self.w);
        let cones = laws.cones.len();
        for buffer in [&mut self.dy, &mut self.aim, &mut self.rp, &mut self.middle] {
            buffer.resize(cones, [0.0; 3]);
        }
        self.slide.resize(cones, [0.0; 2]);
        self.block.resize(cones, [0.0; 6]);
        self.scaling.resize(cones, Scaling::default());
        self.best.reset();
        (self.follow, self.idle, self.iterations) = (Some(Follow::Newton), 0, 0);
    }

    /// Goes on until the residual is below `until`, at its target, or nothing is left to try.
    pub fn proceed<S: ConeSystem>(
        &mut self,
        system: &mut S,
        laws: &Laws,
        settings: &InteriorSettings,
        until: f64,
    ) -> Pause {
        loop {
            let (_, residual) = laws.residual(&self.lambda, &self.w, system.b());
            self.idle = if residual < 0.8 * self.best.residual { 0 } else { self.idle + 1 };
            if residual < self.best.residual || self.best.lambda.is_empty() {
                self.best.offer(&self.lambda, &self.w, residual);
                self.best_y.clone_from(&self.y);
                self.best_bounds.clone_from(&self.bounds);
            }
            if self.best.residual <= settings.target {
                return Pause::Arrived;
            }
            if self.iterations >= settings.max_iterations {
                return Pause::Over;
            }
            if residual <= until {
                return Pause::Decade;
            }
            self.iterations += 1;
            if self.idle >= settings.patience {
                self.recentre(system, laws);
                continue;
            }
            if !self.iterate(system, laws, settings) {
                self.idle = settings.patience;
            }
        }
    }

    /// Back to the best point, away from the boundary by as much as it is wrong, and s followed the other way.
    fn recentre<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws) {
        self.idle = 0;
        self.follow = Some(if self.follow == Some(Follow::Newton) { Follow::Picard } else { Follow::Newton });
        // A tenth of the way back to the start where nothing was found at all.
        let away = (10.0 * self.best.residual).clamp(1e-6, 0.3) * self.size;
        self.lambda.clone_from(&self.best.lambda);
        self.y.clone_from(&self.best_y);
        self.bounds.clone_from(&self.best_bounds);
        let diagonal = system.diagonal();
        for (cone, y) in laws.cones.iter().zip(&mut self.y) {
            let i = cone.row as usize;
            let a = mean_root(diagonal, i, cone.mu);
            self.lambda[i] += away / (a * cone.mu);
            y[0] += away * a;
        }
        for bound in &mut self.bounds {
            let i = bound.row as usize;
            let a = if diagonal[i] > 0.0 { diagonal[i].sqrt() } else { 1.0 };
            bound.z += away * a;
        }
        system.slack(&self.lambda, &mut self.w);
    }

    /// One factorization and its two directions. False: the numbers broke down.
    fn iterate<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, settings: &InteriorSettings) -> bool {
        let count = (laws.cones.len() + self.bounds.len()).max(1) as f64;
        let mu = self.look(laws) / count;
        if !self.factor(system, laws) {
            return false;
        }
        let newton = self.follow == Some(Follow::Newton);
        let reach = Reach { tolerance: settings.closed, products: settings.products };
        // Predictor: aims at products of zero.
        for (k, middle) in self.middle.iter().enumerate() {
            self.aim[k] = product(*middle, *middle).map(|x| -x);
        }
        self.bounds.iter_mut().for_each(|b| (b.dg, b.dz) = (0.0, 0.0));
        self.direct(system, laws, 0.0, newton.then_some(reach), None);
        let step = self.longest(laws).min(1.0);
        if !step.is_finite() || !self.dl.iter().all(|x| x.is_finite()) {
            return false;
        }
        let ahead = self.products_after(laws, step) / count;
        let share = (ahead / mu).clamp(0.0, 1.0);
        let missing: f64 = laws
            .cones
            .iter()
            .zip(&self.rp)
            .map(|(cone, rp)| dot(*rp, scaled(three(&self.lambda, cone.row), cone.mu)))
            .sum();
        let floor = settings.floor * missing.abs() / count;
        let target = (share * share * share * mu).max(floor.min(mu));
        if newton {
            self.correct(laws, target);
            self.direct(system, laws, target, Some(reach), None);
        } else {
            self.picard(system, laws, settings, target, step);
        }
        let step = (settings.keep * self.longest(laws)).min(1.0);
        if !step.is_finite() || !self.dl.iter().chain(&self.adl).all(|x| x.is_finite()) {
            return false;
        }
        self.advance(laws, step);
        true
    }

    /// Three correctors at most, each with s of the step before; one that shortens the step is not taken.
    fn picard<S: ConeSystem>(
        &mut self,
        system: &mut S,
        laws: &Laws,
        settings: &InteriorSettings,
        target: f64,
        first: f64,
    ) {
        let (mut ahead, mut reached) = (first, 0.0);
        let mut kept: Option<Direction> = None;
        for _ in 0..3 {
            let shifts: Vec<f64> = self
                .y
                .iter()
                .zip(&self.dy)
                .map(|(y, dy)| hypot(y[1] + ahead * dy[1], y[2] + ahead * dy[2]) - hypot(y[1], y[2]))
                .collect();
            self.correct(laws, target);
            self.direct(system, laws, target, None, Some(&shifts));
            let step = self.longest(laws);
            if let Some((dl, adl, dy, bounds)) = &kept
                && step < 0.9 * reached
            {
                self.dl.clone_from(dl);
                self.adl.clone_from(adl);
                self.dy.clone_from(dy);
                self.bounds.clone_from(bounds);
                return;
            }
            reached = step;
            ahead = (settings.keep * step).min(1.0);
            kept = Some((self.dl.clone(), self.adl.clone(), self.dy.clone(), self.bounds.clone()));
        }
    }

    /// Residuals and scalings of the iterate; Σ of its products.
    fn look(&mut self, laws: &Laws) -> f64 {
        let mut sum = 0.0;
        for (k, cone) in laws.cones.iter().enumerate() {
            let (x, y) = (scaled(three(&self.lambda, cone.row), cone.mu), self.y[k]);
            let w = three(&self.w, cone.row);
            let s = hypot(y[1], y[2]);
            self.rp[k] = [w[0] / cone.mu + s - y[0], w[1] - y[1], w[2] - y[2]];
            self.slide[k] = if s > 0.0 { [y[1] / s, y[2] / s] } else { [0.0; 2] };
            self.scaling[k] = Scaling::of(x, y);
            self.block[k] = self.scaling[k].inverse_square();
            self.middle[k] = self.scaling[k].apply(y);
            sum += dot(x, y);
        }
        sum + self.bounds.iter().map(|b| b.g * b.z).sum::<f64>()
    }

    fn factor<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws) -> bool {
        self.shift.reset(laws.lo.len(), laws.cones.len());
        self.shift.held.copy_from_slice(&self.held);
        for b in &self.bounds {
            self.shift.diagonal[b.row as usize] += b.z / b.g;
        }
        for (k, cone) in laws.cones.iter().enumerate() {
            let (m, b) = (cone.mu, self.block[k]);
            self.shift.blocks[k] = Block::Full([m * m * b[0], m * b[1], m * b[2], b[3], b[4], b[5]]);
        }
        let blocks = self.block.iter().all(|b| b.iter().all(|x| x.is_finite()));
        if !blocks || !self.shift.diagonal.iter().all(|d| d.is_finite()) {
            return false;
        }
        system.factor(laws, &self.shift);
        true
    }

    /// What complementarity aims at, with the product that the linearisation has left out.
    fn correct(&mut self, laws: &Laws, target: f64) {
        for (k, cone) in laws.cones.iter().enumerate() {
            let (scaling, middle) = (&self.scaling[k], self.middle[k]);
            let dx = scaled(three(&self.dl, cone.row), cone.mu);
            let both = product(scaling.undo(dx), scaling.apply(self.dy[k]));
            let square = product(middle, middle);
            self.aim[k] = [target - square[0] - both[0], -square[1] - both[1], -square[2] - both[2]];
        }
    }

    /// A direction: products to `target` less what [`correct`](Self::correct) has found, s by GMRES or by given `shifts`.
    fn direct<S: ConeSystem>(
        &mut self,
        system: &mut S,
        laws: &Laws,
        target: f64,
        reach: Option<Reach>,
        shifts: Option<&[f64]>,
    ) {
        for (i, rhs) in self.rhs.iter_mut().enumerate() {
            *rhs = if laws.of_row[i] == NO_CONE { -self.w[i] } else { 0.0 };
        }
        for b in &mut self.bounds {
            // z + Δz = (target − Δg Δz − z Δg)/g, so that z itself drops out of −w + z.
            let aim = (target - b.dg * b.dz) / b.g;
            b.dg = aim;
            self.rhs[b.row as usize] += b.sign * aim;
        }
        for (k, cone) in laws.cones.iter().enumerate() {
            let t = self.scaling[k].undo(quotient(self.middle[k], self.aim[k]));
            let rp = self.rp[k];
            let more = shifts.map_or(0.0, |s| s[k]);
            let i = cone.row as usize;
            self.rhs[i] = cone.mu * (t[0] - rp[0] - more);
            (self.rhs[i + 1], self.rhs[i + 2]) = (t[1] - rp[1], t[2] - rp[2]);
            // t waits in Δy.
            self.dy[k] = t;
        }
        self.dl.fill(0.0);
        system.respond(laws, &self.shift, &self.rhs, &mut self.dl, &mut self.adl);
        for (k, cone) in laws.cones.iter().enumerate() {
            let back = times(&self.block[k], scaled(three(&self.dl, cone.row), cone.mu));
            let dy = &mut self.dy[k];
            (0..3).for_each(|c| dy[c] -= back[c]);
        }
        if let Some(reach) = reach {
            self.follow_shift(system, laws, reach);
        }
        for b in &mut self.bounds {
            let aim = b.dg;
            b.dg = b.sign * self.dl[b.row as usize];
            b.dz = aim - b.z - b.z / b.g * b.dg;
        }
    }

    /// Δs = ȳ_tᵀ Δy_t by GMRES.
    fn follow_shift<S: ConeSystem>(&mut self, system: &mut S, laws: &Laws, reach: Reach) {
        let n = laws.lo.len();
        let InteriorMemory { gmres, gap, slide, dy, dl, adl, block, rhs, responses, shift, .. } = self;
        gap.clear();
        gap.extend(slide.iter().zip(&*dy).map(|(t, dy)| t[0] * dy[1] + t[1] * dy[2]));
        let answer = |x: &[f64], k: usize| {
            let cone = laws.cones[k];
            times(&block[k], scaled(three(x, cone.row), cone.mu))
        };
        let weights = gmres.solve(gap, reach, |product, v, out| {
            if responses.len() <= product {
                responses.push((Vec::new(), Vec::new()));
            }
            let (x, ax) = &mut responses[product];
            x.clear();
            x.resize(n, 0.0);
            ax.resize(n, 0.0);
            rhs.fill(0.0);
            for (cone, v) in laws.cones.iter().zip(v) {
                rhs[cone.row as usize] = -cone.mu * v;
            }
            system.respond(laws, shift, rhs, x, ax);
            out.clear();
            out.extend(v.iter().enumerate().map(|(k, v)| {
                let back = answer(x, k);
                v + slide[k][0] * back[1] + slide[k][1] * back[2]
            }));
        });
        for (weight, (x, ax)) in weights.iter().zip(responses.iter()) {
            dl.iter_mut().zip(x).for_each(|(l, x)| *l += weight * x);
            adl.iter_mut().zip(ax).for_each(|(w, ax)| *w += weight * ax);
            for (k, dy) in dy.iter_mut().enumerate() {
                let back = answer(x, k);
                (0..3).for_each(|c| dy[c] -= weight * back[c]);
            }
        }
    }

    /// The longest step along the direction that stays inside.
    fn longest(&self, laws: &Laws) -> f64 {
        let mut step = f64::INFINITY;
        for (k, cone) in laws.cones.iter().enumerate() {
            let (x, dx) = (three(&self.lambda, cone.row), three(&self.dl, cone.row));
            step = step.min(step_to_boundary(scaled(x, cone.mu), scaled(dx, cone.mu)));
            step = step.min(step_to_boundary(self.y[k], self.dy[k]));
        }
        for b in &self.bounds {
            for (at, change) in [(b.g, b.dg), (b.z, b.dz)] {
                if change < 0.0 {
                    step = step.min(-at / change);
                }
            }
        }
        step
    }

    /// Σ of the products after a step.
    fn products_after(&self, laws: &Laws, step: f64) -> f64 {
        let mut sum = 0.0;
        for (k, cone) in laws.cones.iter().enumerate() {
            let (l, dl) = (three(&self.lambda, cone.row), three(&self.dl, cone.row));
            let x = scaled(std::array::from_fn(|i| l[i] + step * dl[i]), cone.mu);
            let y = std::array::from_fn(|i| self.y[k][i] + step * self.dy[k][i]);
            sum += dot(x, y);
        }
        sum + self.bounds.iter().map(|b| (b.g + step * b.dg) * (b.z + step * b.dz)).sum::<f64>()
    }

    fn advance(&mut self, laws: &Laws, step: f64) {
        self.lambda.iter_mut().zip(&self.dl).for_each(|(l, d)| *l += step * d);
        self.w.iter_mut().zip(&self.adl).for_each(|(w, d)| *w += step * d);
        for (y, dy) in self.y.iter_mut().zip(&self.dy) {
            (0..3).for_each(|c| y[c] += step * dy[c]);
        }
        for b in &mut self.bounds {
            b.g += step * b.dg;
            b.z += step * b.dz;
            let i = b.row as usize;
            // The distance keeps the digits that λ has lost beside a large bound.
            let bound = if b.sign > 0.0 { laws.lo[i] } else { laws.hi[i] };
            if b.sign * (self.lambda[i] - bound) <= 0.0 {
                self.lambda[i] = bound + b.sign * b.g;
            }
        }
    }
}

/// x = P λ.
#[inline]
fn scaled(l: Three, mu: f64) -> Three {
    [mu * l[0], l[1], l[2]]
}

/// √ of the mean diagonal of P⁻¹ A P⁻¹ at a cone.
fn mean_root(diagonal: &[f64], i: usize, mu: f64) -> f64 {
    let mean = (diagonal[i] / (mu * mu) + diagonal[i + 1] + diagonal[i + 2]) / 3.0;
    if mean > 0.0 && mean.is_finite() { mean.sqrt() } else { 1.0 }
}
