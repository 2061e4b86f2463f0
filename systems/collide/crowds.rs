//! Crowds: bodies that are deep in many others keep the contacts that part them best, and part slowly.
//!
//! Contacts proper are shallow. Where bodies were put into each other, depths are shares of their sizes, and every body has a
//! contact with every other: n² rows for 6n unknowns. A body with more than [`MOST`] deep contacts is in a crowd. Of the
//! pairs whose bodies both are, those are kept that are the deepest of one of them; the others have their turn when these have
//! parted. What lies deep in a slab, a floor or a single neighbour keeps all of its contacts, and contacts proper are not counted.
//!
//! Each overlap alone parts at `Tuning::max_recovery_speed`. In a row of overlaps these speeds add up, and a crowd would burst. So
//! deep pairs that hang together part as if all of them flew away from one place,
//!
//! ```text
//!     v = V d / R ,     d distance of the two centres, R half the size of the whole:
//! ```
//!
//! then all pairs agree, whichever are kept, and no body need be faster than V. Least ways out of each other, which the narrow
//! phase finds, do not agree in a crowd: its pairs part along the lines of their centres instead, neither slower nor faster than
//! that. (Pairs that may part faster whirl a crowd up: each step's choice adds to what the last ones did.)

use super::narrow::HAIR;
use crate::collision::{Collision, Crowds, DeepPair, Mover, Pair};
use crate::components::ManifoldPoint;
use crate::geometry::own_direction;
use crate::graph::islands::Islands;
use crate::report::Trouble;
use crate::schedule::Step;
use glam::DVec3;

/// Overlaps beyond this share of the smaller body's size are deep.
const DEEP: f64 = 0.1;
/// V over `Tuning::max_recovery_speed`.
const OUTWARD: f64 = 1.8;
/// Deep pairs part at least at this share of `Tuning::max_recovery_speed`, however near the same place they are.
const LEAST: f64 = 0.05;
/// Deep contacts that a body may have outside of crowds.
const MOST: usize = 4;

/// Leaves bodies that are deep in many others their deepest contacts.
pub fn thin_crowds(step: &mut Step<'_>) {
    let bodies = step.work.bodies.len();
    let collision = &mut step.work.collision;
    list_deep_pairs(collision, bodies);
    if collision.crowds.deep.is_empty() {
        return;
    }
    limit_speeds(collision, &mut step.work.groups, step.settings.tuning.max_recovery_speed);
    let bodies = find_members(&mut collision.crowds) as u32;
    if bodies == 0 {
        return;
    }
    part_all(collision);
    let (kept, left_out) = keep_deepest(collision);
    collision.begun.retain(|p| p.touches);
    // A slab under many is on its own.
    if let Some(first) = collision.crowds.crowded.iter().position(|c| *c).filter(|_| kept > 0) {
        let entity = step.work.bodies.entity[first];
        step.report.trouble(Trouble::Crowd { entity, bodies, kept, left_out });
    }
}

/// Lists the pairs of bodies that forces move and that are deep in each other, the deepest first, and counts those of each body.
fn list_deep_pairs(collision: &mut Collision, bodies: usize) {
    let Collision { broad, pairs, begun, movers, briefs, crowds, .. } = collision;
    let Crowds { deep, pairs: count, crowded, .. } = crowds;
    deep.clear();
    crowded.clear();
    for (place, pair) in pairs.iter().chain(begun.iter()).enumerate() {
        let [a, b] = [pair.ids.0 as usize, pair.ids.1 as usize];
        let size = movers[a].size.min(movers[b].size);
        if pair.nearest >= -DEEP * size || !(pair.touches || pair.asleep) {
            continue;
        }
        let solid = !briefs[a].sensor && !briefs[b].sensor;
        if solid && briefs[a].dynamic && briefs[b].dynamic {
            let (slots, rank) = ([briefs[a].slot, briefs[b].slot], broad.rank(pair.ids));
            deep.push(DeepPair { share: -pair.nearest / size, rank, slots, place: place as u32 });
        }
    }
    if !deep.is_empty() {
        deep.sort_unstable_by(|x, y| y.share.total_cmp(&x.share).then(x.rank.cmp(&y.rank)));
        count.clear();
        count.resize(bodies, 0);
        deep.iter().flat_map(|d| d.slots).for_each(|slot| count[slot as usize] += 1);
    }
}

/// Notes which bodies are in a crowd, and returns how many these are.
fn find_members(crowds: &mut Crowds) -> usize {
    let members = crowds.pairs.iter().filter(|n| **n as usize > MOST).count();
    if members > 0 {
        crowds.crowded.extend(crowds.pairs.iter().map(|n| *n as usize > MOST));
    }
    members
}

