//! Block principal pivoting and principal pivoting (003 Algorithm 1, 000 §5.3).
//!
//! Every row carries a label; the point of the labels is computed, every row that violates its label
//! changes it, until none does. A repeated index set (seen by its checksum) is answered by p single
//! pivots. The best point seen, by the natural residual of its projection, is what comes back:
//! pivoting may wander for ever, and then says so.

use super::Label;
use super::baselines::softening::{Softening, SofteningMemory};
use super::index_sets::{self, Tolerance};
use super::residual;
use super::system::PivotSystem;

/// Relative natural residual of a point that is far from any solution: eight orders above what runs aim for.
const FAR: f64 = 1e-3;

/// Which of the violating rows changes in a single pivot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SinglePivot {
    /// The row that violates most.
    #[default]
    Worst,
    /// The row of least index (Murty's rule: finite, slow).
    Least,
}

/// Settings of a pivoting run.
#[derive(Clone, Copy, Debug)]
pub struct PivotSettings {
    /// Most index sets to try (each is one factorization).
    pub max_pivots: u32,
    /// Single pivots after a repeated index set (p = 5 in the papers); `u32::MAX` makes every pivot
    /// single, which is principal pivoting.
    pub single_pivots: u32,
    /// Which row a single pivot changes.
    pub single: SinglePivot,
    /// Natural residual relative to max(1, ‖b‖) at which the run ends.
    pub target: f64,
    /// τ of the sign tests, relative like `target`, below it.
    pub tau: f64,
    /// Give up at the first pivot that leaves more than this share of the violators (1 = never).
    pub progress: f64,
    /// Adaptive regularisation of friction rows, if any: then the run may settle on a softened problem.
    pub softening: Option<Softening>,
    /// Give up when the first index set has more violators than this share of the rows plus two.
    pub first_share: f64,
}

impl Default for PivotSettings {
    fn default() -> Self {
        PivotSettings {
            max_pivots: 50,
            single_pivots: 5,
            single: SinglePivot::Worst,
            target: 1e-11,
            tau: 1e-13,
            progress: f64::INFINITY,
            first_share: 1.0,
            softening: None,
        }
    }
}

impl PivotSettings {
    /// Principal pivoting: one row at a time, least index, so that it ends.
    pub fn principal(max_pivots: u32) -> Self {
        PivotSettings {
            max_pivots,
            single_pivots: u32::MAX,
            single: SinglePivot::Least,
            ..PivotSettings::default()
        }
    }
}

/// Buffers of a pivoting run, kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct PivotMemory {
    lambda: Vec<f64>,
    w: Vec<f64>,
    clamped: Vec<f64>,
    slack: Vec<f64>,
    labels: Vec<Label>,
    violators: Vec<(u32, Label)>,
    seen: Vec<u64>,
    /// Friction rows softened in the last run.
    pub softening: SofteningMemory,
}

/// The best point of a run; λ lies within its bounds.
#[derive(Clone, Debug, Default)]
pub struct Best {
    /// λ, projected into the bounds.
    pub lambda: Vec<f64>,
    /// Labels it belongs to.
    pub labels: Vec<Label>,
    /// Its natural residual.
    pub residual: f64,
}

impl Best {
    /// Forgets the last problem.
    pub fn reset(&mut self) {
        self.residual = f64::INFINITY;
        self.lambda.clear();
        self.labels.clear();
    }

    /// Keeps a point if it is the best so far.
    pub fn offer(&mut self, lambda: &[f64], labels: &[Label], residual: f64) {
        if residual < self.residual || self.lambda.is_empty() {
            self.residual = residual;
            self.lambda.clear();
            self.lambda.extend_from_slice(lambda);
            self.labels.clear();
            self.labels.extend_from_slice(labels);
        }
    }
}

/// How a pivoting run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PivotOutcome {
    /// Did the residual reach the target?
    pub arrived: bool,
    /// Index sets tried.
    pub pivots: u32,
    /// Repeated index sets met.
    pub cycles: u32,
}

