//! Geometric stiffness: how constraint forces of the last step resist turning the bodies they act on
//! (000 §3; Tournier et al. 2015, Andrews et al. 2017).
//!
//! Summed per body, then its negative part is cut: what would push away from equilibrium (a strut under pressure) must
//! not take inertia away, or the mass block loses its definiteness.

use crate::constraint::{BodyView, Stiffness};
use crate::schedule::Step;
use crate::state::Bodies;
use glam::{DMat3, DVec3};

/// Sums what the constraints wrote.
pub fn sum_stiffness(step: &mut Step<'_>) {
    let work = &mut *step.work;
    let Bodies { stiffness, stiffness_damping, view, .. } = &mut work.bodies;
    stiffness.clear();
    stiffness_damping.clear();
    if work.rows.stiffness.is_empty() || step.settings.tuning.geometric_stiffness <= 0.0 {
        return;
    }
    stiffness.resize(view.len(), [0.0; 36]);
    for (slot, _, s) in &work.rows.stiffness {
        add(&mut stiffness[*slot as usize], s);
    }
    for (k, _) in stiffness.iter_mut().zip(view.iter()).filter(|(_, v)| v.is_dynamic()) {
        cut_negative(k);
    }
    if step.settings.tuning.stiffness_damping > 0.0 {
        let unresolved: Vec<f64> =
            stiffness.iter().zip(view.iter()).map(|(k, v)| unresolved(k, v, step.dt)).collect();
        stiffness_damping.resize(view.len(), ([0.0; 9], [0.0; 3]));
        let mut entries = work.rows.stiffness.iter().peekable();
        while let Some((a, b, of_a)) = entries.next() {
            // A joint writes its two bodies one after the other; what has no partner is not damped.
            let Some((_, _, of_b)) = entries.next_if(|e| a != b && e.0 == *b && e.1 == *a) else { continue };
            let (a, b) = (*a as usize, *b as usize);
            let share = unresolved[a].min(unresolved[b]);
            add_damping(stiffness_damping, view, [a, b], [of_a, of_b], share);
        }
    }
}

/// How much of a body's turning the step cannot resolve: near one where hω is large, (hω)² where it is small, zero for bodies
/// that forces do not turn.
pub fn unresolved(k: &[f64; 36], view: &BodyView, dt: f64) -> f64 {
    if !view.is_dynamic() || !view.rotates() {
        return 0.0;
    }
    // The trace does not change with the axes.
    let inertia = view.inertia.x_axis.x + view.inertia.y_axis.y + view.inertia.z_axis.z;
    let stiffness = dt * dt * (k[21] + k[28] + k[35]);
    stiffness / (inertia + stiffness)
}

/// Damps the turning of two joined bodies against each other, never their common swing: the lesser of the two bodies'
/// stiffnesses, so that a light link does not shake a heavy load, and only as far as neither's turning is resolved: the
/// swing of a load on its hook is left alone.
fn add_damping(
    damping: &mut [([f64; 9], [f64; 3])],
    view: &[BodyView],
    [a, b]: [usize; 2],
    [of_a, of_b]: [&Stiffness; 2],
    share: f64,
) {
    if share <= 0.0 {
        return;
    }
    let trace = |k: &DMat3| k.x_axis.x + k.y_axis.y + k.z_axis.z;
    let less = if trace(&of_a.angular) < trace(&of_b.angular) { of_a } else { of_b };
    if trace(&less.angular) <= 0.0 {
        return;
    }
    let mut k = [0.0; 36];
    add(&mut k, &Stiffness { angular: less.angular, ..Stiffness::default() });
    cut_negative(&mut k);
    for (slot, other) in [(a, b), (b, a)] {
        let w = view[other].angular_velocity;
        let (sum, momentum) = &mut damping[slot];
        for i in 0..3 {
            for j in 0..3 {
                let kij = share * k[6 * (3 + i) + 3 + j];
                sum[3 * i + j] += kij;
                momentum[i] += kij * w[j];
            }
        }
    }
}

