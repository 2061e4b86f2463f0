//! The linear systems of pivoting and interior point, whoever solves them.
//!
//! One index set F and one positive diagonal D ask for v and λ_F of
//!
//! ```text
//!     M v − J_Fᵀ λ_F = r_v,    J_F v + (C+D)_F λ_F = r_λ
//! ```
//!
//! [`MixedSystem`] answers with one factorization of the whole problem, substructuring (in `coupling`) with one per
//! partition and one of the interface. The solvers above cannot tell them apart.

use super::ipm::Chunk;
use super::mixed::{MixedOptions, MixedSystem};
use super::system::Pass;
use super::{Label, RowProblem};

/// Factors and solves the equations above for the problem loaded last.
pub trait LinearSystem {
    /// Choices of the factorization; its memory is forgotten.
    fn set_options(&mut self, options: MixedOptions);
    /// New numbers; analyses first when the topology changed, and says so.
    fn load(&mut self, problem: &RowProblem) -> bool;
    /// Factors for an index set, with D ≥ 0 added to the compliance.
    fn factor(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>);
    /// Solves with the last factor. Of tight rows r_λ is not read and λ is left as it is.
    fn solve(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    );
    /// How rows and bodies fall into chunks for an interior point; every row is in one of them.
    fn chunks(&self, problem: &RowProblem, chunks: &mut Vec<Chunk>) {
        chunks.resize_with(1, Chunk::default);
        chunks[0].shape(0..problem.rows() as u32, 0..problem.bodies() as u32);
    }
    /// A Newton step of an interior point on all chunks: `before`, factor (if asked), solve with no momentum, `after`.
    fn newton(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        refinements: u32,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        if factor {
            self.factor(problem, &chunk.state, Some(&chunk.shift));
        }
        chunk.x.fill(0.0);
        chunk.momentum.fill(0.0);
        self.solve(problem, &chunk.momentum, &chunk.rhs, &mut chunk.xv, &mut chunk.x, refinements);
        after(chunk);
    }
    /// `before`, w = J v + C λ + d by the chunks' own velocities, `after`.
    fn renew_slack(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        problem.slack(&chunk.v, &chunk.lambda, &mut chunk.w);
        after(chunk);
    }
    /// One pivot: r_v = p + J_Tᵀ λ_T with λ of tight rows as given, r_λ = −d.
    fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32);
}

impl LinearSystem for MixedSystem {
    fn set_options(&mut self, options: MixedOptions) {
        *self = MixedSystem::new(options);
    }
    fn load(&mut self, problem: &RowProblem) -> bool {
        MixedSystem::load(self, problem)
    }
    fn factor(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        MixedSystem::factor(self, problem, labels, diagonal);
    }
    fn solve(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    ) {
        MixedSystem::solve(self, problem, r_v, r_lambda, v, lambda, refinements);
    }
    fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32) {
        MixedSystem::solve_pivot(self, problem, v, lambda, refinements);
    }
}
