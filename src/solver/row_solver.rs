//! The object the engine calls once a step: rows in, impulses and velocities out.

use super::auto::{Engine, Settings};
use super::condensed;
use super::cone::ConeMemory;
use super::cone::rows::{ConeRows, ConeRowsMemory};
use super::cone::system::ConeSystem;
use super::linear::LinearSystem;
use super::mixed::{MixedOptions, MixedSystem};
use super::problem::{Coupling, RowKind, RowProblem, are_cones};
use super::row_system::{Decision, Memory, RowSystem};
use super::system::PivotSystem;
use super::{Method, Solution, SolveStats, index_sets, residual};
use crate::linalg::kernels::with_avx2;

/// Solves row problems by one method and keeps its memory from step to step.
///
/// `solution` carries the warm start in and the answer out. A warm start whose length does not fit
/// is a cold start. Nothing panics on the numbers of a problem: where they are not finite the answer
/// is zero impulses, an infinite residual and `converged = false`.
#[derive(Clone, Debug, Default)]
pub struct Solver<L> {
    method: Method,
    /// Tolerances and limits.
    pub settings: Settings,
    engine: Engine,
    memory: Memory<L>,
    condensed: condensed::Memory,
    condenses: bool,
    cones: ConeMemory,
    cone_rows: ConeRowsMemory,
    w: Vec<f64>,
}

/// The solver that factors each problem as a whole.
pub type RowSolver = Solver<MixedSystem>;

impl<L: LinearSystem + Default> Solver<L> {
    /// A solver for one method with default settings.
    pub fn new(method: Method) -> Self {
        Solver { method, ..Solver::default() }
    }
}

impl<L: LinearSystem> Solver<L> {
    /// The linear system behind it.
    pub fn linear_mut(&mut self) -> &mut L {
        self.memory.linear_mut()
    }

    /// The linear system behind it.
    pub fn linear(&self) -> &L {
        self.memory.linear()
    }

    /// The method asked for.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Changes the method; memory is kept.
    pub fn set_method(&mut self, method: Method) {
        self.method = method;
    }

    /// All that the solver remembers of earlier solves that can change the bits of the next one: whether pivoting
    /// failed at the last attempt. Whoever saves a state saves this too.
    pub fn pivoting_failed(&self) -> bool {
        self.engine.pivoting_failed
    }

    /// Puts that memory back.
    pub fn set_pivoting_failed(&mut self, failed: bool) {
        self.engine.pivoting_failed = failed;
    }

    /// Takes over what another solver remembers of an island, so that either may solve it next.
    pub fn remember(&mut self, of: &Self) {
        self.engine.forget(of.engine.pivoting_failed);
        self.condenses = of.condenses;
    }

    /// Choices of the factorization.
    pub fn options(&self) -> MixedOptions {
        self.memory.options()
    }

    /// Choices of the factorization (plain kernels for the same bits on every machine, ordering).
    pub fn set_options(&mut self, options: MixedOptions) {
        self.memory.set_options(options);
    }

    /// Were rows without bounds eliminated in the last solve by `auto`? Then deciding the others is cheap.
    pub fn condenses(&self) -> bool {
        self.condenses
    }

    /// Solves one problem.
    pub fn solve(&mut self, problem: &RowProblem, solution: &mut Solution) -> SolveStats {
        self.solve_roughly(problem, solution, 0.0)
    }

