//! From impact to impact through a step: the pairs that may meet are looked at when they may, in the order of time.
//!
//! What is watched grows with what is struck: first the pairs that may bounce and all others of their bodies, then those of bodies
//! that were struck. What no blow reaches keeps its bits, and costs nothing.

use super::flight::Flyer;
use super::law::{Hit, JointRow};
use super::lists::{begin_contacts, blocks_by_slot, joints_by_slot, mover_at, pairs_by_slot};
use super::watch::{LOOKS, STRIKES, Terms, Watched};
use super::{Memory, law};
use crate::collision::{Collision, PairScratch};
use crate::components::{Contact, Manifold, ManifoldPoint, RowImpulses, Surface};
use crate::constraint::contact_rows::STRIDE;
use crate::events::ContactEvent;
use crate::geometry::{Bounds, Box3, Form, Placed};
use crate::schedule::Step;
use crate::settings::{Integrator, Settings};
use crate::state::{Bodies, Rows};
use crate::systems::collide::narrow::{self, may_meet, meet, tied};
use crate::systems::gather::free_motion;
use glam::DVec3;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Impacts at the same time: times that differ by less than this share of the step.
const AT_ONCE: f64 = 1e-9;
/// A pair that was looked at in vain is looked at again after this share of the step.
const SOON: f64 = 1e-6;
/// Looks ahead for a corner that swings in, and halvings of the time in which it does.
const SAMPLES: u32 = 6;
const HALVINGS: u32 = 24;
/// A corner that is further in than this (m) has been met.
const SUNK: f64 = 1e-5;
/// Bodies that turn away from their tangent by less than this (m) in a step are not looked at at its end.
const CURVES: f64 = 1e-5;

const NONE: u32 = u32::MAX;

type Contacts<'w> = hecs::View<'w, Touching>;
type Touching = (&'static mut Contact, &'static mut Manifold, &'static Surface, &'static RowImpulses);

/// The impacts of a step.
pub(in crate::systems) struct March<'a, 'w> {
    bodies: &'a Bodies,
    rows: &'a Rows,
    collision: &'a Collision,
    jointed_pairs: &'a [(u32, u32)],
    settings: &'a Settings,
    contacts: Contacts<'w>,
    terms: Terms,
    flyers: Vec<Flyer>,
    watched: Vec<Watched>,
    /// By slot: its flyer. By pair: its place among the watched.
    flyer_of: Vec<u32>,
    watched_of: Vec<u32>,
    /// By flyer: the pairs that are watched because of it.
    around: Vec<Vec<u32>>,
    /// By flyer: have all of its pairs been found?
    spread: Vec<bool>,
    /// Pairs with a contact by slot, sorted.
    by_slot: Vec<(u32, u32)>,
    /// Joints by slot, sorted.
    blocks_by_slot: Vec<(u32, u32)>,
    /// By slot: is it tied by joints, and what do they push it with (N·s)?
    joints: Vec<Option<[DVec3; 2]>>,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    scratch: PairScratch,
}

