//! The mixed form: one linear system for a whole index set, whose pattern never changes.
//!
//! Source: 000 eqs. (22)–(25), rewritten in body space. Free rows of folding blocks (contacts) go into the
//! body blocks, the other free rows stay multipliers:
//!
//! ```text
//!     [ M + Σ J_cᵀ (C+D)_c⁻¹ J_c   J_jᵀ   ] [  v  ]   [ r_v + Σ J_cᵀ (C+D)_c⁻¹ r_c ]
//!     [ J_j                       −(C+D)_j ] [ −λ_j ] = [ r_j                        ]
//! ```
//!
//! and λ_c = (C+D)_c⁻¹ (r_c − J_c v). The matrix is symmetric quasi-definite: body pivots are positive,
//! multiplier pivots negative, in any order. Tight rows drop out of the numbers, never out of the pattern.

mod interface;

pub use interface::InterfaceRows;

use super::{Label, RowProblem};

/// Which arithmetic the dense kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kernels {
    /// The fastest the machine has, found at run time.
    #[default]
    Auto,
    /// Plain Rust: the same bits on every machine.
    Plain,
}

/// How the block graph is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OrderingKind {
    /// Least arithmetic.
    #[default]
    MinDegree,
    /// Short critical path, for parallel work and partial refactorization.
    NestedDissection,
}

/// Choices of a [`MixedSystem`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MixedOptions {
    /// Arithmetic of the dense kernels.
    pub kernels: Kernels,
    /// Ordering of the block graph.
    pub ordering: OrderingKind,
}

/// What a factorization did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactorStats {
    /// Fronts of the elimination tree.
    pub fronts: usize,
    /// Fronts computed by this call.
    pub refactored: usize,
    /// Floating-point operations of this call.
    pub flops: u64,
    /// Pivots that vanished or had the wrong sign and were replaced.
    pub regularised: u32,
}

/// Factor and solver of the mixed form of one [`RowProblem`] and its successors.
#[derive(Clone, Debug, Default)]
pub struct MixedSystem {
    analysed: bool,
    labels: Vec<Label>,
    diagonal: Vec<f64>,
    interface: InterfaceRows,
    multiplier_at: Vec<usize>,
    n: usize,
    matrix: Vec<f64>,
    schur: Vec<f64>,
    b: Vec<f64>,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    dv: Vec<f64>,
    dlambda: Vec<f64>,
}

impl MixedSystem {
    /// An empty system.
    pub fn new(_options: MixedOptions) -> Self {
        Self::default()
    }

    /// Is the analysis at hand still that of this problem?
    pub fn same_topology(&self, _problem: &RowProblem, _interface: &InterfaceRows) -> bool {
        self.analysed
    }

    /// New numbers; analyses first when the topology changed, and says so.
    pub fn load(&mut self, problem: &RowProblem) -> bool {
        self.load_with_interface(problem, &InterfaceRows::default())
    }

    /// [`load`](Self::load) with interface rows, whose Schur complement each factorization forms.
    pub fn load_with_interface(&mut self, _problem: &RowProblem, interface: &InterfaceRows) -> bool {
        self.interface.clone_from(interface);
        !std::mem::replace(&mut self.analysed, true)
    }

    /// Factors for an index set, with D added to the compliance.
    pub fn factor(
        &mut self,
        problem: &RowProblem,
        labels: &[Label],
        diagonal: Option<&[f64]>,
    ) -> FactorStats {
        self.labels.clear();
        self.labels.extend_from_slice(labels);
        self.diagonal.clear();
        match diagonal {
            Some(d) => self.diagonal.extend_from_slice(d),
            None => self.diagonal.resize(problem.rows(), 0.0),
        }
        self.number_multipliers(problem);
        self.fill(problem);
        let regularised = factor_dense(&mut self.matrix, self.n);
        self.form_schur();
        FactorStats { fronts: 1, refactored: 1, flops: (self.n as u64).pow(3) / 3, regularised }
    }