    /// Solves one problem, by `auto` only until its relative residual is below `rough`, if that saves work; then
    /// [`is_rough`](Self::is_rough). For answers that only decide what the next problem is.
    pub fn solve_roughly(&mut self, problem: &RowProblem, solution: &mut Solution, rough: f64) -> SolveStats {
        if !is_well_formed(problem) {
            return refuse(problem, solution);
        }
        if !problem.cones.is_empty() {
            return self.solve_cones(problem, solution);
        }
        index_sets::legalise(&mut solution.labels, &problem.lo, &problem.hi);
        let mut system = RowSystem::begin(problem, &mut self.memory);
        if !system.is_finite() {
            return refuse(problem, solution);
        }
        let gradients = gradients(self.method, problem, solution, &self.settings);
        let mut stats = SolveStats::default();
        if let Some(method) = gradients {
            system.complete();
            // The preconditioner needs the numbers of A; products go through whichever is less work.
            let matrix = problem.to_matrix();
            let a = (&matrix.a, Some(system.product_work()));
            stats = self.engine.conjugate(method, &mut system, a, solution, &self.settings);
        }
        // `auto` arrives: where conjugate gradients did not, the direct solver goes on.
        let enough = self.settings.tolerance * system.scale();
        let open = self.method == Method::Auto && self.engine.best.residual > enough;
        if gradients.is_none() || open {
            let mut decided = None;
            if self.method == Method::Auto {
                let (memory, failed) = (&mut self.condensed, self.engine.pivoting_failed);
                let decision = system.decide_condensed(memory, &mut solution.labels, failed, &self.settings);
                let mut near = false;
                if let Decision::Made(stats, there) = decision {
                    (decided, near) = (Some(stats), there);
                }
                self.condenses = decided.is_some();
                let simple = gradients.is_none() && !matches!(decision, Decision::Open);
                if simple && let Some(stats) = system.confirm(solution, near, &mut self.w, &self.settings) {
                    self.engine.forget(decided.is_some_and(|stats| stats.ipm_iterations > 0));
                    return with_decided(stats, decided);
                }
            }
            system.complete();
            // What was decided there is to be confirmed, whatever became of the last attempt.
            self.engine.pivoting_failed &= decided.is_none();
            let before = stats;
            stats = self.engine.run_roughly(self.method, &mut system, solution, &self.settings, rough);
            if let Some(decided) = decided {
                self.engine.pivoting_failed = decided.ipm_iterations > 0;
            }
            stats = with_decided(stats, decided);
            stats.pivots += before.pivots;
            (stats.inner_iterations, stats.imaginary_share) =
                (before.inner_iterations, before.imaginary_share);
        }
        answer(system, &self.engine, &self.settings, &mut self.w, solution, stats)
    }

    /// Solves a problem with cones.
    fn solve_cones(&mut self, problem: &RowProblem, solution: &mut Solution) -> SolveStats {
        let n = problem.rows();
        let system = RowSystem::new(problem, &mut self.memory);
        if !system.is_finite() {
            return refuse(problem, solution);
        }
        self.engine.forget(false);
        self.condenses = false;
        let ConeMemory { laws, .. } = &mut self.cones;
        laws.take(&problem.lo, &problem.hi, &problem.cones);
        let mut rows = ConeRows::new(problem, system, laws, &mut self.cone_rows);
        let warm = solution.labels.len() == n && solution.lambda.len() == n && are_finite(&solution.lambda);
        let start = warm.then_some((&solution.labels[..], &solution.lambda[..]));
        let mut stats = self.cones.solve(&mut rows, self.method, start, &self.settings);
        let ConeMemory { laws, best, .. } = &self.cones;
        solution.lambda.clone_from(&best.lambda);
        rows.tell(&solution.lambda, &mut solution.v, &mut self.w);
        laws.judge(
            (&solution.lambda, &self.w),
            rows.b(),
            rows.diagonal(),
            self.settings.tolerance,
            &mut stats,
        );
        laws.labels(&solution.lambda, &self.w, rows.diagonal(), &mut solution.labels);
        stats
    }

    /// Is the last answer a rough one?
    pub fn is_rough(&self) -> bool {
        self.engine.is_paused()
    }

    /// Takes a rough answer on to a relative residual of `rough`, or to its end (0). The problem must be the one it was
    /// found for, to the last bit.
    pub fn go_on(&mut self, problem: &RowProblem, solution: &mut Solution, rough: f64) -> SolveStats {
        let mut system = RowSystem::new(problem, &mut self.memory);
        let stats = self.engine.go_on(&mut system, &self.settings, rough);
        answer(system, &self.engine, &self.settings, &mut self.w, solution, stats)
    }
}

/// What a solve did, with what it took to decide the rows with bounds before it.
fn with_decided(stats: SolveStats, decided: Option<SolveStats>) -> SolveStats {
    let before = decided.unwrap_or_default();
    SolveStats {
        pivots: stats.pivots + before.pivots,
        ipm_iterations: stats.ipm_iterations + before.ipm_iterations,
        ..stats
    }
}

