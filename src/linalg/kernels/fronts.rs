//! The numeric phase over many fronts in one call: entries that vary, children, elimination.
//!
//! A front of a chain is a hundred nanoseconds of work, of which calls, checks and strides were two thirds. So everything that
//! can be checked is checked when the plan is made, and one loop under one instruction set does the rest.

// As in `kernels`: the fronts' kernels are inlined into one loop under one instruction set.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::lanes::{Isa, Lanes, dispatch};
use super::memory::fetch;
use super::passing::add_straight;
use super::rows::{FoldSide, fold_kernel, fold_lower_kernel};
use super::tree::Tree;
use super::{Shape, factor_kernel};
use crate::linalg::symbolic::Symbolic;

/// Rows of a multiplier that a front eliminates: −(C+D) on the diagonal.
#[derive(Clone, Copy, Debug)]
pub struct PivotRows {
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// Local row in the front.
    pub local: u32,
}

/// Rows that are folded into the blocks of their bodies: Jᵀ (C+D)⁻¹ J.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First Jacobian number; a row has six numbers a body.
    pub entry: u32,
    /// Number of bodies.
    pub bodies: u32,
    /// First entry in the list of places.
    pub place: u32,
    /// First entry in the problem's list of bodies.
    pub body: u32,
    /// Has any of its bodies fewer than six unknowns?
    pub narrow: bool,
}

/// A body of a group: its place in the row, and its local row in the front. Ascending by local row.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Place among the bodies of the block.
    pub column: u32,
    /// Local row in the front.
    pub local: u32,
    /// Number of its unknowns.
    pub width: u32,
}

/// Where the entries go that vary from one factorization to the next. Can only be made by [`Varying::new`], which checks it.
#[derive(Clone, Debug, Default)]
pub struct Varying {
    /// First entries of each front in the two lists, and one more.
    start: Vec<(u32, u32)>,
    diagonal: Vec<PivotRows>,
    groups: Vec<Group>,
    places: Vec<Place>,
    /// Shape of each front.
    shapes: Vec<Shape>,
    rows: usize,
    numbers: usize,
}

impl Varying {
    /// Nothing varies.
    pub fn none(plan: &Symbolic) -> Self {
        Self::new(plan, &mut [], &mut [], Vec::new(), 0, 0)
    }

    /// Takes the entries of a plan with the fronts they belong to, for problems of so many rows and Jacobian numbers.
    ///
    /// # Panics
    /// If an entry leaves its front, or asks for rows or numbers that are not there.
    pub fn new(
        plan: &Symbolic,
        diagonal: &mut [(u32, PivotRows)],
        groups: &mut [(u32, Group)],
        places: Vec<Place>,
        rows: usize,
        numbers: usize,
    ) -> Self {
        diagonal.sort_by_key(|&(front, _)| front);
        groups.sort_by_key(|&(front, _)| front);
        let mut start = vec![(0, 0); plan.fronts.len() + 1];
        for &(front, entry) in diagonal.iter() {
            let shape = plan.fronts[front as usize].shape;
            assert!(entry.row as usize + entry.rows as usize <= rows, "compliances that are not there");
            assert!(
                (entry.local + entry.rows) as usize <= shape.pivots,
                "compliances outside of their front"
            );
            start[front as usize + 1].0 += 1;
        }
        for &(front, group) in groups.iter() {
            let shape = plan.fronts[front as usize].shape;
            let of = &places[group.place as usize..][..group.bodies as usize];
            let end = group.entry as usize + 6 * group.bodies as usize * group.rows as usize;
            assert!(
                group.row as usize + group.rows as usize <= rows && end <= numbers,
                "rows that are not there"
            );
            assert!(
                of.iter().all(|p| p.column < group.bodies && holds(shape, *p)),
                "rows outside of their front"
            );
            assert!(group.narrow || of.iter().all(|p| p.width == 6), "a narrow body in a group that is not");
            assert!(of.windows(2).all(|p| p[0].local <= p[1].local), "bodies out of order");
            start[front as usize + 1].1 += 1;
        }
        for f in 0..plan.fronts.len() {
            start[f + 1].0 += start[f].0;
            start[f + 1].1 += start[f].1;
        }
        Self {
            start,
            diagonal: diagonal.iter().map(|d| d.1).collect(),
            groups: groups.iter().map(|g| g.1).collect(),
            places,
            shapes: plan.fronts.iter().map(|front| front.shape).collect(),
            rows,
            numbers,
        }
    }

