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

use crate::collision::Pair;
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

/// Carries pairs that persist over to the new list; both lists have the same order. Those that are gone stay behind in
/// `old_pairs`.
fn list_pairs(work: &mut Work) {
    let collision = &mut work.collision;
    collision.jointed.clone_from(&work.jointed_pairs);
    collision.jointed.sort_unstable();
    collision.jointed.dedup();
    let removed = collision.broad.take_removed();
    if !collision.broad.take_pairs_changed() && removed.is_empty() {
        return;
    }
    std::mem::swap(&mut collision.pairs, &mut collision.old_pairs);
    let mut gone = Vec::new();
    // Pairs of colliders that are gone first: their ranks mean nothing any more.
    if !removed.is_empty() {
        gone.extend(collision.old_pairs.extract_if(.., |p| {
            removed.binary_search(&p.ids.0).is_ok() || removed.binary_search(&p.ids.1).is_ok()
        }));
    }
    let order = |ids: (u32, u32)| (collision.broad.order(ids.0), collision.broad.order(ids.1));
    let mut next = 0;
    for &ids in collision.broad.pairs() {
        while next < collision.old_pairs.len() {
            let known = collision.old_pairs[next].ids;
            if known == ids || order(known) > order(ids) {
                break;
            }
            gone.push(collision.old_pairs[next].take());
            next += 1;
        }
        let pair = match collision.old_pairs.get_mut(next) {
            Some(pair) if pair.ids == ids => {
                next += 1;
                pair.take()
            }
            _ => Pair::new(ids),
        };
        collision.pairs.push(pair);
    }
    gone.extend(collision.old_pairs.drain(next..));
    collision.old_pairs.clear();
    collision.old_pairs.append(&mut gone);
}
