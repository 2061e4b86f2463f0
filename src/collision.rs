//! What the *collide* stage remembers between steps.
//!
//! Everything here can be built anew from the world (that is what [`Collision::forget`] is for); contacts themselves
//! live in the world as entities.

use crate::components::{CollisionFilter, ManifoldPoint, Material, Surface};
use crate::events::ContactEvent;
use crate::geometry::{Bounds, BroadPhase, ContactPoint, NarrowScratch, ShapeHandle};
use glam::{DQuat, DVec3};
use hecs::Entity;

/// May these two bodies' colliders meet? Asked once a step for every near pair; must be a pure function.
pub type PairFilter = Box<dyn Fn(Entity, Entity) -> bool + Send + Sync>;

/// Near pairs. In boxes: the list is merged anew whenever a pair comes or goes, and pairs are large.
#[allow(clippy::vec_box)]
pub type PairList = Vec<Box<Pair>>;

/// Memory of the *collide* stage.
#[derive(Default)]
pub struct Collision {
    /// Near pairs.
    pub broad: BroadPhase,
    /// Colliders by their number in the broad phase.
    pub colliders: Vec<ColliderRecord>,
    /// Colliders of each body, by entity id.
    pub by_body: Vec<BodyColliders>,
    /// How many entries of `by_body` are in use.
    pub bodies: usize,
    /// Near pairs in order, with their contact entities.
    pub pairs: PairList,
    /// Those of the last step while the new ones are being listed.
    pub old_pairs: PairList,
    /// Pairs without use, for their memory.
    pub spare_pairs: PairList,
    /// Buffers of the narrow phase, one a chunk of pairs.
    pub scratch: Vec<(NarrowScratch, Vec<ContactPoint>)>,
    /// Pairs of bodies tied by a joint that forbids contact: slots, sorted.
    pub jointed: Vec<(u32, u32)>,
    /// What happened in this step.
    pub events: Vec<ContactEvent>,
    /// The user's say in who meets whom.
    pub filter: Option<PairFilter>,
    /// Number of the pass, to notice bodies that are gone.
    pub pass: u64,
    /// Fast bodies: slot, share of the way they may go, position at the start of the step.
    pub stops: Vec<(u32, f64, DVec3)>,
    /// Bodies that lost a contact, and those the user asked to wake.
    pub disturbed: Vec<Entity>,
    /// Colliders where the velocities just found would lead them, by number; see `systems::collide::ahead`.
    pub ahead: Vec<ColliderAhead>,
    /// Must the contact entities be looked up in the world (after a restore)?
    pub stale: bool,
}

impl Collision {
    /// Forgets everything; the next step builds it anew and finds the contact entities in the world.
    pub fn forget(&mut self) {
        let filter = self.filter.take();
        *self = Collision { filter, stale: true, ..Collision::default() };
    }
}

/// The colliders of one body.
#[derive(Clone, Default)]
pub struct BodyColliders {
    /// Whose they are.
    pub entity: Option<Entity>,
    /// Their numbers in the broad phase.
    pub ids: Vec<u32>,
    /// Pass in which the body was last seen.
    pub pass: u64,
}

/// One collider as the stage sees it.
#[derive(Clone)]
pub struct ColliderRecord {
    /// Its body.
    pub entity: Entity,
    /// The body's slot in this step.
    pub slot: u32,
    /// Which collider of the body.
    pub index: u32,
    /// Its shape.
    pub shape: ShapeHandle,
    /// Place on the body.
    pub local_position: DVec3,
    /// Orientation on the body.
    pub local_rotation: DQuat,
    /// World position.
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
    /// Surface properties.
    pub material: Material,
    /// Who may touch it.
    pub filter: CollisionFilter,
    /// Does it only report?
    pub sensor: bool,
    /// Where it may be in this step; `None` if its box is not finite.
    pub bounds: Option<Bounds>,
    /// A ball of half its thickness: what must not pass through anything.
    pub core: ShapeHandle,
    /// A ball of a hundredth of it.
    pub centre: ShapeHandle,
    /// Half of the smallest edge of its box.
    pub thickness: f64,
    /// The same for solids; infinite for surfaces (flat meshes and fields, half-spaces), which have no thickness to respect.
    pub size: f64,
    /// Largest distance of its points from the body's centre of mass.
    pub reach: f64,
    /// How far the body's centre moves in the step, and how far turning moves the surface at most (m).
    pub ways: [f64; 2],
}

/// A collider after the step, if nothing changes.
#[derive(Clone, Copy)]
pub struct ColliderAhead {
    /// World position.
    pub position: DVec3,
    /// World orientation.
    pub rotation: DQuat,
    /// Where it is then.
    pub bounds: Option<Bounds>,
    /// How far its surface moves at most (m).
    pub way: f64,
}

/// A near pair.
#[derive(Default)]
pub struct Pair {
    /// Numbers of the colliders, the earlier body first.
    pub ids: (u32, u32),
    /// Its contact entity, if it touches or is about to.
    pub entity: Option<Entity>,
    /// Its points in the last step while the new ones are being found; the memory of both changes hands.
    pub old: Vec<ManifoldPoint>,
    /// Its points.
    pub points: Vec<ManifoldPoint>,
    /// Where it would overlap after the step.
    pub ahead: Vec<ContactPoint>,
    /// Least separation of its points (m), infinite without any.
    pub nearest: f64,
    /// How the surfaces meet.
    pub surface: Option<Surface>,
    /// Did the narrow phase skip it because both bodies sleep? Then the contact stays as it is.
    pub asleep: bool,
}
