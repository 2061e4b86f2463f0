//! Dense kernels of the multifrontal factorization, in four lanes.
//!
//! One source, two instruction sets: the kernels are written once over `Lanes` and compiled for plain Rust
//! (multiply, then add: the same bits on every machine) and for AVX2 with fused multiply–add (chosen at run
//! time). Where the machine has AVX-512, the inner loops of fronts that are not small take eight rows at once; every number is made
//! of the same operations in the same order, so the bits are those of AVX2. Everything is column-major; leading dimensions are multiples of four and padding rows are zero,
//! so no kernel has a remainder loop. What lies above the diagonal of a panel is scratch.
//!
//! A panel holds unit-lower L of A = L D Lᵀ, with D⁻¹ on its diagonal; `w` holds L D, which is the other factor of every update.

// What it buys: tiles live in registers and no index is checked inside a loop; the numeric phase reaches half of the
// machine's dense peak on rock piles (`cargo bench --bench kernels -- --table`, last column).
#![allow(unsafe_code)]
// A matrix in a kernel is a pointer and a stride.
#![allow(clippy::too_many_arguments)]

pub use fronts::*;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod fronts;
mod lanes;
mod large;
mod memory;
mod mobility;
mod passing;
mod rows;
mod sides;
mod substitute;
mod tiles;
mod tree;

pub use lanes::{Isa, Kernels, with_avx2};
pub use memory::{AHEAD, fetch, settle_streams};
pub use mobility::*;
pub use passing::*;
pub use rows::*;
pub use sides::*;
pub use tree::*;

use fronts::copy;
use lanes::{Lanes, dispatch};
use large::{ROWS, factor_in_panels};
use substitute::{backward_kernel, forward_kernel};
use tiles::multiply_kernel;

/// The shape of a front: `pivots` columns are eliminated, `border` rows are updated.
///
/// Local rows: pivots from 0, border from [`border_at`](Self::border_at); both padded to four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Columns to eliminate.
    pub pivots: usize,
    /// Rows below them.
    pub border: usize,
}

impl Shape {
    /// Local row of the first border row.
    pub fn border_at(self) -> usize {
        pad(self.pivots)
    }

    /// Leading dimension of the update matrix, and number of its columns.
    pub fn ldu(self) -> usize {
        pad(self.border)
    }

    /// Leading dimension of the panel, and length of a local vector.
    pub fn ld(self) -> usize {
        self.border_at() + self.ldu()
    }

    /// Numbers of the columns to eliminate, as they are assembled.
    pub fn front_len(self) -> usize {
        self.ld() * self.pivots
    }

    /// Numbers in the panel that is kept: of a small front, blocks of four columns without the rows above their diagonal.
    pub fn panel_len(self) -> usize {
        let whole = self.pivots / 4 * 4;
        match self.is_small() {
            true => block_at(whole, self.ld()) + (self.pivots - whole) * (self.ld() - whole),
            false => self.front_len(),
        }
    }

    /// Is the front so small that it is assembled in work space, and its panel packed?
    pub fn is_small(self) -> bool {
        self.front_len() <= SMALL
    }

    /// Numbers in the update matrix.
    pub fn update_len(self) -> usize {
        self.ldu() * self.ldu()
    }

    /// Numbers of work space the factorization needs.
    pub fn scratch_len(self) -> usize {
        let packed = if self.is_large() { PANEL * (self.ld() + ROWS) } else { 0 };
        // Behind a small front there may be its signs, and its panel before it goes to memory.
        let own = if self.is_small() { self.panel_len() } else { 0 };
        self.front_len() + self.border_at() + packed + own
    }

    /// Does the panel outgrow the first cache?
    fn is_large(self) -> bool {
        self.pivots >= 12 && self.front_len() > 6144
    }

    /// Multiplications and additions of the factorization of this front.
    pub fn flops(self) -> u64 {
        let (s, r) = (self.pivots as u64, self.border as u64);
        s * s * s / 3 + s * s * r + s * r * (r + 1)
    }
}

/// Numbers of a small front: with its work space it stays in the first cache.
const SMALL: usize = 1024;

/// Where the block of four columns from `j` on begins in a packed panel: the blocks before it have four rows less each.
#[inline(always)]
pub(in crate::linalg) const fn block_at(j: usize, ld: usize) -> usize {
    j * ld - j * (j.saturating_sub(4)) / 2
}

