//! The matrix form (A, b, lo, hi) as a [`PivotSystem`]: a scalar sparse Cholesky of A_FF.
//!
//! As the papers' baseline does, the pattern of A_FF is analysed anew whenever the free set changes.

use super::Label;
use super::problem::{MatrixProblem, RowKind};
use super::system::PivotSystem;
use crate::linalg::sparse_cholesky::SparseCholesky;
use sprs::CsMat;

/// Memory of a [`MatrixSystem`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct MatrixMemory {
    cholesky: SparseCholesky,
    free: Vec<bool>,
    analysed: bool,
    shift: Vec<f64>,
    diagonal: Vec<f64>,
    hi: Vec<f64>,
    rhs: Vec<f64>,
    residual: Vec<f64>,
    factorizations: u32,
}

/// A matrix problem with its factor.
pub struct MatrixSystem<'a> {
    problem: &'a MatrixProblem,
    memory: &'a mut MatrixMemory,
}

impl<'a> MatrixSystem<'a> {
    /// Looks at a problem through memory that may have served another one.
    pub fn new(problem: &'a MatrixProblem, memory: &'a mut MatrixMemory) -> Self {
        let n = problem.b.len();
        memory.analysed = false;
        memory.factorizations = 0;
        memory.diagonal.clear();
        memory.diagonal.extend((0..n).map(|i| diagonal_of(&problem.a, i)));
        memory.hi.clear();
        let held = problem.lo.iter().zip(&problem.hi);
        memory.hi.extend(held.map(|(&lo, &hi)| hi.max(lo)));
        for buffer in [&mut memory.rhs, &mut memory.residual, &mut memory.shift] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        MatrixSystem { problem, memory }
    }
}

fn diagonal_of(a: &CsMat<f64>, i: usize) -> f64 {
    a.get(i, i).copied().unwrap_or(0.0)
}

/// y = A x for a matrix stored by rows.
pub(crate) fn multiply(a: &CsMat<f64>, x: &[f64], y: &mut [f64]) {
    for (y, row) in y.iter_mut().zip(a.outer_iterator()) {
        *y = row.iter().map(|(j, &v)| v * x[j]).sum();
    }
}

impl PivotSystem for MatrixSystem<'_> {
    fn b(&self) -> &[f64] {
        &self.problem.b
    }
    fn lo(&self) -> &[f64] {
        &self.problem.lo
    }
    fn hi(&self) -> &[f64] {
        &self.memory.hi
    }
    fn kind(&self) -> &[RowKind] {
        &self.problem.kind
    }
    fn diagonal(&self) -> &[f64] {
        &self.memory.diagonal
    }
    fn factorizations(&self) -> u32 {
        self.memory.factorizations
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        multiply(&self.problem.a, x, y);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        let memory = &mut *self.memory;
        if !memory.analysed || memory.free != free {
            memory.free.clear();
            memory.free.extend_from_slice(free);
            memory.cholesky.analyse(&self.problem.a, free);
            memory.analysed = true;
        }
        match shift {
            Some(shift) => memory.shift.copy_from_slice(shift),
            None => memory.shift.fill(0.0),
        }
        memory.cholesky.factor(&self.problem.a, shift);
        memory.factorizations += 1;
    }

    fn solve(&mut self, x: &mut [f64]) {
        let memory = &mut *self.memory;
        let n = x.len();
        memory.rhs.copy_from_slice(x);
        memory.cholesky.solve(x);
        // One step of refinement: redundant rows at C = 1e-10 lose half the digits otherwise.
        multiply(&self.problem.a, x, &mut memory.residual);
        for i in 0..n {
            let ax = memory.residual[i] + memory.shift[i] * x[i];
            memory.residual[i] = if memory.free[i] { memory.rhs[i] - ax } else { 0.0 };
        }
        memory.cholesky.solve(&mut memory.residual);
        for i in 0..n {
            x[i] += memory.residual[i];
        }
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        let n = labels.len();
        let free: Vec<bool> = labels.iter().map(|&l| l == Label::Free).collect();
        self.factor(&free, None);
        for i in 0..n {
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.problem.lo[i],
                Label::Upper => self.memory.hi[i],
            };
        }
        self.slack(lambda, w);
        for i in 0..n {
            w[i] = -w[i];
        }
        self.solve(w);
        for i in 0..n {
            if free[i] {
                lambda[i] = w[i];
            }
        }
        self.slack(lambda, w);
    }

    fn sweep(&mut self, lambda: &mut [f64]) {
        let (problem, memory) = (self.problem, &*self.memory);
        for (i, row) in problem.a.outer_iterator().enumerate() {
            let w: f64 = problem.b[i] + row.iter().map(|(j, &a)| a * lambda[j]).sum::<f64>();
            lambda[i] = gauss_seidel(lambda[i], w, memory.diagonal[i], problem.lo[i], memory.hi[i]);
        }
    }
}

/// λ of one row after its turn.
pub(crate) fn gauss_seidel(lambda: f64, w: f64, a: f64, lo: f64, hi: f64) -> f64 {
    if a > 0.0 { (lambda - w / a).max(lo).min(hi) } else { lambda }
}
