//! Looking where the solve leads: what would overlap after the step is held before it does.
//!
//! Rows know the surfaces at the pose at which they were written. A blow changes that: a corner that was far away swings in,
//! a neighbour is thrown at a body it was not near, a surface turns by more than its tangent says. So once velocities are known,
//! bodies are taken to where they would be when the next rows are written, the narrow phase looks at the pairs that moved,
//! and whatever overlaps by more than it did gets rows linearised there,
//!
//! ```text
//!     φ(q + h v) + h J (v⁺ − v) ≥ φ_allowed ,
//! ```
//!
//! v the velocity just found: Newton on the gap. Only islands with new rows are solved again. A step without blows costs a few
//! boxes.

use super::colliders::moved;
use super::narrow::{CHUNK, NEAR_CHUNK, may_meet, new_point, tied};
use super::{entities, list_jointed, pairs};
use crate::collision::{
    Brief, ColliderAhead, ColliderRecord, Collision, Crowds, Mover, Overlapping, Pair, PairFilter,
    PairScratch,
};
use crate::components::{BodyKind, Contact, Manifold, ManifoldPoint, RowImpulses, Surface};
use crate::constraint::contact_rows::{
    ContactRules, impacting_fraction_of, relative_velocity, resting_fraction_of, slides,
};
use crate::geometry::{Bounds, Box3, ContactPoint, Placed, Posed, Shape, collide};
use crate::report::Cause;
use crate::schedule::Step;
use crate::settings::Settings;
use crate::solver::Label;
use crate::state::{Bodies, Island, Work};
use crate::systems::contacts::{FirstPass, close_block, is_sound, open_block, push_point, rules};
use crate::systems::drift::fly;
use crate::systems::parallel::for_each;
use crate::systems::refine::with_new_velocity;
use crate::systems::{assemble, couple, graph, partition, refine, solve};
use glam::{DMat3, DVec3};
use rayon::prelude::*;

/// Solves the step again, a few times at most, while surfaces would overlap after it.
pub fn look_ahead(step: &mut Step<'_>) {
    if step.work.collision.pairs.is_empty() && step.work.collision.near.is_empty() {
        return;
    }
    for pass in 0..step.settings.tuning.contact_passes {
        fly_ahead(step);
        widen(step);
        // Every pass leaves about a fifth of the overlap; the later ones are for what is still worth a solve.
        if !find_overlaps(step, f64::from(pass + 1)) {
            return;
        }
        let first = step.work.rows.blocks.len();
        give_entities(step);
        if !add_rows(step, f64::from(pass + 1)) {
            return;
        }
        resolve_island(step, first);
    }
}

/// Takes every body to where the next rows will be written.
fn fly_ahead(step: &mut Step<'_>) {
    let half = 0.5 * step.dt;
    let bodies = &mut step.work.bodies;
    let mut poses = std::mem::take(&mut bodies.ahead);
    poses.clear();
    poses.extend_from_slice(&bodies.view);
    let bodies = &step.work.bodies;
    for_each(poses.par_iter_mut().with_min_len(256).enumerate(), |(slot, view)| {
        if bodies.is_awake(slot as u32) {
            if view.kind == BodyKind::Dynamic {
                [view.linear_velocity, view.angular_velocity] = bodies.velocity[slot];
            }
            fly(view, half);
            fly(view, half);
        }
    });
    step.work.bodies.ahead = poses;
}

/// Places the colliders there. Those that leave the box in which the broad phase looked for their partners are looked up again.
fn widen(step: &mut Step<'_>) {
    let margin = step.settings.contact_margin;
    let Work { bodies, collision, .. } = &mut *step.work;
    let Collision { broad, colliders, briefs, movers, by_body, ahead, spent_ahead, .. } = collision;
    let still = ColliderAhead { position: DVec3::ZERO, rotation: Default::default(), bounds: None, way: 0.0 };
    ahead.resize(colliders.len(), still);
    spent_ahead.resize(colliders.len(), 0.0);
    let mut wider = false;
    for &number in by_body.iter().filter(|b| b.entity.is_some()).flat_map(|b| &b.ids) {
        let (record, brief) = (&colliders[number as usize], &mut briefs[number as usize]);
        let mover = &movers[number as usize];
        let there = &mut ahead[number as usize];
        *there = place(record, mover, brief.bounds, bodies, step.dt);
        spent_ahead[number as usize] = mover.odometer + moved(mover, &there.pose());
        if let (Some(Bounds::Finite(now)), Some(Bounds::Finite(then))) = (brief.bounds, there.bounds)
            && there.way > 0.0
            && !now.contains(&then)
        {
            let both = Bounds::Finite(now.union(then.swept(DVec3::ZERO, margin)));
            brief.bounds = Some(both);
            broad.update(number, both);
            wider = true;
        }
    }
    if wider {
        pairs::refresh(&mut step.work.collision);
        list_jointed(step.work);
        entities::drop_parted(step);
    }
}