/// Columns of a large front that are eliminated together.
pub(in crate::linalg) const PANEL: usize = 48;

/// Rounds up to a multiple of four.
pub const fn pad(n: usize) -> usize {
    n.div_ceil(4) * 4
}

/// Calls a macro with the shapes that chains, towers and nets are made of: pivots, padded border. Where the arithmetic is fast
/// enough for strides and loops to show beside it, kernels have them as constants: a front of ten pivots is a hundred nanoseconds
/// of work.
macro_rules! usual_shapes {
    ($with:ident) => {
        $with!((6, 4)(6, 8)(6, 12)(9, 4)(10, 4)(11, 8)(12, 8)(12, 12))
    };
}

/// Calls a kernel with those shapes as constants.
macro_rules! specialise {
    ($lanes:ident, $shape:ident, $call:expr) => {
        specialise!(@ $lanes, $shape, $call, (6, 4) (6, 8) (6, 12) (9, 4) (10, 4) (11, 8) (12, 8) (12, 12))
    };
    (@ $lanes:ident, $shape:ident, $call:expr, $(($pivots:literal, $border:literal))*) => {
        match ($lanes::FAST, $shape.pivots, $shape.ldu()) {
            $((true, $pivots, $border) => {
                let $shape = Shape { pivots: $pivots, border: $border };
                $call
            })*
            _ => $call,
        }
    };
}
pub(crate) use specialise;

/// Factors a front in place: L into `panel` (packed if the front is small), 1/D onto its diagonal, and subtracts L D Lᵀ of the border from
/// `update`. `sign` is +1 or −1 per pivot, 0 for a pivot that is out of the system (its column of L and
/// its 1/D become zero). Returns the number of pivots whose sign was wrong; they are replaced.
///
/// # Panics
/// If a slice is shorter than its shape asks for.
pub fn factor_front(
    isa: Isa,
    shape: Shape,
    panel: &mut [f64],
    update: &mut [f64],
    w: &mut [f64],
    sign: &[f64],
) -> u32 {
    assert!(
        panel.len() >= shape.front_len()
            && w.len() >= shape.scratch_len()
            && update.len() >= shape.update_len()
            && sign.len() >= shape.pivots,
        "front slices shorter than their shape"
    );
    let (panel, update, w) = (panel.as_mut_ptr(), update.as_mut_ptr(), w.as_mut_ptr());
    let sign = sign.as_ptr();
    dispatch!(isa, factor_assembled(shape: Shape, panel: *mut f64, update: *mut f64, w: *mut f64, sign: *const f64) -> u32)
}

/// Forward substitution: pivots of `x` become L⁻¹ x, the border of `x` loses L x.
///
/// # Panics
/// If a slice is shorter than its shape asks for.
pub fn forward(isa: Isa, shape: Shape, panel: &[f64], x: &mut [f64]) {
    assert!(panel.len() >= shape.panel_len() && x.len() >= shape.ld());
    let (panel, x) = (panel.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, forward_kernel(shape: Shape, panel: *const f64, x: *mut f64));
}

/// Backward substitution: pivots of `x` become L⁻ᵀ (D⁻¹ x − L_borderᵀ x_border). Padding of `x` is read and must be zero.
///
/// # Panics
/// If a slice is shorter than its shape asks for.
pub fn backward(isa: Isa, shape: Shape, panel: &[f64], x: &mut [f64]) {
    assert!(panel.len() >= shape.panel_len() && x.len() >= shape.ld());
    let (panel, x) = (panel.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, backward_kernel(shape: Shape, panel: *const f64, x: *mut f64));
}

/// c −= a bᵀ for column-major a (m × k), b (n × k), c (m × n); m and n multiples of four. The measure of the
/// machine's dense peak.
///
/// # Panics
/// If a dimension is not a multiple of four or a slice is too short.
pub fn multiply_subtract(isa: Isa, (m, n, k): (usize, usize, usize), a: &[f64], b: &[f64], c: &mut [f64]) {
    assert!(m.is_multiple_of(4) && n.is_multiple_of(4));
    assert!(a.len() >= m * k && b.len() >= n * k && c.len() >= m * n);
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    dispatch!(isa, multiply_kernel(m: usize, n: usize, k: usize, a: *const f64, b: *const f64, c: *mut f64));
}

