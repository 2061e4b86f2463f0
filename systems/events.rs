//! What happened to contacts in this step.

use super::collide::{names, stopped};
use crate::components::{Contact, Manifold, RowImpulses};
use crate::constraint::contact_rows::STRIDE;
use crate::events::ContactEvent;
use crate::schedule::Step;

/// Forgets the events of the last step (once a step, not once a substep).
pub fn clear_events(step: &mut Step<'_>) {
    if step.work.substep.0 == 0 {
        step.work.collision.events.clear();
    }
}

/// Notes which pairs touch now, which no longer do, and which hit hard; in the order of the pairs.
pub fn tell_contacts(step: &mut Step<'_>) {
    let collision = &mut step.work.collision;
    let mut query = step.world.query::<(&mut Contact, &Manifold, &RowImpulses)>();
    let mut contacts = query.view();
    for pair in &collision.pairs {
        let Some((contact, manifold, impulses)) = pair.entity.and_then(|e| contacts.get_mut(e)) else {
            continue;
        };
        if pair.asleep {
            continue;
        }
        let normal = |key: u32| key.is_multiple_of(STRIDE);
        let impulse: f64 = if contact.sensor {
            0.0
        } else {
            impulses.0.iter().filter(|r| normal(r.key)).map(|r| r.lambda).sum()
        };
        let touching = impulse > 0.0 || manifold.points.iter().any(|p| p.separation <= 0.0);
        if touching != contact.touching {
            contact.touching = touching;
            let names = names(contact);
            collision.events.push(match (touching, contact.sensor) {
                (true, false) => ContactEvent::Started(names),
                (true, true) => ContactEvent::Entered(names),
                (false, _) => stopped(contact),
            });
        }
        if impulse > step.settings.impulse_event_threshold {
            collision.events.push(ContactEvent::Hit { pair: names(contact), impulse });
        }
    }
}
