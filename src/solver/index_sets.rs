//! Free and tight rows, and who violates them (000 eq. 12, §5.3; 003 Algorithm 1).
//!
//! A free row must lie within its bounds; a row at its lower bound must have w ≥ 0, one at its upper
//! bound w ≤ 0. Rows with lo = hi are held for good and carry the label `Lower`.

use super::Label;
use super::system::PivotSystem;
use crate::linalg::kernels::with_avx2;

/// Tolerances of the sign tests, scaled to the problem at hand.
///
/// An absolute 1e-5, as in the papers, is coarse where impulses are 0.004 N s. Here a slack may be
/// wrong by τ·max(1, ‖b‖) and an impulse by as much as moves its own slack by that, and never by
/// more than τ·max(1, ‖b‖) itself, because the natural residual counts both alike.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    slack: f64,
}

impl Tolerance {
    /// τ times the yardstick of the problem.
    pub fn new(tau: f64, scale: f64) -> Self {
        Tolerance { slack: tau * scale }
    }

    /// By how much w may have the wrong sign.
    pub fn slack(self) -> f64 {
        self.slack
    }

    /// By how much λ may lie outside its bounds in a row of diagonal `a`.
    pub fn impulse(self, a: f64) -> f64 {
        if a > 1.0 { self.slack / a } else { self.slack }
    }
}

/// Is the row held (lo = hi)?
#[inline]
pub fn is_held(lo: f64, hi: f64) -> bool {
    lo >= hi
}

/// Makes labels of a possibly unfitting warm start legal: right length, no row at an infinite bound.
pub fn legalise(labels: &mut Vec<Label>, lo: &[f64], hi: &[f64]) {
    if labels.len() != lo.len() {
        labels.clear();
        labels.resize(lo.len(), Label::Free);
    }
    with_avx2(
        #[inline(always)]
        || {
            // No branches: most rows have no bounds, some have, and nobody guesses which.
            for (label, (&lo, &hi)) in labels.iter_mut().zip(lo.iter().zip(hi)) {
                let nowhere = ((*label == Label::Lower) & (lo == f64::NEG_INFINITY))
                    | ((*label == Label::Upper) & (hi == f64::INFINITY));
                let legal = if nowhere { Label::Free } else { *label };
                *label = if is_held(lo, hi) { Label::Lower } else { legal };
            }
        },
    );
}

/// λ of tight rows at their bounds, zero on free ones.
pub fn begin(labels: &[Label], lo: &[f64], hi: &[f64], lambda: &mut [f64]) {
    with_avx2(
        #[inline(always)]
        || {
            for ((lambda, label), (&lo, &hi)) in lambda.iter_mut().zip(labels).zip(lo.iter().zip(hi)) {
                let tight = if *label == Label::Lower { lo } else { hi };
                *lambda = if *label == Label::Free { 0.0 } else { tight };
            }
        },
    );
}

/// Labels of an impulse vector: tight where it touches or leaves a bound.
pub fn labels_of(lambda: &[f64], lo: &[f64], hi: &[f64]) -> Vec<Label> {
    let bounds = lo.iter().zip(hi);
    let label = |(&l, (&lo, &hi)): (&f64, (&f64, &f64))| match l {
        _ if is_held(lo, hi) || l <= lo => Label::Lower,
        _ if l >= hi => Label::Upper,
        _ => Label::Free,
    };
    lambda.iter().zip(bounds).map(label).collect()
}

/// The label row `i` should change to, if it violates the one it has.
#[inline]
fn better_label(
    label: Label,
    lambda: f64,
    w: f64,
    bounds: (f64, f64),
    a: f64,
    tolerance: Tolerance,
) -> Option<Label> {
    let (lo, hi) = bounds;
    match label {
        _ if is_held(lo, hi) => None,
        Label::Free if lambda < lo - tolerance.impulse(a) => Some(Label::Lower),
        Label::Free if lambda > hi + tolerance.impulse(a) => Some(Label::Upper),
        Label::Lower if w < -tolerance.slack() => Some(Label::Free),
        Label::Upper if w > tolerance.slack() => Some(Label::Free),
        _ => None,
    }
}

/// Rows that violate their label, with the label they should have.
pub fn violators<S: PivotSystem>(
    system: &S,
    labels: &[Label],
    lambda: &[f64],
    w: &[f64],
    tolerance: Tolerance,
    out: &mut Vec<(u32, Label)>,
) {
    out.clear();
    let (lo, hi, a) = (system.lo(), system.hi(), system.diagonal());
    for i in 0..labels.len() {
        let bounds = (lo[i], hi[i]);
        if let Some(new) = better_label(labels[i], lambda[i], w[i], bounds, a[i], tolerance) {
            out.push((i as u32, new));
        }
    }
}

/// How badly row `i` violates its label, in units of slack velocity.
pub fn violation<S: PivotSystem>(system: &S, i: usize, label: Label, lambda: f64, w: f64) -> f64 {
    match label {
        Label::Free => (system.lo()[i] - lambda).max(lambda - system.hi()[i]).max(0.0) * system.diagonal()[i],
        _ => w.abs(),
    }
}

/// FNV-1a over the labels: two equal checksums in one run mean a cycle.
pub fn checksum(labels: &[Label]) -> u64 {
    labels.iter().fold(0xcbf2_9ce4_8422_2325, |h, &l| (h ^ l as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

/// λ clamped into its bounds.
pub fn project(lambda: &mut [f64], lo: &[f64], hi: &[f64]) {
    with_avx2(
        #[inline(always)]
        || {
            for (l, (&lo, &hi)) in lambda.iter_mut().zip(lo.iter().zip(hi)) {
                *l = l.max(lo).min(hi);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_at_infinite_bounds_become_free_and_held_rows_lower() {
        let inf = f64::INFINITY;
        let mut labels = vec![Label::Lower, Label::Upper, Label::Free, Label::Upper];
        legalise(&mut labels, &[-inf, 0.0, 2.0, 0.0], &[1.0, inf, 2.0, 1.0]);
        assert_eq!(labels, [Label::Free, Label::Free, Label::Lower, Label::Upper]);
        legalise(&mut labels, &[0.0], &[1.0]);
        assert_eq!(labels, [Label::Free]);
    }

    #[test]
    fn checksums_tell_neighbouring_sets_apart() {
        let mut labels = vec![Label::Free; 20];
        let before = checksum(&labels);
        labels[13] = Label::Upper;
        let one = checksum(&labels);
        labels[13] = Label::Lower;
        assert!(before != one && one != checksum(&labels) && before != checksum(&labels));
    }
}
