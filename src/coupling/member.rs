//! One partition of a system solved by substructuring: its rows, its factor, its part of every step.

use super::cut::Part;
use super::substructured::near::Near;
use crate::linalg::Isa;
use crate::linalg::kernels::with_avx2;
use crate::linalg::outbox::Outbox;
use crate::solver::delassus_diagonal::Formed;
use crate::solver::interior_point::Chunk;
use crate::solver::linear::Scratch;
use crate::solver::mixed::{InterfaceRows, MixedSystem};
use crate::solver::residual::Sums;
use crate::solver::system::Pass;
use crate::solver::{Label, RowProblem, delassus_diagonal, momentum_residual};

/// What one partition holds, on cache lines of its own. Whoever works on it writes to its numbers; what the interface and the whole need to
/// know is posted.
#[derive(Clone, Debug, Default)]
#[repr(align(128))]
pub(super) struct Member {
    pub(super) part: Part,
    pub(super) problem: RowProblem,
    pub(super) seam: InterfaceRows,
    pub(super) mixed: MixedSystem,
    pub(super) analysed: bool,
    /// M⁻¹ and M⁻¹ p of its bodies, the diagonal of A and b of its rows, and what is to be said of these.
    pub(super) inverse: Vec<[f64; 36]>,
    pub(super) q: Vec<f64>,
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
    pub(super) formed: Option<Formed>,
    pub(super) posted: Letters,
    pub(super) labels: Vec<Label>,
    pub(super) diagonal: Vec<f64>,
    pub(super) changed: bool,
    pub(super) flops: u64,
    pub(super) rhs_v: Vec<f64>,
    pub(super) rhs_lambda: Vec<f64>,
    pub(super) r_v: Vec<f64>,
    pub(super) r_lambda: Vec<f64>,
    pub(super) v: Vec<f64>,
    pub(super) lambda: Vec<f64>,
    pub(super) dv: Vec<f64>,
    pub(super) dlambda: Vec<f64>,
    /// J_Γ v + J_Γ K⁻¹ r: what the interface reads of this partition.
    pub(super) reading: Vec<f64>,
    pub(super) scratch: Vec<f64>,
    pub(super) seam_lambda: Vec<f64>,
    pub(super) seam_step: Vec<f64>,
    /// w of its rows, and how far they and its momenta are from their equations, as multiples of what is good enough.
    pub(super) w: Vec<f64>,
    pub(super) worst: f64,
    pub(super) imbalance: f64,
    pub(super) sums: Sums,
    /// Sizes of the terms of the momenta of bodies it shares, six numbers each, without the glue.
    pub(super) shared_size: Vec<f64>,
    /// Memory of refinement.
    pub(super) balance: Scratch,
    /// Its rows in an interior point, while they are worked on.
    pub(super) chunk: Chunk,
    /// Its rows in focus.
    pub(super) near: Near,
}

/// What a partition tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Letters {
    /// The diagonal of A and b of its rows.
    pub(super) a: Outbox,
    pub(super) b: Outbox,
    /// J_Γ K⁻¹ J_Γᵀ, its term of S_Γ.
    pub(super) schur: Outbox,
    /// What the interface reads of it: see [`Member::reading`].
    pub(super) reading: Outbox,
    /// v, λ and w of an index set, and J_Γ v.
    pub(super) v: Outbox,
    pub(super) lambda: Outbox,
    pub(super) w: Outbox,
    pub(super) between: Outbox,
    /// λ and J v of its rows in focus.
    pub(super) near_lambda: Outbox,
    pub(super) near_jv: Outbox,
}

