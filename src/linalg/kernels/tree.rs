//! The plan of a tree of fronts as kernels read it: checked when it is made, so that no kernel has to.

// A step's own lists are read unchecked, as they were made.
#![allow(unsafe_code)]

use super::Shape;
use super::fronts::Varying;
use super::memory::{BEYOND_CACHES, FAR, fetch};
use crate::linalg::symbolic::{NONE, Run, Symbolic};
use std::ops::Range;

/// A front and its way to its parent, checked: one cache line. Offsets of fours are counted in fours.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in crate::linalg) struct Step {
    pub(in crate::linalg) pivots: u32,
    pub(in crate::linalg) border: u32,
    /// Local row of the border, and leading dimension.
    border_at: u32,
    ld: u32,
    local: u32,
    /// Local vector of the parent, or [`NONE`].
    parent: u32,
    /// Where the whole border goes among the parent's pivots if it stays together (`add_straight`), or [`NONE`].
    straight: u32,
    /// Fours before its panel, its update matrix.
    panel: u32,
    update: u32,
    /// Fours before the fixed entries beside it, before its signs; or [`NONE`]. Signs are then in the work space.
    fixed: u32,
    sign: u32,
    runs: (u32, u32),
    children: (u32, u32),
    small: bool,
}

const _: () = assert!(size_of::<Step>() == 64);

impl Step {
    #[inline(always)]
    pub(in crate::linalg) fn shape(&self) -> Shape {
        Shape { pivots: self.pivots as usize, border: self.border as usize }
    }

