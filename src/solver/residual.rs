//! How far an impulse vector is from solving the problem.
//!
//! Source: 000 eq. (29), the natural residual of Enzenhöfer et al. 2018, and the unit-consistent
//! measure of 003 §6.2.2. Symbols: λ, w impulse and slack velocity; lo, hi bounds; a = diagonal of A.
//!
//! A residual is the only judge of convergence: an index set that no longer changes proves nothing.

use super::SolveStats;
use super::system::PivotSystem;
use crate::linalg::kernels::with_avx2;

/// Partial sums of a long sum. One sum alone waits for every addition; the number is the same on every machine, and so are the bits.
const LANES: usize = 8;

/// r of one row, 000 eq. (29): max(|min(λ − lo, w⁺)|, |min(hi − λ, w⁻)|).
#[inline]
pub fn natural_row(lambda: f64, w: f64, lo: f64, hi: f64) -> f64 {
    let below = least(lambda - lo, most(w, 0.0)).abs();
    let above = least(hi - lambda, most(-w, 0.0)).abs();
    most(below, above)
}

/// The smaller of two numbers, in one instruction; what comes of no number does not matter here.
#[inline(always)]
fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The larger of two numbers.
#[inline(always)]
fn most(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// ‖r‖₂ of 000 eq. (29). Infinite when anything is not a number, so that it never compares as small.
pub fn natural(lambda: &[f64], w: &[f64], lo: &[f64], hi: &[f64]) -> f64 {
    let sum = with_avx2(
        #[inline(always)]
        || {
            sum_of_rows([lambda, w, lo, hi], |[lambda, w, lo, hi]| {
                let r = natural_row(lambda, w, lo, hi);
                r * r
            })
        },
    );
    finite_or_infinite(sum.sqrt())
}

/// [`natural`], and whether every λ lies within its bounds.
pub fn natural_within(lambda: &[f64], w: &[f64], lo: &[f64], hi: &[f64]) -> (f64, bool) {
    let inside = with_avx2(
        #[inline(always)]
        || are_inside(lambda, lo, hi),
    );
    (natural(lambda, w, lo, hi), inside)
}

/// Lies every λ within its bounds?
#[inline(always)]
fn are_inside(lambda: &[f64], lo: &[f64], hi: &[f64]) -> bool {
    let bounds = lo.iter().zip(hi);
    lambda.iter().zip(bounds).fold(true, |so_far, (l, (lo, hi))| so_far & (l >= lo) & (l <= hi))
}

/// Σ f(λ, w, …) over all rows; not a number if λ or w of any row is not.
#[inline(always)]
fn sum_of_rows<const K: usize>(of: [&[f64]; K], f: impl Fn([f64; K]) -> f64) -> f64 {
    let n = of[0].len();
    let of = of.map(|x| x[..n].as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    let row = |sum: &mut f64, x: [f64; K]| {
        // Zero unless one of them is not a number; bounds may be infinite.
        *sum += f(x) + (0.0 * x[0] + 0.0 * x[1]);
    };
    for i in 0..n / LANES {
        let eight: [&[f64; LANES]; K] = std::array::from_fn(|k| &of[k].0[i]);
        for (lane, sum) in sums.iter_mut().enumerate() {
            row(sum, std::array::from_fn(|k| eight[k][lane]));
        }
    }
    for i in 0..n % LANES {
        row(&mut sums[i], std::array::from_fn(|k| of[k].1[i]));
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The square of the natural residual of one row in λ√a and w/√a. Squares are compared, so that no root is taken.
///
/// The natural residual adds newton-seconds to metres per second. Scaled by a = A_ii, λ√a and w/√a
/// both have the unit √J; half the square of the natural residual in those variables is an energy,
/// and 003 averages it over the rows.
#[inline(always)]
fn energy_row(lambda: f64, w: f64, lo: f64, hi: f64, a: f64) -> f64 {
    // A row nothing moves (A_ii = 0) has no mass to measure by; 1 kg keeps it visible.
    let a = if a > 0.0 { a } else { 1.0 };
    let square = |reach: f64, w: f64| {
        let (outside, slack) = (a * (reach * reach), w * w / a);
        if reach < 0.0 { outside } else { least(outside, slack) }
    };
    most(square(lambda - lo, most(w, 0.0)), square(hi - lambda, most(-w, 0.0)))
}

/// max(1, ‖b‖₂), the yardstick of relative residuals.
pub fn scale(b: &[f64]) -> f64 {
    scale_of(square(b))
}

/// ‖b‖₂².
pub fn square(b: &[f64]) -> f64 {
    with_avx2(
        #[inline(always)]
        || sum_of_rows([b, b], |[x, _]| x * x),
    )
}

/// [`scale`] of a b with this square.
pub fn scale_of(square: f64) -> f64 {
    let norm = square.sqrt();
    if norm.is_finite() { norm.max(1.0) } else { 1.0 }
}

fn finite_or_infinite(x: f64) -> f64 {
    if x.is_finite() { x } else { f64::INFINITY }
}

/// What the rows of a problem, or of a part of it, say of an impulse vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums {
    /// Σ r² of 000 eq. (29).
    pub natural: f64,
    /// Twice the energy (joule) by which the rows miss complementarity.
    pub energy: f64,
    /// Lies every λ within its bounds?
    pub inside: bool,
}

impl Default for Sums {
    /// Of no rows.
    fn default() -> Self {
        Sums { natural: 0.0, energy: 0.0, inside: true }
    }
}

impl Sums {
    /// Of some rows.
    pub fn of(lambda: &[f64], w: &[f64], (lo, hi): (&[f64], &[f64]), diagonal: &[f64]) -> Self {
        let natural = |[lambda, w, lo, hi]: [f64; 4]| {
            let r = natural_row(lambda, w, lo, hi);
            r * r
        };
        let energy = |[lambda, w, lo, hi, a]: [f64; 5]| energy_row(lambda, w, lo, hi, a);
        with_avx2(
            #[inline(always)]
            || Sums {
                natural: sum_of_rows([lambda, w, lo, hi], natural),
                energy: sum_of_rows([lambda, w, lo, hi, diagonal], energy),
                inside: are_inside(lambda, lo, hi),
            },
        )
    }

    /// And those of other rows.
    pub fn add(&mut self, others: &Self) {
        self.natural += others.natural;
        self.energy += others.energy;
        self.inside &= others.inside;
    }

    /// The three measures of a problem of so many rows and of this scale, written into `stats`, and whether they pass `tolerance`.
    pub fn judge(&self, rows: usize, scale: f64, tolerance: f64, stats: &mut SolveStats) {
        stats.residual = finite_or_infinite(self.natural.sqrt());
        stats.residual_relative = stats.residual / scale;
        stats.residual_energy = finite_or_infinite(0.5 * self.energy / rows.max(1) as f64);
        stats.converged = stats.residual_relative <= tolerance;
    }
}

/// The three measures of an impulse vector, written into `stats`, and whether they pass `tolerance`.
///
/// `hi` are the bounds as given: a system may have raised those that lie below `lo`.
pub fn judge<S: PivotSystem>(
    system: &mut S,
    lambda: &[f64],
    hi: &[f64],
    tolerance: f64,
    w: &mut Vec<f64>,
    stats: &mut SolveStats,
) {
    // Written before it is read.
    w.resize(lambda.len(), 0.0);
    system.honest_slack(lambda, w);
    judge_slack(system, lambda, hi, tolerance, w, stats);
}

/// The same with the slack velocities at hand.
pub fn judge_slack<S: PivotSystem>(
    system: &S,
    lambda: &[f64],
    hi: &[f64],
    tolerance: f64,
    w: &[f64],
    stats: &mut SolveStats,
) {
    let sums = Sums::of(lambda, w, (system.lo(), hi), system.diagonal());
    sums.judge(lambda.len(), system.scale(), tolerance, stats);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_natural_residual_is_zero_exactly_on_solutions() {
        let inf = f64::INFINITY;
        for (lambda, w, lo, hi, r) in [
            (0.0, 3.0, 0.0, inf, 0.0),   // tight below, pushed apart
            (2.0, 0.0, 0.0, inf, 0.0),   // free
            (1.0, -4.0, -1.0, 1.0, 0.0), // tight above
            (5.0, 7.0, 5.0, 5.0, 0.0),   // held
            (0.0, -3.0, 0.0, inf, 3.0),  // wrong sign
            (-2.0, 0.0, 0.0, inf, 2.0),  // infeasible
            (4.0, 0.5, -inf, inf, 0.5),  // equation not met
            (0.25, 3.0, 0.0, 1.0, 0.25), // neither
        ] {
            assert_eq!(natural_row(lambda, w, lo, hi), r);
        }
    }

    #[test]
    fn not_a_number_is_never_small() {
        let r = natural(&[f64::NAN], &[0.0], &[0.0], &[1.0]);
        assert_eq!(r, f64::INFINITY);
        let mut stats = SolveStats::default();
        Sums::of(&[0.0], &[f64::NAN], (&[0.0], &[1.0]), &[1.0]).judge(1, 1.0, 1.0, &mut stats);
        assert!(
            stats.residual_energy == f64::INFINITY && stats.residual == f64::INFINITY && !stats.converged
        );
    }
}
