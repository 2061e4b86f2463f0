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
//! rows free. Predictor, corrector and a few centrality correctors share it. Step lengths of λ
//! and z are separate. Rows with lo = hi take no part; rows without bounds have D = 0.
//! The products g z are energies, so they compare across rows of any unit.

mod chunk;
mod run;
mod side;

pub use chunk::Chunk;
pub use run::{Pause, Run};

use super::Label;
use super::bpp::Best;
use super::index_sets::is_held;
use super::system::PivotSystem;
use chunk::{Reading, StateSums};

/// Settings of the interior point.
#[derive(Clone, Copy, Debug)]
pub struct IpmSettings {
    /// Most iterations (each is one factorization).
    pub max_iterations: u32,
    /// Natural residual relative to max(1, ‖b‖) at which it ends.
    pub target: f64,
    /// Most centrality correctors per factorization. A second one saves less than it costs.
    pub correctors: u32,
    /// Share of Mehrotra's σ = (μ_affine/μ)³ that is aimed at. On redundant contacts predictors end at 0.5 to 0.7 of the way,
    /// the correctors after them nearly at the whole of it: they need less centring than the predictor foretells.
    pub centring: f64,
    /// Short common steps, always some centring: for problems on which the quick way jams.
    pub careful: bool,
    /// Velocities are found anew from λ at every step instead of going along with it. Impulses that are ten decades above their
    /// end on the way leave velocities behind that belong to no λ; found anew, they are Newton's to mend at once.
    pub exact: bool,
    /// Relative residual below which iterates of an exact run are kept on the way.
    pub good: f64,
    /// Starting distance from the bounds, in units of the typical impulse of a row.
    pub start_margin: f64,
    /// Relative residual below which quiet labels are tried. Labels that are quiet earlier than at 1e-7 are wrong in so many of
    /// the degenerate rows of a pile that most tries from 1e-3 on are in vain: two factorizations a solve.
    pub try_below: f64,
    /// Relative residual at which a run comes back for the first time (0 = not before it has arrived).
    pub rough: f64,
}

impl Default for IpmSettings {
    fn default() -> Self {
        IpmSettings {
            max_iterations: 60,
            target: 1e-11,
            correctors: 1,
            centring: 0.3,
            careful: false,
            exact: false,
            good: 1e-9,
            start_margin: 10.0,
            try_below: 1e-7,
            rough: 0.0,
        }
    }
}

