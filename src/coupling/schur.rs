//! Partitions and interface in turns, on index sets and not on impulses (000 Algorithm 1).
//!
//! ```text
//!     form        S_Γ, z_Γ from what every partition answers                       (24), (25)
//!     interface   S_Γ λ_Γ + z_Γ = w_Γ with bounds, by pivoting or by PGS-SM          (18)
//!     partitions  every partition finishes under λ_Γ, in parallel                    (16)
//!     settle      did anybody's index set change? if not, or k = k_max, it is done   (12)
//! ```
//!
//! Beyond the paper (its §8.2–8.3): a partition whose index set did not change is not asked again; a cycle of the
//! whole loop is seen by its checksum and answered by passes in which only one partition may change its mind; and a last
//! linear pass without pivoting makes interface and partitions agree where the loop was cut short.

use super::executor::Executor;
use super::interface::InterfaceProblem;
use crate::linalg::Kernels;
use crate::partition::Partition;
use crate::solver::auto::{Engine, Settings};
use crate::solver::system::PivotSystem;
use crate::solver::{Label, Method, Solution, index_sets, residual};

/// Passes after a cycle in which only one partition may change (p of 000 §5.3, one level up).
const SINGLE_PASSES: u32 = 5;

/// Slack of the free interface rows, relative to max(1, ‖z‖), that counts as none: a few hundred ε.
const REFINED: f64 = 1e-13;

/// Passes of refinement; each takes off several digits.
const MAX_REFINEMENTS: u32 = 4;

/// A partition and its last answers.
#[derive(Clone, Debug, Default)]
pub struct CoupledPartition<P> {
    /// Who sits here.
    pub partition: P,
    motion: Vec<f64>,
    response: Vec<f64>,
    impulse: Vec<f64>,
    needs_solve: bool,
    changed: bool,
}

/// How the loop is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CouplingSettings {
    /// Method of the interface solve: `Bpp`, `PgsSm`, `BppPcg` or `Pgcg`.
    pub interface: Method,
    /// k_max.
    pub max_iterations: u32,
    /// To the letter of the paper: no breaking of cycles, no last linear pass.
    pub as_published: bool,
}

/// The coupling loop and the partitions at its table.
#[derive(Clone, Debug)]
pub struct Coupling<P> {
    /// Partitions, in order.
    pub partitions: Vec<CoupledPartition<P>>,
    /// Interface impulses and index set.
    pub interface: Solution,
    problem: InterfaceProblem,
    compliance: Vec<f64>,
    d: Vec<f64>,
    engine: Engine,
    settings: Settings,
    seen: Vec<u64>,
    singles: u32,
    /// k.
    pub iterations: u32,
    /// Have the index sets repeated?
    pub settled: bool,
    /// Times the loop came back to index sets it had before.
    pub cycles: u32,
    /// Pivots of the interface.
    pub pivots: u32,
    /// Conjugate gradient iterations of the interface.
    pub inner_iterations: u64,
}

impl<P> Default for Coupling<P> {
    fn default() -> Self {
        Coupling {
            partitions: Vec::new(),
            interface: Solution::default(),
            problem: InterfaceProblem::default(),
            compliance: Vec::new(),
            d: Vec::new(),
            engine: Engine::default(),
            settings: Settings::default(),
            seen: Vec::new(),
            singles: 0,
            iterations: 0,
            settled: false,
            cycles: 0,
            pivots: 0,
            inner_iterations: 0,
        }
    }
}

impl<P: Partition + Send> Coupling<P> {
    /// A table with these partitions.
    pub fn new(partitions: impl IntoIterator<Item = P>) -> Self {
        Coupling {
            partitions: partitions.into_iter().map(CoupledPartition::new).collect(),
            ..Coupling::default()
        }
    }

    /// Arithmetic of the interface's factor.
    pub fn set_kernels(&mut self, kernels: Kernels) {
        self.problem.set_kernels(kernels);
    }