impl March<'_, '_> {
    /// Goes through the impacts of a step.
    pub fn run(step: &mut Step<'_>, memory: &mut Memory) {
        let Memory { struck, shown, hot, fast, law, .. } = memory;
        law.set_options(step.settings.solver_options());
        let midpoint = step.settings.integrator == Integrator::Midpoint;
        let (bodies, collision) = (&step.work.bodies, &step.work.collision);
        let mut query = step.world.query::<Touching>();
        let mut march = March {
            bodies,
            rows: &step.work.rows,
            collision,
            jointed_pairs: &step.work.jointed_pairs,
            settings: step.settings,
            contacts: query.view(),
            terms: Terms { dt: step.dt, threshold: step.settings.bounce_threshold },
            flyers: Vec::new(),
            watched: Vec::new(),
            flyer_of: vec![NONE; bodies.len()],
            watched_of: vec![NONE; collision.pairs.len()],
            around: Vec::new(),
            spread: Vec::new(),
            by_slot: pairs_by_slot(collision),
            blocks_by_slot: blocks_by_slot(&step.work.rows),
            joints: joints_by_slot(&step.work.rows, bodies),
            queue: BinaryHeap::new(),
            scratch: PairScratch::default(),
        };
        for &pair in hot.iter() {
            if let Some(k) = march.watch(pair, 0.0) {
                march.watched[k as usize].flyers.into_iter().for_each(|flyer| march.spread(flyer, 0.0));
            }
        }
        for &slot in fast.iter() {
            let flyer = march.enlist(slot);
            march.spread(flyer, 0.0);
            march.find_new(flyer, 0.0);
            for k in march.around[flyer as usize].clone() {
                if march.watched[k as usize].entity.is_none() {
                    let next = march.soonest(k);
                    march.await_pair(k, next);
                }
            }
        }
        march.go(law, midpoint);
        march.tell_contacts();
        let found = std::mem::take(&mut march.watched);
        let flyers = std::mem::take(&mut march.flyers);
        drop(march);
        drop(query);
        let mut ends = Vec::new();
        for flyer in flyers.iter().filter(|f| f.struck) {
            ends.push((flyer.slot, flyer.end(step.dt)));
            shown.extend(flyer.shown.map(|view| (flyer.slot, view)));
        }
        begin_contacts(step, found);
        ends.sort_unstable_by_key(|end| end.0);
        shown.sort_unstable_by_key(|shown| shown.0);
        step.work.spent.1 += law.factorizations;
        for (slot, view) in ends {
            struck.push(slot);
            if std::mem::take(&mut step.work.bodies.asleep[slot as usize]) {
                step.work.bodies.rest[slot as usize] = 0.0;
                let woken = step.work.bodies.entity[slot as usize];
                step.work.collision.events.push(ContactEvent::WokeUp(woken));
            }
            step.work.bodies.view[slot as usize] = view;
            free_motion(&mut step.work.bodies, slot as usize, step.settings.integrator, step.dt);
        }
    }

    fn go(&mut self, law: &mut law::Law, midpoint: bool) {
        let dt = self.terms.dt;
        while let Some((time, first)) = self.next_due(dt) {
            let mut due = vec![first];
            while let Some((_, more)) = self.next_due(dt.min(time + AT_ONCE * dt)) {
                due.push(more);
            }
            due.sort_unstable();
            due.dedup();
            let mut hits = Vec::new();
            for k in due {
                self.look(k, time);
                self.list_hits(k, &mut hits);
            }
            if !hits.is_empty() {
                self.strike(law, &mut hits, time, midpoint);
            }
        }
    }

    /// The next pair that is due before a time.
    fn next_due(&mut self, before: f64) -> Option<(f64, u32)> {
        while let Some(&Reverse((bits, k))) = self.queue.peek() {
            if f64::from_bits(bits) >= before {
                return None;
            }
            self.queue.pop();
            let pair = &mut self.watched[k as usize];
            if pair.next.to_bits() == bits {
                pair.next = f64::INFINITY;
                return Some((f64::from_bits(bits), k));
            }
        }
        None
    }

    /// The points of a pair that are struck now; where there is none, the pair is looked at again later.
    fn list_hits(&mut self, k: u32, hits: &mut Vec<Hit>) {
        let pair = &mut self.watched[k as usize];
        let before = hits.len();
        for point in &pair.points {
            let now = pair.closing(point, &self.flyers, pair.seen, self.terms);
            if now.meets() {
                hits.push(Hit {
                    pair: k,
                    flyers: pair.flyers,
                    point: *point,
                    restitution: pair.restitution,
                    friction: pair.friction,
                    belt: pair.belt,
                    speed: now.speed,
                    impulse: 0.0,
                });
            }
        }
        if hits.len() == before {
            pair.looks += 1;
            let (least, again) = (pair.seen + SOON * self.terms.dt, pair.looks <= LOOKS);
            let next = if again { self.soonest(k).max(least) } else { f64::INFINITY };
            self.await_pair(k, next);
        }
    }

