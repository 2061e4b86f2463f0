//! Projected Gauss–Seidel (000 §7.1, Table 1: 1,000 sweeps, 1e-9), with warm start.
//!
//! A sweep sets each row in turn to λ_i ← clamp(λ_i − w_i / A_ii). It is here to be compared with: on
//! stiff chains and heavy loads it stagnates long before the residual is small, and says so.

use crate::solver::Label;
use crate::solver::bpp::Best;
use crate::solver::index_sets::is_held;
use crate::solver::residual;
use crate::solver::system::PivotSystem;

/// Settings of the sweeps.
#[derive(Clone, Copy, Debug)]
pub struct PgsSettings {
    /// Most sweeps.
    pub max_sweeps: u32,
    /// Natural residual relative to max(1, ‖b‖) at which they end.
    pub target: f64,
    /// Sweeps between two looks at the residual.
    pub every: u32,
}

impl Default for PgsSettings {
    fn default() -> Self {
        PgsSettings { max_sweeps: 1000, target: 1e-9, every: 10 }
    }
}

/// Buffers of the sweeps.
#[derive(Clone, Debug, Default)]
pub struct PgsMemory {
    pub(super) lambda: Vec<f64>,
    pub(super) w: Vec<f64>,
    pub(super) labels: Vec<Label>,
}

impl PgsMemory {
    /// Starts from a guess, projected; from zero where it does not fit.
    pub(super) fn start<S: PivotSystem>(&mut self, system: &S, guess: &[f64]) {
        let n = system.rows();
        self.lambda.clear();
        if guess.len() == n && guess.iter().all(|x| x.is_finite()) {
            self.lambda.extend_from_slice(guess);
        } else {
            self.lambda.resize(n, 0.0);
        }
        super::super::index_sets::project(&mut self.lambda, system.lo(), system.hi());
        self.w.clear();
        self.w.resize(n, 0.0);
    }

    /// Natural residual of the point, offered to `best` with the labels of the bounds it touches.
    pub(super) fn offer<S: PivotSystem>(&mut self, system: &mut S, best: &mut Best) -> f64 {
        system.honest_slack(&self.lambda, &mut self.w);
        let r = residual::natural(&self.lambda, &self.w, system.lo(), system.hi());
        self.label_by_bounds(system);
        best.offer(&self.lambda, &self.labels, r);
        r
    }

    /// A row at a bound is tight there.
    pub(super) fn label_by_bounds<S: PivotSystem>(&mut self, system: &S) {
        self.labels.clear();
        let bounds = system.lo().iter().zip(system.hi());
        self.labels.extend(self.lambda.iter().zip(bounds).map(|(&l, (&lo, &hi))| {
            if is_held(lo, hi) || l <= lo {
                Label::Lower
            } else if l >= hi {
                Label::Upper
            } else {
                Label::Free
            }
        }));
    }
}

/// Sweeps from `guess`; returns the number of sweeps. The best point goes into `best`.
pub fn sweep_until<S: PivotSystem>(
    system: &mut S,
    guess: &[f64],
    settings: &PgsSettings,
    memory: &mut PgsMemory,
    best: &mut Best,
) -> u32 {
    let enough = settings.target * system.scale();
    memory.start(system, guess);
    let mut sweeps = 0;
    while memory.offer(system, best) > enough && sweeps < settings.max_sweeps {
        for _ in 0..settings.every.max(1) {
            system.sweep(&mut memory.lambda);
        }
        sweeps += settings.every.max(1);
    }
    sweeps
}
