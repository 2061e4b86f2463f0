//! The laws of a row, in one place: free, box, soft and cone; and how far a point is from obeying them.
//!
//! Source: De Saxcé and Feng 1998; Acary and Cadoux 2013 (natural map); Alart and Curnier 1991 (index sets). Symbols: λ impulse,
//! w = A λ + b slack velocity, n normal, t tangents, μ friction, K = {|λ_t| ≤ μ λ_n}, K* its dual, ρ a step in kg.
//!
//! | law | λ | w |
//! |---|---|---|
//! | free | any | 0 |
//! | box | lo ≤ λ ≤ hi | ≥ 0 at lo, ≤ 0 at hi, 0 between |
//! | soft | as free or box | with C in A: w = J v + C λ + d |
//! | cone | in K | (w_n + μ\|w_t\|, w_t) in K*, orthogonal to λ |
//!
//! The shift μ|w_t| is what makes friction Coulomb's: without it the law is the associated one, and a block that slides would lift at
//! μ|w_t|. For the same reason no solver here projects on K as a whole: the normal comes first, then the disk of radius μ λ_n.

use crate::math::hypot;
use crate::solver::problem::Cone;
use crate::solver::residual::natural_row;
use crate::solver::{Label, SolveStats};

/// A row in no cone.
pub const NO_CONE: u32 = u32::MAX;

/// Every row's law. A cone without friction is a box: [0, ∞) and two rows held at zero.
#[derive(Clone, Debug, Default)]
pub struct Laws {
    /// Bounds of the rows in no cone.
    pub lo: Vec<f64>,
    /// The same.
    pub hi: Vec<f64>,
    /// Cones with friction.
    pub cones: Vec<Cone>,
    /// The cone of each row, or [`NO_CONE`].
    pub of_row: Vec<u32>,
}

impl Laws {
    /// Takes the laws of a problem.
    pub fn take(&mut self, lo: &[f64], hi: &[f64], cones: &[Cone]) {
        self.lo.clear();
        self.lo.extend_from_slice(lo);
        self.hi.clear();
        self.hi.extend(lo.iter().zip(hi).map(|(&lo, &hi)| hi.max(lo)));
        self.of_row.clear();
        self.of_row.resize(lo.len(), NO_CONE);
        self.cones.clear();
        for cone in cones {
            let first = cone.row as usize;
            if cone.mu > 0.0 {
                self.of_row[first..first + 3].fill(self.cones.len() as u32);
                self.cones.push(*cone);
            } else {
                self.lo[first..first + 3].fill(0.0);
                (self.hi[first], self.hi[first + 1], self.hi[first + 2]) = (f64::INFINITY, 0.0, 0.0);
            }
        }
    }

    /// Σ of squares of the natural map with a step ρ over all rows; infinite where anything is not a number.
    pub fn natural_square(&self, lambda: &[f64], w: &[f64], rho: f64) -> f64 {
        let mut sum = 0.0;
        for cone in &self.cones {
            let r = natural_cone(three(lambda, cone.row), three(w, cone.row), cone.mu, rho);
            sum += r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        }
        for (i, _) in self.of_row.iter().enumerate().filter(|(_, cone)| **cone == NO_CONE) {
            let r = natural_row(lambda[i], rho * w[i], self.lo[i], self.hi[i]);
            sum += r * r + 0.0 * (lambda[i] + w[i]);
        }
        if sum.is_finite() { sum } else { f64::INFINITY }
    }

    /// ‖r‖ with ρ = 1 kg, and relative: the larger of ‖r‖/max(‖b‖, ‖λ‖, ‖w‖), which adds newton-seconds to metres per second, and the same
    /// with ρ = ‖λ‖/‖b‖ relative to ‖λ‖, which does not.
    pub fn residual(&self, lambda: &[f64], w: &[f64], b: &[f64]) -> (f64, f64) {
        let size = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (impulse, free) = (size(lambda), size(b));
        let plain = self.natural_square(lambda, w, 1.0).sqrt();
        let yardstick = impulse.max(free).max(size(w));
        let mut relative = if yardstick > f64::EPSILON { plain / yardstick } else { plain };
        // Where nothing moves freely ρ would be a quotient of round-offs.
        if impulse > 0.0 && free > 1e-13 {
            let scaled = self.natural_square(lambda, w, impulse / free).sqrt() / impulse;
            relative = relative.max(scaled);
        }
        (plain, if relative.is_finite() { relative } else { f64::INFINITY })
    }