    /// Asks for the compliances of a front that will be factored soon.
    #[inline(always)]
    pub(in crate::linalg) fn fetch(&self, front: usize, regular: &[f64]) {
        for entry in &self.diagonal[self.start[front].0 as usize..self.start[front + 1].0 as usize] {
            fetch(&regular[entry.row as usize..][..entry.rows as usize]);
        }
    }

    /// Shapes of the fronts.
    pub(in crate::linalg) fn shapes(&self) -> impl Iterator<Item = Shape> {
        self.shapes.iter().copied()
    }
}

/// Are there as many rows as the body has unknowns, among the pivots or in the border?
fn holds(shape: Shape, place: Place) -> bool {
    let (first, end, border) =
        (place.local as usize, (place.local + place.width) as usize, shape.border_at());
    end <= shape.pivots || (first >= border && end <= border + shape.border)
}

/// The numbers of the entries that vary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers<'a> {
    /// Jacobian numbers of the groups.
    pub jacobian: &'a [f64],
    /// C+D per row, infinite for rows that are out of the system.
    pub regular: &'a [f64],
    /// 1/(C+D) per row, 0 for rows that are out.
    pub weight: &'a [f64],
}

/// What a factorization reads and writes: storage of all fronts.
pub struct Storage<'a> {
    /// Panels.
    pub panels: &'a mut [f64],
    /// Update matrices.
    pub updates: &'a mut [f64],
    /// Signs of the pivots.
    pub sign: &'a mut [f64],
    /// Work space.
    pub scratch: &'a mut [f64],
}

