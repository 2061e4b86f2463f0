//! Incomplete Cholesky with a drop tolerance (003 Algorithm 5): column by column, left-looking.
//!
//! Entries below τ_j = ε ‖a_j‖ of the lower column are dropped before and after the division, and at
//! most `keep` of them stay. A pivot that is not positive starts the whole again with a larger global
//! shift, which is what makes large tolerances poor preconditioners (003 §6.2.1).

use super::{FactorReport, Scaled};

/// First global shift, relative to the diagonal; doubled until the factorization succeeds.
const FIRST_SHIFT: f64 = 1e-3;

/// L by columns, diagonal apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Ict {
    column_start: Vec<usize>,
    row: Vec<u32>,
    value: Vec<f64>,
    diagonal: Vec<f64>,
    /// Next entry of each column to be used, and lists of columns by the row of that entry.
    cursor: Vec<usize>,
    head: Vec<u32>,
    next: Vec<u32>,
    work: Vec<f64>,
    marked: Vec<bool>,
    pattern: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Ict {
    pub(super) fn factor(&mut self, matrix: &Scaled, drop: f64, keep: usize) -> FactorReport {
        let mut report = FactorReport::default();
        while !self.attempt(matrix, drop, keep, report.shift) {
            report.restarts += 1;
            report.shift = if report.shift == 0.0 { FIRST_SHIFT } else { 2.0 * report.shift };
        }
        report
    }

    fn attempt(&mut self, matrix: &Scaled, drop: f64, keep: usize, shift: f64) -> bool {
        let n = matrix.rows();
        self.reset(n);
        for j in 0..n {
            if !matrix.free[j] {
                self.diagonal[j] = 1.0;
                self.column_start.push(self.row.len());
                continue;
            }
            let (mut pivot, norm) = self.gather(matrix, j, shift);
            let tolerance = drop * norm;
            pivot -= self.update(j);
            if pivot <= 0.0 || pivot.is_nan() {
                return false;
            }
            self.diagonal[j] = pivot.sqrt();
            self.store(j, tolerance, keep);
        }
        true
    }

    fn reset(&mut self, n: usize) {
        self.column_start.clear();
        self.column_start.push(0);
        self.row.clear();
        self.value.clear();
        self.pattern.clear();
        self.diagonal.clear();
        self.diagonal.resize(n, 1.0);
        self.cursor.clear();
        self.cursor.resize(n, 0);
        self.head.clear();
        self.head.resize(n, NONE);
        self.next.clear();
        self.next.resize(n, NONE);
        self.work.clear();
        self.work.resize(n, 0.0);
        self.marked.clear();
        self.marked.resize(n, false);
    }

    /// Spreads column j of the lower triangle; returns its diagonal and its norm.
    fn gather(&mut self, matrix: &Scaled, j: usize, shift: f64) -> (f64, f64) {
        let mut pivot = 1.0;
        let mut squares = 0.0;
        for (i, &x) in matrix.a.outer_view(j).expect("a row of a").iter() {
            if i < j {
                continue;
            }
            let x = matrix.entry(i, j, x);
            if i == j {
                pivot = x * (1.0 + shift);
                squares += pivot * pivot;
            } else if x != 0.0 {
                self.mark(i);
                self.work[i] = x;
                squares += x * x;
            }
        }
        (pivot, squares.sqrt())
    }

    fn mark(&mut self, i: usize) {
        if !self.marked[i] {
            self.marked[i] = true;
            self.pattern.push(i as u32);
        }
    }

    /// Subtracts the earlier columns with an entry in row j; returns Σ L_jk².
    fn update(&mut self, j: usize) -> f64 {
        let mut sum = 0.0;
        let mut k = self.head[j];
        while k != NONE {
            let column = k as usize;
            k = self.next[column];
            let at = self.cursor[column];
            let end = self.column_start[column + 1];
            let l = self.value[at];
            sum += l * l;
            for p in at + 1..end {
                let i = self.row[p] as usize;
                self.mark(i);
                self.work[i] -= l * self.value[p];
            }
            self.advance(column, at + 1, end);
        }
        sum
    }

    /// Moves a column's cursor and files it under the row it now points to.
    fn advance(&mut self, column: usize, at: usize, end: usize) {
        self.cursor[column] = at;
        if at < end {
            let row = self.row[at] as usize;
            self.next[column] = self.head[row];
            self.head[row] = column as u32;
        }
    }

    /// Divides, drops, keeps the largest and appends the column.
    fn store(&mut self, j: usize, tolerance: f64, keep: usize) {
        let pivot = self.diagonal[j];
        let (work, marked) = (&mut self.work, &mut self.marked);
        for &i in &self.pattern {
            marked[i as usize] = false;
        }
        self.pattern.retain(|&i| {
            let l = &mut work[i as usize];
            let kept = l.abs() >= tolerance && (*l / pivot).abs() >= tolerance && *l != 0.0;
            *l = if kept { *l / pivot } else { 0.0 };
            kept
        });
        if self.pattern.len() > keep {
            // Largest first, ties by row, so that the choice is the same everywhere.
            self.pattern.sort_unstable_by(|&a, &b| {
                let (la, lb) = (work[a as usize].abs(), work[b as usize].abs());
                lb.total_cmp(&la).then(a.cmp(&b))
            });
            for &i in &self.pattern[keep..] {
                work[i as usize] = 0.0;
            }
            self.pattern.truncate(keep);
        }
        self.pattern.sort_unstable();
        let start = self.row.len();
        for &i in &self.pattern {
            self.row.push(i);
            self.value.push(work[i as usize]);
            work[i as usize] = 0.0;
        }
        self.pattern.clear();
        let end = self.row.len();
        self.column_start.push(end);
        self.advance(j, start, end);
    }

    /// x := (L Lᵀ)⁻¹ x.
    pub(super) fn solve(&self, x: &mut [f64]) {
        let n = x.len();
        for j in 0..n {
            x[j] /= self.diagonal[j];
            let xj = x[j];
            for p in self.column_start[j]..self.column_start[j + 1] {
                x[self.row[p] as usize] -= self.value[p] * xj;
            }
        }
        for j in (0..n).rev() {
            let mut sum = x[j];
            for p in self.column_start[j]..self.column_start[j + 1] {
                sum -= self.value[p] * x[self.row[p] as usize];
            }
            x[j] = sum / self.diagonal[j];
        }
    }

    /// Entries below the diagonal of the longest column, for tests.
    #[cfg(test)]
    pub(super) fn longest_column(&self) -> usize {
        self.column_start.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }
}
