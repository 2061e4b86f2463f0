//! The engine's data: dense arrays that grow and are kept from step to step. Systems read and write them; they know no system.

pub mod bodies;
pub mod couplings;
pub mod evaluate;
pub mod islands;
pub mod rows;

pub use bodies::{Bodies, NO_ISLAND};
pub use couplings::{Couplings, Element};
pub use evaluate::{ConstraintEvaluator, ConstraintType, EvaluateAt, RowSample, RowVisitor};
pub use islands::{Island, IslandCut, Projection, Scheme, SubstructuredSolver};
pub use rows::{Closing, ConstraintBlock, NO_ROW, Rows};

use crate::systems::parallel::Crew;
use glam::DVec3;
use hecs::Entity;

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
    pub codecs: Vec<crate::snapshot::StateCodec>,
    /// How often a state was restored: what subsystems have answered before is asked again then.
    pub restored: u64,
    /// Next number for a constraint that is new.
    pub next_constraint: u64,
    /// Registered constraint types whose bodies must not touch: pairs of slots, sorted, lower first.
    pub jointed_pairs: Vec<(u32, u32)>,
    /// Memory of the collide stage.
    pub collision: crate::collision::Collision,
    /// Memory of [`crate::systems::impacts`].
    pub impacts: crate::systems::impacts::Memory,
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
    /// Memory of [`crate::systems::chord`].
    pub chord: crate::systems::chord::Memory,
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
    /// Gravity when sleepers were last looked at; a change wakes all.
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
        self.restored += 1;
        self.collision.forget();
    }
}
