//! Preconditioned conjugate gradients on the free rows (003 Algorithms 3 and 8).
//!
//! Solves (A + D)_FF x = r with A only multiplied. The residual that is reported, and that decides, is
//! computed from x at the end; the recurrence only says when to look.

use crate::linalg::incomplete::Preconditioner;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct PcgSettings {
    /// ‖r‖₂ at which a solve is done, in the unit of w.
    pub tolerance: f64,
    /// Most iterations.
    pub max_iterations: u32,
}

/// How a solve went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PcgReport {
    /// Iterations.
    pub iterations: u32,
    /// ‖r‖₂ of the answer, computed from it.
    pub residual: f64,
    /// Is that within the tolerance?
    pub converged: bool,
}

/// Buffers of the iteration.
#[derive(Clone, Debug, Default)]
pub struct PcgMemory {
    r: Vec<f64>,
    z: Vec<f64>,
    q: Vec<f64>,
    aq: Vec<f64>,
}

/// Which rows, with which shift of the diagonal.
#[derive(Clone, Copy)]
pub struct Subspace<'a> {
    /// The free rows.
    pub free: &'a [bool],
    /// D.
    pub shift: Option<&'a [f64]>,
    /// The diagonal of A, which tells the size of its entries.
    pub diagonal: &'a [f64],
}

impl Subspace<'_> {
    /// y = (A + D)_FF x for an x that is zero elsewhere.
    pub fn multiply(&self, product: &mut impl FnMut(&[f64], &mut [f64]), x: &[f64], y: &mut [f64]) {
        product(x, y);
        for i in 0..x.len() {
            let d = self.shift.map_or(0.0, |s| s[i]);
            y[i] = if self.free[i] { y[i] + d * x[i] } else { 0.0 };
        }
    }
}

/// The size at which A x is only round-off: |A_ij| ≤ √(A_ii A_jj), and a row adds up n terms.
pub(super) fn round_off(diagonal: &[f64], x: &[f64]) -> f64 {
    let (mut largest, mut size) = (0.0f64, 0.0f64);
    for (a, x) in diagonal.iter().zip(x) {
        largest = largest.max(a.max(0.0));
        size = size.max(a.max(0.0) * x * x);
    }
    8.0 * f64::EPSILON * (largest * size * x.len() as f64).sqrt()
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Looks at the true residual this many times at most: more would only fight round-off.
const MAX_RESTARTS: u32 = 3;

/// Improves `x` (zero on rows that are not free) until (A + D)_FF x = rhs.
pub fn solve(
    product: &mut impl FnMut(&[f64], &mut [f64]),
    subspace: Subspace,
    preconditioner: &mut Preconditioner,
    rhs: &[f64],
    x: &mut [f64],
    settings: &PcgSettings,
    memory: &mut PcgMemory,
) -> PcgReport {
    let n = x.len();
    for buffer in [&mut memory.r, &mut memory.z, &mut memory.q, &mut memory.aq] {
        buffer.clear();
        buffer.resize(n, 0.0);
    }
    let PcgMemory { r, z, q, aq } = memory;
    let mut report = PcgReport::default();
    let mut before = f64::INFINITY;
    for _ in 0..=MAX_RESTARTS {
        subspace.multiply(product, x, aq);
        for i in 0..n {
            r[i] = if subspace.free[i] { rhs[i] - aq[i] } else { 0.0 };
        }
        report.residual = dot(r, r).sqrt();
        let enough = settings.tolerance.max(round_off(subspace.diagonal, x));
        report.converged = report.residual <= settings.tolerance;
        // A restart that did not halve the true residual has met round-off.
        let spent = report.iterations >= settings.max_iterations || report.residual <= enough;
        if spent || !report.residual.is_finite() || report.residual > 0.5 * before {
            break;
        }
        before = report.residual;
        preconditioner.apply(r, z);
        q.copy_from_slice(z);
        let mut rz = dot(r, z);
        while report.iterations < settings.max_iterations {
            subspace.multiply(product, q, aq);
            let curvature = dot(q, aq);
            // Not a number, or round-off where a semidefinite matrix has nothing left to give.
            if curvature.is_nan() || curvature <= 0.0 || rz <= 0.0 {
                break;
            }
            report.iterations += 1;
            let alpha = rz / curvature;
            for i in 0..n {
                x[i] += alpha * q[i];
                r[i] -= alpha * aq[i];
            }
            if dot(r, r).sqrt() <= 0.5 * enough {
                break;
            }
            preconditioner.apply(r, z);
            let next = dot(r, z);
            let beta = next / rz;
            rz = next;
            for i in 0..n {
                q[i] = z[i] + beta * q[i];
            }
        }
    }
    report
}