    fn number_multipliers(&mut self, problem: &RowProblem) {
        self.multiplier_at.clear();
        self.multiplier_at.resize(problem.rows(), usize::MAX);
        self.n = 6 * problem.bodies();
        for block in problem.blocks.iter().filter(|b| !b.fold) {
            for row in block.row..block.row + block.rows {
                if self.labels[row as usize] == Label::Free {
                    self.multiplier_at[row as usize] = self.n;
                    self.n += 1;
                }
            }
        }
    }

    fn fill(&mut self, problem: &RowProblem) {
        let n = self.n;
        self.matrix.clear();
        self.matrix.resize(n * n, 0.0);
        for (body, mass) in problem.mass.iter().enumerate() {
            for i in 0..6 {
                for j in 0..6 {
                    self.matrix[(6 * body + i) * n + 6 * body + j] = mass[6 * i + j];
                }
            }
        }
        for block in &problem.blocks {
            for r in 0..block.rows {
                let row = (block.row + r) as usize;
                if self.labels[row] != Label::Free {
                    continue;
                }
                let c = problem.compliance[row] + self.diagonal[row];
                for (k, &a) in problem.bodies_of(block).iter().enumerate() {
                    let ja = problem.jacobian_of(block, r, k as u32);
                    if !block.fold {
                        let at = self.multiplier_at[row];
                        for i in 0..6 {
                            self.matrix[at * n + 6 * a as usize + i] = ja[i];
                        }
                        self.matrix[at * n + at] = -c;
                        continue;
                    }
                    for (l, &b) in problem.bodies_of(block).iter().enumerate() {
                        let jb = problem.jacobian_of(block, r, l as u32);
                        for i in 0..6 {
                            for j in 0..6 {
                                self.matrix[(6 * a as usize + i) * n + 6 * b as usize + j] +=
                                    ja[i] * jb[j] / c;
                            }
                        }
                    }
                }
            }
        }
    }

    /// With the labels and D of the last factorization, finds v and λ_F of
    /// M v − J_Fᵀ λ_F = r_v, J_F v + (C+D)_F λ_F = r_λ; λ of tight rows is left as it is.
    pub fn solve(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    ) {
        self.solve_once(problem, r_v, r_lambda, v, lambda);
        for _ in 0..refinements {
            let mut rv = std::mem::take(&mut self.r_v);
            let mut rl = std::mem::take(&mut self.r_lambda);
            let mut dv = std::mem::take(&mut self.dv);
            let mut dl = std::mem::take(&mut self.dlambda);
            rv.clear();
            rv.extend_from_slice(r_v);
            rl.clear();
            rl.extend_from_slice(r_lambda);
            dv.resize(v.len(), 0.0);
            dl.resize(lambda.len(), 0.0);
            self.residual(problem, v, lambda, &mut rv, &mut rl);
            self.solve_once(problem, &rv, &rl, &mut dv, &mut dl);
            for (x, d) in v.iter_mut().zip(&dv) {
                *x += d;
            }
            for ((x, d), label) in lambda.iter_mut().zip(&dl).zip(&self.labels) {
                if *label == Label::Free {
                    *x += d;
                }
            }
            self.r_v = rv;
            self.r_lambda = rl;
            self.dv = dv;
            self.dlambda = dl;
        }
    }

