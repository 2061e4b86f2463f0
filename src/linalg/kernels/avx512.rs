//! Eight lanes in AVX-512, for the loops that elimination of larger fronts spends its time in.
//!
//! Every number is made of the same fused operations in the same order as in four lanes, so the bits are the same on a machine
//! without AVX-512.

// As in `kernels`: tiles live in registers.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::Below;
use super::lanes::Lanes;
use super::rows::FoldSide;
use std::arch::x86_64::*;

/// Rows of a whole tile: three registers.
pub(in crate::linalg) const ROWS: usize = 24;

/// One tile in registers: c (8V rows, four more if `HALF`, × W) −= a bᵀ; see `tile` in four lanes.
#[inline(always)]
unsafe fn tile<const V: usize, const HALF: bool, const W: usize, const PACKED: bool>(
    c: *mut f64,
    ldc: usize,
    mut a: *const f64,
    mut lda: usize,
    mut b: *const f64,
    ldb: usize,
    k: usize,
) {
    // SAFETY: the caller vouches for the rows and columns at every pointer, and for AVX-512.
    unsafe {
        let mut sum = [[_mm512_setzero_pd(); V]; W];
        let mut half = [_mm256_setzero_pd(); W];
        macro_rules! columns {
            ($n:expr) => {
                for _ in 0..$n {
                    let mut column = [_mm512_setzero_pd(); V];
                    for v in 0..V {
                        column[v] = _mm512_loadu_pd(a.add(8 * v));
                    }
                    let last = if HALF { _mm256_loadu_pd(a.add(8 * V)) } else { _mm256_setzero_pd() };
                    for q in 0..W {
                        let scale = *b.add(q);
                        for v in 0..V {
                            sum[q][v] = _mm512_fmadd_pd(column[v], _mm512_set1_pd(scale), sum[q][v]);
                        }
                        if HALF {
                            half[q] = _mm256_fmadd_pd(last, _mm256_set1_pd(scale), half[q]);
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
            let p = c.add(q * ldc);
            for v in 0..V {
                let at = p.add(8 * v);
                _mm512_storeu_pd(at, _mm512_sub_pd(_mm512_loadu_pd(at), sum[q][v]));
            }
            if HALF {
                let at = p.add(8 * V);
                _mm256_storeu_pd(at, _mm256_sub_pd(_mm256_loadu_pd(at), half[q]));
            }
        }
    }
}

/// `rows` (a multiple of four) rows of tiles, W columns wide. A function of its own: there are too many tiles for them to be written
/// out wherever a strip is needed.
///
/// # Safety
/// As for `Lanes::strip`, and AVX-512 must be there.
#[target_feature(enable = "avx2,fma,avx512f,avx512vl")]
#[inline(never)]
pub(in crate::linalg) unsafe fn strip<const W: usize, const PACKED: bool>(
    rows: usize,
    c: *mut f64,
    ldc: usize,
    a: *const f64,
    lda: usize,
    b: *const f64,
    ldb: usize,
    k: usize,
) {
    let mut r = 0;
    // SAFETY: the caller's promise; the tiles partition the rows.
    unsafe {
        macro_rules! tile_here {
            ($v:literal, $half:literal) => {
                tile::<$v, $half, W, PACKED>(c.add(r), ldc, a.add(r), lda, b, ldb, k)
            };
        }
        // Four rows more stay with the last tile: alone they would wait for their own sums.
        while r + ROWS + 8 <= rows {
            tile_here!(3, false);
            r += ROWS;
        }
        match rows - r {
            28 => tile_here!(3, true),
            24 => tile_here!(3, false),
            20 => tile_here!(2, true),
            16 => tile_here!(2, false),
            12 => tile_here!(1, true),
            8 => tile_here!(1, false),
            4 => tile_here!(0, true),
            _ => {}
        }
    }
}

/// The rows below a block of W columns, eight at a time, the last four in four lanes.
///
/// # Safety
/// As for `Lanes::rows_below`, and AVX-512 must be there.
#[inline(always)]
pub(in crate::linalg) unsafe fn rows_below<S: Lanes, const W: usize>(
    below: &Below,
    inverse: &[S; 4],
    factor: &[[S; 4]; 4],
) {
    let &Below { from, w, l, ld, lead, first } = below;
    let mut r = first;
    // SAFETY: the caller's promise; rows up to `ld` exist.
    unsafe {
        let mut over = [_mm512_setzero_pd(); W];
        let mut scale = [[_mm512_setzero_pd(); W]; W];
        for c in 0..W {
            over[c] = _mm512_set1_pd(inverse[c].lanes()[0]);
            for q in 0..c {
                scale[c][q] = _mm512_set1_pd(factor[c][q].lanes()[0]);
            }
        }
        while r + 8 <= ld {
            let mut done = [_mm512_setzero_pd(); W];
            for c in 0..W {
                let mut column = _mm512_loadu_pd(from.add(r + c * ld));
                for q in 0..c {
                    column = _mm512_fnmadd_pd(done[q], scale[c][q], column);
                }
                done[c] = _mm512_mul_pd(column, over[c]);
                _mm512_storeu_pd(w.add(r + c * ld), column);
                _mm512_storeu_pd(l.add(r + c * lead), done[c]);
            }
            r += 8;
        }
        Below { first: r, ..*below }.in_fours::<S, W>(inverse, factor);
    }
}

/// Stores whole cache lines past the caches, as many as there are. Returns how many numbers that were.
///
/// # Safety
/// n numbers at both, `to` begins a line, and AVX-512 must be there.
#[inline(always)]
pub(in crate::linalg) unsafe fn stream(to: *mut f64, n: usize, from: *const f64) -> usize {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + 8 <= n {
            _mm512_stream_pd(to.add(i), _mm512_loadu_pd(from.add(i)));
            i += 8;
        }
    }
    i
}

/// Folds rows on two bodies, all three blocks in one pass: with 32 registers the sums of all stay in them.
///
/// # Safety
/// As for `Lanes::fold_pair`, and AVX-512 must be there.
#[target_feature(enable = "avx2,fma,avx512f,avx512vl")]
#[inline(never)]
pub(in crate::linalg) unsafe fn fold_pair(rows: usize, weight: *const f64, across: FoldSide, down: FoldSide) {
    // SAFETY: six numbers at every row of both; lanes behind them are not loaded.
    unsafe {
        let mut first = [_mm512_setzero_pd(); 6];
        let mut both = [_mm512_setzero_pd(); 6];
        let mut second = [_mm512_setzero_pd(); 6];
        let (mut a, mut b) = (across.numbers, down.numbers);
        for r in 0..rows {
            let w = _mm512_set1_pd(*weight.add(r));
            let wa = _mm512_mul_pd(_mm512_maskz_loadu_pd(SIX, a), w);
            let wb = _mm512_mul_pd(_mm512_maskz_loadu_pd(SIX, b), w);
            for c in 0..6 {
                let (over, under) = (_mm512_set1_pd(*a.add(c)), _mm512_set1_pd(*b.add(c)));
                first[c] = _mm512_fmadd_pd(wa, over, first[c]);
                both[c] = _mm512_fmadd_pd(wb, over, both[c]);
                second[c] = _mm512_fmadd_pd(wb, under, second[c]);
            }
            (a, b) = (a.add(12), b.add(12));
        }
        for c in 0..6 {
            add_lower(first[c], c, across.target.add(c * across.ld));
            add_lower(both[c], 0, across.below.add(c * across.ld));
            add_lower(second[c], c, down.target.add(c * down.ld));
        }
    }
}

/// Lanes of six numbers.
const SIX: __mmask8 = 0b11_1111;

/// p[0..6] += six numbers, of which those before the `first` need not be added.
#[inline(always)]
unsafe fn add_lower(six: __m512d, first: usize, p: *mut f64) {
    // SAFETY: six numbers at `p`. In halves, as later loads are: a load waits long for a store that has only a part of it.
    unsafe {
        if first < 4 {
            _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), _mm512_castpd512_pd256(six)));
        }
        let q = p.add(4);
        let high = _mm256_castpd256_pd128(_mm512_extractf64x4_pd::<1>(six));
        _mm_storeu_pd(q, _mm_add_pd(_mm_loadu_pd(q), high));
    }
}