/// Eliminates W columns from `j` (a multiple of four): update by the columns from `first` on, 4 × 4 block, rows below. If `PACKED`,
/// the front is in `w`, where L D takes its place, L goes into the packed panel, and `first` is 0; else the front is in `panel`,
/// where L takes its place.
#[inline(always)]
unsafe fn column_block<S: Lanes, const W: usize, const PACKED: bool>(
    first: usize,
    j: usize,
    ld: usize,
    panel: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    // SAFETY: j + W ≤ pivots, rows j..ld exist in every column, ld is a multiple of four.
    unsafe {
        let front = if PACKED { w } else { panel };
        // Row j of column j of L, and the numbers from there to the next column.
        let (own, lead) = match PACKED {
            true => (panel.add(block_at(j, ld)), ld - j),
            false => (panel.add(j + j * ld), ld),
        };
        if j > first {
            let (a, b) = (panel.add(j + first * ld), w.add(j + first * ld));
            S::strip::<W, PACKED>(ld - j, front.add(j + j * ld), ld, a, ld, b, ld, j - first);
        }
        let mut wrong = 0;
        let mut inverse = [S::splat(0.0); 4];
        let mut scaled = [S::splat(0.0); 4];
        let mut l = [S::splat(0.0); 4];
        // Written out, because a loop with the cold branch inside is not unrolled and spills its registers.
        macro_rules! single {
            ($c:literal, $($q:literal),*) => {
                let at = j + (j + $c) * ld;
                #[allow(unused_mut)]
                let mut column = S::load(front.add(at));
                $(column = column.sub_mul(l[$q], scaled[$q].broadcast($c));)*
                let pivot = column.broadcast($c);
                let signed = pivot.lanes()[0] * *sign.add(j + $c);
                inverse[$c] = if signed > SMALLEST {
                    pivot.invert()
                } else {
                    let (inverse, bad) = replace_pivot(pivot.lanes()[0], *sign.add(j + $c));
                    wrong += bad;
                    S::splat(inverse)
                };
                scaled[$c] = column;
                l[$c] = column.mul(inverse[$c]);
            };
        }
        // Two pivots at once: with the determinant of their block, 1/d₁ and 1/d₂ = d₁/det are divided side by side, and the
        // wait for a division is paid once.
        macro_rules! pair {
            ($c:literal, $d:literal, $($q:literal),*) => {
                #[allow(unused_mut)]
                let mut first = S::load(front.add(j + (j + $c) * ld));
                #[allow(unused_mut)]
                let mut second = S::load(front.add(j + (j + $d) * ld));
                $(
                    first = first.sub_mul(l[$q], scaled[$q].broadcast($c));
                    second = second.sub_mul(l[$q], scaled[$q].broadcast($d));
                )*
                let (a, b, c) = (first.broadcast($c), first.broadcast($d), second.broadcast($d));
                let det = a.mul(c).sub_mul(b, b);
                let (s, t) = (*sign.add(j + $c), *sign.add(j + $d));
                let signed = det.lanes()[0] * (s * t);
                if a.lanes()[0] * s > SMALLEST && signed > SMALLEST && signed < LARGEST {
                    inverse[$c] = a.invert();
                    inverse[$d] = a.div(det);
                } else {
                    let (x, y, bad) = replace_pair(a.lanes()[0], b.lanes()[0], c.lanes()[0], s, t);
                    wrong += bad;
                    inverse[$c] = S::splat(x);
                    inverse[$d] = S::splat(y);
                }
                l[$c] = first.mul(inverse[$c]);
                scaled[$c] = first;
                scaled[$d] = second.sub_mul(l[$c], b);
                l[$d] = scaled[$d].mul(inverse[$d]);
            };
        }
        if W >= 2 {
            pair!(0, 1,);
        } else {
            single!(0,);
        }
        if W == 4 {
            pair!(2, 3, 0, 1);
        } else if W == 3 {
            single!(2, 0, 1);
        }
        for c in 0..W {
            let at = j + (j + c) * ld;
            scaled[c].store(w.add(at));
            // The unit diagonal need not be kept: 1/D is there.
            l[c].pick(inverse[c], c).store(own.add(c * lead));
        }
        let mut factor = [[S::splat(0.0); 4]; 4];
        for c in 0..W {
            for q in 0..c {
                factor[c][q] = scaled[q].broadcast(c);
            }
        }
        // The block's rows, for the backward substitution: the upper triangle is free.
        for c in 0..W {
            let lower = l[c].lanes();
            for q in c + 1..W {
                *own.add(c + q * lead) = lower[q];
            }
        }
        let below =
            Below { from: front.add(j * ld), ld, w: w.add(j * ld), l: own.sub(j), lead, first: j + 4 };
        S::rows_below::<W>(&below, &inverse, &factor);
        wrong
    }
}

