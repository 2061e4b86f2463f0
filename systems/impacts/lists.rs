//! What a march begins with and leaves behind: pairs and joints by body, colliders elsewhere, contacts of pairs that had none.

use super::watch::Watched;
use crate::collision::{Collision, Mover, Pair};
use crate::components::Contact;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::state::{Bodies, Rows};
use crate::systems::collide::spawn_begun;
use glam::{DMat3, DVec3};

/// Pairs that were struck and had no contact get one, if the broad phase knows them.
pub(super) fn begin_contacts(step: &mut Step<'_>, found: Vec<Watched>) {
    let Collision { broad, near, begun, .. } = &mut step.work.collision;
    let is_near = |ids| near.binary_search_by_key(&broad.rank(ids), |p| broad.rank(p.ids)).is_ok();
    let mut new: Vec<Watched> = found.into_iter().filter(|p| p.entity.is_none() && p.strikes > 0).collect();
    new.retain(|pair| is_near(pair.ids));
    if new.is_empty() {
        return;
    }
    new.sort_unstable_by_key(|pair| broad.rank(pair.ids));
    for pair in &mut new {
        pair.points.iter_mut().for_each(|p| (p.answered, p.separation) = (true, p.separation.min(0.0)));
        begun.push(Pair { points: std::mem::take(&mut pair.points), ..Pair::new(pair.ids) });
    }
    spawn_begun(step);
    let Collision { broad, pairs, .. } = &step.work.collision;
    for pair in &new {
        let place = pairs.binary_search_by_key(&broad.rank(pair.ids), |p| broad.rank(p.ids));
        let entity = place.ok().and_then(|i| pairs[i].entity);
        if let Some(contact) = entity.and_then(|e| step.world.query_one_mut::<&mut Contact>(e).ok()) {
            (contact.approach, contact.blow) = (pair.speed, pair.impulse);
        }
    }
}

/// Pairs with a contact by slot, sorted.
pub(super) fn pairs_by_slot(collision: &Collision) -> Vec<(u32, u32)> {
    let of = |(number, pair): (usize, &Pair)| {
        [pair.ids.0, pair.ids.1].map(|id| (collision.colliders[id as usize].slot, number as u32))
    };
    let mut all: Vec<_> = collision.pairs.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    all
}

/// Joints by slot, sorted.
pub(super) fn blocks_by_slot(rows: &Rows) -> Vec<(u32, u32)> {
    let slots =
        |block: &crate::state::ConstraintBlock| block.body as usize..(block.body + block.bodies) as usize;
    let of = |(number, block)| rows.body[slots(block)].iter().map(move |slot| (*slot, number as u32));
    let mut all: Vec<_> = rows.blocks.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Which bodies joints tie, and what these gave them in the last step; empty where there are none.
pub(super) fn joints_by_slot(rows: &Rows, bodies: &Bodies) -> Vec<Option<[DVec3; 2]>> {
    let mut all = Vec::new();
    for block in &rows.blocks {
        all.resize(bodies.len(), None);
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        for (k, &slot) in slots.iter().enumerate() {
            let [push, turn] = all[slot as usize].get_or_insert([DVec3::ZERO; 2]);
            for row in 0..block.rows {
                let j = &rows.jacobian[(block.entry + row * block.bodies) as usize + k];
                let lambda = rows.lambda[(block.row + row) as usize];
                *push += DVec3::new(j[0], j[1], j[2]) * lambda;
                *turn += DVec3::new(j[3], j[4], j[5]) * lambda;
            }
        }
    }
    all
}

/// A collider on a body elsewhere.
pub(super) fn mover_at(collision: &Collision, id: u32, view: &BodyView, more: DVec3, dt: f64) -> Mover {
    let (record, mover) = (&collision.colliders[id as usize], &collision.movers[id as usize]);
    let turn = view.angular_velocity.length() * dt;
    Mover {
        pose: record.on(view),
        center: view.position,
        turn: DMat3::from_quat(view.rotation),
        velocity: [view.linear_velocity + more, view.angular_velocity],
        way: (view.linear_velocity + more).length() * dt
            + if turn > 0.0 { turn.min(2.0) * mover.reach } else { 0.0 },
        ..*mover
    }
}
