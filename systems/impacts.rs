//! Impacts that hand themselves on: a blow goes through a row of bodies one pair after another.
//!
//! Newton's law solved for all contacts at once throws a row of balls apart in a way no cradle does, and with joints it
//! may gain energy. So surfaces that are about to meet and bounce exchange their impulses pair by pair, each pair with its
//! own restitution, until nothing approaches any more. No pair gains energy, so the whole does not. What is left
//! is for the rows. Bodies that are still further apart than a tenth of their size come to lie on each other first and
//! bounce in the next step (see [`crate::constraint::contact_rows`]).

use super::collide::narrow::meet;
use crate::components::{Contact, Manifold, Surface};
use crate::report::Trouble;
use crate::schedule::Step;
use crate::state::Bodies;
use glam::{DMat3, DVec3};
use hecs::Entity;

/// Sweeps over all impacts before the rest is left to the rows.
const SWEEPS: u32 = 64;

/// A point that may bounce.
pub struct Impact {
    contact: Entity,
    slots: [u32; 2],
    arms: [DVec3; 2],
    normal: DVec3,
    restitution: f64,
    separation: f64,
    /// Greatest speed with which it was met (m/s), and what that took (N·s).
    approach: f64,
    impulse: f64,
}

/// Lets bodies that are about to hit each other bounce.
pub fn bounce_pairs(step: &mut Step<'_>) {
    let mut impacts = std::mem::take(&mut step.work.impacts);
    impacts.clear();
    list_impacts(step, &mut impacts);
    if !impacts.is_empty() {
        exchange(&mut impacts, &mut step.work.bodies, step.settings.bounce_threshold, step.dt);
        note_blows(step, &impacts);
    }
    step.work.impacts = impacts;
}

fn list_impacts(step: &mut Step<'_>, impacts: &mut Vec<Impact>) {
    let (bodies, collision) = (&step.work.bodies, &step.work.collision);
    if collision.pairs.is_empty() {
        return;
    }
    let mut query = step.world.query::<(&Contact, &Manifold, &mut Surface)>();
    let mut contacts = query.view();
    for pair in &collision.pairs {
        let Some(entity) = pair.entity else { continue };
        let Some((contact, manifold, surface)) = contacts.get_mut(entity) else { continue };
        // Systems of the user may have put anything there.
        if let Err(number) = surface.check() {
            let [a, b] = [pair.ids.0, pair.ids.1].map(|id| &collision.movers[id as usize]);
            *surface = meet(a, b, step.settings);
            step.report.trouble(Trouble::Number { entity, number });
        }
        let (a, b) = (&collision.colliders[pair.ids.0 as usize], &collision.colliders[pair.ids.1 as usize]);
        let pushes = !contact.sensor && surface.enabled && surface.restitution > 0.0;
        if !pushes || !(bodies.is_dynamic(a.slot) || bodies.is_dynamic(b.slot)) {
            continue;
        }
        let near = 0.1 * a.size.min(b.size);
        impacts.extend(manifold.points.iter().filter(|p| p.separation <= near).map(|p| Impact {
            contact: entity,
            slots: [a.slot, b.slot],
            arms: [p.arm_a, p.arm_b],
            normal: p.normal,
            restitution: surface.restitution,
            separation: p.separation,
            approach: 0.0,
            impulse: 0.0,
        }));
    }
}

/// Contacts remember what they exchanged, for the events of the step.
fn note_blows(step: &mut Step<'_>, impacts: &[Impact]) {
    let mut query = step.world.query::<&mut Contact>();
    let mut contacts = query.view();
    for impact in impacts.iter().filter(|i| i.impulse > 0.0) {
        if let Some(contact) = contacts.get_mut(impact.contact) {
            contact.approach = contact.approach.max(impact.approach);
            contact.blow += impact.impulse;
        }
    }
}

fn exchange(impacts: &mut [Impact], bodies: &mut Bodies, threshold: f64, dt: f64) {
    let inverse: Vec<[(f64, DMat3); 2]> =
        impacts.iter().map(|i| i.slots.map(|s| inverse_mass(bodies, s))).collect();
    for _ in 0..SWEEPS {
        let mut quiet = true;
        for (impact, inverse) in impacts.iter_mut().zip(&inverse) {
            let speed = impact.speed(bodies);
            if -speed > threshold && impact.separation <= -speed * dt {
                impact.approach = impact.approach.max(-speed);
                impact.impulse += impact.push(bodies, inverse, -(1.0 + impact.restitution) * speed);
                quiet = false;
            }
        }
        if quiet {
            return;
        }
    }
}

fn inverse_mass(bodies: &Bodies, slot: u32) -> (f64, DMat3) {
    if !bodies.is_dynamic(slot) {
        return (0.0, DMat3::ZERO);
    }
    let view = &bodies.view[slot as usize];
    (1.0 / view.mass, view.inverse_inertia())
}

impl Impact {
    /// Velocity of b over a along the normal, before forces act.
    fn speed(&self, bodies: &Bodies) -> f64 {
        let at = |k: usize| {
            let view = &bodies.view[self.slots[k] as usize];
            view.linear_velocity + view.angular_velocity.cross(self.arms[k])
        };
        self.normal.dot(at(1) - at(0))
    }

    /// Changes the velocity along the normal by `change`, momentum kept. The impulse that takes (N·s).
    fn push(&self, bodies: &mut Bodies, inverse: &[(f64, DMat3); 2], change: f64) -> f64 {
        let turn = [0, 1].map(|k| inverse[k].1 * self.arms[k].cross(self.normal));
        let give: f64 = (0..2).map(|k| inverse[k].0 + self.normal.dot(turn[k].cross(self.arms[k]))).sum();
        if give <= 0.0 {
            return 0.0;
        }
        for (k, sign) in [(0, -1.0), (1, 1.0)] {
            let slot = self.slots[k] as usize;
            let (linear, angular) =
                (self.normal * (sign * change / give * inverse[k].0), turn[k] * (sign * change / give));
            bodies.view[slot].linear_velocity += linear;
            bodies.view[slot].angular_velocity += angular;
            bodies.velocity[slot][0] += linear;
            bodies.velocity[slot][1] += angular;
        }
        change / give
    }
}
