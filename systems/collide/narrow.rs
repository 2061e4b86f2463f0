//! The narrow phase over all near pairs, in parallel, and the matching of new points with old ones.

use crate::collision::{ColliderRecord, Collision, Pair};
use crate::components::{BodyKind, ManifoldPoint, Surface};
use crate::constraint::BodyView;
use crate::geometry::{ContactPoint, NarrowScratch, Placed, collide, first_touch};
use crate::schedule::Step;
use crate::settings::Settings;
use crate::work::Bodies;
use glam::DVec3;
use rayon::prelude::*;

/// Pairs per task: fixed, so that the work is cut the same way for any number of threads.
pub(super) const CHUNK: usize = 64;

/// Finds the points of every near pair that may touch in this step.
pub fn find_points(step: &mut Step<'_>) {
    let (bodies, settings, dt) = (&step.work.bodies, step.settings, step.dt);
    let Collision { pairs, colliders, scratch, jointed, filter, .. } = &mut step.work.collision;
    let (colliders, jointed, filter) = (&*colliders, &*jointed, &*filter);
    scratch.resize_with(pairs.len().div_ceil(CHUNK), Default::default);
    pairs.par_chunks_mut(CHUNK).zip(scratch.par_iter_mut()).for_each(|(pairs, (scratch, found))| {
        for pair in pairs {
            let (a, b) = (&colliders[pair.ids.0 as usize], &colliders[pair.ids.1 as usize]);
            std::mem::swap(&mut pair.old, &mut pair.points);
            pair.asleep = pair.entity.is_some() && !bodies.is_awake(a.slot) && !bodies.is_awake(b.slot);
            if pair.asleep {
                std::mem::swap(&mut pair.old, &mut pair.points);
                continue;
            }
            pair.points.clear();
            (pair.surface, pair.nearest) = (None, f64::INFINITY);
            let tied = || jointed.binary_search(&(a.slot.min(b.slot), a.slot.max(b.slot))).is_ok();
            let refused = || filter.as_ref().is_some_and(|f| !f(a.entity, b.entity));
            if !may_meet(a, b, bodies) || tied() || refused() {
                continue;
            }
            let motion = Motion::of(a, b, bodies, settings, dt);
            motion.find(a, b, scratch, found);
            place(pair, a, b, bodies, found, &motion);
            if !pair.points.is_empty() {
                pair.surface = Some(meet(a, b, bodies, settings));
            }
        }
    });
}

pub(super) fn may_meet(a: &ColliderRecord, b: &ColliderRecord, bodies: &Bodies) -> bool {
    let moves = |r: &ColliderRecord| bodies.view[r.slot as usize].kind == BodyKind::Dynamic;
    let (f, g) = (a.filter, b.filter);
    // The tree's boxes are fat by an amount that depends on the past; what counts is where things can be now.
    let near = || matches!((&a.bounds, &b.bounds), (Some(x), Some(y)) if x.meets(y));
    a.slot != b.slot
        && near()
        && (moves(a) || moves(b) || a.sensor || b.sensor)
        && !bodies.quarantined[a.slot as usize]
        && !bodies.quarantined[b.slot as usize]
        && f.groups & g.mask != 0
        && g.groups & f.mask != 0
}

/// How two materials meet.
pub(super) fn meet(a: &ColliderRecord, b: &ColliderRecord, bodies: &Bodies, settings: &Settings) -> Surface {
    let (m, n) = (&a.material, &b.material);
    let mass = |r: &ColliderRecord| match bodies.view[r.slot as usize].kind {
        BodyKind::Dynamic => bodies.view[r.slot as usize].mass,
        _ => f64::INFINITY,
    };
    let mass = mass(a).min(mass(b)).min(1e12);
    Surface {
        friction: (m.friction.max(0.0) * n.friction.max(0.0)).sqrt(),
        restitution: m.restitution.max(n.restitution).clamp(0.0, 1.0),
        compliance: settings.contact_compliance / mass,
        friction_compliance: settings.friction_compliance / mass,
        velocity: DVec3::ZERO,
        torsion_radius: m.torsion_radius.max(n.torsion_radius).max(0.0),
        rolling_radius: m.rolling_radius.max(n.rolling_radius).max(0.0),
        enabled: true,
    }
}

/// How two colliders may approach in this step.
struct Motion {
    /// Motion of b relative to a in the step (m), without turning.
    relative: DVec3,
    /// Surfaces are looked at within this distance whatever they do (m).
    margin: f64,
    /// Distance within which points are looked for (m).
    reach: f64,
    /// Longest way the surfaces may approach (m).
    way: f64,
    /// What the step's own acceleration may add (m).
    fall: f64,
    /// The step (s).
    dt: f64,
}

