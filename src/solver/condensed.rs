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
//! whose matrix is never formed: its solves go through the fronts near these rows only (see [`LinearSystem::focus_on`]), of one
//! factorization or of every partition's.
//! Pivoting and interior point work on it as on any other. Solves in focus are not refined; what comes out are labels, and
//! the whole problem confirms them.

use super::auto::{Engine, Settings};
use super::interior_point::Chunk;
use super::linear::{LinearSystem, Near};
use super::problem::{RowKind, RowProblem};
use super::system::{Pass, PivotSystem};
use super::{Label, SolveStats};
use crate::linalg::kernels::with_avx2;

/// Rows below which there is nothing to save.
const WORTHWHILE: usize = 200;

/// So many rows with bounds are few: pivoting decides them in a few substitutions.
const FEW_ROWS: usize = 500;

/// Share of the bodies that few rows may touch for it to be worthwhile: solves go through these and all that is above them in the
/// elimination tree. A chain wrapped around a rod (37 of 101 links touch) is solved in half the time.
const NEAR: f64 = 0.45;

/// Share of the bodies that more rows may touch. Of many rows pivoting seldom finds the sides, and with contacts at a third of the bodies
/// (cables that wind around each other) a solve took half as long again.
const NEAR_OF_MANY: f64 = 0.2;

/// What is kept from one solve to the next. Where nothing else is said there is one entry a row with bounds.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Rows with bounds, and the bodies they touch.
    marks: Marks,
    lo: Vec<f64>,
    hi: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    d: Vec<f64>,
    diagonal: Vec<f64>,
    kind: Vec<RowKind>,
    /// What is missing to the least compliance; zero where nothing is.
    floor: Vec<f64>,
    /// Labels and D of the last factorization.
    labels: Vec<Label>,
    shift: Vec<f64>,
    r: Vec<f64>,
    lambda: Vec<f64>,
    jv: Vec<f64>,
    start: Vec<Label>,
    engine: Engine,
    factorizations: u32,
    /// Was the last solve the point of an index set, that of `labels`?
    at_point: bool,
}

/// What the condensed problem needs of the whole one.
pub(super) struct Whole<'a, L> {
    pub problem: &'a RowProblem,
    pub linear: &'a mut L,
    /// Upper bounds, nowhere below the lower ones.
    pub hi: &'a [f64],
    /// The diagonal of A and b, where they are not with the partitions.
    pub formed: Option<(&'a [f64], &'a [f64])>,
    /// What is missing to the least compliance; empty when nothing is.
    pub floor: &'a [f64],
}

/// Rows with bounds, by their number in the problem and as a mask over all rows, and a mark a body that they touch.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    rows: Vec<u32>,
    mask: Vec<bool>,
    touched: Vec<bool>,
}

impl Marks {
    /// Those of a problem. Returns the number of bodies touched.
    fn find(&mut self, problem: &RowProblem) -> usize {
        let Self { rows, mask, touched } = self;
        mask.resize(problem.rows(), false);
        with_avx2(
            #[inline(always)]
            || {
                let bounds = problem.lo.iter().zip(&problem.hi);
                mask.iter_mut().zip(bounds).for_each(|(mark, (&lo, &hi))| *mark = has_bounds(lo, hi));
            },
        );
        rows.clear();
        // Most rows are joints: eight at once are passed over.
        for (first, eight) in (0..).step_by(8).zip(mask.chunks(8)) {
            if eight.contains(&true) {
                rows.extend((first..).zip(eight).filter(|(_, mark)| **mark).map(|(row, _)| row));
            }
        }
        touched.clear();
        touched.resize(problem.bodies(), false);
        let (mut count, mut rest) = (0, &rows[..]);
        for block in &problem.blocks {
            let Some(&row) = rest.first() else { break };
            if row >= block.row + block.rows {
                continue;
            }
            for &body in problem.bodies_of(block) {
                count += usize::from(!std::mem::replace(&mut touched[body as usize], true));
            }
            while rest.first().is_some_and(|&row| row < block.row + block.rows) {
                rest = &rest[1..];
            }
        }
        count
    }
}

/// How much of a problem has to be decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Bodies and rows.
    pub bodies: usize,
    /// See `bodies`.
    pub rows: usize,
    /// Rows with bounds, and bodies that they touch.
    pub bounded: usize,
    /// See `bounded`.
    pub touched: usize,
}

impl Outline {
    /// Of a problem; `marks` keeps which rows and bodies it counts.
    pub fn of(problem: &RowProblem, marks: &mut Marks) -> Self {
        let touched = marks.find(problem);
        Outline { bodies: problem.bodies(), rows: problem.rows(), bounded: marks.rows.len(), touched }
    }

    /// Does eliminating the rows without bounds pay?
    pub fn pays(&self) -> bool {
        let near = if self.bounded <= FEW_ROWS { NEAR } else { NEAR_OF_MANY };
        self.rows >= WORTHWHILE && self.touched > 0 && self.touched as f64 <= near * self.bodies as f64
    }

