//! Solves of a cut system that stay near some of its rows.
//!
//! Every partition goes through what lies away from its rows in focus once; from then on a solve is a substitution in its branch (see
//! [`MixedSystem::focus_on`]), the interface, and back. A partition without such rows keeps its response and its reading. Impulses of tight
//! rows between partitions are known: they act through the responses, S_Γ λ_T, and come to the partitions together with those of the
//! free ones.

use super::Substructured;
use crate::coupling::cut::GLUE;
use crate::coupling::executor::Executor;
use crate::coupling::member::Member;
use crate::linalg::packed;
use crate::solver::interior_point::Chunk;
use crate::solver::linear;
use crate::solver::system::Pass;
use crate::solver::{Label, RowProblem};

#[cfg(doc)]
use crate::solver::mixed::MixedSystem;

/// The rows of a partition that are in focus.
#[derive(Clone, Debug, Default)]
pub(in crate::coupling) struct Near {
    mask: Vec<bool>,
    /// Their numbers among all rows in focus.
    numbers: Vec<u32>,
    labels: Vec<Label>,
    shift: Vec<f64>,
    r: Vec<f64>,
    lambda: Vec<f64>,
    jv: Vec<f64>,
}

impl Near {
    /// Takes its part of what is asked.
    fn take(&mut self, asked: &linear::Near<'_>) {
        for (k, number) in self.numbers.iter().map(|number| *number as usize).enumerate() {
            self.labels[k] = asked.labels[number];
            self.shift[k] = asked.shift[number];
            self.r[k] = asked.r[number];
            self.lambda[k] = asked.lambda[number];
        }
    }
}

/// The rows between partitions that are in focus, and the focus itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Between {
    /// Rows of the whole problem; empty if there is no focus.
    mask: Vec<bool>,
    /// Their places in the interface and numbers among all rows in focus.
    rows: Vec<(u32, u32)>,
    /// Of every row in focus the partition it is in, or [`GLUE`] if it is between them, and its number there.
    places: Vec<(u32, u32)>,
}

impl Between {
    /// Forgets the focus: the cut is another.
    pub(super) fn clear(&mut self) {
        self.mask.clear();
    }
}

impl Member {
    /// Takes its rows in focus; `numbers` has the number of each row of the whole among them.
    fn take_focus(&mut self, rows: &[bool], numbers: &[u32]) {
        let near = &mut self.near;
        near.mask.resize(self.part.rows.len(), false);
        self.part.row_runs.take(rows, &mut near.mask);
        near.numbers.clear();
        let own = self.part.rows.iter().filter(|&&row| rows[row as usize]);
        near.numbers.extend(own.map(|&row| numbers[row as usize]));
        near.labels.resize(near.numbers.len(), Label::Free);
        for buffer in [&mut near.shift, &mut near.r, &mut near.lambda, &mut near.jv] {
            buffer.resize(near.numbers.len(), 0.0);
        }
    }

    /// Factors for an index set of the whole and goes through everything away from its rows in focus.
    fn draw_near(&mut self, labels: &[Label], diagonal: Option<&[f64]>) {
        self.factor(labels, diagonal);
        self.mixed.focus_on(&self.problem, &self.near.mask);
        self.mixed.settle_the_rest(&self.problem);
    }

    /// The first half of a solve near its rows in focus.
    fn begin_near(&mut self, asked: &linear::Near<'_>) {
        self.near.take(asked);
        let changed = self.mixed.factor_in_focus(&self.problem, &self.near.labels, &self.near.shift);
        self.respond(changed);
        let Self { mixed, problem, near, reading, .. } = self;
        mixed.condense_in_focus(problem, asked.moving, &near.r, &near.lambda, reading);
        self.posted.reading.post(&self.reading);
    }

    /// The second half, with the impulses of the interface.
    fn end_near(&mut self, between: &[f64]) {
        self.take_seam(between);
        let Self { mixed, problem, near, seam_lambda, .. } = self;
        mixed.expand_in_focus(problem, seam_lambda, &mut near.lambda);
        mixed.velocity_in_focus(problem, &mut near.jv);
        self.posted.near_lambda.post(&near.lambda);
        self.posted.near_jv.post(&near.jv);
    }

