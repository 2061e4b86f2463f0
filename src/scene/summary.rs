//! What a run was like, as the report file tells it (SI units, times in milliseconds).

use super::judge::{Judge, Verdict};
use crate::Physics;
use crate::report::StepReport;
use crate::schedule::quantile;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Mean, median and 99th percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Size {
    /// Bodies, those of the world's anchor included.
    pub bodies: u32,
    /// Those of them that may move: dynamic and kinematic ones, the most in a step.
    pub moving: u32,
    /// Joints and users' constraints, the most in a step.
    pub joints: u32,
    /// Touching pairs, the most in a step.
    pub contacts_max: u32,
    /// Rows, mean over the steps.
    pub rows_mean: f64,
    /// Rows, the most in a step.
    pub rows_max: u32,
    /// Partitions, mean over the steps.
    pub partitions_mean: f64,
    /// Share of steps in which something was cut.
    pub cut: f64,
    /// Rows between partitions, mean over the steps.
    pub interface_rows_mean: f64,
}

/// Coupling iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Coupling {
    /// Mean over the steps.
    pub mean: f64,
    /// Most in a step.
    pub max: u32,
    /// Share of steps that reached the limit.
    pub at_limit: f64,
}

/// Pivots, interior-point iterations included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pivots {
    /// Mean over the steps.
    pub mean: f64,
    /// Most in a step.
    pub max: u32,
}

/// Conjugate gradients inside the pivoting solvers (003).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Conjugate {
    /// Iterations, mean over the steps.
    pub inner_mean: f64,
    /// Share of imaginary columns in the preconditioner, the largest of a step.
    pub imaginary_share: f64,
    /// Friction rows softened, the most in a step.
    pub softened_rows: u32,
}

/// Natural residual per step (000 eq. 29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Residual {
    /// Median over the steps.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Opening of bilateral joints (m, or rad × 1 m).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JointError {
    /// Root mean square over joints and steps.
    pub rms: f64,
    /// Largest.
    pub max: f64,
    /// Largest, with angles times the size of the smaller body instead of 1 m (m).
    pub gap_max: f64,
}

/// Depth of contacts (m).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Penetration {
    /// Mean over points and steps.
    pub mean: f64,
    /// Deepest.
    pub max: f64,
}

/// Kinetic and potential energy (J).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Energy {
    /// Before the first step.
    pub start: f64,
    /// After the last.
    pub end: f64,
    /// The most it rose above the start, 0 if it never did.
    pub max_gain: f64,
    /// Work of motors, winches, springs, kinematic bodies, users' forces and changes.
    pub work: f64,
    /// The most the energy rose above the start and the work until then, 0 if it never did.
    pub max_unexplained: f64,
}

/// One system's times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemTimes {
    #[serde(skip)]
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub calls: u64,
    /// Mean of a step.
    pub mean: f64,
    /// Median of a step.
    pub median: f64,
    /// 99th percentile of a step.
    pub p99: f64,
    /// All steps together.
    pub total: f64,
}

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of the program.
    pub turnbuckle: &'static str,
    /// Name of the scene.
    pub scene: String,
    /// Solver.
    pub solver: String,
    /// Partitioning.
    pub partition: String,
    /// Threads.
    pub threads: usize,
    /// Steps made.
    pub steps: u64,
    /// Step (s).
    pub dt: f64,
    /// Were all steps made?
    pub completed: bool,
    /// Why not, if not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Sizes.
    pub size: Size,
    /// Times per system, in the order in which they run.
    #[serde(serialize_with = "by_name")]
    pub systems: Vec<SystemTimes>,
    /// Times of whole steps.
    pub step: Spread,
    /// Times of the solve alone.
    pub solve: Spread,
    /// Coupling iterations.
    pub coupling: Coupling,
    /// Pivots.
    pub pivots: Pivots,
    /// Conjugate gradients.
    pub conjugate: Conjugate,
    /// Residual.
    pub residual: Residual,
    /// Joint error.
    pub joint_error: JointError,
    /// Penetration.
    pub penetration: Penetration,
    /// Energy.
    pub energy: Energy,
    /// Bodies in quarantine at the end.
    pub quarantined: u32,
    /// Steps in which a solve did not reach its tolerance.
    pub unconverged_steps: u64,
    /// Steps in which joints of a group could not be followed, and the group was held.
    pub held_steps: u64,
    /// Every body's pose and velocity bits, in body order.
    pub state_hash: String,
    /// What was watched, by `NAME.x` and so on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub watch: BTreeMap<String, Watched>,
    /// What became of the scene's promises.
    pub expectations: Vec<Promise>,
    /// The first troubles of the run, as sentences.
    pub troubles: Vec<String>,
}