    fn strike(&mut self, law: &mut law::Law, hits: &mut [Hit], time: f64, midpoint: bool) {
        let joints = self.joints_of(hits);
        let mut own: Vec<u32> = hits.iter().flat_map(|hit| hit.flyers).collect();
        own.extend(joints.iter().flat_map(|row| row.on.iter().map(|on| on.0)));
        own.sort_unstable();
        own.dedup();
        own.retain(|&k| self.flyers[k as usize].moves);
        for &k in &own {
            let flyer = &mut self.flyers[k as usize];
            // Rows and joints that hold a body may stop what free flight does not.
            if midpoint && !flyer.stays && flyer.shown.is_none() && time > 0.5 * self.terms.dt {
                flyer.shown = Some(flyer.at(0.5 * self.terms.dt));
            }
            (flyer.view, flyer.time, flyer.struck) = (flyer.at(time), time, true);
        }
        law.strike(&mut self.flyers, hits, &joints);
        for hit in hits.iter() {
            let pair = &mut self.watched[hit.pair as usize];
            pair.strikes += 1;
            pair.speed = pair.speed.max(hit.speed);
            pair.impulse += hit.impulse;
        }
        for &k in &own {
            self.spread(k, time);
            self.find_new(k, time);
        }
        let mut stirred: Vec<u32> =
            own.iter().flat_map(|&k| self.around[k as usize].iter().copied()).collect();
        stirred.sort_unstable();
        stirred.dedup();
        for k in stirred {
            self.look(k, time);
            let pair = &mut self.watched[k as usize];
            pair.looks = 0;
            let next = if pair.strikes < STRIKES { self.soonest(k) } else { f64::INFINITY };
            self.await_pair(k, next);
        }
    }

    fn await_pair(&mut self, k: u32, next: f64) {
        self.watched[k as usize].next = next;
        if next < self.terms.dt {
            self.queue.push(Reverse((next.to_bits(), k)));
        }
    }

    /// When a pair is to be looked at next, its points being those of now.
    fn soonest(&mut self, k: u32) -> f64 {
        let pair = &self.watched[k as usize];
        let next = pair.soonest(&self.flyers, self.terms);
        if next < self.terms.dt || !self.curves(k) {
            return next;
        }
        let (seen, points) = (pair.seen, pair.points.clone());
        let sunk = pair.nearest(&self.flyers, self.terms) < -SUNK;
        let (mut free, mut met) = (seen, None);
        for k_th in 1..=SAMPLES {
            let time = seen + (self.terms.dt - seen) * f64::from(k_th) / f64::from(SAMPLES);
            if self.has_met(k, time, sunk) {
                met = Some(time);
                break;
            }
            free = time;
        }
        if let Some(met) = &mut met {
            for _ in 0..HALVINGS {
                let half = 0.5 * (free + *met);
                if self.has_met(k, half, sunk) { *met = half } else { free = half }
            }
        }
        let pair = &mut self.watched[k as usize];
        (pair.seen, pair.points) = (seen, points);
        // What meets at the very end is left to the next step, which begins there.
        met.filter(|met| *met < self.terms.dt).unwrap_or(f64::INFINITY)
    }

    /// Is a point of the pair struck at a time, or has one gone in before, if none was in at first?
    fn has_met(&mut self, k: u32, time: f64, sunk: bool) -> bool {
        self.look(k, time);
        let pair = &self.watched[k as usize];
        pair.meets(&self.flyers, self.terms) || (!sunk && pair.nearest(&self.flyers, self.terms) < -SUNK)
    }

    /// May a corner of the pair be elsewhere at the end of the step than its velocity now says?
    fn curves(&self, k: u32) -> bool {
        let pair = &self.watched[k as usize];
        [pair.ids.0, pair.ids.1].into_iter().zip(pair.flyers).any(|(id, flyer)| {
            let (flyer, mover) = (&self.flyers[flyer as usize], &self.collision.movers[id as usize]);
            let turn = flyer.view.angular_velocity.length() * (self.terms.dt - pair.seen);
            let round = matches!(mover.form, Form::Ball(_)) && mover.pose.position == mover.center;
            !flyer.stays && !round && turn > 0.0 && turn.min(1.0) * turn * mover.reach > CURVES
        })
    }

    /// Looks where a pair touches at a time.
    fn look(&mut self, k: u32, time: f64) {
        let pair = &mut self.watched[k as usize];
        if pair.seen == time {
            return;
        }
        pair.seen = time;
        let views = pair.flyers.map(|f| self.flyers[f as usize].at(time));
        // The way that is left leads along the chord of the parabola.
        let chord = pair.flyers.map(|f| self.flyers[f as usize].pull[0] * (0.5 * (self.terms.dt - time)));
        let [a, b] = [(pair.ids.0, 0), (pair.ids.1, 1)].map(|(id, k)| {
            let flyer = &self.flyers[pair.flyers[k] as usize];
            let more = if flyer.stays { DVec3::ZERO } else { chord[k] };
            mover_at(self.collision, id, &views[k], more, self.terms.dt)
        });
        let [x, y] = [pair.ids.0, pair.ids.1].map(|id| &self.collision.colliders[id as usize].shape);
        narrow::look_again(
            &mut pair.points,
            (&a, x),
            (&b, y),
            self.settings,
            self.terms.dt,
            &mut self.scratch,
        );
    }