impl Motion {
    fn of(a: &ColliderRecord, b: &ColliderRecord, bodies: &Bodies, settings: &Settings, dt: f64) -> Motion {
        let (va, vb) = (&bodies.view[a.slot as usize], &bodies.view[b.slot as usize]);
        let relative = (vb.linear_velocity - va.linear_velocity) * dt;
        let fall = settings.gravity.length() * dt * dt;
        // Two bodies that move together may part in this very step, when something stops one of them: so each counts
        // with its own speed, not only with the relative one.
        let way = a.ways[0] + b.ways[0] + a.ways[1] + b.ways[1] + fall;
        let size = |v: &BodyView, r: &ColliderRecord| match v.kind {
            BodyKind::Dynamic => (0.5 * r.thickness).max(0.1 * r.reach),
            _ => f64::INFINITY,
        };
        let own = size(va, a).min(size(vb, b));
        let thin = a.size.min(b.size);
        let margin = settings.contact_margin.min(0.05 * a.reach.min(b.reach)).min(own).min(thin.max(1e-6));
        // Beyond its own size a body's nearest point says little about what it will hit: then it is swept.
        Motion { relative, margin, reach: margin + way.min(own), way, fall, dt }
    }

    fn find(
        &self,
        a: &ColliderRecord,
        b: &ColliderRecord,
        scratch: &mut NarrowScratch,
        found: &mut Vec<ContactPoint>,
    ) {
        let placed = |r: &'_ ColliderRecord| (r.position, r.rotation);
        let ((pa, qa), (pb, qb)) = (placed(a), placed(b));
        let a = Placed { shape: &a.shape, position: pa, rotation: qa };
        let mut b = Placed { shape: &b.shape, position: pb, rotation: qb };
        collide(&a, &b, self.reach, scratch, found);
        if !found.is_empty() || self.way <= self.reach {
            return;
        }
        let Some(share) = first_touch(&a, &b, self.relative) else { return };
        // The points at the moment of touching, seen from where the bodies are now.
        let moved = self.relative * share;
        b.position += moved;
        collide(&a, &b, self.margin, scratch, found);
        for point in found {
            point.separation -= moved.dot(point.normal);
        }
    }
}

/// Turns what was found into manifold points, each with the name of the old point it continues.
fn place(
    pair: &mut Pair,
    a: &ColliderRecord,
    b: &ColliderRecord,
    bodies: &Bodies,
    found: &[ContactPoint],
    motion: &Motion,
) {
    let (va, vb) = (&bodies.view[a.slot as usize], &bodies.view[b.slot as usize]);
    let (from_a, from_b) = (a.position - va.position, a.position - vb.position);
    for point in found {
        let (arm_a, mut arm_b) = (from_a + point.offset, from_b + point.offset);
        let approach = -point.normal.dot(motion.relative);
        if point.separation > motion.reach {
            arm_b -= motion.relative * (point.separation / approach).min(1.0);
        }
        let speed = |v: &BodyView, arm: DVec3| {
            motion.dt * point.normal.dot(v.linear_velocity + v.angular_velocity.cross(arm))
        };
        let (forward, back) = (speed(va, arm_a), -speed(vb, arm_b));
        let closing = (forward + back).max(forward).max(back);
        if point.separation > motion.margin + closing.max(0.0) + motion.fall {
            continue;
        }
        pair.points.push(ManifoldPoint {
            key: u32::MAX,
            normal: point.normal,
            separation: point.separation,
            arm_a,
            arm_b,
            tangent: DVec3::ZERO,
            anchor_a: va.rotation.inverse() * arm_a,
            anchor_b: vb.rotation.inverse() * arm_b,
            approach: 0.0,
            load: 0.0,
            age: 0,
        });
    }
    pair.nearest = pair.points.iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
    let size = a.size.min(b.size).min(1e3);
    adopt(pair, 0.5 * size + 2.0 * motion.relative.length());
}

/// New points take over key, tangent and memory of the nearest old ones; the rest get free keys.
fn adopt(pair: &mut Pair, within: f64) {
    let Pair { old, points, .. } = pair;
    let mut taken = [false; 64];
    for point in points.iter_mut() {
        let mut best = (within * within, None);
        for (i, before) in old.iter().enumerate().take(64) {
            // A rolling body finds its point again where it was on the ground, a sliding one where it was on itself.
            let (da, db) = (point.anchor_a - before.anchor_a, point.anchor_b - before.anchor_b);
            let distance = da.length_squared().min(db.length_squared());
            if !taken[i] && distance < best.0 && before.normal.dot(point.normal) > 0.7 {
                best = (distance, Some(i));
            }
        }
        if let Some(i) = best.1 {
            taken[i] = true;
            let before = &old[i];
            point.key = before.key;
            point.tangent = before.tangent;
            point.approach = before.approach;
            point.load = before.load;
            point.age = before.age.saturating_add(1);
        }
    }
    for i in 0..points.len() {
        if points[i].key == u32::MAX {
            points[i].key = (0..).find(|k| points.iter().all(|p| p.key != *k)).unwrap_or(0);
        }
    }
}
