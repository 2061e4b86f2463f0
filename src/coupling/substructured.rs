//! Substructuring as a linear solver: partitions in parallel, then the interface (000 eqs. 23–25).
//!
//! All rows are decided together by the solver above; here one index set and one D are given. With
//! K_i the mixed matrix of partition i and Γ the interface,
//!
//! ```text
//!     S_Γ = (C+D)_Γ + Σ J_Γᵢ K_i⁻¹ J_Γᵢᵀ        (24)      S_Γ λ_Γ = r_Γ − Σ J_Γᵢ K_i⁻¹ r_i        (25)
//! ```
//!
//! then every partition finishes with J_Γᵢᵀ λ_Γ on its right-hand side. The pattern never changes when rows pivot, a
//! partition whose rows did not change is not factored, and sums over partitions follow their order.

pub(super) mod near;
mod point;

use super::cut::{Cut, GLUE, Seam};
use super::executor::Executor;
use super::member::Member;
use super::separator::Separator;
use crate::graph::Grouping;
use crate::linalg::dense::DenseLdl;
use crate::linalg::{Isa, Symbolic, packed};
use crate::solver::delassus_diagonal::Formed;
use crate::solver::interior_point::Chunk;
use crate::solver::linear::{Confirmed, LinearSystem, Near, Point, Scratch};
use crate::solver::mixed::{MixedOptions, MixedSystem};
use crate::solver::system::Pass;
use crate::solver::{Label, RowBlock, RowProblem, delassus_diagonal, momentum_residual};

/// What a cut system looks like and costs, for reports and benches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlatStats {
    /// Partitions.
    pub partitions: u32,
    /// Rows between them.
    pub interface_rows: u32,
    /// Operations of the last factorization, all partitions.
    pub flops: u64,
    /// Operations of the costliest partition.
    pub flops_longest: u64,
    /// Operations of the interface factorization.
    pub flops_interface: u64,
}

/// A body that several partitions have.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    body: u32,
    /// The partition whose velocity counts, and the body's number there.
    owner: (u32, u32),
    /// What is missing to its momentum, and the sizes of the terms.
    r: [f64; 6],
    size: [f64; 6],
}

/// A linear system solved by substructuring.
#[derive(Clone, Debug, Default)]
pub struct Substructured<E> {
    executor: E,
    options: MixedOptions,
    grouping: Grouping,
    seam: Seam,
    cut: Cut,
    members: Vec<Member>,
    /// Have the partitions the numbers of the next problem already?
    loaded: bool,
    /// M⁻¹ and M⁻¹ p of bodies on both sides of a row.
    free: Vec<([f64; 36], [f64; 6])>,
    /// The diagonal of A and b of the rows between partitions.
    a: Vec<f64>,
    b: Vec<f64>,
    factor: DenseLdl,
    /// S_Γ as a tree, where that is less work than a dense factor.
    separator: Option<Box<Separator>>,
    /// (C+D)_Γ, infinite for tight rows; zero for glue.
    regular: Vec<f64>,
    /// λ_Γ, the right-hand side r_Γ, and a step.
    lambda: Vec<f64>,
    r: Vec<f64>,
    step: Vec<f64>,
    /// J_Γ v.
    between: Vec<f64>,
    /// Bodies that several partitions have, ascending.
    shared: Vec<Shared>,
    /// Blocks inside of partitions that touch a copy whose velocity does not count: block, partition, first row there.
    on_copies: Vec<(u32, u32, u32)>,
    pivot_v: Vec<f64>,
    pivot_lambda: Vec<f64>,
    near: near::Between,
}

impl<E: Executor> Substructured<E> {
    /// A system that runs partitions by `executor`.
    pub fn new(executor: E) -> Self
    where
        E: Default,
    {
        Self { executor, ..Self::default() }
    }

    /// Who runs the partitions.
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// Which body goes where, from the next `load` on.
    pub fn set_grouping(&mut self, grouping: &Grouping, seam: Seam) {
        self.grouping.clone_from(grouping);
        self.seam = seam;
    }

    /// The cut of the problem loaded last.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The plan of a partition's factor.
    pub fn symbolic_of(&self, part: usize) -> Option<&Symbolic> {
        self.members.get(part).map(|member| member.mixed.symbolic())
    }

