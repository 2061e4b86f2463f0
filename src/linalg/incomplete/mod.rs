//! Preconditioners for conjugate gradients on A_FF (003 chapter 4).
//!
//! P ≈ A_FF is applied as z = S (L̂ L̂ᵀ)⁻¹ S r with a diagonal scaling S (003 §4.1.6) and a lower
//! triangular L̂. All of them are symmetric positive definite by construction, whatever happens during
//! their factorization. Rows that are not free stay in the pattern as rows of the identity: a row
//! that leaves or enters the free set changes numbers, never the memory.
//!
//! | 003 | here |
//! |---|---|
//! | Jacobi, block Jacobi (ch. 4) | [`Kind::Jacobi`], [`Kind::BlockJacobi`] |
//! | IC(0), Algorithm 4 | [`Kind::Ic0`] |
//! | diagonal compensation, §4.1.2 | [`Kind::Compensated`] |
//! | ICT, Algorithm 5 | [`Kind::Ict`] |
//! | partial shift, §4.1.4 | [`Kind::PartialShift`] |
//! | imaginary columns, Algorithms 6–7 | [`Kind::Imaginary`] |

// Loops over several arrays by one row number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

mod block_jacobi;
mod ic0;
mod ict;

use block_jacobi::BlockJacobi;
use ic0::Ic0;
use ict::Ict;
use sprs::CsMat;

/// Which preconditioner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Kind {
    /// P = I: plain conjugate gradients.
    None,
    /// The diagonal of A.
    Jacobi,
    /// The diagonal blocks of the constraints.
    BlockJacobi,
    /// Zero fill; a column that breaks down is replaced by its diagonal.
    Ic0,
    /// Zero fill of A + γ diag(A), γ doubled until it succeeds.
    Compensated,
    /// Zero fill; only the columns that feed a breakdown are shifted (Chen et al. 2021).
    PartialShift,
    /// Zero fill with columns marked imaginary where a pivot is negative (Ho 2022): never restarts.
    #[default]
    Imaginary,
    /// Fill kept above a drop tolerance, at most `keep` entries a column.
    Ict {
        /// Entries below this share of their column's norm are dropped.
        drop: f64,
        /// Most entries kept per column below the diagonal.
        keep: usize,
    },
}

/// Diagonal scaling before the factorization (003 §4.1.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// None.
    None,
    /// S_i = 1/√A_ii.
    #[default]
    Diagonal,
    /// S_i = 1/√‖a_i‖₂ of column i.
    ColumnNorm,
}

/// What a factorization went through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FactorReport {
    /// Free rows.
    pub rows: usize,
    /// Columns with a negative pivot: imaginary ones, or pivots replaced.
    pub negative: usize,
    /// Attempts beyond the first.
    pub restarts: u32,
    /// Largest shift of the diagonal, relative to it.
    pub shift: f64,
}

/// A preconditioner with its memory.
#[derive(Clone, Debug, Default)]
pub struct Preconditioner {
    kind: Kind,
    scaling: Scaling,
    scale: Vec<f64>,
    free: Vec<bool>,
    ic0: Ic0,
    ict: Ict,
    blocks: BlockJacobi,
    report: FactorReport,
}

impl Preconditioner {
    /// An empty preconditioner of a kind.
    pub fn new(kind: Kind, scaling: Scaling) -> Self {
        Preconditioner { kind, scaling, ..Preconditioner::default() }
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Takes the pattern of a symmetric matrix (both triangles stored); once per problem.
    pub fn analyse(&mut self, a: &CsMat<f64>) {
        match self.kind {
            Kind::None | Kind::Jacobi => {}
            Kind::BlockJacobi => self.blocks.analyse(a),
            Kind::Ict { .. } => {}
            _ => self.ic0.analyse(a),
        }
    }

    /// Numbers for the free rows of the analysed matrix plus a diagonal shift.
    pub fn factor(&mut self, a: &CsMat<f64>, free: &[bool], shift: Option<&[f64]>) -> FactorReport {
        self.free.clear();
        self.free.extend_from_slice(free);
        self.form_scale(a, shift);
        let matrix = Scaled { a, free, shift, scale: &self.scale };
        self.report = match self.kind {
            Kind::None | Kind::Jacobi => FactorReport::default(),
            Kind::BlockJacobi => self.blocks.factor(&matrix),
            Kind::Ict { drop, keep } => self.ict.factor(&matrix, drop, keep),
            Kind::Ic0 => self.ic0.factor(&matrix, ic0::Breakdown::Replace),
            Kind::Compensated => self.ic0.factor(&matrix, ic0::Breakdown::Compensate),
            Kind::PartialShift => self.ic0.factor(&matrix, ic0::Breakdown::PartialShift),
            Kind::Imaginary => self.ic0.factor(&matrix, ic0::Breakdown::Imaginary),
        };
        self.report.rows = free.iter().filter(|&&f| f).count();
        self.report
    }

    /// Report of the last factorization.
    pub fn report(&self) -> FactorReport {
        self.report
    }

    fn form_scale(&mut self, a: &CsMat<f64>, shift: Option<&[f64]>) {
        let n = a.rows();
        self.scale.clear();
        self.scale.resize(n, 1.0);
        let scaling = if self.kind == Kind::Jacobi { Scaling::Diagonal } else { self.scaling };
        if self.kind == Kind::None || scaling == Scaling::None {
            return;
        }
        for (i, row) in a.outer_iterator().enumerate() {
            let extra = shift.map_or(0.0, |s| s[i]);
            let mut size = 0.0f64;
            for (j, &x) in row.iter() {
                match scaling {
                    Scaling::ColumnNorm => {
                        let x = x + if i == j { extra } else { 0.0 };
                        size += x * x;
                    }
                    _ if i == j => size = x + extra,
                    _ => {}
                }
            }
            let size = if scaling == Scaling::ColumnNorm { size.sqrt() } else { size };
            self.scale[i] = if size > 0.0 { 1.0 / size.sqrt() } else { 1.0 };
        }
    }

    /// z = P⁻¹ r on the free rows, zero elsewhere.
    pub fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        for i in 0..r.len() {
            z[i] = if self.free[i] { self.scale[i] * r[i] } else { 0.0 };
        }
        match self.kind {
            Kind::None | Kind::Jacobi => {}
            Kind::BlockJacobi => self.blocks.solve(z),
            Kind::Ict { .. } => self.ict.solve(z),
            _ => self.ic0.solve(z),
        }
        for i in 0..r.len() {
            z[i] = if self.free[i] { self.scale[i] * z[i] } else { 0.0 };
        }
    }
}

/// S (A + D)_FF S with rows of the identity for what is not free.
pub(super) struct Scaled<'a> {
    a: &'a CsMat<f64>,
    free: &'a [bool],
    shift: Option<&'a [f64]>,
    scale: &'a [f64],
}

impl Scaled<'_> {
    fn rows(&self) -> usize {
        self.free.len()
    }

    /// An entry given its value in A.
    fn entry(&self, i: usize, j: usize, a: f64) -> f64 {
        if i == j {
            return self.diagonal(i, a);
        }
        if self.free[i] && self.free[j] { self.scale[i] * a * self.scale[j] } else { 0.0 }
    }

    fn diagonal(&self, i: usize, a: f64) -> f64 {
        if !self.free[i] {
            return 1.0;
        }
        let d = (a + self.shift.map_or(0.0, |s| s[i])) * self.scale[i] * self.scale[i];
        if d > 0.0 { d } else { 1.0 }
    }
}

#[cfg(test)]
mod tests;
