//! Solvers for the mixed linear complementarity problem of one step (000 eqs. 8–12).
//!
//! Knows nothing of entities, threads or vectors of geometry: `f64` slices and `u32` indices.
//!
//! | paper | meaning | here |
//! |---|---|---|
//! | λ, w | impulse, slack velocity | `lambda`, `w` |
//! | l, u | bounds | `lo`, `hi` |
//! | M, p, v | mass, momentum M v + h f, velocity after the step | `mass`, `momentum`, `v` |
//! | J, C, d | Jacobian, compliance, φ/h − w₀ | `jacobian`, `compliance`, `d` |
//! | F, T | free and tight rows | [`Label::Free`], [`Label::Lower`], [`Label::Upper`] |

// Matrix letters of the papers are capital; they stay so inside the solvers.
#![allow(non_snake_case)]
// Loops over several arrays by one row number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

pub mod auto;
pub mod baselines;
pub mod bpp;
pub mod condensed;
pub mod cone;
pub mod delassus_diagonal;
pub mod files;
#[doc(hidden)]
pub mod generate;
pub mod index_sets;
pub mod interior_point;
pub mod linear;
pub mod matrix_solver;
pub mod matrix_system;
pub mod mixed;
pub mod momentum_residual;
pub mod problem;
pub mod random;
pub mod redundancy;
pub mod residual;
pub mod row_solver;
pub mod row_system;
pub mod system;

pub use auto::Settings;
pub use matrix_solver::{MatrixError, solve_matrix};
pub use problem::{Cone, Coupling, MatrixProblem, RowBlock, RowKind, RowProblem};
pub use row_solver::RowSolver;

/// Where a row stands in the index set (000 eq. 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, bytemuck::NoUninit)]
#[repr(u8)]
pub enum Label {
    /// lo < λ < hi, w = 0.
    #[default]
    Free,
    /// λ = lo, w ≥ 0.
    Lower,
    /// λ = hi, w ≤ 0.
    Upper,
}

/// The solvers by the names of the program (`--solver NAME`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Method {
    /// Warm pivoting while it makes progress, else interior point.
    #[default]
    Auto,
    /// Block principal pivoting on the mixed form.
    Bpp,
    /// Interior point on the mixed form, with crossover.
    Ipm,
    /// Projected Gauss–Seidel.
    Pgs,
    /// Projected Gauss–Seidel with subspace minimisation.
    PgsSm,
    /// Block pivoting with preconditioned conjugate gradients inside (003).
    BppPcg,
    /// Preconditioned generalised conjugate gradients (003).
    Pgcg,
    /// Substructuring, interface by block pivoting (000).
    SchurBpp,
    /// Substructuring, interface by PGS-SM (000).
    SchurPgsSm,
    /// Substructuring as the linear solver of the interior point.
    SchurIpm,
    /// Force-based interface coupling (000 eqs. 16–17).
    Fbic,
}

impl Method {
    /// Every method, in the order of the documentation.
    pub const ALL: [Method; 11] = [
        Method::Auto,
        Method::Bpp,
        Method::Ipm,
        Method::Pgs,
        Method::PgsSm,
        Method::BppPcg,
        Method::Pgcg,
        Method::SchurBpp,
        Method::SchurPgsSm,
        Method::SchurIpm,
        Method::Fbic,
    ];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Bpp => "bpp",
            Method::Ipm => "ipm",
            Method::Pgs => "pgs",
            Method::PgsSm => "pgs-sm",
            Method::BppPcg => "bpp-pcg",
            Method::Pgcg => "pgcg",
            Method::SchurBpp => "schur-bpp",
            Method::SchurPgsSm => "schur-pgs-sm",
            Method::SchurIpm => "schur-ipm",
            Method::Fbic => "fbic",
        }
    }

    /// Does it work on partitions? Of a problem that is not cut such a method is no more than another name of its solver.
    pub fn is_substructured(self) -> bool {
        matches!(self, Method::SchurBpp | Method::SchurPgsSm | Method::SchurIpm | Method::Fbic)
    }

    /// The method that solves a problem which is not cut.
    pub fn of_whole(self) -> Method {
        match self {
            Method::SchurBpp | Method::SchurPgsSm | Method::Fbic => Method::Auto,
            Method::SchurIpm => Method::Ipm,
            method => method,
        }
    }

    /// The method of a name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| m.name() == name)
    }
}

/// Impulses, velocities and labels: in as a warm start, out as the answer.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// λ per row.
    pub lambda: Vec<f64>,
    /// v after the step, six numbers a body.
    pub v: Vec<f64>,
    /// Index set.
    pub labels: Vec<Label>,
}

/// What a solve has to say for itself; never only "done".
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SolveStats {
    /// Natural residual norm (000 eq. 29).
    pub residual: f64,
    /// Natural residual divided by max(1, ‖b‖): the measure of `converged`.
    pub residual_relative: f64,
    /// Unit-consistent energy measure (003 §6.2.2).
    pub residual_energy: f64,
    /// Did the residual reach the tolerance asked for?
    pub converged: bool,
    /// Pivoting iterations.
    pub pivots: u32,
    /// Interior-point iterations.
    pub ipm_iterations: u32,
    /// Numeric factorizations, partial ones included.
    pub factorizations: u32,
    /// Conjugate gradient iterations inside `bpp-pcg` and `pgcg`.
    pub inner_iterations: u64,
    /// Share of preconditioner columns with a negative pivot (003 Fig. 6.4).
    pub imaginary_share: f64,
    /// Friction rows softened by adaptive regularisation (003 Algorithm 9): these slip.
    pub softened_rows: u32,
    /// Largest compliance so added, in 1/kg.
    pub softening: f64,
    /// Was the symbolic analysis done anew?
    pub analysed: bool,
}
