//! The engine's buffers: dense arrays that grow and are kept from step to step.

use crate::components::{BodyKind, Damping};
use crate::constraint::BodyView;
use crate::coupling::flat::Substructured;
use crate::coupling::nested::Nested;
use crate::graph::{BodyGraph, Grouping};
use crate::solver::mixed::MixedOptions;
use crate::solver::row_solver::Solver;
use crate::solver::{RowKind, RowProblem, RowSolver, Solution, SolveStats};
use crate::systems::parallel::Crew;
use glam::DVec3;
use hecs::Entity;
use std::any::TypeId;

/// All buffers of a step.
#[derive(Default)]
pub struct Work {
    /// Threads that help with the solves of a step.
    pub crew: Crew,
    /// Bodies in creation order.
    pub bodies: Bodies,
    /// Rows in the order in which they were written.
    pub rows: Rows,
    /// One problem per island; boxed, for they change places and are some 16 kB each.
    pub islands: Vec<Box<Island>>,
    /// Those of the last step, while the new ones are being numbered.
    pub old_islands: Vec<Box<Island>>,
    /// Memory of groups that are gone.
    pub spare_islands: Vec<Box<Island>>,
    /// Union–find over the slots.
    pub groups: crate::graph::islands::Islands,
    /// Island of each slot in this step, [`NO_ISLAND`] for bodies without rows.
    pub island_of: Vec<u32>,
    /// Pivots and factorizations of groups that were solved in this step and are part of others now.
    pub spent: (u32, u32),
    /// Which substep of how many.
    pub substep: (u32, u32),
    /// Number of each slot within its island.
    pub local: Vec<u32>,
    /// Registered types of constraints.
    pub constraints: Vec<ConstraintType>,
    /// Which of them the world has.
    pub census: crate::systems::census::Census,
    /// What saves and loads the state of constraints, one a type.
    pub keepers: Vec<crate::snapshot::Keeper>,
    /// Next number for a constraint that is new.
    pub next_constraint: u64,
    /// Registered constraint types whose bodies must not touch: pairs of slots, sorted, lower first.
    pub jointed_pairs: Vec<(u32, u32)>,
    /// Memory of the collide stage.
    pub collision: crate::collision::Collision,
    /// Points that may bounce in this step.
    pub impacts: Vec<crate::systems::impacts::Impact>,
    /// Bodies tied by joints in the last step.
    pub joint_ties: Vec<(Entity, Entity)>,
    /// Entities of partitions, those in use first.
    pub partition_entities: Vec<Entity>,
    /// Partition of each slot in the last step, [`NO_ISLAND`] for none.
    pub partition_of: Vec<u32>,
    /// Memory for the next one.
    pub partition_was: Vec<u32>,
    /// The users' hints by slot, and the pins.
    pub hints: Vec<Option<u32>>,
    /// See `hints`.
    pub pins: Vec<Option<u32>>,
    /// Memory of [`crate::systems::newton`].
    pub newton: crate::systems::newton::Memory,
    /// Memory of [`crate::systems::repeated`].
    pub repeated: crate::systems::repeated::Memory,
    /// Memory of [`crate::systems::refine`].
    pub curve: crate::systems::refine::Curve,
    /// Joints after the step, where projection closes them.
    pub openings: crate::systems::project::Openings,
    /// Kinetic and potential energy at the end of the last (sub)step (J); none before the first one.
    pub energy: Option<f64>,
    /// What the last step was computed from, if it changed nothing.
    pub still: Option<crate::systems::still::Still>,
    /// Gravity when sleepers were last looked at; a change wakes everybody.
    pub sleep_gravity: Option<DVec3>,
}

impl Work {
    /// Drops whatever could let the steps before a restore show in the steps after it: solvers remember factors and
    /// habits. Numbering and memory of bodies stay.
    pub fn forget(&mut self) {
        self.islands.clear();
        self.old_islands.clear();
        self.spare_islands.clear();
        self.bodies.known.fill(false);
        self.energy = None;
        self.still = None;
        self.collision.forget();
    }
}

/// A row that no normal impulse bounds.
pub const NO_ROW: u32 = u32::MAX;

/// A body on which no row acts.
pub const NO_ISLAND: u32 = u32::MAX;

/// A registered type of constraints.
pub struct ConstraintType {
    /// Its component.
    pub component: TypeId,
    /// Has the world any? See [`crate::systems::census`].
    pub present: bool,
    /// Measures their violations.
    pub gauge: Gauge,
}

/// Evaluates the constraints of one type at given poses and tells a witness what they write there.
pub type Gauge = Box<dyn FnMut(&hecs::World, &Bodies, &Question<'_>, &mut dyn Witness) + Send + Sync>;

/// Where and how constraints are evaluated.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// One pose a slot, with velocities.
    pub poses: &'a [BodyView],
    /// The step (s).
    pub dt: f64,
    /// β for constraints that write geometric stiffness; zero asks for none.
    pub stiffness_share: f64,
    /// Only constraints on one of these slots, if given.
    pub only: Option<&'a [bool]>,
}