    /// Sizes and operations.
    pub fn stats(&self) -> FlatStats {
        let m = self.cut.interface_rows() as u64;
        FlatStats {
            partitions: self.members.len() as u32,
            interface_rows: m as u32,
            flops: self.members.iter().map(|m| m.flops).sum(),
            flops_longest: self.members.iter().map(|m| m.flops).max().unwrap_or(0),
            flops_interface: self.separator.as_ref().map_or(m * m * m / 3, |s| s.flops()),
        }
    }

    fn recut(&mut self, problem: &RowProblem) {
        if self.grouping.of.len() != problem.bodies() {
            self.grouping = Grouping::whole(problem.bodies());
        }
        if self.cut.fits(problem, &self.grouping, self.seam) {
            return;
        }
        self.cut = Cut::new(problem, &self.grouping, self.seam);
        let options = self.options;
        self.members.truncate(self.cut.parts.len());
        self.members.resize_with(self.cut.parts.len(), || Member {
            mixed: MixedSystem::new(options),
            ..Member::default()
        });
        for (member, part) in self.members.iter_mut().zip(&self.cut.parts) {
            member.part.clone_from(part);
        }
        self.list_shared(problem);
        self.near.clear();
        let m = self.cut.interface_rows();
        self.separator = Separator::plan(&self.cut.parts, m, options.kernels).map(Box::new);
        for buffer in [&mut self.lambda, &mut self.r, &mut self.step] {
            buffer.clear();
            buffer.resize(m, 0.0);
        }
    }

    fn list_shared(&mut self, problem: &RowProblem) {
        self.shared.clear();
        self.on_copies.clear();
        for (p, part) in self.cut.parts.iter().enumerate() {
            let owned = part.shared().filter(|&k| part.owned[k]);
            self.shared.extend(owned.map(|k| Shared {
                body: part.bodies[k],
                owner: (p as u32, k as u32),
                ..Shared::default()
            }));
            for &(row, _) in &part.on_copies {
                let whole = part.rows[row as usize];
                let block = problem.blocks.partition_point(|block| block.row + block.rows <= whole);
                self.on_copies.push((block as u32, p as u32, row));
            }
        }
        self.shared.sort_unstable_by_key(|shared| shared.body);
    }

    /// The diagonal of A and b of the rows between partitions; those of glue are of no use.
    fn form_between(&mut self, problem: &RowProblem, isa: Isa) -> Formed {
        let m = self.cut.interface_rows();
        self.a.resize(m, 0.0);
        self.b.resize(m, 0.0);
        let (free, mut first) = (&mut self.free, 0);
        let mut formed = Formed { finite: true, square: 0.0, lacks: false };
        for block in self.cut.between.iter().map(|&block| &problem.blocks[block as usize]) {
            let own = first..first + block.rows as usize;
            first = own.end;
            let bodies = problem.bodies_of(block);
            free.resize(bodies.len(), ([0.0; 36], [0.0; 6]));
            for ((inverse, q), &body) in free.iter_mut().zip(bodies) {
                delassus_diagonal::invert(problem, body as usize, inverse, q);
            }
            let (a, b) = (&mut self.a[own.clone()], &mut self.b[own]);
            let free = |k: usize| (&free[k].0, &free[k].1);
            let finite = delassus_diagonal::form_block(isa, problem, block, free, (&mut *a, &mut *b));
            let compliance = &problem.compliance[block.row as usize..(block.row + block.rows) as usize];
            formed.add(&Formed::of(finite, compliance, a, b));
        }
        formed
    }

