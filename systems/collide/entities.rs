//! Contact entities: spawned, updated in place, despawned, in the order of the pairs.

use super::narrow::meet;
use crate::collision::{ColliderRecord, Collision};
use crate::components::{Contact, Manifold, RowImpulses, Surface};
use crate::events::{ContactEvent, PairNames};
use crate::schedule::Step;
use hecs::{Entity, World};
use std::collections::BTreeMap;

/// Takes the points out of the contact entities for the time of the narrow phase; only their memory moves.
pub fn lend_manifolds(step: &mut Step<'_>) {
    let mut query = step.world.query::<&mut Manifold>();
    let mut manifolds = query.view();
    for pair in &mut step.work.collision.pairs {
        let Some(entity) = pair.entity else { continue };
        match manifolds.get_mut(entity) {
            Some(manifold) => std::mem::swap(&mut manifold.points, &mut pair.points),
            None => {
                // Despawned by the user: if the pair still touches, it gets a new entity.
                pair.entity = None;
                pair.points.clear();
            }
        }
    }
}

/// Makes the contact entities those of the pairs that have points.
pub fn keep_contacts(step: &mut Step<'_>) {
    drop_parted(step);
    update_in_place(step);
    spawn_and_despawn(step);
}

/// Ends the contacts of pairs that are not near any more.
pub fn drop_parted(step: &mut Step<'_>) {
    let mut gone = std::mem::take(&mut step.work.collision.old_pairs);
    for mut pair in gone.drain(..) {
        if let Some(entity) = pair.entity.take() {
            end_contact(step.world, &mut step.work.collision, entity);
        }
    }
    step.work.collision.old_pairs = gone;
}

/// Gives the contacts that stay their points, and lists the pairs whose contact begins or ends.
fn update_in_place(step: &mut Step<'_>) {
    let Collision { pairs, briefs, movers, turning, .. } = &mut step.work.collision;
    let mut query = step.world.query::<(&mut Contact, &mut Manifold, &mut Surface)>();
    let mut contacts = query.view();
    turning.clear();
    let mut count = 0;
    for (i, pair) in pairs.iter_mut().enumerate() {
        if !pair.touches && !pair.asleep {
            if pair.entity.is_some() {
                turning.push(i as u32);
            }
            continue;
        }
        count += u32::from(!pair.points.is_empty());
        let Some(entity) = pair.entity else {
            turning.push(i as u32);
            continue;
        };
        let Some((contact, manifold, surface)) = contacts.get_mut(entity) else { continue };
        std::mem::swap(&mut manifold.points, &mut pair.points);
        let (a, b) = (pair.ids.0 as usize, pair.ids.1 as usize);
        let sensor = briefs[a].sensor || briefs[b].sensor;
        if contact.sensor != sensor {
            contact.sensor = sensor;
        }
        if !pair.asleep {
            *surface = meet(&movers[a], &movers[b], step.settings);
        }
    }
    step.report.contacts = count;
}

fn spawn_and_despawn(step: &mut Step<'_>) {
    let turning = std::mem::take(&mut step.work.collision.turning);
    for &i in &turning {
        let collision = &mut step.work.collision;
        let pair = &mut collision.pairs[i as usize];
        if let Some(entity) = pair.entity.take() {
            pair.points.clear();
            end_contact(step.world, collision, entity);
            continue;
        }
        let (a, b) = (pair.ids.0 as usize, pair.ids.1 as usize);
        let manifold = Manifold { points: std::mem::take(&mut pair.points) };
        let contact = new_contact(&collision.colliders[a], &collision.colliders[b]);
        let surface = meet(&collision.movers[a], &collision.movers[b], step.settings);
        pair.entity = Some(step.world.spawn((contact, manifold, surface, RowImpulses::default())));
    }
    step.work.collision.turning = turning;
}

/// The contact of two colliders.
pub fn new_contact(a: &ColliderRecord, b: &ColliderRecord) -> Contact {
    Contact {
        a: a.entity,
        b: b.entity,
        collider_a: a.index,
        collider_b: b.index,
        sensor: a.sensor || b.sensor,
        touching: false,
    }
}

/// Despawns a contact; those who slept on it wake.
fn end_contact(world: &mut World, collision: &mut Collision, entity: Entity) {
    let Ok(contact) = world.get::<&Contact>(entity).map(|c| *c) else { return };
    if contact.touching {
        collision.events.push(stopped(&contact));
        collision.disturbed.extend([contact.a, contact.b]);
    }
    let _ = world.despawn(entity);
}

/// The event of a contact that ends.
pub fn stopped(contact: &Contact) -> ContactEvent {
    let names = names(contact);
    if contact.sensor { ContactEvent::Left(names) } else { ContactEvent::Stopped(names) }
}

/// Who touches whom.
pub fn names(contact: &Contact) -> PairNames {
    PairNames { a: contact.a, b: contact.b, collider_a: contact.collider_a, collider_b: contact.collider_b }
}

/// After a restore: gives every pair the contact entity that the world holds for it, and drops those without a pair.
pub fn find_in_world(step: &mut Step<'_>) {
    let collision = &mut step.work.collision;
    let mut known: BTreeMap<(u64, u32, u64, u32), Entity> = BTreeMap::new();
    let mut extra = Vec::new();
    for (entity, contact) in step.world.query_mut::<(Entity, &Contact)>() {
        let key =
            (contact.a.to_bits().get(), contact.collider_a, contact.b.to_bits().get(), contact.collider_b);
        extra.extend(known.insert(key, entity));
    }
    for pair in &mut collision.pairs {
        let (a, b) = (&collision.colliders[pair.ids.0 as usize], &collision.colliders[pair.ids.1 as usize]);
        pair.entity = known.remove(&(a.entity.to_bits().get(), a.index, b.entity.to_bits().get(), b.index));
    }
    extra.extend(known.into_values());
    for entity in extra {
        let _ = step.world.despawn(entity);
    }
    collision.stale = false;
}
