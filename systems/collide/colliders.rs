//! Colliders enter the stage: placed in the world, boxed, and known to the broad phase.

use crate::collision::{BodyColliders, Brief, ColliderRecord, Collision, Mover};
use crate::components::{BodyIndex, BodyKind, Collider, Colliders};
use crate::constraint::BodyView;
use crate::geometry::{Bounds, Box3, Form, Posed, Shape, ShapeHandle};
use crate::schedule::Step;
use glam::{DMat3, DQuat, DVec3};
use hecs::Entity;

/// Reads all colliders, tells the broad phase where they may be in this step, and drops those of bodies that are gone.
pub fn read_colliders(step: &mut Step<'_>) {
    let (bodies, collision) = (&step.work.bodies, &mut step.work.collision);
    let margin = step.settings.contact_margin;
    collision.pass += 1;
    let mut seen = 0;
    for (entity, index, colliders) in step.world.query_mut::<(Entity, &BodyIndex, &Colliders)>() {
        let slot = index.0;
        if bodies.entity.get(slot as usize) != Some(&entity) || bodies.quarantined[slot as usize] {
            continue;
        }
        seen += 1;
        let (view, awake) = (&bodies.view[slot as usize], bodies.is_awake(slot));
        read_body(collision, entity, slot, view, awake, &colliders.0, margin, step.dt);
    }
    if seen != collision.bodies {
        drop_gone(collision);
    }
}

#[allow(clippy::too_many_arguments)]
fn read_body(
    collision: &mut Collision,
    entity: Entity,
    slot: u32,
    view: &BodyView,
    awake: bool,
    colliders: &[Collider],
    margin: f64,
    dt: f64,
) {
    let id = entity.id() as usize;
    if collision.by_body.len() <= id {
        collision.by_body.resize(id + 1, BodyColliders::default());
    }
    let known = &collision.by_body[id];
    let same_kind = known.ids.first().is_none_or(|i| collision.broad.is_movable(*i) == is_movable(view));
    if known.entity != Some(entity) || known.ids.len() != colliders.len() || !same_kind {
        drop_body(collision, id);
        collision.by_body[id].entity = Some(entity);
        collision.bodies += 1;
    }
    collision.by_body[id].pass = collision.pass;
    for (k, collider) in colliders.iter().enumerate() {
        let order = u64::from(slot) << 16 | k as u64;
        match collision.by_body[id].ids.get(k).copied() {
            Some(number) => {
                collision.broad.set_order(number, order);
                let record = &mut collision.colliders[number as usize];
                let changed = refresh(record, collider, slot, view);
                if record.reshaped {
                    collision.reshaped.push(number);
                }
                let (way, sweep) = ways(record, view, dt);
                let mut place = collision.briefs[number as usize].bounds;
                if changed {
                    place = bounds(record, view, margin + sweep, dt);
                    if let Some(bounds) = place {
                        collision.broad.update(number, bounds);
                    }
                }
                collision.briefs[number as usize] = brief(collider, slot, view, awake, place);
                collision.movers[number as usize] = mover(record, view, way);
                collision.spent[number as usize] = spent(record, way);
            }
            None => {
                let record = new_record(entity, slot, k as u32, collider, view);
                let (way, sweep) = ways(&record, view, dt);
                let place = bounds(&record, view, margin + sweep, dt);
                let (mover, spent) = (mover(&record, view, way), spent(&record, way));
                let brief = brief(collider, slot, view, awake, place);
                // A shape whose box is not finite cannot be met; it waits as a point.
                let bounds =
                    place.unwrap_or(Bounds::Finite(Box3 { low: view.position, high: view.position }));
                let number = collision.broad.insert(order, bounds, is_movable(view));
                if collision.colliders.len() <= number as usize {
                    collision.colliders.push(record);
                    collision.briefs.push(brief);
                    collision.movers.push(mover);
                    collision.spent.push(spent);
                } else {
                    collision.colliders[number as usize] = record;
                    collision.briefs[number as usize] = brief;
                    collision.movers[number as usize] = mover;
                    collision.spent[number as usize] = spent;
                }
                collision.by_body[id].ids.push(number);
            }
        }
    }
}

fn brief(collider: &Collider, slot: u32, view: &BodyView, awake: bool, bounds: Option<Bounds>) -> Brief {
    let (filter, sensor, dynamic) = (collider.filter, collider.sensor, view.kind == BodyKind::Dynamic);
    Brief { bounds, slot, filter, sensor, dynamic, awake }
}

fn is_movable(view: &BodyView) -> bool {
    view.kind != BodyKind::Fixed
}

fn new_record(entity: Entity, slot: u32, index: u32, collider: &Collider, view: &BodyView) -> ColliderRecord {
    let mut record = ColliderRecord {
        entity,
        slot,
        index,
        shape: collider.shape.clone(),
        core: collider.shape.clone(),
        centre: collider.shape.clone(),
        local_position: collider.position,
        local_rotation: collider.rotation,
        position: DVec3::NAN,
        rotation: view.rotation,
        material: collider.material,
        filter: collider.filter,
        sensor: collider.sensor,
        thickness: 0.0,
        size: 0.0,
        reach: 0.0,
        form: Form::Other,
        faceted: false,
        span: 0.0,
        odometer: 0.0,
        reshaped: false,
    };
    measure(&mut record, collider);
    refresh(&mut record, collider, slot, view);
    record.reshaped = false;
    record
}

