//! The coupling loop (000 Algorithm 1). Islands that are not cut, and those whose partitions serve as one linear solver,
//! are done in its first pass; the others go round until their index sets repeat.

use super::chord::pass::State;
use super::contacts::{
    friction_shift, has_open_friction, let_open_friction_slide, renew_friction_bounds, unbounded_friction,
};
use super::parallel::{Parallel, for_each};
use super::shelf::{MANY, with_solver};
use super::solve::bring_back;
use crate::coupling::cut::Seam;
use crate::coupling::schur::CouplingSettings;
use crate::schedule::Step;
use crate::settings::Settings;
use crate::solver::{Method, RowKind, SolveStats};
use crate::state::{Island, Rows, Scheme, Work};
use rayon::prelude::*;

/// What is worked on at once: cut islands and large ones one after another, each on all threads; the others side by side.
fn nested(islands: &mut [Box<Island>]) -> impl Iterator<Item = &mut Box<Island>> {
    islands.iter_mut().filter(|i| i.cut.running && i.cut.scheme == Scheme::CouplingLoop)
}

/// How the coupling loop goes round under these settings.
pub fn coupling_settings(settings: &Settings) -> CouplingSettings {
    let interface = if settings.method == Method::SchurPgsSm { Method::PgsSm } else { Method::Bpp };
    CouplingSettings {
        interface: settings.coupling.interface_solver.unwrap_or(interface),
        max_iterations: settings.coupling.max_iterations.max(1),
        as_published: settings.coupling.as_published,
    }
}

/// Threads that share a solve at most: beyond that interfaces grow faster than parts shrink.
pub(super) const HELPED: usize = 8;

/// Is it worked on by several threads? Then such islands go one after another.
pub(super) fn is_shared(island: &Island) -> bool {
    island.cut.scheme == Scheme::Substructured
}

/// Threads that wait awake for the solves of an island.
fn awake(island: &Island) -> usize {
    match island.cut.scheme == Scheme::Substructured && island.cut.linear {
        true => island.cut.grouping.count as usize,
        false => 1,
    }
}

/// Does the work of a step with as many threads awake as an island without bounds has partitions: where there was one in the step
/// before, there will be one again, solved several times. Such scenes are joints, and what else they could do at once is over sooner
/// on one thread: the numbers are needed there right afterwards.
pub(crate) fn with_helpers<R: Send>(work: &mut Work, step: impl FnOnce(&mut Work) -> R + Send) -> R {
    let threads = work.islands.iter().map(|i| awake(i)).max().unwrap_or(1);
    let crew = work.crew.share();
    crew.loosely_together(threads.min(HELPED), || step(work))
}

/// Hands the numbers of the step to the partitions of stale islands; they take their rows, masses and index sets.
pub fn load_partitions(step: &mut Step<'_>) {
    let settings = step.settings;
    for island in step.work.islands.iter_mut().filter(|i| i.needs_solve) {
        island.needs_solve = false;
        island.chord.state = State::Idle;
        let cut = &mut island.cut;
        (cut.running, cut.iterations, cut.at_limit) = (true, 0, false);
        cut.friction_passes = settings.tuning.friction_passes;
        island.stats = SolveStats::default();
        island.set_options(settings.solver_options());
        let cut = &mut island.cut;
        match cut.scheme {
            Scheme::Monolithic => {}
            Scheme::Substructured => {
                let flat = cut.substructured.get_or_insert_default();
                flat.set_method(settings.method);
                flat.linear_mut().set_grouping(&cut.grouping, Seam::Bodies);
            }
            Scheme::CouplingLoop => load_nested(island, settings),
        }
    }
}

fn load_nested(island: &mut Island, settings: &Settings) {
    let nested = island.cut.coupling_loop.get_or_insert_default();
    nested.set_inside(settings.coupling.partition_solver, settings.coupling.partition_solver_rows);
    nested.load(
        &island.problem,
        &island.cut.grouping,
        &island.solution.labels,
        settings.coupling.as_published,
        &Parallel,
    );
}