fn place(
    record: &ColliderRecord,
    mover: &Mover,
    now: Option<Bounds>,
    bodies: &Bodies,
    dt: f64,
) -> ColliderAhead {
    let view = &bodies.ahead[record.slot as usize];
    let Posed { position, rotation } = mover.pose;
    if !bodies.is_awake(record.slot) || now.is_none() {
        return ColliderAhead { position, rotation, bounds: now, way: 0.0 };
    }
    let turn = view.angular_velocity.length() * dt;
    let way = view.linear_velocity.length() * dt + if turn > 0.0 { turn.min(2.0) * mover.reach } else { 0.0 };
    let Posed { position, rotation } = record.on(view);
    let bounds = match record.shape.shape() {
        Shape::HalfSpace { normal } => {
            let normal = rotation * normal.normalize();
            Some(Bounds::Below { normal, offset: normal.dot(position) })
        }
        _ => {
            let there = Box3::around(&Placed { shape: &record.shape, position, rotation });
            (there.low.is_finite() && there.high.is_finite()).then_some(Bounds::Finite(there))
        }
    };
    ColliderAhead { position, rotation, bounds, way }
}

/// Finds the pairs that would overlap by so many times more than they may. Is there one?
fn find_overlaps(step: &mut Step<'_>, times: f64) -> bool {
    let (settings, dt) = (step.settings, step.dt);
    let jointed = &step.work.jointed_pairs;
    let Collision {
        broad,
        near,
        pairs,
        colliders,
        movers,
        briefs,
        filter,
        ahead,
        spent_ahead: spent,
        crowds,
        scratch,
        overlapping,
        overlaps,
        ..
    } = &mut step.work.collision;
    let spent = &*spent;
    let look = LookAhead {
        colliders,
        movers,
        briefs,
        crowds,
        filter: filter.as_ref(),
        ahead,
        jointed,
        settings,
        dt,
        times,
    };
    let (old, new) = (pairs.len().div_ceil(CHUNK), near.len().div_ceil(NEAR_CHUNK));
    if scratch.len() < old + new {
        scratch.resize_with(old + new, Default::default);
    }
    let (for_pairs, for_near) = scratch[..old + new].split_at_mut(old);
    for_each(pairs.par_chunks(CHUNK).zip(for_pairs), |(pairs, scratch)| {
        scratch.overlapping.clear();
        scratch.overlaps.clear();
        for pair in pairs.iter().filter(|p| !p.crowded) {
            look.at(pair.ids, (pair.nearest, pair.parting), scratch);
        }
    });
    for_each(near.par_chunks(NEAR_CHUNK).zip(for_near), |(near, scratch)| {
        scratch.overlapping.clear();
        scratch.overlaps.clear();
        for pair in near {
            let shown = spent[pair.ids.0 as usize] + spent[pair.ids.1 as usize];
            if !pair.apart(shown + settings.contact_margin) && !look.leaves_out(pair.ids) {
                look.at(pair.ids, (f64::INFINITY, f64::INFINITY), scratch);
            }
        }
    });
    overlapping.clear();
    overlaps.clear();
    for scratch in &scratch[..old + new] {
        let first = overlaps.len() as u32;
        overlapping.extend(scratch.overlapping.iter().map(|o| Overlapping { first: first + o.first, ..*o }));
        overlaps.extend_from_slice(&scratch.overlaps);
    }
    overlapping.sort_unstable_by_key(|o| broad.rank(o.ids));
    !overlapping.is_empty()
}

/// What there is to look at ahead.
struct LookAhead<'a> {
    colliders: &'a [ColliderRecord],
    movers: &'a [Mover],
    briefs: &'a [Brief],
    crowds: &'a Crowds,
    filter: Option<&'a PairFilter>,
    ahead: &'a [ColliderAhead],
    jointed: &'a [(u32, u32)],
    settings: &'a Settings,
    dt: f64,
    times: f64,
}

