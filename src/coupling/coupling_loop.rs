//! One island of rigid bodies through the coupling loop: cut, coupled, put together again.

use super::cut::{Cut, Seam};
use super::executor::Executor;
use super::fbic::ForceCoupling;
use super::schur::{CoupledPartition, Coupling, CouplingSettings};
use crate::graph::Grouping;
use crate::linalg::Symbolic;
use crate::partition::rigid::RigidPartition;
use crate::solver::mixed::MixedOptions;
use crate::solver::residual::Sums;
use crate::solver::{Label, Method, RowProblem, Solution, SolveStats, residual};

/// Relative imbalance of M v = p + Jᵀ λ that is round-off.
const BALANCED: f64 = 1e-13;

/// A problem in partitions. Partitions, their factors and index sets are kept while the cut stays the same.
#[derive(Clone, Debug, Default)]
pub struct CouplingLoop {
    cut: Cut,
    coupling: Coupling<RigidPartition>,
    force: ForceCoupling,
    options: MixedOptions,
    inside: Option<Method>,
    inside_rows: usize,
    compliance: Vec<f64>,
    d: Vec<f64>,
    lo: Vec<f64>,
    hi: Vec<f64>,
    labels: Vec<Label>,
    w: Vec<f64>,
    q: Vec<f64>,
    force_settled: bool,
}

impl CouplingLoop {
    /// Cuts a problem by `grouping` and starts from the index sets in `warm` (none = all free).
    pub fn load(
        &mut self,
        problem: &RowProblem,
        grouping: &Grouping,
        warm: &[Label],
        as_published: bool,
        executor: &impl Executor,
    ) {
        if !self.cut.fits(problem, grouping, Seam::Rows) {
            self.cut = Cut::new(problem, grouping, Seam::Rows);
            self.coupling
                .partitions
                .resize_with(self.cut.parts.len(), || CoupledPartition::new(RigidPartition::default()));
        }
        // Here and not where they are chosen: partitions of a new cut have to learn them too.
        let options = self.options;
        self.coupling.partitions.iter_mut().for_each(|seat| seat.partition.set_options(options));
        self.coupling.set_kernels(options.kernels);
        self.force.set_kernels(options.kernels);
        self.force_settled = false;
        let warm = if warm.len() == problem.rows() { warm } else { &[] };
        let label = |row: u32| warm.get(row as usize).copied().unwrap_or_default();
        let (parts, inside, inside_rows) = (&self.cut.parts, self.inside, self.inside_rows);
        executor.for_each(&mut self.coupling.partitions, |k, seat| {
            let (part, partition) = (&parts[k], &mut seat.partition);
            let mut method = Method::Bpp;
            partition.begin(&part.interface, method, |own, seam| {
                part.load(problem, own, seam);
                method = match inside {
                    Some(chosen) if own.rows() >= inside_rows => chosen,
                    _ if as_published => Method::Bpp,
                    _ => RigidPartition::method_by_character(own),
                };
            });
            partition.set_method(method);
            partition.set_labels(part.rows.iter().map(|&r| label(r)));
        });
        let pick = |from: &[f64], to: &mut Vec<f64>| {
            to.clear();
            to.extend(self.cut.interface.iter().map(|&r| from[r as usize]));
        };
        pick(&problem.compliance, &mut self.compliance);
        pick(&problem.d, &mut self.d);
        pick(&problem.lo, &mut self.lo);
        pick(&problem.hi, &mut self.hi);
        self.labels.clear();
        self.labels.extend(self.cut.interface.iter().map(|&r| label(r)));
        self.coupling.begin(&self.compliance, &self.d, (&self.lo, &self.hi), &self.labels);
    }

    /// Choices of the factorizations, from the next load on.
    pub fn set_options(&mut self, options: MixedOptions) {
        self.options = options;
    }

    /// The solver of partitions of `rows` rows or more, from the next load on; none is the one that suits each. S_Γ needs
    /// a factor of every partition either way.
    pub fn set_inside(&mut self, method: Option<Method>, rows: u32) {
        (self.inside, self.inside_rows) = (method, rows as usize);
    }

