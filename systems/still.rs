//! A world in which everything sleeps: a step that would change nothing is not computed.
//!
//! A step is a function of the world and of what the engine keeps of it. One that changed neither gives the same again for as long as the
//! game changes nothing either, and hecs does not note changes. So they are looked for: everything that a step reads of bodies that do not
//! move is compared with what the last step read, each archetype from front to back. Where there are constraints (they may advance by
//! themselves) or systems of the game, every step is computed.
//!
//! | a change of | is seen by |
//! |---|---|
//! | entities, components that come and go | the numbers of entities of the archetypes |
//! | settings, the length of the step | comparison |
//! | pose, velocity, force, torque, mass, inertia, kind, damping, [`Rest`], target of a body | comparison |
//! | shape, place, material, filter, sensor of a collider | comparison |
//! | gravity scale, hit thresholds, hints, and what contacts hold | nothing: it acts on what is awake, and is read when something wakes |

use super::collide::knows_colliders;
use crate::components::*;
use crate::report::StepReport;
use crate::settings::Settings;
use crate::state::{Bodies, Work};
use glam::DVec3;
use hecs::{Entity, World};

/// What the last step was computed from, if it changed nothing.
pub struct Still {
    settings: Settings,
    dt: f64,
    /// Registered types of constraints.
    types: usize,
    /// How many entities each archetype of the world has.
    entities: Vec<u32>,
}

/// Notes whether the step that has just been computed changed nothing.
pub fn note_stillness(world: &World, work: &mut Work, report: &StepReport, settings: &Settings, dt: f64) {
    let asleep = (0..work.bodies.len() as u32).all(|slot| !work.bodies.is_awake(slot));
    let quiet = work.collision.events.is_empty() && work.collision.disturbed.is_empty();
    let told = report.trouble_count > 0 || !report.broken.is_empty();
    if !asleep || !quiet || told || work.constraints.iter().any(|of| of.present) {
        work.still = None;
        return;
    }
    let entities = world.archetypes().map(|a| a.len()).collect();
    work.still = Some(Still { settings: settings.clone(), dt, types: work.constraints.len(), entities });
}

/// Would a step change nothing, because the last one did not and everything is as it left it?
pub fn is_still(world: &mut World, work: &Work, settings: &Settings, dt: f64) -> bool {
    let Some(still) = &work.still else { return false };
    still.dt == dt
        && still.types == work.constraints.len()
        && work.collision.disturbed.is_empty()
        && still.entities.iter().copied().eq(world.archetypes().map(|a| a.len()))
        && still.settings == *settings
        && bodies_are_as_read(world, work)
}

type Read<'a> = (
    Entity,
    (&'a BodyIndex, &'a BodyKind, &'a Rest),
    (&'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity),
    (&'a Force, &'a Torque, &'a Mass, &'a Inertia),
    (Option<&'a Damping>, Option<&'a KinematicTarget>),
    Option<&'a Colliders>,
);

fn bodies_are_as_read(world: &mut World, work: &Work) -> bool {
    let mut seen = 0;
    for body in world.query_mut::<Read<'_>>() {
        if !is_as_read(&work.bodies, body) {
            return false;
        }
        if !body.5.is_none_or(|colliders| knows_colliders(&work.collision, body.0, &colliders.0)) {
            return false;
        }
        seen += 1;
    }
    seen == work.bodies.len()
}

#[inline]
fn is_as_read(bodies: &Bodies, body: <Read<'_> as hecs::Query>::Item<'_>) -> bool {
    let (entity, (index, kind, rest), (x, q, v, w), (force, torque, mass, inertia), (damping, target), _) =
        body;
    let slot = index.0 as usize;
    if bodies.entity.get(slot) != Some(&entity) {
        return false;
    }
    let view = &bodies.view[slot];
    let there = *kind == view.kind && (x.0, q.0) == (view.position, view.rotation);
    let slow = (v.0, w.0) == (view.linear_velocity, view.angular_velocity);
    let pushed = (force.0, torque.0) != (DVec3::ZERO, DVec3::ZERO);
    let same = (mass.0, inertia.0) == (view.mass, view.inertia) && rest.asleep == bodies.asleep[slot];
    let damped = damping.is_some_and(|d| *d != bodies.damping[slot]);
    let slept = !rest.asleep || (rest.position, rest.rotation) == (x.0, q.0);
    let called = target.is_some_and(|to| (to.position, to.rotation) != (x.0, q.0));
    there && slow && !pushed && same && !damped && slept && !called
}