/// S_Γ and z_Γ from the partitions whose index set changed (24), (25).
pub fn form_schur_complement(step: &mut Step<'_>) {
    if step.settings.method == Method::Fbic {
        return;
    }
    for island in nested(&mut step.work.islands) {
        if let Some(nested) = &mut island.cut.coupling_loop {
            nested.coupling().form(&Parallel);
        }
    }
}

/// λ_Γ from the interface problem (18).
pub fn solve_interface(step: &mut Step<'_>) {
    let settings = coupling_settings(step.settings);
    if step.settings.method == Method::Fbic {
        return;
    }
    for island in nested(&mut step.work.islands) {
        if let Some(nested) = &mut island.cut.coupling_loop {
            nested.coupling().solve_interface(&settings);
        }
    }
}

/// Every partition's own rows under λ_Γ (16); everything there is to do for islands that do not go round.
pub fn solve_partitions(step: &mut Step<'_>) {
    let settings = step.settings;
    for island in nested(&mut step.work.islands) {
        let Some(nested) = &mut island.cut.coupling_loop else { continue };
        match settings.method {
            Method::Fbic => nested.exchange_forces(&Parallel),
            _ => nested.coupling().solve_partitions(&Parallel),
        }
    }
    let work = &mut *step.work;
    let rows = &work.rows;
    let once = |i: &&mut Box<Island>| i.cut.running && i.cut.scheme != Scheme::CouplingLoop;
    for island in work.islands.iter_mut().filter(|i| once(i) && is_shared(i)) {
        solve_at_once(island, rows, settings);
    }
    let mut whole: Vec<&mut Box<Island>> =
        work.islands.iter_mut().filter(|i| once(i) && !is_shared(i)).collect();
    for_each(whole.par_iter_mut(), |island| solve_at_once(island, rows, settings));
}

/// Relative residual at which normal impulses are good enough to bound friction by them: a ten-thousandth of a body's weight
/// in a pile, where the normal impulses themselves shift by percents when friction is bounded.
const BOUNDING: f64 = 1e-3;

/// Relative residual at which velocities are good enough to look where they lead: a tenth of what contacts may overlap by.
const LEADING: f64 = 1e-4;

/// Solves an island, again while its friction bounds do not belong to its normal impulses and it matters. What only tells
/// the next problem (friction bounds, how joints bend, rows of surfaces that would overlap) is not taken to its end; see
/// [`bound_friction`] and [`finish_solves`].
fn solve_at_once(island: &mut Island, rows: &Rows, settings: &Settings) {
    let before = island.stats;
    let worthwhile = island.rows.len() >= MANY;
    let open = worthwhile && settings.tuning.friction_passes > 0 && has_open_friction(island, rows);
    let bends = worthwhile && settings.tuning.refine > 0 && !is_pile(island) && has_bends(island, rows);
    let rough = if open || bends { BOUNDING } else { end_of(island, settings) };
    island.stats = solve_roughly(island, settings, rough);
    add_counts(&mut island.stats, &before);
    island.friction_solves = 0;
    if open && has_bends(island, rows) && sticks_violently(island, rows) {
        let_open_friction_slide(island, rows);
        let sticking = island.stats;
        island.stats = solve_roughly(island, settings, rough);
        add_counts(&mut island.stats, &sticking);
        island.friction_solves = 1;
    }
    island.cut.running = false;
    island.cut.iterations = 1;
    island.position_level = bends && is_rough(island);
    if !island.position_level {
        let solved = if open || bends { Solved::Roughly } else { Solved::Now };
        bound_friction(island, rows, settings, solved);
    }
}

/// So many times all the momentum of an island is more than friction can take from it, by whatever levers.
const VIOLENT: f64 = 30.0;