impl LookAhead<'_> {
    /// Is a pair without a contact one that crowds leave out?
    fn leaves_out(&self, ids: (u32, u32)) -> bool {
        self.crowds.have_both(self.briefs[ids.0 as usize].slot, self.briefs[ids.1 as usize].slot)
    }

    /// Notes where a pair would overlap, of which the least separation is known and how fast it may part.
    #[inline]
    fn at(&self, ids: (u32, u32), (nearest, parting): (f64, f64), scratch: &mut PairScratch) {
        let (i, j) = (ids.0 as usize, ids.1 as usize);
        let (there_a, there_b) = (&self.ahead[i], &self.ahead[j]);
        let (Some(x), Some(y)) = (&there_a.bounds, &there_b.bounds) else { return };
        let (a, b) = (&self.colliders[i], &self.colliders[j]);
        let (margin, tolerance) = margins(&self.movers[i], &self.movers[j], self.settings);
        if there_a.way + there_b.way <= tolerance || !x.meets(y) {
            return;
        }
        let refused = || self.filter.is_some_and(|f| !f(a.entity, b.entity));
        let apart = a.sensor || b.sensor || !may_meet(&self.briefs[i], &self.briefs[j]);
        if apart || tied(self.jointed, a.slot, b.slot) || refused() {
            return;
        }
        let allowed = allowed(nearest, parting, self.settings, self.dt) - self.times * tolerance;
        let a = Placed { shape: &a.shape, position: there_a.position, rotation: there_a.rotation };
        let b = Placed { shape: &b.shape, position: there_b.position, rotation: there_b.rotation };
        collide(&a, &b, margin, &mut scratch.narrow, &mut scratch.found);
        if scratch.found.iter().any(|p| p.separation < allowed) {
            let (first, count) = (scratch.overlaps.len() as u32, scratch.found.len() as u32);
            scratch.overlapping.push(Overlapping { ids, first, count });
            scratch.overlaps.extend_from_slice(&scratch.found);
        }
    }
}

/// How far around points are taken along, and what may overlap: less for small bodies.
fn margins(a: &Mover, b: &Mover, settings: &Settings) -> (f64, f64) {
    let size = a.reach.min(b.reach);
    (settings.contact_margin.min(0.05 * size), settings.tuning.contact_tolerance.min(0.01 * size))
}

/// Least separation that a pair may have after the step: none below zero, except for what it has not recovered yet.
fn allowed(nearest: f64, parting: f64, settings: &Settings, dt: f64) -> f64 {
    let (depth, speed) = (nearest.min(0.0), settings.tuning.max_recovery_speed.min(parting));
    depth - (settings.tuning.contact_correction * depth).max(-speed * dt)
}

/// Pairs that had no contact get one.
fn give_entities(step: &mut Step<'_>) {
    let Collision { broad, pairs, begun, overlapping, .. } = &mut step.work.collision;
    for overlapping in overlapping.iter() {
        let rank = broad.rank(overlapping.ids);
        match pairs.binary_search_by_key(&rank, |p| broad.rank(p.ids)) {
            Ok(i) => {
                let pair = &mut pairs[i];
                pair.touches = true;
                pair.entity = pair.entity.filter(|e| step.world.contains(*e));
            }
            Err(_) => begun.push(Pair::new(overlapping.ids)),
        }
    }
    entities::respawn(step);
    entities::spawn_begun(step);
}

/// Adds rows for what would overlap; false if none of it pushes. Bodies may be made to give way so many times faster than overlaps
/// recover: what a corner that turns by a radian in the step leaves after some passes would take more of them than there are.
fn add_rows(step: &mut Step<'_>, times: f64) -> bool {
    let (settings, dt) = (step.settings, step.dt);
    let rules = ContactRules {
        max_recovery_speed: times * settings.tuning.max_recovery_speed,
        ..rules(settings, dt)
    };
    let Work { bodies, rows, collision, .. } = &mut *step.work;
    let mut query = step.world.query::<(&mut Contact, &mut Manifold, &Surface, &RowImpulses)>();
    let mut contacts = query.view();
    let before = rows.blocks.len();
    for overlapping in &collision.overlapping {
        let overlaps = &collision.overlaps[overlapping.first as usize..][..overlapping.count as usize];
        let rank = collision.broad.rank(overlapping.ids);
        let place = collision.pairs.binary_search_by_key(&rank, |p| collision.broad.rank(p.ids));
        let Some(pair) = place.ok().map(|i| &collision.pairs[i]) else { continue };
        let Some(entity) = pair.entity else { continue };
        let Some((contact, manifold, surface, last)) = contacts.get_mut(entity) else { continue };
        if contact.sensor || !surface.enabled || !is_sound(surface) {
            continue;
        }
        let slots = [pair.ids.0, pair.ids.1].map(|id| collision.colliders[id as usize].slot);
        let from = collision.ahead[pair.ids.0 as usize].position;
        let allowed = allowed(pair.nearest, pair.parting, settings, dt);
        let block = open_block(rows, entity, slots);
        for found in overlaps {
            let (mut point, d) = point_ahead(bodies, slots, from, found, pair.nearest, allowed, &rules);
            point.key = (0..).find(|k| manifold.points.iter().all(|p| p.key != *k)).unwrap_or(0);
            let views = slots.map(|s| &bodies.view[s as usize]);
            let (first, overlaps) = (rows.len(), found.separation < allowed);
            let came = -point.normal.dot(relative_velocity(&point, views));
            let closing = came.max(0.0) + settings.gravity.length() * dt;
            let pass = match settings.tuning.friction_passes {
                _ if settings.has_cones() => FirstPass::Cone,
                0 => FirstPass::Bounded,
                _ if !overlaps => FirstPass::Bounded,
                _ if slides(&point, surface, views, closing) => FirstPass::Slides,
                _ => FirstPass::Sticks,
            };
            push_point(rows, &mut point, surface, views, d, last, &rules, pass);
            point.resting_fraction =
                resting_fraction_of(point.separation, -came, settings.gravity.length() * dt, dt);
            let gain = settings.gravity.length() * dt;
            point.impacting = impacting_fraction_of(point.separation, -came, gain, dt);
            contact.approach = contact.approach.max(came);
            if !overlaps {
                rows.label[first..].fill(Label::Lower);
            }
            manifold.points.push(point);
        }
        close_block(rows, block);
    }
    rows.blocks.len() > before
}

