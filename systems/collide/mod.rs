//! The *collide* stage: contact entities follow the poses.
//!
//! Colliders are read once (`colliders`), the broad phase lists near pairs, the narrow phase runs over them in parallel
//! in a fixed order (`narrow`), bodies that are in each other in crowds are left the contacts that part them (`crowds`), and contact entities are spawned, updated and despawned in that same order (`entities`).

mod ahead;
mod carry;
mod colliders;
mod crowds;
mod entities;
pub(in crate::systems) mod narrow;
mod pairs;
mod stop;

pub use ahead::look_ahead;
pub(super) use colliders::knows_colliders;
pub(super) use entities::spawn_begun;
pub use entities::{names, stopped};
pub(super) use narrow::tied;
pub use stop::{stop_fast_bodies, stop_flight, sweep_fast_bodies, sweep_flight};

use crate::schedule::Step;
use crate::state::Work;

/// Brings all contact entities up to date with the poses at the start of the step.
pub fn update_contacts(step: &mut Step<'_>) {
    colliders::read_colliders(step);
    pairs::refresh(&mut step.work.collision);
    list_jointed(step.work);
    if step.work.collision.needs_solve {
        entities::find_in_world(step);
    }
    entities::lend_manifolds(step);
    narrow::find_points(step);
    crowds::thin_crowds(step);
    entities::keep_contacts(step);
    colliders::know_shapes(&mut step.work.collision);
}

/// Brings colliders and near pairs up to date with the poses, for queries between steps; contacts stay as they are until the next
/// step.
pub fn refresh_colliders(step: &mut Step<'_>) {
    colliders::read_colliders(step);
    pairs::refresh(&mut step.work.collision);
}

/// Notes which pairs of bodies joints keep from touching.
fn list_jointed(work: &mut Work) {
    let jointed = &mut work.collision.jointed;
    jointed.clone_from(&work.jointed_pairs);
    jointed.sort_unstable();
    jointed.dedup();
}