impl Member {
    pub(super) fn load(&mut self, whole: &RowProblem) {
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

    /// The diagonal of A and b of its own rows. Are these and the masses of its bodies numbers?
    pub(super) fn form(&mut self, whole: &RowProblem, isa: Isa) {
        self.inverse.resize(self.part.bodies.len(), [0.0; 36]);
        self.q.resize(6 * self.part.bodies.len(), 0.0);
        let mut finite = true;
        for ((inverse, q), &body) in
            self.inverse.iter_mut().zip(self.q.chunks_exact_mut(6)).zip(&self.part.bodies)
        {
            finite &= delassus_diagonal::invert(whole, body as usize, inverse, q);
        }
        for buffer in [&mut self.a, &mut self.b] {
            buffer.resize(self.part.rows.len(), 0.0);
        }
        let (problem, free) = (&self.problem, (&self.inverse[..], &self.q[..]));
        let rows = (&mut self.a[..], &mut self.b[..]);
        let finite = finite & delassus_diagonal::form_rows(isa, problem, &problem.blocks, free, rows);
        self.formed = Some(Formed::of(finite, &problem.compliance, &self.a, &self.b));
        self.posted.a.post(&self.a);
        self.posted.b.post(&self.b);
    }

    pub(super) fn factor(&mut self, labels: &[Label], diagonal: Option<&[f64]>) {
        self.labels.resize(self.part.rows.len(), Label::Free);
        self.part.row_runs.take(labels, &mut self.labels);
        let own = diagonal.map(|d| {
            self.diagonal.resize(self.part.rows.len(), 0.0);
            self.part.row_runs.take(d, &mut self.diagonal);
            self.diagonal.as_slice()
        });
        let stats = self.mixed.factor(&self.problem, &self.labels, own);
        self.flops = stats.flops;
        self.respond(stats.refactored > 0);
    }

    /// Its response at the interface, if its factor has changed.
    pub(super) fn respond(&mut self, changed: bool) {
        self.changed = changed;
        if changed {
            self.posted.schur.post(self.mixed.schur());
        }
    }

    /// Takes its part of a right-hand side and eliminates itself.
    pub(super) fn begin(&mut self, r_v: &[f64], r_lambda: &[f64]) {
        self.rhs_v.fill(0.0);
        self.part.owned_runs.take_sixes(r_v, &mut self.rhs_v);
        self.part.row_runs.take(r_lambda, &mut self.rhs_lambda);
        self.lambda.fill(0.0);
        self.mixed.condense(&self.problem, &self.rhs_v, &self.rhs_lambda, &mut self.reading);
        self.posted.reading.post(&self.reading);
        self.r_lambda.copy_from_slice(&self.rhs_lambda);
    }

    /// The first half of a Newton step on its chunk.
    pub(super) fn begin_newton(&mut self, factor: bool, before: &Pass<'_>) {
        before(&mut self.chunk);
        if factor {
            self.labels.clone_from(&self.chunk.state);
            let stats = self.mixed.factor(&self.problem, &self.labels, Some(&self.chunk.shift));
            self.flops = stats.flops;
            self.respond(stats.refactored > 0);
        }
        // v and λ_Γ are written by the first step; λ of rows that take no part is zero.
        for buffer in [&mut self.rhs_v, &mut self.lambda] {
            buffer.fill(0.0);
        }
        self.rhs_lambda.copy_from_slice(&self.chunk.rhs);
        self.r_lambda.copy_from_slice(&self.chunk.rhs);
        self.mixed.condense(&self.problem, &self.rhs_v, &self.rhs_lambda, &mut self.reading);
        self.posted.reading.post(&self.reading);
    }

    /// Hands the answer to its chunk.
    pub(super) fn end_newton(&mut self, after: &Pass<'_>) {
        std::mem::swap(&mut self.chunk.x, &mut self.lambda);
        std::mem::swap(&mut self.chunk.xv, &mut self.v);
        after(&mut self.chunk);
    }

    pub(super) fn renew_slack(&mut self, before: &Pass<'_>, after: &Pass<'_>) {
        before(&mut self.chunk);
        self.problem.slack(&self.chunk.v, &self.chunk.lambda, &mut self.chunk.w);
        self.seam.velocity(&self.chunk.v, &mut self.scratch);
        self.posted.between.post(&self.scratch);
        after(&mut self.chunk);
    }

    /// Takes a step of the interface impulses; then, if asked, looks at what is left and eliminates itself again. Before the first
    /// step v and λ are zero.
    pub(super) fn follow(&mut self, step: &[f64], first: bool, again: bool) {
        if first {
            self.take_first_step(step);
        } else {
            self.take_step(step);
        }
        if !again {
            return;
        }
        self.r_v.copy_from_slice(&self.rhs_v);
        self.r_lambda.copy_from_slice(&self.rhs_lambda);
        self.mixed.subtract_product(&self.problem, &self.v, &self.lambda, &mut self.r_v, &mut self.r_lambda);
        self.seam.add_impulse(&self.seam_lambda, &mut self.r_v);
        self.seam.velocity(&self.v, &mut self.scratch);
        self.eliminate_what_is_left();
    }

    /// The first half of the point of an index set: λ of tight rows are read from the whole, those of tight rows between
    /// partitions from `between`.
    pub(super) fn begin_point(
        &mut self,
        labels: &[Label],
        shift: Option<&[f64]>,
        lambda: &[f64],
        between: &[f64],
    ) {
        self.factor(labels, shift);
        self.part.row_runs.take(lambda, &mut self.lambda);
        for (k, &row) in self.part.interface.iter().enumerate() {
            self.seam_lambda[k] = between[row as usize];
        }
        if self.mixed.any_tight() {
            self.problem.impulse_to_momentum(&self.lambda, &mut self.r_v);
        } else {
            self.r_v.copy_from_slice(self.problem.momentum.as_flattened());
        }
        self.seam.add_impulse(&self.seam_lambda, &mut self.r_v);
        for (r, d) in self.r_lambda.iter_mut().zip(&self.problem.d) {
            *r = -d;
        }
        self.v.fill(0.0);
        self.mixed.condense(&self.problem, &self.r_v, &self.r_lambda, &mut self.reading);
        self.posted.reading.post(&self.reading);
    }

    /// Its point from the last solve near its rows in focus, which was that of these labels; then eliminates itself from what is left.
    pub(super) fn begin_from_near(&mut self, labels: &[Label], lambda: &[f64]) {
        self.part.row_runs.take(labels, &mut self.labels);
        self.part.row_runs.take(lambda, &mut self.lambda);
        self.mixed.expand_from_focus(&self.problem, &mut self.v, &mut self.lambda);
        self.measure_first(false);
    }

    /// Follows the first step of the interface and eliminates itself from what is left: one refinement is always made.
    pub(super) fn follow_first(&mut self, step: &[f64], shifted: bool) {
        self.take_step(step);
        self.measure_first(shifted);
    }

    fn measure_first(&mut self, shifted: bool) {
        self.form_balance();
        self.seam.add_impulse(&self.seam_lambda, &mut self.r_v);
        self.read_slack(shifted);
        self.refine_point(false);
    }

    /// Follows a step of the interface and measures what is left. If asked, its rows say what they think of it.
    pub(super) fn follow_point(&mut self, step: &[f64], shifted: bool, enough: f64, judged: bool) {
        self.take_step(step);
        self.form_balance();
        let size = &mut self.balance.size;
        self.seam.add_impulse(&self.seam_lambda, &mut self.r_v);
        self.shared_size.clear();
        for k in self.part.shared() {
            self.shared_size.extend_from_slice(&size[6 * k..6 * k + 6]);
        }
        self.seam.add_size(&self.seam_lambda, size);
        self.imbalance = momentum_residual::worst(&self.r_v, size) / momentum_residual::BALANCED;
        self.read_slack(shifted);
        self.worst = momentum_residual::largest(&self.r_lambda, &self.labels) / enough;
        self.posted.between.post(&self.scratch);
        self.posted.v.post(&self.v);
        self.posted.lambda.post(&self.lambda);
        if judged {
            self.judge();
        } else {
            self.posted.w.post(&self.w);
        }
    }

    /// What its rows say of λ and w; those on a copy whose velocity does not count are left to the whole.
    fn judge(&mut self) {
        for &(row, rows) in &self.part.on_copies {
            self.w[row as usize..(row + rows) as usize].fill(0.0);
        }
        let bounds = (&self.problem.lo[..], &self.problem.hi[..]);
        self.sums = Sums::of(&self.lambda, &self.w, bounds, &self.a);
    }

    /// What is missing to its momenta without the seam, and the sizes of the terms.
    fn form_balance(&mut self) {
        let Self { mixed, problem, v, lambda, r_v, balance, .. } = self;
        balance.size.resize(r_v.len(), 0.0);
        mixed.form_balance(problem, (v, lambda), (r_v, &mut balance.size));
    }

    /// w of its rows, what is missing to their equations, and what the interface reads of its velocities.
    fn read_slack(&mut self, shifted: bool) {
        self.w.resize(self.lambda.len(), 0.0);
        self.problem.slack(&self.v, &self.lambda, &mut self.w);
        let shift = shifted.then_some(&self.diagonal[..]);
        momentum_residual::missing(&self.w, shift, &self.lambda, &mut self.r_lambda);
        self.seam.velocity(&self.v, &mut self.scratch);
    }

    /// Eliminates itself from what is left, of the momenta alone if the slacks are good enough.
    pub(super) fn refine_point(&mut self, slacks_are_good: bool) {
        if slacks_are_good {
            self.r_lambda.fill(0.0);
        }
        self.eliminate_what_is_left();
    }

    /// Tells the interface what it reads beyond the velocities at hand.
    fn eliminate_what_is_left(&mut self) {
        self.mixed.condense(&self.problem, &self.r_v, &self.r_lambda, &mut self.reading);
        for (reading, now) in self.reading.iter_mut().zip(&self.scratch) {
            *reading += now;
        }
        self.posted.reading.post(&self.reading);
    }

    fn take_first_step(&mut self, step: &[f64]) {
        for (k, &row) in self.part.interface.iter().enumerate() {
            self.seam_lambda[k] = step[row as usize];
        }
        let Self { mixed, problem, r_lambda, seam_lambda, v, lambda, .. } = self;
        mixed.expand(problem, r_lambda, seam_lambda, v, lambda);
    }

    fn take_step(&mut self, step: &[f64]) {
        for (k, &row) in self.part.interface.iter().enumerate() {
            self.seam_step[k] = step[row as usize];
            self.seam_lambda[k] += step[row as usize];
        }
        self.mixed.expand(&self.problem, &self.r_lambda, &self.seam_step, &mut self.dv, &mut self.dlambda);
        let Self { v, dv, lambda, dlambda, labels, .. } = self;
        with_avx2(
            #[inline(always)]
            || {
                v.iter_mut().zip(&*dv).for_each(|(v, d)| *v += d);
                for ((lambda, d), label) in lambda.iter_mut().zip(&*dlambda).zip(&*labels) {
                    *lambda = if *label == Label::Free { *lambda + d } else { *lambda };
                }
            },
        );
    }
}