/// Does friction that no normal impulse bounds push with many times the momentum there is? Points that must stick while joints and
/// stops hold their bodies the other way have no common motion: impulses of 10⁶ N·s fight over micrometres, and bounds taken from such
/// normal impulses bound nothing.
fn sticks_violently(island: &mut Island, rows: &Rows) -> bool {
    let most = unbounded_friction(island, rows);
    let momentum = |p: &[f64; 6]| p[..3].iter().map(|x| x * x).sum::<f64>().sqrt();
    most > VIOLENT * island.problem.momentum.iter().map(momentum).sum::<f64>()
}

fn has_bends(island: &Island, rows: &Rows) -> bool {
    island.rows.iter().any(|&row| rows.position_level[row as usize])
}

/// Relative residual at which the first solves of an island end.
fn end_of(island: &Island, settings: &Settings) -> f64 {
    let looks = island.rows.len() >= MANY && settings.tuning.contact_passes > 0 && is_pile(island);
    if looks { LEADING } else { 0.0 }
}

/// What an island's impulses are those of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Solved {
    /// Its problem as it is.
    Now,
    /// The same, but only to [`BOUNDING`].
    Roughly,
    /// Its problem as it was before it changed.
    Before,
}

/// Bounds friction by the normal impulses at hand and solves again, while it matters.
pub(super) fn bound_friction(island: &mut Island, rows: &Rows, settings: &Settings, mut solved: Solved) {
    let end = end_of(island, settings);
    let passes = settings.tuning.friction_passes.max(u32::from(solved == Solved::Before));
    for _ in 0..passes {
        let renewed = settings.tuning.friction_passes > 0 && renew_friction_bounds(island, rows, settings);
        if !renewed && solved != Solved::Before {
            break;
        }
        let before = island.stats;
        island.stats = solve_roughly(island, settings, end);
        add_counts(&mut island.stats, &before);
        island.friction_solves += u32::from(solved != Solved::Before);
        solved = Solved::Now;
    }
    if solved == Solved::Roughly {
        go_on(island, end);
    }
    island.friction_shift = friction_shift(island, rows);
}

fn is_rough(island: &Island) -> bool {
    match (island.cut.scheme, &island.cut.substructured) {
        (Scheme::Substructured, Some(flat)) => flat.is_rough(),
        (Scheme::Monolithic, _) => island.solver.is_rough(),
        _ => false,
    }
}

/// Does it consist of contacts, but for a few rows? Joints are followed by what they carry before anybody looks ahead.
fn is_pile(island: &Island) -> bool {
    let joints = island.problem.kind.iter().filter(|k| **k == RowKind::Joint).count();
    20 * joints <= island.rows.len()
}

/// Takes an island on to a relative residual of `rough`, or to the end (0), if it has only been solved roughly.
fn go_on(island: &mut Island, rough: f64) {
    let before = island.stats;
    let Island { problem, solver, solution, cut, .. } = island;
    island.stats = match (cut.scheme, &mut cut.substructured) {
        (Scheme::Substructured, Some(flat)) if flat.is_rough() => {
            flat.linear().executor().share().together(HELPED, || flat.go_on(problem, solution, rough))
        }
        (Scheme::Monolithic, _) if solver.is_rough() => solver.go_on(problem, solution, rough),
        _ => return,
    };
    add_counts(&mut island.stats, &before);
}

/// Takes every island to the end of its solve, once it is known that its problem is the last one.
pub fn finish_solves(step: &mut Step<'_>) {
    let Work { islands, bodies, rows, .. } = &mut *step.work;
    let r = &*rows;
    let mut open: Vec<&mut Box<Island>> = islands.iter_mut().filter(|i| is_rough(i)).collect();
    let finish = |island: &mut Island| {
        go_on(island, 0.0);
        island.friction_shift = friction_shift(island, r);
    };
    open.iter_mut().filter(|i| is_shared(i)).for_each(|i| finish(i));
    for_each(open.par_iter_mut(), |i| {
        if !is_shared(i) {
            finish(i);
        }
    });
    for island in open {
        bring_back(island, bodies, rows);
    }
}

