//! The last net for bullets: no body moves further in a step than to the first thing in its way.
//!
//! Contact rows see a fast body's nearest points at the start of the step; what it does after a glancing hit or a spin
//! they cannot see. So once velocities are known, whatever is about to move by more than its own size is swept along its
//! final motion, and its way (not its velocity) is cut where it touches. Centres that move along straight lines say little of two
//! bodies that turn about each other: a pair in contact that stays on the same sides of each other is the solver's.

use super::colliders::read_colliders;
use super::narrow::{may_meet, tied};
use super::pairs;
use crate::collision::{ColliderRecord, Collision, PairScratch};
use crate::components::{BodyKind, Manifold, Surface};
use crate::constraint::BodyView;
use crate::geometry::{Bounds, Placed, Posed, ball_stays_apart, collide, first_touch};
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::{Bodies, Work};
use crate::systems::drift::fly;
use crate::systems::refine::with_new_velocity;
use glam::DVec3;
use hecs::Entity;
use std::cell::RefCell;

/// A body that turns by more than this in a step (rad) may stand anywhere in the next: its centre is watched even if it is slow.
const SPIN: f64 = 1.0;

/// Notes how much of its way each fast body may go.
pub fn sweep_fast_bodies(step: &mut Step<'_>) {
    let (bodies, dt) = (&step.work.bodies, step.dt);
    let Collision {
        near, pairs, colliders, briefs, by_body, stops, jointed, filter, scratch, thinnest, ..
    } = &mut step.work.collision;
    scratch.resize_with(scratch.len().max(1), Default::default);
    let scratch = &mut scratch[0];
    let (world, filter) = (&*step.world, &*filter);
    stops.clear();
    // A pair without points may be one for which none were found, deep in a thin wall; it is held all the same.
    let pushes =
        |contact: Option<Entity>, ids: (u32, u32), a: &ColliderRecord, b: &ColliderRecord| match contact {
            Some(e) => world.get::<&Surface>(e).is_ok_and(|s| s.enabled),
            None => {
                let near = may_meet(&briefs[ids.0 as usize], &briefs[ids.1 as usize]);
                near && filter.as_ref().is_none_or(|f| f(a.entity, b.entity))
            }
        };
    // The way of a body that was struck has been looked at from impact to impact.
    let struck = &step.work.impacts.struck;
    let is_fast = |r: &ColliderRecord| {
        let [v, w] = bodies.velocity[r.slot as usize];
        let spins = w.length() * dt > SPIN;
        bodies.view[r.slot as usize].kind == BodyKind::Dynamic
            && struck.binary_search(&r.slot).is_err()
            && (v.length() * dt > 0.5 * r.thickness || spins)
    };
    let least = thinnest.unwrap_or(f64::INFINITY);
    let may_be_fast = |[v, w]: &[DVec3; 2]| v.length() * dt > 0.5 * least || w.length() * dt > SPIN;
    if !bodies.velocity.iter().any(may_be_fast) {
        return;
    }
    let known = by_body.iter().filter(|b| b.entity.is_some()).flat_map(|b| &b.ids);
    if !known.into_iter().any(|&number| is_fast(&colliders[number as usize])) {
        return;
    }
    let touching = pairs.iter().map(|p| (p.ids, p.entity.filter(|_| p.touches), p.nearest));
    let others = near.iter().map(|p| (p.ids, None, f64::INFINITY));
    for (ids, contact, nearest) in touching.chain(others) {
        let (a, b) = (&colliders[ids.0 as usize], &colliders[ids.1 as usize]);
        let (fast_a, fast_b) = (is_fast(a), is_fast(b));
        if !(fast_a || fast_b) || a.sensor || b.sensor || a.slot == b.slot {
            continue;
        }
        if !pushes(contact, ids, a, b) || tied(jointed, a.slot, b.slot) {
            continue;
        }
        let mut held = None;
        for (fast, other) in [(fast_a.then_some(a), b), (fast_b.then_some(b), a)] {
            let Some(fast) = fast else { continue };
            let velocity = |r: &ColliderRecord| bodies.velocity[r.slot as usize][0];
            let motion = (velocity(fast) - velocity(other)) * dt;
            if is_clear(fast, other, bodies, motion) {
                continue;
            }
            // Most of what touches stays where it is, and looking there costs less than the casts.
            let manifold = || contact.and_then(|e| world.get::<&Manifold>(e).ok());
            let then = |r: &ColliderRecord| {
                let view = with_new_velocity(bodies, r.slot as usize);
                place_after(r, view, 0.5 * dt, if bodies.is_awake(r.slot) { 2 } else { 0 })
            };
            let stays = || manifold().is_some_and(|m| stays_outside(&m, [a, b], then, scratch));
            if *held.get_or_insert_with(stays) {
                break;
            }
            if let Some(share) = free_share(fast, other, nearest, bodies, motion) {
                stops.push((fast.slot, share, bodies.view[fast.slot as usize].position));
            }
        }
    }
}

