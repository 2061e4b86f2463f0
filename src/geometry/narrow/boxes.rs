//! Box against box: separating axes in closed form, and one face clipped by the other in that face's own plane.
//!
//! What the general way does with features and shadows, written out for the pair that piles are made of. Symbols: R the
//! rotation of b in a, t its place there; c = |R|.

use super::{
    Approach, ContactPoint, NarrowScratch, PARALLEL, Rides, Turns, clip, extent, feature, push, snap,
};
use glam::{DMat3, DVec2, DVec3};
use parry3d_f64::math::Pose;

/// The axis of least overlap (or widest gap).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Axis {
    /// A face of a: which axis, and on which side b lies.
    FaceOfA(usize, f64),
    /// A face of b: which axis, and on which side of it a does not lie.
    FaceOfB(usize, f64),
    /// The common perpendicular of two edges, unit, from a to b.
    Edges(DVec3),
}

/// The axis of two boxes with half edges `ea` and `eb`; if they are further apart than `reach`, how far at least.
pub(super) fn separating_axis(
    ea: DVec3,
    eb: DVec3,
    r: &DMat3,
    t: DVec3,
    approach: &Approach,
) -> Result<Axis, f64> {
    let reach = approach.reach;
    let c = DMat3::from_cols(r.x_axis.abs(), r.y_axis.abs(), r.z_axis.abs());
    let size = ea.min_element().min(eb.min_element());
    let of_a = t.abs() - ea - c * eb;
    if of_a.max_element() > reach {
        return Err(of_a.max_element());
    }
    let t_b = DVec3::new(t.dot(r.x_axis), t.dot(r.y_axis), t.dot(r.z_axis));
    let span = DVec3::new(ea.dot(c.x_axis), ea.dot(c.y_axis), ea.dot(c.z_axis));
    let of_b = t_b.abs() - eb - span;
    if of_b.max_element() > reach {
        return Err(of_b.max_element());
    }
    let i = first_largest(of_a);
    let mut best = (of_a[i], Axis::FaceOfA(i, side(t[i])));
    // A face of b must be clearly better than one of a, or the reference would flip from step to step.
    for (k, gap) in of_b.to_array().into_iter().enumerate() {
        if gap > best.0 + 1e-6 * size {
            best = (gap, Axis::FaceOfB(k, side(t_b[k])));
        }
    }
    let clearly = 1e-3 * size;
    // As arrays, which may be indexed without a choice between x, y and z.
    let (ea, eb, t) = (ea.to_array(), eb.to_array(), t.to_array());
    let (columns, c) = (r.to_cols_array_2d(), c.to_cols_array_2d());
    const NEXT: [usize; 3] = [1, 2, 0];
    const LAST: [usize; 3] = [2, 0, 1];
    for i in 0..3 {
        let (u, w) = (NEXT[i], LAST[i]);
        for j in 0..3 {
            let column = &columns[j];
            let square = column[u] * column[u] + column[w] * column[w];
            if square < 1e-6 {
                continue; // parallel edges: a face normal says the same
            }
            // e_i × column_j, of length √square; the spans of a box along it need no axis i (or j) of its own.
            let along = t[w] * column[u] - t[u] * column[w];
            let (k, l) = (NEXT[j], LAST[j]);
            let spans = ea[u] * c[j][w] + ea[w] * c[j][u] + eb[k] * c[l][i] + eb[l] * c[k][i];
            let overlap = along.abs() - spans;
            // Along a unit axis it is deeper still: most pairs of edges need no root.
            if overlap < 0.0 && overlap <= best.0 + clearly {
                continue;
            }
            let length = square.sqrt();
            let gap = overlap / length;
            if gap > reach {
                return Err(gap);
            }
            if gap > best.0 + clearly {
                let mut axis = [0.0; 3];
                (axis[u], axis[w]) = (-column[w], column[u]);
                best = (gap, Axis::Edges(DVec3::from(axis) * (side(along) / length)));
            }
        }
    }
    if approach.closes(best.0, best.1.normal(r)) {
        return Ok(longest_apart(best, (of_a, of_b), (t.into(), t_b), r, approach));
    }
    Ok(best.1)
}

