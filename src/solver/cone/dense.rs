//! The matrix form as a [`ConeSystem`]: a dense LDLᵀ of A + D in the axes of the cones.

use super::law::Laws;
use super::system::{Block, ConeSystem, Shift};
use crate::linalg::dense::DenseLdl;
use crate::linalg::kernels::Kernels;
use crate::solver::matrix_system::multiply;
use crate::solver::{MatrixProblem, SolveStats};

/// Least D, as a share of A_ii: redundant rows have no pivot of their own. Refinement takes it back where rows are not redundant.
const LEAST: f64 = 1e-13;

/// Steps of refinement of every solve: blocks of D reach from 1e-8 to 1e8 of A_ii near the end of a run, and one step leaves half the digits.
const REFINED: usize = 2;

/// A matrix problem with its dense factor.
pub struct DenseSystem<'a> {
    problem: &'a MatrixProblem,
    diagonal: Vec<f64>,
    ldl: DenseLdl,
    matrix: Vec<f64>,
    takes: Vec<bool>,
    least: Vec<f64>,
    r: Vec<f64>,
    turned: Vec<f64>,
    factorizations: u32,
}

impl<'a> DenseSystem<'a> {
    /// Looks at a problem.
    pub fn new(problem: &'a MatrixProblem) -> Self {
        let n = problem.b.len();
        let diagonal: Vec<f64> = (0..n).map(|i| problem.a.get(i, i).copied().unwrap_or(0.0)).collect();
        let largest = diagonal.iter().fold(0.0f64, |m, a| m.max(*a)).max(f64::MIN_POSITIVE);
        DenseSystem {
            problem,
            least: diagonal.iter().map(|a| LEAST * a.max(1e-3 * largest)).collect(),
            diagonal,
            ldl: DenseLdl::new(Kernels::Auto),
            matrix: Vec::new(),
            takes: Vec::new(),
            r: vec![0.0; n],
            turned: vec![0.0; n],
            factorizations: 0,
        }
    }

    /// x += (A + D)⁻¹ r on the free directions.
    fn correct(&mut self, laws: &Laws, shift: &Shift, x: &mut [f64]) {
        turn(laws, shift, &self.r, &mut self.turned);
        self.ldl.solve(&mut self.turned);
        turn_back(laws, shift, &mut self.turned);
        x.iter_mut().zip(&self.turned).for_each(|(x, t)| *x += t);
    }

    /// x on the free directions with A x + D x = `r` there.
    fn refine(&mut self, laws: &Laws, shift: &Shift, r: &[f64], x: &mut [f64], ax: &mut [f64]) {
        for _ in 0..=REFINED {
            multiply(&self.problem.a, x, ax);
            self.r.fill(0.0);
            shift.add_product(laws, x, &mut self.r);
            for (i, missing) in self.r.iter_mut().enumerate() {
                *missing = r[i] - ax[i] - *missing;
            }
            self.correct(laws, shift, x);
        }
        multiply(&self.problem.a, x, ax);
    }
}

/// Into the axes of the cones that slide: along, then across.
fn turn(laws: &Laws, shift: &Shift, x: &[f64], out: &mut [f64]) {
    out.copy_from_slice(x);
    for (block, cone) in shift.blocks.iter().zip(&laws.cones) {
        if let Block::Slip { along: [c, s], .. } = *block {
            let i = cone.row as usize;
            (out[i + 1], out[i + 2]) = (c * x[i + 1] + s * x[i + 2], c * x[i + 2] - s * x[i + 1]);
        }
    }
}

fn turn_back(laws: &Laws, shift: &Shift, x: &mut [f64]) {
    for (block, cone) in shift.blocks.iter().zip(&laws.cones) {
        if let Block::Slip { along: [c, s], .. } = *block {
            let i = cone.row as usize;
            (x[i + 1], x[i + 2]) = (c * x[i + 1] - s * x[i + 2], s * x[i + 1] + c * x[i + 2]);
        }
    }
}

impl ConeSystem for DenseSystem<'_> {
    fn b(&self) -> &[f64] {
        &self.problem.b
    }
    fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }
    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        multiply(&self.problem.a, lambda, w);
        w.iter_mut().zip(&self.problem.b).for_each(|(w, b)| *w += b);
    }

    fn factor(&mut self, laws: &Laws, shift: &Shift) {
        let n = self.diagonal.len();
        self.matrix.clear();
        self.matrix.resize(n * n, 0.0);
        for (i, row) in self.problem.a.outer_iterator().enumerate() {
            row.iter().for_each(|(j, &a)| self.matrix[i * n + j] = a);
        }
        self.takes.clear();
        self.takes.extend(shift.held.iter().map(|held| !held));
        for (i, d) in shift.diagonal.iter().enumerate() {
            self.matrix[i * n + i] += d;
        }
        for (block, cone) in shift.blocks.iter().zip(&laws.cones) {
            let i = cone.row as usize;
            match *block {
                Block::Held => self.takes[i..i + 3].fill(false),
                Block::Free => {}
                Block::Full(b) => {
                    for (r, c, k) in [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 3), (1, 2, 4), (2, 2, 5)] {
                        self.matrix[(i + r) * n + i + c] += b[k];
                        if r != c {
                            self.matrix[(i + c) * n + i + r] += b[k];
                        }
                    }
                }
                Block::Slip { along: [c, s], across } => {
                    for k in 0..n {
                        let (x, y) = (self.matrix[(i + 1) * n + k], self.matrix[(i + 2) * n + k]);
                        (self.matrix[(i + 1) * n + k], self.matrix[(i + 2) * n + k]) =
                            (c * x + s * y, c * y - s * x);
                    }
                    for row in self.matrix.chunks_exact_mut(n) {
                        let (x, y) = (row[i + 1], row[i + 2]);
                        (row[i + 1], row[i + 2]) = (c * x + s * y, c * y - s * x);
                    }
                    self.matrix[(i + 2) * n + i + 2] += across;
                    self.takes[i + 1] = false;
                }
            }
        }
        self.ldl.factor(n, &self.matrix, |i| self.takes[i], &self.least);
        self.factorizations += 1;
    }

    fn respond(&mut self, laws: &Laws, shift: &Shift, r: &[f64], x: &mut [f64], ax: &mut [f64]) {
        self.refine(laws, shift, r, x, ax);
    }

    fn place(&mut self, laws: &Laws, shift: &Shift, lambda: &mut [f64], w: &mut [f64]) {
        self.factor(laws, shift);
        let r: Vec<f64> = self.problem.b.iter().map(|b| -b).collect();
        self.refine(laws, shift, &r, lambda, w);
        w.iter_mut().zip(&self.problem.b).for_each(|(w, b)| *w += b);
    }

    fn replace(&mut self, _laws: &Laws, _shift: &Shift, lambda: &mut [f64], w: &mut [f64]) {
        self.slack(lambda, w);
    }

    fn sweep(&mut self, laws: &Laws, lambda: &mut [f64]) {
        for (i, row) in self.problem.a.outer_iterator().enumerate() {
            let w: f64 = self.problem.b[i] + row.iter().map(|(j, &a)| a * lambda[j]).sum::<f64>();
            // Both tangents go by the larger of their two: a disk is round in one unit only.
            let normal = match laws.of_row[i] {
                super::law::NO_CONE => i,
                k => laws.cones[k as usize].row as usize,
            };
            let d = &self.diagonal;
            let step = if i == normal { d[i] } else { d[normal + 1].max(d[normal + 2]) };
            laws.relax(i, lambda, w, step);
        }
    }

    fn count(&self, stats: &mut SolveStats) {
        stats.factorizations = self.factorizations;
    }
}
