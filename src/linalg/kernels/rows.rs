//! Jacobian rows of six numbers a body: folding them into blocks, multiplying with them, placing them.

// As in `kernels`: the sums live in registers.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::lanes::{Isa, Lanes, dispatch};

/// Jacobian rows of one body: six numbers per row, `stride` numbers from row to row.
#[derive(Clone, Copy, Debug)]
pub struct Six<'a> {
    /// The rows, from the first of the six numbers on.
    pub numbers: &'a [f64],
    /// Numbers from row to row.
    pub stride: usize,
}

impl Six<'_> {
    /// q += Jᵀ y for a body with as many unknowns as `q` has numbers.
    pub fn add_transposed(&self, y: &[f64], q: &mut [f64]) {
        for (r, y) in y.iter().enumerate() {
            let row = &self.numbers[r * self.stride..];
            q.iter_mut().zip(row).for_each(|(q, j)| *q += j * y);
        }
    }

    pub(in crate::linalg) fn holds(&self, rows: usize) -> bool {
        rows == 0 || self.numbers.len() >= (rows - 1) * self.stride + 6
    }
}

/// target += downᵀ diag(weight) across: a 6 × 6 block, column-major with leading dimension `ld`. Where the two are the same
/// rows, numbers above the diagonal are left as they are in part.
///
/// # Panics
/// If a slice is too short.
pub fn fold_six(isa: Isa, down: Six<'_>, across: Six<'_>, weight: &[f64], target: &mut [f64], ld: usize) {
    let rows = weight.len();
    assert!(down.holds(rows) && across.holds(rows) && target.len() >= 5 * ld + 6);
    let (a, b, stride) = (down.numbers.as_ptr(), across.numbers.as_ptr(), down.stride);
    assert!(across.stride == stride);
    let (weight, target) = (weight.as_ptr(), target.as_mut_ptr());
    if a == b {
        return dispatch!(isa, fold_lower_kernel(rows: usize, stride: usize, a: *const f64, weight: *const f64, target: *mut f64, ld: usize));
    }
    dispatch!(isa, fold_kernel(rows: usize, stride: usize, a: *const f64, b: *const f64, weight: *const f64, target: *mut f64, ld: usize));
}

/// C + D of rows and its inverse: `regular` = C + D, infinite where `tight` is not zero, `weight` = 1/`regular`. Sets the bit of
/// every row whose number changed in `changed`, 64 rows a word. Is any row tight?
///
/// # Panics
/// If a slice is too short.
pub fn renew_weights(
    isa: Isa,
    compliance: &[f64],
    diagonal: Option<&[f64]>,
    tight: &[u8],
    regular: &mut [f64],
    weight: &mut [f64],
    changed: &mut [u64],
) -> bool {
    let rows = regular.len();
    assert!(compliance.len() >= rows && tight.len() >= rows && weight.len() >= rows);
    assert!(diagonal.is_none_or(|d| d.len() >= rows) && changed.len() >= rows.div_ceil(64));
    let (c, tight) = (compliance.as_ptr(), tight.as_ptr());
    let d = diagonal.map_or(std::ptr::null(), <[f64]>::as_ptr);
    let (regular, weight, changed) = (regular.as_mut_ptr(), weight.as_mut_ptr(), changed.as_mut_ptr());
    dispatch!(isa, renew_kernel(rows: usize, c: *const f64, d: *const f64, tight: *const u8, regular: *mut f64, weight: *mut f64, changed: *mut u64) -> bool)
}

/// out −= J x for the six numbers x of one body, one row after another.
///
/// # Panics
/// If a slice is too short.
pub fn subtract_six_times(isa: Isa, j: Six<'_>, x: &[f64], out: &mut [f64]) {
    let rows = out.len();
    assert!(j.holds(rows) && x.len() >= 6);
    let (numbers, stride, x, out) = (j.numbers.as_ptr(), j.stride, x.as_ptr(), out.as_mut_ptr());
    dispatch!(isa, times_kernel(rows: usize, stride: usize, numbers: *const f64, x: *const f64, out: *mut f64));
}

/// q += Jᵀ y for the six numbers q of one body.
///
/// # Panics
/// If a slice is too short.
pub fn add_six_transposed(isa: Isa, j: Six<'_>, y: &[f64], q: &mut [f64]) {
    let rows = y.len();
    assert!(j.holds(rows) && q.len() >= 6);
    let (numbers, stride, y, q) = (j.numbers.as_ptr(), j.stride, y.as_ptr(), q.as_mut_ptr());
    dispatch!(isa, transposed_kernel(rows: usize, stride: usize, numbers: *const f64, y: *const f64, q: *mut f64));
}