/// The axis along which boxes in motion are apart longest: the one that is widest now, or the normal of another face.
#[inline(never)]
fn longest_apart(
    widest: (f64, Axis),
    (of_a, of_b): (DVec3, DVec3),
    (t, t_b): (DVec3, DVec3),
    r: &DMat3,
    approach: &Approach,
) -> Axis {
    let first = widest.1.normal(r);
    let mut best = (approach.lasts(widest.0, first), widest.1);
    let of_a = (0..3).map(|i| (of_a[i], Axis::FaceOfA(i, side(t[i]))));
    let of_b = (0..3).map(|k| (of_b[k], Axis::FaceOfB(k, side(t_b[k]))));
    for (gap, axis) in of_a.chain(of_b) {
        let n = axis.normal(r);
        let lasts = approach.lasts(gap, n);
        // A face that looks the same way says the same.
        if n.dot(first) < 0.99 && lasts > best.0 {
            best = (lasts, axis);
        }
    }
    best.1
}

impl Axis {
    /// Unit, from a to b.
    fn normal(self, r: &DMat3) -> DVec3 {
        match self {
            Axis::FaceOfA(i, sign) => DVec3::AXES[i] * sign,
            Axis::FaceOfB(i, sign) => r.col(i) * sign,
            Axis::Edges(n) => n,
        }
    }
}

fn side(x: f64) -> f64 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

fn first_largest(x: DVec3) -> usize {
    if x.x >= x.y && x.x >= x.z { 0 } else { 1 + usize::from(x.z > x.y) }
}

/// The points of two boxes, in the frame of `a`. Returns how far apart they are at least if there are none (−∞ if that is not
/// known).
pub(super) fn touch(
    ea: DVec3,
    eb: DVec3,
    b_in_a: &Pose,
    approach: &Approach,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) -> f64 {
    let reach = approach.reach;
    let t = b_in_a.translation;
    let r = DMat3::from_quat(b_in_a.rotation);
    let mut axis = match separating_axis(ea, eb, &r, t, approach) {
        Ok(axis) => axis,
        Err(gap) => return gap,
    };
    if let Axis::FaceOfB(k, sign) = axis {
        // Of two faces that are all but parallel, a's: the reference must not change from step to step.
        let n = r.col(k) * sign;
        let i = first_largest(n.abs());
        if n[i].abs() > PARALLEL {
            axis = Axis::FaceOfA(i, side(n[i]));
        }
    }
    match axis {
        Axis::FaceOfA(axis, sign) => {
            let face = Face::of(ea, axis, sign);
            face.clip(eb, &r, t, reach, &mut |offset, separation, corner| {
                let rides = [Rides::A, Rides::B, Rides::Between][corner];
                out.push(ContactPoint { offset, normal: face.normal(), separation, rides, turns: Turns::A });
            });
        }
        Axis::FaceOfB(axis, sign) => {
            // Seen from b: a lies on the other side.
            let face = Face::of(eb, axis, -sign);
            let back = r.transpose();
            let normal = r.col(axis) * sign;
            face.clip(ea, &back, -(back * t), reach, &mut |offset, separation, corner| {
                let rides = [Rides::B, Rides::A, Rides::Between][corner];
                let offset = t + r * offset;
                out.push(ContactPoint { offset, normal, separation, rides, turns: Turns::B });
            });
        }
        Axis::Edges(normal) => lay_over(ea, eb, b_in_a, normal, reach, scratch, out),
    }
    f64::NEG_INFINITY
}

/// The facing faces laid over each other along a normal, whatever it is.
fn lay_over(
    ea: DVec3,
    eb: DVec3,
    b_in_a: &Pose,
    normal: DVec3,
    reach: f64,
    scratch: &mut NarrowScratch,
    out: &mut Vec<ContactPoint>,
) {
    let fa = feature::box_face(ea, normal);
    let fb = feature::box_face(eb, b_in_a.rotation.inverse() * -normal).moved(b_in_a);
    let (normal, turns) = snap(normal, fa.normal, fb.normal);
    let size = extent(fa.corners()).max(extent(fb.corners()));
    scratch.touches.clear();
    clip::overlap(&fa, &fb, normal, 1e-9 * size, 1e-3 * size, &mut scratch.touches);
    for touch in &scratch.touches {
        push(out, *touch, normal, turns, reach);
    }
}

