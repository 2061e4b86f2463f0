//! Bodies enter the step here, once: numbered, checked, and gathered into dense arrays.
//!
//! State that is not finite, or absurd, is quarantined: the body stands still at its last good pose and the
//! report names it. Nothing downstream ever sees a bad number.

use crate::components::*;
use crate::constraint::BodyView;
use crate::report::{BadQuantity, Trouble};
use crate::schedule::Step;
use crate::settings::Settings;
use crate::state::Bodies;
use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};

/// What every body has.
type State<'a> = (
    Entity,
    &'a BodyKind,
    &'a Position,
    &'a mut Rotation,
    &'a LinearVelocity,
    &'a AngularVelocity,
    &'a Mass,
    &'a Inertia,
    Option<&'a BodyIndex>,
    Option<&'a mut Damping>,
    hecs::Satisfies<&'a Quarantined>,
    hecs::Satisfies<&'a PointMass>,
);

/// Numbers new bodies, forgets despawned ones, checks and gathers all of them.
pub fn quarantine_bad_state(step: &mut Step<'_>) {
    unpack_bundles(step.world);
    if !gather_state(step) {
        renumber(step.world, &mut step.work.bodies);
        let complete = gather_state(step);
        debug_assert!(complete, "every body has just been numbered");
    }
    step.report.bodies = step.work.bodies.len() as u32;
    let may_move = |view: &&BodyView| view.kind != BodyKind::Fixed;
    step.report.moving = step.work.bodies.view.iter().filter(may_move).count() as u32;
    step.report.quarantined = step.work.bodies.quarantined.iter().filter(|&&q| q).count() as u32;
}

/// A `RigidBody` spawned inside a tuple arrives as one component; it is taken apart, so that it is a body all the same.
fn unpack_bundles(world: &mut World) {
    let packed: Vec<Entity> = world.query_mut::<Entity>().with::<&RigidBody>().into_iter().collect();
    for entity in packed {
        if let Ok(body) = world.remove_one::<RigidBody>(entity) {
            // The component was there a line ago, so the entity is too.
            let _ = world.insert(entity, body);
        }
    }
}

/// One pass over all bodies; false if a body is new or gone.
fn gather_state(step: &mut Step<'_>) -> bool {
    let bodies = &mut step.work.bodies;
    let mut seen = 0;
    let mut bad: Vec<(Entity, u32, Option<BadQuantity>)> = Vec::new();
    for (entity, kind, position, rotation, v, w, mass, inertia, index, damping, out, point) in
        step.world.query_mut::<State<'_>>()
    {
        let Some(slot) = index.map(|i| i.0 as usize).filter(|&s| bodies.entity.get(s) == Some(&entity))
        else {
            return false;
        };
        seen += 1;
        let view = BodyView {
            kind: *kind,
            position: position.0,
            rotation: rotation.0,
            linear_velocity: v.0,
            angular_velocity: if point { DVec3::ZERO } else { w.0 },
            mass: mass.0,
            inertia: if point { DMat3::ZERO } else { inertia.0 },
        };
        if out {
            bodies.hold(slot);
            // What is written to it while it is out may mend it, but no number that is none stays in the world.
            if !is_finite(&view) {
                bad.push((entity, slot as u32, None));
            }
            continue;
        }
        match first_bad(&view, &bodies.view[slot], bodies.known[slot], point, step.settings) {
            Some(quantity) => bad.push((entity, slot as u32, Some(quantity))),
            None => {
                let view = unit_rotation(view);
                rotation.0 = view.rotation;
                bodies.view[slot] = view;
                bodies.known[slot] = true;
                bodies.quarantined[slot] = false;
                bodies.damping[slot] = match damping {
                    None => Damping::default(),
                    Some(damping) => {
                        if let Err(number) = damping.check() {
                            *damping = bodies.damping[slot];
                            step.report.trouble(Trouble::Number { entity, number });
                        }
                        *damping
                    }
                };
            }
        }
    }
    if seen != bodies.len() {
        return false;
    }
    for (entity, slot, quantity) in bad {
        freeze(step.world, bodies, entity, slot as usize, step.settings.tuning.max_position);
        if let Some(quantity) = quantity {
            step.report.trouble(Trouble::Quarantined { entity, quantity });
        }
    }
    true
}