    /// Gives the interface its rows: C, d, bounds per row, and the index set to start from (none = all free).
    pub fn begin(&mut self, compliance: &[f64], d: &[f64], bounds: (&[f64], &[f64]), labels: &[Label]) {
        let m = d.len();
        self.compliance.clear();
        self.compliance.extend_from_slice(compliance);
        self.d.clear();
        self.d.extend_from_slice(d);
        self.problem.lo.clear();
        self.problem.lo.extend_from_slice(bounds.0);
        self.problem.hi.clear();
        self.problem.hi.extend(bounds.0.iter().zip(bounds.1).map(|(lo, hi)| hi.max(*lo)));
        self.interface.labels.clear();
        self.interface.labels.extend_from_slice(labels);
        index_sets::legalise(&mut self.interface.labels, &self.problem.lo, &self.problem.hi);
        self.interface.lambda.clear();
        self.interface.lambda.resize(m, 0.0);
        self.partitions.iter_mut().for_each(|seat| seat.needs_solve = true);
        self.seen.clear();
        self.singles = 0;
        (self.iterations, self.settled, self.cycles) = (0, false, 0);
        (self.pivots, self.inner_iterations) = (0, 0);
    }

    /// Asks the partitions that changed, and adds up S and z in the order of the table.
    pub fn form(&mut self, executor: &impl Executor) {
        executor.for_each(&mut self.partitions, |_, seat| {
            let m = seat.partition.handles().len();
            if std::mem::take(&mut seat.needs_solve) {
                seat.motion.resize(m, 0.0);
                seat.response.clear();
                seat.response.resize(m * m, 0.0);
                seat.partition.free_motion(&mut seat.motion);
                seat.partition.response(&mut seat.response);
            }
        });
        let m = self.d.len();
        self.problem.reset(m);
        for i in 0..m {
            self.problem.S[i * m + i] = self.compliance[i];
            self.problem.z[i] = self.d[i];
        }
        for seat in &self.partitions {
            let handles = seat.partition.handles();
            for (i, &row) in handles.iter().enumerate() {
                self.problem.z[row as usize] += seat.motion[i];
                let from = &seat.response[i * handles.len()..(i + 1) * handles.len()];
                let to = &mut self.problem.S[row as usize * m..(row as usize + 1) * m];
                for (&column, x) in handles.iter().zip(from) {
                    to[column as usize] += x;
                }
            }
        }
        self.problem.finish();
    }

    /// Solves the interface problem from its last index set.
    pub fn solve_interface(&mut self, settings: &CouplingSettings) {
        if self.d.is_empty() {
            return;
        }
        let Self { engine, problem, interface, settings: solve, .. } = self;
        let stats = if matches!(settings.interface, Method::BppPcg | Method::Pgcg) {
            let S = problem.matrix();
            engine.conjugate(settings.interface, problem, (&S, None), interface, solve)
        } else {
            engine.run(settings.interface, problem, interface, solve)
        };
        self.interface.lambda.clone_from(&self.engine.best.lambda);
        self.interface.labels.clone_from(&self.engine.best.labels);
        self.pivots += stats.pivots;
        self.inner_iterations += stats.inner_iterations;
    }

    /// Every partition finishes its step under the interface impulses.
    pub fn solve_partitions(&mut self, executor: &impl Executor) {
        let lambda = &self.interface.lambda;
        executor.for_each(&mut self.partitions, |_, seat| {
            seat.take(lambda);
            seat.changed = seat.partition.finish(&seat.impulse);
        });
    }

    /// Looks at the index sets; true when the loop is done.
    pub fn settle(&mut self, settings: &CouplingSettings) -> bool {
        self.iterations += 1;
        self.settled = !self.partitions.iter().any(|s| s.changed);
        if self.settled || self.iterations >= settings.max_iterations {
            return true;
        }
        if !settings.as_published {
            self.break_cycles();
        }
        for seat in &mut self.partitions {
            seat.needs_solve = seat.changed;
        }
        false
    }

