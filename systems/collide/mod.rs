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
    colliders::know_shapes(&mut step.work.collision);
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
    let Collision { broad, pairs, old_pairs, listed, .. } = collision;
    // Pairs of colliders that are gone first: their ranks mean nothing any more.
    if !removed.is_empty() {
        old_pairs.extend(pairs.extract_if(.., |p| {
            removed.binary_search(&p.ids.0).is_ok() || removed.binary_search(&p.ids.1).is_ok()
        }));
    }
    let order = |ids: (u32, u32)| (broad.order(ids.0), broad.order(ids.1));
    let mut old = pairs.drain(..).peekable();
    listed.reserve(broad.pairs().len());
    for &ids in broad.pairs() {
        while let Some(gone) = old.next_if(|p| p.ids != ids && order(p.ids) < order(ids)) {
            old_pairs.push(gone);
        }
        listed.push(old.next_if(|p| p.ids == ids).unwrap_or_else(|| Pair::new(ids)));
    }
    old_pairs.extend(old);
    std::mem::swap(pairs, listed);
}
