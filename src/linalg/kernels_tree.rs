//! Substitution through a whole tree of fronts, and the way of numbers from child to parent.
//!
//! One call per tree rather than per front: on chains a front is a few dozen nanoseconds of work.

// As in `kernels`: the fronts' kernels are inlined into one loop under one instruction set.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::kernels::{Shape, backward_kernel, forward_kernel};
use super::kernels_lanes::{Isa, Lanes, dispatch};
use super::symbolic::{NONE, Run, Symbolic};

/// A front and its way to its parent, checked.
#[derive(Clone, Copy, Debug)]
struct Step {
    shape: Shape,
    panel: usize,
    pivot: usize,
    local: usize,
    /// Local vector of the parent, or `usize::MAX`.
    parent: usize,
    runs: (usize, usize),
}

/// The plan of substitution. Can only be made by [`Tree::new`], which checks it.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    steps: Vec<Step>,
    runs: Vec<Run>,
    panels: usize,
    pivots: usize,
    locals: usize,
}

impl Tree {
    /// Takes what substitution needs of a plan.
    ///
    /// # Panics
    /// If a front or a run leaves its storage, or a parent comes before its child.
    pub fn new(plan: &Symbolic) -> Self {
        Self::part(plan, |_| true)
    }

    /// Only the fronts that are `wanted`. Numbers pass between them and to parents that are not, for whoever goes on there.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn part(plan: &Symbolic, wanted: impl Fn(usize) -> bool) -> Self {
        let mut tree =
            Self { panels: plan.panels, pivots: plan.pivots, locals: plan.locals, ..Self::default() };
        for (f, front) in plan.fronts.iter().enumerate().filter(|(f, _)| wanted(*f)) {
            let shape = front.shape;
            assert!(front.panel + shape.panel_len() <= tree.panels, "front without a panel");
            assert!(front.pivot + shape.border_at() <= tree.pivots, "front without pivots");
            assert!(front.local + shape.ld() <= tree.locals, "front without a local vector");
            let begin = tree.runs.len();
            let mut parent = usize::MAX;
            if front.parent != NONE {
                assert!(front.parent as usize > f, "parent before child");
                let above = &plan.fronts[front.parent as usize];
                parent = above.local;
                assert!(parent >= front.local + shape.ld(), "local vectors overlap");
                for run in plan.runs(front) {
                    assert!((run.child + run.rows) as usize <= shape.ldu(), "run outside of its child");
                    assert!(
                        (run.parent + run.rows) as usize <= above.shape.ld(),
                        "run outside of its parent"
                    );
                }
                tree.runs.extend_from_slice(plan.runs(front));
            }
            let runs = (begin, tree.runs.len());
            tree.steps.push(Step {
                shape,
                panel: front.panel,
                pivot: front.pivot,
                local: front.local,
                parent,
                runs,
            });
        }
        tree
    }
}

/// Forward substitution from the leaves to the roots; borders are passed up by adding. Fronts without pivots are
/// left as they end.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn forward_tree(isa: Isa, tree: &Tree, panels: &[f64], x: &mut [f64]) {
    assert!(panels.len() >= tree.panels && x.len() >= tree.locals);
    let (panels, x) = (panels.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, forward_tree_kernel(tree: &Tree, panels: *const f64, x: *mut f64));
}

/// Backward substitution from the roots to the leaves; borders are read from above. Fronts without pivots are
/// taken as they are.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn backward_tree(isa: Isa, tree: &Tree, panels: &[f64], inverse_d: &[f64], x: &mut [f64]) {
    assert!(panels.len() >= tree.panels && inverse_d.len() >= tree.pivots && x.len() >= tree.locals);
    let (panels, inverse_d, x) = (panels.as_ptr(), inverse_d.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, backward_tree_kernel(tree: &Tree, panels: *const f64, inverse_d: *const f64, x: *mut f64));
}

