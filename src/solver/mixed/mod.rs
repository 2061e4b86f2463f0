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
//! multiplier pivots negative, in any order. Tight rows drop out of the numbers, never out of the pattern,
//! so the symbolic work lasts as long as the constraint graph does.

mod assembly;
mod crowds;
mod focus;
mod inertia;
mod interface;
mod plan;
mod solve;
mod touching;

#[cfg(test)]
mod tests;

pub use crate::linalg::{Kernels, OrderingKind};
pub use inertia::CoupledInertia;
pub use interface::InterfaceRows;

use super::{Label, RowBlock, RowProblem};
use crate::linalg::Multifrontal;
use crate::linalg::kernels::{self, Numbers};
use crate::linalg::ordering::MinDegree;
use crate::linalg::packed;
use crate::linalg::symbolic::NONE;
use assembly::Assembler;
use focus::Focus;
use plan::Plan;

/// Choices of a [`MixedSystem`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
///
/// Call [`load`](Self::load) once per step, then [`factor`](Self::factor) and [`solve`](Self::solve) per
/// pivot or interior-point iteration. Memory is kept; an unchanged topology allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct MixedSystem {
    options: MixedOptions,
    plan: Option<Box<Plan>>,
    ordering: MinDegree,
    factor: Multifrontal,
    interface: InterfaceRows,
    /// C+D per row, infinite for tight rows; NaN before the first factorization of a step.
    regular: Vec<f64>,
    /// 1/(C+D) per row, 0 for tight rows.
    weight: Vec<f64>,
    any_tight: bool,
    /// A bit per row whose C+D changed with the last factorization.
    changed: Vec<u64>,
    schur: Vec<f64>,
    focus: Focus,
    work: solve::Work,
}

impl MixedSystem {
    /// An empty system.
    pub fn new(options: MixedOptions) -> Self {
        Self { options, factor: Multifrontal::new(options.kernels), ..Self::default() }
    }
    /// Had the last factorization rows that were not free?
    pub fn any_tight(&self) -> bool {
        self.any_tight
    }

