//! Substitution through a whole tree of fronts, and the way of numbers from child to parent.
//!
//! One call per tree rather than per front: on chains a front is a few dozen nanoseconds of work.

// As in `kernels`: the fronts' kernels are inlined into one loop under one instruction set.
#![allow(unsafe_code)]

use super::lanes::{Isa, Lanes, dispatch};
use super::memory::{AHEAD, fetch_from};
use super::tree::{Step, Tree};
use super::{Shape, backward_kernel, forward_kernel, specialise};
use crate::linalg::symbolic::Run;
use std::ops::Range;

/// Forward substitution from the leaves to the roots; borders are passed up by adding. Fronts without pivots are
/// left as they end.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn forward_tree(isa: Isa, tree: &Tree, panels: &[f64], x: &mut [f64]) {
    forward_steps(isa, tree, 0..tree.steps.len(), panels, x);
}

/// [`forward_tree`] through some of its fronts.
///
/// # Panics
/// As above, and if a front is not there.
pub(in crate::linalg) fn forward_steps(
    isa: Isa,
    tree: &Tree,
    steps: Range<usize>,
    panels: &[f64],
    x: &mut [f64],
) {
    assert!(steps.end <= tree.steps.len());
    assert!(panels.len() >= tree.panels && x.len() >= tree.locals);
    let (panels, x) = (panels.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, forward_tree_kernel(tree: &Tree, steps: Range<usize>, panels: *const f64, x: *mut f64));
}

/// Backward substitution from the roots to the leaves; borders are read from above. Fronts without pivots are
/// taken as they are.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn backward_tree(isa: Isa, tree: &Tree, panels: &[f64], x: &mut [f64]) {
    backward_steps(isa, tree, 0..tree.steps.len(), panels, x);
}

/// [`backward_tree`] through some of its fronts.
///
/// # Panics
/// As above, and if a front is not there.
pub(in crate::linalg) fn backward_steps(
    isa: Isa,
    tree: &Tree,
    steps: Range<usize>,
    panels: &[f64],
    x: &mut [f64],
) {
    assert!(steps.end <= tree.steps.len());
    assert!(panels.len() >= tree.panels && x.len() >= tree.locals);
    let (panels, x) = (panels.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, backward_tree_kernel(tree: &Tree, steps: Range<usize>, panels: *const f64, x: *mut f64));
}

/// Asks for what the substitution in a front will read. A larger one is read in long stretches, which the machine foresees.
#[inline(always)]
fn fetch_step(step: &Step, panels: *const f64, x: *const f64) {
    if step.small() {
        fetch_from(panels.wrapping_add(step.panel()), step.shape().panel_len());
        fetch_from(x.wrapping_add(step.local()), step.ld());
    }
}

#[inline(always)]
unsafe fn forward_tree_kernel<S: Lanes>(tree: &Tree, steps: Range<usize>, panels: *const f64, x: *mut f64) {
    let beyond_caches = tree.beyond_caches();
    for (k, step) in steps.clone().zip(&tree.steps[steps]) {
        if beyond_caches && let Some(next) = tree.steps.get(k + AHEAD) {
            fetch_step(next, panels, x);
        }
        // SAFETY: `Tree::new` checked offsets and runs against the lengths the caller was asked for.
        unsafe {
            let own = x.add(step.local());
            let (shape, panel) = (step.shape(), panels.add(step.panel()));
            if step.pivots != 0 {
                specialise!(S, shape, forward_kernel::<S>(shape, panel, own));
            }
            let border = own.add(step.border_at());
            if let Some(straight) = step.straight() {
                let to = x.add(step.parent() + straight);
                match (straight % 4, step.border) {
                    (0, n) => {
                        add_four(S::load(border), to);
                        if n >= 8 {
                            add_four(S::load(border.add(4)), to.add(4));
                        }
                        if n == 12 {
                            add_four(S::load(border.add(8)), to.add(8));
                        }
                    }
                    _ => add_four_between(S::load(border), to),
                }
                continue;
            }
            for run in tree.runs_of(step) {
                let to = x.add(step.parent() + run.parent as usize);
                add_run::<S>(border.add(run.child as usize), to, run.rows as usize);
            }
        }
    }
}

#[inline(always)]
unsafe fn backward_tree_kernel<S: Lanes>(tree: &Tree, steps: Range<usize>, panels: *const f64, x: *mut f64) {
    let beyond_caches = tree.beyond_caches();
    for (k, step) in steps.clone().zip(&tree.steps[steps]).rev() {
        if beyond_caches && k >= AHEAD {
            fetch_step(&tree.steps[k - AHEAD], panels, x);
        }
        // SAFETY: `Tree::new` checked offsets and runs against the lengths the caller was asked for.
        unsafe {
            let own = x.add(step.local());
            let border = own.add(step.border_at());
            if let Some(straight) = step.straight() {
                let from = x.add(step.parent() + straight);
                match (straight % 4, step.border) {
                    (0, n) => {
                        S::load(from).store(border);
                        if n >= 8 {
                            S::load(from.add(4)).store(border.add(4));
                        }
                        if n == 12 {
                            S::load(from.add(8)).store(border.add(8));
                        }
                    }
                    // Fours as they were stored.
                    _ => S::load(from.sub(2)).between(S::load(from.add(2))).store(border),
                }
            } else {
                for run in tree.runs_of(step) {
                    let from = x.add(step.parent() + run.parent as usize);
                    copy_run::<S>(from, border.add(run.child as usize), run.rows as usize);
                }
            }
            let (shape, panel) = (step.shape(), panels.add(step.panel()));
            if step.pivots != 0 {
                specialise!(S, shape, backward_kernel::<S>(shape, panel, own));
            }
        }
    }
}

