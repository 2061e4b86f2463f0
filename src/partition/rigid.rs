//! Rigid bodies under joints and contacts: an MLCP per partition (000 eqs. 16, 20–25).
//!
//! The response comes from the free rows only; tight rows are applied impulses. Both are read off the
//! factor that the last pivot left: the interface rows are its last front.

use super::Partition;
use crate::linalg::Symbolic;
use crate::solver::index_sets;
use crate::solver::interior_point::Chunk;
use crate::solver::linear::{LinearSystem, Near};
use crate::solver::mixed::{InterfaceRows, MixedOptions, MixedSystem};
use crate::solver::row_solver::Solver;
use crate::solver::system::Pass;
use crate::solver::{Label, Method, RowProblem, Solution, SolveStats};

/// The mixed system of a partition with its interface rows. Between coupling iterations only momenta change, which no
/// factor depends on; so a new right-hand side does not make it factor anew.
#[derive(Clone, Debug, Default)]
pub struct SeamSystem {
    mixed: MixedSystem,
    seam: InterfaceRows,
    fresh: bool,
}

impl SeamSystem {
    fn renew(&mut self) -> &mut InterfaceRows {
        self.fresh = true;
        &mut self.seam
    }
}

impl LinearSystem for SeamSystem {
    fn set_options(&mut self, options: MixedOptions) {
        self.mixed = MixedSystem::new(options);
        self.fresh = true;
    }
    fn load(&mut self, problem: &RowProblem) -> bool {
        if !std::mem::take(&mut self.fresh) {
            return false;
        }
        self.mixed.load_with_interface(problem, &self.seam)
    }
    fn factor(&mut self, problem: &RowProblem, labels: &[Label], diagonal: Option<&[f64]>) {
        self.mixed.factor(problem, labels, diagonal);
    }
    fn solve(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    ) {
        self.mixed.solve(problem, r_v, r_lambda, v, lambda, refinements);
    }
    fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32) {
        self.mixed.solve_pivot(problem, v, lambda, refinements);
    }
    fn focus_on(&mut self, problem: &RowProblem, rows: &[bool], index_set: (&[Label], Option<&[f64]>)) {
        LinearSystem::focus_on(&mut self.mixed, problem, rows, index_set);
    }
    fn solve_near(&mut self, problem: &RowProblem, near: Near<'_>) {
        self.mixed.solve_near(problem, near);
    }
    fn chunks_near(&self, chunks: &mut Vec<Chunk>) {
        self.mixed.chunks_near(chunks);
    }
    fn newton_near(
        &mut self,
        problem: &RowProblem,
        chunks: &mut [Chunk],
        factor: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        self.mixed.newton_near(problem, chunks, factor, before, after);
    }
}

/// A partition of rigid bodies.
#[derive(Clone, Debug, Default)]
pub struct RigidPartition {
    /// Its own rows and bodies; the momenta are those with the last interface impulse.
    pub problem: RowProblem,
    /// Impulses, velocities and index set of the last finish.
    pub solution: Solution,
    /// What the last solve said.
    pub stats: SolveStats,
    /// Pivots and interior-point iterations of the step.
    pub pivots: u32,
    /// Conjugate gradient iterations of the step.
    pub inner_iterations: u64,
    solver: Solver<SeamSystem>,
    handles: Vec<u32>,
    momentum: Vec<[f64; 6]>,
    labels: Vec<Label>,
    before: Vec<Label>,
    q: Vec<f64>,
    impulse: Vec<f64>,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
}

impl RigidPartition {
    /// Takes the numbers of a step: `fill` writes the partition's problem and interface rows.
    pub fn begin(
        &mut self,
        handles: &[u32],
        method: Method,
        fill: impl FnOnce(&mut RowProblem, &mut InterfaceRows),
    ) {
        self.handles.clear();
        self.handles.extend_from_slice(handles);
        fill(&mut self.problem, self.solver.linear_mut().renew());
        self.solver.set_method(method);
        // What the last step taught about pivoting is not part of the state; the same step must give the same bits.
        self.solver.set_pivoting_failed(false);
        self.momentum.clone_from(&self.problem.momentum);
        (self.pivots, self.inner_iterations) = (0, 0);
        // The factor is made by whoever asks first; it needs the numbers either way.
        let Self { solver, problem, .. } = self;
        solver.linear_mut().load(problem);
    }

    /// The index set to start from; one that does not fit means all free.
    pub fn set_labels(&mut self, labels: impl Iterator<Item = Label>) {
        self.labels.clear();
        self.labels.extend(labels);
        index_sets::legalise(&mut self.labels, &self.problem.lo, &self.problem.hi);
        self.before.clone_from(&self.labels);
        self.solution.labels.clone_from(&self.labels);
        self.solution.lambda.clear();
        self.solution.lambda.resize(self.problem.rows(), 0.0);
    }

    /// The solver of its own rows.
    pub fn set_method(&mut self, method: Method) {
        self.solver.set_method(method);
    }

    /// The solver of its own rows.
    pub fn method(&self) -> Method {
        self.solver.method()
    }

    /// The plan of its factor.
    pub fn symbolic(&self) -> &Symbolic {
        self.solver.linear().mixed.symbolic()
    }