pub(super) fn add(sum: &mut [f64; 36], s: &Stiffness) {
    for i in 0..3 {
        for j in 0..3 {
            sum[6 * i + j] += s.linear.col(j)[i];
            sum[6 * (3 + i) + j] += s.coupling.col(j)[i];
            sum[6 * i + 3 + j] += s.coupling.col(i)[j];
            sum[6 * (3 + i) + 3 + j] += s.angular.col(j)[i];
        }
    }
}

/// Replaces a symmetric matrix by its positive part.
pub(super) fn cut_negative(k: &mut [f64; 36]) {
    // Forces at arms that turn with their bodies leave everything but the rotation's own block zero.
    let only_turning = (0..36).all(|i| k[i] == 0.0 || (i / 6 >= 3 && i % 6 >= 3));
    if !only_turning {
        positive_part(k);
        return;
    }
    let turning = [k[21], k[28], k[35], k[22], k[23], k[29]];
    if let Some(turning) = positive_part_3(turning) {
        for (at, x) in [(21, 0), (28, 1), (35, 2), (22, 3), (27, 3), (23, 4), (33, 4), (29, 5), (34, 5)] {
            k[at] = turning[x];
        }
    }
}

/// Off-diagonal numbers below this share of the largest are zero: a rotation would change eigenvalues by less than round-off.
const ROUND_OFF: f64 = 1e-14;

/// The positive part of a symmetric matrix of three rows, or nothing if that is the matrix itself. Most bodies are asked for it in every
/// step, so it is written out: diagonal first, then 01, 02, 12. By cyclic Jacobi rotations.
fn positive_part_3(k: [f64; 6]) -> Option<[f64; 6]> {
    let [mut d0, mut d1, mut d2, mut k01, mut k02, mut k12] = k;
    let zero = ROUND_OFF * k.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let [mut x, mut y, mut z] = [DVec3::X, DVec3::Y, DVec3::Z];
    // Sweeps converge quadratically; twelve are far more than three rows ever need.
    for _ in 0..12 {
        if k01.abs().max(k02.abs()).max(k12.abs()) <= zero {
            break;
        }
        rotate_3(&mut [&mut d0, &mut d1, &mut k01, &mut k02, &mut k12], [&mut x, &mut y], zero);
        rotate_3(&mut [&mut d0, &mut d2, &mut k02, &mut k01, &mut k12], [&mut x, &mut z], zero);
        rotate_3(&mut [&mut d1, &mut d2, &mut k12, &mut k01, &mut k02], [&mut y, &mut z], zero);
    }
    if d0 >= 0.0 && d1 >= 0.0 && d2 >= 0.0 {
        return None;
    }
    let mut sum = [0.0; 6];
    for (d, e) in [(d0, x), (d1, y), (d2, z)].into_iter().filter(|(d, _)| *d > 0.0) {
        let products = [e.x * e.x, e.y * e.y, e.z * e.z, e.x * e.y, e.x * e.z, e.y * e.z];
        sum.iter_mut().zip(products).for_each(|(s, p)| *s += d * p);
    }
    Some(sum)
}

/// One Jacobi rotation of rows p and q: their diagonal numbers, the one between them, those to the third row; and their vectors.
#[inline(always)]
fn rotate_3([dp, dq, pq, pr, qr]: &mut [&mut f64; 5], [vp, vq]: [&mut DVec3; 2], zero: f64) {
    if pq.abs() <= zero {
        return;
    }
    let theta = (**dq - **dp) / (2.0 * **pq);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    **dp -= t * **pq;
    **dq += t * **pq;
    **pq = 0.0;
    (**pr, **qr) = (c * **pr - s * **qr, s * **pr + c * **qr);
    (*vp, *vq) = (*vp * c - *vq * s, *vp * s + *vq * c);
}