/// Takes all contacts within crowds.
fn part_all(collision: &mut Collision) {
    let Collision { pairs, begun, crowds, briefs, .. } = collision;
    for pair in pairs.iter_mut().chain(begun).filter(|p| !p.asleep) {
        let [a, b] = [pair.ids.0, pair.ids.1].map(|id| &briefs[id as usize]);
        pair.touches &= a.sensor || b.sensor || !crowds.have_both(a.slot, b.slot);
    }
}

/// Gives those back of which one of the bodies has no deeper one. They form trees, so that no two of them contradict each other.
/// Returns how many there are then, and how many are left out.
fn keep_deepest(collision: &mut Collision) -> (u32, u32) {
    let Collision { pairs, begun, crowds, movers, .. } = collision;
    let Crowds { deep, held, crowded, .. } = crowds;
    held.clear();
    held.resize(crowded.len(), false);
    let (mut kept, mut left_out) = (0, 0);
    for d in &*deep {
        let [a, b] = d.slots.map(|s| s as usize);
        let pair = pair_at(pairs, begun, d.place);
        if !(crowded[a] && crowded[b]) || pair.asleep {
            continue;
        }
        if held[a] && held[b] {
            left_out += 1;
            continue;
        }
        (held[a], held[b]) = (true, true);
        kept += 1;
        (pair.touches, pair.crowded) = (true, true);
        part_along_centers(pair, d, movers);
    }
    (kept, left_out)
}

fn pair_at<'a>(pairs: &'a mut [Pair], begun: &'a mut [Pair], place: u32) -> &'a mut Pair {
    match (place as usize).checked_sub(pairs.len()) {
        Some(place) => &mut begun[place],
        None => &mut pairs[place as usize],
    }
}

/// Leaves a pair its deepest point, with the normal and the arms of a rod between the centres of mass.
fn part_along_centers(pair: &mut Pair, d: &DeepPair, movers: &[Mover]) {
    let [a, b] = centers(pair.ids, d.slots, movers);
    let depth = |p: &ManifoldPoint| p.separation;
    let Some(mut point) = pair.points.iter().copied().min_by(|p, q| depth(p).total_cmp(&depth(q))) else {
        return;
    };
    let half = 0.5 * (b - a);
    point.normal = half.try_normalize().unwrap_or(point.normal);
    (point.arm_a, point.arm_b, point.carried) = (half, -half, false);
    pair.points.clear();
    pair.points.push(point);
}

/// Gives deep pairs the speeds at which they part.
fn limit_speeds(collision: &mut Collision, groups: &mut Islands, most: f64) {
    let Collision { pairs, begun, crowds, movers, .. } = collision;
    let Crowds { deep, around, pairs: count, .. } = crowds;
    groups.reset(count.len());
    deep.iter().for_each(|d| groups.tie(d.slots[0], d.slots[1]));
    around.clear();
    around.resize(count.len(), (DVec3::INFINITY, DVec3::NEG_INFINITY, 0.0));
    for d in &*deep {
        let (low, high, _) = &mut around[groups.root(d.slots[0]) as usize];
        for center in centers(pair_at(pairs, begun, d.place).ids, d.slots, movers) {
            (*low, *high) = (low.min(center), high.max(center));
        }
    }
    for d in &*deep {
        let (low, high, radius) = &mut around[groups.root(d.slots[0]) as usize];
        for center in centers(pair_at(pairs, begun, d.place).ids, d.slots, movers) {
            *radius = radius.max((center - 0.5 * (*low + *high)).length());
        }
    }
    for d in &*deep {
        let radius = around[groups.root(d.slots[0]) as usize].2;
        let pair = pair_at(pairs, begun, d.place);
        let [a, b] = centers(pair.ids, d.slots, movers);
        let share = if radius > 0.0 { (b - a).length() / radius } else { 1.0 };
        pair.parting = most * (OUTWARD * share).clamp(LEAST, 1.0);
    }
}

/// Centres of mass of two bodies, those in exactly the same place a hair beside each other.
fn centers(ids: (u32, u32), slots: [u32; 2], movers: &[Mover]) -> [DVec3; 2] {
    let [a, b] = [ids.0, ids.1].map(|id| &movers[id as usize]);
    let hair = HAIR * a.span.min(b.span);
    let aside = slots.map(|slot| hair * own_direction(u64::from(slot)));
    [a.center + aside[0], b.center + aside[1]]
}