    /// The measures of a point, and whether it passes.
    pub fn judge(
        &self,
        point: (&[f64], &[f64]),
        b: &[f64],
        diagonal: &[f64],
        tolerance: f64,
        stats: &mut SolveStats,
    ) {
        let (lambda, w) = point;
        (stats.residual, stats.residual_relative) = self.residual(lambda, w, b);
        stats.residual_energy = self.energy(lambda, w, diagonal);
        stats.converged = stats.residual_relative <= tolerance;
    }

    /// Half the mean square of the natural map in λ√a and w/√a (J); a cone's a is that of its normal.
    fn energy(&self, lambda: &[f64], w: &[f64], diagonal: &[f64]) -> f64 {
        let inertia = |row: usize| if diagonal[row] > 0.0 { diagonal[row] } else { 1.0 };
        let mut sum = 0.0;
        for cone in &self.cones {
            let a = inertia(cone.row as usize);
            let r = natural_cone(three(lambda, cone.row), three(w, cone.row), cone.mu, 1.0 / a);
            sum += a * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
        }
        for (i, _) in self.of_row.iter().enumerate().filter(|(_, cone)| **cone == NO_CONE) {
            let a = inertia(i);
            let r = natural_row(lambda[i], w[i] / a, self.lo[i], self.hi[i]);
            sum += a * r * r;
        }
        let mean = 0.5 * sum / lambda.len().max(1) as f64;
        if mean.is_finite() { mean } else { f64::INFINITY }
    }

    /// Is every row in its box, every cone's impulse in the cone? Brings λ there: the normal first, then the disk.
    pub fn project(&self, lambda: &mut [f64]) {
        for (i, _) in self.of_row.iter().enumerate().filter(|(_, cone)| **cone == NO_CONE) {
            lambda[i] = lambda[i].max(self.lo[i]).min(self.hi[i]);
        }
        for cone in &self.cones {
            let i = cone.row as usize;
            let l = &mut lambda[i..i + 3];
            l[0] = l[0].max(0.0);
            let (most, size) = (cone.mu * l[0], hypot(l[1], l[2]));
            if size > most {
                let share = most / size;
                (l[1], l[2]) = (l[1] * share, l[2] * share);
            }
        }
    }

    /// The labels that go with a point: of a cone, all rows free where it sticks; the normal alone where it slides; none where it is open.
    pub fn labels(&self, lambda: &[f64], w: &[f64], diagonal: &[f64], labels: &mut Vec<Label>) {
        labels.clear();
        labels.extend((0..lambda.len()).map(|i| self.label_of_row(i, lambda[i], w[i], diagonal[i])));
        for cone in &self.cones {
            let i = cone.row as usize;
            let side = Side::of(cone.mu, three(lambda, cone.row), three(w, cone.row), steps(diagonal, i));
            labels[i..i + 3].copy_from_slice(&side.labels());
        }
    }

    /// λ of row i after its turn in a sweep; `lambda` holds those of the rows before it, w and a are its own.
    pub fn relax(&self, i: usize, lambda: &mut [f64], w: f64, a: f64) {
        if a > 0.0 {
            lambda[i] -= w / a;
        }
        match self.of_row[i] {
            NO_CONE => lambda[i] = lambda[i].max(self.lo[i]).min(self.hi[i]),
            k => {
                let cone = self.cones[k as usize];
                let first = cone.row as usize;
                if i == first {
                    lambda[i] = lambda[i].max(0.0);
                } else if i == first + 2 {
                    let (most, size) = (cone.mu * lambda[first], hypot(lambda[first + 1], lambda[first + 2]));
                    if size > most {
                        lambda[first + 1] *= most / size;
                        lambda[first + 2] *= most / size;
                    }
                }
            }
        }
    }

    /// The label of a row in no cone: where λ − w/a lies.
    pub fn label_of_row(&self, i: usize, lambda: f64, w: f64, a: f64) -> Label {
        let aim = lambda - w / if a > 0.0 { a } else { 1.0 };
        if aim <= self.lo[i] {
            Label::Lower
        } else if aim >= self.hi[i] {
            Label::Upper
        } else {
            Label::Free
        }
    }
}

/// Three numbers from a row on.
#[inline]
pub fn three(x: &[f64], row: u32) -> [f64; 3] {
    let i = row as usize;
    [x[i], x[i + 1], x[i + 2]]
}

/// ρ of a cone's normal and of its tangents: 1/A_ii.
#[inline]
pub fn steps(diagonal: &[f64], first: usize) -> [f64; 2] {
    let inverse = |a: f64| if a > 0.0 { 1.0 / a } else { 1.0 };
    [inverse(diagonal[first]), inverse(0.5 * (diagonal[first + 1] + diagonal[first + 2]))]
}

