//! Few points that say as much as many: at most four for each direction of the normal.
//!
//! Redundant points cost the solver rows and make impulses ambiguous (the number of near-null directions, not
//! the size, is what makes contact problems hard), so what adds neither support nor depth is left out.

use super::ContactPoint;
use glam::DVec3;

/// Normals closer than this (cosine of 5°) share their four points.
const SAME_DIRECTION: f64 = 0.9962;
/// A point this share of the patch's size outside the others adds support.
const SUPPORT: f64 = 0.02;
/// A point deeper than the others by this share of the patch's size is kept for its depth.
const DEPTH: f64 = 1e-4;
/// Of two places that support about the same, the one that touches first: a point counts as nearer to the middle by so many
/// times what it is further apart than the deepest, of which no more counts than a share of the patch's size. Without it the
/// rim of a drum on a mesh loses its end to a point of the next triangle that lies a hair further out and does not touch yet.
const LATE: (f64, f64) = (5.0, 0.02);
/// Points closer than this share of the patch's size are one.
const SAME_PLACE: f64 = 1e-3;

/// Reduces `points` in place, cluster by cluster, in the order of the first point of each cluster.
pub(super) fn reduce(points: &mut Vec<ContactPoint>, kept: &mut Vec<ContactPoint>) {
    if points.len() < 2 {
        return;
    }
    kept.clear();
    let mut start = 0;
    while start < points.len() {
        let normal = points[start].normal;
        let mut end = start + 1;
        for i in start + 1..points.len() {
            if points[i].normal.dot(normal) > SAME_DIRECTION {
                points.swap(end, i);
                end += 1;
            }
        }
        reduce_cluster(&points[start..end], normal, kept);
        start = end;
    }
    std::mem::swap(points, kept);
}

fn reduce_cluster(points: &[ContactPoint], normal: DVec3, kept: &mut Vec<ContactPoint>) {
    if points.len() == 1 {
        kept.push(points[0]);
        return;
    }
    let (u, w) = normal.any_orthonormal_pair();
    let flat = |p: &ContactPoint| (u.dot(p.offset), w.dot(p.offset));
    let size = patch_size(points);
    let deepest = points.iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
    let depth = DEPTH * size;
    // The first: among the deepest, the one furthest along a fixed direction, so that equal depths do not make it wander.
    let Some(first) = best(points, |p| {
        if p.separation <= deepest + depth { flat(p).0 + 1e-3 * flat(p).1 } else { f64::NEG_INFINITY }
    }) else {
        return;
    };
    let mut chosen = [first; 4];
    let mut count = 1;
    let distance = |p: &ContactPoint| (p.offset - first.offset).reject_from(normal).length();
    let late = |p: &ContactPoint| LATE.0 * (p.separation - deepest).min(LATE.1 * size);
    if let Some(second) = best(points, |p| distance(p) - late(p))
        && distance(&second) > SAME_PLACE * size
    {
        chosen[1] = second;
        count = 2;
        pick_sides(points, &flat, &late, &mut chosen, &mut count, size);
    }
    kept.extend_from_slice(&chosen[..count]);
}

/// The third and fourth point: furthest to the left and to the right of the line through the first two, or deep.
fn pick_sides(
    points: &[ContactPoint],
    flat: &dyn Fn(&ContactPoint) -> (f64, f64),
    late: &dyn Fn(&ContactPoint) -> f64,
    chosen: &mut [ContactPoint; 4],
    count: &mut usize,
    size: f64,
) {
    let (a, b) = (flat(&chosen[0]), flat(&chosen[1]));
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = (dx * dx + dy * dy).sqrt();
    let side = |p: &ContactPoint| {
        let q = flat(p);
        (dx * (q.1 - a.1) - dy * (q.0 - a.0)) / length
    };
    for sign in [1.0, -1.0] {
        let Some(p) = best(points, |p| sign * side(p) - late(p)) else { continue };
        if sign * side(&p) > SUPPORT * size {
            chosen[*count] = p;
            *count += 1;
        }
    }
    // A point in the middle counts only if it is deeper than the chosen ones say.
    let Some(deep) = best(points, |p| -p.separation) else { return };
    let shallow = chosen[..*count].iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
    if deep.separation < shallow - DEPTH * size {
        let slot = if *count < 4 { *count } else { 3 };
        chosen[slot] = deep;
        *count = slot + 1;
    }
}

fn patch_size(points: &[ContactPoint]) -> f64 {
    let (mut low, mut high) = (points[0].offset, points[0].offset);
    for p in points {
        low = low.min(p.offset);
        high = high.max(p.offset);
    }
    (high - low).length()
}

/// The point with the greatest score, the first of equals.
fn best(points: &[ContactPoint], score: impl Fn(&ContactPoint) -> f64) -> Option<ContactPoint> {
    let mut found = None;
    let mut most = f64::NEG_INFINITY;
    for p in points {
        let s = score(p);
        if s > most {
            most = s;
            found = Some(*p);
        }
    }
    found
}