    fn begin_step(&mut self, factor: bool, before: &Pass<'_>) {
        before(&mut self.chunk);
        let changed = factor && {
            let Chunk { state, shift, .. } = &self.chunk;
            self.mixed.factor_in_focus(&self.problem, state, shift)
        };
        self.respond(changed);
        let Self { mixed, problem, chunk, reading, .. } = self;
        chunk.x.fill(0.0);
        mixed.condense_in_focus(problem, false, &chunk.rhs, &chunk.x, reading);
        self.posted.reading.post(&self.reading);
    }

    fn end_step(&mut self, between: &[f64], after: &Pass<'_>) {
        self.take_seam(between);
        let Self { mixed, problem, chunk, seam_lambda, .. } = self;
        mixed.expand_in_focus(problem, seam_lambda, &mut chunk.x);
        mixed.velocity_in_focus(problem, &mut chunk.xv);
        after(chunk);
    }

    fn take_seam(&mut self, between: &[f64]) {
        for (to, &row) in self.seam_lambda.iter_mut().zip(&self.part.interface) {
            *to = between[row as usize];
        }
    }

    /// The number of an interface row among its own, if it meets it.
    fn own_row(&self, row: usize) -> Option<usize> {
        self.part.interface.binary_search(&(row as u32)).ok()
    }

    /// Calls `f(row of the interface, x)` for its response at these to a unit impulse at one of them.
    fn for_each_response(&self, row: usize, mut f: impl FnMut(usize, f64)) {
        let Some(column) = self.own_row(row) else { return };
        let (rows, schur) = (&self.part.interface, self.posted.schur.read());
        for (own, &row) in rows.iter().enumerate() {
            f(row as usize, schur[packed::at(rows.len(), own, column)]);
        }
    }
}

impl<E: Executor> Substructured<E> {
    pub(super) fn draw_near(
        &mut self,
        problem: &RowProblem,
        rows: &[bool],
        (labels, diagonal): (&[Label], Option<&[f64]>),
    ) {
        if self.near.mask != rows {
            self.take_focus(rows);
        }
        self.executor.for_each(&mut self.members, |_, member| member.draw_near(labels, diagonal));
        self.factor_between(problem, labels, diagonal);
    }

    fn take_focus(&mut self, rows: &[bool]) {
        self.near.mask.clear();
        self.near.mask.extend_from_slice(rows);
        let mut next = 0;
        let number = |&focused: &bool| {
            next += u32::from(focused);
            next - u32::from(focused)
        };
        let numbers: Vec<u32> = rows.iter().map(number).collect();
        self.members.iter_mut().for_each(|member| member.take_focus(rows, &numbers));
        self.near.rows.clear();
        self.near.places.clear();
        self.near.places.resize(next as usize, (GLUE, 0));
        for (i, &row) in (0..).zip(&self.cut.interface) {
            if row != GLUE && rows[row as usize] {
                self.near.rows.push((i, numbers[row as usize]));
                self.near.places[numbers[row as usize] as usize] = (GLUE, i);
            }
        }
        for (p, member) in (0..).zip(&self.members) {
            let own = (0..).zip(&member.near.mask).filter(|(_, focused)| **focused);
            for ((row, _), &number) in own.zip(&member.near.numbers) {
                self.near.places[number as usize] = (p, row);
            }
        }
    }

    /// The diagonal of A and b of the rows in focus.
    pub(super) fn report_near(&self, (diagonal, b): (&mut [f64], &mut [f64])) {
        for (k, &(part, row)) in self.near.places.iter().enumerate() {
            (diagonal[k], b[k]) = match self.members.get(part as usize) {
                Some(Member { posted, .. }) => (posted.a.read()[row as usize], posted.b.read()[row as usize]),
                None => (self.a[row as usize], self.b[row as usize]),
            };
        }
    }

