//! Islands at rest fall asleep; whatever touches, pushes or moves one of them wakes them all.
//!
//! A sleeping body stands still, is in no island and costs next to nothing. Its contacts stay as they are, impulses
//! included, so that it wakes as it fell asleep. Who sleeps is the component [`Rest`], so snapshots hold it.

use crate::components::{AngularVelocity, BodyIndex, Contact, Force, LinearVelocity, Manifold, Rest, Torque};
use crate::constraint::BodyView;
use crate::events::ContactEvent;
use crate::schedule::Step;
use crate::settings::Settings;
use crate::state::{NO_ISLAND, Work};
use glam::DVec3;
use hecs::Entity;

/// Learns who sleeps. Bodies that are new get a [`Rest`].
pub fn read_rest(step: &mut Step<'_>) {
    let bodies = &mut step.work.bodies;
    let mut seen = 0;
    for (index, rest) in step.world.query_mut::<(&BodyIndex, &Rest)>() {
        if let Some(asleep) = bodies.asleep.get_mut(index.0 as usize) {
            *asleep = rest.asleep;
            let slot = index.0 as usize;
            bodies.rest[slot] = rest.time;
            bodies.steady[slot] = rest.steady;
            seen += 1;
            let view = &bodies.view[slot];
            if rest.asleep && (view.position, view.rotation) != (rest.position, rest.rotation) {
                step.work.collision.disturbed.push(bodies.entity[slot]);
            }
        }
    }
    if seen != bodies.len() {
        for slot in 0..bodies.len() {
            let entity = bodies.entity[slot];
            if !step.world.satisfies::<&Rest>(entity) {
                let (position, rotation) = (bodies.view[slot].position, bodies.view[slot].rotation);
                let _ = step.world.insert_one(entity, Rest { position, rotation, ..Rest::default() });
                (bodies.asleep[slot], bodies.rest[slot], bodies.steady[slot]) = (false, 0.0, false);
            }
        }
    }
}

/// Wakes the islands that something happened to. Runs when this step's contacts and forces are known.
pub fn wake_islands(step: &mut Step<'_>) {
    if !step.work.bodies.asleep.iter().any(|a| *a) {
        step.work.collision.disturbed.clear();
        return;
    }
    let mut disturbed = find_disturbed(step);
    spread(step, &mut disturbed);
    let work = &mut *step.work;
    for slot in 0..work.bodies.len() {
        if work.bodies.asleep[slot] && disturbed[work.groups.root(slot as u32) as usize] {
            work.bodies.asleep[slot] = false;
            work.bodies.rest[slot] = 0.0;
            work.collision.events.push(ContactEvent::WokeUp(work.bodies.entity[slot]));
        }
    }
}

/// Sleeping bodies that were pushed, moved, or lost a contact; all if sleeping is off or gravity changed.
fn find_disturbed(step: &mut Step<'_>) -> Vec<bool> {
    let work = &mut *step.work;
    let all = !step.settings.sleep || work.sleep_gravity.is_some_and(|g| g != step.settings.gravity);
    work.sleep_gravity = Some(step.settings.gravity);
    let mut disturbed = vec![all; work.bodies.len()];
    for entity in work.collision.disturbed.drain(..) {
        if let Some(slot) = work.bodies.slot_of(entity) {
            disturbed[slot as usize] = true;
        }
    }
    type Pushed<'a> = (&'a BodyIndex, &'a LinearVelocity, &'a AngularVelocity, &'a Force, &'a Torque);
    for (index, v, w, f, t) in step.world.query_mut::<Pushed<'_>>() {
        if let Some(pushed) = disturbed.get_mut(index.0 as usize) {
            *pushed |= [v.0, w.0, f.0, t.0].iter().any(|x| *x != DVec3::ZERO);
        }
    }
    for (slot, pushed) in disturbed.iter_mut().enumerate() {
        // Only what is asleep can be woken; what is awake passes it on by touching.
        *pushed &= work.bodies.asleep[slot];
    }
    disturbed
}