fn is_finite(view: &BodyView) -> bool {
    let moves = view.linear_velocity.is_finite() && view.angular_velocity.is_finite();
    moves && view.position.is_finite() && view.rotation.is_finite()
}

/// Rotations that drifted from unit length by round-off or by hand are made unit again.
fn unit_rotation(mut view: BodyView) -> BodyView {
    let length = view.rotation.length_squared();
    // 4 ulp: what the update's own normalisation leaves; those bits must not be touched again
    if (length - 1.0).abs() > 4.0 * f64::EPSILON {
        view.rotation = view.rotation.normalize();
    }
    view
}

/// The first quantity of a body that cannot be simulated. Mass properties are only looked at when they changed.
fn first_bad(
    view: &BodyView,
    last: &BodyView,
    known: bool,
    point: bool,
    settings: &Settings,
) -> Option<BadQuantity> {
    let within = |v: DVec3, limit: f64| v.abs().max_element() <= limit && v.is_finite();
    if !within(view.position, settings.tuning.max_position) {
        return Some(BadQuantity::Position);
    }
    let length = view.rotation.length_squared();
    if !(length.is_finite() && length > 1e-12) {
        return Some(BadQuantity::Rotation);
    }
    if !within(view.linear_velocity, settings.tuning.max_speed) {
        return Some(BadQuantity::LinearVelocity);
    }
    if !within(view.angular_velocity, settings.tuning.max_speed) {
        return Some(BadQuantity::AngularVelocity);
    }
    let same_kind = known && last.kind == BodyKind::Dynamic;
    if view.kind != BodyKind::Dynamic || (same_kind && view.mass == last.mass && view.inertia == last.inertia)
    {
        return None;
    }
    if !(LEAST_MASS..=MOST_MASS).contains(&view.mass) {
        return Some(BadQuantity::Mass);
    }
    if point {
        return None;
    }
    if !is_inertia(view.inertia) {
        return Some(BadQuantity::Inertia);
    }
    is_too_slender(view.inertia).then_some(BadQuantity::Slender)
}

/// Least principal moment as a share of the sum of all three: a rod a million times as long as it is thick has 6e-12. Turned
/// into the world's axes, the tensor has round-off of 1e-15 of the largest, so that 1e-12 still has three true digits.
const LEAST_MOMENT: f64 = 1e-12;

/// Is a principal moment so small beside the others that round-off of these takes its place?
fn is_too_slender(inertia: DMat3) -> bool {
    let trace = inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z;
    !is_positive_definite(inertia - DMat3::from_diagonal(DVec3::splat(LEAST_MOMENT * trace)))
}

/// Dynamic bodies are at least this heavy (kg): a thousandth of a ball of water of a micrometre.
pub const LEAST_MASS: f64 = 1e-15;
/// And at most this (kg), a cube of water of 10 km. Beyond these, products of masses and speeds lose all that is small.
pub const MOST_MASS: f64 = 1e15;

/// Is this tensor one that a body can have: symmetric, positive definite, and no principal moment larger than the
/// sum of the other two? The last is the same as ½ tr(I) E − I, the second moment of mass, having no negative
/// eigenvalue.
pub fn is_inertia(inertia: DMat3) -> bool {
    let size = inertia.to_cols_array().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // Masses within their range on arms between a micrometre and 10,000 km.
    if !(1e-30..=1e30).contains(&size) {
        return false;
    }
    let unsymmetric = inertia - inertia.transpose();
    // 1e-9 and 1e-6: room for tensors rotated or written with few digits
    if unsymmetric.to_cols_array().iter().any(|x| x.abs() > 1e-9 * size) {
        return false;
    }
    let trace = inertia.x_axis.x + inertia.y_axis.y + inertia.z_axis.z;
    let second = DMat3::from_diagonal(DVec3::splat((0.5 + 1e-6) * trace)) - inertia;
    is_positive_definite(inertia) && is_positive_definite(second)
}

