//! Interior point on the box: it needs no luck (Mehrotra 1992; Gondzio 1996).
//!
//! With A symmetric positive definite and fixed bounds the problem is the strictly convex program
//! min ½ λᵀAλ + bᵀλ on lo ≤ λ ≤ hi. Slacks g_lo = λ − lo, g_hi = hi − λ and their multipliers
//! z_lo, z_hi > 0 obey A λ + b = z_lo − z_hi, g z = μ → 0. A Newton step is
//!
//! ```text
//!     (A + D) Δλ = rhs,   D = z_lo/g_lo + z_hi/g_hi
//! ```
//!
//! so every iteration is one factorization of the same pattern with D added to the compliance, all
//! rows free. Predictor, corrector and up to three centrality correctors share it. Step lengths of λ
//! and z are separate. Rows with lo = hi take no part; rows without bounds have D = 0.
//! The products g z are energies, so they compare across rows of any unit.

use super::Label;
mod run;
mod side;

pub use run::{Pause, Run};

use super::bpp::Best;
use super::index_sets::is_held;
use super::residual;
use super::system::PivotSystem;
use side::{Side, fill};

/// Settings of the interior point.
#[derive(Clone, Copy, Debug)]
pub struct IpmSettings {
    /// Most iterations (each is one factorization).
    pub max_iterations: u32,
    /// Natural residual relative to max(1, ‖b‖) at which it ends.
    pub target: f64,
    /// Most centrality correctors per factorization.
    pub correctors: u32,
    /// Short common steps, always some centring: for problems on which the quick way jams.
    pub careful: bool,
    /// Starting distance from the bounds, in units of the typical impulse of a row.
    pub start_margin: f64,
}

impl Default for IpmSettings {
    fn default() -> Self {
        IpmSettings { max_iterations: 60, target: 1e-11, correctors: 2, careful: false, start_margin: 10.0 }
    }
}

/// Buffers of an interior-point run, kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct IpmMemory {
    sides: [Side; 2],
    active: Vec<bool>,
    /// Rows set aside.
    narrow: Vec<u32>,
    /// Share of rd that the direction at hand removes.
    share: f64,
    recentred: bool,
    /// Are directions refined?
    refined: bool,
    /// Root mean square of rd/√A_ii that the last step promised.
    promised: f64,
    /// 1/A_ii, 0 for rows that take no part.
    inverse_diagonal: Vec<f64>,
    lambda: Vec<f64>,
    w: Vec<f64>,
    rd: Vec<f64>,
    shift: Vec<f64>,
    dl: Vec<f64>,
    e: Vec<f64>,
    clamped: Vec<f64>,
    slack: Vec<f64>,
    labels: Vec<Label>,
    previous: Vec<Label>,
    /// Labels that changed in the last iteration.
    changes: usize,
}

/// A step shorter than this is spent on centring instead.
const JAMMED: f64 = 0.1;

/// Share of the way to the boundary that a step takes. Nearer to one the last iterations are fewer, and
/// some runs end with rows so far from the central path that nothing moves any more.
const KEEP: f64 = 0.995;

/// Share of a step's merit by which its rd may miss what was promised before directions are refined.
const ROUGH: f64 = 0.1;

/// Width of a box, relative to the typical impulse, below which its row is set aside.
const NARROW: f64 = 1e-9;

impl IpmMemory {
    /// The labels the last iterate suggests.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Starting point: well inside the box, multipliers of one size. Returns the number of bounds.
    fn start<S: PivotSystem>(&mut self, system: &mut S, margin: f64, size: f64) -> usize {
        let n = system.rows();
        for buffer in [
            &mut self.lambda,
            &mut self.w,
            &mut self.rd,
            &mut self.shift,
            &mut self.dl,
            &mut self.e,
            &mut self.clamped,
            &mut self.slack,
        ] {
            fill(buffer, n);
        }
        for labels in [&mut self.labels, &mut self.previous] {
            labels.clear();
            labels.resize(n, Label::Free);
        }
        self.active.clear();
        let held = system.lo().iter().zip(system.hi());
        self.active.extend(held.map(|(&lo, &hi)| !is_held(lo, hi)));
        let typical = self.typical_energy_root(system);
        self.set_narrow_rows_aside(system, typical);
        let typical = typical.max(size);
        self.promised = f64::INFINITY;
        self.inverse_diagonal.clear();
        let weight = |(&a, &on): (&f64, &bool)| if on { 1.0 / a.max(f64::MIN_POSITIVE) } else { 0.0 };
        self.inverse_diagonal.extend(system.diagonal().iter().zip(&self.active).map(weight));
        self.sides[0].prepare(1.0, system.lo(), &self.active);
        self.sides[1].prepare(-1.0, system.hi(), &self.active);
        for i in 0..n {
            let (lo, hi) = (system.lo()[i], system.hi()[i]);
            if !self.active[i] {
                self.lambda[i] = lo;
                continue;
            }
            let margin = (margin * typical / root(system.diagonal()[i])).min(0.5 * (hi - lo));
            self.lambda[i] = 0.0f64.max(lo + margin).min(hi - margin);
        }
        system.slack(&self.lambda, &mut self.w);
        let mut mean = 0.0;
        let mut count = 0usize;
        for i in 0..n {
            if self.active[i] {
                mean += self.w[i].abs() / root(system.diagonal()[i]);
                count += 1;
            }
        }
        let mean = (mean / count.max(1) as f64).max(1e-8 * typical).max(1e-100);
        // Every product g z the same: a start on the central path, however narrow a box is. In the middle
        // of a narrow box the two multipliers are large and cancel.
        let mu = mean * margin * typical;
        for i in 0..n {
            let [lower, upper] = &mut self.sides;
            lower.place(i, self.lambda[i] - system.lo()[i], mu);
            upper.place(i, system.hi()[i] - self.lambda[i], mu);
        }
        self.sides[0].count() + self.sides[1].count()
    }