/// Groups sleeping bodies by contacts and joints; a group is disturbed if a member is, or if something awake touches it.
fn spread(step: &mut Step<'_>, disturbed: &mut [bool]) {
    let work = &mut *step.work;
    work.groups.reset(work.bodies.len());
    let mut touched = Vec::new();
    let mut tie = |work: &mut Work, a: u32, b: u32, touching: bool| {
        let bodies = &work.bodies;
        match (bodies.asleep[a as usize], bodies.asleep[b as usize]) {
            (true, true) => work.groups.tie(a, b),
            (true, false) if touching && bodies.is_awake(b) => touched.push(a),
            (false, true) if touching && bodies.is_awake(a) => touched.push(b),
            _ => {}
        }
    };
    let mut query = step.world.query::<(&Contact, &Manifold)>();
    let contacts = query.view();
    let pairs = std::mem::take(&mut work.collision.pairs);
    for pair in &pairs {
        let Some((contact, manifold)) = pair.entity.and_then(|e| contacts.get(e)) else { continue };
        let slots = (work.bodies.slot_of(contact.a), work.bodies.slot_of(contact.b));
        let (false, (Some(a), Some(b))) = (contact.sensor, slots) else { continue };
        let (va, vb) = (&work.bodies.view[a as usize], &work.bodies.view[b as usize]);
        let near = |p: &crate::components::ManifoldPoint| {
            let at = |v: &crate::constraint::BodyView, arm| v.linear_velocity + v.angular_velocity.cross(arm);
            let closing = p.normal.dot(at(va, p.arm_a) - at(vb, p.arm_b));
            p.separation <= step.dt * closing.max(0.0) + 1e-4
        };
        tie(work, a, b, manifold.points.iter().any(near));
    }
    work.collision.pairs = pairs;
    for i in 0..work.joint_ties.len() {
        let (a, b) = work.joint_ties[i];
        if let (Some(a), Some(b)) = (work.bodies.slot_of(a), work.bodies.slot_of(b)) {
            tie(work, a, b, true);
        }
    }
    touched.extend(disturbed.iter().zip(0..).filter(|(disturbed, _)| **disturbed).map(|(_, slot)| slot));
    for slot in touched {
        disturbed[work.groups.root(slot) as usize] = true;
    }
}

/// Remembers which bodies are tied by joints and users' constraints; by entity, for slots change when bodies go.
fn remember_ties(work: &mut Work) {
    let Work { rows, bodies, joint_ties, .. } = work;
    joint_ties.clear();
    for block in rows.blocks.iter().filter(|b| !b.fold) {
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        for pair in slots.windows(2) {
            joint_ties.push((bodies.entity[pair[0] as usize], bodies.entity[pair[1] as usize]));
        }
    }
    for element in &rows.couplings.elements {
        let slots = rows.couplings.slots(element);
        let pairs = slots.clone().zip(slots.skip(1));
        joint_ties.extend(pairs.map(|(a, b)| (bodies.entity[a as usize], bodies.entity[b as usize])));
    }
}

/// Counts how long bodies have been at rest, and puts islands to sleep.
pub fn fall_asleep(step: &mut Step<'_>) {
    remember_ties(step.work);
    time_rest(step);
    let (settings, work) = (step.settings, &mut *step.work);
    let bodies = &mut work.bodies;
    let mut sleepy = vec![true; bodies.len() + 1];
    for slot in 0..bodies.len() {
        if bodies.is_dynamic(slot as u32) && !bodies.is_sleepy(slot, settings.sleep_time) {
            sleepy[group(&work.island_of, slot)] = false;
        }
    }
    // What moves inside a subsystem is not seen at its ports.
    for &port in &work.rows.couplings.ports {
        sleepy[group(&work.island_of, port as usize)] = false;
    }
    for slot in 0..bodies.len() {
        let island = work.island_of.get(slot).copied().unwrap_or(NO_ISLAND);
        // A body on which nothing acts is not at rest, only slow.
        let held = island != NO_ISLAND || settings.gravity == DVec3::ZERO;
        let alone_awake = island == NO_ISLAND && !bodies.is_sleepy(slot, settings.sleep_time);
        if settings.sleep
            && held
            && !alone_awake
            && bodies.is_dynamic(slot as u32)
            && sleepy[group(&work.island_of, slot)]
        {
            bodies.asleep[slot] = true;
            let (entity, view) = (bodies.entity[slot], &mut bodies.view[slot]);
            (view.linear_velocity, view.angular_velocity) = (DVec3::ZERO, DVec3::ZERO);
            type Kept<'a> = (&'a mut Rest, &'a mut LinearVelocity, &'a mut AngularVelocity);
            if let Ok((rest, v, w)) = step.world.query_one_mut::<Kept<'_>>(entity) {
                (v.0, w.0) = (DVec3::ZERO, DVec3::ZERO);
                *rest = Rest { asleep: true, position: view.position, rotation: view.rotation, ..*rest };
            }
            work.collision.events.push(ContactEvent::FellAsleep(entity));
        }
    }
}

