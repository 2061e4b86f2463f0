//! The point of an index set, found by all partitions, refined and judged.

use super::{Member, Shared, Substructured, rows_of};
use crate::coupling::cut::GLUE;
use crate::coupling::executor::Executor;
use crate::solver::linear::Point;
use crate::solver::residual::Sums;
use crate::solver::{Label, RowProblem, momentum_residual};

impl<E: Executor> Substructured<E> {
    /// The partitions' points of an index set, with λ of tight rows as given. Partitions have eliminated themselves from what is left then:
    /// one refinement is not for the residual's sake but for λ's.
    pub(super) fn begin_point(
        &mut self,
        problem: &RowProblem,
        index_set: (&[Label], Option<&[f64]>),
        lambda: &[f64],
    ) {
        let (labels, shift) = index_set;
        self.begin_between(labels, lambda);
        let between = &self.lambda;
        self.executor.for_each(&mut self.members, |_, m| m.begin_point(labels, shift, lambda, between));
        self.factor_between(problem, labels, shift);
        self.offset_between(problem);
        self.solve_interface();
        let step = &self.step;
        self.executor.for_each(&mut self.members, |_, m| m.follow_first(step, shift.is_some()));
    }

    /// The same where the last solve near rows in focus was that of these labels: what lies away from them follows it.
    pub(super) fn begin_from_near(&mut self, problem: &RowProblem, labels: &[Label], lambda: &[f64]) {
        self.offset_between(problem);
        self.executor.for_each(&mut self.members, |_, m| m.begin_from_near(labels, lambda));
    }

    /// −d of the rows between partitions.
    fn offset_between(&mut self, problem: &RowProblem) {
        for (r, &row) in self.r.iter_mut().zip(&self.cut.interface) {
            *r = if row == GLUE { 0.0 } else { -problem.d[row as usize] };
        }
    }

    /// Refines the partitions' points; they are judged where that is asked for. Returns the relative imbalance. Every partition balances
    /// its own share; a copied body's impulses through the glue count as its own.
    pub(super) fn balance(&mut self, problem: &RowProblem, shifted: bool, enough: f64, judged: bool) -> f64 {
        let mut progress = momentum_residual::Progress::default();
        let mut imbalance = f64::INFINITY;
        for pass in 1..=momentum_residual::MAX_REFINEMENTS {
            self.solve_interface();
            let step = &self.step;
            self.executor.for_each(&mut self.members, |_, m| m.follow_point(step, shifted, enough, judged));
            let slack;
            (imbalance, slack) = self.worst_of_all(problem, enough);
            if progress.is_over(imbalance, slack) || pass == momentum_residual::MAX_REFINEMENTS {
                break;
            }
            self.executor.for_each(&mut self.members, |_, m| m.refine_point(slack <= 1.0));
        }
        imbalance.max(self.imbalance_of_shared()) * momentum_residual::BALANCED
    }

    /// How far momenta and slacks are from their equations, as multiples of what is good enough.
    fn worst_of_all(&mut self, problem: &RowProblem, enough: f64) -> (f64, f64) {
        let imbalance = self.members.iter().fold(0.0f64, |w, m| w.max(m.imbalance));
        let mut worst = self.members.iter().fold(0.0f64, |w, m| w.max(m.worst));
        self.read_between();
        for (i, &row) in self.cut.interface.iter().enumerate() {
            let (c, row) = (self.regular[i], row as usize);
            if c.is_finite() {
                let d = if row == GLUE as usize { 0.0 } else { problem.d[row] };
                worst = worst.max((self.between[i] + c * self.lambda[i] + d).abs() / enough);
            }
        }
        (imbalance, worst)
    }