/// The best point of a run with its velocities, and what is to be said of it.
fn answer<L: LinearSystem>(
    mut system: RowSystem<'_, L>,
    engine: &Engine,
    settings: &Settings,
    w: &mut Vec<f64>,
    solution: &mut Solution,
    mut stats: SolveStats,
) -> SolveStats {
    solution.lambda.clone_from(&engine.best.lambda);
    solution.labels.clone_from(&engine.best.labels);
    let belonging = system.settle(&solution.labels, &mut solution.lambda);
    system.tell(belonging, &solution.lambda, &mut solution.v, w);
    stats.factorizations = system.factorizations();
    stats.analysed = system.analysed();
    residual::judge_slack(&system, &solution.lambda, system.given_hi(), settings.tolerance, w, &mut stats);
    // A rough answer is as far from the exact one as it was left: round-off has no part in that.
    if !stats.converged && stats.residual.is_finite() && !engine.is_paused() {
        let scale = system.scale() + system.round_off(&solution.lambda) / settings.tolerance;
        if stats.residual <= settings.tolerance * scale {
            (stats.residual_relative, stats.converged) = (stats.residual / scale, true);
        }
    }
    stats
}

/// Which method of conjugate gradients to begin with, if any.
fn gradients(method: Method, problem: &RowProblem, start: &Solution, settings: &Settings) -> Option<Method> {
    match method {
        Method::BppPcg | Method::Pgcg => Some(method),
        Method::Auto => {
            let large = problem.rows() >= settings.gradients_from && start.lambda.len() == problem.rows();
            (large && problem.kind.iter().all(|k| *k != RowKind::Joint)).then_some(Method::Pgcg)
        }
        _ => None,
    }
}

/// Lengths that agree, indices in range, numbers that are numbers; for masses and Jacobians see [`RowSystem::is_finite`].
fn is_well_formed(p: &RowProblem) -> bool {
    let n = p.rows();
    let lengths = [p.compliance.len(), p.lo.len(), p.hi.len(), p.kind.len()];
    if lengths.iter().any(|&l| l != n) || p.momentum.len() != p.bodies() {
        return false;
    }
    let widths = p.width.is_empty() || p.width.len() == p.bodies();
    if !widths || p.width.iter().any(|width| !(1..=6).contains(width)) {
        return false;
    }
    let bodies = p.bodies() as u32;
    let coupled = |c: &Coupling| c.a != c.b && c.a.max(c.b) < bodies && are_finite(&c.block);
    if !are_cones(&p.cones, n) || !are_within_blocks(p) {
        return false;
    }
    if !p.couplings.iter().all(coupled) {
        return false;
    }
    let blocks = p.blocks.iter().all(|b| {
        let entries = b.entry as usize + 6 * b.rows as usize * b.bodies as usize;
        (b.row as usize + b.rows as usize) <= n
            && (b.body as usize + b.bodies as usize) <= p.block_bodies.len()
            && entries <= p.jacobian.len()
    });
    blocks
        && p.block_bodies.iter().all(|&b| b < bodies)
        && are_finite(p.momentum.as_flattened())
        && are_finite(&p.compliance)
        && are_finite(&p.d)
        && are_bounds(&p.lo, &p.hi)
}

/// Are the rows of each cone in one block? Blocks are in row order.
fn are_within_blocks(p: &RowProblem) -> bool {
    p.cones.iter().all(|cone| {
        let at = p.blocks.partition_point(|block| block.row + block.rows <= cone.row);
        p.blocks.get(at).is_some_and(|block| block.row <= cone.row && cone.row + 3 <= block.row + block.rows)
    })
}

/// Is there something between them, infinity at most?
fn are_bounds(lo: &[f64], hi: &[f64]) -> bool {
    with_avx2(
        #[inline(always)]
        || {
            // No number is neither below nor above another.
            lo.iter().fold(true, |so_far, x| so_far & (*x < f64::INFINITY))
                & hi.iter().fold(true, |so_far, x| so_far & (*x > f64::NEG_INFINITY))
        },
    )
}

/// Are all of them numbers? Nobody stops at the first that is not: without an end to look for, many are looked at in one instruction.
pub(super) fn are_finite(x: &[f64]) -> bool {
    with_avx2(
        #[inline(always)]
        || x.iter().fold(true, |so_far, x| so_far & x.is_finite()),
    )
}

