//! The default: warm pivoting while it makes progress, else interior point with crossover.
//!
//! Pivoting settles in a few factorizations when little changed since the last step and fails on
//! most frames with several contact points per pair; interior point needs some fifteen and always
//! arrives. So: try the warm index set, go on as long as the violators fall, and remember whether
//! that worked.

use super::baselines::bpp_pcg::{InnerSettings, PcgSystem, PcgSystemMemory};
use super::baselines::pgcg::{self, PgcgMemory, PgcgSettings};
use super::baselines::pgs::{self, PgsMemory, PgsSettings};
use super::baselines::pgs_sm::{self, PgsSmSettings};
use super::baselines::softening::Softening;
use super::bpp::{self, Best, PivotMemory, PivotSettings};
use super::interior_point::{self, IpmMemory, IpmSettings, Pause};
use super::system::PivotSystem;
use super::{Label, Method, Solution, SolveStats};
use sprs::CsMat;

/// Settings of `auto` and of its parts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Relative natural residual at which a solve counts as converged.
    pub tolerance: f64,
    /// Relative natural residual the solvers aim for; below `tolerance`.
    pub target: f64,
    /// Warm pivots of `auto` before it turns to the interior point.
    pub warm_pivots: u32,
    /// Share of the violators that a warm pivot may leave without `auto` turning to the interior point.
    pub warm_progress: f64,
    /// Pivots of `bpp` on its own.
    pub max_pivots: u32,
    /// Sweeps of `pgs` (1,000 in 000 Table 1).
    pub max_sweeps: u32,
    /// Iterations of the interior point.
    pub max_iterations: u32,
    /// Linear solves of `bpp-pcg` and `pgcg`.
    pub inner: InnerSettings,
    /// Outer iterations of `bpp-pcg` and `pgcg`.
    pub max_outer: u32,
    /// Adaptive regularisation of friction rows in `bpp`, `bpp-pcg` and `pgcg` (003 Algorithm 9); off by
    /// default, because it solves a changed problem.
    pub softening: Option<Softening>,
    /// Pivots of the crossover from an interior point to an exact index set.
    pub crossover_pivots: u32,
    /// Rows from which on `auto` tries `pgcg` before the direct solver, where all rows are contacts and there are impulses
    /// of a last step to start from. By default never: the direct solver is faster at every size measured
    /// (`cargo bench --bench crossing`). It is worth setting where memory is short.
    pub gradients_from: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tolerance: 1e-9,
            target: 1e-11,
            warm_pivots: 8,
            warm_progress: 0.9,
            max_pivots: 50,
            max_sweeps: 1000,
            max_iterations: 60,
            inner: InnerSettings::default(),
            max_outer: 500,
            softening: None,
            crossover_pivots: 12,
            gradients_from: usize::MAX,
        }
    }
}

/// Buffers and memory of the solvers over a [`PivotSystem`].
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// The best point of the last solve.
    pub best: Best,
    pivots: PivotMemory,
    ipm: IpmMemory,
    pgs: PgsMemory,
    pcg: PcgSystemMemory,
    pgcg: PgcgMemory,
    /// An interior point that came back with a rough answer.
    paused: Option<interior_point::Run>,
    /// Did pivoting fail at the last attempt? Then it gets one look only.
    pub(super) pivoting_failed: bool,
}

impl Engine {
    /// Block pivoting from `start`.
    pub fn bpp<S: PivotSystem>(
        &mut self,
        system: &mut S,
        start: &[Label],
        settings: &Settings,
    ) -> SolveStats {
        self.best.reset();
        let pivot_settings = PivotSettings {
            max_pivots: settings.max_pivots,
            target: settings.target,
            softening: settings.softening,
            ..PivotSettings::default()
        };
        let outcome = bpp::pivot(system, start, &pivot_settings, &mut self.pivots, &mut self.best);
        SolveStats {
            pivots: outcome.pivots,
            softened_rows: self.pivots.softening.rows(),
            softening: self.pivots.softening.largest(),
            ..SolveStats::default()
        }
    }

    /// `bpp-pcg` or `pgcg`, with A for the preconditioner; see [`PcgSystem::new`] for `through_bodies`.
    pub fn conjugate<S: PivotSystem>(
        &mut self,
        method: Method,
        system: &mut S,
        a: (&CsMat<f64>, Option<usize>),
        start: &Solution,
        settings: &Settings,
    ) -> SolveStats {
        self.best.reset();
        self.paused = None;
        // Conjugate gradients end at their own tolerance; asking the outer loop for less is asking in vain.
        let target = settings.tolerance.max(2.0 * settings.inner.tolerance);
        let mut system = PcgSystem::new(system, a.0, a.1, settings.inner, &mut self.pcg);
        let mut stats = SolveStats::default();
        let softening = if method == Method::Pgcg {
            let outer = PgcgSettings {
                max_outer: settings.max_outer,
                target,
                tau: 0.1 * target,
                softening: settings.softening,
            };
            stats.pivots = pgcg::generalised(&mut system, start, &outer, &mut self.pgcg, &mut self.best);
            &self.pgcg.softening
        } else {
            let pivots = PivotSettings {
                max_pivots: settings.max_outer,
                target,
                tau: 0.1 * target,
                softening: settings.softening,
                ..PivotSettings::default()
            };
            let outcome = bpp::pivot(&mut system, &start.labels, &pivots, &mut self.pivots, &mut self.best);
            stats.pivots = outcome.pivots;
            &self.pivots.softening
        };
        stats.softened_rows = softening.rows();
        stats.softening = softening.largest();
        stats.inner_iterations = system.report().iterations;
        stats.imaginary_share = system.report().imaginary_share();
        stats
    }

