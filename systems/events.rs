//! What happened to contacts in this step.

use super::collide::{names, stopped, tied};
use crate::collision::{Collision, Pair};
use crate::components::{Contact, HitThreshold, Manifold, ManifoldPoint, RowImpulses};
use crate::constraint::contact_rows::{SLOW, STRIDE, relative_velocity};
use crate::events::{ContactEvent, Touch};
use crate::schedule::Step;
use crate::settings::Settings;
use crate::state::{Bodies, Work};
use hecs::{Entity, World};

/// Forgets the events of the last step (once a step, not once a substep).
pub fn clear_events(step: &mut Step<'_>) {
    if step.work.substep.0 == 0 {
        step.work.collision.events.clear();
    }
}

/// Notes which pairs touch now, which no longer do, and which have struck each other; in the order of the pairs.
pub fn report_contacts(step: &mut Step<'_>) {
    let (world, settings) = (&*step.world, step.settings);
    let Work { bodies, collision, jointed_pairs, .. } = &mut *step.work;
    let Collision { pairs, colliders, events, .. } = collision;
    if pairs.iter().all(|p| p.asleep) {
        return;
    }
    let mut query = world.query::<(&mut Contact, &Manifold, &RowImpulses)>();
    let mut contacts = query.view();
    for pair in pairs.iter().filter(|p| !p.asleep) {
        let Some(entity) = pair.entity else { continue };
        let Some((contact, manifold, impulses)) = contacts.get_mut(entity) else { continue };
        let slots = slots(pair, colliders);
        let pushed = if contact.sensor { Pushed::default() } else { Pushed::of(manifold, impulses) };
        let overlap = || manifold.points.iter().any(|p| p.separation <= 0.0);
        let touching = (pushed.impulse > 0.0 || overlap()) && !tied(jointed_pairs, slots[0], slots[1]);
        let touch = |contact: &Contact| touch(entity, contact, manifold, &pushed, bodies, slots[0]);
        if touching != contact.touching {
            contact.touching = touching;
            let pair = names(contact);
            events.push(match (touching, contact.sensor) {
                (true, false) => ContactEvent::Started { pair, touch: touch(contact) },
                (true, true) => ContactEvent::Entered(pair),
                (false, _) => stopped(contact),
            });
        }
        contact.blow += pushed.blow;
        // Impacts end where they begin; bodies may be shown as they are before one.
        let answered = || manifold.points.iter().any(|p| p.answered);
        if contact.blow == 0.0 || answered() || has_met(contact, manifold, bodies, slots) {
            if contact.blow > 0.0 && matters(contact, world, settings) {
                let (pair, impulse) = (names(contact), contact.blow);
                events.push(ContactEvent::Hit { pair, touch: touch(contact), impulse });
            }
            (contact.approach, contact.blow) = (0.0, 0.0);
        }
    }
}

fn slots(pair: &Pair, colliders: &[crate::collision::ColliderRecord]) -> [u32; 2] {
    [pair.ids.0, pair.ids.1].map(|id| colliders[id as usize].slot)
}

/// What the normal rows of a contact did in the step.
#[derive(Default)]
struct Pushed {
    /// Sum of the normal impulses (N·s).
    impulse: f64,
    /// The part of it that stopped an approach (N·s).
    blow: f64,
    /// Key of the point that was pushed hardest.
    hardest: Option<u32>,
}

impl Pushed {
    fn of(manifold: &Manifold, impulses: &RowImpulses) -> Pushed {
        let (mut pushed, mut most) = (Pushed::default(), 0.0);
        for row in impulses.0.iter().filter(|r| r.key.is_multiple_of(STRIDE)) {
            let key = row.key / STRIDE;
            pushed.impulse += row.lambda;
            if row.lambda > most {
                (most, pushed.hardest) = (row.lambda, Some(key));
            }
            let struck = manifold.points.iter().find(|p| p.key == key).map_or(0.0, |p| p.impacting);
            pushed.blow += row.lambda.max(0.0) * struck;
        }
        pushed
    }
}

/// Have the surfaces stopped coming together, but for a tenth of the speed they came with? A fast body is left with what takes it
/// down to the surface in the next step.
fn has_met(contact: &Contact, manifold: &Manifold, bodies: &Bodies, slots: [u32; 2]) -> bool {
    let views = slots.map(|s| &bodies.view[s as usize]);
    let closing = manifold.points.iter().map(|p| -p.normal.dot(relative_velocity(p, views)));
    closing.fold(0.0, f64::max) <= (0.1 * contact.approach).max(SLOW)
}

/// Is the blow beyond the threshold of one of its bodies, or beyond the setting where none has one?
fn matters(contact: &Contact, world: &World, settings: &Settings) -> bool {
    let beyond = |t: HitThreshold| contact.blow > t.impulse && contact.approach > t.speed;
    let own = |body: Entity| world.get::<&HitThreshold>(body).ok().map(|t| *t);
    match (own(contact.a), own(contact.b)) {
        (None, None) => beyond(HitThreshold {
            impulse: settings.impulse_event_threshold,
            speed: settings.bounce_threshold,
        }),
        (a, b) => a.is_some_and(beyond) || b.is_some_and(beyond),
    }
}

fn touch(
    entity: Entity,
    contact: &Contact,
    manifold: &Manifold,
    pushed: &Pushed,
    bodies: &Bodies,
    slot: u32,
) -> Touch {
    let deepest = || manifold.points.iter().min_by(|p, q| p.separation.total_cmp(&q.separation));
    let hardest = manifold.points.iter().find(|p| Some(p.key) == pushed.hardest);
    let view = &bodies.view[slot as usize];
    let at = |p: &ManifoldPoint| (view.point(p.anchor_a), p.normal);
    let (point, normal) = hardest.or_else(deepest).map_or((view.position, glam::DVec3::ZERO), at);
    Touch { contact: entity, point, normal, approach: contact.approach }
}
