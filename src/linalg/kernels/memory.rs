//! What passes between memory and the caches, where a plan outgrows them.
//!
//! A chain of 10⁵ bodies has 100 megabytes of panels, and the numbers of its fronts come from both of its ends: no machine guesses
//! which will be needed next, but the plan knows. None of this changes a number.

// Asking for memory early has no safe name.
#![allow(unsafe_code)]

/// Fronts ahead of the one being worked on whose numbers are asked for: a front of a chain takes as long as a line from memory.
pub const AHEAD: usize = 4;

/// Numbers of panels from which on that pays: a megabyte, the second cache of one core.
pub(in crate::linalg) const FAR: usize = 1 << 17;

/// Numbers of panels that no cache holds until they are read again: 32 megabytes.
pub(in crate::linalg) const BEYOND_CACHES: usize = 1 << 22;

/// Asks for numbers that will be needed soon.
#[inline(always)]
pub fn fetch(numbers: &[f64]) {
    fetch_from(numbers.as_ptr(), numbers.len());
}

/// [`fetch`] of n numbers from `p` on, which need not be there.
#[inline(always)]
pub(in crate::linalg) fn fetch_from(p: *const f64, n: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut i = 0;
        while i < n {
            // SAFETY: a hint, which never faults; every x86-64 has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(i).cast()) };
            i += 8;
        }
    }
    let _ = (p, n);
}

/// Waits until other threads see what was stored past the caches, as `Lanes::stream` does.
pub fn settle_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: orders stores, no more; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