/// The answer to a problem that is not one: free motion where that is a number, and no claim.
fn refuse(problem: &RowProblem, solution: &mut Solution) -> SolveStats {
    let n = problem.rows();
    solution.lambda.clear();
    solution.lambda.resize(n, 0.0);
    solution.labels.clear();
    solution.labels.resize(n, super::Label::Free);
    solution.v.clear();
    solution.v.resize(6 * problem.bodies(), 0.0);
    for (body, p) in problem.momentum.iter().enumerate().take(problem.bodies()) {
        let inverse = problem.inverse_mass(body);
        for i in 0..6 {
            let v: f64 = (0..6).map(|j| inverse[6 * i + j] * p[j]).sum();
            solution.v[6 * body + i] = if v.is_finite() { v } else { 0.0 };
        }
    }
    SolveStats {
        residual: f64::INFINITY,
        residual_relative: f64::INFINITY,
        residual_energy: f64::INFINITY,
        ..SolveStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{RowBlock, RowKind};

    /// A 2 kg body pressed on the floor by 10 N s with friction up to 3 N s against 4 N s.
    fn sliding_box() -> RowProblem {
        let mut mass = [0.0; 36];
        for i in 0..6 {
            mass[7 * i] = 2.0;
        }
        let mut jacobian = vec![0.0; 12];
        jacobian[1] = 1.0; // normal along y
        jacobian[6] = 1.0; // friction along x
        RowProblem {
            width: Vec::new(),
            couplings: Vec::new(),
            mass: vec![mass],
            momentum: vec![[4.0, -10.0, 0.0, 0.0, 0.0, 0.0]],
            blocks: vec![RowBlock { row: 0, rows: 2, body: 0, bodies: 1, entry: 0, fold: true }],
            block_bodies: vec![0],
            jacobian,
            compliance: vec![1e-8; 2],
            d: vec![0.0; 2],
            lo: vec![0.0, -3.0],
            hi: vec![f64::INFINITY, 3.0],
            kind: vec![RowKind::Normal, RowKind::Friction],
            cones: Vec::new(),
        }
    }

    #[test]
    fn a_box_slides_when_friction_is_at_its_limit() {
        for method in Method::ALL {
            let mut solution = Solution::default();
            let stats = RowSolver::new(method).solve(&sliding_box(), &mut solution);
            assert!(stats.converged, "{}: {stats:?}", method.name());
            // C = 1e-8 against A = 0.5 changes λ by 2e-8 of itself.
            assert!((solution.lambda[0] - 10.0).abs() < 1e-6);
            assert_eq!(solution.lambda[1], -3.0);
            assert!((solution.v[0] - 0.5).abs() < 1e-12);
        }
    }

    #[test]
    fn auto_begins_with_gradients_where_it_is_told_to_and_arrives_all_the_same() {
        let mut solver = RowSolver::new(Method::Auto);
        solver.settings.gradients_from = 2;
        let mut solution = Solution::default();
        assert_eq!(solver.solve(&sliding_box(), &mut solution).inner_iterations, 0, "nothing to start from");
        solution.lambda[0] = 9.0;
        let stats = solver.solve(&sliding_box(), &mut solution);
        assert!(stats.converged && stats.inner_iterations > 0, "{stats:?}");
        assert!((solution.lambda[0] - 10.0).abs() < 1e-6);
        // No iteration at all is not enough; the direct solver has to do it.
        solver.settings.inner.max_iterations = 0;
        solution.lambda[0] = 9.0;
        assert!(solver.solve(&sliding_box(), &mut solution).converged);
    }

    #[test]
    fn bad_numbers_are_reported_and_never_panic() {
        let spoil: [fn(&mut RowProblem); 5] = [
            |p| p.d[0] = f64::NAN,
            |p| p.mass[0][0] = f64::INFINITY,
            |p| p.lo[1] = f64::NAN,
            |p| p.block_bodies[0] = 7,
            |p| p.mass[0] = [0.0; 36],
        ];
        for change in spoil {
            let mut problem = sliding_box();
            change(&mut problem);
            let mut solution = Solution::default();
            let stats = RowSolver::default().solve(&problem, &mut solution);
            assert!(!stats.converged);
            assert!(stats.residual == f64::INFINITY);
            assert!(solution.v.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn contradictory_bounds_hold_the_row_and_are_not_called_converged() {
        let mut problem = sliding_box();
        (problem.lo[1], problem.hi[1]) = (1.0, -1.0);
        let mut solution = Solution::default();
        let stats = RowSolver::default().solve(&problem, &mut solution);
        assert!(!stats.converged && stats.residual >= 1.0 && stats.residual.is_finite());
    }

    #[test]
    fn an_empty_problem_is_solved() {
        let mut solution = Solution::default();
        let stats = RowSolver::default().solve(&RowProblem::default(), &mut solution);
        assert!(stats.converged && solution.lambda.is_empty());
    }
}