    /// Boxes so narrow that their rows might as well be held take no part: their D would be twenty decades
    /// above the others. They sit at the bound their slack points to, and the crossover frees the few
    /// that belong in between.
    fn set_narrow_rows_aside<S: PivotSystem>(&mut self, system: &S, typical: f64) {
        self.narrow.clear();
        for i in 0..system.rows() {
            let width = (system.hi()[i] - system.lo()[i]) * root(system.diagonal()[i]);
            if self.active[i] && width <= NARROW * typical {
                self.narrow.push(i as u32);
                self.active[i] = false;
            }
        }
    }

    /// Puts narrow rows at the bound their slack points to.
    fn place_narrow_rows<S: PivotSystem>(&mut self, system: &mut S) {
        let mut moved = false;
        for &i in &self.narrow {
            let i = i as usize;
            let (label, bound) = if self.w[i] >= 0.0 {
                (Label::Lower, system.lo()[i])
            } else {
                (Label::Upper, system.hi()[i])
            };
            moved |= self.lambda[i] != bound;
            self.lambda[i] = bound;
            self.labels[i] = label;
        }
        if moved {
            system.slack(&self.lambda, &mut self.w);
        }
    }

    /// Root mean square of b/√A_ii over the rows that take part: λ√A_ii and w/√A_ii are of this size.
    ///
    /// Not the median: most rows of a pile are friction with nothing to do, and a start from their size is
    /// decades too close to the bounds for the rows that carry.
    fn typical_energy_root<S: PivotSystem>(&self, system: &S) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        for i in 0..system.rows() {
            if self.active[i] {
                sum += (system.b()[i] / root(system.diagonal()[i])).powi(2);
                count += 1;
            }
        }
        let typical = (sum / count.max(1) as f64).sqrt();
        if typical > 0.0 && typical.is_finite() { typical } else { 1.0 }
    }

    /// The labels the iterate suggests.
    fn label(&mut self) {
        let [lower, upper] = &self.sides;
        for i in 0..self.lambda.len() {
            // A bound is active when its distance is small beside what its multiplier could move.
            let reach = (lower.z[i] - upper.z[i]) * self.inverse_diagonal[i];
            self.labels[i] = if !self.active[i] || (lower.bounded[i] && lower.g[i] < reach) {
                Label::Lower
            } else if upper.bounded[i] && upper.g[i] < -reach {
                Label::Upper
            } else {
                Label::Free
            };
        }
    }

    /// Natural residual of the projected iterate, offered to `best` with the labels it suggests.
    fn residual<S: PivotSystem>(&mut self, system: &mut S, bounds: usize, best: &mut Best) -> f64 {
        system.slack(&self.lambda, &mut self.w);
        std::mem::swap(&mut self.previous, &mut self.labels);
        self.labels.resize(self.lambda.len(), Label::Free);
        self.label();
        self.place_narrow_rows(system);
        self.changes = self.labels.iter().zip(&self.previous).filter(|(a, b)| a != b).count();
        let n = self.lambda.len();
        let [lower, upper] = &self.sides;
        for i in 0..n {
            self.rd[i] = self.w[i] - lower.z[i] + upper.z[i];
        }
        self.clamped.copy_from_slice(&self.lambda);
        super::index_sets::project(&mut self.clamped, system.lo(), system.hi());
        // An interior point lies within its bounds but for round-off.
        let w = if self.clamped == self.lambda {
            &self.w
        } else {
            system.slack(&self.clamped, &mut self.slack);
            &self.slack
        };
        let r = residual::natural(&self.clamped, w, system.lo(), system.hi());
        self.watch_accuracy(bounds);
        best.offer(&self.clamped, &self.labels, r);
        r
    }

    fn mu(&self, bounds: usize) -> f64 {
        self.mu_after(bounds, 0.0, 0.0)
    }

    /// Did the last step remove as much of rd as it promised? If not, its direction was too rough, and the directions
    /// to come are refined.
    fn watch_accuracy(&mut self, bounds: usize) {
        let error = self.rd_size(0.0, 0.0) - self.promised;
        self.refined |= error > ROUGH * (self.mu(bounds).max(0.0).sqrt() + self.promised);
    }

    /// Root mean square of rd/√A_ii after a step: A Δλ − Δz_lo + Δz_hi = −share·rd.
    fn rd_size(&self, primal: f64, dual: f64) -> f64 {
        let n = self.rd.len();
        let [lower, upper] = &self.sides;
        let (down, up, weight) = (&lower.dz[..n], &upper.dz[..n], &self.inverse_diagonal[..n]);
        let (keep, apart) = (1.0 - self.share * primal, primal - dual);
        let mut sums = [0.0; 4];
        for (i, rd) in self.rd.iter().enumerate() {
            let rd = keep * rd + apart * (down[i] - up[i]);
            sums[i % 4] += rd * rd * weight[i];
        }
        ((sums[0] + sums[1] + sums[2] + sums[3]) / n.max(1) as f64).sqrt()
    }

    /// Is the point after a step worse than the one at hand?
    fn worsens(&self, bounds: usize, primal: f64, dual: f64) -> bool {
        self.merit(bounds, primal, dual) >= self.merit(bounds, 0.0, 0.0)
    }

    /// μ after a step.
    fn mu_after(&self, bounds: usize, primal: f64, dual: f64) -> f64 {
        let sum: f64 = self.sides.iter().map(|s| s.complementarity(&self.dl, primal, dual)).sum();
        sum / bounds.max(1) as f64
    }

    /// Largest |λ|√A_ii after a step, over the rows with a bound.
    fn impulse_size<S: PivotSystem>(&self, system: &S, primal: f64) -> f64 {
        let mut size = 0.0f64;
        for i in 0..self.dl.len() {
            if self.sides[0].bounded[i] || self.sides[1].bounded[i] {
                size = size.max((self.lambda[i] + primal * self.dl[i]).abs() * root(system.diagonal()[i]));
            }
        }
        size
    }

    /// One factorization, predictor, corrector, centrality correctors; the steps to take, or nothing
    /// if the numbers broke down.
    fn newton_step<S: PivotSystem>(
        &mut self,
        system: &mut S,
        settings: &IpmSettings,
        bounds: usize,
        mu: f64,
    ) -> Option<(f64, f64)> {
        self.factor(system);
        self.share = 1.0;
        // Predictor: aim at μ = 0.
        for side in &mut self.sides {
            side.c.fill(0.0);
        }
        self.direction(system);
        let (primal, dual) = self.steps();
        let alpha = primal.min(dual);
        let mut sigma_mu = 0.0;
        if bounds > 0 {
            let sides = self.sides.iter();
            let sum: f64 = sides.map(|s| s.complementarity(&self.dl, alpha, alpha)).sum();
            let ahead = (sum / bounds as f64 / mu).clamp(0.0, 1.0);
            sigma_mu = (ahead * ahead * ahead).max(if settings.careful { 0.1 } else { 0.0 }) * mu;
            // Corrector: centre, and take back the product the linearisation left out.
            for side in &mut self.sides {
                side.second_order(sigma_mu, &self.dl);
            }
            self.direction(system);
        }
        let (mut primal, mut dual) = self.steps();
        let jammed = bounds > 0 && primal.min(dual) < JAMMED;
        if settings.careful && jammed && !self.recentred {
            (primal, dual) = self.recentre(system, mu);
            sigma_mu = mu;
        }
        self.recentred = self.share == 0.0;
        for _ in 0..settings.correctors {
            if primal.min(dual) >= 0.999 || !self.centre(system, sigma_mu, &mut primal, &mut dual) {
                break;
            }
        }
        if !self.dl.iter().all(|x| x.is_finite()) {
            return None;
        }
        if settings.careful {
            let common = 0.9 * primal.min(dual);
            return Some((common, common));
        }
        Some(self.choose_steps(bounds, primal, dual))
    }

    /// A direction that only evens out the products g z, for points with rows stuck near their bounds.
    fn recentre<S: PivotSystem>(&mut self, system: &mut S, mu: f64) -> (f64, f64) {
        self.share = 0.0;
        for side in &mut self.sides {
            side.c.fill(mu);
        }
        self.direction(system);
        self.steps()
    }

    fn factor<S: PivotSystem>(&mut self, system: &mut S) {
        self.shift.fill(0.0);
        for side in &mut self.sides {
            side.renew(&mut self.shift);
        }
        for (shift, a) in self.shift.iter_mut().zip(system.diagonal()) {
            // Beyond this a row does not move in double precision, and larger numbers overflow.
            *shift = shift.min(1e24 * a.max(1e-30));
        }
        system.factor(&self.active, Some(&self.shift));
    }

    /// Δλ and Δz for the complementarity targets in `c`.
    fn direction<S: PivotSystem>(&mut self, system: &mut S) {
        let [lower, upper] = &self.sides;
        for i in 0..self.dl.len() {
            self.dl[i] = -self.share * self.rd[i] - lower.z[i] + upper.z[i];
        }
        for side in &self.sides {
            side.add_to_rhs(&mut self.dl);
        }
        solve(system, &mut self.dl, self.refined);
        for side in &mut self.sides {
            side.multiplier_direction(&self.dl);
        }
    }

    /// Step lengths of λ and of z to the boundary.
    fn steps(&self) -> (f64, f64) {
        let [lower, upper] = &self.sides;
        (
            lower.primal_step(&self.dl).min(upper.primal_step(&self.dl)),
            lower.dual_step(&lower.dz).min(upper.dual_step(&upper.dz)),
        )
    }

    /// One centrality corrector (Gondzio 1996): pulls outlying products back into [0.1, 10] σμ.
    /// Kept, and true, only if the step grows.
    fn centre<S: PivotSystem>(
        &mut self,
        system: &mut S,
        target: f64,
        primal: &mut f64,
        dual: &mut f64,
    ) -> bool {
        let reached = primal.min(*dual);
        let aim = (1.08 * reached + 0.08).min(1.0);
        let target = target.max(1e-300);
        self.e.fill(0.0);
        for side in &mut self.sides {
            side.outliers(aim, target, &self.dl, &mut self.e);
        }
        solve(system, &mut self.e, self.refined);
        for (e, dl) in self.e.iter_mut().zip(&self.dl) {
            *e += dl;
        }
        for side in &mut self.sides {
            side.corrected(&self.dl, &self.e);
        }
        let [lower, upper] = &self.sides;
        let new_primal = lower.primal_step(&self.e).min(upper.primal_step(&self.e));
        let new_dual = lower.dual_step(&lower.corrector).min(upper.dual_step(&upper.corrector));
        let better = new_primal.min(new_dual) >= reached + 0.01 * (aim - reached).max(0.0);
        if better && new_primal.min(new_dual) > reached {
            std::mem::swap(&mut self.dl, &mut self.e);
            for side in &mut self.sides {
                std::mem::swap(&mut side.dz, &mut side.corrector);
            }
            (*primal, *dual) = (new_primal, new_dual);
            return true;
        }
        false
    }

    /// Separate steps if they lead to a better point than the common one.
    ///
    /// In a quadratic program separate steps disturb A λ + b = z_lo − z_hi by the difference of the
    /// steps times Δz; that mostly pays and sometimes ruins the run. Both points are known in advance,
    /// so the smaller of √μ + ‖rd‖ (both √J in scaled rows) decides.
    fn choose_steps(&self, bounds: usize, primal: f64, dual: f64) -> (f64, f64) {
        let (primal, dual) = ((KEEP * primal).min(1.0), (KEEP * dual).min(1.0));
        let common = primal.min(dual);
        if self.merit(bounds, primal, dual) <= self.merit(bounds, common, common) {
            (primal, dual)
        } else {
            (common, common)
        }
    }

    fn merit(&self, bounds: usize, primal: f64, dual: f64) -> f64 {
        self.mu_after(bounds, primal, dual).max(0.0).sqrt() + self.rd_size(primal, dual)
    }

    fn advance(&mut self, primal: f64, dual: f64) {
        self.promised = self.rd_size(primal, dual);
        for (lambda, dl) in self.lambda.iter_mut().zip(&self.dl) {
            *lambda += primal * dl;
        }
        for side in &mut self.sides {
            side.advance(&self.dl, primal, dual);
        }
    }
}

/// (A + D) x = r in place, roughly or refined. The step after the next computes its rd anew, so a rough direction costs
/// progress and never accuracy.
fn solve<S: PivotSystem>(system: &mut S, x: &mut [f64], refined: bool) {
    if refined { system.solve(x) } else { system.solve_roughly(x) }
}

/// √A_ii, or 1 where a row has no mass to measure by.
fn root(a: f64) -> f64 {
    if a > 0.0 { a.sqrt() } else { 1.0 }
}
