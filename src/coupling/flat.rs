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

use super::cut::{Cut, GLUE, Part, Seam};
use super::executor::Executor;
use crate::graph::Grouping;
use crate::linalg::dense::DenseLdl;
use crate::solver::linear::LinearSystem;
use crate::solver::mixed::{InterfaceRows, MixedOptions, MixedSystem};
use crate::solver::{Label, RowProblem};

/// What one partition holds.
#[derive(Clone, Debug, Default)]
struct Member {
    part: Part,
    problem: RowProblem,
    seam: InterfaceRows,
    mixed: MixedSystem,
    analysed: bool,
    labels: Vec<Label>,
    diagonal: Vec<f64>,
    changed: bool,
    flops: u64,
    schur: Vec<f64>,
    rhs_v: Vec<f64>,
    rhs_lambda: Vec<f64>,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    v: Vec<f64>,
    lambda: Vec<f64>,
    dv: Vec<f64>,
    dlambda: Vec<f64>,
    /// J_Γ v + J_Γ K⁻¹ r: what the interface reads of this partition.
    reading: Vec<f64>,
    scratch: Vec<f64>,
    seam_lambda: Vec<f64>,
    seam_step: Vec<f64>,
}

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

/// A linear system solved by substructuring.
#[derive(Clone, Debug, Default)]
pub struct Substructured<E> {
    executor: E,
    options: MixedOptions,
    grouping: Grouping,
    seam: Seam,
    cut: Cut,
    members: Vec<Member>,
    S: Vec<f64>,
    factor: DenseLdl,
    /// (C+D)_Γ, infinite for tight rows; zero for glue.
    regular: Vec<f64>,
    /// λ_Γ, the right-hand side r_Γ, and a step.
    lambda: Vec<f64>,
    r: Vec<f64>,
    step: Vec<f64>,
    pivot_v: Vec<f64>,
    pivot_lambda: Vec<f64>,
}