    /// Interior point and crossover.
    pub fn ipm<S: PivotSystem>(&mut self, system: &mut S, settings: &Settings) -> SolveStats {
        self.best.reset();
        let mut stats = SolveStats::default();
        self.interior_then_crossover(system, settings, 0.0, &mut stats);
        stats
    }

    /// Projected Gauss–Seidel from `guess`.
    pub fn pgs<S: PivotSystem>(&mut self, system: &mut S, guess: &[f64], settings: &Settings) -> SolveStats {
        self.best.reset();
        let sweeps = PgsSettings { max_sweeps: settings.max_sweeps, ..PgsSettings::default() };
        let count = pgs::sweep_until(system, guess, &sweeps, &mut self.pgs, &mut self.best);
        SolveStats { pivots: count, ..SolveStats::default() }
    }

    /// Gauss–Seidel with subspace minimisation from `guess`.
    pub fn pgs_sm<S: PivotSystem>(
        &mut self,
        system: &mut S,
        guess: &[f64],
        settings: &Settings,
    ) -> SolveStats {
        self.best.reset();
        let subspaces = PgsSmSettings {
            max_solves: settings.max_pivots,
            target: settings.target,
            ..PgsSmSettings::default()
        };
        let count = pgs_sm::subspace_minimisation(system, guess, &subspaces, &mut self.pgs, &mut self.best);
        SolveStats { pivots: count, ..SolveStats::default() }
    }

    /// Warm pivoting, then interior point if that stalls.
    pub fn auto<S: PivotSystem>(
        &mut self,
        system: &mut S,
        start: &[Label],
        settings: &Settings,
    ) -> SolveStats {
        self.auto_roughly(system, start, settings, 0.0)
    }

    /// Like [`auto`](Self::auto), but an interior point may come back once its relative residual is below `rough`; then
    /// [`is_paused`](Self::is_paused), and [`go_on`](Self::go_on) takes the same problem to its end.
    pub fn auto_roughly<S: PivotSystem>(
        &mut self,
        system: &mut S,
        start: &[Label],
        settings: &Settings,
        rough: f64,
    ) -> SolveStats {
        self.best.reset();
        self.paused = None;
        let mut stats = SolveStats::default();
        let pivot_settings = PivotSettings {
            max_pivots: settings.warm_pivots,
            target: settings.target,
            progress: settings.warm_progress,
            first_share: if self.pivoting_failed { 0.05 } else { 1.0 },
            ..PivotSettings::default()
        };
        let warm = bpp::pivot(system, start, &pivot_settings, &mut self.pivots, &mut self.best);
        stats.pivots = warm.pivots;
        self.pivoting_failed = !warm.arrived;
        if !warm.arrived {
            self.interior_then_crossover(system, settings, rough, &mut stats);
        }
        stats
    }

    /// A problem was solved without these solvers: nothing of theirs goes on.
    pub(super) fn forget(&mut self, pivoting_failed: bool) {
        self.best.reset();
        self.paused = None;
        self.pivoting_failed = pivoting_failed;
    }

    /// Is the answer at hand a rough one?
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Takes the problem of a rough answer on to a relative residual of `rough`, or to its end (0).
    pub fn go_on<S: PivotSystem>(&mut self, system: &mut S, settings: &Settings, rough: f64) -> SolveStats {
        let mut stats = SolveStats::default();
        if let Some(mut run) = self.paused.take() {
            let before = run.iterations;
            run.come_back_at(rough);
            self.proceed(run, system, settings, &quick(settings, rough), &mut stats);
            stats.ipm_iterations -= before;
            if self.paused.is_none() {
                self.insist(system, settings, &mut stats);
            }
        }
        stats
    }

    /// Runs one method over a system; what it found is in `best`.
    ///
    /// The substructuring methods (`schur-*`, `fbic`) are driven by the coupling over partitions. Asked
    /// of a single problem they have nothing to couple and are answered by `auto`.
    pub fn run<S: PivotSystem>(
        &mut self,
        method: Method,
        system: &mut S,
        start: &Solution,
        settings: &Settings,
    ) -> SolveStats {
        self.run_roughly(method, system, start, settings, 0.0)
    }