/// Pivots from `start`; the best point goes into `best` (which is not reset).
pub fn pivot<S: PivotSystem>(
    system: &mut S,
    start: &[Label],
    settings: &PivotSettings,
    memory: &mut PivotMemory,
    best: &mut Best,
) -> PivotOutcome {
    let n = system.rows();
    let scale = system.scale();
    let tolerance = Tolerance::new(settings.tau, scale);
    memory.labels.clear();
    memory.labels.extend_from_slice(start);
    index_sets::legalise(&mut memory.labels, system.lo(), system.hi());
    // All of these are written before they are read.
    for buffer in [&mut memory.lambda, &mut memory.w, &mut memory.clamped, &mut memory.slack] {
        buffer.resize(n, 0.0);
    }
    memory.seen.clear();
    memory.softening.reset(n);
    let mut outcome = PivotOutcome::default();
    let mut singles = if settings.single_pivots == u32::MAX { u32::MAX } else { 0 };
    let mut fewest = usize::MAX;
    while outcome.pivots < settings.max_pivots {
        if memory.softening.any() {
            let shift = memory.softening.shift();
            system.evaluate_softened(&memory.labels, shift, &mut memory.lambda, &mut memory.w);
        } else {
            system.evaluate(&memory.labels, &mut memory.lambda, &mut memory.w);
        }
        outcome.pivots += 1;
        if projected_residual(system, memory, best) <= settings.target * scale {
            outcome.arrived = true;
            break;
        }
        let PivotMemory { lambda, w, labels, violators, seen, .. } = memory;
        index_sets::violators(system, labels, lambda, w, tolerance, violators);
        let count = violators.len();
        // No violator and yet a residual: the linear solve is at its limit, pivoting cannot help.
        if count == 0 || (outcome.pivots == 1 && count as f64 > settings.first_share * n as f64 + 2.0) {
            break;
        }
        if fewest != usize::MAX && count as f64 > settings.progress * fewest as f64 {
            break;
        }
        fewest = fewest.min(count);
        let checksum = index_sets::checksum(labels);
        if singles == 0 && seen.contains(&checksum) {
            outcome.cycles += 1;
            singles = settings.single_pivots;
        }
        seen.push(checksum);
        if singles > 0 {
            if singles != u32::MAX {
                singles -= 1;
            }
            let (row, new) = choose(system, settings.single, memory);
            memory.labels[row] = new;
        } else {
            for &(row, new) in violators.iter() {
                labels[row as usize] = new;
            }
            if let Some(softening) = settings.softening {
                memory.softening.observe(softening, system.kind(), &memory.violators);
            }
        }
    }
    outcome
}

/// The row of a single pivot.
fn choose<S: PivotSystem>(system: &S, rule: SinglePivot, memory: &PivotMemory) -> (usize, Label) {
    let mut chosen = memory.violators[0];
    if rule == SinglePivot::Worst {
        let mut worst = -1.0;
        for &(row, new) in &memory.violators {
            let i = row as usize;
            let label = memory.labels[i];
            let size = index_sets::violation(system, i, label, memory.lambda[i], memory.w[i]);
            if size > worst {
                worst = size;
                chosen = (row, new);
            }
        }
    }
    (chosen.0 as usize, chosen.1)
}

/// Natural residual of the projected point, offered to `best`.
///
/// Where a slack costs a factorization of its own, points that are far outside of their bounds are measured where they are: nobody
/// arrives there.
fn projected_residual<S: PivotSystem>(system: &mut S, memory: &mut PivotMemory, best: &mut Best) -> f64 {
    let PivotMemory { lambda, w, clamped, slack, labels, .. } = memory;
    let (here, inside) = residual::natural_within(lambda, w, system.lo(), system.hi());
    if inside {
        best.offer(lambda, labels, here);
        return here;
    }
    clamped.copy_from_slice(lambda);
    index_sets::project(clamped, system.lo(), system.hi());
    let far = system.slack_is_costly() && here > FAR * system.scale();
    let r = if far {
        here
    } else {
        // `w` belongs to the point before the projection; the sign tests still need it.
        system.honest_slack(clamped, slack);
        residual::natural(clamped, slack, system.lo(), system.hi())
    };
    best.offer(clamped, labels, r);
    r
}