    /// Watches all pairs of a body that moves.
    fn spread(&mut self, flyer: u32, time: f64) {
        let (slot, moves) = (self.flyers[flyer as usize].slot, self.flyers[flyer as usize].moves);
        if !moves || std::mem::replace(&mut self.spread[flyer as usize], true) {
            return;
        }
        let first = self.by_slot.partition_point(|(s, _)| *s < slot);
        for i in first..self.by_slot.len() {
            let (s, pair) = self.by_slot[i];
            if s != slot {
                break;
            }
            self.watch(pair, time);
        }
    }

    /// Watches a pair that has a contact. Its place among the watched, if it pushes.
    fn watch(&mut self, number: u32, time: f64) -> Option<u32> {
        if self.watched_of[number as usize] != NONE {
            return Some(self.watched_of[number as usize]);
        }
        let pair = &self.collision.pairs[number as usize];
        let [a, b] = [pair.ids.0, pair.ids.1].map(|id| self.collision.colliders[id as usize].slot);
        if pair.crowded || tied(self.jointed_pairs, a, b) {
            return None;
        }
        let moves = self.may_move(a) || self.may_move(b);
        let (contact, manifold, surface, _) = self.contacts.get_mut(pair.entity?)?;
        if contact.sensor || !surface.enabled || !moves {
            return None;
        }
        let (surface, points) = (*surface, manifold.points.clone());
        let k = self.add(pair.entity, pair.ids, &surface, points, 0.0);
        self.watched_of[number as usize] = k;
        // What moves further than the narrow phase has looked has all of its points looked for.
        let is_fast =
            |id: u32| self.collision.movers[id as usize].way > self.collision.movers[id as usize].own;
        if time == 0.0 && (is_fast(pair.ids.0) || is_fast(pair.ids.1)) {
            self.watched[k as usize].seen = f64::NEG_INFINITY;
        } else if time == 0.0 {
            self.set_on_parabola(k);
        }
        self.look(k, time);
        let next = self.soonest(k);
        self.await_pair(k, next);
        Some(k)
    }

    fn add(
        &mut self,
        entity: Option<hecs::Entity>,
        ids: (u32, u32),
        surface: &Surface,
        points: Vec<ManifoldPoint>,
        seen: f64,
    ) -> u32 {
        let slots = [ids.0, ids.1].map(|id| self.collision.colliders[id as usize].slot);
        let flyers = slots.map(|slot| self.enlist(slot));
        let k = self.watched.len() as u32;
        flyers.into_iter().for_each(|f| self.around[f as usize].push(k));
        self.watched.push(Watched {
            entity,
            ids,
            flyers,
            restitution: surface.restitution,
            friction: surface.friction,
            belt: surface.velocity,
            points,
            seen,
            next: f64::INFINITY,
            looks: 0,
            strikes: 0,
            speed: 0.0,
            impulse: 0.0,
        });
        k
    }

    /// Points were found at the poses of the step, beside which the parabolas lie.
    fn set_on_parabola(&mut self, k: u32) {
        let pair = &mut self.watched[k as usize];
        let beside = pair.flyers.map(|f| {
            let flyer = &self.flyers[f as usize];
            flyer.at(0.0).position - self.bodies.view[flyer.slot as usize].position
        });
        for point in &mut pair.points {
            point.separation += point.normal.dot(beside[1] - beside[0]);
        }
    }