    /// Largest imbalance of the bodies that several partitions have, as a multiple of what is round-off: their shares added up,
    /// all with the velocity that counts.
    fn imbalance_of_shared(&mut self) -> f64 {
        let mut sums = std::mem::take(&mut self.shared);
        sums.iter_mut().for_each(|sum| (sum.r, sum.size) = ([0.0; 6], [0.0; 6]));
        for member in &self.members {
            for (n, k) in member.part.shared().enumerate() {
                let body = member.part.bodies[k];
                let Ok(at) = sums.binary_search_by_key(&body, |sum| sum.body) else { continue };
                let Shared { owner, r, size, .. } = &mut sums[at];
                let counts = &self.members[owner.0 as usize].v[6 * owner.1 as usize..];
                let (own, mass) = (&member.v[6 * k..6 * k + 6], &member.problem.mass[k]);
                for i in 0..6 {
                    let late: f64 = (0..6).map(|j| mass[6 * i + j] * (counts[j] - own[j])).sum();
                    r[i] += member.r_v[6 * k + i] - late;
                    size[i] += member.shared_size[6 * n + i];
                }
            }
        }
        let worst =
            sums.iter().fold(0.0f64, |worst, sum| worst.max(momentum_residual::worst(&sum.r, &sum.size)));
        self.shared = sums;
        worst / momentum_residual::BALANCED
    }

    /// v, λ and w of the whole from the partitions.
    pub(super) fn collect(&mut self, problem: &RowProblem, point: Point<'_>) {
        let Point { v, lambda, w } = point;
        self.collect_impulses(v, lambda);
        for Member { part, posted, .. } in &self.members {
            part.row_runs.give(posted.w.read(), w);
        }
        self.slack_between(problem, lambda, w);
        for &(b, ..) in &self.on_copies {
            let block = &problem.blocks[b as usize];
            problem.slack_of(block, v, lambda, &mut w[rows_of(block)]);
        }
    }

    /// v and λ of the whole from the partitions.
    pub(super) fn collect_impulses(&self, v: &mut [f64], lambda: &mut [f64]) {
        for Member { part, posted, .. } in &self.members {
            part.owned_runs.give_sixes(posted.v.read(), v);
            part.row_runs.give(posted.lambda.read(), lambda);
        }
        for (&own, &row) in self.lambda.iter().zip(&self.cut.interface).filter(|(_, row)| **row != GLUE) {
            lambda[row as usize] = own;
        }
    }

    /// What all rows say of λ and w; `w` is memory.
    pub(super) fn judge(&self, problem: &RowProblem, point: Point<'_>) -> Sums {
        let Point { v, lambda, w } = point;
        let mut sums = Sums::default();
        self.members.iter().for_each(|member| sums.add(&member.sums));
        self.slack_between(problem, lambda, w);
        let mut first = 0;
        for &b in &self.cut.between {
            let rows = rows_of(&problem.blocks[b as usize]);
            let own = first..first + rows.len();
            first = own.end;
            let bounds = (&problem.lo[rows.clone()], &problem.hi[rows.clone()]);
            sums.add(&Sums::of(&lambda[rows.clone()], &w[rows], bounds, &self.a[own]));
        }
        for &(b, part, row) in &self.on_copies {
            let block = &problem.blocks[b as usize];
            let rows = rows_of(block);
            problem.slack_of(block, v, lambda, &mut w[rows.clone()]);
            let diagonal = &self.members[part as usize].posted.a.read()[row as usize..][..rows.len()];
            let bounds = (&problem.lo[rows.clone()], &problem.hi[rows.clone()]);
            sums.add(&Sums::of(&lambda[rows.clone()], &w[rows], bounds, diagonal));
        }
        sums
    }

    /// w of the rows between partitions.
    fn slack_between(&self, problem: &RowProblem, lambda: &[f64], w: &mut [f64]) {
        for (i, &row) in self.cut.interface.iter().enumerate().filter(|(_, row)| **row != GLUE) {
            let row = row as usize;
            w[row] = self.between[i] + problem.compliance[row] * lambda[row] + problem.d[row];
        }
    }
}
