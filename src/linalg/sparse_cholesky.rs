//! A plain scalar sparse LDLᵀ, up-looking, for symmetric positive (semi)definite matrices.
//!
//! This is the papers' baseline (a monolithic Cholesky of A_FF, analysed anew when the pattern
//! changes) and the linear solver of problems that come as a matrix from a file. The engine does
//! not use it: see the mixed form in `solver`.
//!
//! Symbols: P A Pᵀ = L D Lᵀ on the chosen rows, L unit lower triangular by columns, D diagonal;
//! `parent` is the elimination tree. A pivot at round-off level is replaced by infinity, which
//! leaves its unknown at zero: a consistent rank-deficient system is then still solved.

// Loops over several arrays by one row number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

use sprs::CsMat;

const NONE: usize = usize::MAX;

/// A pivot below this share of the original diagonal is round-off (n·ε for n of a few thousand).
const PIVOT_FLOOR: f64 = 1e-14;

/// A pivot this far below zero, relative to the largest diagonal entry, is no round-off: matrices written
/// with seven digits are semidefinite to about 1e-7.
const NEGATIVE: f64 = 1e-6;

/// Symbolic and numeric factor of a principal submatrix; memory is kept from one call to the next.
#[derive(Clone, Debug, Default)]
pub struct SparseCholesky {
    /// Rows of A in elimination order.
    order: Vec<usize>,
    /// Position of a row of A in the order, or `NONE`.
    position: Vec<usize>,
    parent: Vec<usize>,
    column_start: Vec<usize>,
    column_fill: Vec<usize>,
    row_index: Vec<usize>,
    value: Vec<f64>,
    diagonal: Vec<f64>,
    flag: Vec<usize>,
    pattern: Vec<usize>,
    stack: Vec<usize>,
    y: Vec<f64>,
    dropped: usize,
    first_negative: Option<usize>,
    largest: f64,
}

impl SparseCholesky {
    /// Orders and analyses the principal submatrix of `a` (both triangles stored) on the rows marked.
    pub fn analyse(&mut self, a: &CsMat<f64>, rows: &[bool]) {
        self.order = minimum_degree(a, rows);
        let n = self.order.len();
        self.position.clear();
        self.position.resize(rows.len(), NONE);
        for (k, &row) in self.order.iter().enumerate() {
            self.position[row] = k;
        }
        self.parent.clear();
        self.parent.resize(n, NONE);
        self.flag.clear();
        self.flag.resize(n, NONE);
        let mut count = vec![0usize; n];
        for k in 0..n {
            self.flag[k] = k;
            let row = a.outer_view(self.order[k]).expect("a row of a");
            for (j, _) in row.iter() {
                let mut i = self.position[j];
                if i == NONE || i >= k {
                    continue;
                }
                while self.flag[i] != k {
                    if self.parent[i] == NONE {
                        self.parent[i] = k;
                    }
                    count[i] += 1;
                    self.flag[i] = k;
                    i = self.parent[i];
                }
            }
        }
        self.column_start.clear();
        self.column_start.push(0);
        for k in 0..n {
            self.column_start.push(self.column_start[k] + count[k]);
        }
        let nnz = self.column_start[n];
        self.row_index.clear();
        self.row_index.resize(nnz, 0);
        self.value.clear();
        self.value.resize(nnz, 0.0);
        self.diagonal.clear();
        self.diagonal.resize(n, 0.0);
        self.y.clear();
        self.y.resize(n, 0.0);
        self.pattern.clear();
        self.pattern.resize(n, 0);
        self.column_fill.clear();
        self.column_fill.resize(n, 0);
    }

