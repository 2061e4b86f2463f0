//! Gauss–Seidel with subspace minimisation (Silcowitz et al. 2010; 000 §5.1).
//!
//! A few sweeps find the index set, a real linear solve on the free rows follows; rows that leave their
//! bounds are projected and tightened for another solve or two, and the sweeps begin again from there.

use super::pgs::PgsMemory;
use crate::solver::Label;
use crate::solver::bpp::Best;
use crate::solver::index_sets;
use crate::solver::system::PivotSystem;

/// Settings of the method.
#[derive(Clone, Copy, Debug)]
pub struct PgsSmSettings {
    /// Most linear solves (50 in 000 Table 1).
    pub max_solves: u32,
    /// Sweeps before each subspace.
    pub sweeps: u32,
    /// Solves per subspace: rows that leave their bounds are tightened in between.
    pub solves_per_subspace: u32,
    /// Natural residual relative to max(1, ‖b‖) at which it ends.
    pub target: f64,
}

impl Default for PgsSmSettings {
    fn default() -> Self {
        PgsSmSettings { max_solves: 50, sweeps: 10, solves_per_subspace: 3, target: 1e-11 }
    }
}

/// Runs from `guess`; returns the number of linear solves. The best point goes into `best`.
pub fn subspace_minimisation<S: PivotSystem>(
    system: &mut S,
    guess: &[f64],
    settings: &PgsSmSettings,
    memory: &mut PgsMemory,
    best: &mut Best,
) -> u32 {
    let enough = settings.target * system.scale();
    memory.start(system, guess);
    let mut solves = 0;
    loop {
        if memory.offer(system, best) <= enough || solves >= settings.max_solves {
            return solves;
        }
        for _ in 0..settings.sweeps {
            system.sweep(&mut memory.lambda);
        }
        memory.label_by_bounds(system);
        for _ in 0..settings.solves_per_subspace {
            let PgsMemory { lambda, w, labels } = &mut *memory;
            system.evaluate(labels, lambda, w);
            solves += 1;
            if !tighten(system, lambda, labels) || solves >= settings.max_solves {
                break;
            }
        }
        index_sets::project(&mut memory.lambda, system.lo(), system.hi());
    }
}

/// Labels free rows outside their bounds as tight; did any row change?
fn tighten<S: PivotSystem>(system: &S, lambda: &[f64], labels: &mut [Label]) -> bool {
    let mut changed = false;
    for i in 0..lambda.len() {
        if labels[i] == Label::Free {
            if lambda[i] < system.lo()[i] {
                labels[i] = Label::Lower;
                changed = true;
            } else if lambda[i] > system.hi()[i] {
                labels[i] = Label::Upper;
                changed = true;
            }
        }
    }
    changed
}
