//! What the *collide* stage remembers between steps.
//!
//! Everything here can be built anew from the world (that is what [`Collision::forget`] is for); contacts themselves
//! live in the world as entities.

use crate::components::{CollisionFilter, ManifoldPoint, Material};
use crate::constraint::BodyView;
use crate::events::ContactEvent;
use crate::geometry::{Bounds, BroadPhase, ContactPoint, Form, NarrowScratch, Posed, ShapeHandle};
use glam::{DMat3, DQuat, DVec3};
use hecs::Entity;

/// May these two bodies' colliders meet? Asked once a step for every near pair; must be a pure function.
pub type PairFilter = Box<dyn Fn(Entity, Entity) -> bool + Send + Sync>;

/// Memory of the *collide* stage.
#[derive(Default)]
pub struct Collision {
    /// Near pairs.
    pub broad: BroadPhase,
    /// Colliders by their number in the broad phase.
    pub colliders: Vec<ColliderRecord>,
    /// The same in brief.
    pub briefs: Vec<Brief>,
    /// The same as they move in this step.
    pub movers: Vec<Mover>,
    /// By collider: how far its surface has moved so far, and may move in this step (m); infinite where nothing that was known
    /// of its distances holds any more. See [`NearPair::apart`].
    pub spent: Vec<f64>,
    /// The same up to where the velocities just found would lead it.
    pub spent_ahead: Vec<f64>,
    /// Colliders whose shape is another than in the last step.
    pub reshaped: Vec<u32>,
    /// Colliders of each body, by entity id.
    pub by_body: Vec<BodyColliders>,
    /// No collider of a body that moves has been thinner (m).
    pub thinnest: Option<f64>,
    /// How many entries of `by_body` are in use.
    pub bodies: usize,
    /// Near pairs without a contact, in order.
    pub near: Vec<NearPair>,
    /// Near pairs with a contact, in order.
    pub pairs: Vec<Pair>,
    /// Those that are not near any more, until their contacts have ended.
    pub old_pairs: Vec<Pair>,
    /// Pairs on their way from `near` to `pairs`.
    pub begun: Vec<Pair>,
    /// Pairs on their way to `near`.
    pub ended: Vec<NearPair>,
    /// Buffers of the narrow phase, one a chunk of pairs.
    pub scratch: Vec<PairScratch>,
    /// Pairs of bodies tied by a joint that forbids contact: slots, sorted.
    pub jointed: Vec<(u32, u32)>,
    /// Deep pairs, and what is known of the bodies in crowds.
    pub crowds: Crowds,
    /// What happened in this step.
    pub events: Vec<ContactEvent>,
    /// The user's filter of pairs.
    pub filter: Option<PairFilter>,
    /// Number of the pass, to notice bodies that are gone.
    pub pass: u64,
    /// Fast bodies: slot, share of the way they may go, position at the start of the step.
    pub stops: Vec<(u32, f64, DVec3)>,
    /// Bodies that lost a contact, and those the user asked to wake.
    pub disturbed: Vec<Entity>,
    /// Colliders where the velocities just found would lead them, by number; see `systems::collide::ahead`.
    pub ahead: Vec<ColliderAhead>,
    /// Pairs that would overlap there.
    pub overlapping: Vec<Overlapping>,
    /// Where they would, pair after pair.
    pub overlaps: Vec<ContactPoint>,
    /// Does any surface bounce?
    pub bounces: bool,
    /// Must the contact entities be looked up in the world (after a restore)?
    pub needs_solve: bool,
}

impl Collision {
    /// Forgets everything; the next step builds it anew and finds the contact entities in the world.
    pub fn forget(&mut self) {
        let filter = self.filter.take();
        *self = Collision { filter, needs_solve: true, ..Collision::default() };
    }
}