    /// S_Γ from the partitions' responses, in order, and its factor.
    fn factor_interface(&mut self) {
        if let Some(separator) = &mut self.separator {
            return separator.factor(&self.members, &self.regular);
        }
        let m = self.cut.interface_rows();
        let (S, ld) = self.factor.write(m);
        if self.members.first().is_none_or(|first| first.part.interface.len() < m) {
            S.fill(0.0);
        }
        for (p, member) in self.members.iter().enumerate() {
            let (rows, schur) = (&member.part.interface, member.posted.schur.read());
            for (k, own) in packed::columns(rows.len(), schur).enumerate() {
                let column = rows[k] as usize;
                let to = &mut S[column * ld + column..column * ld + m];
                // Where it meets all rows, they are in their order.
                match (rows.len() == m, p) {
                    (true, 0) => to.copy_from_slice(own),
                    (true, _) => to.iter_mut().zip(own).for_each(|(to, x)| *to += x),
                    _ => rows[k..].iter().zip(own).for_each(|(&row, x)| to[row as usize - column] += x),
                }
            }
        }
        self.step.clear();
        self.step.extend(self.regular.iter().map(|&c| if c.is_finite() { c } else { 0.0 }));
        let regular = &self.regular;
        self.factor.factor_written(|i| regular[i].is_finite(), &self.step);
    }

    /// One step: the interface reads the partitions, finds its impulses, the partitions follow.
    fn solve_interface(&mut self) {
        for i in 0..self.step.len() {
            let c = self.regular[i];
            self.step[i] = if c.is_finite() { self.r[i] - c * self.lambda[i] } else { 0.0 };
        }
        for member in &self.members {
            for (&row, x) in member.part.interface.iter().zip(member.posted.reading.read()) {
                self.step[row as usize] -= x;
            }
        }
        match &mut self.separator {
            Some(separator) => separator.solve(&mut self.step, &self.regular),
            None => self.factor.solve(&mut self.step),
        }
        for (lambda, step) in self.lambda.iter_mut().zip(&self.step) {
            *lambda += step;
        }
    }
}

impl<E: Executor> Substructured<E> {
    /// Lends the chunks to the partitions, or takes them back.
    fn swap_chunks(&mut self, chunks: &mut [Chunk]) {
        for (member, chunk) in self.members.iter_mut().zip(chunks) {
            std::mem::swap(&mut member.chunk, chunk);
        }
    }

    /// λ_Γ of tight rows between partitions as given, zero elsewhere.
    fn begin_between(&mut self, labels: &[Label], lambda: &[f64]) {
        for (l, &row) in self.lambda.iter_mut().zip(&self.cut.interface) {
            let tight = row != GLUE && labels[row as usize] != Label::Free;
            *l = if tight { lambda[row as usize] } else { 0.0 };
        }
    }

    /// J_Γ v of the partitions' velocities.
    fn read_between(&mut self) {
        self.between.clear();
        self.between.resize(self.cut.interface.len(), 0.0);
        for member in &self.members {
            for (&row, x) in member.part.interface.iter().zip(member.posted.between.read()) {
                self.between[row as usize] += x;
            }
        }
    }

    /// (C+D)_Γ of an index set; S_Γ is factored again if anything changed.
    fn factor_between(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        let mut changed = self.members.iter().any(|m| m.changed);
        for (c, &row) in self.regular.iter_mut().zip(&self.cut.interface) {
            let row = row as usize;
            let new = match labels.get(row) {
                _ if row == GLUE as usize => 0.0,
                Some(Label::Free) => problem.compliance[row] + diagonal.map_or(0.0, |d| d[row]),
                _ => f64::INFINITY,
            };
            changed |= c.to_bits() != new.to_bits();
            *c = new;
        }
        if changed {
            self.factor_interface();
        }
    }

    /// (C+D)_Γ of the rows between partitions; S_Γ is factored again if anything changed.
    fn renew_interface(&mut self, problem: &RowProblem, rows: &Chunk) {
        let mut changed = self.members.iter().any(|m| m.changed);
        let mut own = rows.state.iter().zip(&rows.shift);
        for (c, &row) in self.regular.iter_mut().zip(&self.cut.interface) {
            let new = match row {
                GLUE => 0.0,
                row => match own.next() {
                    Some((Label::Free, d)) => problem.compliance[row as usize] + d,
                    _ => f64::INFINITY,
                },
            };
            changed |= c.to_bits() != new.to_bits();
            *c = new;
        }
        if changed {
            self.factor_interface();
        }
    }
}

