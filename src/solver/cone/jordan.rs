//! The Jordan algebra of the second-order cone of three dimensions, and Nesterov–Todd scaling.
//!
//! Source: Nesterov and Todd 1997; Vandenberghe, *The CVXOPT linear and quadratic cone program solvers*, 2010. Symbols: x, y in
//! {x₀ ≥ |x_t|}; x ∘ y = (xᵀy, x₀ y_t + y₀ x_t); e = (1, 0, 0); W the scaling with W y = W⁻¹ x; R = diag(1, −1, −1).

use crate::math::hypot;

/// A vector of the algebra.
pub type Three = [f64; 3];

/// x₀² − |x_t|², without cancellation.
#[inline]
pub fn det(x: Three) -> f64 {
    let t = hypot(x[1], x[2]);
    (x[0] - t) * (x[0] + t)
}

/// xᵀ y.
#[inline]
pub fn dot(x: Three, y: Three) -> f64 {
    x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
}

/// x ∘ y.
#[inline]
pub fn product(x: Three, y: Three) -> Three {
    [dot(x, y), x[0] * y[1] + y[0] * x[1], x[0] * y[2] + y[0] * x[2]]
}

/// v with l ∘ v = z.
#[inline]
pub fn quotient(l: Three, z: Three) -> Three {
    let first = (l[0] * z[0] - l[1] * z[1] - l[2] * z[2]) / det(l);
    [first, (z[1] - first * l[1]) / l[0], (z[2] - first * l[2]) / l[0]]
}

/// The scaling of a pair inside of the cone: W = η [w₀ w_tᵀ; w_t I + w_t w_tᵀ/(1 + w₀)], w₀² − |w_t|² = 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scaling {
    eta: f64,
    w: Three,
}

impl Scaling {
    /// Of x and y.
    #[inline]
    pub fn of(x: Three, y: Three) -> Self {
        let (dx, dy) = (det(x).max(1e-300).sqrt(), det(y).max(1e-300).sqrt());
        let (a, b) = (x.map(|x| x / dx), y.map(|y| y / dy));
        let half = 0.5 / (0.5 * (1.0 + dot(a, b))).sqrt();
        let w = [(a[0] + b[0]) * half, (a[1] - b[1]) * half, (a[2] - b[2]) * half];
        // w₀ from the other two: round-off of x and y must not leave the hyperboloid.
        Scaling { eta: (dx / dy).sqrt(), w: [(1.0 + w[1] * w[1] + w[2] * w[2]).sqrt(), w[1], w[2]] }
    }

    /// W z.
    #[inline]
    pub fn apply(&self, z: Three) -> Three {
        self.turn(self.w, z).map(|z| z * self.eta)
    }

    /// W⁻¹ z.
    #[inline]
    pub fn undo(&self, z: Three) -> Three {
        self.turn([self.w[0], -self.w[1], -self.w[2]], z).map(|z| z / self.eta)
    }

    #[inline]
    fn turn(&self, w: Three, z: Three) -> Three {
        let along = w[1] * z[1] + w[2] * z[2];
        let share = z[0] + along / (1.0 + w[0]);
        [w[0] * z[0] + along, z[1] + share * w[1], z[2] + share * w[2]]
    }

    /// W⁻² = (2 (R w)(R w)ᵀ − R)/η²: entries 00, 01, 02, 11, 12, 22.
    #[inline]
    pub fn inverse_square(&self) -> [f64; 6] {
        let (w, s) = (self.w, 1.0 / (self.eta * self.eta));
        let tangents = w[1] * w[1] + w[2] * w[2];
        [
            s * (1.0 + 2.0 * tangents),
            -2.0 * s * w[0] * w[1],
            -2.0 * s * w[0] * w[2],
            s * (1.0 + 2.0 * w[1] * w[1]),
            2.0 * s * w[1] * w[2],
            s * (1.0 + 2.0 * w[2] * w[2]),
        ]
    }
}

/// Product of a symmetric block in six numbers.
#[inline]
pub fn times(b: &[f64; 6], x: Three) -> Three {
    [
        b[0] * x[0] + b[1] * x[1] + b[2] * x[2],
        b[1] * x[0] + b[3] * x[1] + b[4] * x[2],
        b[2] * x[0] + b[4] * x[1] + b[5] * x[2],
    ]
}

/// The longest step from x, inside of the cone, along d that stays in it.
#[inline]
pub fn step_to_boundary(x: Three, d: Three) -> f64 {
    // a t² + 2 b t + c ≥ 0.
    let a = det(d);
    let b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2];
    let c = det(x).max(0.0);
    let mut step = if d[0] < 0.0 { -x[0] / d[0] } else { f64::INFINITY };
    let under = b * b - a * c;
    if under >= 0.0 {
        let root = under.sqrt();
        let far = if b >= 0.0 { b + root } else { b - root };
        for t in [-c / far, -far / a] {
            if t > 0.0 && t < step {
                step = t;
            }
        }
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scaling_takes_both_to_the_same_point() {
        for (x, y) in [
            ([1.0, 0.0, 0.0], [2.0, 1.0, 0.5]),
            ([1.0, 0.6, -0.79], [1e-3, -4e-4, 9e-4]),
            ([1e5, 9e4, 4e4], [1e-6, 5e-7, -8e-7]),
        ] {
            let scaling = Scaling::of(x, y);
            let (a, b) = (scaling.apply(y), scaling.undo(x));
            // Conditioned like (1 − |x_t|/x₀): 1e-12 of 1e-2 left.
            (0..3).for_each(|i| assert!((a[i] - b[i]).abs() < 1e-11 * a[0], "{a:?} {b:?}"));
            let again = scaling.undo(scaling.undo(x));
            let block = times(&scaling.inverse_square(), x);
            (0..3).for_each(|i| assert!((again[i] - block[i]).abs() < 1e-11 * again[0]));
            let v = quotient(a, product(a, [0.3, -2.0, 1.0]));
            assert!((v[0] - 0.3).abs() + (v[1] + 2.0).abs() + (v[2] - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_longest_step_ends_on_the_boundary() {
        for (x, d, step) in [
            ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], 1.0),
            ([1.0, 0.0, 0.0], [0.0, 3.0, 4.0], 0.2),
            ([1.0, 0.5, 0.0], [1.0, 1.0, 0.0], f64::INFINITY),
            ([2.0, 0.0, 1.0], [1.0, 0.0, 2.0], 1.0),
        ] {
            let found = step_to_boundary(x, d);
            assert!(found == step || (found - step).abs() < 1e-14, "{x:?} {d:?}: {found}");
        }
    }
}