    #[inline(always)]
    pub(in crate::linalg) fn ld(&self) -> usize {
        self.ld as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn front_len(&self) -> usize {
        (self.ld * self.pivots) as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn ldu(&self) -> usize {
        (self.ld - self.border_at) as usize
    }

    /// Is it assembled in work space?
    #[inline(always)]
    pub(in crate::linalg) fn small(&self) -> bool {
        self.small
    }

    #[inline(always)]
    pub(in crate::linalg) fn panel(&self) -> usize {
        4 * self.panel as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn update(&self) -> usize {
        4 * self.update as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn fixed(&self) -> Option<usize> {
        (self.fixed != NONE).then_some(4 * self.fixed as usize)
    }

    /// Its signs among those that are kept; else they are in the work space, behind the front.
    #[inline(always)]
    pub(in crate::linalg) fn sign(&self) -> Option<usize> {
        (self.sign != NONE).then_some(4 * self.sign as usize)
    }

    #[inline(always)]
    pub(in crate::linalg) fn straight(&self) -> Option<usize> {
        (self.straight != NONE).then_some(self.straight as usize)
    }

    #[inline(always)]
    pub(in crate::linalg) fn local(&self) -> usize {
        self.local as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn border_at(&self) -> usize {
        self.border_at as usize
    }

    #[inline(always)]
    pub(in crate::linalg) fn parent(&self) -> usize {
        self.parent as usize
    }
}

/// Where the fixed entries of a front and its signs are written.
#[derive(Clone, Debug)]
pub enum Written {
    /// Kept beside the panel; signs kept.
    Beside(Range<usize>, usize),
    /// In the work space, signs behind them.
    InWorkSpace,
    /// In the panel; signs kept.
    InPanel(usize, usize),
}

/// The plan of factorization and substitution. Can only be made by [`Tree::new`], which checks it.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(in crate::linalg) steps: Vec<Step>,
    pub(in crate::linalg) runs: Vec<Run>,
    pub(in crate::linalg) children: Vec<u32>,
    pub(in crate::linalg) panels: usize,
    pub(in crate::linalg) updates: usize,
    pub(in crate::linalg) signs: usize,
    pub(in crate::linalg) locals: usize,
    pub(in crate::linalg) scratch: usize,
    /// Numbers of fixed entries beside panels.
    pub(in crate::linalg) fixed: usize,
    /// What varies in each front. Empty unless the steps are all fronts.
    pub(in crate::linalg) varying: Varying,
}

/// Numbers of fixed entries of small fronts that are kept in all: copying them back is a tenth of placing them anew. Beyond two
/// megabytes they come from memory, and placing them anew is as fast.
const KEPT_IN_ALL: usize = 1 << 18;

impl Tree {
    /// Takes what the kernels need of a plan, for factorizations too.
    ///
    /// # Panics
    /// If a front or a run leaves its storage, a parent comes before its child, runs are out of order, or what varies belongs to
    /// another plan.
    pub fn new(plan: &Symbolic, varying: Varying) -> Self {
        let mut tree = Self::collect(plan, 0..plan.fronts.len());
        assert!(varying.shapes().eq(tree.steps.iter().map(Step::shape)), "two plans");
        tree.varying = varying;
        for step in &mut tree.steps {
            let n = step.front_len();
            if step.small && tree.fixed + n <= KEPT_IN_ALL {
                step.fixed = fours(tree.fixed);
                tree.fixed += n;
            }
            if step.fixed != NONE || !step.small {
                step.sign = fours(tree.signs);
                tree.signs += step.border_at();
            }
        }
        tree
    }

    /// Are the panels so many that they come from memory, or from a cache far away?
    #[inline(always)]
    pub fn far(&self) -> bool {
        self.panels > FAR
    }

    /// Are they so many that none will still be in a cache when it is read?
    #[inline(always)]
    pub fn beyond_caches(&self) -> bool {
        self.panels > BEYOND_CACHES
    }

    /// Asks for the storage of a small front that will be factored soon; more would push out what is being worked on.
    ///
    /// # Panics
    /// If the front is not there, or its storage.
    #[inline(always)]
    pub fn fetch(&self, front: usize, panels: &[f64], updates: &[f64], regular: &[f64]) {
        let step = &self.steps[front];
        if !step.small() {
            return;
        }
        if !self.beyond_caches() {
            fetch(&panels[step.panel()..][..step.shape().panel_len()]);
        }
        fetch(&updates[step.update()..][..step.shape().update_len()]);
        self.varying.fetch(front, regular);
    }

    /// Numbers of fixed entries beside panels.
    pub fn fixed(&self) -> usize {
        self.fixed
    }

    /// Numbers of signs that are kept.
    pub fn signs(&self) -> usize {
        self.signs
    }

    /// Shape of a front, and where its fixed entries are written.
    pub fn place_of(&self, front: usize) -> (Shape, Written) {
        let step = &self.steps[front];
        let written = match (step.fixed(), step.sign()) {
            (Some(fixed), Some(sign)) => Written::Beside(fixed..fixed + step.front_len(), sign),
            (None, Some(sign)) => Written::InPanel(step.panel(), sign),
            _ => Written::InWorkSpace,
        };
        (step.shape(), written)
    }

    /// Only the fronts that are `wanted`, for substitution. Numbers pass between them and to parents that are not, for the thread that goes
    /// on there.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn part(plan: &Symbolic, wanted: impl Fn(usize) -> bool) -> Self {
        Self::collect(plan, (0..plan.fronts.len()).filter(|&f| wanted(f)))
    }

    /// The fronts of a list.
    fn collect(plan: &Symbolic, fronts: impl Iterator<Item = usize>) -> Self {
        let mut tree = Self {
            panels: plan.panels,
            updates: plan.updates,
            locals: plan.locals,
            scratch: plan.scratch,
            ..Self::default()
        };
        for f in fronts {
            let front = &plan.fronts[f];
            let shape = front.shape;
            assert!(front.panel + shape.panel_len() <= tree.panels, "front without a panel");
            assert!(front.local + shape.ld() <= tree.locals, "front without a local vector");
            assert!(front.update + shape.update_len() <= tree.updates, "front without an update matrix");
            assert!(shape.scratch_len() <= tree.scratch, "front without work space");
            let begin = tree.runs.len();
            let (mut parent, mut straight) = (NONE, NONE);
            if front.parent != NONE {
                assert!(front.parent as usize > f, "parent before child");
                let above = &plan.fronts[front.parent as usize];
                parent = above.local as u32;
                assert!(above.local >= front.local + shape.ld(), "local vectors overlap");
                assert!(above.update >= front.update + shape.update_len(), "update matrices overlap");
                for run in plan.runs(front) {
                    assert!((run.child + run.rows) as usize <= shape.border, "run outside of its child");
                    assert!(
                        (run.parent + run.rows) as usize <= above.shape.ld(),
                        "run outside of its parent"
                    );
                }
                let ascending = plan.runs(front).windows(2).all(|w| w[0].parent + w[0].rows <= w[1].parent);
                assert!(ascending, "runs in the order of their parent");
                tree.runs.extend_from_slice(plan.runs(front));
                if let [run] = plan.runs(front) {
                    let (at, rows) = (run.parent as usize, run.rows as usize);
                    let together = run.child == 0 && rows == shape.border && at + rows <= above.shape.pivots;
                    // Beside a multiple of four, fours of rows reach two rows further.
                    let usual = match at % 4 {
                        0 => matches!(rows, 4 | 8 | 12),
                        2 => rows == 4 && at + 6 <= above.shape.ld(),
                        _ => false,
                    };
                    if together && usual {
                        straight = run.parent;
                    }
                }
            }
            let runs = (begin as u32, tree.runs.len() as u32);
            let children = plan.children(front);
            assert!(
                children.iter().all(|&c| plan.fronts[c as usize].parent == f as u32),
                "children of another"
            );
            let first = tree.children.len();
            tree.children.extend_from_slice(children);
            tree.steps.push(Step {
                pivots: shape.pivots as u32,
                border: shape.border as u32,
                border_at: shape.border_at() as u32,
                ld: shape.ld() as u32,
                local: front.local as u32,
                parent,
                straight,
                panel: fours(front.panel),
                update: fours(front.update),
                fixed: NONE,
                sign: NONE,
                runs,
                children: (first as u32, tree.children.len() as u32),
                small: shape.is_small(),
            });
        }
        assert!(tree.locals < NONE as usize, "local vectors beyond 32 bits");
        tree
    }

    /// The stretches of a front's border in its parent.
    ///
    /// # Safety
    /// The step is of this tree.
    #[inline(always)]
    pub(in crate::linalg) unsafe fn runs_of(&self, step: &Step) -> &[Run] {
        // SAFETY: made so in `part`.
        unsafe { self.runs.get_unchecked(step.runs.0 as usize..step.runs.1 as usize) }
    }

    /// The children of a front.
    ///
    /// # Safety
    /// The step is of this tree.
    #[inline(always)]
    pub(in crate::linalg) unsafe fn children_of(&self, step: &Step) -> &[u32] {
        // SAFETY: made so in `part`.
        unsafe { self.children.get_unchecked(step.children.0 as usize..step.children.1 as usize) }
    }
}

/// An offset in fours: a multiple of four, below 2³⁴.
fn fours(offset: usize) -> u32 {
    assert!(offset.is_multiple_of(4) && offset / 4 < NONE as usize, "storage beyond 128 gigabytes");
    (offset / 4) as u32
}
