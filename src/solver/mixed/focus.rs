//! Solves that stay near some of the rows.
//!
//! When only some rows change their labels, D or right-hand side, the others need not be gone through again: what is
//! eliminated below the fronts of these rows keeps its factor, and its share of the right-hand side arrives at them as it did
//! before. So the *rest* of the tree is gone through once, and every further solve only in the *branch*: the fronts of the
//! rows in focus and of their bodies, with all that is above them. On a net of 600 links under a truck some
//! thirty of 630 fronts change in a pivot.

use super::MixedSystem;
use super::plan::Plan;
use super::solve::{add_scaled, for_each_six};
use crate::linalg::Aligned;
use crate::linalg::kernels::{self, Group, Tree};
use crate::linalg::symbolic::NONE;
use crate::solver::{Label, RowBlock, RowProblem};
use std::ops::Range;

/// The rows in focus and what solves reach of them.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// Which rows.
    mask: Vec<bool>,
    /// The same, by number. What solves in focus are given and give is in this order.
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
    rest: Tree,
    /// Right-hand side of the step without the rows in focus, after the rest was gone through.
    still: Aligned,
    local: Aligned,
    /// Right-hand side and impulses by row, velocities by body: those in focus and in the branch are in use.
    r: Vec<f64>,
    lambda: Vec<f64>,
    v: Vec<f64>,
    rows: Vec<f64>,
    unknown: Vec<f64>,
}

impl Focus {
    /// Is it on other rows, or on none yet?
    fn differs(&self, rows: &[bool]) -> bool {
        self.mask != rows
    }

    /// Forgets the rows: their places have changed.
    pub(super) fn clear(&mut self) {
        self.mask.clear();
    }

    /// The rows in focus.
    pub fn rows(&self) -> &[u32] {
        &self.list
    }
}

