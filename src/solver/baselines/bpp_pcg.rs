//! Block pivoting with conjugate gradients inside (003 Algorithm 10).
//!
//! The pivoting is that of `bpp`, untouched: [`PcgSystem`] answers the same questions with iterations in
//! place of a factorization. Products go through A where it is sparse and through J M⁻¹ Jᵀ + C where that
//! is less work.

use super::pcg::{self, PcgMemory, PcgSettings, Subspace};
use crate::linalg::incomplete::{Kind, Preconditioner, Scaling};
use crate::solver::Label;
use crate::solver::matrix_system;
use crate::solver::problem::RowKind;
use crate::solver::system::PivotSystem;
use sprs::CsMat;

/// Settings of the inner solves of `bpp-pcg` and `pgcg`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InnerSettings {
    /// The preconditioner.
    pub preconditioner: Kind,
    /// Its scaling.
    pub scaling: Scaling,
    /// ‖r‖₂ of an inner solve, relative to max(1, ‖b‖).
    pub tolerance: f64,
    /// Most iterations of an inner solve (20,000 in 003).
    pub max_iterations: u32,
}

impl Default for InnerSettings {
    fn default() -> Self {
        InnerSettings {
            preconditioner: Kind::Imaginary,
            scaling: Scaling::Diagonal,
            tolerance: 1e-10,
            max_iterations: 20_000,
        }
    }
}

/// What the inner solves of one problem added up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InnerReport {
    /// Conjugate gradient iterations.
    pub iterations: u64,
    /// Inner solves.
    pub solves: u32,
    /// Inner solves that did not reach their tolerance.
    pub unconverged: u32,
    /// Columns of all preconditioners, and those of them with a negative pivot.
    pub columns: u64,
    /// Columns with a negative pivot.
    pub negative: u64,
}

impl InnerReport {
    /// Share of columns with a negative pivot: imaginary ones, where the preconditioner has them.
    pub fn imaginary_share(&self) -> f64 {
        self.negative as f64 / self.columns.max(1) as f64
    }

    /// Adds a preconditioner to the count.
    pub fn count(&mut self, preconditioner: &Preconditioner) {
        self.columns += preconditioner.report().rows as u64;
        self.negative += preconditioner.report().negative as u64;
    }
}

/// Memory of a [`PcgSystem`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct PcgSystemMemory {
    pub(super) preconditioner: Preconditioner,
    pub(super) pcg: PcgMemory,
    pub(super) report: InnerReport,
    kind: Kind,
    scaling: Scaling,
    free: Vec<bool>,
    shift: Vec<f64>,
    shifted: bool,
    rhs: Vec<f64>,
    guess: Vec<f64>,
}

/// A system whose linear solves are conjugate gradients.
pub struct PcgSystem<'a, S> {
    inner: &'a mut S,
    a: &'a CsMat<f64>,
    pub(super) memory: &'a mut PcgSystemMemory,
    settings: InnerSettings,
    matrix_free: bool,
    tolerance: f64,
}

impl<'a, S: PivotSystem> PcgSystem<'a, S> {
    /// Wraps a system, with its A for the preconditioner.
    ///
    /// `through_bodies` is the number of multiplications of a product without A, where there is one.
    pub fn new(
        inner: &'a mut S,
        a: &'a CsMat<f64>,
        through_bodies: Option<usize>,
        settings: InnerSettings,
        memory: &'a mut PcgSystemMemory,
    ) -> Self {
        if memory.kind != settings.preconditioner || memory.scaling != settings.scaling {
            memory.preconditioner = Preconditioner::new(settings.preconditioner, settings.scaling);
            (memory.kind, memory.scaling) = (settings.preconditioner, settings.scaling);
        }
        memory.preconditioner.analyse(a);
        memory.report = InnerReport::default();
        memory.guess.clear();
        memory.guess.resize(a.rows(), 0.0);
        let tolerance = settings.tolerance * inner.scale();
        let matrix_free = through_bodies.is_some_and(|work| work < a.nnz());
        PcgSystem { inner, a, memory, settings, matrix_free, tolerance }
    }