/// Brings every body's [`Rest`] up to date.
///
/// Slow is not at rest: a swing stands still where its forces are furthest out of balance. So the time at rest is looked at in
/// windows of half of `sleep_time`, and a body may only sleep if it was steady in the last one.
fn time_rest(step: &mut Step<'_>) {
    let (settings, dt) = (step.settings, step.dt);
    let window = (0.5 * settings.sleep_time).max(dt);
    let bodies = &mut step.work.bodies;
    for (entity, index, rest) in step.world.query_mut::<(Entity, &BodyIndex, &mut Rest)>() {
        let slot = index.0 as usize;
        if bodies.entity.get(slot) != Some(&entity) || !bodies.is_dynamic(slot as u32) {
            continue;
        }
        let (view, before) = (&bodies.view[slot], bodies.rest[slot]);
        // 1e-9: what is added up step by step may be less than whole by its rounding.
        let began = window * (before / window + 1e-9).floor();
        let inside = before + dt - began;
        rest.asleep = false;
        rest.time = before + dt;
        if measure(view, view.linear_velocity, view.angular_velocity) >= settings.sleep_speed {
            *rest = Rest { position: view.position, rotation: view.rotation, ..Rest::default() };
        } else if inside >= window * (1.0 - 1e-9) {
            let steady = is_steady(view, rest, inside, settings);
            let time = began + window;
            *rest = Rest { time, steady, position: view.position, rotation: view.rotation, ..*rest };
        }
        bodies.rest[slot] = rest.time;
        bodies.steady[slot] = rest.steady;
    }
}

/// Speed of a body: its own size turns rad/s into m/s; the radius of gyration is near enough.
fn measure(view: &BodyView, linear: DVec3, angular: DVec3) -> f64 {
    let gyration =
        (view.inertia.x_axis.x.max(view.inertia.y_axis.y).max(view.inertia.z_axis.z) / view.mass).sqrt();
    linear.length() + gyration * angular.length()
}

/// Share of `sleep_speed` that a body at rest may have had on the mean of a window: beyond it the body went somewhere.
const MEAN_SHARE: f64 = 0.25;

/// Share of `sleep_speed` that a body at rest may have gained in a window: beyond it forces are out of balance.
const GAIN_SHARE: f64 = 0.05;

/// Was a body at rest in the window of `time` seconds since it was where `since` says? Under a steady acceleration a it has gained
/// a t, twice what its speed is over the mean; what settles has been quiet for most of a window.
fn is_steady(view: &BodyView, since: &Rest, time: f64, settings: &Settings) -> bool {
    let mean = (view.position - since.position) / time;
    let turned = view.rotation * since.rotation.inverse();
    // Twice the vector part: what is slow has turned by next to nothing.
    let turn = turned.xyz() * (2.0 * turned.w.signum() / time);
    let gained = 2.0 * measure(view, view.linear_velocity - mean, view.angular_velocity - turn);
    measure(view, mean, turn) < MEAN_SHARE * settings.sleep_speed
        && gained < GAIN_SHARE * settings.sleep_speed
}

/// The island of a slot; all bodies without one share the last place, which is not read.
fn group(island_of: &[u32], slot: usize) -> usize {
    match island_of.get(slot) {
        Some(&island) if island != NO_ISLAND => island as usize,
        _ => island_of.len(),
    }
}