impl<E: Executor> LinearSystem for Substructured<E> {
    fn chunks(&self, _problem: &RowProblem, chunks: &mut Vec<Chunk>) {
        let parts = &self.cut.parts;
        chunks.resize_with(parts.len() + 1, Chunk::default);
        for (chunk, part) in chunks.iter_mut().zip(parts) {
            chunk.shape(part.rows.iter().copied(), part.bodies.iter().copied());
        }
        let between = self.cut.interface.iter().copied().filter(|&row| row != GLUE);
        chunks[parts.len()].shape(between, std::iter::empty());
    }

    fn newton(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        refinements: u32,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some((between, own)) = chunks.split_last_mut() else { return };
        self.swap_chunks(own);
        self.executor.for_each(&mut self.members, |_, member| member.begin_newton(factor, before));
        before(between);
        if factor {
            self.renew_interface(problem, between);
        }
        let mut rhs = between.rhs.iter();
        for (r, &row) in self.r.iter_mut().zip(&self.cut.interface) {
            *r = if row == GLUE { 0.0 } else { rhs.next().copied().unwrap_or(0.0) };
        }
        self.lambda.fill(0.0);
        for pass in 0..=refinements {
            self.solve_interface();
            let (step, again) = (&self.step, pass < refinements);
            self.executor.for_each(&mut self.members, |_, member| {
                member.follow(step, pass == 0, again);
                if !again {
                    member.end_newton(after);
                }
            });
        }
        let lambda = self.lambda.iter().zip(&self.cut.interface).filter(|&(_, &row)| row != GLUE);
        between.x.iter_mut().zip(lambda).for_each(|(x, (lambda, _))| *x = *lambda);
        after(between);
        self.swap_chunks(own);
    }

    fn renew_slack(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        let Some((between, own)) = chunks.split_last_mut() else { return };
        self.swap_chunks(own);
        self.executor.for_each(&mut self.members, |_, member| member.renew_slack(before, after));
        before(between);
        self.read_between();
        let read = self.between.iter().zip(&self.cut.interface).filter(|&(_, &row)| row != GLUE);
        for (i, (jv, &row)) in read.enumerate() {
            let row = row as usize;
            between.w[i] = jv + problem.compliance[row] * between.lambda[i] + problem.d[row];
        }
        after(between);
        self.swap_chunks(own);
    }

    fn set_options(&mut self, options: MixedOptions) {
        self.options = options;
        self.factor = DenseLdl::new(options.kernels);
        // Cut anew: the tree of the interface has its own arithmetic.
        self.cut = Cut::default();
        for member in &mut self.members {
            member.mixed = MixedSystem::new(options);
        }
    }

    fn form(&mut self, problem: &RowProblem, isa: Isa) -> Option<Formed> {
        self.recut(problem);
        self.executor.for_each(&mut self.members, |_, member| {
            member.load(problem);
            member.form(problem, isa);
        });
        self.loaded = true;
        let mut formed = self.form_between(problem, isa);
        self.members.iter().filter_map(|member| member.formed.as_ref()).for_each(|own| formed.add(own));
        Some(formed)
    }

    fn report_formed(&self, _problem: &RowProblem, (diagonal, b): (&mut [f64], &mut [f64])) {
        for member in &self.members {
            member.part.row_runs.give(member.posted.a.read(), diagonal);
            member.part.row_runs.give(member.posted.b.read(), b);
        }
        for (i, &row) in self.cut.interface.iter().enumerate().filter(|(_, row)| **row != GLUE) {
            (diagonal[row as usize], b[row as usize]) = (self.a[i], self.b[i]);
        }
    }

    fn report_formed_near(&self, rows: (&mut [f64], &mut [f64])) {
        self.report_near(rows);
    }

    fn load(&mut self, problem: &RowProblem) -> bool {
        if !std::mem::take(&mut self.loaded) {
            self.recut(problem);
            self.executor.for_each(&mut self.members, |_, member| member.load(problem));
        }
        self.regular.clear();
        self.regular.resize(self.cut.interface_rows(), f64::NAN);
        self.members.iter().any(|m| m.analysed)
    }

    fn factor(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        self.executor.for_each(&mut self.members, |_, member| member.factor(labels, diagonal));
        self.factor_between(problem, labels, diagonal);
    }

