//! Four lanes of arithmetic in AVX2 with fused multiply–add, and eight where AVX-512 is there and pays.

// The only door to the instruction sets; see `kernels` for what it buys.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::avx512;
use super::fronts::{Group, Job, fold_group};
use super::lanes::Lanes;
use super::passing::extend_add_kernel;
use super::rows::{FoldSide, fold_pair_in_fours};
use super::tiles::strip_in_fours;
use super::{Below, Shape, factor_any_shape, factor_written_out};
use crate::linalg::symbolic::Run;
use std::arch::x86_64::*;

/// If `WIDE`, with AVX-512 beside it: loops over many rows take eight at once.
#[derive(Clone, Copy)]
pub struct Avx2<const WIDE: bool = false>(__m256d);

// SAFETY of every block below: the kernels that use `Avx2` are entered only through functions that
// enable avx2 and fma (if `WIDE`, avx512f and avx512vl too) after `Isa::detect` found them; pointers are the callers' promise.
impl<const WIDE: bool> Lanes for Avx2<WIDE> {
    const FAST: bool = true;
    const ROWS: usize = if WIDE { avx512::ROWS } else { 12 };
    #[inline(always)]
    unsafe fn strip<const W: usize, const PACKED: bool>(
        rows: usize,
        c: *mut f64,
        ldc: usize,
        a: *const f64,
        lda: usize,
        b: *const f64,
        ldb: usize,
        k: usize,
    ) {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => avx512::strip::<W, PACKED>(rows, c, ldc, a, lda, b, ldb, k),
                false => strip_in_fours::<Self, W, PACKED>(rows, c, ldc, a, lda, b, ldb, k),
            }
        }
    }
    #[inline(always)]
    unsafe fn rows_below<const W: usize>(below: &Below, inverse: &[Self; 4], factor: &[[Self; 4]; 4]) {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => avx512::rows_below::<Self, W>(below, inverse, factor),
                false => below.in_fours::<Self, W>(inverse, factor),
            }
        }
    }
    #[inline(always)]
    unsafe fn factor_fixed<const PIVOTS: usize, const BORDER: usize>(
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32 {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => wide::factor_fixed::<PIVOTS, BORDER>(panel, update, w, sign),
                false => narrow::factor_fixed::<PIVOTS, BORDER>(panel, update, w, sign),
            }
        }
    }
    #[inline(always)]
    unsafe fn factor_any(
        shape: Shape,
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32 {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => wide::factor_any(shape, panel, update, w, sign),
                false => narrow::factor_any(shape, panel, update, w, sign),
            }
        }
    }
    #[inline(always)]
    unsafe fn fold_any(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => wide::fold_any(job, group, shape, panel, update),
                false => narrow::fold_any(job, group, shape, panel, update),
            }
        }
    }
    #[inline(always)]
    unsafe fn extend_add(
        runs: &[Run],
        child: Shape,
        from: *const f64,
        parent: Shape,
        panel: *mut f64,
        update: *mut f64,
    ) {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => wide::extend_add(runs, child, from, parent, panel, update),
                false => narrow::extend_add(runs, child, from, parent, panel, update),
            }
        }
    }
    #[inline(always)]
    unsafe fn fold_pair(rows: usize, weight: *const f64, across: FoldSide, down: FoldSide) {
        // SAFETY: see above.
        unsafe {
            match WIDE {
                true => avx512::fold_pair(rows, weight, across, down),
                false => fold_pair_in_fours::<Self>(rows, weight, across, down),
            }
        }
    }
    #[inline(always)]
    unsafe fn stream(to: *mut f64, n: usize, from: *const f64) {
        // SAFETY: see above; such stores go to whole fours only.
        unsafe {
            if !to.addr().is_multiple_of(32) {
                return std::ptr::copy_nonoverlapping(from, to, n);
            }
            let mut i = 0;
            if WIDE && to.addr().is_multiple_of(64) {
                i = avx512::stream(to, n, from);
            }
            while i < n {
                _mm256_stream_pd(to.add(i), _mm256_loadu_pd(from.add(i)));
                i += 4;
            }
        }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_set1_pd(x) })
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_mul_pd(self.0, b.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_sub_pd(self.0, b.0) })
    }
    #[inline(always)]
    unsafe fn add_mul(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fmadd_pd(a.0, b.0, self.0) })
    }
    #[inline(always)]
    unsafe fn sub_mul(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fnmadd_pd(a.0, b.0, self.0) })
    }
    #[inline(always)]
    unsafe fn lanes(self) -> [f64; 4] {
        // SAFETY: both are four numbers.
        unsafe { std::mem::transmute(self.0) }
    }
    #[inline(always)]
    unsafe fn broadcast(self, lane: usize) -> Self {
        // SAFETY: see above. `lane` is a constant wherever this is inlined.
        unsafe {
            Self(match lane {
                0 => _mm256_permute4x64_pd::<0x00>(self.0),
                1 => _mm256_permute4x64_pd::<0x55>(self.0),
                2 => _mm256_permute4x64_pd::<0xaa>(self.0),
                _ => _mm256_permute4x64_pd::<0xff>(self.0),
            })
        }
    }
    #[inline(always)]
    unsafe fn pick(self, other: Self, lane: usize) -> Self {
        // SAFETY: see above. `lane` is a constant wherever this is inlined.
        unsafe {
            Self(match lane {
                0 => _mm256_blend_pd::<1>(self.0, other.0),
                1 => _mm256_blend_pd::<2>(self.0, other.0),
                2 => _mm256_blend_pd::<4>(self.0, other.0),
                _ => _mm256_blend_pd::<8>(self.0, other.0),
            })
        }
    }
    #[inline(always)]
    unsafe fn invert(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_div_pd(_mm256_set1_pd(1.0), self.0)) }
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_div_pd(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_add_pd(self.0, b.0) })
    }
    #[inline(always)]
    unsafe fn differs(self, b: Self) -> u32 {
        // SAFETY: see above. Not a number differs from everything.
        unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NEQ_UQ>(self.0, b.0)) as u32 }
    }
    #[inline(always)]
    unsafe fn where_not_zero(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let there = _mm256_cmp_pd::<_CMP_NEQ_UQ>(b.0, _mm256_setzero_pd());
            Self(_mm256_and_pd(self.0, there))
        }
    }
    #[inline(always)]
    unsafe fn upper_down(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_permute2f128_pd::<0x81>(self.0, self.0)) }
    }
    #[inline(always)]
    unsafe fn lower_up(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_insertf128_pd::<1>(_mm256_setzero_pd(), _mm256_castpd256_pd128(self.0))) }
    }
    #[inline(always)]
    unsafe fn between(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_permute2f128_pd::<0x21>(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn sums(v: [Self; 4]) -> Self {
        // SAFETY: see above. Two horizontal adds, then the halves are crossed and added.
        unsafe {
            let a = _mm256_hadd_pd(v[0].0, v[1].0);
            let b = _mm256_hadd_pd(v[2].0, v[3].0);
            let low = _mm256_blend_pd::<0b1100>(a, b);
            let high = _mm256_permute2f128_pd::<0x21>(a, b);
            Self(_mm256_add_pd(low, high))
        }
    }
    #[inline(always)]
    unsafe fn add_to_six(self, tail: Self, p: *mut f64) {
        // SAFETY: see above; six numbers at `p`.
        unsafe {
            _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), self.0));
            let high = _mm256_extractf128_pd::<1>(tail.0);
            let q = p.add(4);
            _mm_storeu_pd(q, _mm_add_pd(_mm_loadu_pd(q), high));
        }
    }
}