impl<'a> Question<'a> {
    /// Asks for violations only. The step's length only matters for motors and friction, which are not measured.
    pub fn violations(poses: &'a [BodyView]) -> Question<'a> {
        Question { poses, dt: 1.0, stiffness_share: 0.0, only: None }
    }
}

/// Who is told what constraints write.
pub trait Witness {
    /// A row.
    fn row(&mut self, told: &Told<'_>);
    /// Geometric stiffness on a slot.
    fn stiffness(&mut self, _slot: u32, _stiffness: &crate::constraint::Stiffness) {}
}

impl<F: FnMut(&Told<'_>)> Witness for F {
    fn row(&mut self, told: &Told<'_>) {
        self(told);
    }
}

/// A row as it would be written at the poses asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told<'a> {
    /// Whose row.
    pub entity: Entity,
    /// The slots of its bodies.
    pub slots: &'a [u32],
    /// Which one.
    pub key: u32,
    /// φ (m or rad).
    pub violation: f64,
    /// Does it count as an error of a joint?
    pub measured: bool,
    /// w₀ (m/s or rad/s).
    pub target_velocity: f64,
    /// Six numbers for each of the constraint's distinct bodies.
    pub jacobian: &'a [[f64; 6]],
}

/// How much of a row's violation a step takes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Closing {
    /// This share.
    Share(f64),
    /// None: the row is about velocity.
    Velocity,
    /// As its spring says.
    Spring,
}

/// Bodies as dense arrays; the position in them is the body's slot (`BodyIndex`).
#[derive(Default)]
pub struct Bodies {
    /// Who it is.
    pub entity: Vec<Entity>,
    /// State at the start of the step.
    pub view: Vec<BodyView>,
    /// Has `view` ever been good? (A body that was never good has no pose to go back to.)
    pub known: Vec<bool>,
    /// Force and torque.
    pub force: Vec<[DVec3; 2]>,
    /// Damping rates.
    pub damping: Vec<Damping>,
    /// Is it out of the simulation?
    pub quarantined: Vec<bool>,
    /// Velocity without constraints, as the solve is given it: linear, angular.
    pub free: Vec<[DVec3; 2]>,
    /// Velocity of the coming step: linear, angular. Input of the solve is the free velocity, output the final one.
    pub velocity: Vec<[DVec3; 2]>,
    /// L + h τ − I ω_free: what the angular momentum has over that of the free velocity (gyroscopic part).
    pub angular_momentum: Vec<DVec3>,
    /// Does it sleep? Then it stands still and takes part in no island.
    pub asleep: Vec<bool>,
    /// Seconds it has been at rest.
    pub rest: Vec<f64>,
    /// Did it neither go anywhere nor gain speed when that was last looked at?
    pub steady: Vec<bool>,
    /// Poses elsewhere than at the start of the step: scratch memory of whoever evaluates constraints there.
    pub ahead: Vec<BodyView>,
    /// Geometric stiffness (6×6, row by row), its negative part cut; empty when there is none.
    pub stiffness: Vec<[f64; 36]>,
    /// Damping that comes with it (3×3, row by row, on rotation) and its product with the neighbours' velocities.
    pub stiffness_damping: Vec<([f64; 9], [f64; 3])>,
    /// Slot by entity id; whoever reads it compares the entity.
    pub slot_by_id: Vec<u32>,
}

impl Bodies {
    /// Number of bodies.
    pub fn len(&self) -> usize {
        self.entity.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.entity.is_empty()
    }

    /// The slot of an entity, if it is a body.
    pub fn slot_of(&self, entity: Entity) -> Option<u32> {
        let slot = *self.slot_by_id.get(entity.id() as usize)?;
        (self.entity.get(slot as usize) == Some(&entity)).then_some(slot)
    }

    /// Has the body been at rest for this long (s), without forces that are out of balance?
    pub fn is_sleepy(&self, slot: usize, time: f64) -> bool {
        self.rest[slot] >= time && self.steady[slot]
    }

    /// Does the body move by forces?
    pub fn is_dynamic(&self, slot: u32) -> bool {
        self.view[slot as usize].kind == BodyKind::Dynamic
            && !self.quarantined[slot as usize]
            && !self.asleep[slot as usize]
    }

    /// May the body move in this step? Fixed, sleeping and quarantined ones and kinematic ones at rest do not.
    pub fn is_awake(&self, slot: u32) -> bool {
        let view = &self.view[slot as usize];
        match view.kind {
            BodyKind::Dynamic => self.is_dynamic(slot),
            BodyKind::Kinematic => {
                view.linear_velocity != DVec3::ZERO || view.angular_velocity != DVec3::ZERO
            }
            BodyKind::Fixed => false,
        }
    }
}

/// One constraint's rows.
#[derive(Clone, Copy, Debug)]
pub struct ConstraintBlock {
    /// Whose rows they are.
    pub entity: Entity,
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First entry in `Rows::body`.
    pub body: u32,
    /// Number of bodies.
    pub bodies: u32,
    /// First twist in `Rows::jacobian` (`rows × bodies`, row by row).
    pub entry: u32,
    /// May it be folded into the body blocks?
    pub fold: bool,
    /// Place of the constraint's last body among its slots: the one whose force is reported.
    pub last: u32,
    /// From that body's centre of mass to the point at which its force is reported.
    pub lever: DVec3,
}