/// A face of a box: a rectangle in the plane of the axes u and w.
struct Face {
    axis: usize,
    sign: f64,
    u: usize,
    w: usize,
    half: DVec2,
    height: f64,
}

impl Face {
    fn of(half: DVec3, axis: usize, sign: f64) -> Face {
        let (u, w) = ((axis + 1) % 3, (axis + 2) % 3);
        Face { axis, sign, u, w, half: DVec2::new(half[u], half[w]), height: half[axis] }
    }

    fn normal(&self) -> DVec3 {
        let mut n = DVec3::ZERO;
        n[self.axis] = self.sign;
        n
    }

    /// A place in the plane of the face.
    fn flat(&self, x: DVec3) -> DVec2 {
        DVec2::new(x[self.u], x[self.w])
    }

    fn lift(&self, p: DVec2, height: f64) -> DVec3 {
        let mut x = DVec3::ZERO;
        (x[self.u], x[self.w], x[self.axis]) = (p.x, p.y, self.sign * height);
        x
    }

    /// Calls `f` with the place (half way between the surfaces, in the frame of the face's box) and the separation of every
    /// corner of the overlap with the facing face of the other box, as far as it is within `reach`; and whose corner it is:
    /// 0 for this face's, 1 for the other's, 2 where edges cross.
    fn clip(&self, other: DVec3, r: &DMat3, t: DVec3, reach: f64, f: &mut impl FnMut(DVec3, f64, usize)) {
        // The other box's face that looks back most; of equals the first, as for single features.
        let facing = DVec3::new(r.x_axis[self.axis], r.y_axis[self.axis], r.z_axis[self.axis]);
        let k = first_largest(facing.abs());
        let (l, m) = ((k + 1) % 3, (k + 2) % 3);
        let back = -side(facing[k] * self.sign);
        let (middle, p, q) = (t + r.col(k) * (back * other[k]), r.col(l) * other[l], r.col(m) * other[m]);
        let above = |x: DVec3| self.sign * x[self.axis];
        let (c, p2, q2) = (self.flat(middle), self.flat(p), self.flat(q));
        let (zc, zp, zq) = (above(middle) - self.height, above(p), above(q));
        let mut emit = |at: DVec2, gap: f64, corner: usize| {
            if gap <= reach {
                f(self.lift(at, self.height + 0.5 * gap), gap, corner);
            }
        };
        // Nothing of it within reach.
        if zc - zp.abs() - zq.abs() > reach {
            return;
        }
        let slack = 1e-9 * (self.half.length() + p2.length() + q2.length());
        let per_det = 1.0 / p2.perp_dot(q2);
        let (h, inside) = (self.half, self.half + slack);
        // Corners of this face over the other one: place = c + α p + β q.
        let room = [1.0 + slack / other[l], 1.0 + slack / other[m]];
        for (x, y) in [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)] {
            let at = DVec2::new(x * h.x, y * h.y);
            let d = at - c;
            let (alpha, beta) = (d.perp_dot(q2) * per_det, p2.perp_dot(d) * per_det);
            if alpha.abs() <= room[0] && beta.abs() <= room[1] {
                emit(at, zc + alpha * zp + beta * zq, 0);
            }
        }
        let corners = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
            .map(|(x, y)| (c + p2 * x + q2 * y, zc + x * zp + y * zq));
        for (at, gap) in corners {
            if at.abs().cmple(inside).all() {
                emit(at, gap, 1);
            }
        }
        for i in 0..4 {
            cross(corners[i], corners[(i + 1) % 4], h, &mut |at, gap| emit(at, gap, 2));
        }
    }
}