    /// Watches what a body that was struck may meet although it was far from it.
    fn find_new(&mut self, flyer: u32, time: f64) {
        let Flyer { slot, view, pull, .. } = self.flyers[flyer as usize];
        let left = self.terms.dt - time;
        let entity = self.bodies.entity[slot as usize];
        let collision = self.collision;
        let Some(own) = collision.by_body.get(entity.id() as usize).filter(|b| b.entity == Some(entity))
        else {
            return;
        };
        let mut near = Vec::new();
        for &id in &own.ids {
            let (record, mover) = (&collision.colliders[id as usize], &collision.movers[id as usize]);
            let turn = (view.angular_velocity.length() * left).min(2.0) * mover.reach;
            let pose = record.on(&view);
            let placed = Placed { shape: &record.shape, position: pose.position, rotation: pose.rotation };
            let region = Box3::around(&placed).swept(
                (view.linear_velocity + pull[0] * (0.5 * left)) * left,
                self.settings.contact_margin + turn,
            );
            if region.low.is_finite() && region.high.is_finite() && !record.sensor {
                collision.broad.in_region(&region, &mut |other| near.push((id, other, region)));
            }
        }
        near.sort_unstable_by_key(|(id, other, _)| (*id, *other));
        for (id, other, region) in near {
            self.watch_new(id, other, &region, time);
        }
    }

    fn watch_new(&mut self, id: u32, other: u32, region: &Box3, time: f64) {
        let collision = self.collision;
        let (broad, briefs) = (&collision.broad, &collision.briefs);
        let ids = if broad.rank((id, other)) < broad.rank((other, id)) { (id, other) } else { (other, id) };
        let [a, b] = [ids.0, ids.1].map(|id| &collision.colliders[id as usize]);
        let sees = briefs[other as usize].bounds.is_some_and(|bounds| bounds.meets(&Bounds::Finite(*region)));
        let mut of_a = briefs[ids.0 as usize];
        of_a.bounds = briefs[ids.1 as usize].bounds;
        let wanted = sees && may_meet(&of_a, &briefs[ids.1 as usize]) && !a.sensor && !b.sensor;
        let flyer = self.flyer_of[collision.colliders[id as usize].slot as usize];
        let known = || self.around[flyer as usize].iter().any(|&k| self.watched[k as usize].ids == ids);
        let crowded = || collision.crowds.have_both(a.slot, b.slot);
        if !wanted || tied(self.jointed_pairs, a.slot, b.slot) || crowded() || known() {
            return;
        }
        let place = collision.pairs.binary_search_by_key(&broad.rank(ids), |p| broad.rank(p.ids));
        if place.is_ok() || collision.filter.as_ref().is_some_and(|f| !f(a.entity, b.entity)) {
            return;
        }
        let surface =
            meet(&collision.movers[ids.0 as usize], &collision.movers[ids.1 as usize], self.settings);
        if time == 0.0 && surface.restitution <= 0.0 {
            return;
        }
        let k = self.add(None, ids, &surface, Vec::new(), f64::NEG_INFINITY);
        self.look(k, time);
        // The pairs of the struck bodies are awaited all together.
    }

    /// Do impulses move it? A sleeping body wakes when it is struck.
    fn may_move(&self, slot: u32) -> bool {
        let slot = slot as usize;
        self.bodies.view[slot].is_dynamic() && !self.bodies.quarantined[slot]
    }

    /// The flyer of a body.
    fn enlist(&mut self, slot: u32) -> u32 {
        if self.flyer_of[slot as usize] != NONE {
            return self.flyer_of[slot as usize];
        }
        let k = self.flyers.len() as u32;
        self.flyer_of[slot as usize] = k;
        let view = self.bodies.view[slot as usize];
        let moves = self.may_move(slot);
        let jointed = moves && self.joints.get(slot as usize).is_some_and(|j| j.is_some());
        let stays = jointed || !(moves || self.bodies.is_awake(slot));
        let pull = if self.bodies.is_dynamic(slot) { self.acceleration(slot) } else { [DVec3::ZERO; 2] };
        let mut flyer =
            Flyer { slot, view, time: 0.0, pull, stays, moves, jointed, struck: false, shown: None };
        flyer.begin(self.terms.dt);
        self.flyers.push(flyer);
        self.around.push(Vec::new());
        self.spread.push(false);
        k
    }