    /// Is the analysis at hand still that of this problem?
    pub fn same_topology(&self, problem: &RowProblem, interface: &InterfaceRows) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.fits(problem, interface))
    }

    /// New numbers; analyses first when the topology changed, and says so.
    pub fn load(&mut self, problem: &RowProblem) -> bool {
        self.load_with_interface(problem, &InterfaceRows::default())
    }

    /// [`load`](Self::load) with interface rows, whose Schur complement each factorization forms.
    pub fn load_with_interface(&mut self, problem: &RowProblem, interface: &InterfaceRows) -> bool {
        let analyse = !self.same_topology(problem, interface);
        if analyse {
            let bounded = |block: &RowBlock| {
                let rows = block.row as usize..(block.row + block.rows) as usize;
                let finite = |x: &[f64]| x[rows.clone()].iter().any(|x| x.is_finite());
                finite(&problem.lo) || finite(&problem.hi)
            };
            let bounded: Vec<bool> = problem.blocks.iter().map(bounded).collect();
            self.analyse(problem, interface, &bounded);
        }
        self.interface.jacobian.clone_from(&interface.jacobian);
        self.factor.touch_all();
        self.regular.fill(f64::NAN);
        analyse
    }

    /// Is the analysis at hand the one that this problem would be given, if these of its blocks had bounds?
    pub fn knows(&self, problem: &RowProblem, bounded: &[bool]) -> bool {
        let none = InterfaceRows::default();
        self.plan.as_ref().is_some_and(|plan| plan.fits(problem, &none) && plan.bounded == bounded)
    }

    /// Analyses a problem as if these of its blocks had bounds, and no others. Without this, the order of elimination is that of
    /// the bounds which the first problem of the topology had.
    pub fn prepare(&mut self, problem: &RowProblem, bounded: &[bool]) {
        if !self.knows(problem, bounded) {
            self.analyse(problem, &InterfaceRows::default(), bounded);
        }
    }

    fn analyse(&mut self, problem: &RowProblem, interface: &InterfaceRows, bounded: &[bool]) {
        let (plan, symbolic, varying) =
            Plan::build(problem, interface, bounded, &self.options, &mut self.ordering);
        self.factor.plan(symbolic, varying);
        self.interface.clone_from(interface);
        self.regular.resize(problem.rows(), f64::NAN);
        self.weight.resize(problem.rows(), 0.0);
        self.changed.resize(problem.rows().div_ceil(64), 0);
        let m = interface.rows();
        self.schur.clear();
        self.schur.resize(packed::len(m), 0.0);
        self.work.reserve(problem, self.factor.symbolic.locals);
        self.focus.clear();
        self.plan = Some(Box::new(plan));
    }

    /// Factors for an index set, with D ≥ 0 added to the compliance. Only fronts that depend on rows whose label or
    /// C + D changed since the last call are computed anew, with what is above them.
    ///
    /// # Panics
    /// If no problem was loaded, or the slices do not have one entry per row.
    pub fn factor(
        &mut self,
        problem: &RowProblem,
        labels: &[Label],
        diagonal: Option<&[f64]>,
    ) -> FactorStats {
        let Some(plan) = self.plan.as_deref() else {
            panic!("MixedSystem::factor before MixedSystem::load: load the problem first");
        };
        let rows = self.weight.len();
        assert!(labels.len() == rows && diagonal.is_none_or(|d| d.len() == rows));
        let isa = self.factor.isa();
        self.any_tight = kernels::renew_weights(
            isa,
            &problem.compliance,
            diagonal,
            bytemuck::cast_slice(labels),
            &mut self.regular,
            &mut self.weight,
            &mut self.changed,
        );
        for (word, &bits) in self.changed.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let row = 64 * word + bits.trailing_zeros() as usize;
                if plan.row_front[row] != NONE {
                    self.factor.touch(plan.row_front[row]);
                }
                // The rows behind it mostly touch the same front.
                let done = plan.row_end[row] as usize - 64 * word;
                bits &= if done < 64 { !0 << done } else { 0 };
            }
        }
        self.factor_touched(problem)
    }

    /// Factors the fronts whose numbers have changed, and what is above them.
    fn factor_touched(&mut self, problem: &RowProblem) -> FactorStats {
        let Some(plan) = self.plan.as_deref() else { return FactorStats::default() };
        let assembler = Assembler { plan, problem, interface: &self.interface };
        let numbers = Numbers { jacobian: &problem.jacobian, regular: &self.regular, weight: &self.weight };
        let (refactored, flops, regularised) = self.factor.factor(&assembler, numbers);
        FactorStats { fronts: self.factor.symbolic.fronts.len(), refactored, flops, regularised }
    }

    /// J_Γ K⁻¹ J_Γᵀ of the last factorization, its lower triangle as in [`packed`]. This is the partition's term of S_Γ
    /// (000 eq. 24); C_Γ is added once by the interface.
    pub fn schur(&mut self) -> &[f64] {
        let m = self.interface.rows();
        if let Some((update, ldu)) = self.factor.last_update() {
            let mut rest = &mut self.schur[..];
            for column in 0..m {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(m - column);
                let from = &update[column * ldu + column..column * ldu + m];
                own.iter_mut().zip(from).for_each(|(s, u)| *s = -u);
                rest = behind;
            }
        }
        &self.schur
    }

    /// The same in full, row by row.
    pub fn full_schur(&mut self, out: &mut [f64]) {
        let m = self.interface.rows();
        for (column, own) in packed::columns(m, self.schur()).enumerate() {
            for (row, &s) in (column..m).zip(own) {
                (out[column * m + row], out[row * m + column]) = (s, s);
            }
        }
    }

    /// The plan of the factorization: its tree, its operations, its subtrees.
    pub fn symbolic(&self) -> &crate::linalg::Symbolic {
        &self.factor.symbolic
    }

    /// The instruction set in use.
    pub fn isa(&self) -> crate::linalg::Isa {
        self.factor.isa()
    }
}