    /// Like [`run`](Self::run), with [`auto_roughly`](Self::auto_roughly) in place of `auto`.
    pub fn run_roughly<S: PivotSystem>(
        &mut self,
        method: Method,
        system: &mut S,
        start: &Solution,
        settings: &Settings,
        rough: f64,
    ) -> SolveStats {
        self.paused = None;
        match method {
            Method::Bpp => self.bpp(system, &start.labels, settings),
            Method::Ipm | Method::SchurIpm => self.ipm(system, settings),
            Method::Pgs => self.pgs(system, &start.lambda, settings),
            Method::PgsSm => self.pgs_sm(system, &start.lambda, settings),
            _ => self.auto_roughly(system, &start.labels, settings, rough),
        }
    }

    /// Interior point; whenever its labels may be final, the exact point of those labels.
    ///
    /// A few pivots put degenerate rows right. The best residual wins, so a crossover can only help,
    /// and a failed one lets the interior point go on.
    fn interior_then_crossover<S: PivotSystem>(
        &mut self,
        system: &mut S,
        settings: &Settings,
        rough: f64,
        stats: &mut SolveStats,
    ) {
        let quick = quick(settings, rough);
        let run = interior_point::Run::new(system, &quick, &mut self.ipm);
        self.proceed(run, system, settings, &quick, stats);
        if self.paused.is_none() {
            self.insist(system, settings, stats);
        }
    }

    /// Where the quick way did not arrive: two slower ones, then whatever pivoting can do. One problem in some hundred
    /// thousand needs this.
    fn insist<S: PivotSystem>(&mut self, system: &mut S, settings: &Settings, stats: &mut SolveStats) {
        let enough = settings.tolerance * system.scale();
        let steady = IpmSettings {
            correctors: 2,
            centring: 1.0,
            try_below: 1e-3,
            exact: true,
            ..quick(settings, 0.0)
        };
        let careful = IpmSettings {
            careful: true,
            start_margin: 1e3,
            max_iterations: 2 * settings.max_iterations,
            ..steady
        };
        for slower in [steady, careful] {
            if self.best.residual <= enough {
                return;
            }
            let run = interior_point::Run::new(system, &slower, &mut self.ipm);
            self.proceed(run, system, settings, &slower, stats);
        }
        if self.best.residual > enough {
            self.last_resort(system, settings, stats);
        }
    }

    fn proceed<S: PivotSystem>(
        &mut self,
        mut run: interior_point::Run,
        system: &mut S,
        settings: &Settings,
        ipm_settings: &IpmSettings,
        stats: &mut SolveStats,
    ) {
        let scale = system.scale();
        let mut crossover = PivotSettings {
            max_pivots: 3.min(settings.crossover_pivots),
            target: 1e-3 * settings.target,
            progress: 1.0,
            ..PivotSettings::default()
        };
        loop {
            let pause = run.proceed(system, ipm_settings, &mut self.ipm, &mut self.best);
            if pause == Pause::Rough {
                stats.ipm_iterations += run.iterations;
                self.paused = Some(run);
                return;
            }
            if pause != Pause::Settled {
                crossover.max_pivots = settings.crossover_pivots;
            }
            let labels = self.ipm.labels();
            let polish = bpp::pivot(system, labels, &crossover, &mut self.pivots, &mut self.best);
            stats.pivots += polish.pivots;
            if self.best.residual <= settings.target * scale || pause != Pause::Settled {
                break;
            }
        }
        stats.ipm_iterations += run.iterations;
    }

    /// Pivoting at length from the best labels known.
    ///
    /// One row at a time first: the labels are nearly right by now, and where hundreds of rows hold a few bodies every row that
    /// changes turns the signs of many others, so that changing all violators at once leads away for good.
    fn last_resort<S: PivotSystem>(&mut self, system: &mut S, settings: &Settings, stats: &mut SolveStats) {
        let together = PivotSettings {
            max_pivots: settings.max_pivots,
            target: settings.target,
            ..PivotSettings::default()
        };
        let singly = PivotSettings {
            max_pivots: settings.max_pivots.max(SINGLE_PIVOTS.min(system.rows() as u32)),
            single_pivots: u32::MAX,
            ..together
        };
        let enough = settings.tolerance * system.scale();
        let start = self.best.labels.clone();
        for patient in [singly, together] {
            let outcome = bpp::pivot(system, &start, &patient, &mut self.pivots, &mut self.best);
            stats.pivots += outcome.pivots;
            if self.best.residual <= enough {
                return;
            }
        }
    }
}

/// Single pivots at most: random problems of up to 400 rows need no more than they have rows. A heap of some thousand rows would
/// take a factorization a row, minutes, and not arrive either.
const SINGLE_PIVOTS: u32 = 400;

/// The interior point as it is tried first.
fn quick(settings: &Settings, rough: f64) -> IpmSettings {
    IpmSettings {
        max_iterations: settings.max_iterations,
        target: settings.target,
        good: settings.tolerance,
        rough,
        ..IpmSettings::default()
    }
}