    /// Does it pay where the problem is cut or not? Many rows the interior point decides on all threads, and may be asked for a rough
    /// answer first.
    pub fn pays_in(&self, parts: bool) -> bool {
        self.pays() && (!parts || self.bounded <= FEW_ROWS)
    }
}

#[inline(always)]
fn has_bounds(lo: f64, hi: f64) -> bool {
    lo.is_finite() | hi.is_finite()
}

impl Memory {
    /// How much of a problem has to be decided. What is decided next is that.
    pub(super) fn outline(&mut self, problem: &RowProblem) -> Outline {
        Outline::of(problem, &mut self.marks)
    }

    /// Decides the rows with bounds from `labels` on, by pivoting or interior point, and writes what it found there. `failed`:
    /// did pivoting alone not arrive the last time? Says, too, whether the last solve near these rows was that of what it found.
    pub(super) fn decide<L: LinearSystem>(
        &mut self,
        whole: Whole<'_, L>,
        labels: &mut [Label],
        failed: bool,
        settings: &Settings,
    ) -> (SolveStats, bool) {
        let (mut engine, mut start) = (std::mem::take(&mut self.engine), std::mem::take(&mut self.start));
        let mut system = Condensed::new(whole, self, labels);
        start.clone_from(&system.memory.labels);
        // A pivot has one substitution, an iteration of the interior point three, and few rows seldom go round in circles. So
        // there may be four times as many violators on the way, unless that led nowhere the last time.
        let pivoting = match failed {
            true => Settings { warm_pivots: 5, ..*settings },
            false => Settings { warm_pivots: 15, warm_progress: 4.0, ..*settings },
        };
        engine.pivoting_failed = false;
        let mut stats = engine.auto(&mut system, &start, &pivoting);
        for (&row, label) in system.memory.marks.rows.iter().zip(&engine.best.labels) {
            labels[row as usize] = *label;
        }
        stats.factorizations = self.factorizations;
        let near = self.at_point && self.labels == engine.best.labels;
        (self.engine, self.start) = (engine, start);
        (stats, near)
    }

    /// Takes the rows with bounds of the problem that was marked last.
    fn take<L>(&mut self, whole: &Whole<'_, L>, labels: &[Label]) {
        let problem = whole.problem;
        let rows = self.marks.rows.iter().map(|&row| row as usize);
        for (to, from) in [
            (&mut self.c, &problem.compliance[..]),
            (&mut self.d, &problem.d[..]),
            (&mut self.lo, &problem.lo[..]),
            (&mut self.hi, whole.hi),
        ] {
            to.clear();
            to.extend(rows.clone().map(|row| from[row]));
        }
        for buffer in [&mut self.diagonal, &mut self.b] {
            buffer.resize(rows.len(), 0.0);
        }
        if let Some((diagonal, b)) = whole.formed {
            for (k, row) in rows.clone().enumerate() {
                (self.diagonal[k], self.b[k]) = (diagonal[row], b[row]);
            }
        }
        self.floor.clear();
        self.floor.extend(rows.clone().map(|row| whole.floor.get(row).copied().unwrap_or(0.0)));
        self.kind.clear();
        self.kind.extend(rows.clone().map(|row| problem.kind[row]));
        self.labels.clear();
        self.labels.extend(rows.map(|row| labels[row]));
        for buffer in [&mut self.shift, &mut self.r, &mut self.lambda, &mut self.jv] {
            buffer.resize(self.marks.rows.len(), 0.0);
        }
    }
}

struct Condensed<'a, L> {
    whole: Whole<'a, L>,
    memory: &'a mut Memory,
}

impl<'a, L: LinearSystem> Condensed<'a, L> {
    fn new(whole: Whole<'a, L>, memory: &'a mut Memory, labels: &[Label]) -> Self {
        memory.take(&whole, labels);
        memory.factorizations = 1;
        memory.at_point = false;
        let floor = (!whole.floor.is_empty()).then_some(whole.floor);
        let mut system = Condensed { whole, memory };
        let Condensed { whole, memory } = &mut system;
        whole.linear.focus_on(whole.problem, &memory.marks.mask, (labels, floor));
        if whole.formed.is_none() {
            whole.linear.report_formed_near((&mut memory.diagonal, &mut memory.b));
        }
        system
    }

    /// Keeps labels and D for the next solve.
    fn factor_for(&mut self, label: impl Fn(usize) -> Label, shift: Option<&[f64]>) {
        let Memory { labels, shift: to, floor, factorizations, .. } = &mut *self.memory;
        for (k, floor) in floor.iter().enumerate() {
            labels[k] = label(k);
            to[k] = shift.map_or(0.0, |d| d[k]) + floor;
        }
        *factorizations += 1;
    }

    /// Solves with the r that memory holds on the free rows; λ of tight rows is what `lambda` says, that of free ones is written there.
    /// J v stays in memory.
    fn solve_for(&mut self, moving: bool, lambda: &mut [f64]) {
        self.memory.at_point = false;
        let Memory { labels, shift, r, jv, .. } = &mut *self.memory;
        let near = Near { labels, shift, moving, r, lambda, jv };
        self.whole.linear.solve_near(self.whole.problem, near);
    }