    /// Numbers for the analysed pattern; `shift` is added to the diagonal.
    pub fn factor(&mut self, a: &CsMat<f64>, shift: Option<&[f64]>) {
        let n = self.order.len();
        self.dropped = 0;
        self.first_negative = None;
        self.largest = 0.0;
        self.flag.fill(NONE);
        self.column_fill.copy_from_slice(&self.column_start[..n]);
        self.y.fill(0.0);
        for k in 0..n {
            let row = self.order[k];
            let mut top = n;
            let mut original = shift.map_or(0.0, |s| s[row]);
            self.flag[k] = k;
            for (j, &x) in a.outer_view(row).expect("a row of a").iter() {
                let mut i = self.position[j];
                if i == NONE || i > k {
                    continue;
                }
                if i == k {
                    original += x;
                    continue;
                }
                self.y[i] += x;
                self.stack.clear();
                while self.flag[i] != k {
                    self.stack.push(i);
                    self.flag[i] = k;
                    i = self.parent[i];
                }
                while let Some(i) = self.stack.pop() {
                    top -= 1;
                    self.pattern[top] = i;
                }
            }
            let mut pivot = original;
            self.largest = self.largest.max(original.abs());
            for t in top..n {
                let i = self.pattern[t];
                let yi = self.y[i];
                self.y[i] = 0.0;
                let (start, end) = (self.column_start[i], self.column_fill[i]);
                for p in start..end {
                    self.y[self.row_index[p]] -= self.value[p] * yi;
                }
                let l = yi / self.diagonal[i];
                pivot -= l * yi;
                self.row_index[end] = k;
                self.value[end] = l;
                self.column_fill[i] += 1;
            }
            // Written so that NaN is dropped as well.
            self.diagonal[k] = if pivot > PIVOT_FLOOR * original.abs() && pivot > 0.0 {
                pivot
            } else {
                self.dropped += 1;
                let definite = pivot >= -NEGATIVE * original.abs().max(self.largest);
                if !definite && self.first_negative.is_none() {
                    self.first_negative = Some(row);
                }
                f64::INFINITY
            };
        }
    }

    /// Solves on the factored rows; `x` has the length of A, other rows come out as zero.
    pub fn solve(&mut self, x: &mut [f64]) {
        let n = self.order.len();
        for k in 0..n {
            self.y[k] = x[self.order[k]];
        }
        for k in 0..n {
            let yk = self.y[k];
            for p in self.column_start[k]..self.column_start[k + 1] {
                self.y[self.row_index[p]] -= self.value[p] * yk;
            }
        }
        for k in 0..n {
            self.y[k] /= self.diagonal[k];
        }
        for k in (0..n).rev() {
            let mut sum = self.y[k];
            for p in self.column_start[k]..self.column_start[k + 1] {
                sum -= self.value[p] * self.y[self.row_index[p]];
            }
            self.y[k] = sum;
        }
        x.fill(0.0);
        for k in 0..n {
            x[self.order[k]] = self.y[k];
            self.y[k] = 0.0;
        }
    }

    /// Entries of L below the diagonal.
    pub fn fill(&self) -> usize {
        self.value.len()
    }

    /// The first row of A whose pivot was negative beyond round-off: A is then not semidefinite.
    pub fn first_negative(&self) -> Option<usize> {
        self.first_negative
    }

    /// Pivots that were at round-off level: the rank deficiency seen.
    pub fn dropped(&self) -> usize {
        self.dropped
    }
}