/// Solves an island whose rows all keep their sides: one linear solve. What the solver remembers of pivoting is left alone.
pub(super) fn solve_linear(island: &mut Island, settings: &Settings) -> SolveStats {
    let Island { problem, solution, cut, .. } = island;
    if let (Scheme::Substructured, Some(flat)) = (cut.scheme, &mut cut.substructured) {
        flat.set_method(Method::Bpp);
        let stats = flat.linear().executor().share().together(HELPED, || flat.solve(problem, solution));
        flat.set_method(settings.method);
        return stats;
    }
    with_solver(island, true, |solver, problem, solution| {
        solver.set_method(Method::Bpp);
        solver.solve(problem, solution)
    })
}

pub(super) fn solve_once(island: &mut Island, settings: &Settings) -> SolveStats {
    solve_roughly(island, settings, 0.0)
}

/// Solves an island down to a relative residual of `rough`, if that saves work; see [`go_on`].
fn solve_roughly(island: &mut Island, settings: &Settings, rough: f64) -> SolveStats {
    let Island { problem, solver, solution, cut, .. } = island;
    if let (Scheme::Substructured, Some(flat)) = (cut.scheme, &mut cut.substructured) {
        // One memory of whether pivoting works, whichever way the island is cut; snapshots know the whole's.
        flat.set_pivoting_failed(solver.pivoting_failed());
        let crew = flat.linear().executor().share();
        let stats = crew.together(HELPED, || flat.solve_roughly(problem, solution, rough));
        solver.set_pivoting_failed(flat.pivoting_failed());
        return stats;
    }
    let method = match settings.method {
        // What is too small to be cut is solved as the partitions would be.
        Method::SchurBpp | Method::SchurPgsSm | Method::Fbic if settings.coupling.as_published => Method::Bpp,
        method => method.of_whole(),
    };
    with_solver(island, false, |solver, problem, solution| {
        solver.set_method(method);
        solver.solve_roughly(problem, solution, rough)
    })
}

fn add_counts(stats: &mut SolveStats, before: &SolveStats) {
    stats.pivots += before.pivots;
    stats.ipm_iterations += before.ipm_iterations;
    stats.factorizations += before.factorizations;
    stats.inner_iterations += before.inner_iterations;
    stats.imaginary_share = stats.imaginary_share.max(before.imaginary_share);
}

/// Have the index sets repeated, or is k at its limit? Then the island is put together, and done unless its friction
/// bounds ask for another round (12).
pub fn update_index_sets(step: &mut Step<'_>) {
    let (settings, coupling) = (step.settings, coupling_settings(step.settings));
    let work = &mut *step.work;
    let rows = &work.rows;
    for island in work.islands.iter_mut().filter(|i| i.cut.running && i.cut.scheme == Scheme::CouplingLoop) {
        let Some(nested) = &mut island.cut.coupling_loop else { continue };
        let force = settings.method == Method::Fbic;
        if !force && !nested.coupling().settle(&coupling) {
            continue;
        }
        let (iterations, settled) = nested.outcome();
        island.cut.iterations = island.cut.iterations.max(iterations);
        island.cut.at_limit |= !settled;
        let tolerance = island.solver.settings.tolerance;
        let agree = !settings.coupling.as_published && !force;
        let before = island.stats;
        island.stats = nested.finish(&island.problem, &mut island.solution, tolerance, agree, &Parallel);
        add_counts(&mut island.stats, &before);
        if island.cut.friction_passes > 0 && renew_friction_bounds(island, rows, settings) {
            island.cut.friction_passes -= 1;
            load_nested(island, settings);
        } else {
            island.friction_shift = friction_shift(island, rows);
            island.cut.running = false;
        }
    }
}

/// Is every island done?
pub fn index_sets_settled(step: &Step<'_>) -> bool {
    step.work.islands.iter().all(|i| !i.cut.running)
}
