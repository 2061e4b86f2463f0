//! One ruler for both engines: it sees poses only.

use crate::convert::{Model, Solid};
use crate::links::{Link, Opening};
use glam::DVec3;
use rapier3d_f64::parry::query::{ContactManifold, DefaultQueryDispatcher, PersistentQueryDispatcher};
use rapier3d_f64::prelude as r;
use std::collections::BTreeSet;

/// By how much joints come open (m), the most of those that `holds` says are still there.
pub fn separation(model: &Model, poses: &[r::Pose], holds: impl Fn(&Link) -> bool) -> f64 {
    let gap = |l: &Link| {
        let [a, b] = l.bodies.map(|i| &poses[i]);
        let span = *b * l.frames.b.anchor - *a * l.frames.a.anchor;
        match l.opening {
            Opening::Point => span.length(),
            Opening::Rail => {
                let axis = a.rotation * (l.frames.a.rotation * DVec3::X);
                (span - axis * axis.dot(span)).length()
            }
            Opening::Length(length) => (span.length() - length).abs(),
            Opening::AtMost(length) => (span.length() - length).max(0.0),
        }
    };
    model.links.iter().filter(|l| holds(l)).map(gap).fold(0.0, worse)
}

/// The larger; what is not a number is the worst.
pub fn worse(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// Pairs of colliders that may meet.
pub struct Depths(Vec<(usize, usize)>);

impl Depths {
    /// Leaves out filtered pairs, pairs of one body, pairs tied by joints, and pairs that `moves` says never move.
    pub fn new(model: &Model, moves: &[bool]) -> Depths {
        let tied: BTreeSet<_> = model.tied();
        let meet = |a: &Solid, b: &Solid| {
            a.body != b.body
                && (moves[a.body] || moves[b.body])
                && a.filter.groups & b.filter.mask != 0
                && b.filter.groups & a.filter.mask != 0
                && !tied.contains(&(a.body.min(b.body), a.body.max(b.body)))
        };
        let n = model.solids.len();
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        Depths(pairs.filter(|&(i, j)| meet(&model.solids[i], &model.solids[j])).collect())
    }

    /// The deepest overlap of two colliders (m), by parry's manifolds, made anew.
    pub fn deepest(&self, model: &Model, poses: &[r::Pose]) -> f64 {
        let at: Vec<r::Pose> = model.solids.iter().map(|s| poses[s.body] * s.at).collect();
        let boxes: Vec<_> = model.solids.iter().zip(&at).map(|(s, p)| s.shape.compute_aabb(p)).collect();
        let mut deepest = 0.0;
        for &(i, j) in &self.0 {
            if !r::BoundingVolume::intersects(&boxes[i], &boxes[j]) {
                continue;
            }
            let (a, b) = (&model.solids[i], &model.solids[j]);
            deepest = worse(deepest, overlap(&at[i].inv_mul(&at[j]), a, b));
        }
        deepest
    }
}

/// The deepest point of two colliders' manifolds. (`query::contact` is simpler, and now and then tells 0.7 m for two boxes that
/// just touch.)
fn overlap(from_a_to_b: &r::Pose, a: &Solid, b: &Solid) -> f64 {
    let mut manifolds: Vec<ContactManifold<(), ()>> = Vec::new();
    let told = DefaultQueryDispatcher.contact_manifolds(
        from_a_to_b,
        &*a.shape,
        &*b.shape,
        0.0,
        &mut manifolds,
        &mut None,
    );
    match told {
        Ok(()) => manifolds.iter().flat_map(|m| &m.points).map(|p| -p.dist).fold(0.0, worse),
        Err(_) => 0.0,
    }
}