    pub(super) fn solve_between(&mut self, problem: &RowProblem, near: linear::Near<'_>) {
        self.executor.for_each(&mut self.members, |_, member| member.begin_near(&near));
        let index_set = |number: u32| (near.labels[number as usize], near.shift[number as usize]);
        self.renew_near(problem, index_set);
        self.lambda.fill(0.0);
        for (r, &row) in self.r.iter_mut().zip(&self.cut.interface) {
            *r = if row == GLUE || !near.moving { 0.0 } else { -problem.d[row as usize] };
        }
        for &(i, number) in &self.near.rows {
            let (i, number) = (i as usize, number as usize);
            self.r[i] = near.r[number];
            if near.labels[number] != Label::Free {
                self.lambda[i] = near.lambda[number];
            }
        }
        for &(i, _) in &self.near.rows {
            let (row, r) = (i as usize, &mut self.r);
            let given = self.lambda[row];
            if given != 0.0 {
                self.members.iter().for_each(|m| m.for_each_response(row, |other, x| r[other] -= x * given));
            }
        }
        self.solve_interface();
        let between = &self.lambda;
        self.executor.for_each(&mut self.members, |_, member| member.end_near(between));
        for Member { near: own, posted, .. } in &self.members {
            let (lambda, jv) = (posted.near_lambda.read(), posted.near_jv.read());
            for (k, &number) in own.numbers.iter().enumerate() {
                near.lambda[number as usize] = lambda[k];
                near.jv[number as usize] = jv[k];
            }
        }
        for &(i, number) in &self.near.rows {
            let number = number as usize;
            near.lambda[number] = self.lambda[i as usize];
            near.jv[number] = self.velocity_between(i as usize, near.r[number]);
        }
    }

    pub(super) fn list_chunks(&self, chunks: &mut Vec<Chunk>) {
        chunks.resize_with(self.members.len() + 1, Chunk::default);
        for (chunk, member) in chunks.iter_mut().zip(&self.members) {
            chunk.shape_by_rows(member.near.numbers.iter().copied());
        }
        chunks[self.members.len()].shape_by_rows(self.near.rows.iter().map(|&(_, number)| number));
    }

    pub(super) fn step_near(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some((between, own)) = chunks.split_last_mut() else { return };
        self.swap_chunks(own);
        self.executor.for_each(&mut self.members, |_, member| member.begin_step(factor, before));
        before(between);
        if factor {
            let mut rows = between.state.iter().zip(&between.shift);
            self.renew_near(problem, |_| rows.next().map_or((Label::Lower, 0.0), |(l, d)| (*l, *d)));
        }
        self.lambda.fill(0.0);
        self.r.fill(0.0);
        for (&(i, _), rhs) in self.near.rows.iter().zip(&between.rhs) {
            self.r[i as usize] = *rhs;
        }
        self.solve_interface();
        let lambda = &self.lambda;
        self.executor.for_each(&mut self.members, |_, member| member.end_step(lambda, after));
        for (k, &(i, _)) in self.near.rows.iter().enumerate() {
            between.x[k] = self.lambda[i as usize];
            between.xv[k] = self.velocity_between(i as usize, between.rhs[k]);
        }
        after(between);
        self.swap_chunks(own);
    }

    /// (C+D)_Γ of the rows in focus, in their order; S_Γ is factored again if anything changed.
    fn renew_near(&mut self, problem: &RowProblem, mut index_set: impl FnMut(u32) -> (Label, f64)) {
        let mut changed = self.members.iter().any(|member| member.changed);
        for &(i, number) in &self.near.rows {
            let row = self.cut.interface[i as usize] as usize;
            let new = match index_set(number) {
                (Label::Free, d) => problem.compliance[row] + d,
                _ => f64::INFINITY,
            };
            changed |= self.regular[i as usize].to_bits() != new.to_bits();
            self.regular[i as usize] = new;
        }
        if changed {
            self.factor_interface();
        }
    }

    /// J v of a row between partitions with what the interface has found. A free row says so itself, by its equation
    /// J v + (C+D) λ = r; of a tight one the partitions' readings and responses do.
    fn velocity_between(&self, row: usize, r: f64) -> f64 {
        let c = self.regular[row];
        if c.is_finite() {
            return r - c * self.lambda[row];
        }
        let mut jv = 0.0;
        for member in &self.members {
            if let Some(own) = member.own_row(row) {
                jv += member.posted.reading.read()[own];
            }
            member.for_each_response(row, |other, x| jv += x * self.lambda[other]);
        }
        jv
    }
}
