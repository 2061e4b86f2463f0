//! Islands of few rows share their solvers.
//!
//! A solver holds some 40 kB of pattern, factor and buffers. Two thousand boxes apart with one each fetch all of that from memory in
//! every step; one solver a pattern stays in the cache, and a pattern that comes back is not analysed again. What a solver
//! remembers decides no bits, but for [`pivoting_failed`](crate::solver::row_solver::Solver::pivoting_failed), which stays with
//! the island. So each thread may have a shelf of its own.

use crate::solver::{Label, RowProblem, RowSolver, Solution};
use crate::state::Island;
use std::cell::RefCell;

/// Islands with as many rows have solvers of their own: what they hold is small beside what they compute, and only they are solved
/// roughly, which leaves the solver something to go on with.
pub(super) const MANY: usize = 100;

/// Patterns on a shelf. Islands that find it full use their own solvers.
const PLACES: usize = 64;

/// Uses of a shelf after which a pattern that none of them asked for makes room.
const FORGOTTEN: u64 = 1 << 14;

#[derive(Default)]
struct Shelf {
    solvers: Vec<(Box<RowSolver>, u64)>,
    uses: u64,
    bounded: Vec<bool>,
}

thread_local! {
    static SHELF: RefCell<Shelf> = RefCell::default();
}

/// Does something with the solver of an island that is not cut: one that it shares, or its own. `frozen`: are the bounds of its rows
/// laid aside? The order of elimination depends on which blocks have bounds, and is to be the same with and without.
pub(super) fn with_solver<R>(
    island: &mut Island,
    frozen: bool,
    solve: impl FnOnce(&mut RowSolver, &RowProblem, &mut Solution) -> R,
) -> R {
    let Island { problem, solver: own, solution, rows, bounds, .. } = island;
    if rows.len() >= MANY {
        return solve(own, problem, solution);
    }
    SHELF.with(|shelf| {
        let Ok(mut shelf) = shelf.try_borrow_mut() else { return solve(own, problem, solution) };
        let Shelf { bounded, .. } = &mut *shelf;
        mark_bounded(problem, frozen.then_some(&bounds[..]), bounded);
        let Some(shared) = shelf.find(own, problem) else {
            own.linear_mut().prepare(problem, &shelf.bounded);
            return solve(own, problem, solution);
        };
        shared.remember(own);
        let answer = solve(shared, problem, solution);
        own.remember(shared);
        answer
    })
}

/// Which blocks have rows with bounds: those of the problem, or those that were laid aside.
fn mark_bounded(problem: &RowProblem, aside: Option<&[(f64, f64, Label)]>, bounded: &mut Vec<bool>) {
    let has_bounds = |row: usize| {
        let (lo, hi) = aside.map_or((problem.lo[row], problem.hi[row]), |aside| (aside[row].0, aside[row].1));
        lo.is_finite() || hi.is_finite()
    };
    let rows = problem.blocks.iter().map(|block| block.row as usize..(block.row + block.rows) as usize);
    bounded.clear();
    bounded.extend(rows.map(|mut rows| rows.any(has_bounds)));
}

impl Shelf {
    /// The solver that knows the pattern of a problem, or one that has just learnt it.
    fn find(&mut self, own: &RowSolver, problem: &RowProblem) -> Option<&mut RowSolver> {
        self.uses += 1;
        let (now, options) = (self.uses, own.options());
        let Shelf { solvers, bounded, .. } = self;
        let known = solvers
            .iter()
            .position(|(solver, _)| solver.options() == options && solver.linear().knows(problem, bounded));
        let place = known.or_else(|| {
            if solvers.len() < PLACES {
                solvers.push(Default::default());
                return Some(solvers.len() - 1);
            }
            solvers.iter().position(|(_, used)| now - used > FORGOTTEN)
        })?;
        let (solver, used) = &mut solvers[place];
        *used = now;
        if known.is_none() {
            solver.set_options(options);
            solver.linear_mut().prepare(problem, bounded);
        }
        Some(solver)
    }
}
