//! A dense symmetric matrix and its LDLᵀ on a subset of rows, on the kernels of the fronts.

use super::kernels::{self, Isa, Kernels, Shape};
use super::packed;

/// Storage and factor of a dense symmetric positive definite matrix.
#[derive(Clone, Debug, Default)]
pub struct DenseLdl {
    isa: Isa,
    n: usize,
    panel: Vec<f64>,
    scratch: Vec<f64>,
    sign: Vec<f64>,
    x: Vec<f64>,
}

impl DenseLdl {
    /// An empty factor with a choice of arithmetic.
    pub fn new(kernels: Kernels) -> Self {
        Self { isa: Isa::detect(kernels), ..Self::default() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.n
    }

    fn shape(&self) -> Shape {
        Shape { pivots: self.n, border: 0 }
    }

    /// Factors the rows and columns of `matrix` (n × n, symmetric, full) that `takes_part` names, plus `shift` on the
    /// diagonal. Returns the number of pivots that were not positive and had to be replaced.
    ///
    /// # Panics
    /// If `matrix` is not n × n.
    pub fn factor(
        &mut self,
        n: usize,
        matrix: &[f64],
        takes_part: impl Fn(usize) -> bool,
        shift: &[f64],
    ) -> u32 {
        assert!(matrix.len() == n * n && shift.len() == n, "a square matrix and one shift a row");
        let columns = matrix.chunks_exact(n.max(1)).enumerate().map(|(column, all)| &all[column..]);
        self.factor_columns(n, columns, takes_part, shift)
    }

    /// [`factor`](Self::factor) of a matrix of which the lower triangle is given, as in [`packed`].
    ///
    /// # Panics
    /// If `matrix` has not as many numbers as that.
    pub fn factor_packed(
        &mut self,
        n: usize,
        matrix: &[f64],
        takes_part: impl Fn(usize) -> bool,
        shift: &[f64],
    ) -> u32 {
        assert!(matrix.len() == packed::len(n) && shift.len() == n, "half a matrix and one shift a row");
        self.factor_columns(n, packed::columns(n, matrix), takes_part, shift)
    }

    /// Factors what the columns hold from the diagonal down.
    fn factor_columns<'a>(
        &mut self,
        n: usize,
        columns: impl Iterator<Item = &'a [f64]>,
        takes_part: impl Fn(usize) -> bool,
        shift: &[f64],
    ) -> u32 {
        self.n = n;
        let shape = self.shape();
        let ld = shape.ld();
        self.panel.clear();
        self.panel.resize(shape.front_len(), 0.0);
        self.scratch.resize(shape.scratch_len(), 0.0);
        self.sign.clear();
        self.sign.extend((0..n).map(|i| f64::from(u8::from(takes_part(i)))));
        self.x.clear();
        self.x.resize(ld, 0.0);
        for (column, from) in columns.enumerate().filter(|&(column, _)| self.sign[column] != 0.0) {
            let to = &mut self.panel[column * ld + column..column * ld + n];
            for ((to, x), sign) in to.iter_mut().zip(from).zip(&self.sign[column..]) {
                *to = if *sign == 0.0 { 0.0 } else { *x };
            }
            to[0] += shift[column];
        }
        kernels::factor_front(self.isa, shape, &mut self.panel, &mut [], &mut self.scratch, &self.sign)
    }

    /// Solves in place; rows that take no part come out as zero.
    pub fn solve(&mut self, x: &mut [f64]) {
        let (n, shape) = (self.n, self.shape());
        for i in 0..n {
            self.x[i] = if self.sign[i] == 0.0 { 0.0 } else { x[i] };
        }
        // The kernels read the padding.
        self.x[n..].fill(0.0);
        kernels::forward(self.isa, shape, &self.panel, &mut self.x);
        kernels::backward(self.isa, shape, &self.panel, &mut self.x);
        for i in 0..n {
            x[i] = if self.sign[i] == 0.0 { 0.0 } else { self.x[i] };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_of_rows_is_solved_and_the_rest_is_zero() {
        // Diagonally dominant, so well conditioned.
        for n in [1usize, 3, 7, 40] {
            let matrix: Vec<f64> = (0..n * n)
                .map(|k| if k / n == k % n { 4.0 + n as f64 } else { ((k / n * (k % n)) as f64).sin() })
                .collect();
            let takes = |i: usize| i % 3 != 1;
            let mut ldl = DenseLdl::new(Kernels::Auto);
            let shift = vec![0.5; n];
            let half: Vec<f64> = (0..n).flat_map(|c| matrix[c * n + c..(c + 1) * n].to_vec()).collect();
            let mut same = ldl.clone();
            assert_eq!(ldl.factor(n, &matrix, takes, &shift), 0);
            assert_eq!(same.factor_packed(n, &half, takes, &shift), 0);
            assert_eq!(same.panel, ldl.panel);
            let wanted: Vec<f64> = (0..n).map(|i| if takes(i) { i as f64 - 2.5 } else { 0.0 }).collect();
            let mut x: Vec<f64> = (0..n)
                .map(|i| (0..n).map(|j| matrix[i * n + j] * wanted[j]).sum::<f64>() + 0.5 * wanted[i])
                .collect();
            ldl.solve(&mut x);
            for i in 0..n {
                // Condition number below ten: round-off of n products.
                assert!((x[i] - wanted[i]).abs() <= 1e-12 * n as f64, "{n}: {i}");
            }
        }
    }
}