    /// When the loop has been here before, one partition a pass changes and the others wait.
    fn break_cycles(&mut self) {
        let checksum = self.partitions.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, s| {
            (h ^ s.partition.checksum()).wrapping_mul(0x0000_0100_0000_01b3)
        });
        if self.singles == 0 && self.seen.contains(&checksum) {
            self.cycles += 1;
            self.singles = SINGLE_PASSES;
        }
        self.seen.push(checksum);
        if self.singles > 0 {
            self.singles -= 1;
            let chosen = (0..self.partitions.len())
                .map(|k| (k + self.iterations as usize) % self.partitions.len())
                .find(|&k| self.partitions[k].changed);
            for (k, seat) in self.partitions.iter_mut().enumerate() {
                if seat.changed && Some(k) != chosen {
                    seat.partition.revert();
                    seat.changed = false;
                }
            }
        }
    }

    /// One linear pass with all index sets as they are: impulses and velocities that belong together on both sides
    /// of the interface. They may leave their bounds where the index sets were not final.
    pub fn agree(&mut self, executor: &impl Executor) {
        for seat in &mut self.partitions {
            seat.needs_solve = true;
        }
        self.form(executor);
        let m = self.d.len();
        let (mut lambda, mut w) = (vec![0.0; m], vec![0.0; m]);
        self.problem.evaluate(&self.interface.labels, &mut lambda, &mut w);
        self.interface.lambda.clone_from(&lambda);
        executor.for_each(&mut self.partitions, |_, seat| {
            seat.take(&lambda);
            seat.partition.finish_linear(&seat.impulse);
        });
    }

    /// Takes round-off out of a settled interface: S is the difference of large numbers where partitions are stiff, and
    /// then λ_Γ has few digits. What the free interface rows still move by is solved away, index sets as they are.
    pub fn refine(&mut self, executor: &impl Executor) {
        let m = self.d.len();
        if m == 0 {
            return;
        }
        let free: Vec<bool> = self.interface.labels.iter().map(|&l| l == Label::Free).collect();
        let enough = REFINED * residual::scale(&self.problem.z);
        let (mut w, mut before) = (vec![0.0; m], f64::INFINITY);
        for pass in 0..MAX_REFINEMENTS {
            if !self.slack(executor, &mut w) {
                return;
            }
            let worst = (0..m).filter(|&i| free[i]).fold(0.0f64, |worst, i| worst.max(w[i].abs()));
            if worst <= enough || worst.is_nan() || worst > 0.5 * before {
                return;
            }
            before = worst;
            if pass == 0 {
                self.problem.factor(&free, None);
            }
            (0..m).filter(|&i| !free[i]).for_each(|i| w[i] = 0.0);
            self.problem.solve(&mut w);
            for (lambda, step) in self.interface.lambda.iter_mut().zip(&w) {
                *lambda -= step;
            }
            executor.for_each(&mut self.partitions, |_, seat| {
                seat.take(&w);
                seat.impulse.iter_mut().for_each(|step| *step = -*step);
                seat.partition.end_refinement(&seat.impulse);
            });
        }
    }

    /// w_Γ as the partitions move now; false if one of them does not refine.
    fn slack(&mut self, executor: &impl Executor, w: &mut [f64]) -> bool {
        executor.for_each(&mut self.partitions, |_, seat| {
            seat.motion.resize(seat.partition.handles().len(), 0.0);
            seat.changed = seat.partition.begin_refinement(&mut seat.motion);
            seat.needs_solve = true;
        });
        for i in 0..w.len() {
            w[i] = self.d[i] + self.compliance[i] * self.interface.lambda[i];
        }
        for seat in &self.partitions {
            for (&row, v) in seat.partition.handles().iter().zip(&seat.motion) {
                w[row as usize] += v;
            }
        }
        self.partitions.iter().all(|seat| seat.changed)
    }

    /// The whole loop, for callers without a pipeline.
    pub fn run(&mut self, settings: &CouplingSettings, executor: &impl Executor) {
        loop {
            self.form(executor);
            self.solve_interface(settings);
            self.solve_partitions(executor);
            if self.settle(settings) {
                return;
            }
        }
    }
}

impl<P: Partition> CoupledPartition<P> {
    /// A partition at the table.
    pub fn new(partition: P) -> Self {
        CoupledPartition {
            partition,
            motion: Vec::new(),
            response: Vec::new(),
            impulse: Vec::new(),
            needs_solve: true,
            changed: false,
        }
    }

    /// The impulses at its handles.
    pub(crate) fn take(&mut self, lambda: &[f64]) {
        let Self { partition, impulse, .. } = self;
        impulse.clear();
        impulse.extend(partition.handles().iter().map(|&row| lambda[row as usize]));
    }

    /// The impulses it last took.
    pub(crate) fn impulse(&self) -> &[f64] {
        &self.impulse
    }
}