    /// The loop itself, for those who run its stages.
    pub fn coupling(&mut self) -> &mut Coupling<RigidPartition> {
        &mut self.coupling
    }

    /// The cut.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The solver of a partition's own rows.
    pub fn method_of(&self, part: usize) -> Method {
        self.coupling.partitions.get(part).map_or(Method::Bpp, |seat| seat.partition.method())
    }

    /// The plan of a partition's factor.
    pub fn symbolic_of(&self, part: usize) -> Option<&Symbolic> {
        self.coupling.partitions.get(part).map(|seat| seat.partition.symbolic())
    }

    /// Coupling iterations of the last run, and whether it settled.
    pub fn outcome(&self) -> (u32, bool) {
        (self.coupling.iterations, self.coupling.settled || self.force_settled)
    }

    /// All of force-based coupling at once.
    pub fn exchange_forces(&mut self, executor: &impl Executor) {
        let Self { coupling, force, compliance, d, lo, hi, .. } = self;
        force.run(&mut coupling.partitions, (compliance, d), (lo, hi), &mut coupling.interface, executor);
        coupling.iterations = force.iterations;
        self.force_settled = force.settled;
    }

    /// Puts the answer together and judges it. Where the loop did not settle, a last linear pass is tried and kept if its
    /// residual is smaller.
    pub fn finish(
        &mut self,
        problem: &RowProblem,
        solution: &mut Solution,
        tolerance: f64,
        agree: bool,
        executor: &impl Executor,
    ) -> SolveStats {
        if self.coupling.settled {
            self.coupling.refine(executor);
        }
        self.collect(problem, solution);
        let mut stats = self.judge(problem, solution, tolerance);
        if agree && !(self.coupling.settled && stats.converged) {
            self.coupling.agree(executor);
            self.coupling.refine(executor);
            let mut other = Solution::default();
            self.collect(problem, &mut other);
            let linear = self.judge(problem, &other, tolerance);
            if linear.residual < stats.residual {
                *solution = other;
                stats = linear;
            }
        }
        let partitions = self.coupling.partitions.iter();
        stats.pivots = self.coupling.pivots + partitions.map(|s| s.partition.pivots).sum::<u32>();
        let factorizations = self.coupling.partitions.iter().map(|s| s.partition.stats.factorizations);
        stats.factorizations = factorizations.sum();
        let inner = self.coupling.partitions.iter().map(|s| s.partition.inner_iterations);
        stats.inner_iterations = self.coupling.inner_iterations + inner.sum::<u64>();
        let shares = self.coupling.partitions.iter().map(|s| s.partition.stats.imaginary_share);
        stats.imaginary_share = shares.fold(0.0, f64::max);
        stats
    }

    fn collect(&self, problem: &RowProblem, solution: &mut Solution) {
        solution.lambda.resize(problem.rows(), 0.0);
        solution.labels.resize(problem.rows(), Label::Free);
        solution.v.resize(6 * problem.bodies(), 0.0);
        for (part, seat) in self.cut.parts.iter().zip(&self.coupling.partitions) {
            let own = &seat.partition.solution;
            for (k, &row) in part.rows.iter().enumerate() {
                solution.lambda[row as usize] = own.lambda[k];
                solution.labels[row as usize] = own.labels[k];
            }
            for (k, &body) in part.bodies.iter().enumerate() {
                solution.v[6 * body as usize..6 * body as usize + 6]
                    .copy_from_slice(&own.v[6 * k..6 * k + 6]);
            }
        }
        for (k, &row) in self.cut.interface.iter().enumerate() {
            solution.lambda[row as usize] = self.coupling.interface.lambda[k];
            solution.labels[row as usize] = self.coupling.interface.labels[k];
        }
    }

