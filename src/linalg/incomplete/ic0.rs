//! Zero-fill incomplete Cholesky and its answers to a negative pivot (003 Algorithms 4, 6, 7, §4.1.4).
//!
//! Row by row: L̂_ij = η_j (a_ij − Σ_k<j η_k L̂_ik L̂_jk) / L̂_jj on the pattern of A, L̂_jj = √|pivot|,
//! η_j the sign of the pivot. Without imaginary columns every η is one.
//!
//! An imaginary column of the complex factor L̃ is i times a column of L̂, and P = L̃ L̃ᴴ (4.3) is
//! L̂ L̂ᵀ because i·ī = 1: applying P⁻¹ needs no signs at all, and P is positive definite. (The signs of
//! Algorithm 7 cancel in the same way.)

use super::{FactorReport, Scaled};
use sprs::CsMat;

/// What to do about a pivot that is not positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breakdown {
    /// Put the diagonal entry in its place.
    Replace,
    /// Start again with a larger global shift.
    Compensate,
    /// Shift the columns that feed it and resume at the first of them.
    PartialShift,
    /// Mark the column imaginary and go on.
    Imaginary,
}

/// First global shift, relative to the diagonal; doubled until the factorization succeeds.
const FIRST_SHIFT: f64 = 1e-3;
/// γ of the partial shift (003 §4.1.4).
const PARTIAL_SHIFT: f64 = 1e-4;
/// A pivot this small beside its diagonal is a zero pivot, which even an imaginary column cannot use.
const ZERO_PIVOT: f64 = 1e-14;

/// Factor on the lower triangle of A, by rows; the diagonal apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Ic0 {
    row_start: Vec<usize>,
    column: Vec<u32>,
    /// Position of the entry in the data of A.
    source: Vec<u32>,
    diagonal_source: Vec<u32>,
    value: Vec<f64>,
    diagonal: Vec<f64>,
    eta: Vec<f64>,
    work: Vec<f64>,
    shift: Vec<f64>,
    shifts: Vec<u32>,
}

impl Ic0 {
    pub(super) fn analyse(&mut self, a: &CsMat<f64>) {
        let n = a.rows();
        self.row_start.clear();
        self.column.clear();
        self.source.clear();
        self.diagonal_source.clear();
        self.diagonal_source.resize(n, u32::MAX);
        self.row_start.push(0);
        let mut position = 0u32;
        for (i, row) in a.outer_iterator().enumerate() {
            for (j, _) in row.iter() {
                if j < i {
                    self.column.push(j as u32);
                    self.source.push(position);
                } else if j == i {
                    self.diagonal_source[i] = position;
                }
                position += 1;
            }
            self.row_start.push(self.column.len());
        }
        self.value.clear();
        self.value.resize(self.column.len(), 0.0);
        for buffer in [&mut self.diagonal, &mut self.eta, &mut self.work, &mut self.shift] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        self.shifts.clear();
        self.shifts.resize(n, 0);
    }

    pub(super) fn factor(&mut self, matrix: &Scaled, breakdown: Breakdown) -> FactorReport {
        let mut report = FactorReport::default();
        self.shift.fill(0.0);
        self.shifts.fill(0);
        let mut global = 0.0;
        let mut start = 0;
        loop {
            match self.rows_from(start, matrix, breakdown, global, &mut report) {
                None => break,
                Some(row) => {
                    report.restarts += 1;
                    if breakdown == Breakdown::Compensate {
                        global = if global == 0.0 { FIRST_SHIFT } else { 2.0 * global };
                        start = 0;
                    } else {
                        start = self.shift_feeders(row);
                    }
                }
            }
        }
        report.shift = self.shift.iter().fold(global, |m, &s| m.max(s));
        report
    }

    /// Shifts row `row` and the columns that feed it; returns the first row to do again.
    fn shift_feeders(&mut self, row: usize) -> usize {
        let mut first = row;
        let feeders = self.column[self.row_start[row]..self.row_start[row + 1]].iter();
        for k in feeders.map(|&k| k as usize).chain([row]) {
            self.shift[k] += PARTIAL_SHIFT * f64::from(2u32.saturating_pow(self.shifts[k].min(31)));
            self.shifts[k] += 1;
            first = first.min(k);
        }
        first
    }

    /// Computes rows from `start`; stops at a breakdown that asks for a restart and names its row.
    fn rows_from(
        &mut self,
        start: usize,
        matrix: &Scaled,
        breakdown: Breakdown,
        global: f64,
        report: &mut FactorReport,
    ) -> Option<usize> {
        let data = matrix.a.data();
        for i in start..matrix.rows() {
            let range = self.row_start[i]..self.row_start[i + 1];
            let at = self.diagonal_source[i];
            let original = matrix.diagonal(i, if at == u32::MAX { 0.0 } else { data[at as usize] });
            let original = original * (1.0 + global + self.shift[i]);
            let mut pivot = original;
            if matrix.free[i] {
                for p in range.clone() {
                    let j = self.column[p] as usize;
                    let mut sum = matrix.entry(i, j, data[self.source[p] as usize]);
                    for q in self.row_start[j]..self.row_start[j + 1] {
                        let k = self.column[q] as usize;
                        sum -= self.eta[k] * self.work[k] * self.value[q];
                    }
                    let l = self.eta[j] * sum / self.diagonal[j];
                    self.value[p] = l;
                    self.work[j] = l;
                    pivot -= self.eta[j] * l * l;
                }
                for p in range {
                    self.work[self.column[p] as usize] = 0.0;
                }
            } else {
                self.value[range].fill(0.0);
            }
            let zero = pivot.abs() <= ZERO_PIVOT * original || pivot.is_nan();
            self.eta[i] = if pivot > 0.0 || zero { 1.0 } else { -1.0 };
            if (zero || pivot < 0.0) && matches!(breakdown, Breakdown::Compensate | Breakdown::PartialShift) {
                return Some(i);
            }
            let size =
                if zero || (pivot < 0.0 && breakdown == Breakdown::Replace) { original } else { pivot.abs() };
            self.diagonal[i] = size.sqrt();
            report.negative += usize::from(zero || pivot < 0.0);
            if breakdown == Breakdown::Replace {
                self.eta[i] = 1.0;
            }
        }
        None
    }

    /// x := (L̂ L̂ᵀ)⁻¹ x.
    pub(super) fn solve(&self, x: &mut [f64]) {
        let n = x.len();
        for i in 0..n {
            let mut sum = x[i];
            for p in self.row_start[i]..self.row_start[i + 1] {
                sum -= self.value[p] * x[self.column[p] as usize];
            }
            x[i] = sum / self.diagonal[i];
        }
        for i in (0..n).rev() {
            x[i] /= self.diagonal[i];
            let xi = x[i];
            for p in self.row_start[i]..self.row_start[i + 1] {
                x[self.column[p] as usize] -= self.value[p] * xi;
            }
        }
    }

    /// L̂ as (row, column, value) with the diagonal, and η, for tests.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (Vec<(usize, usize, f64)>, Vec<f64>) {
        let mut entries = Vec::new();
        for i in 0..self.diagonal.len() {
            for p in self.row_start[i]..self.row_start[i + 1] {
                entries.push((i, self.column[p] as usize, self.value[p]));
            }
            entries.push((i, i, self.diagonal[i]));
        }
        (entries, self.eta.clone())
    }
}