/// Share of its thickness by which a thin body may be in another and still be on the side it came from.
const SHALLOW: f64 = 0.25;

/// Will a pair in contact be on the same sides of each other, placed and turned as it will be `then`? Whether it still touches or has
/// parted does not matter.
fn stays_outside(
    manifold: &Manifold,
    [a, b]: [&ColliderRecord; 2],
    then: impl Fn(&ColliderRecord) -> Posed,
    scratch: &mut PairScratch,
) -> bool {
    let deepest = manifold.points.iter().min_by(|x, y| x.separation.total_cmp(&y.separation));
    let Some(side) = deepest.map(|p| p.normal) else { return false };
    let [there_a, there_b] = [then(a), then(b)];
    let a_then = Placed { shape: &a.shape, position: there_a.position, rotation: there_a.rotation };
    let b_then = Placed { shape: &b.shape, position: there_b.position, rotation: there_b.rotation };
    let thickness = a.thickness.min(b.thickness);
    let way = ((there_a.position - a.position) - (there_b.position - b.position)).length();
    collide(&a_then, &b_then, thickness + way, &mut scratch.narrow, &mut scratch.found);
    let deepest = scratch.found.iter().min_by(|x, y| x.separation.total_cmp(&y.separation));
    deepest.is_some_and(|p| p.separation > -SHALLOW * thickness && p.normal.dot(side) > 0.0)
}

/// Where a collider will be after some free flights of its body.
fn place_after(record: &ColliderRecord, mut view: BodyView, time: f64, flights: u32) -> Posed {
    (0..flights).for_each(|_| fly(&mut view, time));
    record.on(&view)
}

/// Is the way of a fast collider's core clear of another for sure? `false` says nothing.
fn is_clear(fast: &ColliderRecord, other: &ColliderRecord, bodies: &Bodies, motion: DVec3) -> bool {
    let center = bodies.view[fast.slot as usize].position;
    let still = Placed { shape: &other.shape, position: other.position, rotation: other.rotation };
    fast.thickness > 0.0 && ball_stays_apart(&still, center, 0.5 * fast.thickness, motion)
}

/// The share of a relative motion after which a fast collider touches another, if its core would get into the
/// other: a body that only touches is the solver's to hold, and may slide on.
fn free_share(
    fast: &ColliderRecord,
    other: &ColliderRecord,
    nearest: f64,
    bodies: &Bodies,
    motion: DVec3,
) -> Option<f64> {
    // The core sits at the centre of mass, where spinning does not move it.
    let center = bodies.view[fast.slot as usize].position;
    let still = Placed { shape: &other.shape, position: other.position, rotation: other.rotation };
    let core = Placed { shape: &fast.core, position: center, rotation: fast.rotation };
    let centre = Placed { shape: &fast.centre, ..core };
    // A core that touches already says nothing; then its centre must not get in.
    let inside = first_touch(&still, &core, motion).or_else(|| first_touch(&still, &centre, motion));
    let inside = inside.filter(|share| *share < 1.0)?;
    if nearest <= 0.1 * fast.thickness {
        return Some(inside);
    }
    let whole = Placed { shape: &fast.shape, position: fast.position, rotation: fast.rotation };
    Some(first_touch(&still, &whole, motion).map_or(inside, |share| share.min(inside)))
}

/// Fast bodies before the free flight to the middle of the step: what a game set in motion by hand has never been looked at.
/// Returns slots, the share of the flight they may go, and where they start.
pub fn sweep_flight(step: &mut Step<'_>) -> Vec<(u32, f64, DVec3)> {
    let half = 0.5 * step.dt;
    let flies = (0..step.work.bodies.len() as u32).filter(|&slot| is_fast(step.work, slot, half));
    let flying: Vec<u32> = flies.collect();
    if flying.is_empty() {
        return Vec::new();
    }
    read_colliders(step);
    pairs::refresh(&mut step.work.collision);
    let (bodies, collision) = (&step.work.bodies, &step.work.collision);
    let scratch = RefCell::new(PairScratch::default());
    // What a system of the game switched off in the last step lets through in this one too, and what touched then and will
    // stay outside of each other is the solver's.
    let off = |a: u32, b: u32| {
        let rank = collision.broad.rank((a, b)).min(collision.broad.rank((b, a)));
        let pair = collision.pairs.binary_search_by_key(&rank, |p| collision.broad.rank(p.ids));
        let pair = pair.ok().map(|i| &collision.pairs[i]);
        let Some((pair, contact)) = pair.and_then(|p| Some((p, p.entity?))) else { return false };
        if step.world.get::<&Surface>(contact).is_ok_and(|s| !s.enabled) {
            return true;
        }
        let both = [pair.ids.0, pair.ids.1].map(|id| &collision.colliders[id as usize]);
        let then = |r: &ColliderRecord| {
            let view = bodies.view[r.slot as usize];
            place_after(r, view, half, u32::from(bodies.is_awake(r.slot)))
        };
        let manifold = step.world.get::<&Manifold>(contact);
        manifold.is_ok_and(|m| stays_outside(&m, both, then, &mut scratch.borrow_mut()))
    };
    let mut near = Vec::new();
    let mut stops = Vec::new();
    for slot in flying {
        let id = bodies.entity[slot as usize].id() as usize;
        let numbers = collision.by_body.get(id).map_or(&[][..], |b| &b.ids);
        let shares = numbers.iter().filter_map(|&n| free_flight(n, bodies, collision, half, &off, &mut near));
        if let Some(share) = shares.reduce(f64::min) {
            stops.push((slot, share, bodies.view[slot as usize].position));
        }
    }
    stops
}

