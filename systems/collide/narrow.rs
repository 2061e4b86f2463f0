//! The narrow phase over all near pairs, in parallel, and the matching of new points with old ones.

use super::carry::{MOST, carry_along};
use crate::collision::{
    Brief, ColliderRecord, Collision, Mover, NearPair, Pair, PairFilter, PairScratch, free_until,
};
use crate::components::{ManifoldPoint, Surface};
use crate::geometry::{
    Approach, ContactPoint, Placed, ShapeHandle, collide, collide_ball, collide_forms, collide_moving,
    first_touch, is_ball_pair, own_direction,
};
use crate::schedule::Step;
use crate::settings::Settings;
use crate::systems::parallel::for_each;
use glam::{DMat3, DVec3};
use rayon::prelude::*;

/// Bodies in exactly the same place are seen this share of their size beside each other.
pub(super) const HAIR: f64 = 1e-6;
/// Pairs per task: fixed, so that the work is cut the same way for any number of threads.
pub(super) const CHUNK: usize = 64;
/// The same for pairs without a contact, most of which are left alone.
pub(super) const NEAR_CHUNK: usize = 512;

/// Share of the margin by which surfaces may be out of plane and are flush: a quarter of a millimetre.
const FLUSH: f64 = 0.05;

/// Finds the points of every near pair that may touch in this step. Pairs that have come to touch are in `begun` then.
pub fn find_points(step: &mut Step<'_>) {
    let (settings, dt) = (step.settings, step.dt);
    let Collision { near, pairs, begun, colliders, briefs, movers, spent, scratch, jointed, filter, .. } =
        &mut step.work.collision;
    let times = Times { dt, fall: settings.gravity.length() * dt * dt, margin: settings.contact_margin };
    let look = Look { colliders, briefs, movers, jointed, filter: filter.as_ref(), times };
    let spent = &*spent;
    let chunks = near.len().max(pairs.len()).div_ceil(CHUNK);
    if scratch.len() < chunks {
        scratch.resize_with(chunks, Default::default);
    }
    for_each(pairs.par_chunks_mut(CHUNK).zip(scratch.par_iter_mut()), |(pairs, scratch)| {
        read_ahead(pairs);
        for pair in pairs {
            look.at_contact(pair, scratch);
        }
    });
    // Beyond this and what the two may move, neither their boxes meet nor is anything looked for.
    let room = 2.0 * look.times.margin + look.times.fall;
    for_each(near.par_chunks_mut(NEAR_CHUNK).zip(scratch.par_iter_mut()), |(near, scratch)| {
        for pair in near {
            if !pair.apart(spent[pair.ids.0 as usize] + spent[pair.ids.1 as usize] + room) {
                look.at_near(pair, scratch);
            }
        }
    });
    for scratch in &mut scratch[..near.len().div_ceil(NEAR_CHUNK)] {
        begun.append(&mut scratch.begun);
    }
}

/// What a look at a pair says.
enum Seen {
    /// There are points; the least separation (m).
    Points(f64),
    /// There are none for as long as the two odometers together show less than this (m).
    Apart(f64),
}

/// What there is to look at.
struct Look<'a> {
    colliders: &'a [ColliderRecord],
    briefs: &'a [Brief],
    movers: &'a [Mover],
    jointed: &'a [(u32, u32)],
    filter: Option<&'a PairFilter>,
    times: Times,
}