/// The nearest point of {|x_t| ≤ μ x_n}. It belongs to De Saxcé's form, where w is shifted, and to nothing else.
#[inline]
pub fn nearest_in_cone(x: [f64; 3], mu: f64) -> [f64; 3] {
    let t = hypot(x[1], x[2]);
    if t <= mu * x[0] {
        return x;
    }
    if mu * t <= -x[0] {
        return [0.0; 3];
    }
    let n = (x[0] + mu * t) / (1.0 + mu * mu);
    [n, mu * n * x[1] / t, mu * n * x[2] / t]
}

/// λ − P_K(λ − ρ (w + μ|w_t| n)).
#[inline]
pub fn natural_cone(lambda: [f64; 3], w: [f64; 3], mu: f64, rho: f64) -> [f64; 3] {
    let shift = mu * hypot(w[1], w[2]);
    let x = [lambda[0] - rho * (w[0] + shift), lambda[1] - rho * w[1], lambda[2] - rho * w[2]];
    let p = nearest_in_cone(x, mu);
    [lambda[0] - p[0], lambda[1] - p[1], lambda[2] - p[2]]
}

/// On which piece of its law a cone stands (Alart and Curnier).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    /// λ = 0.
    Open,
    /// w = 0.
    Stick,
    /// w_n = 0; λ along `along` is μ λ_n, and across it w + `across` λ = 0: the direction of friction turns with that of sliding.
    Slip {
        /// Unit vector of the impulse, against sliding.
        along: [f64; 2],
        /// (|τ| − μ z_n)/(ρ μ z_n), about |w_t|/(μ λ_n), in 1/kg.
        across: f64,
    },
}

impl Side {
    /// The piece on which λ − ρ w lies.
    #[inline]
    pub fn of(mu: f64, lambda: [f64; 3], w: [f64; 3], [normal, tangent]: [f64; 2]) -> Self {
        let aim = lambda[0] - normal * w[0];
        if aim <= 0.0 || aim.is_nan() {
            return Side::Open;
        }
        let most = mu * aim;
        let tau = [lambda[1] - tangent * w[1], lambda[2] - tangent * w[2]];
        let size = hypot(tau[0], tau[1]);
        if size <= most {
            return Side::Stick;
        }
        Side::Slip { along: [tau[0] / size, tau[1] / size], across: (size - most) / (tangent * most) }
    }

    /// The labels of its rows.
    pub fn labels(self) -> [Label; 3] {
        match self {
            Side::Open => [Label::Lower; 3],
            Side::Stick => [Label::Free; 3],
            Side::Slip { .. } => [Label::Free, Label::Upper, Label::Upper],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_natural_map_vanishes_on_open_sticking_and_sliding_contacts_alone() {
        for (lambda, w, zero) in [
            ([0.0; 3], [0.3, 1.0, -2.0], true),           // open
            ([2.0, 0.6, -0.7], [0.0; 3], true),           // sticks inside of the cone
            ([2.0, 0.6, 0.8], [0.0, -3.0, -4.0], true),   // slides against friction
            ([2.0, 0.6, 0.8], [0.0, 3.0, 4.0], false),    // slides with it
            ([2.0, 0.6, 0.8], [0.25, -0.3, -0.4], false), // lifts while it slides: the associated law
            ([2.0, 0.0, 0.0], [0.0, 1.0, 0.0], false),    // slides without friction
            ([2.0, 1.2, 0.0], [0.0; 3], false),           // more than there is
        ] {
            let r = natural_cone(lambda, w, 0.5, 1.0);
            let size = r.iter().map(|r| r * r).sum::<f64>().sqrt();
            // A few ε of numbers of size four.
            assert_eq!(size < 1e-14, zero, "{lambda:?} {w:?}: {size}");
        }
    }

    #[test]
    fn a_point_says_on_which_piece_it_stands() {
        let of = |lambda, w| Side::of(0.5, lambda, w, [1.0, 1.0]);
        assert_eq!(of([0.0; 3], [1.0, 5.0, 0.0]), Side::Open);
        assert_eq!(of([2.0, 0.5, 0.0], [0.0; 3]), Side::Stick);
        let Side::Slip { along, across } = of([2.0, 0.6, 0.8], [0.0, -3.0, -4.0]) else { panic!() };
        assert!((along[0] - 0.6).abs() < 1e-15 && (along[1] - 0.8).abs() < 1e-15);
        // |w_t|/(μ λ_n) = 5/1.
        assert!((across - 5.0).abs() < 1e-14);
    }
}
