//! The interface problem S_Γ λ_Γ + z_Γ = w_Γ, lo ≤ λ_Γ ≤ hi (000 eq. 18), dense.

use crate::linalg::Kernels;
use crate::linalg::dense::DenseLdl;
use crate::solver::Label;
use crate::solver::system::PivotSystem;
use sprs::CsMat;

/// S, z and the bounds, with the factor of the free rows.
#[derive(Clone, Debug, Default)]
pub struct InterfaceProblem {
    /// Inverse effective mass at the interface, compliance included (24); row by row, symmetric.
    pub S: Vec<f64>,
    /// Velocity of the interface without impulses, offset included (25).
    pub z: Vec<f64>,
    /// Lower bounds.
    pub lo: Vec<f64>,
    /// Upper bounds, nowhere below the lower ones.
    pub hi: Vec<f64>,
    diagonal: Vec<f64>,
    factor: DenseLdl,
    free: Vec<bool>,
    shift: Vec<f64>,
    rhs: Vec<f64>,
    rest: Vec<f64>,
    factorizations: u32,
}

impl InterfaceProblem {
    /// Arithmetic of the factor.
    pub fn set_kernels(&mut self, kernels: Kernels) {
        self.factor.set_kernels(kernels);
    }

    /// Makes room for `m` rows, all zero.
    pub fn reset(&mut self, m: usize) {
        self.S.clear();
        self.S.resize(m * m, 0.0);
        for buffer in [&mut self.z, &mut self.shift, &mut self.rhs, &mut self.rest, &mut self.diagonal] {
            buffer.clear();
            buffer.resize(m, 0.0);
        }
        self.factorizations = 0;
    }

    /// S without its zeros, for preconditioners.
    pub fn matrix(&self) -> CsMat<f64> {
        let m = self.z.len();
        let (mut start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..m {
            for (j, &x) in
                self.S[i * m..(i + 1) * m].iter().enumerate().filter(|(j, x)| **x != 0.0 || *j == i)
            {
                columns.push(j);
                values.push(x);
            }
            start.push(columns.len());
        }
        CsMat::new((m, m), start, columns, values)
    }

    /// To be called when S is complete.
    pub fn finish(&mut self) {
        let m = self.z.len();
        for i in 0..m {
            self.diagonal[i] = self.S[i * m + i];
        }
    }
}

impl PivotSystem for InterfaceProblem {
    fn b(&self) -> &[f64] {
        &self.z
    }
    fn lo(&self) -> &[f64] {
        &self.lo
    }
    fn hi(&self) -> &[f64] {
        &self.hi
    }
    fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }
    fn factorizations(&self) -> u32 {
        self.factorizations
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        let m = x.len();
        for (i, y) in y.iter_mut().enumerate() {
            *y = self.S[i * m..(i + 1) * m].iter().zip(x).map(|(s, x)| s * x).sum();
        }
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        self.free.clear();
        self.free.extend_from_slice(free);
        match shift {
            Some(shift) => self.shift.copy_from_slice(shift),
            None => self.shift.fill(0.0),
        }
        self.factorizations += 1;
        self.factor.factor(free.len(), &self.S, |i| free[i], &self.shift);
    }

    fn solve(&mut self, x: &mut [f64]) {
        let (mut rhs, mut rest) = (std::mem::take(&mut self.rhs), std::mem::take(&mut self.rest));
        rhs.copy_from_slice(x);
        self.factor.solve(x);
        // One step of refinement, as everywhere: redundant rows lose half the digits otherwise.
        self.multiply(x, &mut rest);
        for i in 0..x.len() {
            rest[i] = rhs[i] - rest[i] - self.shift[i] * x[i];
        }
        self.factor.solve(&mut rest);
        for (x, r) in x.iter_mut().zip(&rest) {
            *x += r;
        }
        (self.rhs, self.rest) = (rhs, rest);
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        let free: Vec<bool> = labels.iter().map(|&l| l == Label::Free).collect();
        self.factor(&free, None);
        for i in 0..labels.len() {
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.lo[i],
                Label::Upper => self.hi[i],
            };
        }
        self.slack(lambda, w);
        w.iter_mut().for_each(|w| *w = -*w);
        self.solve(w);
        for i in 0..labels.len() {
            if free[i] {
                lambda[i] = w[i];
            }
        }
        self.slack(lambda, w);
    }

    fn sweep(&mut self, lambda: &mut [f64]) {
        let m = lambda.len();
        for i in 0..m {
            let a = self.diagonal[i];
            if a > 0.0 {
                let product: f64 =
                    self.S[i * m..(i + 1) * m].iter().zip(lambda.iter()).map(|(s, l)| s * l).sum();
                lambda[i] = (lambda[i] - (product + self.z[i]) / a).max(self.lo[i]).min(self.hi[i]);
            }
        }
    }
}
