//! Islands of few rows share their solvers.
//!
//! A solver holds some 40 kB of pattern, factor and buffers. Two thousand boxes apart with one each fetch all of that from memory in
//! every step; one solver a pattern stays in the cache, and a pattern that comes back is not analysed again. What a solver
//! remembers decides no bits, but for [`pivoting_failed`](crate::solver::row_solver::Solver::pivoting_failed), which stays with
//! the island. So each thread may have a shelf of its own.

use crate::solver::mixed::InterfaceRows;
use crate::solver::{RowProblem, RowSolver, Solution};
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
}

thread_local! {
    static SHELF: RefCell<Shelf> = RefCell::default();
}

/// Does something with the solver of an island that is not cut: one that it shares, or its own.
pub(super) fn with_solver<R>(
    island: &mut Island,
    solve: impl FnOnce(&mut RowSolver, &RowProblem, &mut Solution) -> R,
) -> R {
    let Island { problem, solver: own, solution, rows, .. } = island;
    if rows.len() >= MANY {
        return solve(own, problem, solution);
    }
    SHELF.with(|shelf| {
        let mut shelf = shelf.try_borrow_mut().ok();
        match shelf.as_mut().and_then(|shelf| shelf.find(own, problem)) {
            Some(shared) => {
                shared.remember(own);
                let answer = solve(shared, problem, solution);
                own.remember(shared);
                answer
            }
            None => solve(own, problem, solution),
        }
    })
}

impl Shelf {
    /// The solver that knows the pattern of a problem, or one that may learn it.
    fn find(&mut self, own: &RowSolver, problem: &RowProblem) -> Option<&mut RowSolver> {
        self.uses += 1;
        let (now, options) = (self.uses, own.options());
        let fits = |solver: &RowSolver| {
            solver.options() == options && solver.linear().same_topology(problem, &InterfaceRows::default())
        };
        let known = self.solvers.iter().position(|(solver, _)| fits(solver));
        let place = known.or_else(|| {
            if self.solvers.len() < PLACES {
                self.solvers.push(Default::default());
                return Some(self.solvers.len() - 1);
            }
            self.solvers.iter().position(|(_, used)| now - used > FORGOTTEN)
        })?;
        let (solver, used) = &mut self.solvers[place];
        *used = now;
        solver.set_options(options);
        Some(solver)
    }
}