/// Functions that are to stay outside of the loops that call them, compiled for one instruction set. Fronts of a usual shape take
/// four rows at once in both: eight find too little to do.
macro_rules! apart {
    ($name:ident, $features:literal, $lanes:ty) => {
        mod $name {
            use super::*;

            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(in crate::linalg) unsafe fn factor_fixed<const PIVOTS: usize, const BORDER: usize>(
                panel: *mut f64,
                update: *mut f64,
                w: *mut f64,
                sign: *const f64,
            ) -> u32 {
                // SAFETY: the caller's promise.
                unsafe { factor_written_out::<Avx2, PIVOTS, BORDER>(panel, update, w, sign) }
            }

            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(in crate::linalg) unsafe fn factor_any(
                shape: Shape,
                panel: *mut f64,
                update: *mut f64,
                w: *mut f64,
                sign: *const f64,
            ) -> u32 {
                // SAFETY: the caller's promise.
                unsafe { factor_any_shape::<$lanes>(shape, panel, update, w, sign) }
            }

            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(in crate::linalg) unsafe fn fold_any(
                job: &Job<'_>,
                group: &Group,
                shape: Shape,
                panel: *mut f64,
                update: *mut f64,
            ) {
                // SAFETY: the caller's promise.
                unsafe { fold_group::<$lanes, 0>(job, group, shape, panel, update) }
            }

            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(in crate::linalg) unsafe fn extend_add(
                runs: &[Run],
                child: Shape,
                from: *const f64,
                parent: Shape,
                panel: *mut f64,
                update: *mut f64,
            ) {
                // SAFETY: the caller's promise.
                unsafe { extend_add_kernel::<$lanes>(runs, child, from, parent, panel, update) }
            }
        }
    };
}

apart!(narrow, "avx2,fma", Avx2);
apart!(wide, "avx2,fma,avx512f,avx512vl", Avx2<true>);