fn is_positive_definite(m: DMat3) -> bool {
    let minor = m.x_axis.x * m.y_axis.y - m.x_axis.y * m.y_axis.x;
    m.x_axis.x > 0.0 && minor > 0.0 && m.determinant() > 0.0
}

/// Takes a body out: last good pose (if it never had one: what of its pose can be used), no velocity.
fn freeze(world: &mut World, bodies: &mut Bodies, entity: Entity, slot: usize, max_position: f64) {
    let usable = |x: DVec3| if x.abs().max_element() <= max_position { x } else { DVec3::ZERO };
    let mut held = bodies.view[slot];
    if !bodies.known[slot] {
        held = BodyView::WORLD;
        if let Ok((position, rotation)) = world.query_one_mut::<(&Position, &Rotation)>(entity) {
            held.position = if position.0.is_finite() { usable(position.0) } else { DVec3::ZERO };
            let q = rotation.0;
            let has_length = q.is_finite() && q.length_squared() > 1e-12;
            held.rotation = if has_length { q.normalize() } else { DQuat::IDENTITY };
        }
    }
    bodies.view[slot] = held;
    bodies.hold(slot);
    let state = (
        Position(held.position),
        Rotation(held.rotation),
        LinearVelocity::default(),
        AngularVelocity::default(),
        Quarantined,
    );
    // The entity was yielded by a query of this very pass, so it exists.
    let _ = world.insert(entity, state);
}

impl Bodies {
    /// Marks a body as standing still outside the simulation.
    pub(super) fn hold(&mut self, slot: usize) {
        let view = &mut self.view[slot];
        view.linear_velocity = DVec3::ZERO;
        view.angular_velocity = DVec3::ZERO;
        self.quarantined[slot] = true;
    }

    /// Drops all numbering (not the memory).
    fn resize(&mut self, n: usize) {
        self.view.resize(n, BodyView::WORLD);
        self.known.resize(n, false);
        self.force.resize(n, [DVec3::ZERO; 2]);
        self.damping.resize(n, Damping::default());
        self.quarantined.resize(n, false);
        self.free.resize(n, [DVec3::ZERO; 2]);
        self.velocity.resize(n, [DVec3::ZERO; 2]);
        self.angular_momentum.resize(n, DVec3::ZERO);
        self.asleep.clear();
        self.asleep.resize(n, false);
        self.rest.resize(n, 0.0);
        self.steady.resize(n, false);
    }
}

/// Gives every body its rank in creation order: those known before keep their order, new ones follow by entity id.
fn renumber(world: &mut World, bodies: &mut Bodies) {
    let mut order: Vec<(u64, Entity, Option<usize>)> = world
        .query_mut::<State<'_>>()
        .into_iter()
        .map(|(entity, ..)| {
            // Not by its `BodyIndex`, which anything may have overwritten: the order of known bodies never changes.
            let old = bodies.slot_of(entity).map(|slot| slot as usize);
            let rank = old.map_or(1 << 32 | u64::from(entity.id()), |s| s as u64);
            (rank, entity, old)
        })
        .collect();
    order.sort_unstable_by_key(|&(rank, entity, _)| (rank, entity.to_bits()));
    let (old_view, old_known) = (std::mem::take(&mut bodies.view), std::mem::take(&mut bodies.known));
    let old_damping = std::mem::take(&mut bodies.damping);
    bodies.entity.clear();
    bodies.resize(order.len());
    for (slot, (_, entity, old)) in order.into_iter().enumerate() {
        bodies.entity.push(entity);
        if let Some(old) = old {
            bodies.view[slot] = old_view[old];
            bodies.known[slot] = old_known[old];
            bodies.damping[slot] = old_damping[old];
        }
        if bodies.slot_by_id.len() <= entity.id() as usize {
            bodies.slot_by_id.resize(entity.id() as usize + 1, 0);
        }
        bodies.slot_by_id[entity.id() as usize] = slot as u32;
        let number = BodyIndex(slot as u32);
        let numbered = world.get::<&mut BodyIndex>(entity).map(|mut i| *i = number).is_ok();
        if !numbered {
            let _ = world.insert_one(entity, number);
        }
    }
}
