//! Colliders enter the stage: placed in the world, boxed, and known to the broad phase.

use crate::collision::{BodyColliders, Brief, ColliderRecord, Collision, Mover};
use crate::components::{BodyIndex, BodyKind, Collider, Colliders, CollisionFilter, Material};
use crate::constraint::BodyView;
use crate::geometry::{Bounds, Box3, Core, Form, Posed, Shape, ShapeHandle, inner_ball};
use crate::report::{StepReport, Trouble};
use crate::schedule::Step;
use glam::{DMat3, DQuat, DVec3};
use hecs::Entity;

/// Reads all colliders, tells the broad phase where they may be in this step, and drops those of bodies that are gone.
pub fn read_colliders(step: &mut Step<'_>) {
    let (bodies, collision) = (&step.work.bodies, &mut step.work.collision);
    let margin = step.settings.contact_margin;
    collision.pass += 1;
    collision.bounces = false;
    let mut seen = 0;
    for (entity, index, colliders) in step.world.query_mut::<(Entity, &BodyIndex, &mut Colliders)>() {
        let slot = index.0;
        if bodies.entity.get(slot as usize) != Some(&entity) || bodies.quarantined[slot as usize] {
            continue;
        }
        seen += 1;
        mend(collision, entity, &mut colliders.0, step.report);
        let (view, awake) = (&bodies.view[slot as usize], bodies.is_awake(slot));
        read_body(collision, entity, slot, view, awake, &colliders.0, margin, step.dt);
    }
    if seen != collision.bodies {
        drop_gone(collision);
    }
}

/// Puts numbers that are out of their range back to the last good ones, and tells each. Rotations are made unit.
fn mend(collision: &Collision, entity: Entity, colliders: &mut [Collider], report: &mut StepReport) {
    for (k, collider) in colliders.iter_mut().enumerate() {
        if let Err(number) = collider.check() {
            report.trouble(Trouble::Number { entity, number });
            let body = collision.by_body.get(entity.id() as usize).filter(|b| b.entity == Some(entity));
            let known = body.and_then(|b| b.ids.get(k)).map(|&number| number as usize);
            (collider.position, collider.rotation, collider.material) = match known {
                Some(n) => {
                    let record = &collision.colliders[n];
                    (record.local_position, record.local_rotation, collision.movers[n].material)
                }
                None => (DVec3::ZERO, DQuat::IDENTITY, Material::default()),
            };
        }
        let length = collider.rotation.length_squared();
        // 1e-6: what is written with few digits stays as it is.
        if (length - 1.0).abs() > 1e-6 {
            collider.rotation = collider.rotation.normalize();
        }
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
    let now = Now { entity, slot, view, awake, margin, dt };
    for (k, collider) in colliders.iter().enumerate() {
        collision.bounces |= collider.material.restitution > 0.0;
        let order = u64::from(slot) << 16 | k as u64;
        match collision.by_body[id].ids.get(k).copied() {
            Some(number) => {
                collision.broad.set_order(number, order);
                now.refresh(collision, number, collider);
            }
            None => now.add(collision, id, order, k as u32, collider),
        }
    }
}

/// A body in this step.
struct Now<'a> {
    entity: Entity,
    slot: u32,
    view: &'a BodyView,
    awake: bool,
    margin: f64,
    dt: f64,
}