/// Way from which on a body counts as fast whose colliders are not known yet (m).
const UNKNOWN: f64 = 0.01;

/// Does a body fly further than half its thickness?
fn is_fast(work: &Work, slot: u32, time: f64) -> bool {
    let (bodies, collision) = (&work.bodies, &work.collision);
    let way = bodies.view[slot as usize].linear_velocity.length() * time;
    if !bodies.is_dynamic(slot) || way == 0.0 || work.impacts.returning.binary_search(&slot).is_ok() {
        return false;
    }
    if bodies.view[slot as usize].angular_velocity.length() * time > SPIN {
        return true;
    }
    if way <= collision.thinnest.map_or(UNKNOWN, |least| UNKNOWN.min(0.5 * least)) {
        return false;
    }
    let entity = bodies.entity[slot as usize];
    match collision.by_body.get(entity.id() as usize).filter(|b| b.entity == Some(entity)) {
        Some(known) => known.ids.iter().any(|&n| way > 0.5 * collision.colliders[n as usize].thickness),
        None => way > UNKNOWN,
    }
}

/// The least share of its flight that a collider may go.
fn free_flight(
    number: u32,
    bodies: &Bodies,
    collision: &Collision,
    time: f64,
    off: &dyn Fn(u32, u32) -> bool,
    near: &mut Vec<u32>,
) -> Option<f64> {
    let fast = &collision.colliders[number as usize];
    let bounds = collision.briefs[number as usize].bounds;
    let Some(Bounds::Finite(region)) = bounds.filter(|_| !fast.sensor) else { return None };
    near.clear();
    collision.broad.in_region(&region, &mut |n| near.push(n));
    let tied = |slot: u32| tied(&collision.jointed, slot, fast.slot);
    let meets = |o: &&ColliderRecord| {
        let (f, g) = (fast.filter, o.filter);
        let asked = || collision.filter.as_ref().is_none_or(|may| may(o.entity, fast.entity));
        let wanted = !o.sensor && f.groups & g.mask != 0 && g.groups & f.mask != 0;
        o.slot != fast.slot && wanted && !bodies.quarantined[o.slot as usize] && !tied(o.slot) && asked()
    };
    let velocity = |slot: u32| match bodies.view[slot as usize].kind {
        BodyKind::Fixed => DVec3::ZERO,
        _ => bodies.view[slot as usize].linear_velocity,
    };
    let share = |other: u32| {
        let record = Some(&collision.colliders[other as usize]).filter(meets)?;
        let motion = (velocity(fast.slot) - velocity(record.slot)) * time;
        if is_clear(fast, record, bodies, motion) || off(number, other) {
            return None;
        }
        free_share(fast, record, f64::INFINITY, bodies, motion)
    };
    near.iter().filter_map(|&other| share(other)).reduce(f64::min)
}

/// Takes bodies back to where their flight was stopped.
pub fn stop_flight(bodies: &mut Bodies, stops: &[(u32, f64, DVec3)]) {
    for &(slot, share, start) in stops {
        let view = &mut bodies.view[slot as usize];
        view.position = start + (view.position - start) * share;
    }
}

/// Takes bodies back to where they were stopped.
pub fn stop_fast_bodies(step: &mut Step<'_>) {
    // In the midpoint step bodies stand half a step behind the points whose way was looked at: the next free flight must
    // end at the touch, and what was advanced by now is half of the way.
    let midpoint = step.settings.integrator == Integrator::Midpoint;
    let bodies = &mut step.work.bodies;
    let stops = &mut step.work.collision.stops;
    stops.sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
    stops.dedup_by_key(|s| s.0);
    for &(slot, share, start) in stops.iter() {
        let view = &mut bodies.view[slot as usize];
        let share = if midpoint { 2.0 * share - 1.0 } else { share };
        view.position = start + (view.position - start) * share;
    }
}