    /// What the inner solves added up to.
    pub fn report(&self) -> InnerReport {
        self.memory.report
    }

    /// Settings of an inner solve for this problem. Every one that did not arrive halves what the later ones may take, so that a
    /// problem beyond conjugate gradients ends after twice the iterations of one solve instead of some hundred times as many.
    pub(super) fn pcg_settings(&self) -> PcgSettings {
        let halvings = self.memory.report.unconverged.min(31);
        PcgSettings { tolerance: self.tolerance, max_iterations: self.settings.max_iterations >> halvings }
    }

    /// λ and w of an index set by conjugate gradients.
    fn point_of(&mut self, labels: &[Label], shift: Option<&[f64]>, lambda: &mut [f64], w: &mut [f64]) {
        let n = labels.len();
        let free: Vec<bool> = labels.iter().map(|&l| l == Label::Free).collect();
        self.factor(&free, shift);
        for i in 0..n {
            // Rows that stay free start from where they were (003 §5.3).
            self.memory.guess[i] = if free[i] && lambda[i].is_finite() { lambda[i] } else { 0.0 };
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.lo()[i],
                Label::Upper => self.hi()[i],
            };
        }
        self.slack(lambda, w);
        self.memory.rhs.clear();
        self.memory.rhs.extend(w.iter().map(|w| -w));
        self.conjugate_gradients();
        for i in 0..n {
            if free[i] {
                lambda[i] = self.memory.guess[i];
            }
        }
        self.slack(lambda, w);
    }

    fn conjugate_gradients(&mut self) {
        let settings = self.pcg_settings();
        let (inner, a, matrix_free) = (&mut *self.inner, self.a, self.matrix_free);
        let diagonal = &inner.diagonal().to_vec()[..];
        let mut product = |x: &[f64], y: &mut [f64]| {
            if matrix_free { inner.multiply(x, y) } else { matrix_system::multiply(a, x, y) }
        };
        let PcgSystemMemory { preconditioner, pcg, free, shift, shifted, rhs, guess, report, .. } =
            &mut *self.memory;
        let shift = shifted.then_some(shift.as_slice());
        let subspace = Subspace { free, shift, diagonal };
        let outcome = pcg::solve(&mut product, subspace, preconditioner, rhs, guess, &settings, pcg);
        report.iterations += u64::from(outcome.iterations);
        report.solves += 1;
        report.unconverged += u32::from(!outcome.converged);
    }
}

impl<S: PivotSystem> PivotSystem for PcgSystem<'_, S> {
    fn b(&self) -> &[f64] {
        self.inner.b()
    }
    fn lo(&self) -> &[f64] {
        self.inner.lo()
    }
    fn hi(&self) -> &[f64] {
        self.inner.hi()
    }
    fn kind(&self) -> &[RowKind] {
        self.inner.kind()
    }
    fn diagonal(&self) -> &[f64] {
        self.inner.diagonal()
    }
    fn factorizations(&self) -> u32 {
        self.memory.report.solves
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        if self.matrix_free { self.inner.multiply(x, y) } else { matrix_system::multiply(self.a, x, y) }
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        let memory = &mut *self.memory;
        memory.free.clear();
        memory.free.extend_from_slice(free);
        memory.shifted = shift.is_some();
        memory.shift.clear();
        memory.shift.extend_from_slice(shift.unwrap_or(&[]));
        memory.preconditioner.factor(self.a, free, shift);
        memory.report.count(&memory.preconditioner);
    }

    fn solve(&mut self, x: &mut [f64]) {
        self.memory.rhs.clear();
        self.memory.rhs.extend_from_slice(x);
        self.memory.guess.fill(0.0);
        self.conjugate_gradients();
        x.copy_from_slice(&self.memory.guess);
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, None, lambda, w);
    }

    fn evaluate_softened(&mut self, labels: &[Label], shift: &[f64], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, Some(shift), lambda, w);
    }

    fn sweep(&mut self, lambda: &mut [f64]) {
        self.inner.sweep(lambda);
    }
}
