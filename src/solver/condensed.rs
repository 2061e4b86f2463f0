//! The problem of the rows that have bounds, with all others eliminated.
//!
//! Joints are free in every index set: of a net that carries a truck, a hundred rows of contact are to be decided and four
//! thousand of joints follow. With K the mixed matrix of the bodies and the rows without bounds, v₀ their motion without the
//! others, and c the rows that have bounds, those obey a problem of the same form,
//!
//! ```text
//!     (J_c K⁻¹ J_cᵀ + C_c) λ_c + J_c v₀ + d_c = w_c ,      lo_c ≤ λ_c ≤ hi_c
//! ```
//!
//! whose matrix is never formed: its solves go through the fronts near these rows only (see [`Mixed::focus_on`]).
//! Pivoting and interior point work on it as on any other. Solves in focus are not refined; what comes out are labels, and
//! the whole problem confirms them.

use super::auto::{Engine, Settings};
use super::ipm::Chunk;
use super::mixed::Mixed;
use super::problem::{RowKind, RowProblem};
use super::system::{Pass, PivotSystem};
use super::{Label, SolveStats};
use crate::linalg::executor::Executor;

/// Rows below which there is nothing to save.
const WORTHWHILE: usize = 200;

/// Share of the bodies that rows with bounds may touch for it to be worthwhile: solves go through these and all that is above them
/// in the elimination tree. With contacts at every body (a twisted rope) it costs a fifth more than it saves.
const NEAR: f64 = 1.0 / 3.0;

/// What is kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Rows with bounds, by their number in the problem, and as a mask over it.
    rows: Vec<u32>,
    mask: Vec<bool>,
    lo: Vec<f64>,
    hi: Vec<f64>,
    b: Vec<f64>,
    diagonal: Vec<f64>,
    kind: Vec<RowKind>,
    /// Over all rows or bodies of the problem.
    labels: Vec<Label>,
    shift: Vec<f64>,
    r: Vec<f64>,
    lambda: Vec<f64>,
    w: Vec<f64>,
    v: Vec<f64>,
    start: Vec<Label>,
    touched: Vec<bool>,
    /// −d of its rows, and a right-hand side.
    minus_d: Vec<f64>,
    own: Vec<f64>,
    engine: Engine,
    factorizations: u32,
}

/// What the condensed problem needs of the whole one.
pub(super) struct Whole<'a, E> {
    pub problem: &'a RowProblem,
    pub mixed: &'a mut Mixed<E>,
    /// Upper bounds, nowhere below the lower ones.
    pub hi: &'a [f64],
    pub b: &'a [f64],
    pub diagonal: &'a [f64],
    /// What is missing to the least compliance; empty when nothing is.
    pub floor: &'a [f64],
}

/// Does eliminating the rows without bounds pay in a problem of so many rows and bodies, of which some are touched by rows with
/// bounds?
pub fn pays(rows: usize, bodies: usize, touched: usize) -> bool {
    rows >= WORTHWHILE && touched > 0 && touched as f64 <= NEAR * bodies as f64
}

fn has_bounds(lo: f64, hi: f64) -> bool {
    lo.is_finite() || hi.is_finite()
}

impl Memory {
    /// Does it pay in this problem?
    pub(super) fn pays(&mut self, problem: &RowProblem) -> bool {
        self.touched.clear();
        self.touched.resize(problem.bodies(), false);
        for block in &problem.blocks {
            let rows = block.row as usize..(block.row + block.rows) as usize;
            if rows.into_iter().any(|row| has_bounds(problem.lo[row], problem.hi[row])) {
                problem.bodies_of(block).iter().for_each(|&body| self.touched[body as usize] = true);
            }
        }
        let touched = self.touched.iter().filter(|t| **t).count();
        pays(problem.rows(), problem.bodies(), touched)
    }

    /// Decides the rows with bounds from `labels` on, by pivoting or interior point, and writes what it found there. `failed`:
    /// did pivoting alone not arrive the last time?
    pub(super) fn decide<E: Executor>(
        &mut self,
        whole: Whole<'_, E>,
        labels: &mut [Label],
        failed: bool,
        settings: &Settings,
    ) -> SolveStats {
        let (mut engine, mut start) = (std::mem::take(&mut self.engine), std::mem::take(&mut self.start));
        let mut system = Condensed::new(whole, self, labels);
        start.clear();
        start.extend(system.memory.rows.iter().map(|&row| labels[row as usize]));
        // A pivot has one substitution, an iteration of the interior point three, and few rows seldom go round in circles. So
        // violators may double on the way, unless that led nowhere the last time.
        let pivoting = match failed {
            true => Settings { warm_pivots: 5, ..*settings },
            false => Settings { warm_pivots: 15, warm_progress: 2.0, ..*settings },
        };
        engine.pivoting_failed = false;
        let mut stats = engine.auto(&mut system, &start, &pivoting);
        for (&row, label) in system.memory.rows.iter().zip(&engine.best.labels) {
            labels[row as usize] = *label;
        }
        stats.factorizations = self.factorizations;
        (self.engine, self.start) = (engine, start);
        stats
    }
}

