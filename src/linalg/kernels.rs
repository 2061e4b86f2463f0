//! Dense kernels of the multifrontal factorization, in four lanes.
//!
//! One source, two instruction sets: the kernels are written once over [`Lanes`] and compiled for plain Rust
//! (multiply, then add: the same bits on every machine) and for AVX2 with fused multiply–add (chosen at run
//! time). Everything is column-major; leading dimensions are multiples of four and padding rows are zero,
//! so no kernel has a remainder loop. What lies above the diagonal of a panel is scratch.
//!
//! A panel holds unit-lower L of A = L D Lᵀ; `w` holds L D, which is the other factor of every update.

// Measured on fronts of 24 columns and 48 rows: 3.5 times the speed of bounds-checked slices over the same
// lanes (`cargo bench --bench kernels -- --table`), because the tiles live in registers.
#![allow(unsafe_code)]

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
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

    /// Numbers in the panel.
    pub fn panel_len(self) -> usize {
        self.ld() * self.pivots
    }

    /// Numbers in the update matrix.
    pub fn update_len(self) -> usize {
        self.ldu() * self.ldu()
    }

    /// Multiplications and additions of the factorization of this front.
    pub fn flops(self) -> u64 {
        let (s, r) = (self.pivots as u64, self.border as u64);
        s * s * s / 3 + s * s * r + s * r * (r + 1)
    }
}

/// Rounds up to a multiple of four.
pub const fn pad(n: usize) -> usize {
    n.div_ceil(4) * 4
}

/// Four numbers side by side.
///
/// # Safety
/// Pointers must be valid for four numbers, and the instruction set must be there.
trait Lanes: Copy {
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
    /// The four sums of four vectors.
    unsafe fn sums(v: [Self; 4]) -> [f64; 4];
    /// p[0..4] += self, p[4..6] += the upper half of `tail` (which holds entries 2..6).
    unsafe fn add_to_six(self, tail: Self, p: *mut f64);
}

#[derive(Clone, Copy)]
struct Plain([f64; 4]);