/// target = Jᵀ of `rows` rows: six columns, column-major with leading dimension `ld`.
///
/// # Panics
/// If a slice is too short.
pub fn place_beside(j: Six<'_>, rows: usize, target: &mut [f64], ld: usize) {
    assert!(j.holds(rows) && target.len() >= 5 * ld + rows);
    for r in 0..rows {
        for c in 0..6 {
            // SAFETY: r < rows and c < 6, which the lengths above allow.
            unsafe { *target.get_unchecked_mut(c * ld + r) = *j.numbers.get_unchecked(r * j.stride + c) };
        }
    }
}

/// target = the rows as columns of six, column-major with leading dimension `ld`.
///
/// # Panics
/// If a slice is too short.
pub fn place_below(j: Six<'_>, rows: usize, target: &mut [f64], ld: usize) {
    assert!(j.holds(rows) && (rows == 0 || target.len() >= (rows - 1) * ld + 6));
    for r in 0..rows {
        for c in 0..6 {
            // SAFETY: r < rows and c < 6, which the lengths above allow.
            unsafe { *target.get_unchecked_mut(r * ld + c) = *j.numbers.get_unchecked(r * j.stride + c) };
        }
    }
}

/// The same of a body with fewer than six unknowns: `beside`, each row's first `width` numbers along a row of the target; else along
/// a column.
///
/// # Panics
/// If a slice is too short.
pub fn place_narrow(j: Six<'_>, (rows, width): (usize, usize), beside: bool, target: &mut [f64], ld: usize) {
    for r in 0..rows {
        for c in 0..width {
            target[if beside { c * ld + r } else { r * ld + c }] = j.numbers[r * j.stride + c];
        }
    }
}

/// Rows of contacts come in threes.
macro_rules! by_threes {
    ($rows:ident, $row:ident) => {
        let mut r = 0;
        while r + 3 <= $rows {
            $row!(r);
            $row!(r + 1);
            $row!(r + 2);
            r += 3;
        }
        while r < $rows {
            $row!(r);
            r += 1;
        }
    };
}

#[inline(always)]
pub(in crate::linalg) unsafe fn fold_kernel<S: Lanes>(
    rows: usize,
    stride: usize,
    a: *const f64,
    b: *const f64,
    weight: *const f64,
    target: *mut f64,
    ld: usize,
) {
    // SAFETY: six numbers at every row of a and b, six columns of six at the target. The second vector of a row
    // overlaps the first, so that six numbers never need a masked load.
    unsafe {
        let mut sum = [[S::splat(0.0); 2]; 6];
        macro_rules! row {
            ($r:expr) => {
                let w = S::splat(*weight.add($r));
                let (p, q) = (a.add($r * stride), b.add($r * stride));
                let head = S::load(p).mul(w);
                let tail = S::load(p.add(2)).mul(w);
                for c in 0..6 {
                    let scale = S::splat(*q.add(c));
                    sum[c][0] = sum[c][0].add_mul(head, scale);
                    sum[c][1] = sum[c][1].add_mul(tail, scale);
                }
            };
        }
        by_threes!(rows, row);
        for (c, column) in sum.iter().enumerate() {
            column[0].add_to_six(column[1], target.add(c * ld));
        }
    }
}

/// The lower triangle: columns from the third on need the second vector only.
#[inline(always)]
pub(in crate::linalg) unsafe fn fold_lower_kernel<S: Lanes>(
    rows: usize,
    stride: usize,
    a: *const f64,
    weight: *const f64,
    target: *mut f64,
    ld: usize,
) {
    // SAFETY: as for `fold_kernel`.
    unsafe {
        let mut first = [S::splat(0.0); 2];
        let mut sum = [S::splat(0.0); 6];
        macro_rules! row {
            ($r:expr) => {
                let w = S::splat(*weight.add($r));
                let p = a.add($r * stride);
                let head = S::load(p).mul(w);
                let tail = S::load(p.add(2)).mul(w);
                for c in 0..6 {
                    let scale = S::splat(*p.add(c));
                    if c < 2 {
                        first[c] = first[c].add_mul(head, scale);
                    }
                    sum[c] = sum[c].add_mul(tail, scale);
                }
            };
        }
        by_threes!(rows, row);
        for c in 0..2 {
            first[c].add_to_six(sum[c], target.add(c * ld));
        }
        for c in 2..6 {
            let p = target.add(c * ld + 2);
            S::load(p).add(sum[c]).store(p);
        }
    }
}

