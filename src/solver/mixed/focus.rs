//! Solves that stay near some of the rows.
//!
//! When only some rows change their labels, D or right-hand side, the others need not be gone through again: what is
//! eliminated below the fronts of these rows keeps its factor, and its share of the right-hand side arrives at them as it did
//! before. So the *rest* of the tree is gone through once, and every further solve only in the *branch*: the fronts of the
//! rows in focus and of their bodies, with all that is above them. On a net of 600 links under a truck some
//! thirty of 630 fronts change in a pivot.

use super::Mixed;
use super::plan::Plan;
use super::solve::{add_scaled, for_each_six};
use crate::linalg::Aligned;
use crate::linalg::executor::Executor;
use crate::linalg::kernels::{self, Group, Tree};
use crate::linalg::multifrontal::InParts;
use crate::linalg::symbolic::NONE;
use crate::solver::{Label, RowBlock, RowProblem};
use std::ops::Range;

/// The rows in focus and what solves reach of them.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// Which rows.
    mask: Vec<bool>,
    /// The same, by number.
    list: Vec<u32>,
    /// Blocks with such rows.
    blocks: Vec<RowBlock>,
    /// Folded groups with such rows.
    groups: Vec<Group>,
    /// Multiplier rows in focus with their places among the local vectors.
    multipliers: Vec<(u32, u32)>,
    /// Bodies eliminated in the branch.
    bodies: Vec<u32>,
    /// The branch's local vectors.
    locals: Vec<Range<usize>>,
    branch: Tree,
    rest: InParts,
    /// Right-hand side of the step without the rows in focus, after the rest was gone through.
    still: Aligned,
    local: Aligned,
    rows: Vec<f64>,
}

impl Focus {
    /// Is it on other rows, or on none yet?
    pub(super) fn differs(&self, rows: &[bool]) -> bool {
        self.mask != rows
    }

    /// Forgets the rows: their places have changed.
    pub(super) fn clear(&mut self) {
        self.mask.clear();
    }
}

impl<E: Executor> Mixed<E> {
    /// Sets the focus on rows of the problem loaded last. Every index set from now on leaves the others free.
    ///
    /// # Panics
    /// If no problem was loaded.
    pub fn focus_on(&mut self, problem: &RowProblem, rows: &[bool]) {
        if !self.focus.differs(rows) {
            return;
        }
        let Some(plan) = self.plan.as_deref() else {
            panic!("MixedSystem::focus_on before MixedSystem::load: load the problem first");
        };
        let symbolic = &self.factor.symbolic;
        let any = |row: u32, n: u32| rows[row as usize..(row + n) as usize].contains(&true);
        let focus = &mut self.focus;
        focus.mask.clear();
        focus.mask.extend_from_slice(rows);
        focus.list.clear();
        focus.list.extend((0..rows.len() as u32).filter(|&row| rows[row as usize]));
        focus.blocks.clear();
        focus.blocks.extend(problem.blocks.iter().filter(|b| any(b.row, b.rows)));
        focus.groups.clear();
        focus.groups.extend(plan.sides.groups().iter().filter(|g| any(g.row, g.rows)));
        focus.multipliers.clear();
        let at = plan.row_at.iter().enumerate().filter(|&(row, &at)| rows[row] && at != NONE);
        focus.multipliers.extend(at.map(|(row, &at)| (row as u32, at)));

        let mut branch = vec![false; symbolic.fronts.len()];
        let fronts = focus.list.iter().map(|&row| plan.row_front[row as usize]);
        for front in fronts.filter(|&front| front != NONE) {
            branch[front as usize] = true;
        }
        for body in focus.blocks.iter().flat_map(|block| problem.bodies_of(block)) {
            branch[symbolic.node_front[*body as usize] as usize] = true;
        }
        for f in 0..branch.len() {
            let parent = symbolic.fronts[f].parent;
            if branch[f] && parent != NONE {
                branch[parent as usize] = true;
            }
        }
        focus.bodies.clear();
        let bodies = 0..problem.bodies() as u32;
        focus.bodies.extend(bodies.filter(|&b| branch[symbolic.node_front[b as usize] as usize]));
        focus.locals.clear();
        let fronts = symbolic.fronts.iter().zip(&branch).filter(|(_, wanted)| **wanted);
        focus.locals.extend(fronts.map(|(front, _)| front.local..front.local + front.shape.ld()));
        focus.branch = Tree::part(symbolic, |f| branch[f]);
        focus.rest = InParts::new(symbolic, |f| !branch[f]);
        focus.rows.resize(plan.most_rows, 0.0);
        for local in [&mut focus.still, &mut focus.local] {
            local.reset(symbolic.locals);
        }
    }