impl Look<'_> {
    /// A pair that has a contact.
    fn at_contact(&self, pair: &mut Pair, scratch: &mut PairScratch) {
        let (a, b) = (&self.briefs[pair.ids.0 as usize], &self.briefs[pair.ids.1 as usize]);
        pair.asleep = pair.entity.is_some() && !a.awake && !b.awake;
        if !pair.asleep {
            (pair.parting, pair.crowded) = (f64::INFINITY, false);
            let seen = self.at(pair.ids, &mut pair.points, scratch);
            (pair.touches, pair.nearest, pair.free) = match seen {
                Seen::Points(nearest) => (true, nearest, f64::NEG_INFINITY),
                Seen::Apart(free) => (false, f64::INFINITY, free),
            };
        }
    }

    /// A pair that has none.
    #[inline(never)]
    fn at_near(&self, pair: &mut NearPair, scratch: &mut PairScratch) {
        let mut points = std::mem::take(&mut scratch.fresh);
        points.clear();
        match self.at(pair.ids, &mut points, scratch) {
            Seen::Apart(free) => pair.free = free,
            Seen::Points(nearest) => {
                scratch.begun.push(Pair { nearest, points: points.clone(), ..Pair::new(pair.ids) });
            }
        }
        scratch.fresh = points;
    }

    /// The second of two colliders in exactly the same place, a hair beside the first: which way they part must be another one for
    /// each pair.
    #[cold]
    fn set_beside(&self, ids: (u32, u32)) -> Mover {
        let mut b = self.movers[ids.1 as usize];
        let size = lesser(self.movers[ids.0 as usize].span, b.span);
        let [to_a, to_b] =
            [ids.0, ids.1].map(|id| own_direction(u64::from(self.colliders[id as usize].slot)));
        b.pose.position += (to_b - to_a) * (HAIR * size);
        b
    }

    /// Where two colliders touch.
    #[inline]
    fn at(&self, ids: (u32, u32), points: &mut Vec<ManifoldPoint>, scratch: &mut PairScratch) -> Seen {
        let (i, j) = (ids.0 as usize, ids.1 as usize);
        let apart = |distance: f64| Seen::Apart(free_until(distance, &self.movers[i], &self.movers[j]));
        let never = Seen::Apart(f64::NEG_INFINITY);
        let (a, b) = (&self.briefs[i], &self.briefs[j]);
        let (Some(x), Some(y)) = (&a.bounds, &b.bounds) else { return never };
        if !x.meets(y) {
            // Both boxes have the margin around them.
            return apart(x.gap(y) + 2.0 * self.times.margin);
        }
        if !wanted(a, b) || tied(self.jointed, a.slot, b.slot) {
            return never;
        }
        if self.filter.is_some_and(|f| !f(self.colliders[i].entity, self.colliders[j].entity)) {
            return never;
        }
        let beside;
        let (a, mut b) = (&self.movers[i], &self.movers[j]);
        if a.pose.position == b.pose.position {
            beside = self.set_beside(ids);
            b = &beside;
        }
        let motion = Motion::of(a, b, &self.times);
        if is_ball_pair(a.form, b.form) {
            match collide_ball((a.form, &a.pose), (b.form, &b.pose), &motion.approach()) {
                Ok(point) => {
                    let nearest = place_one(points, a, b, &point, &motion);
                    return if points.is_empty() { never } else { Seen::Points(nearest) };
                }
                // Shapes are looked at within one margin, boxes within two.
                Err(gap) if motion.misses(gap) => return apart(gap + self.times.margin),
                Err(_) => {}
            }
        } else if let Some(nearest) = carry_along(points, a, b, &motion) {
            return Seen::Points(nearest);
        }
        let gap = motion.find((a, &self.colliders[i].shape), (b, &self.colliders[j].shape), scratch);
        if scratch.found.is_empty() {
            return apart(gap + self.times.margin);
        }
        let nearest = place(points, a, b, scratch, &motion);
        if points.is_empty() { never } else { Seen::Points(nearest) }
    }
}

/// Brings the points of a chunk near. They lie scattered in memory; looked at one pair after another each costs the full way
/// there, all at once they share it.
fn read_ahead(pairs: &[Pair]) {
    let points = pairs.iter().flat_map(|p| &p.points);
    let touched = points.fold(0.0, |sum, p| sum + p.normal.x + p.arm_b.y + p.seen);
    std::hint::black_box(touched);
}

/// May these two meet in this step, as far as boxes and filters tell?
pub(in crate::systems) fn may_meet(a: &Brief, b: &Brief) -> bool {
    // The tree's boxes are fat by an amount that depends on the past; what counts is where things can be now.
    matches!((&a.bounds, &b.bounds), (Some(x), Some(y)) if x.meets(y)) && wanted(a, b)
}

/// May these two meet at all?
#[inline]
fn wanted(a: &Brief, b: &Brief) -> bool {
    let (f, g) = (a.filter, b.filter);
    a.slot != b.slot
        && (a.dynamic || b.dynamic || a.sensor || b.sensor)
        && f.groups & g.mask != 0
        && g.groups & f.mask != 0
}