struct Condensed<'a, E> {
    whole: Whole<'a, E>,
    memory: &'a mut Memory,
}

impl<'a, E: Executor> Condensed<'a, E> {
    fn new(whole: Whole<'a, E>, memory: &'a mut Memory, labels: &[Label]) -> Self {
        let problem = whole.problem;
        let n = problem.rows();
        memory.mask.clear();
        memory.mask.extend(problem.lo.iter().zip(&problem.hi).map(|(&lo, &hi)| has_bounds(lo, hi)));
        memory.rows.clear();
        memory.rows.extend((0..n as u32).filter(|&row| memory.mask[row as usize]));
        let rows = memory.rows.iter().map(|&row| row as usize);
        for (to, from) in [
            (&mut memory.b, whole.b),
            (&mut memory.lo, &problem.lo[..]),
            (&mut memory.hi, whole.hi),
            (&mut memory.diagonal, whole.diagonal),
        ] {
            to.clear();
            to.extend(rows.clone().map(|row| from[row]));
        }
        memory.kind.clear();
        memory.kind.extend(rows.clone().map(|row| problem.kind[row]));
        memory.minus_d.clear();
        memory.minus_d.extend(rows.map(|row| -problem.d[row]));
        for buffer in [&mut memory.r, &mut memory.lambda, &mut memory.w] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        memory.v.clear();
        memory.v.resize(6 * problem.bodies(), 0.0);
        memory.shift.clear();
        memory.shift.extend_from_slice(whole.floor);
        memory.labels.clear();
        memory.labels.extend_from_slice(labels);
        memory.factorizations = 1;
        let mut system = Condensed { whole, memory };
        let Whole { mixed, problem, .. } = &mut system.whole;
        let floor = (!system.memory.shift.is_empty()).then_some(&system.memory.shift[..]);
        mixed.factor(problem, &system.memory.labels, floor);
        mixed.focus_on(problem, &system.memory.mask);
        mixed.settle_the_rest(problem);
        system
    }

    /// Factors for labels and D of the rows with bounds.
    fn factor_for(&mut self, label: impl Fn(usize) -> Label, shift: Option<&[f64]>) {
        let memory = &mut *self.memory;
        let floor = self.whole.floor;
        memory.shift.resize(memory.mask.len(), 0.0);
        for (k, &row) in memory.rows.iter().enumerate() {
            let row = row as usize;
            memory.labels[row] = label(k);
            memory.shift[row] = shift.map_or(0.0, |d| d[k]) + floor.get(row).copied().unwrap_or(0.0);
        }
        memory.factorizations += 1;
        self.whole.mixed.factor_in_focus(self.whole.problem, &memory.labels, Some(&memory.shift));
    }

    /// Solves with r on the free rows; λ of tight rows is what `lambda` says, that of free ones is written there.
    fn solve_for(&mut self, moving: bool, r: &[f64], lambda: &mut [f64]) {
        let memory = &mut *self.memory;
        for (k, &row) in memory.rows.iter().enumerate() {
            memory.r[row as usize] = r[k];
            memory.lambda[row as usize] = lambda[k];
        }
        let (v, full) = (&mut memory.v, &mut memory.lambda);
        self.whole.mixed.solve_in_focus(self.whole.problem, moving, &memory.r, v, full);
        for (lambda, &row) in lambda.iter_mut().zip(&memory.rows) {
            *lambda = memory.lambda[row as usize];
        }
    }

    /// w = J v + C λ + d with the velocities of the last solve.
    fn read_slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        let memory = &mut *self.memory;
        for (lambda, &row) in lambda.iter().zip(&memory.rows) {
            memory.lambda[row as usize] = *lambda;
        }
        self.whole.mixed.slack_in_focus(self.whole.problem, &memory.v, &memory.lambda, &mut memory.w);
        for (w, &row) in w.iter_mut().zip(&memory.rows) {
            *w = memory.w[row as usize];
        }
    }

    /// The motion under given impulses of the rows with bounds.
    fn move_under(&mut self, moving: bool, lambda: &[f64], w: &mut [f64]) {
        self.factor_for(|_| Label::Lower, None);
        // No row is free: r is not read, and λ stays what it is.
        w.copy_from_slice(lambda);
        self.solve_for(moving, lambda, w);
        self.read_slack(lambda, w);
    }
}