/// A number that was watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Watched {
    /// Before the first step.
    pub start: f64,
    /// After the last.
    pub end: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Watched {
    /// Starts with a value.
    pub fn new(value: f64) -> Watched {
        Watched { start: value, end: value, min: value, max: value }
    }

    /// Takes another value in.
    pub fn see(&mut self, value: f64) {
        (self.end, self.min, self.max) = (value, self.min.min(value), self.max.max(value));
    }
}

/// What became of a promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promise {
    /// The promise, with the worst value seen.
    pub promise: String,
    /// Was it kept?
    pub kept: bool,
    /// Was the run long enough to tell?
    pub tested: bool,
    /// Time of the worst value (s).
    pub time: f64,
    /// The body of the worst value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl From<&Verdict> for Promise {
    fn from(v: &Verdict) -> Promise {
        Promise {
            promise: v.promise.clone(),
            kept: v.kept,
            tested: v.tested,
            time: v.time,
            body: v.body.clone(),
        }
    }
}

fn by_name<S: Serializer>(systems: &[SystemTimes], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(systems.len()))?;
    for system in systems {
        map.serialize_entry(&system.name, system)?;
    }
    map.end()
}

/// Adds up step reports.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    steps: u64,
    size: Size,
    sums: [f64; 6],
    joint_squares: f64,
    joint_steps: u64,
    contact_steps: u64,
    step_ms: Vec<f64>,
    solve_ms: Vec<f64>,
    residuals: Vec<f64>,
    coupling_max: u32,
    at_limit: u64,
    cut: u64,
    pivots_max: u32,
    conjugate: Conjugate,
    joint_max: f64,
    gap_max: f64,
    penetration_max: f64,
    energy: Energy,
    quarantined: u32,
    unconverged: u64,
    held: u64,
    troubles: Vec<String>,
}

impl Tally {
    /// Starts with the energy before the first step (J).
    pub fn new(start_energy: f64) -> Tally {
        let energy = Energy { start: start_energy, end: start_energy, ..Energy::default() };
        Tally { energy, ..Tally::default() }
    }

