//! One side of the box: distances to a bound, their multipliers, and the directions of both.

/// A side of the box: distances to the bound, multipliers, and the directions of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// +1 for the lower bound (g = λ − lo), −1 for the upper one.
    pub(super) sign: f64,
    pub(super) bounded: Vec<bool>,
    pub(super) g: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) dz: Vec<f64>,
    /// Right-hand side of the complementarity equation, then of a corrector.
    pub(super) c: Vec<f64>,
    pub(super) corrector: Vec<f64>,
}

pub(super) fn fill(buffer: &mut Vec<f64>, n: usize) {
    buffer.clear();
    buffer.resize(n, 0.0);
}

impl Side {
    pub(super) fn prepare(&mut self, sign: f64, bound: &[f64], active: &[bool]) {
        let n = bound.len();
        self.sign = sign;
        self.bounded.clear();
        let finite = bound.iter().zip(active);
        self.bounded.extend(finite.map(|(b, &a)| a && b.is_finite()));
        for buffer in [&mut self.g, &mut self.z, &mut self.dz, &mut self.c, &mut self.corrector] {
            fill(buffer, n);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.bounded.iter().filter(|&&b| b).count()
    }

    /// Largest step in [0, 1] that keeps g + α s Δλ ≥ 0.
    pub(super) fn primal_step(&self, dl: &[f64]) -> f64 {
        let mut step = 1.0f64;
        for i in 0..dl.len() {
            let dg = self.sign * dl[i];
            if self.bounded[i] && dg < 0.0 {
                step = step.min(-self.g[i] / dg);
            }
        }
        step
    }

    /// Largest step in [0, 1] that keeps z + α Δz ≥ 0, for Δz plus an optional correction.
    pub(super) fn dual_step(&self, dz: &[f64]) -> f64 {
        let mut step = 1.0f64;
        for i in 0..dz.len() {
            if self.bounded[i] && dz[i] < 0.0 {
                step = step.min(-self.z[i] / dz[i]);
            }
        }
        step
    }

    /// Σ (g + α s Δλ)(z + α Δz).
    pub(super) fn complementarity(&self, dl: &[f64], alpha: f64) -> f64 {
        let mut sum = 0.0;
        for i in 0..dl.len() {
            if self.bounded[i] {
                sum += (self.g[i] + alpha * self.sign * dl[i]) * (self.z[i] + alpha * self.dz[i]);
            }
        }
        sum
    }

    /// Δz of g Δz + z s Δλ = c − g z, row by row.
    pub(super) fn multiplier_direction(&mut self, dl: &[f64]) {
        for i in 0..dl.len() {
            self.dz[i] = if self.bounded[i] {
                -self.z[i] + (self.c[i] - self.z[i] * self.sign * dl[i]) / self.g[i]
            } else {
                0.0
            };
        }
    }

    /// Adds s c / g, the part of the complementarity right-hand side that enters (A + D) Δλ = rhs.
    pub(super) fn add_to_rhs(&self, c: &[f64], rhs: &mut [f64]) {
        for i in 0..rhs.len() {
            if self.bounded[i] {
                rhs[i] += self.sign * c[i] / self.g[i];
            }
        }
    }
}