/// Adds the update matrix of a child whose border of 4, 8 or 12 goes straight to row and column `at` of its parent's panel. Fours of
/// rows are added where the elimination loads them: a load waits long for several stores it is made of.
#[inline(always)]
pub(in crate::linalg) unsafe fn add_straight<S: Lanes>(
    border: usize,
    from: *const f64,
    at: usize,
    ld: usize,
    panel: *mut f64,
) {
    // SAFETY: `Tree::part` checked that the border is of one of these sizes and lies among the parent's pivots, at a multiple of four;
    // one of four also at two more, where two rows above and two below lie in the panel.
    unsafe {
        let to = panel.add(at * (ld + 1));
        macro_rules! columns {
            ($n:literal, $add:ident) => {
                for column in 0..$n {
                    let mut r = column / 4 * 4;
                    while r < $n {
                        $add(S::load(from.add(column * $n + r)), to.add(column * ld + r));
                        r += 4;
                    }
                }
            };
        }
        match (at % 4, border) {
            (0, 4) => columns!(4, add_four),
            (0, 8) => columns!(8, add_four),
            (0, _) => columns!(12, add_four),
            _ => columns!(4, add_four_between),
        }
    }
}

/// p += four numbers.
#[inline(always)]
unsafe fn add_four<S: Lanes>(four: S, p: *mut f64) {
    // SAFETY: four numbers at `p`.
    unsafe { S::load(p).add(four).store(p) }
}

/// p += four numbers, where fours begin two before and two behind.
#[inline(always)]
unsafe fn add_four_between<S: Lanes>(four: S, p: *mut f64) {
    // SAFETY: two more numbers before and behind.
    unsafe {
        add_four(four.lower_up(), p.sub(2));
        add_four(four.upper_down(), p.add(2));
    }
}

#[inline(always)]
pub(in crate::linalg) unsafe fn extend_add_kernel<S: Lanes>(
    runs: &[Run],
    child: Shape,
    from: *const f64,
    parent: Shape,
    panel: *mut f64,
    update: *mut f64,
) {
    let (border, ld, ldu, ldc) = (parent.border_at(), parent.ld(), parent.ldu(), child.ldu());
    for (k, across) in runs.iter().enumerate() {
        for column in 0..across.rows as usize {
            let p = across.parent as usize + column;
            // SAFETY: runs were checked against both shapes. A border column takes border rows only: rows below the
            // diagonal of a border column are border rows because runs ascend.
            unsafe {
                let source = from.add((across.child as usize + column) * ldc);
                let (target, shift) = if p < border {
                    (panel.add(p * ld), 0)
                } else {
                    (update.add((p - border) * ldu), border)
                };
                // From a multiple of four on: what lies above the diagonal is not read.
                let above = if p < border { column % 4 } else { (column % 4).min(p - border) };
                let own = across.rows as usize - column;
                let first = across.child as usize + column - above;
                add_run::<S>(source.add(first), target.add(p - shift - above), own + above);
                for down in runs.get_unchecked(k + 1..) {
                    let to = target.add(down.parent as usize - shift);
                    add_run::<S>(source.add(down.child as usize), to, down.rows as usize);
                }
            }
        }
    }
}

/// Up to twelve numbers written out: a loop would be unrolled for long vectors, which these seldom are.
macro_rules! by_fours {
    ($n:ident, $four:ident, $one:ident) => {
        if $n >= 4 {
            $four!(0);
            if $n >= 8 {
                $four!(4);
                if $n >= 12 {
                    $four!(8);
                    let mut i = 12;
                    while i + 4 <= $n {
                        $four!(i);
                        i += 4;
                    }
                }
            }
        }
        let whole = $n & !3;
        if $n & 2 != 0 {
            $one!(whole);
            $one!(whole + 1);
        }
        if $n & 1 != 0 {
            $one!($n - 1);
        }
    };
}

/// to += from
#[inline(always)]
unsafe fn add_run<S: Lanes>(from: *const f64, to: *mut f64, n: usize) {
    macro_rules! four {
        ($i:expr) => {
            S::load(to.add($i)).add(S::load(from.add($i))).store(to.add($i))
        };
    }
    macro_rules! one {
        ($i:expr) => {
            *to.add($i) += *from.add($i)
        };
    }
    // SAFETY: n numbers at both.
    unsafe {
        by_fours!(n, four, one);
    }
}

/// to = from
#[inline(always)]
unsafe fn copy_run<S: Lanes>(from: *const f64, to: *mut f64, n: usize) {
    macro_rules! four {
        ($i:expr) => {
            S::load(from.add($i)).store(to.add($i))
        };
    }
    macro_rules! one {
        ($i:expr) => {
            *to.add($i) = *from.add($i)
        };
    }
    // SAFETY: n numbers at both.
    unsafe {
        by_fours!(n, four, one);
    }
}