/// Where an edge of the other face crosses the four sides of the rectangle with half edges `h`.
fn cross((p, zp): (DVec2, f64), (q, zq): (DVec2, f64), h: DVec2, emit: &mut impl FnMut(DVec2, f64)) {
    let d = q - p;
    for k in 0..2 {
        for bound in [-h[k], h[k]] {
            if (p[k] - bound) * (q[k] - bound) > 0.0 {
                continue;
            }
            // 1e-4 rad: edges closer to parallel cross at a place that rounding decides; their ends say it better.
            if d[k] * d[k] <= 1e-8 * d.length_squared() {
                continue;
            }
            let s = (bound - p[k]) / d[k];
            let along = p[1 - k] + s * d[1 - k];
            if along.abs() <= h[1 - k] {
                let at = if k == 0 { DVec2::new(bound, along) } else { DVec2::new(along, bound) };
                emit(at, zp + s * (zq - zp));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::DQuat;

    fn random(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as f64 / (1u64 << 30) as f64 - 1.0
    }

    /// Width of the gap along a direction.
    fn gap(ea: DVec3, eb: DVec3, r: &DMat3, t: DVec3, n: DVec3) -> f64 {
        let span = |e: DVec3, axes: [DVec3; 3]| (0..3).map(|i| e[i] * axes[i].dot(n).abs()).sum::<f64>();
        t.dot(n).abs() - span(ea, DVec3::AXES) - span(eb, [r.x_axis, r.y_axis, r.z_axis])
    }

    /// The axis is the best of the fifteen, and the clipped face has the points of two features laid over each other.
    #[test]
    fn boxes_touch_where_features_laid_over_each_other_do() {
        let mut seed = 9;
        let mut vector = || DVec3::new(random(&mut seed), random(&mut seed), random(&mut seed));
        let (mut touching, mut points) = (0, 0);
        let near = Approach::still(0.05);
        for i in 0..20_000 {
            let (ea, eb) = (DVec3::splat(0.5) + 0.3 * vector(), DVec3::splat(0.4) + 0.3 * vector());
            let turn = DQuat::from_scaled_axis(vector() * if i % 3 == 0 { 0.05 } else { 3.0 });
            let pose = Pose::from_parts(vector() * 1.2, turn);
            let (r, t) = (DMat3::from_quat(turn), pose.translation);
            let axes = DVec3::AXES.into_iter().chain([r.x_axis, r.y_axis, r.z_axis]);
            let edges = DVec3::AXES.iter().flat_map(|e| [r.x_axis, r.y_axis, r.z_axis].map(|f| e.cross(f)));
            let edges = edges.filter(|n| n.length() > 1e-3).map(|n| n.normalize());
            let widest = axes.chain(edges).map(|n| gap(ea, eb, &r, t, n)).fold(f64::NEG_INFINITY, f64::max);
            let axis = match separating_axis(ea, eb, &r, t, &near) {
                Ok(axis) => axis,
                Err(gap) => {
                    // No more than the widest: rounding on boxes of half a metre.
                    assert!(gap > 0.05 && gap <= widest + 1e-12, "{i}: {gap} {widest}");
                    continue;
                }
            };
            let normal = axis.normal(&r);
            // The preference for faces: a thousandth of the smallest half edge.
            assert!(gap(ea, eb, &r, t, normal) > widest - 1e-3 && t.dot(normal) >= 0.0, "{i}: {axis:?}");
            let (mut quick, mut general) = (Vec::new(), Vec::new());
            let mut scratch = NarrowScratch::default();
            touch(ea, eb, &pose, &near, &mut scratch, &mut quick);
            lay_over(ea, eb, &pose, normal, 0.05, &mut scratch, &mut general);
            assert_eq!(quick.len(), general.len(), "{i}: {quick:?} {general:?}");
            for p in &quick {
                let same = |g: &ContactPoint| {
                    // Rounding of two ways to the same place, on boxes of half a metre.
                    (g.offset - p.offset).length() < 1e-9
                        && (g.normal - p.normal).length() < 1e-12
                        && (g.separation - p.separation).abs() < 1e-10
                };
                assert!(general.iter().any(same), "{i}: {p:?} is not in {general:?}");
            }
            touching += usize::from(!quick.is_empty());
            points += quick.len();
        }
        assert!(touching > 3000 && points > 2 * touching, "{touching} {points}");
    }
}
