//! Four lanes of arithmetic, plain and in AVX2, eight where AVX-512 pays, and the choice between them.

// The only door to the instruction sets; see `kernels` for what it buys.
#![allow(unsafe_code)]
// A matrix in a kernel is a pointer and a stride.
#![allow(clippy::too_many_arguments)]

#[cfg(target_arch = "x86_64")]
pub(in crate::linalg) use super::avx2::Avx2;

use super::fronts::{Group, Job, fold_group};
use super::passing::extend_add_kernel;
use super::rows::{FoldSide, fold_pair_in_fours};
use super::tiles::strip_in_fours;
use super::{Below, Shape, factor_any_shape, factor_written_out};
use crate::linalg::symbolic::Run;

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
pub(in crate::linalg) enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// As AVX2, and eight lanes at once in the elimination of fronts that are not small: the same bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The instruction set of a setting, on this machine.
    pub fn detect(kernels: Kernels) -> Self {
        #[cfg(target_arch = "x86_64")]
        if kernels == Kernels::Auto
            && std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
        {
            let wide = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl");
            return Self(if wide { Set::Avx512 } else { Set::Avx2 });
        }
        let _ = kernels;
        Self(Set::Plain)
    }

    /// The same bits without AVX-512, if that is what this is: for tests of just that.
    #[cfg(test)]
    pub(crate) fn narrower(self) -> Option<Self> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Some(Self(Set::Avx2)),
            _ => None,
        }
    }

    pub(in crate::linalg) fn set(self) -> Set {
        self.0
    }

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
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
pub fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
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
pub(in crate::linalg) trait Lanes: Copy {
    /// Is the arithmetic so fast that strides and loops show beside it?
    const FAST: bool;
    /// Rows of L that a large front packs together.
    const ROWS: usize = 12;
    /// c (rows × W) −= a (rows × k) bᵀ (W × k), rows a multiple of four. If `PACKED`, a is of a packed panel.
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
        // SAFETY: the caller's promise.
        unsafe { strip_in_fours::<Self, W, PACKED>(rows, c, ldc, a, lda, b, ldb, k) }
    }
    /// Eliminates the rows below a block of W columns, given 1/D and L D of the block, each in all lanes.
    #[inline(always)]
    unsafe fn rows_below<const W: usize>(below: &Below, inverse: &[Self; 4], factor: &[[Self; 4]; 4]) {
        // SAFETY: the caller's promise.
        unsafe { below.in_fours::<Self, W>(inverse, factor) }
    }
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
    /// Adds Jᵀ (C+D)⁻¹ J of rows on two bodies, of which `across` comes first in the front.
    #[inline(always)]
    unsafe fn fold_pair(rows: usize, weight: *const f64, across: FoldSide, down: FoldSide) {
        // SAFETY: the caller's promise.
        unsafe { fold_pair_in_fours::<Self>(rows, weight, across, down) }
    }
    /// to = from, n numbers (a multiple of four), past the caches where that is possible.
    unsafe fn stream(to: *mut f64, n: usize, from: *const f64);
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
pub(in crate::linalg) struct Plain([f64; 4]);

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
    unsafe fn stream(to: *mut f64, n: usize, from: *const f64) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, n) }
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

/// Compiles a kernel for four lanes in plain Rust, in AVX2 and in AVX2 with the registers of AVX-512, and calls the one of `isa`.
macro_rules! dispatch {
    ($isa:expr, $kernel:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)?) => {{
        use $crate::linalg::kernels::lanes::*;
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the features are enabled on this function; pointers are the caller's promise.
            unsafe { $kernel::<Avx2>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,avx512f,avx512vl")]
        unsafe fn avx512($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: as above.
            unsafe { $kernel::<Avx2<true>>($($arg),*) }
        }
        match $isa.set() {
            // SAFETY: lengths were checked by the caller of this macro.
            Set::Plain => unsafe { $kernel::<Plain>($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: lengths as above; these sets exist only where detection found the features.
            Set::Avx2 => unsafe { avx2($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Set::Avx512 => unsafe { avx512($($arg),*) },
        }
    }};
}

pub(in crate::linalg) use dispatch;