    /// Adds a step.
    pub fn add(&mut self, r: &StepReport) {
        self.steps += 1;
        self.size.bodies = self.size.bodies.max(r.bodies);
        self.size.moving = self.size.moving.max(r.moving);
        self.size.joints = self.size.joints.max(r.joints);
        self.size.contacts_max = self.size.contacts_max.max(r.contacts);
        self.size.rows_max = self.size.rows_max.max(r.rows);
        let counts = [r.rows, r.partitions, r.interface_rows, r.coupling_iterations, r.pivots].map(f64::from);
        for (sum, value) in self.sums.iter_mut().zip(counts.into_iter().chain([r.penetration_mean])) {
            *sum += value;
        }
        if r.joints > 0 {
            self.joint_squares += r.joint_error_rms * r.joint_error_rms;
            self.joint_steps += 1;
        }
        self.contact_steps += u64::from(r.contacts > 0);
        self.step_ms.push(r.step_ms);
        self.solve_ms.push(r.solve_ms);
        self.residuals.push(r.residual);
        self.coupling_max = self.coupling_max.max(r.coupling_iterations);
        self.at_limit += u64::from(r.coupling_at_limit);
        self.cut += u64::from(r.partitions > r.islands);
        self.pivots_max = self.pivots_max.max(r.pivots);
        self.conjugate.inner_mean += r.inner_iterations as f64;
        self.conjugate.imaginary_share = self.conjugate.imaginary_share.max(r.imaginary_share);
        self.conjugate.softened_rows = self.conjugate.softened_rows.max(r.softened_rows);
        self.joint_max = self.joint_max.max(r.joint_error_max);
        self.gap_max = self.gap_max.max(r.joint_gap_max);
        self.penetration_max = self.penetration_max.max(r.penetration_max);
        self.energy.end = r.kinetic + r.potential;
        let gain = self.energy.end - self.energy.start;
        self.energy.max_gain = self.energy.max_gain.max(gain);
        self.energy.work += r.work_done;
        self.energy.max_unexplained = self.energy.max_unexplained.max(gain - self.energy.work);
        self.quarantined = r.quarantined;
        self.unconverged += u64::from(!r.converged);
        self.held += u64::from(r.held > 0);
        for trouble in r.troubles.iter().take(20usize.saturating_sub(self.troubles.len())) {
            self.troubles.push(format!("step {}: {trouble}", r.step));
        }
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The report of the run so far.
    pub fn summary(
        &self,
        scene: &str,
        physics: &mut Physics,
        judge: &Judge,
        threads: usize,
        dt: f64,
        hash: u64,
    ) -> Summary {
        let n = self.steps.max(1) as f64;
        let mean = |i: usize| self.sums[i] / n;
        let systems = physics.timings().into_iter().map(|t| SystemTimes {
            name: t.name,
            calls: t.calls,
            mean: t.mean,
            median: t.median,
            p99: t.p99,
            total: t.total,
        });
        let mut residuals = self.residuals.clone();
        residuals.sort_by(f64::total_cmp);
        Summary {
            turnbuckle: env!("CARGO_PKG_VERSION"),
            scene: scene.to_string(),
            solver: physics.settings.method.name().to_string(),
            partition: physics.settings.partitioning.to_string(),
            threads,
            steps: self.steps,
            dt,
            completed: true,
            reason: String::new(),
            size: Size {
                rows_mean: mean(0),
                partitions_mean: mean(1),
                cut: self.cut as f64 / n,
                interface_rows_mean: mean(2),
                ..self.size.clone()
            },
            systems: systems.collect(),
            step: spread(&self.step_ms),
            solve: spread(&self.solve_ms),
            coupling: Coupling { mean: mean(3), max: self.coupling_max, at_limit: self.at_limit as f64 / n },
            pivots: Pivots { mean: mean(4), max: self.pivots_max },
            conjugate: Conjugate { inner_mean: self.conjugate.inner_mean / n, ..self.conjugate },
            residual: Residual {
                median: quantile(&residuals, 0.5),
                p99: quantile(&residuals, 0.99),
                max: residuals.last().copied().unwrap_or(0.0),
            },
            joint_error: JointError {
                rms: (self.joint_squares / self.joint_steps.max(1) as f64).sqrt(),
                max: self.joint_max,
                gap_max: self.gap_max,
            },
            penetration: Penetration {
                mean: self.sums[5] / self.contact_steps.max(1) as f64,
                max: self.penetration_max,
            },
            energy: self.energy,
            quarantined: self.quarantined,
            unconverged_steps: self.unconverged,
            held_steps: self.held,
            state_hash: format!("{hash:016x}"),
            watch: BTreeMap::new(),
            expectations: judge.verdicts().iter().map(Promise::from).collect(),
            troubles: self.troubles.clone(),
        }
    }
}

fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    Spread { mean, median: quantile(&sorted, 0.5), p99: quantile(&sorted, 0.99) }
}