    /// What forces, and the contacts and joints that carried a body in the last step, accelerate it with.
    fn acceleration(&mut self, slot: u32) -> [DVec3; 2] {
        let view = self.bodies.view[slot as usize];
        let [v, w] = self.bodies.velocity[slot as usize];
        let [mut push, mut turn] =
            self.joints.get(slot as usize).copied().flatten().unwrap_or([DVec3::ZERO; 2]);
        let first = self.by_slot.partition_point(|(s, _)| *s < slot);
        for &(s, number) in &self.by_slot[first..] {
            if s != slot {
                break;
            }
            let pair = &self.collision.pairs[number as usize];
            let Some((_, manifold, surface, last)) = pair.entity.and_then(|e| self.contacts.get_mut(e))
            else {
                continue;
            };
            let is_a = self.collision.colliders[pair.ids.0 as usize].slot == slot;
            for point in manifold.points.iter().filter(|p| p.age > 0 && surface.enabled) {
                let pushed = last.lambda(STRIDE * point.key).max(0.0) * point.resting_fraction;
                let along = point.normal * if is_a { -pushed } else { pushed };
                push += along;
                turn += if is_a { point.arm_a } else { point.arm_b }.cross(along);
            }
        }
        let dt = self.terms.dt;
        let linear = (v - view.linear_velocity + push / view.mass) / dt;
        let angular = (w - view.angular_velocity + view.inverse_inertia() * turn) / dt;
        [linear, if view.rotates() { angular } else { DVec3::ZERO }]
    }

    /// The rows of rigid joints that a blow reaches, with their bodies among the flyers.
    fn joints_of(&mut self, hits: &[Hit]) -> Vec<JointRow> {
        let mut reached: Vec<u32> = hits.iter().flat_map(|hit| hit.flyers).collect();
        reached.retain(|&k| self.flyers[k as usize].jointed);
        let mut blocks: Vec<u32> = Vec::new();
        let mut known: Vec<bool> = Vec::new();
        while let Some(k) = reached.pop() {
            let slot = self.flyers[k as usize].slot;
            known.resize(known.len().max(self.rows.blocks.len()), false);
            let first = self.blocks_by_slot.partition_point(|(s, _)| *s < slot);
            for i in first..self.blocks_by_slot.len() {
                let (s, number) = self.blocks_by_slot[i];
                if s != slot {
                    break;
                }
                if std::mem::replace(&mut known[number as usize], true) {
                    continue;
                }
                blocks.push(number);
                let block = &self.rows.blocks[number as usize];
                for body in block.body..block.body + block.bodies {
                    let slot = self.rows.body[body as usize];
                    if self.may_move(slot) {
                        reached.push(self.enlist(slot));
                    }
                }
            }
        }
        blocks.sort_unstable();
        blocks.iter().flat_map(|&b| self.rigid_rows(b)).collect()
    }

    /// The two-sided rigid rows of a joint. Springs, motors, stops and slack ropes do not answer a blow at once.
    fn rigid_rows(&self, block: u32) -> Vec<JointRow> {
        let block = &self.rows.blocks[block as usize];
        let slots = &self.rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let rigid = |row: &u32| {
            let i = (block.row + row) as usize;
            let two_sided = self.rows.lo[i] == f64::NEG_INFINITY && self.rows.hi[i] == f64::INFINITY;
            two_sided && self.rows.position_level[i]
        };
        let of = |row: u32| {
            let first = (block.entry + row * block.bodies) as usize;
            let own = slots.iter().zip(&self.rows.jacobian[first..]);
            let moved = own.filter(|(slot, j)| self.may_move(**slot) && **j != [0.0; 6]);
            JointRow { on: moved.map(|(slot, j)| (self.flyer_of[*slot as usize], *j)).collect() }
        };
        (0..block.rows).filter(rigid).map(of).filter(|row| !row.on.is_empty()).collect()
    }

    /// Contacts learn what their rows are to see, and what their blows took.
    fn tell_contacts(&mut self) {
        for pair in &mut self.watched {
            let touched = pair.flyers.iter().any(|&k| self.flyers[k as usize].struck);
            let Some((contact, manifold, ..)) = pair.entity.and_then(|e| self.contacts.get_mut(e)) else {
                continue;
            };
            if !touched {
                if pair.restitution > 0.0 {
                    pair.let_pass(&mut manifold.points, &self.flyers, self.terms);
                }
                continue;
            }
            manifold.points = pair.points_for_rows(&self.flyers, self.terms);
            if pair.strikes > 0 {
                contact.approach = contact.approach.max(pair.speed);
                contact.blow += pair.impulse;
            }
        }
    }
}