fn measure(record: &mut ColliderRecord, collider: &Collider) {
    record.thickness = collider.shape.thickness();
    if record.thickness.is_finite() && record.thickness > 0.0 {
        record.core = ShapeHandle::sphere(0.5 * record.thickness);
        record.centre = ShapeHandle::sphere(0.01 * record.thickness);
    }
    record.reach = collider.shape.reach_from(collider.rotation.inverse() * -collider.position);
    record.span = collider.shape.reach_from(DVec3::ZERO);
    record.form = collider.shape.form();
    record.faceted = matches!(collider.shape.shape(), Shape::Box { .. } | Shape::ConvexHull { .. });
    let surface = matches!(collider.shape.shape(), Shape::TriMesh { .. } | Shape::HeightField { .. });
    let flat = surface && record.thickness < 0.01 * record.reach;
    record.size = if flat { f64::INFINITY } else { record.thickness };
}

/// Takes over what may have changed; false if a body that does not move has not.
fn refresh(record: &mut ColliderRecord, collider: &Collider, slot: u32, view: &BodyView) -> bool {
    let position = view.position + view.rotation * collider.position;
    let rotation = view.rotation * collider.rotation;
    let mut changed = view.kind != BodyKind::Fixed;
    if !record.shape.same(&collider.shape) {
        record.shape = collider.shape.clone();
        measure(record, collider);
        (changed, record.reshaped) = (true, true);
    }
    if record.position != position || record.rotation != rotation {
        changed = true;
        let moved = moved(record, position, rotation);
        if moved.is_finite() {
            record.odometer += moved;
        } else {
            record.reshaped = true;
        }
    }
    record.slot = slot;
    (record.local_position, record.local_rotation) = (collider.position, collider.rotation);
    (record.position, record.rotation) = (position, rotation);
    (record.material, record.filter, record.sensor) = (collider.material, collider.filter, collider.sensor);
    changed
}

/// How far the surface moves in the step at most, and how much of that is from turning. A turning body sweeps no further
/// than its reach; one that turns fast is a ball. Bodies that do not turn may be unbounded: no zero times infinity.
fn ways(record: &ColliderRecord, view: &BodyView, dt: f64) -> (f64, f64) {
    let turn = view.angular_velocity.length() * dt;
    let sweep = if turn > 0.0 { turn.min(2.0) * record.reach } else { 0.0 };
    (view.linear_velocity.length() * dt + sweep, sweep)
}

/// How far a collider's points go at most when it is put elsewhere. Turning by θ takes a point at distance r no further than
/// 2 r sin θ/2, which is no more than 2 r |q − q'| = 4 r sin θ/4.
pub(super) fn moved(record: &ColliderRecord, position: DVec3, rotation: DQuat) -> f64 {
    let turn = (rotation - record.rotation).length();
    let swung = if turn > 0.0 { 2.0 * turn * record.span } else { 0.0 };
    (position - record.position).length() + swung
}

/// See [`Collision::spent`].
fn spent(record: &ColliderRecord, way: f64) -> f64 {
    if record.reshaped { f64::INFINITY } else { record.odometer + way }
}

fn mover(record: &ColliderRecord, view: &BodyView, way: f64) -> Mover {
    let dynamic = view.kind == BodyKind::Dynamic;
    let own = (0.5 * record.thickness).max(0.1 * record.reach);
    Mover {
        form: record.form,
        pose: Posed { position: record.position, rotation: record.rotation },
        center: view.position,
        turn: DMat3::from_quat(view.rotation),
        velocity: [view.linear_velocity, view.angular_velocity],
        material: record.material,
        mass: if dynamic { view.mass } else { f64::INFINITY },
        way,
        reach: record.reach,
        own: if dynamic { own } else { f64::INFINITY },
        size: record.size,
        faceted: record.faceted,
        reshaped: record.reshaped,
    }
}

/// Where the collider may be during the step, with `margin` all around.
fn bounds(record: &ColliderRecord, view: &BodyView, margin: f64, dt: f64) -> Option<Bounds> {
    if let Shape::HalfSpace { normal } = record.shape.shape() {
        let normal = record.rotation * normal.normalize();
        return Some(Bounds::Below { normal, offset: normal.dot(record.position) + margin });
    }
    let pose = Posed { position: record.position, rotation: record.rotation };
    let swept = Box3::of(record.form, &record.shape, &pose).swept(view.linear_velocity * dt, margin);
    (swept.low.is_finite() && swept.high.is_finite()).then_some(Bounds::Finite(swept))
}

/// Once contacts have been updated, everything is known of the shapes as they are.
pub fn know_shapes(collision: &mut Collision) {
    for number in collision.reshaped.drain(..) {
        collision.colliders[number as usize].reshaped = false;
    }
}

fn drop_body(collision: &mut Collision, id: usize) {
    let body = &mut collision.by_body[id];
    if body.entity.take().is_some() {
        collision.bodies -= 1;
    }
    for number in body.ids.drain(..) {
        collision.broad.remove(number);
    }
}

fn drop_gone(collision: &mut Collision) {
    for id in 0..collision.by_body.len() {
        if collision.by_body[id].entity.is_some() && collision.by_body[id].pass != collision.pass {
            drop_body(collision, id);
        }
    }
}
