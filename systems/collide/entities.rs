//! Contact entities: spawned, updated in place, despawned, in the order of the pairs.

use super::narrow::meet;
use super::pairs;
use crate::collision::{ColliderRecord, Collision, Mover, Pair};
use crate::components::{Contact, Manifold, ManifoldPoint, RowImpulses, Surface};
use crate::events::{ContactEvent, PairNames};
use crate::schedule::Step;
use crate::settings::Settings;
use hecs::{Entity, World};
use std::collections::BTreeMap;

/// Takes the points out of the contact entities for the time of the narrow phase; only their memory moves.
pub fn lend_manifolds(step: &mut Step<'_>) {
    if step.work.collision.pairs.is_empty() {
        return;
    }
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
    if update_in_place(step) {
        let (world, collision) = (&mut *step.world, &mut step.work.collision);
        let mut gone = std::mem::take(&mut collision.old_pairs);
        pairs::end(collision, |pair| gone.push(pair));
        for pair in gone.drain(..) {
            end_contact(world, collision, pair.entity);
        }
        collision.old_pairs = gone;
    }
    spawn_begun(step);
}

/// Ends the contacts of pairs that are not near any more.
pub fn drop_parted(step: &mut Step<'_>) {
    let mut gone = std::mem::take(&mut step.work.collision.old_pairs);
    for pair in gone.drain(..) {
        end_contact(step.world, &mut step.work.collision, pair.entity);
    }
    step.work.collision.old_pairs = gone;
}

/// Gives the contacts that stay their points. Does one end?
fn update_in_place(step: &mut Step<'_>) -> bool {
    let Collision { pairs, begun, briefs, movers, .. } = &mut step.work.collision;
    if pairs.is_empty() {
        step.report.contacts = begun.len() as u32;
        return false;
    }
    let mut query = step.world.query::<(&mut Contact, &mut Manifold, &mut Surface)>();
    let mut contacts = query.view();
    let (mut count, mut ends, mut lost) = (begun.len() as u32, false, false);
    for pair in pairs.iter_mut() {
        if !pair.touches && !pair.asleep {
            ends = true;
            continue;
        }
        count += u32::from(!pair.points.is_empty());
        let Some((contact, manifold, surface)) = pair.entity.and_then(|e| contacts.get_mut(e)) else {
            lost = true;
            continue;
        };
        std::mem::swap(&mut manifold.points, &mut pair.points);
        let (a, b) = (pair.ids.0 as usize, pair.ids.1 as usize);
        let sensor = briefs[a].sensor || briefs[b].sensor;
        if contact.sensor != sensor {
            contact.sensor = sensor;
        }
        if !pair.asleep {
            *surface = surface_of(pair, &movers[a], &movers[b], step.settings);
        }
    }
    step.report.contacts = count;
    drop(query);
    if lost {
        respawn(step);
    }
    ends
}

/// Contacts that touch although someone has despawned them come back.
pub fn respawn(step: &mut Step<'_>) {
    let mut pairs = std::mem::take(&mut step.work.collision.pairs);
    for pair in pairs.iter_mut().filter(|p| p.touches && p.entity.is_none()) {
        let points = std::mem::take(&mut pair.points);
        pair.entity = Some(spawn(step, pair, points));
    }
    step.work.collision.pairs = pairs;
}

/// Gives the pairs that have come to touch their entities.
pub fn spawn_begun(step: &mut Step<'_>) {
    let mut begun = std::mem::take(&mut step.work.collision.begun);
    for pair in &mut begun {
        let points = std::mem::take(&mut pair.points);
        pair.entity = Some(spawn(step, pair, points));
    }
    step.work.collision.begun = begun;
    pairs::begin(&mut step.work.collision);
}

fn spawn(step: &mut Step<'_>, pair: &Pair, points: Vec<ManifoldPoint>) -> Entity {
    let Collision { colliders, movers, .. } = &step.work.collision;
    let (a, b) = (pair.ids.0 as usize, pair.ids.1 as usize);
    let contact = new_contact(&colliders[a], &colliders[b]);
    let surface = surface_of(pair, &movers[a], &movers[b], step.settings);
    step.world.spawn((contact, Manifold { points }, surface, RowImpulses::default()))
}

/// How two surfaces meet. Those of a crowd part along the normal and do no more: where they would rub means nothing.
fn surface_of(pair: &Pair, a: &Mover, b: &Mover, settings: &Settings) -> Surface {
    let surface = meet(a, b, settings);
    if !pair.crowded {
        return surface;
    }
    Surface { friction: 0.0, restitution: 0.0, rolling_radius: 0.0, ..surface }
}

/// The contact of two colliders.
fn new_contact(a: &ColliderRecord, b: &ColliderRecord) -> Contact {
    Contact {
        a: a.entity,
        b: b.entity,
        collider_a: a.index,
        collider_b: b.index,
        sensor: a.sensor || b.sensor,
        touching: false,
        approach: 0.0,
        blow: 0.0,
    }
}

/// Despawns a contact; those who slept on it wake.
fn end_contact(world: &mut World, collision: &mut Collision, entity: Option<Entity>) {
    let Some(entity) = entity else { return };
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

/// The bodies that touch.
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
    for pair in &collision.near {
        let (a, b) = (&collision.colliders[pair.ids.0 as usize], &collision.colliders[pair.ids.1 as usize]);
        let name = (a.entity.to_bits().get(), a.index, b.entity.to_bits().get(), b.index);
        let entity = known.remove(&name);
        if entity.is_some() {
            collision.begun.push(Pair { entity, ..Pair::new(pair.ids) });
        }
    }
    pairs::begin(collision);
    extra.extend(known.into_values());
    for entity in extra {
        let _ = step.world.despawn(entity);
    }
    collision.needs_solve = false;
}