    /// Goes through the rest of the tree with the momenta and the d of the rows that are not in focus. The problem must have
    /// been factored since it was loaded.
    pub fn settle_the_rest(&mut self, problem: &RowProblem) {
        let mut work = std::mem::take(&mut self.work);
        let mut focus = std::mem::take(&mut self.focus);
        if let Some(plan) = self.plan.as_deref() {
            for (six, p) in work.pivot_v.chunks_exact_mut(6).zip(&problem.momentum) {
                six.copy_from_slice(p);
            }
            for ((r, d), focused) in work.pivot_lambda.iter_mut().zip(&problem.d).zip(&focus.mask) {
                *r = if *focused { 0.0 } else { -d };
            }
            self.fill(plan, problem, &work.pivot_v, &work.pivot_lambda, &mut focus.still);
            self.factor.forward_in_parts(&self.executor, &focus.rest, &mut focus.still);
        }
        (self.work, self.focus) = (work, focus);
    }

    /// [`factor`](Self::factor) where nothing but rows in focus has changed since; the others' labels and D are not read.
    pub fn factor_in_focus(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        let Some(plan) = self.plan.as_deref() else { return };
        let mut tight = false;
        for row in self.focus.list.iter().map(|&row| row as usize) {
            let free = labels[row] == Label::Free;
            tight |= !free;
            let c = problem.compliance[row] + diagonal.map_or(0.0, |d| d[row]);
            let c = if free { c } else { f64::INFINITY };
            if c != self.regular[row] {
                self.regular[row] = c;
                self.weight[row] = 1.0 / c;
                if plan.row_front[row] != NONE {
                    self.factor.touch(plan.row_front[row]);
                }
            }
        }
        self.any_tight = tight;
        self.factor_touched(problem);
    }

    /// Solves in the branch: of tight rows in focus λ is read, of free ones r_λ; v is written for the branch's bodies, λ for
    /// the free rows in focus. With `moving` the momenta and the other rows' d are on the right-hand side, else nothing is.
    pub fn solve_in_focus(
        &mut self,
        problem: &RowProblem,
        moving: bool,
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
    ) {
        let mut x = std::mem::take(&mut self.focus.local);
        let mut rows = std::mem::take(&mut self.focus.rows);
        if let Some(plan) = self.plan.as_deref() {
            let from = moving.then_some(&self.focus.still[..]);
            self.fill_branch(plan, problem, from, (r_lambda, lambda), (&mut x, &mut rows));
            self.factor.forward_in(&self.focus.branch, &mut x);
            self.factor.backward_in(&self.focus.branch, &mut x);
            self.read_branch(plan, problem, r_lambda, (v, lambda), (&x, &mut rows));
        }
        (self.focus.local, self.focus.rows) = (x, rows);
    }

    fn fill_branch(
        &self,
        plan: &Plan,
        problem: &RowProblem,
        from: Option<&[f64]>,
        (r_lambda, lambda): (&[f64], &[f64]),
        (x, rows): (&mut [f64], &mut [f64]),
    ) {
        let focus = &self.focus;
        for range in &focus.locals {
            match from {
                Some(still) => x[range.clone()].copy_from_slice(&still[range.clone()]),
                None => x[range.clone()].fill(0.0),
            }
        }
        for block in &focus.blocks {
            let width = 6 * block.bodies as usize;
            for row in (block.row..block.row + block.rows).map(|row| row as usize) {
                if focus.mask[row] && !self.is_free(row) && lambda[row] != 0.0 {
                    let at = block.entry as usize + (row - block.row as usize) * width;
                    let (j, bodies) = (&problem.jacobian[at..at + width], problem.bodies_of(block));
                    add_scaled(j, bodies, lambda[row], x, |body| plan.body_at[body as usize] as usize);
                }
            }
        }
        for &(row, at) in &focus.multipliers {
            x[at as usize] = if self.is_free(row as usize) { r_lambda[row as usize] } else { 0.0 };
        }
        for group in &focus.groups {
            let scaled = &mut rows[..group.rows as usize];
            for (y, row) in scaled.iter_mut().zip(group.row as usize..) {
                let free = focus.mask[row] && self.is_free(row);
                *y = if free { r_lambda[row] * self.weight[row] } else { 0.0 };
            }
            for_each_six(problem, group, |body, six| {
                let at = plan.body_at[body] as usize;
                kernels::add_six_transposed(self.factor.isa(), six, scaled, &mut x[at..at + 6]);
            });
        }
    }

    fn read_branch(
        &self,
        plan: &Plan,
        problem: &RowProblem,
        r_lambda: &[f64],
        (v, lambda): (&mut [f64], &mut [f64]),
        (x, rows): (&[f64], &mut [f64]),
    ) {
        for &body in &self.focus.bodies {
            let (at, to) = (plan.body_at[body as usize] as usize, 6 * body as usize);
            v[to..to + 6].copy_from_slice(&x[at..at + 6]);
        }
        for &(row, at) in &self.focus.multipliers {
            if self.is_free(row as usize) {
                lambda[row as usize] = -x[at as usize];
            }
        }
        for group in &self.focus.groups {
            self.recover(problem, group, r_lambda, v, lambda, rows);
        }
    }

    /// w = J v + C λ + d of the rows in focus.
    pub fn slack_in_focus(&self, problem: &RowProblem, v: &[f64], lambda: &[f64], w: &mut [f64]) {
        for block in &self.focus.blocks {
            let rows = block.row as usize..(block.row + block.rows) as usize;
            problem.slack_of(block, v, lambda, &mut w[rows]);
        }
    }
}