impl Now<'_> {
    /// Takes over what may have changed.
    fn refresh(&self, collision: &mut Collision, number: u32, collider: &Collider) {
        let n = number as usize;
        let (record, mover) = (&mut collision.colliders[n], &mut collision.movers[n]);
        let mut changed = is_movable(self.view);
        if !record.shape.same(&collider.shape) {
            record.shape = collider.shape.clone();
            measure(record, mover, collider);
            self.note_thickness(&mut collision.thinnest, record);
            (changed, mover.reshaped) = (true, true);
        }
        let pose = self.pose(collider);
        if mover.pose != pose {
            changed = true;
            let moved = moved(mover, &pose);
            if moved.is_finite() {
                mover.odometer += moved;
            } else {
                mover.reshaped = true;
            }
        }
        if mover.reshaped {
            collision.reshaped.push(number);
        }
        record.slot = self.slot;
        (record.local_position, record.local_rotation) = (collider.position, collider.rotation);
        (record.filter, record.sensor) = (collider.filter, collider.sensor);
        (record.position, record.rotation) = (pose.position, pose.rotation);
        mover.pose = pose;
        let sweep = self.set_motion(mover, collider);
        let brief = &mut collision.briefs[n];
        if changed {
            brief.bounds = self.bounds(record, mover, collider, sweep);
            if let Some(bounds) = brief.bounds {
                collision.broad.update(number, bounds);
            }
            collision.broad.set_core(number, self.core(mover, collider));
        }
        self.set_brief(brief, collider);
        collision.spent[n] = spent(mover);
    }

    /// A collider that was not there.
    fn add(&self, collision: &mut Collision, id: usize, order: u64, index: u32, collider: &Collider) {
        let pose = self.pose(collider);
        let (mut record, mut mover) = (new_record(self, index, collider, &pose), new_mover(pose));
        measure(&mut record, &mut mover, collider);
        self.note_thickness(&mut collision.thinnest, &record);
        let sweep = self.set_motion(&mut mover, collider);
        let mut brief = NEW_BRIEF;
        brief.bounds = self.bounds(&record, &mover, collider, sweep);
        self.set_brief(&mut brief, collider);
        // A shape whose box is not finite cannot be met; it waits as a point.
        let at = self.view.position;
        let bounds = brief.bounds.unwrap_or(Bounds::Finite(Box3 { low: at, high: at }));
        let number = collision.broad.insert(order, bounds, is_movable(self.view));
        collision.broad.set_core(number, self.core(&mover, collider));
        put(&mut collision.colliders, number, record);
        put(&mut collision.briefs, number, brief);
        put(&mut collision.spent, number, spent(&mover));
        put(&mut collision.movers, number, mover);
        collision.by_body[id].ids.push(number);
    }

    fn note_thickness(&self, thinnest: &mut Option<f64>, record: &ColliderRecord) {
        if is_movable(self.view) {
            *thinnest = Some(thinnest.map_or(record.thickness, |least| least.min(record.thickness)));
        }
    }

    #[inline]
    fn pose(&self, collider: &Collider) -> Posed {
        if collider.position == DVec3::ZERO && collider.rotation == DQuat::IDENTITY {
            return Posed { position: self.view.position, rotation: self.view.rotation };
        }
        Posed {
            position: self.view.position + self.view.rotation * collider.position,
            rotation: self.view.rotation * collider.rotation,
        }
    }

    /// Writes how the collider moves in this step. Returns how far its surface moves by turning at most: a turning body sweeps no
    /// further than its reach; one that turns fast is a ball. Bodies that do not turn may be unbounded: no zero times infinity.
    #[inline]
    fn set_motion(&self, mover: &mut Mover, collider: &Collider) -> f64 {
        let view = self.view;
        let turn = view.angular_velocity.length() * self.dt;
        let sweep = if turn > 0.0 { turn.min(2.0) * mover.reach } else { 0.0 };
        mover.center = view.position;
        mover.turn = DMat3::from_quat(view.rotation);
        mover.velocity = [view.linear_velocity, view.angular_velocity];
        mover.way = view.linear_velocity.length() * self.dt + sweep;
        mover.material = collider.material;
        let dynamic = view.kind == BodyKind::Dynamic;
        mover.mass = if dynamic { view.mass } else { f64::INFINITY };
        mover.own = if dynamic { mover.grip } else { f64::INFINITY };
        mover.fine = mover.own.min(0.05 * mover.reach).min(mover.size.max(1e-6));
        sweep
    }

    /// The ball inside of it where forces move it.
    #[inline]
    fn core(&self, mover: &Mover, collider: &Collider) -> Core {
        let (center, radius) = mover.inner;
        if self.view.kind != BodyKind::Dynamic || collider.sensor {
            return Core::NONE;
        }
        let at = mover.pose.position;
        let center = if center == DVec3::ZERO { at } else { at + mover.pose.rotation * center };
        let CollisionFilter { groups, mask } = collider.filter;
        Core { center, radius, body: self.slot, groups, mask }
    }

    #[inline]
    fn set_brief(&self, brief: &mut Brief, collider: &Collider) {
        (brief.slot, brief.awake, brief.dynamic) =
            (self.slot, self.awake, self.view.kind == BodyKind::Dynamic);
        (brief.filter, brief.sensor) = (collider.filter, collider.sensor);
    }

    /// Where the collider may be during the step, with the margin all around.
    #[inline]
    fn bounds(
        &self,
        record: &ColliderRecord,
        mover: &Mover,
        collider: &Collider,
        sweep: f64,
    ) -> Option<Bounds> {
        let (pose, margin) = (&mover.pose, self.margin + sweep);
        let turn = match mover.form {
            Form::Other => {
                if let Shape::HalfSpace { normal } = record.shape.shape() {
                    let normal = pose.rotation * normal.normalize();
                    return Some(Bounds::Below { normal, offset: normal.dot(pose.position) + margin });
                }
                DMat3::IDENTITY
            }
            Form::Box(_) if collider.rotation != DQuat::IDENTITY => DMat3::from_quat(pose.rotation),
            _ => mover.turn,
        };
        let there = Box3::of(mover.form, &record.shape, pose, &turn);
        let swept = there.swept(self.view.linear_velocity * self.dt, margin);
        (swept.low.is_finite() && swept.high.is_finite()).then_some(Bounds::Finite(swept))
    }
}

