//! Bodies as dense arrays, gathered once a step; the position in them is the body's slot.
//!
//! Invariant: all arrays that are indexed by slot are as long as `entity`, and slots follow creation order.

use crate::components::{BodyKind, Damping};
use crate::constraint::BodyView;
use glam::DVec3;
use hecs::Entity;

/// A body on which no row acts.
pub const NO_ISLAND: u32 = u32::MAX;

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
    /// Poses elsewhere than at the start of the step: scratch memory for constraints that are evaluated there.
    pub ahead: Vec<BodyView>,
    /// Geometric stiffness (6×6, row by row), its negative part cut; empty when there is none.
    pub stiffness: Vec<[f64; 36]>,
    /// Damping that comes with it (3×3, row by row, on rotation) and its product with the neighbours' velocities.
    pub stiffness_damping: Vec<([f64; 9], [f64; 3])>,
    /// Slot by entity id; a reader compares the entity.
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

    /// The velocity with which a body moves others in the coming step: that of the solve, or of a kinematic body; zero for one that
    /// stands still.
    pub fn pushed_velocity(&self, slot: u32) -> [f64; 6] {
        let [v, w] = if self.is_awake(slot) { self.velocity[slot as usize] } else { [DVec3::ZERO; 2] };
        [v.x, v.y, v.z, w.x, w.y, w.z]
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