/// Are two slots among those that joints keep from touching?
pub(in crate::systems) fn tied(jointed: &[(u32, u32)], a: u32, b: u32) -> bool {
    !jointed.is_empty() && jointed.binary_search(&(a.min(b), a.max(b))).is_ok()
}

/// How two materials meet.
pub(in crate::systems) fn meet(a: &Mover, b: &Mover, settings: &Settings) -> Surface {
    let (m, n) = (&a.material, &b.material);
    let mass = lesser(lesser(a.mass, b.mass), 1e12);
    Surface {
        friction: (greater(m.friction, 0.0) * greater(n.friction, 0.0)).sqrt(),
        restitution: lesser(greater(greater(m.restitution, n.restitution), 0.0), 1.0),
        compliance: settings.tuning.contact_compliance / mass,
        friction_compliance: settings.tuning.friction_compliance / mass,
        velocity: DVec3::ZERO,
        torsion_radius: greater(greater(m.torsion_radius, n.torsion_radius), 0.0),
        rolling_radius: greater(greater(m.rolling_radius, n.rolling_radius), 0.0),
        enabled: true,
    }
}

/// The lesser of two numbers, the second if they cannot be compared: one instruction, where `f64::min` is five.
#[inline]
fn lesser(x: f64, y: f64) -> f64 {
    if x < y { x } else { y }
}

/// The greater of two numbers, likewise.
#[inline]
fn greater(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}

/// What all pairs share.
pub(super) struct Times {
    /// The step (s).
    pub dt: f64,
    /// What gravity adds to a way in a step (m).
    pub fall: f64,
    /// `Settings::contact_margin`.
    pub margin: f64,
}

/// How two colliders may approach in this step.
pub(super) struct Motion {
    /// Motion of b relative to a in the step (m), without turning.
    relative: DVec3,
    /// Surfaces are looked at within this distance whatever they do (m).
    pub margin: f64,
    /// Distance within which points are looked for (m).
    reach: f64,
    /// Longest way the surfaces may approach (m).
    pub way: f64,
    /// What the step's own acceleration may add (m).
    pub fall: f64,
    /// The step (s).
    dt: f64,
}

impl Motion {
    #[inline]
    pub fn of(a: &Mover, b: &Mover, times: &Times) -> Motion {
        let Times { dt, fall, margin } = *times;
        let relative = (b.velocity[0] - a.velocity[0]) * dt;
        // Two bodies that move together may part in this very step, when something stops one of them: so each counts
        // with its own speed, not only with the relative one.
        let way = a.way + b.way + fall;
        let own = lesser(a.own, b.own);
        let margin = lesser(lesser(a.fine, b.fine), margin);
        // Beyond its own size a body's nearest point says little about what it will hit: then it is swept.
        Motion { relative, margin, reach: margin + lesser(way, own), way, fall, dt }
    }

    /// How the shapes are looked at.
    #[inline]
    fn approach(&self) -> Approach {
        Approach { reach: self.reach, motion: self.relative, flush: FLUSH * self.margin }
    }

    /// Need shapes that are this far apart at least, and beyond reach, not be swept? Either all of their way is within reach, or
    /// what they move against each other is less than the gap.
    #[inline]
    fn misses(&self, gap: f64) -> bool {
        self.way <= self.reach || (gap > 0.0 && gap * gap > 1.01 * self.relative.length_squared())
    }

    /// Looks at the shapes. Returns how far they are apart at least, if no point is found and that is known; −∞ else.
    pub fn find(
        &self,
        a: (&Mover, &ShapeHandle),
        b: (&Mover, &ShapeHandle),
        scratch: &mut PairScratch,
    ) -> f64 {
        let PairScratch { narrow, found, .. } = scratch;
        let (form_a, form_b) = (a.0.form, b.0.form);
        let placed = |m: &Mover| (m.pose.position, m.pose.rotation);
        let known = collide_forms((form_a, &a.0.pose), (form_b, &b.0.pose), &self.approach(), narrow, found);
        if let Some(gap) = known
            && (!found.is_empty() || self.misses(gap))
        {
            return gap;
        }
        let ((pa, qa), (pb, qb)) = (placed(a.0), placed(b.0));
        let a = Placed { shape: a.1, position: pa, rotation: qa };
        let mut b = Placed { shape: b.1, position: pb, rotation: qb };
        if known.is_none() {
            collide_moving(&a, &b, &self.approach(), narrow, found);
        }
        if !found.is_empty() || self.way <= self.reach {
            return f64::NEG_INFINITY;
        }
        let Some(share) = first_touch(&a, &b, self.relative) else { return f64::NEG_INFINITY };
        // The points at the moment of touching, seen from where the bodies are now.
        let moved = self.relative * share;
        b.position += moved;
        collide(&a, &b, self.margin, narrow, found);
        for point in found {
            point.separation -= moved.dot(point.normal);
        }
        f64::NEG_INFINITY
    }

