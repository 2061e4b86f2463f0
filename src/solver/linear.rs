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

use super::delassus_diagonal::Formed;
use super::interior_point::Chunk;
use super::mixed::{MixedOptions, MixedSystem};
use super::momentum_residual;
use super::residual::Sums;
use super::system::Pass;
use super::{Label, RowProblem};
use crate::linalg::Isa;

/// Velocities, impulses and slack velocities of an index set.
pub struct Point<'a> {
    /// v, six numbers a body.
    pub v: &'a mut [f64],
    /// λ per row.
    pub lambda: &'a mut [f64],
    /// w per row.
    pub w: &'a mut [f64],
}

/// What was found of an index set.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed {
    /// Do v and λ obey M v = p + Jᵀ λ to round-off?
    pub balanced: bool,
    /// What the rows say.
    pub sums: Sums,
}

/// Memory of refinement.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// What is missing to M v = p + Jᵀ λ.
    pub r_v: Vec<f64>,
    /// What is missing to J v + (C+D) λ + d = 0.
    pub r_lambda: Vec<f64>,
    /// A step of v.
    pub dv: Vec<f64>,
    /// A step of λ.
    pub dlambda: Vec<f64>,
    /// Sum of the sizes of the terms of `r_v`.
    pub size: Vec<f64>,
}

impl Scratch {
    /// Makes room for a problem.
    pub fn fit(&mut self, problem: &RowProblem) {
        for buffer in [&mut self.r_v, &mut self.dv, &mut self.size] {
            buffer.resize(6 * problem.bodies(), 0.0);
        }
        for buffer in [&mut self.r_lambda, &mut self.dlambda] {
            buffer.resize(problem.rows(), 0.0);
        }
    }
}

/// A solve near the rows in focus ([`LinearSystem::focus_on`]), with one entry a row in focus everywhere.
pub struct Near<'a> {
    /// Labels.
    pub labels: &'a [Label],
    /// D.
    pub shift: &'a [f64],
    /// Are the momenta and the other rows' d on the right-hand side?
    pub moving: bool,
    /// r_λ, read of free rows.
    pub r: &'a [f64],
    /// λ: of tight rows in, of free ones out.
    pub lambda: &'a mut [f64],
    /// J v, out.
    pub jv: &'a mut [f64],
}