/// Pairs that are deep in each other, and crowds of them; see `systems::collide::crowds`.
#[derive(Default)]
pub struct Crowds {
    /// Deep pairs, the deepest first.
    pub deep: Vec<DeepPair>,
    /// By slot: how many deep pairs a body has; empty if there is no deep pair at all.
    pub pairs: Vec<u32>,
    /// By slot: does a body of a crowd have a contact yet?
    pub held: Vec<bool>,
    /// By slot: is the body in a crowd? Empty if there is none.
    pub crowded: Vec<bool>,
    /// By the first slot of a group that hangs together: the box around the centres of its bodies, and half its size (m).
    pub around: Vec<(DVec3, DVec3, f64)>,
}

impl Crowds {
    /// Are these two in crowds? Then they have a contact or are left out in this step.
    #[inline]
    pub fn have_both(&self, a: u32, b: u32) -> bool {
        let is_in = |slot: u32| self.crowded.get(slot as usize) == Some(&true);
        !self.crowded.is_empty() && is_in(a) && is_in(b)
    }
}

/// Two bodies that are deep in each other.
#[derive(Clone, Copy, Debug)]
pub struct DeepPair {
    /// Depth as a share of the smaller one's size.
    pub share: f64,
    /// Rank of the pair.
    pub rank: (u64, u64),
    /// The bodies' slots.
    pub slots: [u32; 2],
    /// Its place among the pairs with a contact, or behind them among those that have begun.
    pub place: u32,
}

/// Buffers for the pairs of one chunk.
#[derive(Default)]
pub struct PairScratch {
    /// The narrow phase's own.
    pub narrow: NarrowScratch,
    /// What it finds.
    pub found: Vec<ContactPoint>,
    /// Points on their way into a manifold.
    pub points: Vec<ManifoldPoint>,
    /// Points of a pair that had none.
    pub fresh: Vec<ManifoldPoint>,
    /// Pairs that have come to touch.
    pub begun: Vec<Pair>,
    /// Pairs that would overlap after the step.
    pub overlapping: Vec<Overlapping>,
    /// Where they would.
    pub overlaps: Vec<ContactPoint>,
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
    /// Who may touch it.
    pub filter: CollisionFilter,
    /// Does it only report?
    pub sensor: bool,
    /// A ball of half its thickness: what must not pass through anything.
    pub core: ShapeHandle,
    /// A ball of a hundredth of it.
    pub centre: ShapeHandle,
    /// Half of the smallest edge of its box.
    pub thickness: f64,
    /// The same for solids; infinite for surfaces (flat meshes and fields, half-spaces), which have no thickness to respect.
    pub size: f64,
}

impl ColliderRecord {
    /// Its place in the world on a body that is there.
    pub fn on(&self, body: &BodyView) -> Posed {
        Posed {
            position: body.position + body.rotation * self.local_position,
            rotation: body.rotation * self.local_rotation,
        }
    }
}

/// A collider as the narrow phase needs it, all in one place: pairs are many, and memory is slower than arithmetic. Lives as long
/// as the collider; what changes is written over.
#[derive(Clone, Copy, Debug)]
pub struct Mover {
    /// Its shape, if closed forms know it.
    pub form: Form,
    /// Where it is.
    pub pose: Posed,
    /// A ball inside of it: centre in its own frame and radius (m), zero if there is none.
    pub inner: (DVec3, f64),
    /// Centre of mass of its body.
    pub center: DVec3,
    /// Orientation of its body.
    pub turn: DMat3,
    /// Velocity of its body: linear, angular.
    pub velocity: [DVec3; 2],
    /// Surface properties.
    pub material: Material,
    /// Mass of its body, infinite if forces do not move it (kg).
    pub mass: f64,
    /// How far its surface moves in the step at most (m).
    pub way: f64,
    /// Largest distance of its points from the body's centre of mass.
    pub reach: f64,
    /// Beyond this way its nearest point says little about what it will hit (m); infinite if forces do not move it.
    pub own: f64,
    /// What `own` is if forces move it.
    pub grip: f64,
    /// What it allows as a margin (m).
    pub fine: f64,
    /// Half of the smallest edge of its box; infinite for surfaces.
    pub size: f64,
    /// Largest distance of its points from its own origin.
    pub span: f64,
    /// How far its surface has moved since it is known, at most (m).
    pub odometer: f64,
    /// Does it have nothing but flat faces, convex?
    pub faceted: bool,
    /// Has its shape changed, or has it moved without bounds, since contacts were last updated?
    pub reshaped: bool,
}