/// The rows below the block of W columns that is being eliminated, from `first` on.
pub(in crate::linalg) struct Below {
    /// Row 0 of the block's first column: as assembled, of L D, of L (which has a stride of its own).
    pub(in crate::linalg) from: *const f64,
    pub(in crate::linalg) w: *mut f64,
    pub(in crate::linalg) l: *mut f64,
    pub(in crate::linalg) ld: usize,
    pub(in crate::linalg) lead: usize,
    pub(in crate::linalg) first: usize,
}

impl Below {
    /// Eliminates them four at a time.
    #[inline(always)]
    pub(in crate::linalg) unsafe fn in_fours<S: Lanes, const W: usize>(
        &self,
        inverse: &[S; 4],
        factor: &[[S; 4]; 4],
    ) {
        let mut r = self.first;
        // SAFETY: rows up to `ld` exist in every column, which is a multiple of four.
        unsafe {
            while r < self.ld {
                let mut l = [S::splat(0.0); W];
                for c in 0..W {
                    let mut column = S::load(self.from.add(r + c * self.ld));
                    for q in 0..c {
                        column = column.sub_mul(l[q], factor[c][q]);
                    }
                    l[c] = column.mul(inverse[c]);
                    column.store(self.w.add(r + c * self.ld));
                    l[c].store(self.l.add(r + c * self.lead));
                }
                r += 4;
            }
        }
    }
}

/// Pivots below this have no useful inverse.
const SMALLEST: f64 = 1e-290;

/// Determinants above this may have overflowed on the way.
const LARGEST: f64 = 1e290;

/// 1/d of two pivots with the block [a b; b c], one after the other.
#[cold]
fn replace_pair(a: f64, b: f64, c: f64, s: f64, t: f64) -> (f64, f64, u32) {
    let one = |d: f64, sign: f64| if d * sign > SMALLEST { (1.0 / d, 0) } else { replace_pivot(d, sign) };
    let (x, bad) = one(a, s);
    let (y, worse) = one(c - b * x * b, t);
    (x, y, bad + worse)
}

/// 1/d for a pivot without the right sign. Round-off alone can turn a sign; the pivot is then mirrored, which perturbs
/// the matrix by as little as that round-off. A vanished pivot, and one that is out of the system, takes its
/// unknown out.
#[cold]
fn replace_pivot(d: f64, sign: f64) -> (f64, u32) {
    let s = d * sign;
    if sign == 0.0 {
        (0.0, 0)
    } else if s < -SMALLEST && s.is_finite() {
        (-1.0 / d, 1)
    } else {
        (0.0, 1)
    }
}

/// Factors a front that is in `panel`.
#[inline(always)]
unsafe fn factor_assembled<S: Lanes>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    // SAFETY: the slices were checked against the shape.
    unsafe {
        if shape.is_small() {
            copy::<S>(w, shape.front_len(), panel);
        }
        factor_kernel::<S>(shape, panel, update, w, sign)
    }
}

/// Factors a front that is in `w` if it is small, else in `panel`.
#[inline(always)]
pub(in crate::linalg) unsafe fn factor_kernel<S: Lanes>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    // SAFETY: the slices were checked against the shape.
    unsafe {
        macro_rules! fixed {
            ($(($pivots:literal, $border:literal))*) => {
                match (S::FAST, shape.pivots, shape.ldu()) {
                    $((true, $pivots, $border) => {
                        return S::factor_fixed::<$pivots, $border>(panel, update, w, sign);
                    })*
                    _ => {}
                }
            };
        }
        usual_shapes!(fixed);
        S::factor_any(shape, panel, update, w, sign)
    }
}

#[inline(always)]
pub(in crate::linalg) unsafe fn factor_any_shape<S: Lanes>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    // SAFETY: as for `factor_kernel`.
    unsafe {
        if shape.is_large() {
            factor_in_panels::<S>(shape, panel, update, w, sign)
        } else if shape.is_small() {
            factor_in_cache::<S, true>(shape, panel, update, w, sign)
        } else {
            factor_in_cache::<S, false>(shape, panel, update, w, sign)
        }
    }
}