    /// The residuals of an answer, with its own v where that belongs to its λ.
    fn judge(&mut self, problem: &RowProblem, solution: &Solution, tolerance: f64) -> SolveStats {
        let n = problem.rows();
        let inverse: Vec<[f64; 36]> = (0..problem.bodies()).map(|node| problem.inverse_mass(node)).collect();
        self.q.resize(6 * problem.bodies(), 0.0);
        self.w.resize(n, 0.0);
        problem.impulse_to_momentum(&vec![0.0; n], &mut self.q);
        divide(&inverse, &mut self.q);
        problem.slack(&self.q, &vec![0.0; n], &mut self.w);
        let b = self.w.clone();
        problem.impulse_to_momentum(&solution.lambda, &mut self.q);
        if balanced(problem, solution, &self.q) {
            problem.slack(&solution.v, &solution.lambda, &mut self.w);
        } else {
            divide(&inverse, &mut self.q);
            problem.slack(&self.q, &solution.lambda, &mut self.w);
        }
        let mut stats = SolveStats::default();
        let (bounds, diagonal) = ((&problem.lo[..], &problem.hi[..]), diagonal(problem, &inverse));
        let sums = Sums::of(&solution.lambda, &self.w, bounds, &diagonal);
        sums.judge(n, residual::scale(&b), tolerance, &mut stats);
        stats
    }
}

/// Do v and λ obey M v = p + Jᵀ λ to round-off, given the right-hand side in `q`?
fn balanced(problem: &RowProblem, solution: &Solution, q: &[f64]) -> bool {
    // Sizes of the terms: p and each Jᵀ λ, so that cancelling impulses do not count as imbalance.
    let mut size: Vec<f64> = problem.momentum.iter().flatten().map(|p| p.abs()).collect();
    for block in &problem.blocks {
        for row in 0..block.rows {
            let l = solution.lambda[(block.row + row) as usize].abs();
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                let j = problem.jacobian_of(block, row, k as u32);
                for c in 0..6 {
                    size[6 * body as usize + c] += j[c].abs() * l;
                }
            }
        }
    }
    problem.mass.iter().enumerate().all(|(body, m)| {
        let own = 6 * body..6 * body + 6;
        let (v, q, size) = (&solution.v[own.clone()], &q[own.clone()], &size[own]);
        [0..3, 3..6].into_iter().all(|half| {
            let most = half.clone().map(|i| size[i]).fold(f64::MIN_POSITIVE, f64::max);
            half.into_iter().all(|i| {
                let mv: f64 = (0..6).map(|j| m[6 * i + j] * v[j]).sum();
                (q[i] - mv).abs() <= BALANCED * most
            })
        })
    })
}

fn diagonal(problem: &RowProblem, inverse: &[[f64; 36]]) -> Vec<f64> {
    let mut diagonal = problem.compliance.clone();
    for block in &problem.blocks {
        for row in 0..block.rows {
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                let j = problem.jacobian_of(block, row, k as u32);
                let inverse = &inverse[body as usize];
                for a in 0..6 {
                    for b in 0..6 {
                        diagonal[(block.row + row) as usize] += j[a] * inverse[6 * a + b] * j[b];
                    }
                }
            }
        }
    }
    diagonal
}

fn divide(inverse: &[[f64; 36]], q: &mut [f64]) {
    for (six, inverse) in q.chunks_exact_mut(6).zip(inverse) {
        let old: [f64; 6] = std::array::from_fn(|i| six[i]);
        for i in 0..6 {
            six[i] = (0..6).map(|j| inverse[6 * i + j] * old[j]).sum();
        }
    }
}

/// The whole of a nested solve for callers without a pipeline (tests, benches).
pub fn solve(
    nested: &mut CouplingLoop,
    problem: &RowProblem,
    grouping: &Grouping,
    solution: &mut Solution,
    settings: &CouplingSettings,
    executor: &impl Executor,
) -> SolveStats {
    nested.load(problem, grouping, &solution.labels, settings.as_published, executor);
    nested.coupling.run(settings, executor);
    nested.finish(problem, solution, 1e-9, !settings.as_published, executor)
}