    /// Is a point too far apart to be met in this step?
    fn out_of_reach(&self, a: &Mover, b: &Mover, point: &ContactPoint, [arm_a, arm_b]: [DVec3; 2]) -> bool {
        let speed =
            |m: &Mover, arm: DVec3| self.dt * point.normal.dot(m.velocity[0] + m.velocity[1].cross(arm));
        let (forward, back) = (speed(a, arm_a), -speed(b, arm_b));
        let closing = (forward + back).max(forward).max(back);
        point.separation > self.margin + closing.max(0.0) + self.fall
    }
}

/// Puts the only point of a ball in the place of the one it continues. Returns its separation; infinite, and no point, if it is
/// too far away.
fn place_one(
    points: &mut Vec<ManifoldPoint>,
    a: &Mover,
    b: &Mover,
    found: &ContactPoint,
    motion: &Motion,
) -> f64 {
    let arms = [a.pose.position - a.center + found.offset, a.pose.position - b.center + found.offset];
    if found.separation > motion.margin && motion.out_of_reach(a, b, found, arms) {
        points.clear();
        return f64::INFINITY;
    }
    let half = found.normal * (0.5 * found.separation);
    let anchors = [a.turn.transpose() * (arms[0] - half), b.turn.transpose() * (arms[1] + half)];
    let size = 0.5 * lesser(lesser(a.size, b.size), 1e3);
    let within = || size + 2.0 * motion.relative.length();
    match &mut points[..] {
        [old] if !old.carried && continues(old, anchors, found.normal, size, within) => {
            (old.normal, old.separation, old.seen) = (found.normal, found.separation, found.separation);
            [old.arm_a, old.arm_b] = arms;
            [old.anchor_a, old.anchor_b] = anchors;
            (old.age, old.answered) = (old.age.saturating_add(1), false);
        }
        _ => {
            let mut new = new_point(found, [&a.turn, &b.turn], arms, 0.5 * found.separation, false);
            adopt(points, std::slice::from_mut(&mut new), within());
            points.clear();
            // A ball has one point, not four.
            points.reserve_exact(1);
            points.push(new);
        }
    }
    found.separation
}

/// Looks at two colliders where they are at another time of the step. What is known of their points stays as it is.
pub(in crate::systems) fn look_again(
    points: &mut Vec<ManifoldPoint>,
    a: (&Mover, &ShapeHandle),
    b: (&Mover, &ShapeHandle),
    settings: &Settings,
    dt: f64,
    scratch: &mut PairScratch,
) {
    let times = Times { dt, fall: settings.gravity.length() * dt * dt, margin: settings.contact_margin };
    let mut motion = Motion::of(a.0, b.0, &times);
    // What is found is looked at again where it meets, so that it may be far off.
    motion.reach = motion.margin + motion.way;
    if is_ball_pair(a.0.form, b.0.form) {
        match collide_ball((a.0.form, &a.0.pose), (b.0.form, &b.0.pose), &motion.approach()) {
            Ok(point) => {
                place_one(points, a.0, b.0, &point, &motion);
                return grow_younger(points);
            }
            Err(gap) if motion.misses(gap) => return points.clear(),
            Err(_) => {}
        }
    }
    motion.find(a, b, scratch);
    if scratch.found.is_empty() {
        return points.clear();
    }
    place(points, a.0, b.0, scratch, &motion);
    grow_younger(points);
}

/// A second look at points is no second step of theirs.
fn grow_younger(points: &mut [ManifoldPoint]) {
    points.iter_mut().for_each(|p| p.age = p.age.saturating_sub(1));
}