    /// One pivot: reads λ of tight rows, writes v and λ of free rows (000 eq. 28).
    pub fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32) {
        let tight: Vec<f64> = (0..problem.rows())
            .map(|i| if self.labels[i] == Label::Free { 0.0 } else { lambda[i] })
            .collect();
        let mut q = vec![0.0; 6 * problem.bodies()];
        problem.impulse_to_momentum(&tight, &mut q);
        let minus_d: Vec<f64> = problem.d.iter().map(|d| -d).collect();
        self.solve(problem, &q, &minus_d, v, lambda, refinements);
    }

    /// J_Γ K⁻¹ J_Γᵀ of the last factorization: full, symmetric, m_Γ × m_Γ (000 eq. 24 without C_Γ).
    pub fn schur(&mut self) -> &[f64] {
        &self.schur
    }

    fn form_schur(&mut self) {
        let m = self.interface.rows();
        self.schur.clear();
        self.schur.resize(m * m, 0.0);
        let bodies = self.multiplier_at.len();
        let _ = bodies;
        for k in 0..m {
            let mut unit = vec![0.0; m];
            unit[k] = 1.0;
            let mut x = vec![0.0; self.n];
            self.interface.add_impulse(&unit, &mut x);
            solve_dense(&self.matrix, self.n, &mut x);
            let mut column = vec![0.0; m];
            self.interface.velocity(&x, &mut column);
            for i in 0..m {
                self.schur[i * m + k] = column[i];
            }
        }
    }

    fn residual(&self, problem: &RowProblem, v: &[f64], lambda: &[f64], rv: &mut [f64], rl: &mut [f64]) {
        for (body, m) in problem.mass.iter().enumerate() {
            for i in 0..6 {
                for j in 0..6 {
                    rv[6 * body + i] -= m[6 * i + j] * v[6 * body + j];
                }
            }
        }
        for block in &problem.blocks {
            for r in 0..block.rows {
                let row = (block.row + r) as usize;
                if self.labels[row] != Label::Free {
                    continue;
                }
                rl[row] -= (problem.compliance[row] + self.diagonal[row]) * lambda[row];
                for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                    let j = problem.jacobian_of(block, r, k as u32);
                    for c in 0..6 {
                        rl[row] -= j[c] * v[6 * body as usize + c];
                        rv[6 * body as usize + c] += j[c] * lambda[row];
                    }
                }
            }
        }
    }

    fn solve_once(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
    ) {
        let nv = 6 * problem.bodies();
        let mut b = std::mem::take(&mut self.b);
        b.clear();
        b.extend_from_slice(r_v);
        b.resize(self.n, 0.0);
        for block in &problem.blocks {
            for r in 0..block.rows {
                let row = (block.row + r) as usize;
                if self.labels[row] != Label::Free {
                    continue;
                }
                if !block.fold {
                    b[self.multiplier_at[row]] = r_lambda[row];
                    continue;
                }
                let x = r_lambda[row] / (problem.compliance[row] + self.diagonal[row]);
                for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                    let j = problem.jacobian_of(block, r, k as u32);
                    for c in 0..6 {
                        b[6 * body as usize + c] += j[c] * x;
                    }
                }
            }
        }
        solve_dense(&self.matrix, self.n, &mut b);
        v.copy_from_slice(&b[..nv]);
        for block in &problem.blocks {
            for r in 0..block.rows {
                let row = (block.row + r) as usize;
                if self.labels[row] != Label::Free {
                    continue;
                }
                if !block.fold {
                    lambda[row] = -b[self.multiplier_at[row]];
                    continue;
                }
                let mut s = r_lambda[row];
                for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                    let j = problem.jacobian_of(block, r, k as u32);
                    for c in 0..6 {
                        s -= j[c] * v[6 * body as usize + c];
                    }
                }
                lambda[row] = s / (problem.compliance[row] + self.diagonal[row]);
            }
        }
        self.b = b;
    }
}

/// LDLᵀ of the lower triangle, in place, row by row; unit L below, D on the diagonal.
fn factor_dense(a: &mut [f64], n: usize) -> u32 {
    let mut zero = 0;
    for i in 0..n {
        for j in 0..i {
            let mut s = a[i * n + j];
            for k in 0..j {
                s -= a[i * n + k] * a[j * n + k] * a[k * n + k];
            }
            a[i * n + j] = s / a[j * n + j];
        }
        let mut d = a[i * n + i];
        for k in 0..i {
            d -= a[i * n + k] * a[i * n + k] * a[k * n + k];
        }
        if d == 0.0 || !d.is_finite() {
            zero += 1;
            d = 1.0;
        }
        a[i * n + i] = d;
    }
    zero
}

fn solve_dense(a: &[f64], n: usize, x: &mut [f64]) {
    for i in 0..n {
        for k in 0..i {
            x[i] -= a[i * n + k] * x[k];
        }
    }
    for i in 0..n {
        x[i] /= a[i * n + i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            x[i] -= a[k * n + i] * x[k];
        }
    }
}