/// A run of the interior point in memory that is kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct IpmMemory {
    chunks: Vec<Chunk>,
    /// Sums over all chunks of the iterate and of the direction at hand.
    now: StateSums,
    reading: Reading,
    /// Number of rows and of bounds.
    rows: usize,
    bounds: usize,
    /// Share of rd that the direction at hand removes.
    share: f64,
    recentred: bool,
    /// Are directions refined?
    refined: bool,
    /// Are velocities found anew at every step?
    exact: bool,
    /// Root mean square of rd/√A_ii that the last step promised.
    promised: f64,
    lambda: Vec<f64>,
    labels: Vec<Label>,
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
    /// The labels the iterate suggests, as of the last pause.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Starting point: well inside the box, multipliers of one size.
    fn start<S: PivotSystem>(&mut self, system: &mut S, margin: f64, size: f64) {
        self.rows = system.rows();
        system.chunks(&mut self.chunks);
        let typical = typical_energy_root(system);
        for chunk in &mut self.chunks {
            chunk.take(system.lo(), system.hi(), system.diagonal(), NARROW * typical);
        }
        let typical = typical.max(size);
        for chunk in &mut self.chunks {
            chunk.place_inside(system.diagonal(), margin * typical);
        }
        system.recompute(&mut self.chunks, &|_| {});
        let (mut mean, mut count) = (0.0, 0usize);
        for chunk in &self.chunks {
            let (sum, rows) = chunk.slack_size(system.diagonal());
            mean += sum;
            count += rows;
        }
        let mean = (mean / count.max(1) as f64).max(1e-8 * typical).max(1e-100);
        let mu = mean * margin * typical;
        self.bounds = 0;
        for chunk in &mut self.chunks {
            chunk.place_multipliers(mu);
            self.bounds += chunk.bounds();
            chunk.observe();
        }
        self.promised = f64::INFINITY;
        self.add_up(system);
    }

    /// Sums over the chunks after each has looked at its iterate.
    fn add_up<S: PivotSystem>(&mut self, system: &mut S) {
        if self.chunks.iter().any(|c| c.state_sums.moved) {
            system.recompute(&mut self.chunks, &Chunk::look_again);
        }
        let mut now = StateSums::default();
        for chunk in &self.chunks {
            let sums = &chunk.state_sums;
            now.products += sums.products;
            now.rd += sums.rd;
            now.natural += sums.natural;
            now.changes += sums.changes;
        }
        self.now = now;
        let error = self.rd_size(now.rd) - self.promised;
        self.refined |= error > ROUGH * (self.mu().max(0.0).sqrt() + self.promised);
    }

    /// Natural residual of the iterate.
    fn residual(&self) -> f64 {
        let r = self.now.natural.sqrt();
        if r.is_finite() { r } else { f64::INFINITY }
    }

    /// Computes the slack of the iterate anew from λ alone, and offers it to `best` with the labels it suggests.
    fn offer<S: PivotSystem>(&mut self, system: &mut S, best: &mut Best) -> f64 {
        system.recompute(&mut self.chunks, &Chunk::observe);
        self.promised = f64::INFINITY;
        self.add_up(system);
        self.lambda.clear();
        self.lambda.resize(self.rows, 0.0);
        self.labels.clear();
        self.labels.resize(self.rows, Label::Free);
        for chunk in &self.chunks {
            for (i, &row) in chunk.rows.iter().enumerate() {
                self.lambda[row as usize] = chunk.lambda[i];
                self.labels[row as usize] = chunk.labels[i];
            }
        }
        let r = self.residual();
        best.offer(&self.lambda, &self.labels, r);
        r
    }

    fn mu(&self) -> f64 {
        self.now.products / self.bounds.max(1) as f64
    }

    /// μ after a step.
    fn mu_after(&self, primal: f64, dual: f64) -> f64 {
        (self.now.products + self.reading.product_change(primal, dual)) / self.bounds.max(1) as f64
    }

    fn rd_size(&self, squares: f64) -> f64 {
        (squares / self.rows.max(1) as f64).sqrt()
    }

    /// Is the point after a step worse than the one at hand?
    fn worsens(&self, primal: f64, dual: f64) -> bool {
        self.merit(primal, dual) >= self.merit(0.0, 0.0)
    }

    /// Largest |λ|√A_ii after a step, over the rows with a bound.
    fn impulse_size<S: PivotSystem>(&self, system: &S, primal: f64) -> f64 {
        let sizes = self.chunks.iter().map(|c| c.impulse_size(system.diagonal(), primal));
        sizes.fold(0.0, f64::max)
    }

    /// One factorization, predictor, corrector, centrality correctors; the steps to take, or nothing
    /// if the numbers broke down.
    fn newton_step<S: PivotSystem>(&mut self, system: &mut S, settings: &IpmSettings) -> Option<(f64, f64)> {
        let mu = self.mu();
        self.share = 1.0;
        let (before, after) = (Chunk::prepare_predictor, Chunk::take_direction);
        system.newton(&mut self.chunks, true, self.refined, &before, &after);
        self.read();
        let (mut primal, mut dual) = self.reading.steps();
        let mut sigma_mu = 0.0;
        if self.bounds > 0 {
            let alpha = primal.min(dual);
            let ahead = (self.mu_after(alpha, alpha) / mu).clamp(0.0, 1.0);
            let cube = ahead * ahead * ahead;
            sigma_mu = if settings.careful { cube.max(0.1) } else { settings.centring * cube } * mu;
            let before = move |chunk: &mut Chunk| chunk.prepare_corrector(sigma_mu);
            system.newton(&mut self.chunks, false, self.refined, &before, &after);
            self.read();
            (primal, dual) = self.reading.steps();
        }
        let jammed = self.bounds > 0 && primal.min(dual) < JAMMED;
        if settings.careful && jammed && !self.recentred {
            // A direction that only evens out the products g z, for points with rows stuck near their bounds.
            self.share = 0.0;
            let before = move |chunk: &mut Chunk| chunk.prepare_centring(mu);
            system.newton(&mut self.chunks, false, self.refined, &before, &after);
            self.read();
            (primal, dual) = self.reading.steps();
            sigma_mu = mu;
        }
        self.recentred = self.share == 0.0;
        for _ in 0..settings.correctors {
            if primal.min(dual) >= 0.999 || !self.centre(system, sigma_mu, &mut primal, &mut dual) {
                break;
            }
        }
        if !self.reading.is_finite() {
            return None;
        }
        if settings.careful {
            let common = 0.9 * primal.min(dual);
            return Some((common, common));
        }
        Some(self.choose_steps(primal, dual))
    }

    fn read(&mut self) {
        self.reading = self.sum_of_readings();
    }

    fn sum_of_readings(&self) -> Reading {
        let mut sum = Reading::default();
        self.chunks.iter().for_each(|c| sum.add(&c.reading));
        sum
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
        let before = move |chunk: &mut Chunk| chunk.prepare_centrality(aim, target);
        system.newton(&mut self.chunks, false, self.refined, &before, &Chunk::try_direction);
        let trial = self.sum_of_readings();
        let (new_primal, new_dual) = trial.steps();
        let step = new_primal.min(new_dual);
        if step <= reached || step < reached + 0.01 * (aim - reached).max(0.0) {
            return false;
        }
        self.chunks.iter_mut().for_each(Chunk::keep_trial);
        self.reading = trial;
        (*primal, *dual) = (new_primal, new_dual);
        true
    }

    /// Separate steps if they lead to a better point than the common one.
    ///
    /// In a quadratic program separate steps disturb A λ + b = z_lo − z_hi by the difference of the
    /// steps times Δz; that mostly pays and sometimes ruins the run. Both points are known in advance,
    /// so the smaller of √μ + ‖rd‖ (both √J in scaled rows) decides.
    fn choose_steps(&self, primal: f64, dual: f64) -> (f64, f64) {
        let (primal, dual) = ((KEEP * primal).min(1.0), (KEEP * dual).min(1.0));
        let common = primal.min(dual);
        if self.merit(primal, dual) <= self.merit(common, common) { (primal, dual) } else { (common, common) }
    }

    fn merit(&self, primal: f64, dual: f64) -> f64 {
        let rd = self.reading.rd_after(self.now.rd, self.share, primal, dual);
        self.mu_after(primal, dual).max(0.0).sqrt() + self.rd_size(rd)
    }

    fn advance<S: PivotSystem>(&mut self, system: &mut S, primal: f64, dual: f64) {
        self.promised = self.rd_size(self.reading.rd_after(self.now.rd, self.share, primal, dual));
        if self.exact {
            self.chunks.iter_mut().for_each(|chunk| chunk.advance(primal, dual));
            system.recompute(&mut self.chunks, &Chunk::observe);
        } else {
            let before = move |chunk: &mut Chunk| chunk.advance(primal, dual);
            system.renew_slack(&mut self.chunks, &before, &Chunk::observe);
        }
        self.add_up(system);
    }
}

/// Root mean square of b/√A_ii over the rows that are not held: λ√A_ii and w/√A_ii are of this size.
///
/// Not the median: most rows of a pile are friction with nothing to do, and a start from their size is
/// decades too close to the bounds for the rows that carry.
fn typical_energy_root<S: PivotSystem>(system: &S) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for i in 0..system.rows() {
        if !is_held(system.lo()[i], system.hi()[i]) {
            let speed = system.b()[i] / root(system.diagonal()[i]);
            sum += speed * speed;
            count += 1;
        }
    }
    let typical = (sum / count.max(1) as f64).sqrt();
    if typical > 0.0 && typical.is_finite() { typical } else { 1.0 }
}

/// √A_ii, or 1 where a row has no mass to measure by.
pub(super) fn root(a: f64) -> f64 {
    if a > 0.0 { a.sqrt() } else { 1.0 }
}