impl MixedSystem {
    /// The rows in focus and what belongs to them.
    pub fn focus(&self) -> &Focus {
        &self.focus
    }

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
        // Impulses between partitions come in by the last front, whether or not anything in focus leads there.
        if let Some(last) = branch.last_mut().filter(|_| self.interface.rows() > 0) {
            *last = true;
        }
        focus.bodies.clear();
        let bodies = 0..problem.bodies() as u32;
        focus.bodies.extend(bodies.filter(|&b| branch[symbolic.node_front[b as usize] as usize]));
        focus.locals.clear();
        let fronts = symbolic.fronts.iter().zip(&branch).filter(|(_, wanted)| **wanted);
        focus.locals.extend(fronts.map(|(front, _)| front.local..front.local + front.shape.ld()));
        focus.branch = Tree::part(symbolic, |f| branch[f]);
        focus.rest = Tree::part(symbolic, |f| !branch[f]);
        focus.rows.resize(plan.most_rows, 0.0);
        for local in [&mut focus.still, &mut focus.local] {
            local.reset(symbolic.locals);
        }
        for buffer in [&mut focus.r, &mut focus.lambda] {
            buffer.resize(problem.rows(), 0.0);
        }
        focus.v.resize(6 * problem.bodies(), 0.0);
    }

    /// Goes through the rest of the tree with the momenta and the d of the rows that are not in focus. The problem must have
    /// been factored since it was loaded.
    pub fn settle_the_rest(&mut self, problem: &RowProblem) {
        let mut focus = std::mem::take(&mut self.focus);
        if let Some(plan) = self.plan.as_deref() {
            for ((r, d), focused) in focus.r.iter_mut().zip(&problem.d).zip(&focus.mask) {
                *r = if *focused { 0.0 } else { -d };
            }
            self.fill(plan, problem, problem.momentum.as_flattened(), &focus.r, &mut focus.still);
            self.factor.forward_in(&focus.rest, &mut focus.still);
        }
        self.focus = focus;
    }

    /// [`factor`](Self::factor) where nothing but rows in focus has changed since, with their labels and D. Was anything factored?
    pub fn factor_in_focus(&mut self, problem: &RowProblem, labels: &[Label], diagonal: &[f64]) -> bool {
        let Some(plan) = self.plan.as_deref() else { return false };
        let (mut tight, mut any) = (false, false);
        for (k, row) in self.focus.list.iter().map(|&row| row as usize).enumerate() {
            let free = labels[k] == Label::Free;
            tight |= !free;
            let c = if free { problem.compliance[row] + diagonal[k] } else { f64::INFINITY };
            if c != self.regular[row] {
                any = true;
                self.regular[row] = c;
                self.weight[row] = 1.0 / c;
                if plan.row_front[row] != NONE {
                    self.factor.touch(plan.row_front[row]);
                }
            }
        }
        self.any_tight = tight;
        if any {
            self.factor_touched(problem);
        }
        any
    }

    /// Solves in the branch: of tight rows in focus λ is read, of free ones r; λ is written for the free ones. With `moving` the
    /// momenta and the other rows' d are on the right-hand side, else nothing is.
    pub fn solve_in_focus(&mut self, problem: &RowProblem, moving: bool, r: &[f64], lambda: &mut [f64]) {
        self.condense_in_focus(problem, moving, r, lambda, &mut []);
        self.expand_in_focus(problem, &[], lambda);
    }

    /// The first half of such a solve whose interface impulses are not known yet: `out` = J_Γ v without them.
    pub fn condense_in_focus(
        &mut self,
        problem: &RowProblem,
        moving: bool,
        r: &[f64],
        lambda: &[f64],
        out: &mut [f64],
    ) {
        let mut focus = std::mem::take(&mut self.focus);
        for (k, &row) in focus.list.iter().enumerate() {
            (focus.r[row as usize], focus.lambda[row as usize]) = (r[k], lambda[k]);
        }
        if let Some(plan) = self.plan.as_deref() {
            self.fill_branch(plan, problem, moving, &mut focus);
            self.factor.forward_in(&focus.branch, &mut focus.local);
            if let Some(x) = self.factor.interface_of(&focus.local) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out = -x);
            }
        }
        self.focus = focus;
    }

    /// The second half, with the interface impulses; λ of the tight rows stays as it is.
    pub fn expand_in_focus(&mut self, problem: &RowProblem, interface: &[f64], lambda: &mut [f64]) {
        let mut focus = std::mem::take(&mut self.focus);
        if let Some(plan) = self.plan.as_deref() {
            focus.unknown.clear();
            focus.unknown.extend(interface.iter().map(|l| -l));
            self.factor.backward_in(&focus.branch, &mut focus.local, &focus.unknown);
            self.read_branch(plan, problem, &mut focus);
        }
        for (lambda, &row) in lambda.iter_mut().zip(&focus.list) {
            *lambda = focus.lambda[row as usize];
        }
        self.focus = focus;
    }

    /// v and λ of all free rows after a solve in focus with `moving` and r = −d there: what was eliminated away from the branch follows
    /// it. Until the rest is settled again this can be asked for once.
    pub fn expand_from_focus(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64]) {
        let mut focus = std::mem::take(&mut self.focus);
        if let Some(plan) = self.plan.as_deref() {
            let Focus { locals, still: x, local, r, rest, .. } = &mut focus;
            for range in locals {
                x[range.clone()].copy_from_slice(&local[range.clone()]);
            }
            self.factor.backward_below(rest, x);
            r.iter_mut().zip(&problem.d).for_each(|(r, d)| *r = -d);
            self.read(plan, problem, r, (v, lambda), x);
        }
        self.focus = focus;
    }

    fn fill_branch(&self, plan: &Plan, problem: &RowProblem, moving: bool, focus: &mut Focus) {
        let Focus { mask, blocks, groups, multipliers, locals, still, local: x, r, lambda, rows, .. } = focus;
        for range in locals {
            match moving {
                true => x[range.clone()].copy_from_slice(&still[range.clone()]),
                false => x[range.clone()].fill(0.0),
            }
        }
        for block in blocks {
            let width = 6 * block.bodies as usize;
            for row in (block.row..block.row + block.rows).map(|row| row as usize) {
                if mask[row] && !self.is_free(row) && lambda[row] != 0.0 {
                    let at = block.entry as usize + (row - block.row as usize) * width;
                    let (j, bodies) = (&problem.jacobian[at..at + width], problem.bodies_of(block));
                    let place = |body: u32| plan.place_of(problem, body);
                    add_scaled(j, bodies, lambda[row], x, place);
                }
            }
        }
        for &mut (row, at) in multipliers {
            x[at as usize] = if self.is_free(row as usize) { r[row as usize] } else { 0.0 };
        }
        for group in groups {
            let scaled = &mut rows[..group.rows as usize];
            for (y, row) in scaled.iter_mut().zip(group.row as usize..) {
                let free = mask[row] && self.is_free(row);
                *y = if free { r[row] * self.weight[row] } else { 0.0 };
            }
            for_each_six(problem, group, |body, six| {
                let to = &mut x[plan.place_of(problem, body as u32)];
                match to.len() {
                    6 => kernels::add_six_transposed(self.factor.isa(), six, scaled, to),
                    _ => six.add_transposed(scaled, to),
                }
            });
        }
    }

    fn read_branch(&self, plan: &Plan, problem: &RowProblem, focus: &mut Focus) {
        let Focus { groups, multipliers, bodies, local: x, r, lambda, v, rows, .. } = focus;
        for &mut body in bodies {
            let own = plan.place_of(problem, body);
            v[6 * body as usize..][..own.len()].copy_from_slice(&x[own]);
        }
        for &mut (row, at) in multipliers {
            if self.is_free(row as usize) {
                lambda[row as usize] = -x[at as usize];
            }
        }
        for group in groups {
            self.recover(problem, group, r, v, lambda, rows);
        }
    }

    /// J v of the rows in focus, with the velocities of the last solve there.
    pub fn velocity_in_focus(&self, problem: &RowProblem, out: &mut [f64]) {
        let focus = &self.focus;
        let mut k = 0;
        for block in &focus.blocks {
            for row in (0..block.rows).filter(|row| focus.mask[(block.row + row) as usize]) {
                out[k] = problem.velocity_of(block, row, &focus.v);
                k += 1;
            }
        }
    }
}