    /// w = J v + C λ + d with the velocities of the last solve.
    fn read_slack(&self, lambda: &[f64], w: &mut [f64]) {
        let Memory { jv, c, d, .. } = &*self.memory;
        for (k, w) in w.iter_mut().enumerate() {
            *w = jv[k] + (c[k] * lambda[k] + d[k]);
        }
    }

    /// Finds J v under given impulses of the rows with bounds.
    fn move_under(&mut self, moving: bool, lambda: &[f64]) {
        // No row is free: r is not read, and λ stays what it is.
        self.factor_for(|_| Label::Lower, None);
        let mut given = std::mem::take(&mut self.memory.lambda);
        given.copy_from_slice(lambda);
        self.solve_for(moving, &mut given);
        self.memory.lambda = given;
    }
}

impl<L: LinearSystem> PivotSystem for Condensed<'_, L> {
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
        self.move_under(false, x);
        let Memory { jv, c, .. } = &*self.memory;
        for (k, y) in y.iter_mut().enumerate() {
            *y = jv[k] + c[k] * x[k];
        }
    }

    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.move_under(true, lambda);
        self.read_slack(lambda, w);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        self.factor_for(|k| if free[k] { Label::Free } else { Label::Lower }, shift);
    }

    fn solve(&mut self, x: &mut [f64]) {
        let Memory { r, labels, .. } = &mut *self.memory;
        r.copy_from_slice(x);
        for (x, label) in x.iter_mut().zip(labels.iter()) {
            if *label != Label::Free {
                *x = 0.0;
            }
        }
        self.solve_for(false, x);
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        self.factor_for(|k| labels[k], None);
        let Memory { lo, hi, r, d, .. } = &mut *self.memory;
        for (k, lambda) in lambda.iter_mut().enumerate() {
            r[k] = -d[k];
            *lambda = match labels[k] {
                Label::Free => 0.0,
                Label::Lower => lo[k],
                Label::Upper => hi[k],
            };
        }
        self.solve_for(true, lambda);
        self.memory.at_point = true;
        self.read_slack(lambda, w);
    }

    /// Nobody sweeps here: Gauss–Seidel works on the rows themselves.
    fn sweep(&mut self, _lambda: &mut [f64]) {}

    fn chunks(&mut self, chunks: &mut Vec<Chunk>) {
        self.whole.linear.chunks_near(chunks);
        if !self.whole.floor.is_empty() {
            for chunk in chunks {
                chunk.floor.extend(chunk.rows.iter().map(|&row| self.memory.floor[row as usize]));
            }
        }
    }

    fn newton(
        &mut self,
        chunks: &mut [Chunk],
        factor: bool,
        _refined: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        self.memory.factorizations += u32::from(factor);
        self.memory.at_point = false;
        self.whole.linear.newton_near(self.whole.problem, chunks, factor, before, after);
    }

    fn renew_slack(&mut self, chunks: &mut [Chunk], before: &Pass<'_>, after: &Pass<'_>) {
        let Memory { c, d, .. } = &*self.memory;
        self.whole.linear.for_each(chunks, |_, chunk| {
            before(chunk);
            let Chunk { rows, v, lambda, w, .. } = &mut *chunk;
            for (k, &row) in rows.iter().enumerate() {
                w[k] = v[k] + (c[row as usize] * lambda[k] + d[row as usize]);
            }
            after(chunk);
        });
    }

    fn recompute(&mut self, chunks: &mut [Chunk], after: &Pass<'_>) {
        let mut lambda = std::mem::take(&mut self.memory.r);
        for chunk in chunks.iter() {
            for (&row, l) in chunk.rows.iter().zip(&chunk.lambda) {
                lambda[row as usize] = *l;
            }
        }
        // r is not read where no row is free.
        self.memory.r.resize(lambda.len(), 0.0);
        self.move_under(true, &lambda);
        let Memory { jv, c, d, .. } = &*self.memory;
        self.whole.linear.for_each(chunks, |_, chunk| {
            let Chunk { rows, v, lambda, w, .. } = &mut *chunk;
            for (k, &row) in rows.iter().enumerate() {
                let row = row as usize;
                v[k] = jv[row];
                w[k] = jv[row] + (c[row] * lambda[k] + d[row]);
            }
            after(chunk);
        });
        self.memory.r = lambda;
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
        let net = Outline { bodies: 600, rows: 4000, bounded: 100, touched: 30 };
        assert!(net.pays());
        assert!(!Outline { touched: 400, ..net }.pays(), "contacts all over");
        assert!(Outline { bodies: 101, rows: 513, bounded: 111, touched: 37 }.pays(), "a chain around a rod");
        assert!(!Outline { bounded: 1271, touched: 150, ..net }.pays(), "cables around each other");
        assert!(!Outline { touched: 0, ..net }.pays(), "nothing to decide");
        assert!(!Outline { bodies: 20, rows: 60, bounded: 6, touched: 2 }.pays(), "too small");
    }
}
