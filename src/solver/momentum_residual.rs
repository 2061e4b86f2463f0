//! How well v and λ of a linear solve obey its equations, and when that is good enough.

use super::Label;
use super::problem::RowProblem;
use crate::linalg::kernels::with_avx2;

/// Relative imbalance of M v = p + Jᵀ λ that is round-off: a body has tens of rows, each adds ε.
pub const BALANCED: f64 = 1e-14;

/// Slack of the free rows, relative to max(1, ‖b‖), at which refinement stops: a few hundred ε.
pub const REFINED: f64 = 1e-13;

/// Refinement steps beyond the first.
pub const MAX_REFINEMENTS: u32 = 5;

/// p + Jᵀ λ − M v into `r`, and the sum of the sizes of its terms into `size`.
pub fn form(problem: &RowProblem, v: &[f64], lambda: &[f64], r: &mut [f64], size: &mut [f64]) {
    with_avx2(
        #[inline(always)]
        || form_plainly(problem, v, lambda, r, size),
    );
}

#[inline(always)]
fn form_plainly(problem: &RowProblem, v: &[f64], lambda: &[f64], r: &mut [f64], size: &mut [f64]) {
    for (body, (p, m)) in problem.momentum.iter().zip(&problem.mass).enumerate() {
        let six = 6 * body..6 * body + 6;
        begin(p, m, &v[six.clone()], &mut r[six.clone()], &mut size[six]);
    }
    for block in &problem.blocks {
        let bodies = problem.bodies_of(block);
        let width = 6 * bodies.len();
        for row in 0..block.rows as usize {
            let l = lambda[block.row as usize + row];
            let at = block.entry as usize + row * width;
            for (j, &body) in problem.jacobian[at..at + width].chunks_exact(6).zip(bodies) {
                let k = 6 * body as usize;
                add(j.try_into().expect("six numbers"), l, &mut r[k..k + 6], &mut size[k..k + 6]);
            }
        }
    }
    problem.balance_coupled(v, r, size);
}

/// p − M v of one body, and the sizes of the terms.
#[inline(always)]
pub(super) fn begin(p: &[f64; 6], mass: &[f64; 36], v: &[f64], r: &mut [f64], size: &mut [f64]) {
    let (r, size, v) = (&mut r[..6], &mut size[..6], &v[..6]);
    for i in 0..6 {
        r[i] = p[i];
        size[i] = p[i].abs();
        for j in 0..6 {
            let mv = mass[6 * i + j] * v[j];
            r[i] -= mv;
            size[i] += mv.abs();
        }
    }
}

/// r += j λ, and the sizes of the terms.
#[inline(always)]
pub(super) fn add(j: &[f64; 6], l: f64, r: &mut [f64], size: &mut [f64]) {
    let (r, size) = (&mut r[..6], &mut size[..6]);
    for c in 0..6 {
        let jl = j[c] * l;
        r[c] += jl;
        size[c] += jl.abs();
    }
}

/// w = J v + C λ + d, and what is missing to the rows, −w − D λ. Returns the largest that is missing to a free row.
pub fn slack(
    problem: &RowProblem,
    (labels, shift): (&[Label], Option<&[f64]>),
    (v, lambda): (&[f64], &[f64]),
    w: &mut [f64],
    missing: &mut [f64],
) -> f64 {
    problem.slack(v, lambda, w);
    self::missing(w, shift, lambda, missing);
    largest(missing, labels)
}

/// What is missing to the rows, −w − D λ.
pub fn missing(w: &[f64], shift: Option<&[f64]>, lambda: &[f64], out: &mut [f64]) {
    with_avx2(
        #[inline(always)]
        || match shift {
            None => out.iter_mut().zip(w).for_each(|(missing, w)| *missing = -w),
            Some(shift) => {
                let soft = shift.iter().zip(lambda);
                out.iter_mut().zip(w).zip(soft).for_each(|((to, w), (d, l))| *to = -w - d * l);
            }
        },
    );
}

/// The largest of what is missing to free rows.
pub fn largest(missing: &[f64], labels: &[Label]) -> f64 {
    with_avx2(
        #[inline(always)]
        || largest_plainly(missing, labels),
    )
}

/// Eight at once: one alone would wait for every comparison.
#[inline(always)]
fn largest_plainly(missing: &[f64], labels: &[Label]) -> f64 {
    let mut most = [0.0f64; 8];
    let one = |most: &mut f64, r: f64, label: Label| {
        let size = if label == Label::Free { r.abs() } else { 0.0 };
        *most = if size > *most { size } else { *most };
    };
    let (eights, rest) = missing.as_chunks::<8>();
    let (label_eights, label_rest) = labels.as_chunks::<8>();
    for (r, labels) in eights.iter().zip(label_eights) {
        (0..8).for_each(|k| one(&mut most[k], r[k], labels[k]));
    }
    rest.iter().zip(label_rest).for_each(|(r, label)| one(&mut most[0], *r, *label));
    most.into_iter().fold(0.0, f64::max)
}

/// Largest |r| relative to its size. A component takes the measure of its body: a zero beside large terms is
/// round-off too.
pub fn worst(r: &[f64], size: &[f64]) -> f64 {
    let mut worst = 0.0f64;
    for (r, size) in r.chunks_exact(3).zip(size.chunks_exact(3)) {
        let size = size.iter().fold(f64::MIN_POSITIVE, |m, s| m.max(*s));
        let r = r.iter().fold(0.0f64, |m, r| m.max(r.abs()));
        worst = worst.max(r / size);
    }
    worst
}

/// Watches refinement: momenta and slacks, each as a multiple of what is good enough.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    imbalance: f64,
    slack: f64,
}

impl Default for Progress {
    fn default() -> Self {
        Progress { imbalance: f64::INFINITY, slack: f64::INFINITY }
    }
}

impl Progress {
    /// Below one both are good. What is neither good nor halved is round-off; once that holds of both, another step would
    /// only stir it. Slacks may be at their limit while the momenta are not yet.
    pub fn is_over(&mut self, imbalance: f64, slack: f64) -> bool {
        let still = |now: f64, before: f64| now > 1.0 && now <= 0.5 * before;
        let goes_on = still(imbalance, self.imbalance) || still(slack, self.slack);
        *self = Progress { imbalance, slack };
        !goes_on
    }
}
