//! Tiles of products: what dense elimination spends its time on.

// As in `kernels`: tiles live in registers.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::lanes::Lanes;

/// One tile in registers: c (4V × W) −= a (4V × k) bᵀ (W × k). If `PACKED`, a is of a packed panel: every four columns have four
/// rows less than those before.
#[inline(always)]
unsafe fn tile<S: Lanes, const V: usize, const W: usize, const PACKED: bool>(
    c: *mut f64,
    ldc: usize,
    mut a: *const f64,
    mut lda: usize,
    mut b: *const f64,
    ldb: usize,
    k: usize,
) {
    // SAFETY: the caller vouches for 4V rows and W columns at every pointer.
    unsafe {
        let mut sum = [[S::splat(0.0); V]; W];
        macro_rules! columns {
            ($n:expr) => {
                for _ in 0..$n {
                    let mut column = [S::splat(0.0); V];
                    for v in 0..V {
                        column[v] = S::load(a.add(4 * v));
                    }
                    for q in 0..W {
                        let scale = S::splat(*b.add(q));
                        for v in 0..V {
                            sum[q][v] = sum[q][v].add_mul(column[v], scale);
                        }
                    }
                    a = a.add(lda);
                    b = b.add(ldb);
                }
            };
        }
        if PACKED {
            for _ in 0..k / 4 {
                columns!(4);
                lda -= 4;
                a = a.sub(4);
            }
            columns!(k % 4);
        } else {
            columns!(k);
        }
        for q in 0..W {
            for v in 0..V {
                let p = c.add(q * ldc + 4 * v);
                S::load(p).sub(sum[q][v]).store(p);
            }
        }
    }
}

/// `rows` (a multiple of four) rows of tiles, W columns wide, in four lanes.
#[inline(always)]
pub(in crate::linalg) unsafe fn strip_in_fours<S: Lanes, const W: usize, const PACKED: bool>(
    rows: usize,
    c: *mut f64,
    ldc: usize,
    a: *const f64,
    lda: usize,
    b: *const f64,
    ldb: usize,
    k: usize,
) {
    // SAFETY: as for `tile`; the tiles partition the rows.
    unsafe {
        let mut r = 0;
        while r + 12 <= rows {
            tile::<S, 3, W, PACKED>(c.add(r), ldc, a.add(r), lda, b, ldb, k);
            r += 12;
        }
        match rows - r {
            8 => tile::<S, 2, W, PACKED>(c.add(r), ldc, a.add(r), lda, b, ldb, k),
            4 => tile::<S, 1, W, PACKED>(c.add(r), ldc, a.add(r), lda, b, ldb, k),
            _ => {}
        }
    }
}

#[inline(always)]
pub(in crate::linalg) unsafe fn multiply_kernel<S: Lanes>(
    m: usize,
    n: usize,
    k: usize,
    a: *const f64,
    b: *const f64,
    c: *mut f64,
) {
    // SAFETY: m and n are multiples of four; the slices were checked.
    unsafe {
        let mut j = 0;
        while j < n {
            S::strip::<4, false>(m, c.add(j * m), m, a, m, b.add(j), n, k);
            j += 4;
        }
    }
}