fn put<T>(list: &mut Vec<T>, number: u32, item: T) {
    match list.get_mut(number as usize) {
        Some(old) => *old = item,
        None => list.push(item),
    }
}

const NEW_BRIEF: Brief = Brief {
    bounds: None,
    slot: 0,
    filter: CollisionFilter { groups: 0, mask: 0 },
    sensor: false,
    dynamic: false,
    awake: true,
};

fn is_movable(view: &BodyView) -> bool {
    view.kind != BodyKind::Fixed
}

fn new_record(now: &Now, index: u32, collider: &Collider, pose: &Posed) -> ColliderRecord {
    ColliderRecord {
        entity: now.entity,
        slot: now.slot,
        index,
        shape: collider.shape.clone(),
        core: collider.shape.clone(),
        centre: collider.shape.clone(),
        local_position: collider.position,
        local_rotation: collider.rotation,
        position: pose.position,
        rotation: pose.rotation,
        filter: collider.filter,
        sensor: collider.sensor,
        thickness: 0.0,
        size: 0.0,
    }
}

fn new_mover(pose: Posed) -> Mover {
    Mover {
        form: Form::Other,
        pose,
        inner: (DVec3::ZERO, 0.0),
        center: DVec3::ZERO,
        turn: DMat3::IDENTITY,
        velocity: [DVec3::ZERO; 2],
        material: Material::default(),
        mass: 1.0,
        way: 0.0,
        reach: 0.0,
        own: 0.0,
        grip: 0.0,
        fine: 0.0,
        size: 0.0,
        span: 0.0,
        odometer: 0.0,
        faceted: false,
        reshaped: false,
    }
}

/// Takes over all that follows from the shape and its place on the body.
fn measure(record: &mut ColliderRecord, mover: &mut Mover, collider: &Collider) {
    let shape = &collider.shape;
    record.thickness = shape.thickness();
    // A tenth of a micrometre: what is thinner has no inside, and the least ball is a nanometre.
    if record.thickness.is_finite() && record.thickness >= 1e-7 {
        record.core = ShapeHandle::sphere(0.5 * record.thickness);
        record.centre = ShapeHandle::sphere(0.01 * record.thickness);
    }
    mover.reach = shape.reach_from(collider.rotation.inverse() * -collider.position);
    mover.span = shape.reach_from(DVec3::ZERO);
    mover.form = shape.form();
    mover.inner = inner_ball(shape);
    mover.faceted = matches!(shape.shape(), Shape::Box { .. } | Shape::ConvexHull { .. });
    mover.grip = (0.5 * record.thickness).max(0.1 * mover.reach);
    let surface = matches!(shape.shape(), Shape::TriMesh { .. } | Shape::HeightField { .. });
    let flat = surface && record.thickness < 0.01 * mover.reach;
    record.size = if flat { f64::INFINITY } else { record.thickness };
    mover.size = record.size;
}

/// How far a collider's points go at most when it is put elsewhere. Turning by θ takes a point at distance r no further than
/// 2 r sin θ/2, which is no more than 2 r |q − q'| = 4 r sin θ/4.
pub(super) fn moved(mover: &Mover, to: &Posed) -> f64 {
    let turn = (to.rotation - mover.pose.rotation).length();
    let swung = if turn > 0.0 { 2.0 * turn * mover.span } else { 0.0 };
    (to.position - mover.pose.position).length() + swung
}

/// See [`Collision::spent`].
fn spent(mover: &Mover) -> f64 {
    if mover.reshaped { f64::INFINITY } else { mover.odometer + mover.way }
}

/// Are these the colliders that the stage has last read of a body?
#[inline]
pub fn knows_colliders(collision: &Collision, body: Entity, colliders: &[Collider]) -> bool {
    let known = collision.by_body.get(body.id() as usize).filter(|known| known.entity == Some(body));
    let numbers = known.map_or(&[][..], |known| &known.ids);
    numbers.len() == colliders.len()
        && numbers.iter().zip(colliders).all(|(&number, collider)| {
            let record = &collision.colliders[number as usize];
            record.shape.same(&collider.shape)
                && (record.local_position, record.local_rotation) == (collider.position, collider.rotation)
                && (record.filter, record.sensor) == (collider.filter, collider.sensor)
                && collision.movers[number as usize].material == collider.material
        })
}

/// Once contacts have been updated, everything is known of the shapes as they are.
pub fn know_shapes(collision: &mut Collision) {
    for number in collision.reshaped.drain(..) {
        collision.movers[number as usize].reshaped = false;
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