/// A body of rows that are folded on two, twelve numbers a row: its six of the first row, and where its columns begin.
#[derive(Clone, Copy)]
pub(in crate::linalg) struct FoldSide {
    pub(in crate::linalg) numbers: *const f64,
    /// Its own block, and the other body's rows below it; of the latter body there are none.
    pub(in crate::linalg) target: *mut f64,
    pub(in crate::linalg) below: *mut f64,
    pub(in crate::linalg) ld: usize,
}

/// One block after another: sixteen registers hold the sums of one.
#[inline(always)]
pub(in crate::linalg) unsafe fn fold_pair_in_fours<S: Lanes>(
    rows: usize,
    weight: *const f64,
    across: FoldSide,
    down: FoldSide,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, b) = (across.numbers, down.numbers);
        fold_lower_kernel::<S>(rows, 12, a, weight, across.target, across.ld);
        fold_kernel::<S>(rows, 12, b, a, weight, across.below, across.ld);
        fold_lower_kernel::<S>(rows, 12, b, weight, down.target, down.ld);
    }
}

#[inline(always)]
unsafe fn renew_kernel<S: Lanes>(
    rows: usize,
    c: *const f64,
    d: *const f64,
    tight: *const u8,
    regular: *mut f64,
    weight: *mut f64,
    changed: *mut u64,
) -> bool {
    let mut any = 0u32;
    // SAFETY: `rows` numbers at every pointer (`d` may be null), a bit per row at `changed`; whole fours first, 64 is a multiple
    // of four.
    unsafe {
        let whole = rows / 4 * 4;
        for word in 0..rows.div_ceil(64) {
            let mut bits = 0u64;
            let end = (64 * word + 64).min(whole);
            let mut r = 64 * word;
            while r < end {
                let mut new = S::load(c.add(r));
                if !d.is_null() {
                    new = new.add(S::load(d.add(r)));
                }
                let four = tight.add(r).cast::<u32>().read_unaligned();
                if four != 0 {
                    any |= four;
                    let mut lanes = new.lanes();
                    for (k, lane) in lanes.iter_mut().enumerate() {
                        *lane = if *tight.add(r + k) == 0 { *lane } else { f64::INFINITY };
                    }
                    new = S::load(lanes.as_ptr());
                }
                let mask = new.differs(S::load(regular.add(r)));
                if mask != 0 {
                    bits |= u64::from(mask) << (r % 64);
                    new.store(regular.add(r));
                    new.invert().store(weight.add(r));
                }
                r += 4;
            }
            while r < rows && r < 64 * word + 64 {
                let d = if d.is_null() { 0.0 } else { *d.add(r) };
                let free = *tight.add(r) == 0;
                any |= u32::from(!free);
                let new = if free { *c.add(r) + d } else { f64::INFINITY };
                if new != *regular.add(r) {
                    bits |= 1 << (r % 64);
                    *regular.add(r) = new;
                    *weight.add(r) = 1.0 / new;
                }
                r += 1;
            }
            *changed.add(word) = bits;
        }
    }
    any != 0
}

#[inline(always)]
unsafe fn times_kernel<S: Lanes>(rows: usize, stride: usize, j: *const f64, x: *const f64, out: *mut f64) {
    // SAFETY: six numbers at every row and at x; `rows` numbers at out. The overlapping part of the second vector is
    // multiplied by zero.
    unsafe {
        let head = S::load(x);
        let tail = [0.0, 0.0, *x.add(4), *x.add(5)];
        let tail = S::load(tail.as_ptr());
        macro_rules! row {
            ($r:expr) => {{
                let p = j.add($r * stride);
                S::load(p).mul(head).add_mul(S::load(p.add(2)), tail)
            }};
        }
        let mut r = 0;
        while r + 4 <= rows {
            let sums = S::sums([row!(r), row!(r + 1), row!(r + 2), row!(r + 3)]);
            let p = out.add(r);
            S::load(p).sub(sums).store(p);
            r += 4;
        }
        while r < rows {
            let sums = S::sums([row!(r), S::splat(0.0), S::splat(0.0), S::splat(0.0)]);
            *out.add(r) -= sums.lanes()[0];
            r += 1;
        }
    }
}

#[inline(always)]
unsafe fn transposed_kernel<S: Lanes>(rows: usize, stride: usize, j: *const f64, y: *const f64, q: *mut f64) {
    // SAFETY: six numbers at every row and at q; `rows` numbers at y.
    unsafe {
        let (mut head, mut tail) = (S::splat(0.0), S::splat(0.0));
        for r in 0..rows {
            let p = j.add(r * stride);
            let scale = S::splat(*y.add(r));
            head = head.add_mul(S::load(p), scale);
            tail = tail.add_mul(S::load(p.add(2)), scale);
        }
        head.add_to_six(tail, q);
    }
}