/// The positive part of a full block, by cyclic Jacobi rotations.
fn positive_part(k: &mut [f64; 36]) {
    let n = 6;
    let mut vectors = [0.0; 36];
    for i in 0..n {
        vectors[(n + 1) * i] = 1.0;
    }
    let mut a = *k;
    let size: f64 = a.iter().map(|x| x.abs()).fold(0.0, f64::max);
    // Sweeps converge quadratically; twelve are far more than six rows ever need.
    for _ in 0..12 {
        let mut largest = 0.0f64;
        for p in 0..n - 1 {
            for q in p + 1..n {
                largest = largest.max(a[n * p + q].abs());
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
        if largest <= 1e-13 * size {
            break;
        }
    }
    if (0..n).all(|i| a[(n + 1) * i] >= 0.0) {
        return;
    }
    *k = [0.0; 36];
    for e in (0..n).filter(|&e| a[(n + 1) * e] > 0.0) {
        for i in 0..n {
            for j in 0..n {
                k[n * i + j] += a[(n + 1) * e] * (vectors[n * i + e] * vectors[n * j + e]);
            }
        }
    }
}

/// One Jacobi rotation that brings a[p][q] to zero.
fn rotate(a: &mut [f64; 36], vectors: &mut [f64; 36], n: usize, p: usize, q: usize) {
    let apq = a[n * p + q];
    if apq == 0.0 {
        return;
    }
    let theta = (a[(n + 1) * q] - a[(n + 1) * p]) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for i in 0..n {
        let (x, y) = (a[n * i + p], a[n * i + q]);
        (a[n * i + p], a[n * i + q]) = (c * x - s * y, s * x + c * y);
    }
    for i in 0..n {
        let (x, y) = (a[n * p + i], a[n * q + i]);
        (a[n * p + i], a[n * q + i]) = (c * x - s * y, s * x + c * y);
        let (x, y) = (vectors[n * i + p], vectors[n * i + q]);
        (vectors[n * i + p], vectors[n * i + q]) = (c * x - s * y, s * x + c * y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_rod_resists_and_a_standing_one_does_not() {
        // A force of 10 N along +z at 0.5 m above the centre holds the rod upright with 5 N·m/rad; below it topples it.
        let up = Stiffness::of_force(DVec3::Z * 0.5, DVec3::Z * 10.0);
        let down = Stiffness::of_force(DVec3::Z * -0.5, DVec3::Z * 10.0);
        for (stiffness, expected) in [(up, 5.0), (down, 0.0)] {
            let mut k = [0.0; 36];
            add(&mut k, &stiffness);
            cut_negative(&mut k);
            assert_eq!((k[21], k[28], k[35]), (expected, expected, 0.0));
        }
    }

    #[test]
    fn three_rows_written_out_agree_with_six() {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for round in 0..500 {
            let [r, f] = [0; 2].map(|_| DVec3::new(random(), random(), random()));
            // Every other force nearly along its arm, where two eigenvalues meet and the third is nearly zero.
            let f = if round % 2 == 0 { 1e4 * f } else { 1e4 * r + 1e-3 * f };
            let mut k = [0.0; 36];
            add(&mut k, &Stiffness::of_force(r, f));
            let mut full = k;
            positive_part(&mut full);
            cut_negative(&mut k);
            let size = full.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            // Round-off of a few sweeps.
            assert!(k.iter().zip(&full).all(|(a, b)| (a - b).abs() <= 1e-12 * size), "{k:?} {full:?}");
        }
    }

    #[test]
    fn the_positive_part_of_a_full_block() {
        let mut k = [0.0; 36];
        let m = DMat3::from_cols_array(&[1.0, 2.0, 0.5, 2.0, -3.0, 0.1, 0.5, 0.1, 2.0]);
        let s = Stiffness { linear: m, coupling: DMat3::from_cols_array(&[0.3; 9]), angular: -m };
        add(&mut k, &s);
        let full = k;
        cut_negative(&mut k);
        let mut negative: [f64; 36] = std::array::from_fn(|i| k[i] - full[i]);
        let before = negative;
        cut_negative(&mut negative);
        for i in 0..36 {
            // K₊ − K is itself positive, so cutting it changes nothing: 1e-12 is round-off of six sweeps.
            assert!((negative[i] - before[i]).abs() < 1e-12, "{i}");
        }
    }
}
