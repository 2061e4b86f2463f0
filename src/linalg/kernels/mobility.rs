//! How much rows move under an impulse of their own, and under momenta that are there.

// As in `kernels`: the sums live in registers.
#![allow(unsafe_code)]

use super::lanes::{Isa, Lanes, dispatch};
use super::rows::Six;

/// Adds j M⁻¹ jᵀ of every row of one body to `a`, and j q to `jq`.
///
/// # Panics
/// If a slice is too short.
pub fn add_mobility(isa: Isa, j: Six<'_>, inverse: &[f64; 36], q: &[f64], a: &mut [f64], jq: &mut [f64]) {
    let rows = a.len();
    assert!(j.holds(rows) && q.len() >= 6 && jq.len() >= rows);
    let (stride, j, inverse, q) = (j.stride, j.numbers.as_ptr(), inverse.as_ptr(), q.as_ptr());
    let (a, jq) = (a.as_mut_ptr(), jq.as_mut_ptr());
    dispatch!(isa, mobility_kernel(rows: usize, stride: usize, j: *const f64, inverse: *const f64, q: *const f64, a: *mut f64, jq: *mut f64));
}

#[inline(always)]
unsafe fn mobility_kernel<S: Lanes>(
    rows: usize,
    stride: usize,
    j: *const f64,
    inverse: *const f64,
    q: *const f64,
    a: *mut f64,
    jq: *mut f64,
) {
    // SAFETY: six numbers at every row and at q, 36 at `inverse`, `rows` at a and jq. The overlapping part of every second vector
    // is multiplied by zero.
    unsafe {
        let zero = S::splat(0.0);
        // Macros: a closure would be compiled without the instruction set.
        macro_rules! end {
            ($p:expr) => {{
                let tail = S::load($p.add(2));
                zero.pick(tail, 2).pick(tail, 3)
            }};
        }
        let (q, q_end) = (S::load(q), end!(q));
        macro_rules! row {
            ($p:expr) => {{
                let p: *const f64 = $p;
                let (mut y, mut y_end) = (zero, zero);
                for c in 0..6 {
                    let scale = S::splat(*p.add(c));
                    y = y.add_mul(S::load(inverse.add(6 * c)), scale);
                    y_end = y_end.add_mul(S::load(inverse.add(6 * c + 2)), scale);
                }
                let (head, tail) = (S::load(p), end!(p));
                (head.mul(y).add_mul(tail, y_end), head.mul(q).add_mul(tail, q_end))
            }};
        }
        let mut r = 0;
        while r < rows {
            // Fewer than four at the end: the last is taken again and not looked at.
            let last = rows - 1 - r;
            let p = j.add(r * stride);
            let first = row!(p);
            let second = row!(p.add(last.min(1) * stride));
            let third = row!(p.add(last.min(2) * stride));
            let fourth = row!(p.add(last.min(3) * stride));
            let moved = S::sums([first.0, second.0, third.0, fourth.0]).lanes();
            let read = S::sums([first.1, second.1, third.1, fourth.1]).lanes();
            for k in 0..(rows - r).min(4) {
                *a.add(r + k) += moved[k];
                *jq.add(r + k) += read[k];
            }
            r += 4;
        }
    }
}