/// What most near pairs are judged by: their boxes miss each other, or they may not meet. Packed, so that a look is cheap.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// Where it may be in this step; `None` if its box is not finite.
    pub bounds: Option<Bounds>,
    /// The body's slot in this step.
    pub slot: u32,
    /// Who may touch it.
    pub filter: CollisionFilter,
    /// Does it only report?
    pub sensor: bool,
    /// Does its body move by forces?
    pub dynamic: bool,
    /// May its body move in this step?
    pub awake: bool,
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

impl ColliderAhead {
    /// Where it is then.
    pub fn pose(&self) -> Posed {
        Posed { position: self.position, rotation: self.rotation }
    }
}

/// A pair that would overlap after the step.
#[derive(Clone, Copy, Debug)]
pub struct Overlapping {
    /// Numbers of the colliders.
    pub ids: (u32, u32),
    /// Its first in the list of overlaps.
    pub first: u32,
    /// How many it has there.
    pub count: u32,
}

/// A near pair without a contact. Small: most pairs only have boxes that meet.
#[derive(Clone, Copy, Debug, Default)]
pub struct NearPair {
    /// Numbers of the colliders, the earlier body first.
    pub ids: (u32, u32),
    /// Apart for as long as the two odometers together show less than this (m): what they showed when the two were found to be
    /// apart, and the distance at that time. A lower bound, so that a pair that is skipped misses nothing.
    pub free: f64,
}

impl NearPair {
    /// Two colliders that have come near.
    pub fn new(ids: (u32, u32)) -> NearPair {
        NearPair { ids, free: f64::NEG_INFINITY }
    }

    /// Is it known to be further apart than what its colliders' [`Collision::spent`] and a margin add up to?
    #[inline]
    pub fn apart(&self, spent: f64) -> bool {
        spent < self.free
    }
}

/// What two odometers together will not show before colliders meet that are at least `distance` apart now (m).
pub fn free_until(distance: f64, a: &Mover, b: &Mover) -> f64 {
    let shown = a.odometer + b.odometer;
    // Rounding: of places, of what was added up, and of the distance itself.
    let far = a.pose.position.abs().max_element() + b.pose.position.abs().max_element() + shown;
    shown + distance - 1e-9 - 1e-14 * far
}

/// A pair with a contact.
#[derive(Debug)]
pub struct Pair {
    /// Numbers of the colliders, the earlier body first.
    pub ids: (u32, u32),
    /// Its contact entity; `None` before it has one, and where someone has despawned it.
    pub entity: Option<Entity>,
    /// Least separation of its points (m), infinite without any.
    pub nearest: f64,
    /// See [`NearPair::free`], for when the contact ends.
    pub free: f64,
    /// Does it have points in this step?
    pub touches: bool,
    /// Greatest speed at which the two part if they overlap (m/s), where that is less than `Tuning::max_recovery_speed`.
    pub parting: f64,
    /// Are both in a crowd? Then they part along the line of their centres, at just `parting`, and do not rub.
    pub crowded: bool,
    /// Did the narrow phase skip it because both bodies sleep? Then the contact stays as it is.
    pub asleep: bool,
    /// Its points while they are being found; before and after, its contact entity has them.
    pub points: Vec<ManifoldPoint>,
}

impl Pair {
    /// Two colliders that touch, or are about to.
    pub fn new(ids: (u32, u32)) -> Pair {
        Pair {
            ids,
            entity: None,
            nearest: f64::INFINITY,
            free: f64::NEG_INFINITY,
            touches: true,
            parting: f64::INFINITY,
            crowded: false,
            asleep: false,
            points: Vec::new(),
        }
    }
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new((0, 0))
    }
}