impl Lanes for Plain {
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
    unsafe fn sums(v: [Self; 4]) -> [f64; 4] {
        std::array::from_fn(|i| (v[i].0[0] + v[i].0[1]) + (v[i].0[2] + v[i].0[3]))
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
mod avx2 {
    use super::Lanes;
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub struct Avx2(__m256d);

    // SAFETY of every block below: the kernels that use `Avx2` are entered only through functions that
    // enable avx2 and fma after `Isa::detect` found them; pointers are the callers' promise.
    impl Lanes for Avx2 {
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
        unsafe fn sums(v: [Self; 4]) -> [f64; 4] {
            // SAFETY: see above. Two horizontal adds, then the halves are crossed and added.
            unsafe {
                let a = _mm256_hadd_pd(v[0].0, v[1].0);
                let b = _mm256_hadd_pd(v[2].0, v[3].0);
                let low = _mm256_blend_pd::<0b1100>(a, b);
                let high = _mm256_permute2f128_pd::<0x21>(a, b);
                Self(_mm256_add_pd(low, high)).lanes()
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
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the features are enabled on this function; pointers are the caller's promise.
            unsafe { $kernel::<avx2::Avx2>($($arg),*) }
        }
        match $isa.0 {
            // SAFETY: lengths were checked by the caller of this macro.
            Set::Plain => unsafe { $kernel::<Plain>($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: lengths as above; `Set::Avx2` exists only where detection found the features.
            Set::Avx2 => unsafe { avx2($($arg),*) },
        }
    }};
}

/// Factors a front in place: L into `panel`, 1/D into `inverse_d`, and subtracts L D Lᵀ of the border from
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
    inverse_d: &mut [f64],
) -> u32 {
    assert!(
        panel.len() >= shape.panel_len()
            && w.len() >= shape.panel_len()
            && update.len() >= shape.update_len()
            && sign.len() >= shape.pivots
            && inverse_d.len() >= shape.pivots,
        "front slices shorter than their shape"
    );
    let (panel, update, w) = (panel.as_mut_ptr(), update.as_mut_ptr(), w.as_mut_ptr());
    let (sign, inverse_d) = (sign.as_ptr(), inverse_d.as_mut_ptr());
    dispatch!(isa, factor_kernel(shape: Shape, panel: *mut f64, update: *mut f64, w: *mut f64, sign: *const f64, inverse_d: *mut f64) -> u32)
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

/// Backward substitution: pivots of `x` become L⁻ᵀ (D⁻¹ x − L_borderᵀ x_border).
///
/// # Panics
/// If a slice is shorter than its shape asks for.
pub fn backward(isa: Isa, shape: Shape, panel: &[f64], inverse_d: &[f64], x: &mut [f64]) {
    assert!(panel.len() >= shape.panel_len() && x.len() >= shape.ld() && inverse_d.len() >= shape.pivots);
    let (panel, x, inverse_d) = (panel.as_ptr(), x.as_mut_ptr(), inverse_d.as_ptr());
    dispatch!(isa, backward_kernel(shape: Shape, panel: *const f64, inverse_d: *const f64, x: *mut f64));
}

/// Jacobian rows of one body: six numbers per row, `stride` numbers from row to row.
#[derive(Clone, Copy, Debug)]
pub struct Six<'a> {
    /// The rows, from the first of the six numbers on.
    pub numbers: &'a [f64],
    /// Numbers from row to row.
    pub stride: usize,
}

impl Six<'_> {
    fn holds(&self, rows: usize) -> bool {
        rows == 0 || self.numbers.len() >= (rows - 1) * self.stride + 6
    }
}

/// target += downᵀ diag(weight) across: a 6 × 6 block, column-major with leading dimension `ld`.
///
/// # Panics
/// If a slice is too short.
pub fn fold_six(isa: Isa, down: Six<'_>, across: Six<'_>, weight: &[f64], target: &mut [f64], ld: usize) {
    let rows = weight.len();
    assert!(down.holds(rows) && across.holds(rows) && target.len() >= 5 * ld + 6);
    let (a, b, stride) = (down.numbers.as_ptr(), across.numbers.as_ptr(), down.stride);
    assert!(across.stride == stride);
    let (weight, target) = (weight.as_ptr(), target.as_mut_ptr());
    dispatch!(isa, fold_kernel(rows: usize, stride: usize, a: *const f64, b: *const f64, weight: *const f64, target: *mut f64, ld: usize));
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

/// One tile in registers: c (4V × W) −= a (4V × k) bᵀ (W × k).
#[inline(always)]
unsafe fn tile<S: Lanes, const V: usize, const W: usize>(
    c: *mut f64,
    ldc: usize,
    mut a: *const f64,
    lda: usize,
    mut b: *const f64,
    ldb: usize,
    k: usize,
) {
    // SAFETY: the caller vouches for 4V rows and W columns at every pointer.
    unsafe {
        let mut sum = [[S::splat(0.0); V]; W];
        for _ in 0..k {
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
        for q in 0..W {
            for v in 0..V {
                let p = c.add(q * ldc + 4 * v);
                S::load(p).sub(sum[q][v]).store(p);
            }
        }
    }
}

/// `rows` (a multiple of four) rows of tiles, W columns wide.
#[inline(always)]
unsafe fn strip<S: Lanes, const W: usize>(
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
            tile::<S, 3, W>(c.add(r), ldc, a.add(r), lda, b, ldb, k);
            r += 12;
        }
        match rows - r {
            8 => tile::<S, 2, W>(c.add(r), ldc, a.add(r), lda, b, ldb, k),
            4 => tile::<S, 1, W>(c.add(r), ldc, a.add(r), lda, b, ldb, k),
            _ => {}
        }
    }
}

/// Eliminates W columns from `j` (a multiple of four): update by the columns before, 4 × 4 block, rows below.
#[inline(always)]
unsafe fn column_block<S: Lanes, const W: usize>(
    j: usize,
    ld: usize,
    panel: *mut f64,
    w: *mut f64,
    sign: *const f64,
    inverse_d: *mut f64,
) -> u32 {
    // SAFETY: j + W ≤ pivots, rows j..ld exist in every column, ld is a multiple of four.
    unsafe {
        if j > 0 {
            strip::<S, W>(ld - j, panel.add(j + j * ld), ld, panel.add(j), ld, w.add(j), ld, j);
        }
        let mut wrong = 0;
        let mut inverse = [0.0; W];
        let mut scaled = [[0.0; 4]; W];
        let mut l = [S::splat(0.0); W];
        for c in 0..W {
            let at = j + (j + c) * ld;
            let mut column = S::load(panel.add(at));
            for q in 0..c {
                column = column.sub_mul(l[q], S::splat(scaled[q][c]));
            }
            scaled[c] = column.lanes();
            let (inv, bad) = invert_pivot(scaled[c][c], *sign.add(j + c));
            wrong += bad;
            inverse[c] = inv;
            *inverse_d.add(j + c) = inv;
            l[c] = column.mul(S::splat(inv));
            column.store(w.add(at));
            l[c].store(panel.add(at));
        }
        let mut r = j + 4;
        while r < ld {
            let mut l = [S::splat(0.0); W];
            for c in 0..W {
                let at = r + (j + c) * ld;
                let mut column = S::load(panel.add(at));
                for q in 0..c {
                    column = column.sub_mul(l[q], S::splat(scaled[q][c]));
                }
                l[c] = column.mul(S::splat(inverse[c]));
                column.store(w.add(at));
                l[c].store(panel.add(at));
            }
            r += 4;
        }
        wrong
    }
}

/// 1/d for a pivot of known sign. Round-off alone can turn a sign; the pivot is then mirrored, which perturbs
/// the matrix by as little as that round-off. A vanished pivot takes its unknown out of the system.
#[inline(always)]
fn invert_pivot(d: f64, sign: f64) -> (f64, u32) {
    let s = d * sign;
    if s > 1e-290 {
        (1.0 / d, 0)
    } else if sign == 0.0 {
        (0.0, 0)
    } else if s < -1e-290 && s.is_finite() {
        (-1.0 / d, 1)
    } else {
        (0.0, 1)
    }
}

#[inline(always)]
unsafe fn factor_kernel<S: Lanes>(
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    w: *mut f64,
    sign: *const f64,
    inverse_d: *mut f64,
) -> u32 {
    let (n, ld, ldu) = (shape.pivots, shape.ld(), shape.ldu());
    let mut wrong = 0;
    // SAFETY: the slices were checked against the shape; blocks of four columns, then the rest.
    unsafe {
        let mut j = 0;
        while j + 4 <= n {
            wrong += column_block::<S, 4>(j, ld, panel, w, sign, inverse_d);
            j += 4;
        }
        wrong += match n - j {
            3 => column_block::<S, 3>(j, ld, panel, w, sign, inverse_d),
            2 => column_block::<S, 2>(j, ld, panel, w, sign, inverse_d),
            1 => column_block::<S, 1>(j, ld, panel, w, sign, inverse_d),
            _ => 0,
        };
        let border = shape.border_at();
        let mut j = 0;
        while j < ldu {
            strip::<S, 4>(
                ldu - j,
                update.add(j + j * ldu),
                ldu,
                panel.add(border + j),
                ld,
                w.add(border + j),
                ld,
                n,
            );
            j += 4;
        }
    }
    wrong
}

#[inline(always)]
unsafe fn forward_block<S: Lanes, const W: usize>(j: usize, ld: usize, panel: *const f64, x: *mut f64) {
    // SAFETY: rows j..ld exist in the panel's columns and in x; ld and j are multiples of four.
    unsafe {
        let mut head = S::load(x.add(j));
        let mut value = head.lanes();
        let mut scale = [S::splat(0.0); W];
        for c in 0..W {
            value[c] = head.lanes()[c];
            scale[c] = S::splat(value[c]);
            head = head.sub_mul(S::load(panel.add(j + (j + c) * ld)), scale[c]);
        }
        for c in 0..W {
            *x.add(j + c) = value[c];
        }
        let mut r = j + 4;
        while r < ld {
            let mut row = S::load(x.add(r));
            for c in 0..W {
                row = row.sub_mul(S::load(panel.add(r + (j + c) * ld)), scale[c]);
            }
            row.store(x.add(r));
            r += 4;
        }
    }
}

#[inline(always)]
unsafe fn forward_kernel<S: Lanes>(shape: Shape, panel: *const f64, x: *mut f64) {
    let (n, ld) = (shape.pivots, shape.ld());
    // SAFETY: the slices were checked against the shape.
    unsafe {
        let mut j = 0;
        while j + 4 <= n {
            forward_block::<S, 4>(j, ld, panel, x);
            j += 4;
        }
        match n - j {
            3 => forward_block::<S, 3>(j, ld, panel, x),
            2 => forward_block::<S, 2>(j, ld, panel, x),
            1 => forward_block::<S, 1>(j, ld, panel, x),
            _ => {}
        }
    }
}

#[inline(always)]
unsafe fn backward_block<S: Lanes, const W: usize>(
    j: usize,
    ld: usize,
    panel: *const f64,
    inverse_d: *const f64,
    x: *mut f64,
) {
    // SAFETY: as for `forward_block`.
    unsafe {
        let mut dot = [S::splat(0.0); 4];
        let mut r = j + 4;
        while r < ld {
            let row = S::load(x.add(r));
            for c in 0..W {
                dot[c] = dot[c].add_mul(S::load(panel.add(r + (j + c) * ld)), row);
            }
            r += 4;
        }
        let dot = S::sums(dot);
        let mut value = [0.0; W];
        for c in (0..W).rev() {
            let mut s = *x.add(j + c) * *inverse_d.add(j + c) - dot[c];
            for q in c + 1..W {
                s -= *panel.add(j + q + (j + c) * ld) * value[q];
            }
            value[c] = s;
        }
        for c in 0..W {
            *x.add(j + c) = value[c];
        }
    }
}

#[inline(always)]
unsafe fn backward_kernel<S: Lanes>(shape: Shape, panel: *const f64, inverse_d: *const f64, x: *mut f64) {
    let (n, ld) = (shape.pivots, shape.ld());
    // SAFETY: the slices were checked against the shape; blocks in reverse order.
    unsafe {
        let mut j = n / 4 * 4;
        match n - j {
            3 => backward_block::<S, 3>(j, ld, panel, inverse_d, x),
            2 => backward_block::<S, 2>(j, ld, panel, inverse_d, x),
            1 => backward_block::<S, 1>(j, ld, panel, inverse_d, x),
            _ => {}
        }
        while j >= 4 {
            j -= 4;
            backward_block::<S, 4>(j, ld, panel, inverse_d, x);
        }
    }
}

#[inline(always)]
unsafe fn fold_kernel<S: Lanes>(
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
        for r in 0..rows {
            let w = S::splat(*weight.add(r));
            let (p, q) = (a.add(r * stride), b.add(r * stride));
            let head = S::load(p).mul(w);
            let tail = S::load(p.add(2)).mul(w);
            for (c, column) in sum.iter_mut().enumerate() {
                let scale = S::splat(*q.add(c));
                column[0] = column[0].add_mul(head, scale);
                column[1] = column[1].add_mul(tail, scale);
            }
        }
        for (c, column) in sum.iter().enumerate() {
            column[0].add_to_six(column[1], target.add(c * ld));
        }
    }
}

#[inline(always)]
unsafe fn times_kernel<S: Lanes>(rows: usize, stride: usize, j: *const f64, x: *const f64, out: *mut f64) {
    // SAFETY: six numbers at every row and at x; `rows` numbers at out. The overlapping part of the second vector is
    // multiplied by zero.
    unsafe {
        let head = S::load(x);
        let tail = [0.0, 0.0, *x.add(4), *x.add(5)];
        let tail = S::load(tail.as_ptr());
        let row = |r: usize| {
            let p = j.add(r * stride);
            S::load(p).mul(head).add_mul(S::load(p.add(2)), tail)
        };
        let mut r = 0;
        while r + 4 <= rows {
            let sums = S::sums([row(r), row(r + 1), row(r + 2), row(r + 3)]);
            let p = out.add(r);
            S::load(p).sub(S::load(sums.as_ptr())).store(p);
            r += 4;
        }
        while r < rows {
            let sums = S::sums([row(r), S::splat(0.0), S::splat(0.0), S::splat(0.0)]);
            *out.add(r) -= sums[0];
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

#[inline(always)]
unsafe fn multiply_kernel<S: Lanes>(m: usize, n: usize, k: usize, a: *const f64, b: *const f64, c: *mut f64) {
    // SAFETY: m and n are multiples of four; the slices were checked.
    unsafe {
        let mut j = 0;
        while j < n {
            strip::<S, 4>(m, c.add(j * m), m, a, m, b.add(j), n, k);
            j += 4;
        }
    }
}