impl<E: Executor> Substructured<E> {
    /// A system that runs partitions by `executor`.
    pub fn new(executor: E) -> Self
    where
        E: Default,
    {
        Self { executor, ..Self::default() }
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

    /// Sizes and operations.
    pub fn stats(&self) -> FlatStats {
        let m = self.cut.interface_rows() as u64;
        FlatStats {
            partitions: self.members.len() as u32,
            interface_rows: m as u32,
            flops: self.members.iter().map(|m| m.flops).sum(),
            flops_longest: self.members.iter().map(|m| m.flops).max().unwrap_or(0),
            flops_interface: m * m * m / 3,
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
        let m = self.cut.interface_rows();
        for buffer in [&mut self.lambda, &mut self.r, &mut self.step] {
            buffer.clear();
            buffer.resize(m, 0.0);
        }
    }

    /// S_Γ from the partitions' responses, in order, and its factor.
    fn factor_interface(&mut self) {
        let m = self.cut.interface_rows();
        self.S.clear();
        self.S.resize(m * m, 0.0);
        for member in &self.members {
            let rows = &member.part.interface;
            for (i, &row) in rows.iter().enumerate() {
                let from = &member.schur[i * rows.len()..(i + 1) * rows.len()];
                let to = &mut self.S[row as usize * m..(row as usize + 1) * m];
                for (&column, x) in rows.iter().zip(from) {
                    to[column as usize] += x;
                }
            }
        }
        self.step.clear();
        self.step.extend(self.regular.iter().map(|&c| if c.is_finite() { c } else { 0.0 }));
        let regular = &self.regular;
        self.factor.factor(m, &self.S, |i| regular[i].is_finite(), &self.step);
    }

    /// One step: the interface reads the partitions, finds its impulses, the partitions follow.
    fn solve_interface(&mut self) {
        for i in 0..self.step.len() {
            let c = self.regular[i];
            self.step[i] = if c.is_finite() { self.r[i] - c * self.lambda[i] } else { 0.0 };
        }
        for member in &self.members {
            for (&row, x) in member.part.interface.iter().zip(&member.reading) {
                self.step[row as usize] -= x;
            }
        }
        self.factor.solve(&mut self.step);
        for (lambda, step) in self.lambda.iter_mut().zip(&self.step) {
            *lambda += step;
        }
    }
}

impl Member {
    fn load(&mut self, whole: &RowProblem) {
        self.part.load(whole, &mut self.problem, &mut self.seam);
        self.analysed = self.mixed.load_with_interface(&self.problem, &self.seam);
        let (n, rows, m) = (6 * self.problem.bodies(), self.problem.rows(), self.part.interface.len());
        for buffer in [&mut self.rhs_v, &mut self.r_v, &mut self.v, &mut self.dv] {
            buffer.resize(n, 0.0);
        }
        for buffer in [&mut self.rhs_lambda, &mut self.r_lambda, &mut self.lambda, &mut self.dlambda] {
            buffer.resize(rows, 0.0);
        }
        for buffer in [&mut self.reading, &mut self.scratch, &mut self.seam_lambda, &mut self.seam_step] {
            buffer.resize(m, 0.0);
        }
    }

    fn factor(&mut self, labels: &[Label], diagonal: Option<&[f64]>) {
        self.labels.clear();
        self.labels.extend(self.part.rows.iter().map(|&r| labels[r as usize]));
        let own = diagonal.map(|d| {
            self.diagonal.clear();
            self.diagonal.extend(self.part.rows.iter().map(|&r| d[r as usize]));
            self.diagonal.as_slice()
        });
        let stats = self.mixed.factor(&self.problem, &self.labels, own);
        self.changed = stats.refactored > 0;
        self.flops = stats.flops;
        if self.changed {
            self.schur.clear();
            self.schur.extend_from_slice(self.mixed.schur());
        }
    }

    /// Takes its part of a right-hand side and eliminates itself.
    fn begin(&mut self, r_v: &[f64], r_lambda: &[f64]) {
        for (k, &body) in self.part.bodies.iter().enumerate() {
            let to = &mut self.rhs_v[6 * k..6 * k + 6];
            if self.part.owned[k] {
                to.copy_from_slice(&r_v[6 * body as usize..6 * body as usize + 6]);
            } else {
                to.fill(0.0);
            }
        }
        for (to, &row) in self.rhs_lambda.iter_mut().zip(&self.part.rows) {
            *to = r_lambda[row as usize];
        }
        self.v.fill(0.0);
        self.lambda.fill(0.0);
        self.seam_lambda.fill(0.0);
        self.mixed.condense(&self.problem, &self.rhs_v, &self.rhs_lambda, &mut self.reading);
        self.r_lambda.copy_from_slice(&self.rhs_lambda);
    }

    /// Takes a step of the interface impulses; then, if asked, looks at what is left and eliminates itself again.
    fn follow(&mut self, step: &[f64], again: bool) {
        for (k, &row) in self.part.interface.iter().enumerate() {
            self.seam_step[k] = step[row as usize];
            self.seam_lambda[k] += step[row as usize];
        }
        self.mixed.expand(&self.problem, &self.r_lambda, &self.seam_step, &mut self.dv, &mut self.dlambda);
        for (v, d) in self.v.iter_mut().zip(&self.dv) {
            *v += d;
        }
        for (k, d) in self.dlambda.iter().enumerate() {
            if self.labels[k] == Label::Free {
                self.lambda[k] += d;
            }
        }
        if !again {
            return;
        }
        self.r_v.copy_from_slice(&self.rhs_v);
        self.r_lambda.copy_from_slice(&self.rhs_lambda);
        self.mixed.subtract_product(&self.problem, &self.v, &self.lambda, &mut self.r_v, &mut self.r_lambda);
        self.seam.add_impulse(&self.seam_lambda, &mut self.r_v);
        self.mixed.condense(&self.problem, &self.r_v, &self.r_lambda, &mut self.reading);
        self.seam.velocity(&self.v, &mut self.scratch);
        for (reading, now) in self.reading.iter_mut().zip(&self.scratch) {
            *reading += now;
        }
    }
}

impl<E: Executor> LinearSystem for Substructured<E> {
    fn set_options(&mut self, options: MixedOptions) {
        self.options = options;
        self.factor = DenseLdl::new(options.kernels);
        for member in &mut self.members {
            member.mixed = MixedSystem::new(options);
        }
    }

    fn load(&mut self, problem: &RowProblem) -> bool {
        self.recut(problem);
        self.executor.for_each(&mut self.members, |_, member| member.load(problem));
        self.regular.clear();
        self.regular.resize(self.cut.interface_rows(), f64::NAN);
        self.members.iter().any(|m| m.analysed)
    }

    fn factor(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        self.executor.for_each(&mut self.members, |_, member| member.factor(labels, diagonal));
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
            self.executor.for_each(&mut self.members, |_, member| member.follow(step, again));
        }
        for member in &self.members {
            for (k, &body) in member.part.bodies.iter().enumerate() {
                if member.part.owned[k] {
                    v[6 * body as usize..6 * body as usize + 6].copy_from_slice(&member.v[6 * k..6 * k + 6]);
                }
            }
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

#[cfg(test)]
mod tests;
