//! The *collide* stage: contact entities follow the poses.
//!
//! Colliders are read once (`colliders`), the broad phase lists near pairs, the narrow phase runs over them in parallel
//! in a fixed order (`narrow`), and contact entities are spawned, updated and despawned in that same order (`entities`).

mod ahead;
mod carry;
mod colliders;
mod entities;
mod narrow;
mod stop;

pub use ahead::look_ahead;
pub use entities::{names, stopped};
pub use stop::{stop_fast_bodies, stop_flight, sweep_fast_bodies, sweep_flight};

use crate::collision::{Collision, Pair};
use crate::schedule::Step;
use crate::work::Work;

/// Brings all contact entities up to date with the poses at the start of the step.
pub fn update_contacts(step: &mut Step<'_>) {
    colliders::read_colliders(step);
    step.work.collision.broad.refresh();
    list_pairs(step.work);
    if step.work.collision.stale {
        entities::find_in_world(step);
    }
    entities::lend_manifolds(step);
    narrow::find_points(step);
    entities::keep_contacts(step);
}

/// Makes the list of pairs that of the broad phase; both have the same order. Those that are gone go to `old_pairs`.
fn list_pairs(work: &mut Work) {
    let collision = &mut work.collision;
    collision.jointed.clone_from(&work.jointed_pairs);
    collision.jointed.sort_unstable();
    collision.jointed.dedup();
    let removed = collision.broad.take_removed();
    if !collision.broad.take_pairs_changed() && removed.is_empty() {
        return;
    }
    let Collision { broad, pairs, old_pairs, .. } = collision;
    // Pairs of colliders that are gone first: their ranks mean nothing any more.
    if !removed.is_empty() {
        old_pairs.extend(pairs.extract_if(.., |p| {
            removed.binary_search(&p.ids.0).is_ok() || removed.binary_search(&p.ids.1).is_ok()
        }));
    }
    let near = broad.pairs();
    let order = |ids: (u32, u32)| (broad.order(ids.0), broad.order(ids.1));
    let mut next = 0;
    old_pairs.extend(pairs.extract_if(.., |p| {
        while next < near.len() && near[next] != p.ids && order(near[next]) < order(p.ids) {
            next += 1;
        }
        let stays = near.get(next) == Some(&p.ids);
        next += usize::from(stays);
        !stays
    }));
    insert_new(pairs, near);
}

/// Adds what is missing of `near` to pairs of which it has all the others, from the back: what stands before the first new one
/// does not move.
fn insert_new(pairs: &mut Vec<Pair>, near: &[(u32, u32)]) {
    let (mut from, mut to) = (pairs.len(), near.len());
    pairs.resize_with(near.len(), || Pair::new((0, 0)));
    while to > from {
        to -= 1;
        if from > 0 && pairs[from - 1].ids == near[to] {
            from -= 1;
            pairs.swap(from, to);
        } else {
            pairs[to] = Pair::new(near[to]);
        }
    }
}
