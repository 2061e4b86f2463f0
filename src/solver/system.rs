//! What the solvers need to know of a problem, whichever form it is in.
//!
//! Block pivoting and interior point are written once over [`PivotSystem`]; the engine's row form
//! (mixed factorization) and the matrix form of files (sparse Cholesky) both answer it.
//! Symbols: A, b, lo, hi as in 000 eq. (8); F the free rows; D a positive diagonal added to A.

use super::Label;
use super::interior_point::Chunk;
use super::problem::RowKind;
use super::residual;

/// Work on one chunk.
pub type Pass<'a> = dyn Fn(&mut Chunk) + Sync + 'a;

/// A box-constrained problem A λ + b = w with a linear solver on any subset of its rows.
pub trait PivotSystem {
    /// Number of rows.
    fn rows(&self) -> usize {
        self.b().len()
    }
    /// b.
    fn b(&self) -> &[f64];
    /// max(1, ‖b‖₂), the yardstick of relative residuals.
    fn scale(&self) -> f64 {
        residual::scale(self.b())
    }
    /// Lower bounds.
    fn lo(&self) -> &[f64];
    /// Upper bounds, nowhere below the lower ones.
    fn hi(&self) -> &[f64];
    /// What each row stands for; empty where it is not known.
    fn kind(&self) -> &[RowKind] {
        &[]
    }
    /// The diagonal of A.
    fn diagonal(&self) -> &[f64];
    /// y = A x.
    fn multiply(&mut self, x: &[f64], y: &mut [f64]);
    /// Factors (A + D)_FF for the rows marked free; `shift` is D (none = 0).
    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>);
    /// Solves (A + D)_FF x_F = r_F with the last factor, refined; `x` holds r on entry and x on
    /// return, zero on the rows that are not free.
    fn solve(&mut self, x: &mut [f64]);
    /// [`solve`](Self::solve) without refinement, where that is cheaper.
    fn solve_roughly(&mut self, x: &mut [f64]) {
        self.solve(x);
    }
    /// The point of an index set: tight rows at their bounds, free rows with w = 0; λ and w out.
    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]);
    /// Does a slack cost as much as an index set? Then it is asked for only where it decides something.
    fn slack_is_costly(&self) -> bool {
        false
    }
    /// One Gauss–Seidel sweep: every row in turn to clamp(λ_i − w_i / A_ii).
    fn sweep(&mut self, lambda: &mut [f64]);
    /// How the rows fall into chunks for an interior point; every row is in one of them.
    fn chunks(&mut self, chunks: &mut Vec<Chunk>) {
        chunks.resize_with(1, Chunk::default);
        chunks[0].shape(0..self.rows() as u32, std::iter::empty());
    }
    /// Runs `before` on every chunk, factors A + D of the rows that take part (if asked), solves (A + D) x = rhs, roughly
    /// or refined, and runs `after`.
    fn newton(
        &mut self,
        chunks: &mut [Chunk],
        factor: bool,
        refined: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        if factor {
            self.factor(&chunk.active, Some(&chunk.shift));
        }
        chunk.x.copy_from_slice(&chunk.rhs);
        if refined {
            self.solve(&mut chunk.x)
        } else {
            self.solve_roughly(&mut chunk.x)
        }
        after(chunk);
    }
    /// Runs `before` on every chunk, finds w of its λ (by its velocities where they are followed), and runs `after`.
    fn renew_slack(&mut self, chunks: &mut [Chunk], before: &Pass<'_>, after: &Pass<'_>) {
        chunks.iter_mut().for_each(before);
        self.recompute(chunks, after);
    }
    /// Finds velocities and w of λ anew, and runs `after` on every chunk.
    fn recompute(&mut self, chunks: &mut [Chunk], after: &Pass<'_>) {
        let Some(chunk) = chunks.first_mut() else { return };
        self.slack(&chunk.lambda, &mut chunk.w);
        after(chunk);
    }
    /// Numeric factorizations so far.
    fn factorizations(&self) -> u32;

    /// [`evaluate`](Self::evaluate) with `shift` added to the diagonal of the free rows; w stays that of the
    /// problem itself.
    fn evaluate_softened(&mut self, labels: &[Label], shift: &[f64], lambda: &mut [f64], w: &mut [f64]) {
        let free: Vec<bool> = labels.iter().map(|&l| l == Label::Free).collect();
        self.factor(&free, Some(shift));
        for i in 0..labels.len() {
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.lo()[i],
                Label::Upper => self.hi()[i],
            };
        }
        self.slack(lambda, w);
        w.iter_mut().for_each(|w| *w = -*w);
        self.solve(w);
        for i in 0..labels.len() {
            if free[i] {
                lambda[i] = w[i];
            }
        }
        self.slack(lambda, w);
    }

    /// w of a point for the residual, by the most accurate way this form has; w = A λ + b if no better.
    fn honest_slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.slack(lambda, w);
    }

    /// w = A λ + b.
    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.multiply(lambda, w);
        for (w, b) in w.iter_mut().zip(self.b()) {
            *w += b;
        }
    }
}