/// Fronts that fit into the first cache.
#[inline(always)]
unsafe fn factor_in_cache<S: Lanes, const PACKED: bool>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    let (n, ld, ldu, border) = (shape.pivots, shape.ld(), shape.ldu(), shape.border_at());
    // SAFETY: as for `factor_kernel`.
    unsafe {
        let wrong = factor_columns::<S, PACKED>(0, n, ld, panel, w, sign);
        let mut j = 0;
        while j < ldu {
            let (a, b) = (panel.add(border + j), w.add(border + j));
            S::strip::<4, PACKED>(ldu - j, update.add(j + j * ldu), ldu, a, ld, b, ld, n);
            j += 4;
        }
        wrong
    }
}

/// [`factor_in_cache`] of a usual shape, written out.
#[inline(always)]
pub(in crate::linalg) unsafe fn factor_written_out<S: Lanes, const PIVOTS: usize, const BORDER: usize>(
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    const { assert!(PIVOTS < 16 && BORDER < 16 && BORDER.is_multiple_of(4)) };
    const { assert!(pad(PIVOTS + 3) * PIVOTS + BORDER * PIVOTS <= SMALL) };
    let shape = Shape { pivots: PIVOTS, border: BORDER };
    let ld = shape.ld();
    let mut wrong = 0;
    // SAFETY: as for `factor_kernel`.
    unsafe {
        if PIVOTS >= 4 {
            wrong += column_block::<S, 4, true>(0, 0, ld, panel, w, sign);
        }
        if PIVOTS >= 8 {
            wrong += column_block::<S, 4, true>(0, 4, ld, panel, w, sign);
        }
        if PIVOTS >= 12 {
            wrong += column_block::<S, 4, true>(0, 8, ld, panel, w, sign);
        }
        wrong += last_columns::<S, true>(0, PIVOTS / 4 * 4, PIVOTS, ld, panel, w, sign);
        // Functions that are always inlined, here and in all kernels, rather than closures: a closure that the compiler leaves
        // outside does not inherit the instruction set, and every operation in it becomes a call.
        if BORDER > 0 {
            border_columns::<S, PIVOTS, BORDER>(0, panel, update, w);
        }
        if BORDER > 4 {
            border_columns::<S, PIVOTS, BORDER>(4, panel, update, w);
        }
        if BORDER > 8 {
            border_columns::<S, PIVOTS, BORDER>(8, panel, update, w);
        }
    }
    wrong
}

/// Four columns of the update matrix from `j` on, of a usual shape.
#[inline(always)]
unsafe fn border_columns<S: Lanes, const PIVOTS: usize, const BORDER: usize>(
    j: usize,
    panel: *const f64,
    update: *mut f64,
    w: *const f64,
) {
    let shape = Shape { pivots: PIVOTS, border: BORDER };
    let (ld, border) = (shape.ld(), shape.border_at());
    // SAFETY: as for `factor_kernel`; j < BORDER, a multiple of four.
    unsafe {
        let (a, b) = (panel.add(border + j), w.add(border + j));
        S::strip::<4, true>(BORDER - j, update.add(j + j * BORDER), BORDER, a, ld, b, ld, PIVOTS);
    }
}

/// Fewer than four columns from `j` on.
#[inline(always)]
unsafe fn last_columns<S: Lanes, const PACKED: bool>(
    first: usize,
    j: usize,
    end: usize,
    ld: usize,
    panel: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    // SAFETY: as for `column_block`.
    unsafe {
        match end - j {
            3 => column_block::<S, 3, PACKED>(first, j, ld, panel, w, sign),
            2 => column_block::<S, 2, PACKED>(first, j, ld, panel, w, sign),
            1 => column_block::<S, 1, PACKED>(first, j, ld, panel, w, sign),
            _ => 0,
        }
    }
}

/// Eliminates columns `first..end` (`first` a multiple of four), left-looking among themselves.
#[inline(always)]
pub(in crate::linalg) unsafe fn factor_columns<S: Lanes, const PACKED: bool>(
    first: usize,
    end: usize,
    ld: usize,
    panel: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    let mut wrong = 0;
    let mut j = first;
    // SAFETY: columns below `end` exist; blocks of four columns, then the rest.
    unsafe {
        while j + 4 <= end {
            wrong += column_block::<S, 4, PACKED>(first, j, ld, panel, w, sign);
            j += 4;
        }
        wrong + last_columns::<S, PACKED>(first, j, end, ld, panel, w, sign)
    }
}