/// Factors fronts one after another: takes a front from the fixed entries kept beside it, adds the entries that vary and the children,
/// eliminates. Where no fixed entries are kept, those of a small front are in the work space, which only one of them can use; those of
/// another in its panel. Returns the number of pivots with a wrong sign.
///
/// # Panics
/// If a front is not there, or a slice is shorter than the plan asks for.
pub fn factor_fronts(
    isa: Isa,
    tree: &Tree,
    numbers: Numbers<'_>,
    fixed: &[f64],
    fronts: &[u32],
    storage: Storage<'_>,
) -> u32 {
    let Storage { panels, updates, sign, scratch } = storage;
    let varying = &tree.varying;
    assert!(panels.len() >= tree.panels && updates.len() >= tree.updates && scratch.len() >= tree.scratch);
    assert!(sign.len() >= tree.signs && fixed.len() >= tree.fixed);
    assert!(numbers.regular.len() >= varying.rows && numbers.weight.len() >= varying.rows);
    assert!(numbers.jacobian.len() >= varying.numbers);
    // Children are fronts of the same plan: what varies has an entry for every front only if the steps are all of them.
    let count = varying.shapes.len().min(tree.steps.len());
    assert!(fronts.iter().all(|&f| (f as usize) < count), "a front that is not there");
    let job = Job {
        tree,
        varying,
        jacobian: numbers.jacobian.as_ptr(),
        regular: numbers.regular.as_ptr(),
        weight: numbers.weight.as_ptr(),
        fixed: fixed.as_ptr(),
        panels: panels.as_mut_ptr(),
        updates: updates.as_mut_ptr(),
        sign: sign.as_mut_ptr(),
        scratch: scratch.as_mut_ptr(),
    };
    dispatch!(isa, factor_fronts_kernel(job: Job<'_>, fronts: &[u32]) -> u32)
}

/// Checked plans and pointers to as many numbers as they ask for.
#[derive(Clone, Copy)]
pub(in crate::linalg) struct Job<'a> {
    tree: &'a Tree,
    varying: &'a Varying,
    jacobian: *const f64,
    regular: *const f64,
    weight: *const f64,
    fixed: *const f64,
    panels: *mut f64,
    updates: *mut f64,
    sign: *mut f64,
    scratch: *mut f64,
}

#[inline(always)]
unsafe fn factor_fronts_kernel<S: Lanes>(job: Job<'_>, fronts: &[u32]) -> u32 {
    let mut wrong = 0;
    let tree = job.tree;
    let beyond_caches = tree.beyond_caches();
    // Not known to be zero, else the compiler makes calls of `memset` of the loops that clear, column by column.
    // SAFETY: needs nothing but the instruction set.
    let zero = unsafe { S::splat(std::hint::black_box(0.0)) };
    for &f in fronts {
        // SAFETY: the caller checked the front numbers; `Tree::new` and `Varying::new` checked offsets, runs, children and
        // entries against the lengths the caller was asked for. Update matrices of children end before that of their parent begins.
        unsafe {
            let step = tree.steps.get_unchecked(f as usize);
            let shape = step.shape();
            let (panel, update) = (job.panels.add(step.panel()), job.updates.add(step.update()));
            let front = if step.small() { job.scratch } else { panel };
            if let Some(fixed) = step.fixed() {
                copy::<S>(front, step.front_len(), job.fixed.add(fixed));
            }
            clear_lower(zero, update, step.ldu());
            let sign = match step.sign() {
                Some(sign) => job.sign.add(sign),
                None => job.scratch.add(step.front_len()),
            };
            add_varying::<S>(&job, f as usize, shape, front, update, sign);
            for &child in tree.children_of(step) {
                let child = tree.steps.get_unchecked(child as usize);
                let from = job.updates.add(child.update());
                match child.straight() {
                    Some(at) => add_straight::<S>(child.shape().border, from, at, step.ld(), front),
                    None => S::extend_add(tree.runs_of(child), child.shape(), from, shape, front, update),
                }
            }
            if beyond_caches && step.small() {
                // The panel is made in the work space: its lines need not come from memory to be written.
                let own = job.scratch.add(step.front_len() + step.border_at());
                wrong += factor_kernel::<S>(shape, own, update, job.scratch, sign);
                S::stream(panel, shape.panel_len(), own);
            } else {
                wrong += factor_kernel::<S>(shape, panel, update, job.scratch, sign);
            }
        }
    }
    wrong
}

/// to = from; panels have a multiple of four numbers, most of them of sixteen.
#[inline(always)]
pub(in crate::linalg) unsafe fn copy<S: Lanes>(to: *mut f64, n: usize, from: *const f64) {
    // SAFETY: n numbers at both.
    unsafe {
        let mut i = 0;
        while i + 16 <= n {
            let (a, b) = (S::load(from.add(i)), S::load(from.add(i + 4)));
            let (c, d) = (S::load(from.add(i + 8)), S::load(from.add(i + 12)));
            a.store(to.add(i));
            b.store(to.add(i + 4));
            c.store(to.add(i + 8));
            d.store(to.add(i + 12));
            i += 16;
        }
        while i < n {
            S::load(from.add(i)).store(to.add(i));
            i += 4;
        }
    }
}

/// The lower triangle of an update matrix, in whole blocks of four columns, = 0. What lies above may be old numbers: they are added
/// only to what lies above in the parent, and never reach a result.
#[inline(always)]
unsafe fn clear_lower<S: Lanes>(zero: S, update: *mut f64, ldu: usize) {
    let mut j = 0;
    // SAFETY: ldu × ldu numbers, ldu a multiple of four.
    unsafe {
        while j < ldu {
            for column in j..j + 4 {
                let mut r = j;
                while r < ldu {
                    zero.store(update.add(column * ldu + r));
                    r += 4;
                }
            }
            j += 4;
        }
    }
}

#[inline(always)]
unsafe fn add_varying<S: Lanes>(
    job: &Job<'_>,
    f: usize,
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
    sign: *mut f64,
) {
    let varying = job.varying;
    let ld = shape.ld();
    // SAFETY: `Varying::new` checked rows, numbers and local rows.
    unsafe {
        let (begin, end) = (*varying.start.get_unchecked(f), *varying.start.get_unchecked(f + 1));
        for entry in varying.diagonal.get_unchecked(begin.0 as usize..end.0 as usize) {
            let (row, local) = (entry.row as usize, entry.local as usize);
            let mut pivot = panel.add(local * (ld + 1));
            for r in 0..entry.rows as usize {
                let c = *job.regular.add(row + r);
                let inside = c < f64::INFINITY;
                *sign.add(local + r) = if inside { -1.0 } else { 0.0 };
                *pivot = if inside { -c } else { -1.0 };
                pivot = pivot.add(ld + 1);
            }
        }
        for group in varying.groups.get_unchecked(begin.1 as usize..end.1 as usize) {
            // Contacts have one body or two: their strides as constants.
            match group.bodies {
                _ if group.narrow => fold_narrow(job, group, shape, panel, update),
                1 => fold_group::<S, 6>(job, group, shape, panel, update),
                2 => fold_two::<S>(job, group, shape, panel, update),
                _ => S::fold_any(job, group, shape, panel, update),
            }
        }
    }
}

/// Adds Jᵀ (C+D)⁻¹ J of a group on two bodies.
#[inline(always)]
unsafe fn fold_two<S: Lanes>(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
    let (ld, ldu, border) = (shape.ld(), shape.ldu(), shape.border_at());
    // SAFETY: as for `add_varying`.
    unsafe {
        let weight = job.weight.add(group.row as usize);
        if !any::<S>(weight, group.rows as usize) {
            return;
        }
        let places = job.varying.places.as_ptr().add(group.place as usize);
        let (first, second) = (*places, *places.add(1));
        let side = |place: Place| {
            let column = place.local as usize;
            let (base, ld, shift) = match column < border {
                true => (panel.add(column * ld), ld, 0),
                false => (update.add((column - border) * ldu), ldu, border),
            };
            FoldSide {
                numbers: job.jacobian.add(group.entry as usize + 6 * place.column as usize),
                target: base.add(column - shift),
                below: base.add(second.local as usize - shift),
                ld,
            }
        };
        S::fold_pair(group.rows as usize, weight, side(first), side(second));
    }
}

/// Adds Jᵀ (C+D)⁻¹ J of one group; `STRIDE` numbers a row, 0 for any.
#[inline(always)]
pub(in crate::linalg) unsafe fn fold_group<S: Lanes, const STRIDE: usize>(
    job: &Job<'_>,
    group: &Group,
    shape: Shape,
    panel: *mut f64,
    update: *mut f64,
) {
    let (ld, ldu, border) = (shape.ld(), shape.ldu(), shape.border_at());
    let bodies = if STRIDE == 0 { group.bodies as usize } else { STRIDE / 6 };
    let (rows, stride) = (group.rows as usize, 6 * bodies);
    // SAFETY: as for `add_varying`.
    unsafe {
        let weight = job.weight.add(group.row as usize);
        if !any::<S>(weight, rows) {
            return;
        }
        let numbers = job.jacobian.add(group.entry as usize);
        let places = job.varying.places.as_ptr().add(group.place as usize);
        for k in 0..bodies {
            let across = *places.add(k);
            let (column, b) = (across.local as usize, numbers.add(6 * across.column as usize));
            let (base, ld, shift) = match column < border {
                true => (panel.add(column * ld), ld, 0),
                false => (update.add((column - border) * ldu), ldu, border),
            };
            fold_lower_kernel::<S>(rows, stride, b, weight, base.add(column - shift), ld);
            for q in k + 1..bodies {
                let down = *places.add(q);
                let (a, to) = (numbers.add(6 * down.column as usize), base.add(down.local as usize - shift));
                fold_kernel::<S>(rows, stride, a, b, weight, to, ld);
            }
        }
    }
}

/// Adds Jᵀ (C+D)⁻¹ J of a group with bodies of fewer than six unknowns.
unsafe fn fold_narrow(job: &Job<'_>, group: &Group, shape: Shape, panel: *mut f64, update: *mut f64) {
    let (ld, ldu, border) = (shape.ld(), shape.ldu(), shape.border_at());
    let (rows, stride) = (group.rows as usize, 6 * group.bodies as usize);
    // SAFETY: as for `add_varying`; `holds` asked for as many rows and columns as a body has unknowns.
    unsafe {
        let weight = job.weight.add(group.row as usize);
        let numbers = job.jacobian.add(group.entry as usize);
        let places = job.varying.places.as_ptr().add(group.place as usize);
        for r in (0..rows).filter(|&r| *weight.add(r) != 0.0) {
            let row = numbers.add(r * stride);
            for k in 0..group.bodies as usize {
                let across = *places.add(k);
                let column = across.local as usize;
                let (base, ld, shift) = match column < border {
                    true => (panel.add(column * ld), ld, 0),
                    false => (update.add((column - border) * ldu), ldu, border),
                };
                for c in 0..across.width as usize {
                    let scaled = *weight.add(r) * *row.add(6 * across.column as usize + c);
                    for q in k..group.bodies as usize {
                        let down = *places.add(q);
                        let to = base.add(c * ld + down.local as usize - shift);
                        for i in if q == k { c } else { 0 }..down.width as usize {
                            *to.add(i) += *row.add(6 * down.column as usize + i) * scaled;
                        }
                    }
                }
            }
        }
    }
}

/// Is any of the weights not zero?
#[inline(always)]
pub(in crate::linalg) unsafe fn any<S: Lanes>(weight: *const f64, rows: usize) -> bool {
    // SAFETY: `rows` numbers.
    unsafe {
        let mut r = 0;
        while r + 4 <= rows {
            if S::load(weight.add(r)).differs(S::splat(0.0)) != 0 {
                return true;
            }
            r += 4;
        }
        while r < rows {
            if *weight.add(r) != 0.0 {
                return true;
            }
            r += 1;
        }
        false
    }
}