/// Adds the update matrix of a child to the panel and the update matrix of its parent.
///
/// # Panics
/// If a run leaves a matrix, or a slice is shorter than its shape asks for.
pub fn extend_add(
    isa: Isa,
    runs: &[Run],
    child: Shape,
    from: &[f64],
    parent: Shape,
    panel: &mut [f64],
    update: &mut [f64],
) {
    assert!(from.len() >= child.update_len());
    assert!(panel.len() >= parent.panel_len() && update.len() >= parent.update_len());
    for run in runs {
        assert!(
            (run.child + run.rows) as usize <= child.border
                && (run.parent + run.rows) as usize <= parent.ld()
        );
    }
    let ascending = runs.windows(2).all(|w| w[0].parent + w[0].rows <= w[1].parent);
    assert!(ascending, "runs in the order of their parent");
    let (from, panel, update) = (from.as_ptr(), panel.as_mut_ptr(), update.as_mut_ptr());
    dispatch!(isa, extend_add_kernel(runs: &[Run], child: Shape, from: *const f64, parent: Shape, panel: *mut f64, update: *mut f64));
}

#[inline(always)]
unsafe fn forward_tree_kernel<S: Lanes>(tree: &Tree, panels: *const f64, x: *mut f64) {
    for step in &tree.steps {
        if step.shape.pivots == 0 {
            continue;
        }
        // SAFETY: `Tree::new` checked offsets and runs against the lengths the caller was asked for.
        unsafe {
            let own = x.add(step.local);
            forward_kernel::<S>(step.shape, panels.add(step.panel), own);
            let border = own.add(step.shape.border_at());
            for run in tree.runs.get_unchecked(step.runs.0..step.runs.1) {
                let to = x.add(step.parent + run.parent as usize);
                add_run::<S>(border.add(run.child as usize), to, run.rows as usize);
            }
        }
    }
}

#[inline(always)]
unsafe fn backward_tree_kernel<S: Lanes>(
    tree: &Tree,
    panels: *const f64,
    inverse_d: *const f64,
    x: *mut f64,
) {
    for step in tree.steps.iter().rev() {
        if step.shape.pivots == 0 {
            continue;
        }
        // SAFETY: `Tree::new` checked offsets and runs against the lengths the caller was asked for.
        unsafe {
            let own = x.add(step.local);
            let border = own.add(step.shape.border_at());
            for run in tree.runs.get_unchecked(step.runs.0..step.runs.1) {
                let from = x.add(step.parent + run.parent as usize);
                copy_run::<S>(from, border.add(run.child as usize), run.rows as usize);
            }
            backward_kernel::<S>(step.shape, panels.add(step.panel), inverse_d.add(step.pivot), own);
        }
    }
}

#[inline(always)]
unsafe fn extend_add_kernel<S: Lanes>(
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
                let own = across.rows as usize - column;
                add_run::<S>(source.add(across.child as usize + column), target.add(p - shift), own);
                for down in runs.get_unchecked(k + 1..) {
                    let to = target.add(down.parent as usize - shift);
                    add_run::<S>(source.add(down.child as usize), to, down.rows as usize);
                }
            }
        }
    }
}

/// to += from
#[inline(always)]
unsafe fn add_run<S: Lanes>(from: *const f64, to: *mut f64, n: usize) {
    let mut i = 0;
    // SAFETY: n numbers at both.
    unsafe {
        while i + 4 <= n {
            S::load(to.add(i)).add(S::load(from.add(i))).store(to.add(i));
            i += 4;
        }
        while i < n {
            *to.add(i) += *from.add(i);
            i += 1;
        }
    }
}

/// to = from
#[inline(always)]
unsafe fn copy_run<S: Lanes>(from: *const f64, to: *mut f64, n: usize) {
    let mut i = 0;
    // SAFETY: n numbers at both.
    unsafe {
        while i + 4 <= n {
            S::load(from.add(i)).store(to.add(i));
            i += 4;
        }
        while i < n {
            *to.add(i) = *from.add(i);
            i += 1;
        }
    }
}