/// The manifold point of an overlap that lies ahead, with the d of its normal row. `before` is the pair's least separation
/// at the start of the step.
#[allow(clippy::too_many_arguments)]
fn point_ahead(
    bodies: &Bodies,
    slots: [u32; 2],
    from: DVec3,
    found: &ContactPoint,
    before: f64,
    allowed: f64,
    rules: &ContactRules,
) -> (ManifoldPoint, f64) {
    let [a, b] = slots.map(|s| &bodies.ahead[s as usize]);
    let [arm_a, arm_b] = [a, b].map(|v| from - v.position + found.offset);
    let turns = [a, b].map(|v| DMat3::from_quat(v.rotation));
    let mut point = new_point(found, turns.each_ref(), [arm_a, arm_b], 0.5 * found.separation, false);
    let speed = found
        .normal
        .dot(relative_velocity(&point, slots.map(|s| with_new_velocity(bodies, s as usize)).each_ref()));
    // The gap at the start of the step, as far as the tangent tells it; a pair that overlapped did not do so by more.
    point.separation = (found.separation - rules.dt * speed).max(before.min(0.0));
    // What a turning body must give way is not thrown out faster than any other overlap.
    let d = ((found.separation - allowed) / rules.dt - speed).max(-rules.max_recovery_speed - speed.max(0.0));
    (point, d)
}

/// Solves the islands that have blocks from `first` on; the others keep what they have.
fn resolve_island(step: &mut Step<'_>, first: usize) {
    let before = work_of(&step.work.islands);
    graph::find_islands(step);
    for island in &mut step.work.islands {
        island.needs_solve = island.blocks.last().is_some_and(|b| *b as usize >= first);
    }
    partition::partition_bodies(step);
    assemble::assemble_needed(step);
    couple::load_partitions(step);
    let kept = work_of(&step.work.islands);
    step.work.spent.0 += before.0 - kept.0;
    step.work.spent.1 += before.1 - kept.1;
    while !couple::index_sets_settled(step) {
        couple::form_schur_complement(step);
        couple::solve_interface(step);
        couple::solve_partitions(step);
        couple::update_index_sets(step);
    }
    for (number, island) in step.work.islands.iter_mut().enumerate() {
        if island.blocks.last().is_some_and(|b| *b as usize >= first) {
            solve::note_solves(step.report, number, island, Cause::Overlap);
        }
        solve::bring_back(island, &mut step.work.bodies, &mut step.work.rows);
    }
    refine::bend_rough_islands(step);
}

/// Pivots and factorizations of these islands so far.
fn work_of(islands: &[Box<Island>]) -> (u32, u32) {
    let stats = islands.iter().map(|i| i.stats);
    stats.fold((0, 0), |n, s| (n.0 + s.pivots + s.ipm_iterations, n.1 + s.factorizations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deep_may_stay_deep_but_for_its_recovery() {
        let (settings, dt) = (Settings::default(), 1.0 / 60.0);
        assert_eq!(allowed(0.01, f64::INFINITY, &settings, dt), 0.0);
        // A fifth of a millimetre, and for a deep one no more than 0.3 m/s.
        assert!((allowed(-1e-3, f64::INFINITY, &settings, dt) + 0.8e-3).abs() < 1e-15);
        assert!((allowed(-0.1, f64::INFINITY, &settings, dt) + 0.1 - 0.005).abs() < 1e-15);
    }
}
