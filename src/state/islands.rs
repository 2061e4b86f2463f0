//! Islands: connected groups of bodies, each with its problem, its solver and its answer.
//!
//! Invariant: `bodies`, `blocks` and `rows` ascend, and `problem` and `solution` follow their order; an island that `needs_solve` has a
//! problem that is newer than its answer.

use crate::coupling::coupling_loop::CouplingLoop;
use crate::coupling::substructured::Substructured;
use crate::graph::{BodyGraph, Grouping};
use crate::solver::mixed::MixedOptions;
use crate::solver::row_solver::Solver;
use crate::solver::{RowProblem, RowSolver, Solution, SolveStats};
use crate::systems::parallel::Crew;

/// A connected group of bodies and its problem.
#[derive(Default)]
pub struct Island {
    /// Slots of its dynamic bodies, ascending.
    pub bodies: Vec<u32>,
    /// Its blocks in `Rows::blocks`, ascending.
    pub blocks: Vec<u32>,
    /// Its elements in `Couplings::elements`, ascending.
    pub elements: Vec<u32>,
    /// Its rows in `Rows`, in the order of `blocks`.
    pub rows: Vec<u32>,
    /// The problem in row form.
    pub problem: RowProblem,
    /// Solver with its factorization, kept while the group persists.
    pub solver: RowSolver,
    /// The answer, and the start of the next one.
    pub solution: Solution,
    /// What the solve said.
    pub stats: SolveStats,
    /// How far normal impulses ended from those that set the friction bounds (N·s).
    pub friction_shift: f64,
    /// Are its problem and its answer still those of an earlier step?
    pub needs_solve: bool,
    /// Has it been solved roughly, so that its joints can be followed along the curve before its end is sought?
    pub position_level: bool,
    /// Was it solved by Newton's method in this step?
    pub surprised: bool,
    /// Was it so once already in this step?
    pub followed: bool,
    /// Could Newton's method not close its joints?
    pub lost: bool,
    /// Bounds and sides of its rows, while a solve leaves them aside (see [`crate::systems::resolve`]).
    pub bounds: Vec<(f64, f64, crate::solver::Label)>,
    /// How it is cut and solved.
    pub cut: IslandCut,
    /// Solves since the report was last told of one, because friction was bounded anew.
    pub friction_solves: u32,
    /// How its joints are followed.
    pub chord: crate::systems::chord::pass::Chord,
    /// Memory of the projection, where it is asked for.
    pub projection: Projection,
}

/// An island's problem once more, for positions in place of velocities.
#[derive(Default)]
pub struct Projection {
    /// The problem in row form.
    pub problem: RowProblem,
    /// Solver with its factorization.
    pub solver: RowSolver,
    /// The answer: `v` holds displacements.
    pub solution: Solution,
}

/// How an island is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// One factorization of the whole.
    #[default]
    Monolithic,
    /// Partitions as the linear solver; all rows are decided together.
    Substructured,
    /// Partitions decide their own rows and meet in the coupling loop (000 Algorithm 1, or FBIC).
    CouplingLoop,
}

/// An island in partitions; kept while the island persists, so that factors and symbolic work survive.
#[derive(Default)]
pub struct IslandCut {
    /// How it is solved.
    pub scheme: Scheme,
    /// Partition of each of its bodies.
    pub grouping: Grouping,
    /// What the grouping was made for: numbers of bodies and rows of every block, one after another.
    pub made_for: Vec<u32>,
    /// Memory for what the next one is made for.
    pub asked_for: Vec<u32>,
    /// Bodies that rows with bounds touch.
    pub touched: Vec<u32>,
    /// Have next to no rows bounds? Then a step is a few linear solves and little else.
    pub linear: bool,
    /// Body graph, when one was needed.
    pub graph: BodyGraph,
    /// Solver of the substructured scheme.
    pub substructured: Option<Box<SubstructuredSolver>>,
    /// Solver of the coupling loop.
    pub coupling_loop: Option<Box<CouplingLoop>>,
    /// Is its coupling loop still running?
    pub running: bool,
    /// Coupling iterations of the step's longest loop.
    pub iterations: u32,
    /// Did a loop end at its limit?
    pub at_limit: bool,
    /// Friction passes left to the coupling loop.
    pub friction_passes: u32,
    /// Number of its first partition.
    pub first_partition: u32,
}

/// Solver of an island in partitions that decides all rows together.
pub type SubstructuredSolver = Solver<Substructured<Crew>>;

impl Island {
    /// Did the chord step close its joints?
    pub fn is_followed(&self) -> bool {
        self.chord.state == crate::systems::chord::pass::State::Closed
    }

    /// Forgets its members and keeps its solver and memory.
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.blocks.clear();
        self.elements.clear();
        self.rows.clear();
        self.needs_solve = true;
    }

    /// Choices of all its factorizations, whichever solves it in the end; the coupling loop takes them with the next load.
    pub fn set_options(&mut self, options: MixedOptions) {
        self.solver.set_options(options);
        self.projection.solver.set_options(options);
        match self.cut.scheme {
            Scheme::Monolithic => {}
            Scheme::Substructured => self.cut.substructured.get_or_insert_default().set_options(options),
            Scheme::CouplingLoop => self.cut.coupling_loop.get_or_insert_default().set_options(options),
        }
    }
}
