//! Four lanes of arithmetic, plain and in AVX2, and the choice between them.

// The only door to the instruction sets; see `kernels` for what it buys.
#![allow(unsafe_code)]

use super::kernels::{Shape, factor_any_shape, factor_written_out};
use super::kernels_fronts::{Group, Job, fold_group};
use super::kernels_tree::extend_add_kernel;
use super::symbolic::Run;

/// Which arithmetic the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kernels {
    /// The fastest the machine has, found at run time.
    #[default]
    Auto,
    /// Plain Rust: the same bits on every machine.
    Plain,
}

/// An instruction set that is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Set);

/// The sets there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// The instruction set of a setting, on this machine.
    pub fn detect(kernels: Kernels) -> Self {
        #[cfg(target_arch = "x86_64")]
        if kernels == Kernels::Auto
            && std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
        {
            return Self(Set::Avx2);
        }
        let _ = kernels;
        Self(Set::Plain)
    }

    pub(super) fn set(self) -> Set {
        self.0
    }

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2+fma",
        }
    }
}

impl Default for Isa {
    fn default() -> Self {
        Self::detect(Kernels::default())
    }
}

/// Runs plain code compiled for the machine's wide registers, where it has them. Nothing is fused or put in another order, so
/// the bits are those of `f` on its own; what it calls must be inlined into it to gain.
#[inline(always)]
pub fn wide<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        unsafe fn run<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set was found just now.
            return unsafe { run(f) };
        }
    }
    f()
}