impl<E: Executor> PivotSystem for Condensed<'_, E> {
    fn rows(&self) -> usize {
        self.memory.rows.len()
    }
    /// The slacks without any impulse, joints' included: the scale by which the whole is judged. Slacks are not formed from it.
    fn b(&self) -> &[f64] {
        &self.memory.b
    }
    fn lo(&self) -> &[f64] {
        &self.memory.lo
    }
    fn hi(&self) -> &[f64] {
        &self.memory.hi
    }
    fn kind(&self) -> &[RowKind] {
        &self.memory.kind
    }
    fn diagonal(&self) -> &[f64] {
        &self.memory.diagonal
    }
    fn factorizations(&self) -> u32 {
        self.memory.factorizations
    }

    fn slack_is_costly(&self) -> bool {
        true
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        self.move_under(false, x, y);
        for (y, &row) in y.iter_mut().zip(&self.memory.rows) {
            *y -= self.whole.problem.d[row as usize];
        }
    }

    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.move_under(true, lambda, w);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        self.factor_for(|k| if free[k] { Label::Free } else { Label::Lower }, shift);
    }

    fn solve(&mut self, x: &mut [f64]) {
        let mut r = std::mem::take(&mut self.memory.own);
        r.clear();
        r.extend_from_slice(x);
        for (x, &row) in x.iter_mut().zip(&self.memory.rows) {
            if self.memory.labels[row as usize] != Label::Free {
                *x = 0.0;
            }
        }
        self.solve_for(false, &r, x);
        self.memory.own = r;
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        self.factor_for(|k| labels[k], None);
        for (k, lambda) in lambda.iter_mut().enumerate() {
            *lambda = match labels[k] {
                Label::Free => 0.0,
                Label::Lower => self.memory.lo[k],
                Label::Upper => self.memory.hi[k],
            };
        }
        let r = std::mem::take(&mut self.memory.minus_d);
        self.solve_for(true, &r, lambda);
        self.memory.minus_d = r;
        self.read_slack(lambda, w);
    }

    /// Nobody sweeps here: Gauss–Seidel works on the rows themselves.
    fn sweep(&mut self, _lambda: &mut [f64]) {}

    fn chunks(&mut self, chunks: &mut Vec<Chunk>) {
        chunks.resize_with(1, Chunk::default);
        chunks[0].shape(0..self.rows() as u32, 0..self.whole.problem.bodies() as u32);
    }

    fn newton(
        &mut self,
        chunks: &mut [Chunk],
        factor: bool,
        _refined: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        if factor {
            self.factor_for(|k| chunk.state[k], Some(&chunk.shift));
        }
        chunk.x.fill(0.0);
        self.solve_for(false, &chunk.rhs, &mut chunk.x);
        chunk.xv.copy_from_slice(&self.memory.v);
        after(chunk);
    }

    fn renew_slack(&mut self, chunks: &mut [Chunk], before: &Pass<'_>, after: &Pass<'_>) {
        let Some(chunk) = chunks.first_mut() else { return };
        before(chunk);
        self.memory.v.copy_from_slice(&chunk.v);
        self.read_slack(&chunk.lambda, &mut chunk.w);
        after(chunk);
    }

    fn recompute(&mut self, chunks: &mut [Chunk], after: &Pass<'_>) {
        let Some(chunk) = chunks.first_mut() else { return };
        self.move_under(true, &chunk.lambda, &mut chunk.w);
        chunk.v.copy_from_slice(&self.memory.v);
        after(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Method, RowSolver, Solution, generate};

    /// Solved with the rows without bounds eliminated, and by the interior point on all rows.
    fn both_ways(problem: &RowProblem) -> (Solution, Solution) {
        let (mut condensed, mut whole) = (Solution::default(), Solution::default());
        let mut solver = RowSolver::new(Method::Auto);
        let stats = solver.solve(problem, &mut condensed);
        assert!(solver.condenses(), "this problem is meant to be condensed");
        assert!(stats.converged && stats.residual_relative <= 1e-9, "{stats:?}");
        assert!(RowSolver::new(Method::Ipm).solve(problem, &mut whole).converged);
        (condensed, whole)
    }

    #[test]
    fn eliminating_joints_first_gives_the_motion_of_the_whole() {
        for compliance in [1e-5, 1e-8] {
            for (cables, links) in [(4, 12), (6, 20), (12, 50)] {
                let problem = generate::net(cables, links, 8000.0, compliance);
                let (a, b) = both_ways(&problem);
                let size = b.v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let apart = a.v.iter().zip(&b.v).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
                // Both are exact points of index sets that solve the problem to 1e-9; v is unique.
                assert!(apart <= 1e-8 * size, "{cables} × {links}, C = {compliance}: {apart:e} of {size}");
            }
        }
    }

    #[test]
    fn it_pays_where_few_bodies_are_touched() {
        assert!(pays(4000, 600, 30));
        assert!(!pays(4000, 600, 400), "contacts all over");
        assert!(!pays(4000, 600, 0), "nothing to decide");
        assert!(!pays(60, 20, 2), "too small");
    }
}
