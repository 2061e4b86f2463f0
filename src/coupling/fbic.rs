//! Force-based interface coupling (000 eqs. 16–17; Lacoursière 2007): the baseline.
//!
//! The interface knows only the bodies it touches: A_Γ = J_Γ M⁻¹ J_Γᵀ + C_Γ, moved by the partitions' impulses of the
//! last pass. Partitions and interface exchange impulses until they stop changing. Stiff partitions make that slow.

use super::executor::Executor;
use super::interface::InterfaceProblem;
use super::schur::CoupledPartition;
use crate::linalg::Kernels;
use crate::partition::Partition;
use crate::partition::rigid::RigidPartition;
use crate::solver::auto::{Engine, Settings};
use crate::solver::{Method, Solution, index_sets};

/// Passes of the loop (000 Table 1).
pub const MAX_ITERATIONS: u32 = 250;

/// Change of interface impulses, relative to their size, that counts as none.
const STILL: f64 = 1e-10;

/// The exchange of impulses.
#[derive(Clone, Debug, Default)]
pub struct ForceCoupling {
    problem: InterfaceProblem,
    base: Vec<f64>,
    v: Vec<f64>,
    local: Vec<f64>,
    last: Vec<f64>,
    engine: Engine,
    settings: Settings,
    /// Passes.
    pub iterations: u32,
    /// Did the impulses stop changing?
    pub settled: bool,
}

impl ForceCoupling {
    /// Arithmetic of the interface's factor.
    pub fn set_kernels(&mut self, kernels: Kernels) {
        self.problem.set_kernels(kernels);
    }

    /// Runs the exchange; `interface` starts it and holds the impulses in the end.
    pub fn run(
        &mut self,
        partitions: &mut [CoupledPartition<RigidPartition>],
        (compliance, d): (&[f64], &[f64]),
        (lo, hi): (&[f64], &[f64]),
        interface: &mut Solution,
        executor: &impl Executor,
    ) {
        let m = d.len();
        self.problem.reset(m);
        self.problem.lo = lo.to_vec();
        self.problem.hi = lo.iter().zip(hi).map(|(lo, hi)| hi.max(*lo)).collect();
        index_sets::legalise(&mut interface.labels, &self.problem.lo, &self.problem.hi);
        interface.lambda.resize(m, 0.0);
        self.bare_response(partitions, compliance);
        (self.iterations, self.settled) = (0, false);
        while self.iterations < MAX_ITERATIONS && !self.settled {
            let lambda = &interface.lambda;
            executor.for_each(partitions, |_, seat| {
                seat.take(lambda);
                let impulse = seat.impulse().to_vec();
                seat.partition.finish(&impulse);
            });
            self.iterations += 1;
            self.last.clone_from(&interface.lambda);
            self.read(partitions, (compliance, d), &interface.lambda);
            self.engine.run(Method::Bpp, &mut self.problem, interface, &self.settings);
            interface.lambda.clone_from(&self.engine.best.lambda);
            interface.labels.clone_from(&self.engine.best.labels);
            let size = interface.lambda.iter().fold(1e-300f64, |s, x| s.max(x.abs()));
            let change = interface.lambda.iter().zip(&self.last).map(|(a, b)| (a - b).abs());
            self.settled = change.fold(0.0f64, f64::max) <= STILL * size;
        }
        let lambda = &interface.lambda;
        executor.for_each(partitions, |_, seat| {
            seat.take(lambda);
            let impulse = seat.impulse().to_vec();
            seat.partition.finish(&impulse);
        });
    }

    /// A_Γ from the bodies at the interface alone.
    fn bare_response(&mut self, partitions: &[CoupledPartition<RigidPartition>], compliance: &[f64]) {
        let m = compliance.len();
        for (i, c) in compliance.iter().enumerate() {
            self.problem.S[i * m + i] = *c;
        }
        for seat in partitions {
            let (partition, handles) = (&seat.partition, seat.partition.handles());
            let n = 6 * partition.problem.bodies();
            let inverse: Vec<[f64; 36]> =
                (0..partition.problem.bodies()).map(|node| partition.problem.inverse_mass(node)).collect();
            let mut unit = vec![0.0; handles.len()];
            self.local.resize(handles.len(), 0.0);
            for (k, &column) in handles.iter().enumerate() {
                unit.fill(0.0);
                unit[k] = 1.0;
                self.v.clear();
                self.v.resize(n, 0.0);
                partition.seam().add_impulse(&unit, &mut self.v);
                divide(&inverse, &mut self.v);
                partition.seam().velocity(&self.v, &mut self.local);
                for (x, &row) in self.local.iter().zip(handles) {
                    self.problem.S[row as usize * m + column as usize] += x;
                }
            }
        }
        self.problem.finish();
    }

    /// z of (17): the interface velocity under the partitions' impulses, without its own.
    fn read(
        &mut self,
        partitions: &[CoupledPartition<RigidPartition>],
        (compliance, d): (&[f64], &[f64]),
        lambda: &[f64],
    ) {
        let m = d.len();
        self.base.clear();
        self.base.extend_from_slice(d);
        for seat in partitions {
            let (partition, handles) = (&seat.partition, seat.partition.handles());
            self.local.resize(handles.len(), 0.0);
            partition.seam().velocity(&partition.solution.v, &mut self.local);
            for (x, &row) in self.local.iter().zip(handles) {
                self.base[row as usize] += x;
            }
        }
        // v includes the interface impulses it was given; A_Γ − C_Γ takes them out again.
        for i in 0..m {
            let row = &self.problem.S[i * m..(i + 1) * m];
            let own: f64 = row.iter().zip(lambda).map(|(s, l)| s * l).sum();
            self.problem.z[i] = self.base[i] - own;
        }
        // S holds C as well, whose term is not part of J v.
        for (z, (c, l)) in self.problem.z.iter_mut().zip(compliance.iter().zip(lambda)) {
            *z += c * l;
        }
    }
}

fn divide(inverse: &[[f64; 36]], q: &mut [f64]) {
    for (six, inverse) in q.chunks_exact_mut(6).zip(inverse) {
        let old: [f64; 6] = std::array::from_fn(|i| six[i]);
        for i in 0..6 {
            six[i] = (0..6).map(|j| inverse[6 * i + j] * old[j]).sum();
        }
    }
}