/// All rows of a step, as arrays. Bodies are slots; fixed and kinematic ones are included here.
#[derive(Default)]
pub struct Rows {
    /// Constraints in the order of writing.
    pub blocks: Vec<ConstraintBlock>,
    /// Slots of all blocks, one after another.
    pub body: Vec<u32>,
    /// Jacobian of all blocks, six numbers a row and body.
    pub jacobian: Vec<[f64; 6]>,
    /// φ at the start of the step.
    pub violation: Vec<f64>,
    /// C.
    pub compliance: Vec<f64>,
    /// d without the part of kinematic bodies.
    pub d: Vec<f64>,
    /// Least impulse.
    pub lo: Vec<f64>,
    /// Greatest impulse.
    pub hi: Vec<f64>,
    /// What it stands for.
    pub kind: Vec<RowKind>,
    /// Which row of its constraint.
    pub key: Vec<u32>,
    /// Does it count as a joint error?
    pub measured: Vec<bool>,
    /// Is φ to be closed at the end of the step, so that the curvature of the motion counts?
    pub bends: Vec<bool>,
    /// Does it drive what it acts on (motors, winches, springs, belts), so that energy may come from it?
    pub drives: Vec<bool>,
    /// How much of φ is to be closed.
    pub closing: Vec<Closing>,
    /// Greatest velocity of a correction; contacts, which come last, have none.
    pub most: Vec<f64>,
    /// Impulses of the last step.
    pub before: Vec<f64>,
    /// λ: the last step's before the solve, this step's after it.
    pub lambda: Vec<f64>,
    /// Label: likewise.
    pub label: Vec<crate::solver::Label>,
    /// Friction rows: the row of the normal impulse that bounds them, [`NO_ROW`] for others.
    pub normal_of: Vec<u32>,
    /// Friction rows of new points that slide: they rub only once the normal impulse of the step is known.
    pub slides: Vec<bool>,
    /// Friction rows: |λ| ≤ `friction` × λ of `normal_of`.
    pub friction: Vec<f64>,
    /// Geometric stiffness: slot, slot of the body at the other end (the same where there is not one), 6×6 block.
    pub stiffness: Vec<(u32, u32, crate::constraint::row::Stiffness)>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.d.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.d.is_empty()
    }

    /// Empties the buffers and keeps their memory.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.body.clear();
        self.jacobian.clear();
        self.violation.clear();
        self.compliance.clear();
        self.d.clear();
        self.lo.clear();
        self.hi.clear();
        self.kind.clear();
        self.key.clear();
        self.measured.clear();
        self.bends.clear();
        self.drives.clear();
        self.closing.clear();
        self.most.clear();
        self.before.clear();
        self.lambda.clear();
        self.label.clear();
        self.normal_of.clear();
        self.slides.clear();
        self.friction.clear();
        self.stiffness.clear();
    }
}

/// A connected group of bodies and its problem.
#[derive(Default)]
pub struct Island {
    /// Slots of its dynamic bodies, ascending.
    pub bodies: Vec<u32>,
    /// Its blocks in `Rows::blocks`, ascending.
    pub blocks: Vec<u32>,
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
    pub stale: bool,
    /// Has it been solved roughly, so that its joints can be followed along the curve before its end is sought?
    pub bends: bool,
    /// Was it solved by Newton's method in this step?
    pub surprised: bool,
    /// Was it so once already in this step?
    pub followed: bool,
    /// Could Newton's method not close its joints?
    pub lost: bool,
    /// Bounds and sides of its rows, while a solve leaves them aside (see [`crate::systems::again`]).
    pub bounds: Vec<(f64, f64, crate::solver::Label)>,
    /// How it is cut and solved.
    pub cut: IslandCut,
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
    Whole,
    /// Partitions as the linear solver; all rows are decided together.
    Flat,
    /// Partitions decide their own rows and meet in the coupling loop (000 Algorithm 1, or FBIC).
    Nested,
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
    /// Solver of the flat scheme.
    pub flat: Option<Box<FlatSolver>>,
    /// Solver of the nested scheme.
    pub nested: Option<Box<Nested>>,
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
pub type FlatSolver = Solver<Substructured<Crew>>;

impl Island {
    /// Forgets its members and keeps its solver and memory.
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.blocks.clear();
        self.rows.clear();
        self.stale = true;
    }

    /// Choices of all its factorizations, whichever solves it in the end; the nested scheme takes them with the next load.
    pub fn set_options(&mut self, options: MixedOptions) {
        self.solver.set_options(options);
        self.projection.solver.set_options(options);
        match self.cut.scheme {
            Scheme::Whole => {}
            Scheme::Flat => self.cut.flat.get_or_insert_default().set_options(options),
            Scheme::Nested => self.cut.nested.get_or_insert_default().set_options(options),
        }
    }
}