/// Factors and solves the equations above for the problem loaded last.
pub trait LinearSystem {
    /// Choices of the factorization; its memory is forgotten.
    fn set_options(&mut self, options: MixedOptions);
    /// New numbers; analyses first when the topology changed, and says so.
    fn load(&mut self, problem: &RowProblem) -> bool;
    /// Looks at a problem that will be loaded: the diagonal of A and b = J M⁻¹ p + d, where partitions form them beside their
    /// own copies of the numbers.
    fn form(&mut self, _problem: &RowProblem, _isa: Isa) -> Option<Formed> {
        None
    }
    /// The diagonal of A and b as [`form`](Self::form) found them.
    fn report_formed(&self, _problem: &RowProblem, _rows: (&mut [f64], &mut [f64])) {}
    /// The same of the rows in focus.
    fn report_formed_near(&self, _rows: (&mut [f64], &mut [f64])) {}
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
    /// Factors for an index set and goes, once for all solves near them, through everything that lies away from some of the rows.
    /// Until the next problem is loaded, index sets of these solves leave the others free.
    fn focus_on(&mut self, problem: &RowProblem, rows: &[bool], index_set: (&[Label], Option<&[f64]>));
    /// A solve near the rows in focus. What has changed among them is factored first.
    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>);
    /// How the rows in focus fall into chunks, by their number among them; chunks follow the velocities of their rows.
    fn chunks_near(&self, chunks: &mut Vec<Chunk>);
    /// [`newton`](Self::newton) near the rows in focus.
    fn newton_near(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    );
    /// How many items are worth working on at once: never a matter of the threads there are.
    fn hands(&self) -> usize {
        1
    }
    /// Runs `f(number, item)` on all items, at once where this system has threads to do so.
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        items.iter_mut().enumerate().for_each(|(k, item)| f(k, item));
    }
    /// What is missing to M v = p + Jᵀ λ, the sizes of its terms, w = J v + C λ + d and what is missing to the rows, with these
    /// labels and D. Returns the relative imbalance and the largest that is missing to a free row.
    fn measure(
        &self,
        problem: &RowProblem,
        index_set: (&[Label], Option<&[f64]>),
        point: &mut Point<'_>,
        scratch: &mut Scratch,
    ) -> (f64, f64) {
        let (v, lambda) = (&*point.v, &*point.lambda);
        let Scratch { r_v, r_lambda, size, .. } = scratch;
        momentum_residual::form(problem, v, lambda, r_v, size);
        let slack = momentum_residual::slack(problem, index_set, (v, lambda), point.w, r_lambda);
        (momentum_residual::worst(r_v, size), slack)
    }
    /// The point of an index set with D = `shift`: λ of tight rows in, v, λ and w out, refined until the slack of free rows is
    /// below `enough`. Returns the relative imbalance of M v = p + Jᵀ λ where it is known.
    ///
    /// Folding divides by C: where C is 1e-13 of A_ii, λ of a light body keeps three digits per solve.
    fn evaluate(
        &mut self,
        problem: &RowProblem,
        labels: &[Label],
        shift: Option<&[f64]>,
        point: Point<'_>,
        enough: f64,
        scratch: &mut Scratch,
    ) -> Option<f64> {
        self.factor(problem, labels, shift);
        self.solve_pivot(problem, point.v, point.lambda, 0);
        self.refine(problem, (labels, shift), point, enough, scratch)
    }
    /// The second half of [`evaluate`](Self::evaluate): takes v and λ of a solve to where they are good enough.
    fn refine(
        &mut self,
        problem: &RowProblem,
        (labels, shift): (&[Label], Option<&[f64]>),
        mut point: Point<'_>,
        enough: f64,
        scratch: &mut Scratch,
    ) -> Option<f64> {
        let mut progress = momentum_residual::Progress::default();
        for _ in 0..=momentum_residual::MAX_REFINEMENTS {
            let (imbalance, slack) = self.measure(problem, (labels, shift), &mut point, scratch);
            if progress.is_over(imbalance / momentum_residual::BALANCED, slack / enough) {
                return Some(imbalance);
            }
            if slack <= enough {
                // What is left of the slacks is round-off of J v, which 1/C would blow up into λ: only the momenta are
                // mended from here on.
                scratch.r_lambda.fill(0.0);
            }
            let Scratch { r_v, r_lambda, dv, dlambda, .. } = &mut *scratch;
            dlambda.fill(0.0);
            self.solve(problem, r_v, r_lambda, dv, dlambda, 0);
            point.v.iter_mut().zip(dv.iter()).for_each(|(v, d)| *v += d);
            point.lambda.iter_mut().zip(dlambda.iter()).for_each(|(l, d)| *l += d);
        }
        problem.slack(point.v, point.lambda, point.w);
        None
    }
    /// v and λ of the free rows from the last solve near the rows in focus, if that was the point of an index set ([`Near::moving`], r = −d)
    /// and there is a way to them that is shorter than a solve.
    fn go_on_from_near(&mut self, _problem: &RowProblem, _v: &mut [f64], _lambda: &mut [f64]) -> bool {
        false
    }
    /// [`evaluate`](Self::evaluate) of an index set that is probably the answer, judged on the way. `near`: was the last solve near the rows
    /// in focus that of these labels? `w` is memory; whether it is told is not said. Of the diagonal of A that of the whole problem is
    /// given where there is one.
    fn confirm(
        &mut self,
        problem: &RowProblem,
        (labels, near): (&[Label], bool),
        point: Point<'_>,
        enough: f64,
        diagonal: &[f64],
        scratch: &mut Scratch,
    ) -> Confirmed {
        let Point { v, lambda, w } = point;
        let imbalance = if near && self.go_on_from_near(problem, v, lambda) {
            let point = Point { v: &mut *v, lambda: &mut *lambda, w: &mut *w };
            self.refine(problem, (labels, None), point, enough, scratch)
        } else {
            let point = Point { v: &mut *v, lambda: &mut *lambda, w: &mut *w };
            self.evaluate(problem, labels, None, point, enough, scratch)
        };
        let sums = Sums::of(lambda, w, (&problem.lo, &problem.hi), diagonal);
        Confirmed {
            balanced: imbalance.is_some_and(|imbalance| imbalance <= momentum_residual::BALANCED),
            sums,
        }
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
    fn measure(
        &self,
        problem: &RowProblem,
        index_set: (&[Label], Option<&[f64]>),
        point: &mut Point<'_>,
        scratch: &mut Scratch,
    ) -> (f64, f64) {
        MixedSystem::measure(self, problem, index_set, point, scratch)
    }
    fn go_on_from_near(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64]) -> bool {
        self.expand_from_focus(problem, v, lambda);
        true
    }
    fn focus_on(
        &mut self,
        problem: &RowProblem,
        rows: &[bool],
        (labels, diagonal): (&[Label], Option<&[f64]>),
    ) {
        MixedSystem::factor(self, problem, labels, diagonal);
        MixedSystem::focus_on(self, problem, rows);
        self.settle_the_rest(problem);
    }
    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>) {
        self.factor_in_focus(problem, near.labels, near.shift);
        self.solve_in_focus(problem, near.moving, near.r, near.lambda);
        self.velocity_in_focus(problem, near.jv);
    }
    fn chunks_near(&self, chunks: &mut Vec<Chunk>) {
        chunks.resize_with(1, Chunk::default);
        chunks[0].shape_by_rows(0..self.focus().rows().len() as u32);
    }
    fn newton_near(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        if factor {
            self.factor_in_focus(problem, &chunk.state, &chunk.shift);
        }
        chunk.x.fill(0.0);
        self.solve_in_focus(problem, false, &chunk.rhs, &mut chunk.x);
        self.velocity_in_focus(problem, &mut chunk.xv);
        after(chunk);
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