    /// Choices of the factorization.
    pub fn set_options(&mut self, options: MixedOptions) {
        self.solver.set_options(options);
    }

    /// Which solver suits these rows: pivoting where nothing is bounded, interior point behind it where contacts may be
    /// redundant.
    pub fn method_by_character(problem: &RowProblem) -> Method {
        let bounded = problem.lo.iter().chain(&problem.hi).any(|x| x.is_finite());
        if bounded { Method::Auto } else { Method::Bpp }
    }

    /// The interface rows as this partition sees them.
    pub fn seam(&self) -> &InterfaceRows {
        &self.solver.linear().seam
    }

    fn set_impulse(&mut self, impulse: &[f64]) {
        self.impulse.clear();
        self.impulse.extend_from_slice(impulse);
        self.q.clear();
        self.q.extend(self.momentum.iter().flatten());
        self.solver.linear().seam.add_impulse(impulse, &mut self.q);
        for (p, q) in self.problem.momentum.iter_mut().zip(self.q.chunks_exact(6)) {
            p.copy_from_slice(q);
        }
    }

    /// v and λ of the index set at hand, whatever bounds that breaks.
    fn linear(&mut self) {
        let Self { solver, problem, labels, solution, .. } = self;
        let system = solver.linear_mut();
        system.factor(problem, labels, None);
        solution.v.resize(6 * problem.bodies(), 0.0);
        solution.lambda.resize(problem.rows(), 0.0);
        for (i, label) in labels.iter().enumerate() {
            match label {
                Label::Free => {}
                Label::Lower => solution.lambda[i] = problem.lo[i],
                Label::Upper => solution.lambda[i] = problem.hi[i],
            }
        }
        system.solve_pivot(problem, &mut solution.v, &mut solution.lambda, 1);
    }
}

impl Partition for RigidPartition {
    fn handles(&self) -> &[u32] {
        &self.handles
    }

    fn free_motion(&mut self, velocity: &mut [f64]) {
        self.problem.momentum.clone_from(&self.momentum);
        self.linear();
        self.solver.linear().seam.velocity(&self.solution.v, velocity);
    }

    fn response(&mut self, inverse_mass: &mut [f64]) {
        let Self { solver, problem, labels, .. } = self;
        let system = solver.linear_mut();
        system.factor(problem, labels, None);
        system.mixed.full_schur(inverse_mass);
    }

    fn finish(&mut self, impulse: &[f64]) -> bool {
        self.set_impulse(impulse);
        self.solution.labels.clone_from(&self.labels);
        self.stats = self.solver.solve(&self.problem, &mut self.solution);
        self.pivots += self.stats.pivots + self.stats.ipm_iterations;
        self.inner_iterations += self.stats.inner_iterations;
        self.before.clone_from(&self.labels);
        self.labels.clone_from(&self.solution.labels);
        self.before != self.labels
    }

    fn finish_linear(&mut self, impulse: &[f64]) {
        self.set_impulse(impulse);
        self.linear();
    }

    fn begin_refinement(&mut self, velocity: &mut [f64]) -> bool {
        let Self { solver, problem, labels, solution, r_v, r_lambda, .. } = self;
        let system = solver.linear_mut();
        system.factor(problem, labels, None);
        r_v.resize(6 * problem.bodies(), 0.0);
        r_lambda.resize(problem.rows(), 0.0);
        problem.impulse_to_momentum(&solution.lambda, r_v);
        for (body, mass) in problem.mass.iter().enumerate() {
            for i in 0..6 {
                let mv: f64 = (0..6).map(|j| mass[6 * i + j] * solution.v[6 * body + j]).sum();
                r_v[6 * body + i] -= mv;
            }
        }
        problem.subtract_coupled(&solution.v, r_v);
        problem.slack(&solution.v, &solution.lambda, r_lambda);
        r_lambda.iter_mut().for_each(|w| *w = -*w);
        system.mixed.condense(problem, r_v, r_lambda, velocity);
        self.q.clear();
        self.q.resize(velocity.len(), 0.0);
        system.seam.velocity(&solution.v, &mut self.q);
        for (velocity, now) in velocity.iter_mut().zip(&self.q) {
            *velocity += now;
        }
        true
    }

    fn end_refinement(&mut self, step: &[f64]) {
        let Self { solver, problem, labels, solution, r_v, r_lambda, q, .. } = self;
        let system = solver.linear_mut();
        q.clear();
        q.resize(problem.rows(), 0.0);
        system.mixed.expand(problem, r_lambda, step, r_v, q);
        for (v, d) in solution.v.iter_mut().zip(r_v.iter()) {
            *v += d;
        }
        for ((lambda, d), label) in solution.lambda.iter_mut().zip(q.iter()).zip(labels.iter()) {
            if *label == Label::Free {
                *lambda += d;
            }
        }
        for (total, step) in self.impulse.iter_mut().zip(step) {
            *total += step;
        }
        let impulse = std::mem::take(&mut self.impulse);
        self.set_impulse(&impulse);
    }

    fn revert(&mut self) {
        self.labels.clone_from(&self.before);
    }

    fn checksum(&self) -> u64 {
        index_sets::checksum(&self.labels)
    }
}