/// Minimum degree on a quotient graph: eliminated rows become elements, absorbed by later ones.
///
/// Degrees are the upper bounds of approximate minimum degree (Amestoy, Davis and Duff 1996); ties
/// go to the smaller row, so the order is the same everywhere.
fn minimum_degree(a: &CsMat<f64>, rows: &[bool]) -> Vec<usize> {
    let n = rows.len();
    let mut variables: Vec<Vec<usize>> = (0..n)
        .map(|i| {
            if !rows[i] {
                return Vec::new();
            }
            let row = a.outer_view(i).expect("a row of a");
            row.iter().map(|(j, _)| j).filter(|&j| j != i && rows[j]).collect()
        })
        .collect();
    let mut elements: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut queue: std::collections::BTreeSet<(usize, usize)> =
        (0..n).filter(|&i| rows[i]).map(|i| (variables[i].len(), i)).collect();
    let mut degree: Vec<usize> = variables.iter().map(Vec::len).collect();
    let mut mark = vec![NONE; n];
    let mut touched = vec![NONE; n];
    let mut outside = vec![0; n];
    let mut order = Vec::with_capacity(queue.len());
    let mut stamp = 0;
    while let Some((_, pivot)) = queue.pop_first() {
        order.push(pivot);
        // The new element: everything the pivot still sees.
        stamp += 1;
        mark[pivot] = stamp;
        let mut element = Vec::new();
        for &j in &variables[pivot] {
            if mark[j] != stamp {
                mark[j] = stamp;
                element.push(j);
            }
        }
        let absorbed = std::mem::take(&mut elements[pivot]);
        for &e in &absorbed {
            for j in std::mem::take(&mut members[e]) {
                if mark[j] != stamp {
                    mark[j] = stamp;
                    element.push(j);
                }
            }
        }
        variables[pivot].clear();
        let inside = stamp;
        for &i in &element {
            // Edges inside the element are covered by it.
            variables[i].retain(|&j| mark[j] != inside);
            elements[i].retain(|e| !absorbed.contains(e));
            // outside[e] = members of e that are not in the new element.
            for &e in &elements[i] {
                if touched[e] != inside {
                    touched[e] = inside;
                    outside[e] = members[e].len();
                }
                outside[e] -= 1;
            }
        }
        for &i in &element {
            let reach: usize = elements[i].iter().map(|&e| outside[e]).sum();
            let d = variables[i].len() + element.len() - 1 + reach;
            elements[i].push(pivot);
            if d != degree[i] {
                queue.remove(&(degree[i], i));
                queue.insert((d, i));
                degree[i] = d;
            }
        }
        members[pivot] = element;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprs::TriMat;

    fn lattice(side: usize) -> CsMat<f64> {
        let n = side * side;
        let mut t = TriMat::new((n, n));
        for i in 0..n {
            t.add_triplet(i, i, 4.5);
            let (x, y) = (i % side, i / side);
            for j in [(x + 1 < side).then(|| i + 1), (y + 1 < side).then(|| i + side)].into_iter().flatten() {
                t.add_triplet(i, j, -1.0);
                t.add_triplet(j, i, -1.0);
            }
        }
        t.to_csr()
    }

    #[test]
    fn solves_a_lattice_on_a_subset_of_its_rows() {
        let a = lattice(13);
        let n = a.rows();
        let rows: Vec<bool> = (0..n).map(|i| i % 7 != 3).collect();
        let exact: Vec<f64> = (0..n).map(|i| if rows[i] { (i as f64).sin() } else { 0.0 }).collect();
        let mut x = vec![0.0; n];
        for i in 0..n {
            for (j, &v) in a.outer_view(i).unwrap().iter() {
                x[i] += v * exact[j];
            }
        }
        let mut factor = SparseCholesky::default();
        factor.analyse(&a, &rows);
        factor.factor(&a, None);
        factor.solve(&mut x);
        for i in 0..n {
            // Condition number below 10: a few ε.
            assert!((x[i] - exact[i]).abs() < 1e-14);
        }
        assert_eq!(factor.dropped(), 0);
    }

    #[test]
    fn minimum_degree_keeps_fill_low() {
        let a = lattice(40);
        let mut factor = SparseCholesky::default();
        factor.analyse(&a, &vec![true; a.rows()]);
        // The natural order of a 40×40 lattice fills 40·1600 = 64,000 entries.
        assert!(factor.fill() < 25_000, "fill {}", factor.fill());
    }

    #[test]
    fn a_singular_consistent_system_is_still_solved() {
        // [1 1; 1 1] x = [2 2]: rank one.
        let mut t = TriMat::new((2, 2));
        for i in 0..2 {
            for j in 0..2 {
                t.add_triplet(i, j, 1.0);
            }
        }
        let a: CsMat<f64> = t.to_csr();
        let mut factor = SparseCholesky::default();
        factor.analyse(&a, &[true, true]);
        factor.factor(&a, None);
        let mut x = vec![2.0, 2.0];
        factor.solve(&mut x);
        assert_eq!(x[0] + x[1], 2.0);
        assert_eq!(factor.dropped(), 1);
    }
}
