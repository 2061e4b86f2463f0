//! The loop of the interior point: when to step, to try the labels, to start anew, to stop.

use super::{IpmMemory, IpmSettings};
use crate::solver::bpp::Best;
use crate::solver::system::PivotSystem;

/// A run of the interior point from a cold start, which may be asked to go on.
///
/// The start guesses the size of the impulses from b. Jammed and nearly redundant rows answer with
/// impulses many decades larger; a step that finds this out leaves the neighbourhood of the central
/// path and the run starts again, once or twice, from impulses of that size.
#[derive(Clone, Debug)]
pub struct Run {
    first_mu: f64,
    scale: f64,
    restarts: u32,
    stall: Stall,
    /// Below this residual a worsening step is believed to be round-off.
    near: f64,
    /// Below this residual quiet labels are tried.
    try_below: f64,
    /// At this residual it comes back once for whoever asked for a rough answer.
    rough: f64,
    /// Below this residual an exact iterate is worth keeping.
    good: f64,
    /// Iterations so far.
    pub iterations: u32,
}

/// Why a run came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The residual reached the target.
    Arrived,
    /// The residual is as small as a rough answer needs; going on is possible.
    Rough,
    /// The labels may be final; going on is possible.
    Settled,
    /// Nothing more to be had: iterations spent, no progress, or numbers broke down.
    Spent,
}

impl Run {
    /// Places the starting point.
    pub fn new<S: PivotSystem>(system: &mut S, settings: &IpmSettings, memory: &mut IpmMemory) -> Self {
        memory.refined = settings.careful;
        memory.exact = settings.exact;
        memory.start(system, settings.start_margin, 0.0);
        let scale = system.scale();
        Run {
            first_mu: memory.mu(),
            scale,
            restarts: 0,
            stall: Stall::default(),
            near: NEAR * scale,
            try_below: settings.try_below * scale,
            rough: settings.rough * scale,
            good: if settings.exact { settings.good * scale } else { 0.0 },
            iterations: 0,
        }
    }

    /// Comes back at a relative residual of `rough`, once more.
    pub fn come_back_at(&mut self, rough: f64) {
        self.rough = rough * self.scale;
    }

    /// Iterates until there is something to say; then the point goes into `best` (which is not reset) with a residual
    /// computed from λ alone.
    pub fn proceed<S: PivotSystem>(
        &mut self,
        system: &mut S,
        settings: &IpmSettings,
        memory: &mut IpmMemory,
        best: &mut Best,
    ) -> Pause {
        let target = settings.target * self.scale;
        loop {
            let rough = self.rough;
            let pause = self.iterate(system, settings, memory, best, target);
            let told = memory.residual();
            let r = memory.offer(system, best);
            match pause {
                Pause::Rough | Pause::Settled if r > LEFT_BEHIND * told.max(target) => return Pause::Spent,
                // Rough directions let v and λ drift apart: what was told is not there yet.
                Pause::Rough if r > rough => {
                    memory.refined = true;
                    self.rough = rough;
                }
                Pause::Arrived if r > target => {
                    memory.refined = true;
                    return Pause::Settled;
                }
                _ => {
                    memory.refined |= r > 2.0 * told;
                    return pause;
                }
            }
        }
    }

    fn iterate<S: PivotSystem>(
        &mut self,
        system: &mut S,
        settings: &IpmSettings,
        memory: &mut IpmMemory,
        best: &mut Best,
        target: f64,
    ) -> Pause {
        loop {
            let mut r = memory.residual();
            if r <= self.good {
                // Where round-off ends the run, the last point is seldom the best one.
                self.good = 0.5 * r;
                r = memory.offer(system, best);
            }
            if r <= target {
                return Pause::Arrived;
            }
            if r <= self.rough {
                self.rough = 0.0;
                return Pause::Rough;
            }
            let mu = memory.mu();
            let vanished = !mu.is_finite() || (memory.bounds > 0 && mu <= 1e-40);
            if vanished || self.iterations >= settings.max_iterations || self.stall.is_over(r) {
                return Pause::Spent;
            }
            if self.looks_settled(r, memory) {
                return Pause::Settled;
            }
            self.iterations += 1;
            let Some((primal, dual)) = memory.newton_step(system, settings) else {
                return Pause::Spent;
            };
            // Close to the end a step that makes things worse may be round-off, and the labels at hand
            // be the right ones. Whoever goes on regardless hears of it again a decade further down.
            if r <= self.near && memory.worsens(primal, dual) {
                if !memory.refined {
                    memory.refined = true;
                    continue;
                }
                self.near = 0.1 * r;
                return Pause::Settled;
            }
            self.take_step(system, memory, mu, primal, dual);
        }
    }

    /// Have the labels hardly changed for an iteration, at a residual where that means something?
    ///
    /// One try per decade of the residual: each costs a factorization, and saves the last few if it hits.
    fn looks_settled(&mut self, r: f64, memory: &IpmMemory) -> bool {
        let quiet = memory.now.changes as f64 <= QUIET * memory.rows as f64;
        let settled = self.iterations > 2 && quiet && r <= self.try_below;
        if settled {
            self.try_below = 0.1 * r;
        }
        settled
    }

    /// Advances, or starts again from larger impulses if the step leaves the central path.
    fn take_step<S: PivotSystem>(
        &mut self,
        system: &mut S,
        memory: &mut IpmMemory,
        mu: f64,
        primal: f64,
        dual: f64,
    ) {
        let next = memory.mu_after(primal, dual);
        if next > LOST * mu.max(self.first_mu) && self.restarts < MAX_RESTARTS {
            self.restarts += 1;
            let size = memory.impulse_size(system, primal);
            memory.start(system, 1.0, size);
            self.first_mu = memory.mu();
            self.stall = Stall::default();
        } else {
            memory.advance(system, primal, dual);
        }
    }
}

/// Velocities that make the residual this much larger than it was told belong to no λ. The complementarity products are those of
/// the end already, and there is no way on from such a point.
const LEFT_BEHIND: f64 = 1e5;

/// A step that multiplies μ by this has left the central path for good.
const LOST: f64 = 1e3;

/// Relative residual below which a step that does not improve the point ends the run.
const NEAR: f64 = 1e-5;

/// Share of rows whose labels may still change when they are tried.
const QUIET: f64 = 0.003;

/// Starts beyond the first one.
const MAX_RESTARTS: u32 = 3;

/// Watches for the end of visible progress.
#[derive(Clone, Debug, Default)]
struct Stall {
    lowest: Option<f64>,
    since: u32,
}

impl Stall {
    /// No lower residual for twenty iterations.
    fn is_over(&mut self, r: f64) -> bool {
        if self.lowest.is_none_or(|lowest| r < 0.9 * lowest) {
            self.lowest = Some(r);
            self.since = 0;
        } else {
            self.since += 1;
        }
        self.since >= 20
    }
}
