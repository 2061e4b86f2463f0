//! What the papers' solver does at every pivot: take A_FF, order it, factor it row by row, solve.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};
use turnbuckle::solver::{Label, MatrixProblem};

/// Monolithic pivots on A with faer's simplicial Cholesky under AMD, analysed anew each time.
pub struct Baseline {
    problem: MatrixProblem,
    index: Vec<u32>,
    start: Vec<u32>,
    rows: Vec<u32>,
    values: Vec<f64>,
    rhs: Vec<f64>,
    l: Vec<f64>,
}

impl Baseline {
    /// Takes the matrix form of a problem.
    pub fn new(problem: MatrixProblem) -> Self {
        Self {
            problem,
            index: Vec::new(),
            start: Vec::new(),
            rows: Vec::new(),
            values: Vec::new(),
            rhs: Vec::new(),
            l: Vec::new(),
        }
    }

    /// One pivot; returns λ of the free rows.
    pub fn pivot(&mut self, labels: &[Label]) -> &[f64] {
        self.extract(labels);
        let n = self.start.len() - 1;
        let pattern = SymbolicSparseColMatRef::<u32>::new_checked(n, n, &self.start, None, &self.rows);
        let params = CholeskySymbolicParams {
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SIMPLICIAL,
            ..Default::default()
        };
        let symbolic = factorize_symbolic_cholesky(pattern, Side::Upper, SymmetricOrdering::Amd, params)
            .expect("a pattern that fits into memory");
        let matrix = SparseColMatRef::new(pattern, &self.values);
        self.l.resize(symbolic.len_val(), 0.0);
        let scratch = symbolic
            .factorize_numeric_llt_scratch::<f64>(Par::Seq, Default::default())
            .or(symbolic.solve_in_place_scratch::<f64>(1, Par::Seq));
        let mut memory = MemBuffer::new(scratch);
        let factor = symbolic
            .factorize_numeric_llt(
                &mut self.l,
                matrix,
                Side::Upper,
                LltRegularization::default(),
                Par::Seq,
                MemStack::new(&mut memory),
                Default::default(),
            )
            .expect("a positive definite matrix");
        factor.solve_in_place_with_conj(
            Conj::No,
            MatMut::from_column_major_slice_mut(&mut self.rhs, n, 1),
            Par::Seq,
            MemStack::new(&mut memory),
        );
        &self.rhs
    }

    /// The upper triangle of A_FF by columns, and −b_F.
    fn extract(&mut self, labels: &[Label]) {
        let a = &self.problem.a;
        self.index.clear();
        let mut n = 0;
        for label in labels {
            self.index.push(if *label == Label::Free { n } else { u32::MAX });
            n += (*label == Label::Free) as u32;
        }
        self.start.clear();
        self.start.push(0);
        self.rows.clear();
        self.values.clear();
        self.rhs.clear();
        for (column, entries) in a.outer_iterator().enumerate() {
            if self.index[column] == u32::MAX {
                continue;
            }
            self.rhs.push(-self.problem.b[column]);
            for (row, value) in entries.iter() {
                if row <= column && self.index[row] != u32::MAX {
                    self.rows.push(self.index[row]);
                    self.values.push(*value);
                }
            }
            self.start.push(self.rows.len() as u32);
        }
    }
}