    fn solve(
        &mut self,
        _problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    ) {
        for (r, &row) in self.r.iter_mut().zip(&self.cut.interface) {
            *r = if row == GLUE { 0.0 } else { r_lambda[row as usize] };
        }
        self.lambda.fill(0.0);
        self.executor.for_each(&mut self.members, |_, member| member.begin(r_v, r_lambda));
        for pass in 0..=refinements {
            self.solve_interface();
            let (step, again) = (&self.step, pass < refinements);
            self.executor.for_each(&mut self.members, |_, member| member.follow(step, pass == 0, again));
        }
        for member in &self.members {
            member.part.owned_runs.give_sixes(&member.v, v);
            for (k, &row) in member.part.rows.iter().enumerate() {
                if member.labels[k] == Label::Free {
                    lambda[row as usize] = member.lambda[k];
                }
            }
        }
        for (i, &row) in self.cut.interface.iter().enumerate() {
            if row != GLUE && self.regular[i].is_finite() {
                lambda[row as usize] = self.lambda[i];
            }
        }
    }

    fn focus_on(&mut self, problem: &RowProblem, rows: &[bool], index_set: (&[Label], Option<&[f64]>)) {
        self.draw_near(problem, rows, index_set);
    }

    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>) {
        self.solve_between(problem, near);
    }

    fn chunks_near(&self, chunks: &mut Vec<Chunk>) {
        self.list_chunks(chunks);
    }

    fn newton_near(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        self.step_near(problem, chunks, factor, before, after);
    }

    fn hands(&self) -> usize {
        self.members.len()
    }

    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        self.executor.for_each(items, f);
    }

    fn evaluate(
        &mut self,
        problem: &RowProblem,
        labels: &[Label],
        shift: Option<&[f64]>,
        point: Point<'_>,
        enough: f64,
        _scratch: &mut Scratch,
    ) -> Option<f64> {
        let Point { v, lambda, w } = point;
        self.begin_point(problem, (labels, shift), lambda);
        let imbalance = self.balance(problem, shift.is_some(), enough, false);
        self.collect(problem, Point { v, lambda, w });
        Some(imbalance)
    }

    fn confirm(
        &mut self,
        problem: &RowProblem,
        (labels, near): (&[Label], bool),
        point: Point<'_>,
        enough: f64,
        _diagonal: &[f64],
        _scratch: &mut Scratch,
    ) -> Confirmed {
        let Point { v, lambda, w } = point;
        match near {
            true => self.begin_from_near(problem, labels, lambda),
            false => self.begin_point(problem, (labels, None), lambda),
        }
        let imbalance = self.balance(problem, false, enough, true);
        self.collect_impulses(v, lambda);
        let sums = self.judge(problem, Point { v, lambda, w });
        Confirmed { balanced: imbalance <= momentum_residual::BALANCED, sums }
    }

    fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32) {
        let (mut r_v, mut r_lambda) =
            (std::mem::take(&mut self.pivot_v), std::mem::take(&mut self.pivot_lambda));
        r_v.resize(6 * problem.bodies(), 0.0);
        r_lambda.clear();
        r_lambda.extend_from_slice(lambda);
        // Free rows are told from tight ones by the labels the partitions and the interface were factored for.
        for member in &self.members {
            for (label, &row) in member.labels.iter().zip(&member.part.rows) {
                if *label == Label::Free {
                    r_lambda[row as usize] = 0.0;
                }
            }
        }
        for (c, &row) in self.regular.iter().zip(&self.cut.interface) {
            if row != GLUE && c.is_finite() {
                r_lambda[row as usize] = 0.0;
            }
        }
        problem.impulse_to_momentum(&r_lambda, &mut r_v);
        r_lambda.clear();
        r_lambda.extend(problem.d.iter().map(|d| -d));
        self.solve(problem, &r_v, &r_lambda, v, lambda, refinements);
        (self.pivot_v, self.pivot_lambda) = (r_v, r_lambda);
    }
}

/// The rows of a block.
fn rows_of(block: &RowBlock) -> std::ops::Range<usize> {
    block.row as usize..(block.row + block.rows) as usize
}

#[cfg(test)]
mod tests;
