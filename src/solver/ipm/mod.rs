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
        IpmSettings { max_iterations: 60, target: 1e-11, correctors: 3, careful: false, start_margin: 10.0 }
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
            if lower.bounded[i] {
                lower.g[i] = (self.lambda[i] - system.lo()[i]).max(1e-200);
                lower.z[i] = mu / lower.g[i];
            }
            if upper.bounded[i] {
                upper.g[i] = (system.hi()[i] - self.lambda[i]).max(1e-200);
                upper.z[i] = mu / upper.g[i];
            }
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
    fn label<S: PivotSystem>(&mut self, system: &S) {
        let [lower, upper] = &self.sides;
        for i in 0..self.lambda.len() {
            // A bound is active when its distance is small beside what its multiplier could move.
            let reach = (lower.z[i] - upper.z[i]) / system.diagonal()[i].max(f64::MIN_POSITIVE);
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
    fn residual<S: PivotSystem>(&mut self, system: &mut S, best: &mut Best) -> f64 {
        system.slack(&self.lambda, &mut self.w);
        std::mem::swap(&mut self.previous, &mut self.labels);
        self.labels.resize(self.lambda.len(), Label::Free);
        self.label(system);
        self.place_narrow_rows(system);
        self.changes = self.labels.iter().zip(&self.previous).filter(|(a, b)| a != b).count();
        let n = self.lambda.len();
        let [lower, upper] = &self.sides;
        for i in 0..n {
            self.rd[i] = self.w[i] - lower.z[i] + upper.z[i];
        }
        self.clamped.copy_from_slice(&self.lambda);
        super::index_sets::project(&mut self.clamped, system.lo(), system.hi());
        system.slack(&self.clamped, &mut self.slack);
        let r = residual::natural(&self.clamped, &self.slack, system.lo(), system.hi());
        best.offer(&self.clamped, &self.labels, r);
        r
    }

    fn mu(&self, bounds: usize) -> f64 {
        let sum: f64 = self.sides.iter().map(|s| s.complementarity(&self.lambda, 0.0)).sum();
        sum / bounds.max(1) as f64
    }

    /// Is the point after a step worse than the one at hand?
    fn worsens(&self, diagonal: &[f64], bounds: usize, primal: f64, dual: f64) -> bool {
        self.merit(diagonal, bounds, primal, dual) >= self.merit(diagonal, bounds, 0.0, 0.0)
    }

    /// μ after a step.
    fn mu_after(&self, bounds: usize, primal: f64, dual: f64) -> f64 {
        let mut sum = 0.0;
        for side in &self.sides {
            for i in 0..self.dl.len() {
                if side.bounded[i] {
                    let g = side.g[i] + primal * side.sign * self.dl[i];
                    sum += g * (side.z[i] + dual * side.dz[i]);
                }
            }
        }
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
            let sum: f64 = sides.map(|s| s.complementarity(&self.dl, alpha)).sum();
            let ahead = (sum / bounds as f64 / mu).clamp(0.0, 1.0);
            sigma_mu = (ahead * ahead * ahead).max(if settings.careful { 0.1 } else { 0.0 }) * mu;
            // Corrector: centre, and take back the product the linearisation left out.
            for side in &mut self.sides {
                for i in 0..self.dl.len() {
                    side.c[i] = sigma_mu - side.sign * self.dl[i] * side.dz[i];
                }
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
        Some(self.choose_steps(system.diagonal(), bounds, primal, dual))
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
        for i in 0..self.shift.len() {
            let mut d = 0.0;
            for side in &self.sides {
                if side.bounded[i] {
                    d += side.z[i] / side.g[i];
                }
            }
            // Beyond this a row does not move in double precision, and larger numbers overflow.
            self.shift[i] = d.min(1e24 * system.diagonal()[i].max(1e-30));
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
            side.add_to_rhs(&side.c, &mut self.dl);
        }
        system.solve(&mut self.dl);
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
            for i in 0..self.dl.len() {
                side.corrector[i] = 0.0;
                if side.bounded[i] {
                    let product = (side.g[i] + aim * side.sign * self.dl[i]) * (side.z[i] + aim * side.dz[i]);
                    let wanted = product.clamp(0.1 * target, 10.0 * target);
                    side.corrector[i] = (wanted - product).max(-10.0 * target);
                }
            }
            side.add_to_rhs(&side.corrector, &mut self.e);
        }
        system.solve(&mut self.e);
        for i in 0..self.dl.len() {
            self.e[i] += self.dl[i];
        }
        for side in &mut self.sides {
            for i in 0..self.dl.len() {
                if side.bounded[i] {
                    let de = self.e[i] - self.dl[i];
                    side.corrector[i] =
                        side.dz[i] + (side.corrector[i] - side.z[i] * side.sign * de) / side.g[i];
                }
            }
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
    fn choose_steps(&self, diagonal: &[f64], bounds: usize, primal: f64, dual: f64) -> (f64, f64) {
        let (primal, dual) = ((KEEP * primal).min(1.0), (KEEP * dual).min(1.0));
        let common = primal.min(dual);
        if self.merit(diagonal, bounds, primal, dual) <= self.merit(diagonal, bounds, common, common) {
            (primal, dual)
        } else {
            (common, common)
        }
    }

    fn merit(&self, diagonal: &[f64], bounds: usize, primal: f64, dual: f64) -> f64 {
        let [lower, upper] = &self.sides;
        let (mut products, mut squares) = (0.0, 0.0);
        for i in 0..self.dl.len() {
            if !self.active[i] {
                continue;
            }
            for side in &self.sides {
                if side.bounded[i] {
                    let g = side.g[i] + primal * side.sign * self.dl[i];
                    products += g * (side.z[i] + dual * side.dz[i]);
                }
            }
            // A Δλ − Δz_lo + Δz_hi = −share·rd, hence rd after the step:
            let rd = (1.0 - self.share * primal) * self.rd[i] + (primal - dual) * (lower.dz[i] - upper.dz[i]);
            squares += rd * rd / diagonal[i].max(f64::MIN_POSITIVE);
        }
        (products / bounds.max(1) as f64).max(0.0).sqrt() + (squares / self.dl.len().max(1) as f64).sqrt()
    }

    fn advance(&mut self, primal: f64, dual: f64) {
        for i in 0..self.lambda.len() {
            self.lambda[i] += primal * self.dl[i];
        }
        for side in &mut self.sides {
            for i in 0..self.dl.len() {
                if side.bounded[i] {
                    side.g[i] += primal * side.sign * self.dl[i];
                    side.z[i] += dual * side.dz[i];
                    // Round-off may land on the bound itself.
                    side.g[i] = side.g[i].max(1e-250);
                    side.z[i] = side.z[i].max(1e-250);
                }
            }
        }
    }
}

/// √A_ii, or 1 where a row has no mass to measure by.
fn root(a: f64) -> f64 {
    if a > 0.0 { a.sqrt() } else { 1.0 }
}