/// Is a point with these anchors the one that was known, or another? A rolling body finds its point again where it was on the
/// ground, a sliding one where it was on itself.
fn continues(
    old: &ManifoldPoint,
    anchors: [DVec3; 2],
    normal: DVec3,
    sure: f64,
    within: impl Fn() -> f64,
) -> bool {
    let far = apart_squared(old, anchors);
    old.normal.dot(normal) > 0.7 && (far < sure * sure || far < within() * within())
}

fn apart_squared(old: &ManifoldPoint, anchors: [DVec3; 2]) -> f64 {
    let (da, db) = (anchors[0] - old.anchor_a, anchors[1] - old.anchor_b);
    da.length_squared().min(db.length_squared())
}

/// Turns what was found into manifold points, each with the name of the old point it continues, in the place of the old
/// ones. Returns the least separation.
pub(super) fn place(
    points: &mut Vec<ManifoldPoint>,
    a: &Mover,
    b: &Mover,
    scratch: &mut PairScratch,
    motion: &Motion,
) -> f64 {
    let PairScratch { found, points: new, .. } = scratch;
    let (from_a, from_b) = (a.pose.position - a.center, a.pose.position - b.center);
    let turns = [&a.turn, &b.turn];
    let one_normal = || found.iter().all(|p| p.normal == found[0].normal);
    let carried = a.faceted && b.faceted && found.len() <= MOST && one_normal();
    let mut nearest = f64::INFINITY;
    new.clear();
    for point in found.iter() {
        let (arm_a, mut arm_b) = (from_a + point.offset, from_b + point.offset);
        let swept = point.separation > motion.reach;
        if swept {
            let approach = -point.normal.dot(motion.relative);
            arm_b -= motion.relative * (point.separation / approach).min(1.0);
        }
        if motion.out_of_reach(a, b, point, [arm_a, arm_b]) {
            continue;
        }
        nearest = nearest.min(point.separation);
        let half = if swept { 0.0 } else { 0.5 * point.separation };
        new.push(new_point(point, turns, [arm_a, arm_b], half, carried && !swept));
    }
    let size = a.size.min(b.size).min(1e3);
    adopt(points, new, 0.5 * size + 2.0 * motion.relative.length());
    points.clear();
    points.extend_from_slice(new);
    nearest
}

/// A point that is not known yet, in the middle between surfaces that are `half` away from it.
#[inline]
pub(super) fn new_point(
    found: &ContactPoint,
    [turn_a, turn_b]: [&DMat3; 2],
    [arm_a, arm_b]: [DVec3; 2],
    half: f64,
    carried: bool,
) -> ManifoldPoint {
    let (back_a, back_b) = (turn_a.transpose(), turn_b.transpose());
    ManifoldPoint {
        key: u32::MAX,
        normal: found.normal,
        separation: found.separation,
        arm_a,
        arm_b,
        tangent: DVec3::ZERO,
        anchor_a: back_a * (arm_a - found.normal * half),
        anchor_b: back_b * (arm_b + found.normal * half),
        normal_a: if carried { back_a * found.normal } else { DVec3::ZERO },
        normal_b: if carried { back_b * found.normal } else { DVec3::ZERO },
        seen: found.separation,
        carried,
        turns: found.turns,
        rides: found.rides,
        answered: false,
        load: 0.0,
        resting_fraction: 1.0,
        impacting: 0.0,
        age: 0,
    }
}

/// New points take over key, tangent and memory of the nearest old ones; the rest get free keys.
fn adopt(old: &[ManifoldPoint], points: &mut [ManifoldPoint], within: f64) {
    let mut taken = [false; 64];
    for point in points.iter_mut() {
        let mut best = (within * within, None);
        for (i, before) in old.iter().enumerate().take(64) {
            let distance = apart_squared(before, [point.anchor_a, point.anchor_b]);
            if !taken[i] && distance < best.0 && before.normal.dot(point.normal) > 0.7 {
                best = (distance, Some(i));
            }
        }
        if let Some(i) = best.1 {
            taken[i] = true;
            let before = &old[i];
            point.key = before.key;
            point.tangent = before.tangent;
            point.load = before.load;
            point.resting_fraction = before.resting_fraction;
            point.age = before.age.saturating_add(1);
        }
    }
    for i in 0..points.len() {
        if points[i].key == u32::MAX {
            points[i].key = (0..).find(|k| points.iter().all(|p| p.key != *k)).unwrap_or(0);
        }
    }
}
