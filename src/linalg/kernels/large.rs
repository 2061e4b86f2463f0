//! Fronts that outgrow the first cache.

// As in `kernels`: tiles live in registers.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::lanes::Lanes;
use super::{PANEL, Shape, factor_columns};

/// Rows of L that are packed together, at most.
pub(in crate::linalg) const ROWS: usize = 24;

/// Fronts that do not fit into the first cache: panels of columns, and updates from packed strips.
#[inline(always)]
pub(in crate::linalg) unsafe fn factor_in_panels<S: Lanes>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
) -> u32 {
    let (n, ld, ldu, border) = (shape.pivots, shape.ld(), shape.ldu(), shape.border_at());
    let mut wrong = 0;
    let mut first = 0;
    // SAFETY: the slices were checked against the shape; `w` has room for the strips behind its panel.
    unsafe {
        let strips = w.add(shape.panel_len());
        let rows = strips.add(PANEL * ld);
        while first < n {
            let end = (first + PANEL).min(n);
            let k = end - first;
            wrong += factor_columns::<S, false>(first, end, ld, panel, w, sign);
            let (l, b) = (panel.add(first * ld), w.add(first * ld));
            pack_strips::<S>(ld, k, b, strips);
            if end < n {
                let whole = n / 4 * 4;
                let c = Packed { l, ld, k, strips, rows };
                c.subtract::<S>(end, ld, end, whole, panel.add(end + end * ld), ld);
                let at = whole + whole * ld;
                match n - whole {
                    3 => S::strip::<3, false>(
                        ld - whole,
                        panel.add(at),
                        ld,
                        l.add(whole),
                        ld,
                        b.add(whole),
                        ld,
                        k,
                    ),
                    2 => S::strip::<2, false>(
                        ld - whole,
                        panel.add(at),
                        ld,
                        l.add(whole),
                        ld,
                        b.add(whole),
                        ld,
                        k,
                    ),
                    1 => S::strip::<1, false>(
                        ld - whole,
                        panel.add(at),
                        ld,
                        l.add(whole),
                        ld,
                        b.add(whole),
                        ld,
                        k,
                    ),
                    _ => {}
                }
            }
            let c = Packed { l, ld, k, strips, rows };
            c.subtract::<S>(border, ld, border, ld, update, ldu);
            first = end;
        }
    }
    wrong
}

/// Columns of W by strips of four rows: what a tile needs of it stands together.
#[inline(always)]
unsafe fn pack_strips<S: Lanes>(ld: usize, k: usize, w: *const f64, strips: *mut f64) {
    let mut r = 0;
    // SAFETY: ld × k numbers at both.
    unsafe {
        while r < ld {
            for c in 0..k {
                S::load(w.add(r + c * ld)).store(strips.add(r * k + 4 * c));
            }
            r += 4;
        }
    }
}

/// One panel of L and its packed W.
struct Packed {
    l: *const f64,
    ld: usize,
    k: usize,
    strips: *const f64,
    rows: *mut f64,
}

impl Packed {
    /// c −= L Wᵀ on the lower part of rows `top..bottom` and columns `left..right` (local rows, multiples of four). `c`
    /// points to row `top` of column `left`.
    #[inline(always)]
    unsafe fn subtract<S: Lanes>(
        &self,
        top: usize,
        bottom: usize,
        left: usize,
        right: usize,
        c: *mut f64,
        ldc: usize,
    ) {
        let mut r = top;
        while r < bottom {
            let n = (bottom - r).min(S::ROWS);
            // SAFETY: rows r..r + n exist in L and in c; strips hold every row.
            unsafe {
                for q in 0..self.k {
                    for v in (0..n).step_by(4) {
                        S::load(self.l.add(r + v + q * self.ld)).store(self.rows.add(n * q + v));
                    }
                }
                let mut j = left;
                while j < right && j < r + n {
                    // Where the diagonal crosses, rows above it are left out.
                    let above = j.saturating_sub(r);
                    let to = c.add(r + above - top + (j - left) * ldc);
                    let (a, b) = (self.rows.add(above), self.strips.add(j * self.k));
                    S::strip::<4, false>(n - above, to, ldc, a, n, b, 4, self.k);
                    j += 4;
                }
            }
            r += n;
        }
    }
}
