//! Block Jacobi: the dense diagonal block of each constraint.
//!
//! A constraint is a run of neighbouring rows with the same pattern, since rows on the same bodies see
//! the same rows.

use super::{FactorReport, Scaled};
use sprs::CsMat;

/// Rows of one block at most: a joint has six.
const WIDEST: usize = 6;

/// Dense Cholesky factors of the diagonal blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockJacobi {
    /// First row of each block, and the end.
    start: Vec<usize>,
    /// First number of each block in `value`.
    offset: Vec<usize>,
    value: Vec<f64>,
}

impl BlockJacobi {
    pub(super) fn analyse(&mut self, a: &CsMat<f64>) {
        let n = a.rows();
        self.start.clear();
        self.offset.clear();
        let mut i = 0;
        let mut numbers = 0;
        while i < n {
            self.start.push(i);
            self.offset.push(numbers);
            let same = |j: usize| {
                let (x, y) = (a.outer_view(i).expect("a row"), a.outer_view(j).expect("a row"));
                x.indices() == y.indices()
            };
            let mut end = i + 1;
            while end < n && end - i < WIDEST && same(end) {
                end += 1;
            }
            numbers += (end - i) * (end - i);
            i = end;
        }
        self.start.push(n);
        self.value.clear();
        self.value.resize(numbers, 0.0);
    }

    pub(super) fn factor(&mut self, matrix: &Scaled) -> FactorReport {
        let mut report = FactorReport::default();
        for b in 0..self.offset.len() {
            let (first, end) = (self.start[b], self.start[b + 1]);
            let m = end - first;
            let block = &mut self.value[self.offset[b]..self.offset[b] + m * m];
            for i in 0..m {
                for j in 0..=i {
                    let a = matrix.a.get(first + i, first + j).copied().unwrap_or(0.0);
                    block[i * m + j] = matrix.entry(first + i, first + j, a);
                }
            }
            report.negative += cholesky(block, m);
        }
        report
    }

    /// x := B⁻¹ x.
    pub(super) fn solve(&self, x: &mut [f64]) {
        for b in 0..self.offset.len() {
            let (first, end) = (self.start[b], self.start[b + 1]);
            let m = end - first;
            let l = &self.value[self.offset[b]..self.offset[b] + m * m];
            let x = &mut x[first..end];
            for i in 0..m {
                for k in 0..i {
                    x[i] -= l[i * m + k] * x[k];
                }
                x[i] /= l[i * m + i];
            }
            for i in (0..m).rev() {
                for k in i + 1..m {
                    x[i] -= l[k * m + i] * x[k];
                }
                x[i] /= l[i * m + i];
            }
        }
    }
}

/// In-place Cholesky of the lower triangle; pivots at round-off get their diagonal back. Counts those.
fn cholesky(a: &mut [f64], m: usize) -> usize {
    let mut replaced = 0;
    for i in 0..m {
        for j in 0..=i {
            let mut s = a[i * m + j];
            for k in 0..j {
                s -= a[i * m + k] * a[j * m + k];
            }
            if i == j {
                let original = a[i * m + i];
                if s <= 1e-14 * original || s.is_nan() {
                    replaced += 1;
                    s = original;
                }
                a[i * m + i] = s.sqrt();
            } else {
                a[i * m + j] = s / a[j * m + j];
            }
        }
    }
    replaced
}
