//! A dense symmetric matrix and its LDLᵀ on a subset of rows, on the kernels of the fronts.

use super::kernels::{self, Isa, Kernels, Shape};

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

    /// Another choice of arithmetic; what was factored keeps its numbers.
    pub fn set_kernels(&mut self, kernels: Kernels) {
        self.isa = Isa::detect(kernels);
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
        let (panel, ld) = self.write(n);
        for (column, all) in matrix.chunks_exact(n.max(1)).enumerate() {
            panel[column * ld + column..column * ld + n].copy_from_slice(&all[column..]);
        }
        self.factor_written(takes_part, shift)
    }

    /// Room for a matrix of n rows: column-major, with its leading dimension. What is below the diagonal and on it is to be written in
    /// full, then [`factor_written`](Self::factor_written).
    pub fn write(&mut self, n: usize) -> (&mut [f64], usize) {
        self.n = n;
        let shape = self.shape();
        self.panel.resize(shape.front_len(), 0.0);
        (&mut self.panel, shape.ld())
    }

    /// [`factor`](Self::factor) of what was written.
    ///
    /// # Panics
    /// If there is not one shift a row.
    pub fn factor_written(&mut self, takes_part: impl Fn(usize) -> bool, shift: &[f64]) -> u32 {
        let (n, shape) = (self.n, self.shape());
        let ld = shape.ld();
        assert!(shift.len() == n, "one shift a row");
        self.scratch.resize(shape.scratch_len(), 0.0);
        self.sign.clear();
        self.sign.extend((0..n).map(|i| f64::from(u8::from(takes_part(i)))));
        self.x.clear();
        self.x.resize(ld, 0.0);
        for (i, shift) in shift.iter().enumerate() {
            // Padding that a larger matrix has left.
            self.panel[i * ld + n..(i + 1) * ld].fill(0.0);
            if self.sign[i] != 0.0 {
                self.panel[i * ld + i] += shift;
                continue;
            }
            self.panel[i * ld + i..i * ld + n].fill(0.0);
            (0..i).for_each(|column| self.panel[column * ld + i] = 0.0);
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
            // What a larger one has left does not matter.
            ldl.factor(n + 3, &vec![1e3; (n + 3) * (n + 3)], |_| true, &vec![1e6; n + 3]);
            assert_eq!(ldl.factor(n, &matrix, takes, &shift), 0);
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