/// Four numbers side by side.
///
/// # Safety
/// Pointers must be valid for four numbers, and the instruction set must be there.
pub(super) trait Lanes: Copy {
    /// Is the arithmetic so fast that strides and loops show beside it?
    const FAST: bool;
    /// Factors a front of a usual shape in a function of its own, where no pointer has to give way to those of the loop around it.
    unsafe fn factor_fixed<const PIVOTS: usize, const BORDER: usize>(
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32;
    /// Factors a front of any other shape, apart for the same reason.
    unsafe fn factor_any(
        shape: Shape,
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32;
    /// Adds a group of more than two bodies, apart for the same reason.
    unsafe fn fold_any(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64);
    /// Adds the update matrix of a child whose border is scattered, apart for the same reason.
    unsafe fn extend_add(
        runs: &[Run],
        child: Shape,
        from: *const f64,
        parent: Shape,
        panel: *mut f64,
        update: *mut f64,
    );
    unsafe fn splat(x: f64) -> Self;
    unsafe fn load(p: *const f64) -> Self;
    unsafe fn store(self, p: *mut f64);
    unsafe fn mul(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    /// self + a b
    unsafe fn add_mul(self, a: Self, b: Self) -> Self;
    /// self − a b
    unsafe fn sub_mul(self, a: Self, b: Self) -> Self;
    unsafe fn lanes(self) -> [f64; 4];
    /// Lane `lane` in all four.
    unsafe fn broadcast(self, lane: usize) -> Self;
    /// self with lane `lane` of `other`.
    unsafe fn pick(self, other: Self, lane: usize) -> Self;
    /// 1 / self
    unsafe fn invert(self) -> Self;
    /// self / b
    unsafe fn div(self, b: Self) -> Self;
    /// self + b
    unsafe fn add(self, b: Self) -> Self;
    /// Bit per lane that is not equal.
    unsafe fn differs(self, b: Self) -> u32;
    /// self where `b` is not zero, else zero.
    unsafe fn where_not_zero(self, b: Self) -> Self;
    /// The upper two lanes moved down, zeros above them.
    unsafe fn upper_down(self) -> Self;
    /// The lower two lanes moved up, zeros below them.
    unsafe fn lower_up(self) -> Self;
    /// The upper two lanes of self below the lower two of `b`.
    unsafe fn between(self, b: Self) -> Self;
    /// The four sums of four vectors.
    unsafe fn sums(v: [Self; 4]) -> Self;
    /// p[0..4] += self, p[4..6] += the upper half of `tail` (which holds entries 2..6).
    unsafe fn add_to_six(self, tail: Self, p: *mut f64);
}

#[derive(Clone, Copy)]
pub(super) struct Plain([f64; 4]);

impl Lanes for Plain {
    const FAST: bool = false;
    unsafe fn factor_fixed<const PIVOTS: usize, const BORDER: usize>(
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { factor_written_out::<Self, PIVOTS, BORDER>(panel, update, w, sign) }
    }
    unsafe fn factor_any(
        shape: Shape,
        panel: *mut f64,
        update: *mut f64,
        w: *mut f64,
        sign: *const f64,
    ) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { factor_any_shape::<Self>(shape, panel, update, w, sign) }
    }
    unsafe fn fold_any(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
        // SAFETY: the caller's promise.
        unsafe { fold_group::<Self, 0>(job, group, shape, panel, update) }
    }
    unsafe fn extend_add(
        runs: &[Run],
        child: Shape,
        from: *const f64,
        parent: Shape,
        panel: *mut f64,
        update: *mut f64,
    ) {
        // SAFETY: the caller's promise.
        unsafe { extend_add_kernel::<Self>(runs, child, from, parent, panel, update) }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        Self([x; 4])
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the caller vouches for four numbers at `p`.
        Self(unsafe { p.cast::<[f64; 4]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: the caller vouches for four numbers at `p`.
        unsafe { p.cast::<[f64; 4]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * b.0[i]))
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - b.0[i]))
    }
    #[inline(always)]
    unsafe fn add_mul(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + a.0[i] * b.0[i]))
    }
    #[inline(always)]
    unsafe fn sub_mul(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - a.0[i] * b.0[i]))
    }
    #[inline(always)]
    unsafe fn lanes(self) -> [f64; 4] {
        self.0
    }
    #[inline(always)]
    unsafe fn broadcast(self, lane: usize) -> Self {
        Self([self.0[lane]; 4])
    }
    #[inline(always)]
    unsafe fn pick(mut self, other: Self, lane: usize) -> Self {
        self.0[lane] = other.0[lane];
        self
    }
    #[inline(always)]
    unsafe fn invert(self) -> Self {
        Self(self.0.map(|x| 1.0 / x))
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] / b.0[i]))
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + b.0[i]))
    }
    #[inline(always)]
    unsafe fn differs(self, b: Self) -> u32 {
        (0..4).map(|i| u32::from(self.0[i] != b.0[i]) << i).sum()
    }
    #[inline(always)]
    unsafe fn where_not_zero(self, b: Self) -> Self {
        Self(std::array::from_fn(|i| if b.0[i] != 0.0 { self.0[i] } else { 0.0 }))
    }
    #[inline(always)]
    unsafe fn upper_down(self) -> Self {
        Self([self.0[2], self.0[3], 0.0, 0.0])
    }
    #[inline(always)]
    unsafe fn lower_up(self) -> Self {
        Self([0.0, 0.0, self.0[0], self.0[1]])
    }
    #[inline(always)]
    unsafe fn between(self, b: Self) -> Self {
        Self([self.0[2], self.0[3], b.0[0], b.0[1]])
    }
    #[inline(always)]
    unsafe fn sums(v: [Self; 4]) -> Self {
        Self(std::array::from_fn(|i| (v[i].0[0] + v[i].0[1]) + (v[i].0[2] + v[i].0[3])))
    }
    #[inline(always)]
    unsafe fn add_to_six(self, tail: Self, p: *mut f64) {
        // SAFETY: the caller vouches for six numbers at `p`.
        unsafe {
            for i in 0..4 {
                *p.add(i) += self.0[i];
            }
            *p.add(4) += tail.0[2];
            *p.add(5) += tail.0[3];
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use super::{
        Group, Job, Lanes, Run, Shape, extend_add_kernel, factor_any_shape, factor_written_out, fold_group,
    };
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub struct Avx2(__m256d);

    // SAFETY of every block below: the kernels that use `Avx2` are entered only through functions that
    // enable avx2 and fma after `Isa::detect` found them; pointers are the callers' promise.
    impl Lanes for Avx2 {
        const FAST: bool = true;
        #[inline(always)]
        unsafe fn factor_fixed<const PIVOTS: usize, const BORDER: usize>(
            panel: *mut f64,
            update: *mut f64,
            w: *mut f64,
            sign: *const f64,
        ) -> u32 {
            #[target_feature(enable = "avx2,fma")]
            #[inline(never)]
            unsafe fn apart<const PIVOTS: usize, const BORDER: usize>(
                panel: *mut f64,
                update: *mut f64,
                w: *mut f64,
                sign: *const f64,
            ) -> u32 {
                // SAFETY: the caller's promise.
                unsafe { factor_written_out::<Avx2, PIVOTS, BORDER>(panel, update, w, sign) }
            }
            // SAFETY: see above.
            unsafe { apart::<PIVOTS, BORDER>(panel, update, w, sign) }
        }
        #[inline(always)]
        unsafe fn factor_any(
            shape: Shape,
            panel: *mut f64,
            update: *mut f64,
            w: *mut f64,
            sign: *const f64,
        ) -> u32 {
            #[target_feature(enable = "avx2,fma")]
            #[inline(never)]
            unsafe fn apart(
                shape: Shape,
                panel: *mut f64,
                update: *mut f64,
                w: *mut f64,
                sign: *const f64,
            ) -> u32 {
                // SAFETY: the caller's promise.
                unsafe { factor_any_shape::<Avx2>(shape, panel, update, w, sign) }
            }
            // SAFETY: see above.
            unsafe { apart(shape, panel, update, w, sign) }
        }
        #[inline(always)]
        unsafe fn fold_any(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
            #[target_feature(enable = "avx2,fma")]
            #[inline(never)]
            unsafe fn apart(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
                // SAFETY: the caller's promise.
                unsafe { fold_group::<Avx2, 0>(job, group, shape, panel, update) }
            }
            // SAFETY: see above.
            unsafe { apart(job, group, shape, panel, update) }
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
            #[target_feature(enable = "avx2,fma")]
            #[inline(never)]
            unsafe fn apart(
                runs: &[Run],
                child: Shape,
                from: *const f64,
                parent: Shape,
                panel: *mut f64,
                update: *mut f64,
            ) {
                // SAFETY: the caller's promise.
                unsafe { extend_add_kernel::<Avx2>(runs, child, from, parent, panel, update) }
            }
            // SAFETY: see above.
            unsafe { apart(runs, child, from, parent, panel, update) }
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
}

/// Compiles a kernel for both instruction sets and calls the one of `isa`.
macro_rules! dispatch {
    ($isa:expr, $kernel:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)?) => {{
        use $crate::linalg::kernels_lanes::*;
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the features are enabled on this function; pointers are the caller's promise.
            unsafe { $kernel::<avx2::Avx2>($($arg),*) }
        }
        match $isa.set() {
            // SAFETY: lengths were checked by the caller of this macro.
            Set::Plain => unsafe { $kernel::<Plain>($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: lengths as above; `Set::Avx2` exists only where detection found the features.
            Set::Avx2 => unsafe { avx2($($arg),*) },
        }
    }};
}

pub(super) use dispatch;
