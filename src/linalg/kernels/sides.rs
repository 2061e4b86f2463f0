//! Right-hand sides into the local vectors of fronts, and answers out of them, in one call each.

// As in `kernels_fronts`: what can be checked is checked when the plan is made.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::Shape;
use super::fronts::{Group, Numbers};
use super::lanes::{Isa, Lanes, dispatch};
use crate::linalg::symbolic::Symbolic;
use std::ops::Range;

/// Where unknowns are among the local vectors. Can only be made by [`Sides::new`], which checks it.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    body_at: Vec<u32>,
    width: Vec<u8>,
    /// Bodies of six unknowns with their places, and multiplier rows, both ascending by place.
    by_place: Vec<(u32, u32)>,
    /// Bodies of fewer unknowns: body, width, place; ascending by place.
    narrow: Vec<(u32, u32, u32)>,
    multipliers: Vec<(u32, u32, u32)>,
    /// How many of the three lists end before the end of each stretch.
    ends: Vec<[u32; 3]>,
    /// The first front that reads or writes behind the beginning of each stretch, and the first with its own local vector there.
    met: Vec<(u32, u32)>,
    groups: Vec<Group>,
    /// Bodies of the groups, from [`Group::body`] on.
    bodies: Vec<u32>,
    rows: usize,
    numbers: usize,
    locals: usize,
}

impl Sides {
    /// Takes width and place of bodies, places of multiplier rows that stand together (first row, number, place) and the folded groups with
    /// the bodies of all blocks, for so many rows, Jacobian numbers and local numbers.
    ///
    /// # Panics
    /// If anything lies outside.
    pub fn new(
        bodies_at: Vec<(u32, u32)>,
        mut multipliers: Vec<(u32, u32, u32)>,
        groups: Vec<Group>,
        bodies: Vec<u32>,
        (rows, numbers, locals): (usize, usize, usize),
    ) -> Self {
        assert!(locals.is_multiple_of(4), "local vectors are padded");
        let inside = |&(width, at): &(u32, u32)| width <= 6 && (at + width) as usize <= locals;
        assert!(bodies_at.iter().all(inside), "bodies outside of the local vectors");
        for &(row, n, at) in &multipliers {
            let (row, n, at) = (row as usize, n as usize, at as usize);
            assert!(row + n <= rows && at + n <= locals, "multipliers outside of the local vectors");
        }
        for group in &groups {
            let end = group.entry as usize + 6 * group.bodies as usize * group.rows as usize;
            assert!(
                group.row as usize + group.rows as usize <= rows && end <= numbers,
                "rows that are not there"
            );
            let of = &bodies[group.body as usize..][..group.bodies as usize];
            assert!(of.iter().all(|&body| (body as usize) < bodies_at.len()), "bodies that are not there");
            let narrow = |&body: &u32| bodies_at[body as usize].0 < 6;
            assert!(group.narrow || !of.iter().any(narrow), "a narrow body in a group that is not");
        }
        let all = || (0..).zip(bodies_at.iter().copied());
        let mut by_place: Vec<(u32, u32)> =
            all().filter(|(_, (width, _))| *width == 6).map(|(body, (_, at))| (body, at)).collect();
        by_place.sort_unstable_by_key(|&(_, at)| at);
        let mut narrow: Vec<(u32, u32, u32)> =
            all().filter(|(_, (width, _))| *width < 6).map(|(body, (width, at))| (body, width, at)).collect();
        narrow.sort_unstable_by_key(|&(_, width, at)| at + width);
        let body_at: Vec<u32> = bodies_at.iter().map(|&(_, at)| at).collect();
        multipliers.sort_unstable_by_key(|&(_, n, at)| at + n);
        let stretches = 1..=locals.div_ceil(STRETCH) as u32;
        let ends = stretches.map(|k| k * STRETCH as u32).map(|end| {
            let bodies = by_place.partition_point(|&(_, at)| at + 6 <= end);
            let ending = |list: &[(u32, u32, u32)]| list.partition_point(|&(_, n, at)| at + n <= end) as u32;
            [bodies as u32, ending(&narrow), ending(&multipliers)]
        });
        let ends = ends.collect();
        let width = bodies_at.iter().map(|&(width, _)| width as u8).collect();
        Self {
            body_at,
            width,
            by_place,
            narrow,
            multipliers,
            ends,
            met: Vec::new(),
            groups,
            bodies,
            rows,
            numbers,
            locals,
        }
    }

    /// Finds the fronts of a plan that meet each stretch, for substitution that fills and reads stretches on its way.
    pub fn meet(&mut self, plan: &Symbolic) {
        self.met = vec![(plan.fronts.len() as u32, plan.fronts.len() as u32); self.ends.len()];
        let last = |local: usize, shape: Shape| (local + shape.ld()).saturating_sub(1) / STRETCH;
        for (f, front) in (0..).zip(&plan.fronts) {
            if front.shape.ld() == 0 {
                continue;
            }
            let own = last(front.local, front.shape);
            let above = plan.fronts.get(front.parent as usize).map_or(own, |p| last(p.local, p.shape));
            self.met[own].1 = self.met[own].1.min(f);
            self.met[own.max(above)].0 = self.met[own.max(above)].0.min(f);
        }
        for k in (1..self.met.len()).rev() {
            let behind = self.met[k];
            let met = &mut self.met[k - 1];
            *met = (met.0.min(behind.0), met.1.min(behind.1));
        }
    }

    /// For each stretch, the first front that must not go before it is filled, and the first that must go before it is read. None
    /// if it is not known, or folded rows put numbers anywhere.
    pub(in crate::linalg) fn met(&self) -> Option<&[(u32, u32)]> {
        (!self.met.is_empty() && self.groups.is_empty()).then_some(&self.met)
    }

    /// Number of stretches.
    pub(in crate::linalg) fn count(&self) -> usize {
        self.ends.len()
    }

    /// All groups, as bodies hear of them.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Some of the stretches of local vectors. Each stays in the first cache, so that it comes from memory once.
    #[inline(always)]
    fn stretches(&self, some: Range<usize>) -> impl Iterator<Item = Stretch<'_>> {
        some.map(|k| {
            let ends = |k: usize| self.ends[k].map(|end| end as usize);
            let (first, end) = (k.checked_sub(1).map_or([0; 3], ends), ends(k));
            Stretch {
                begin: k * STRETCH,
                end: (k * STRETCH + STRETCH).min(self.locals),
                bodies: &self.by_place[first[0]..end[0]],
                narrow: &self.narrow[first[1]..end[1]],
                multipliers: &self.multipliers[first[2]..end[2]],
            }
        })
    }

    fn check(&self, numbers: &Numbers<'_>, v: usize, lambda: usize, x: usize) {
        assert!(numbers.jacobian.len() >= self.numbers && numbers.regular.len() >= self.rows);
        assert!(numbers.weight.len() >= self.rows && lambda >= self.rows);
        assert!(v >= 6 * self.body_at.len() && x >= self.locals);
    }
}

/// Numbers of a stretch of local vectors.
const STRETCH: usize = 2048;

/// A stretch of the local vectors, and what ends in it.
struct Stretch<'a> {
    begin: usize,
    end: usize,
    bodies: &'a [(u32, u32)],
    narrow: &'a [(u32, u32, u32)],
    multipliers: &'a [(u32, u32, u32)],
}

/// x = the right-hand side: r_v + Jᵀ (C+D)⁻¹ r_λ of folded rows at the bodies, r_λ of free rows at the multipliers, zero elsewhere.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn fill_sides(
    isa: Isa,
    sides: &Sides,
    numbers: Numbers<'_>,
    r_v: &[f64],
    r_lambda: &[f64],
    x: &mut [f64],
) {
    fill_stretches(isa, sides, 0..sides.count(), numbers, (r_v, r_lambda), x);
}

/// [`fill_sides`] of some stretches; with the last one, of the folded rows.
///
/// # Panics
/// If a slice is shorter than the plan asks for, or a stretch is not there.
pub(in crate::linalg) fn fill_stretches(
    isa: Isa,
    sides: &Sides,
    some: Range<usize>,
    numbers: Numbers<'_>,
    (r_v, r_lambda): (&[f64], &[f64]),
    x: &mut [f64],
) {
    sides.check(&numbers, r_v.len(), r_lambda.len(), x.len());
    let (r_v, r_lambda, x) = (r_v.as_ptr(), r_lambda.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, fill_kernel(sides: &Sides, some: Range<usize>, numbers: Numbers<'_>, r_v: *const f64, r_lambda: *const f64, x: *mut f64));
}

/// v and λ of free rows from the unknowns: λ = −x at multipliers, (C+D)⁻¹ (r_λ − J v) of folded rows.
///
/// # Panics
/// If a slice is shorter than the plan asks for.
pub fn read_sides(
    isa: Isa,
    sides: &Sides,
    numbers: Numbers<'_>,
    r_lambda: &[f64],
    x: &[f64],
    v: &mut [f64],
    lambda: &mut [f64],
) {
    read_stretches(isa, sides, 0..sides.count(), numbers, (r_lambda, x), (v, lambda));
}

/// [`read_sides`] of some stretches; with the first one, of the folded rows.
///
/// # Panics
/// If a slice is shorter than the plan asks for, or a stretch is not there.
pub(in crate::linalg) fn read_stretches(
    isa: Isa,
    sides: &Sides,
    some: Range<usize>,
    numbers: Numbers<'_>,
    (r_lambda, x): (&[f64], &[f64]),
    (v, lambda): (&mut [f64], &mut [f64]),
) {
    sides.check(&numbers, v.len(), r_lambda.len().min(lambda.len()), x.len());
    let (r_lambda, x, v, lambda) = (r_lambda.as_ptr(), x.as_ptr(), v.as_mut_ptr(), lambda.as_mut_ptr());
    dispatch!(isa, read_kernel(sides: &Sides, some: Range<usize>, numbers: Numbers<'_>, r_lambda: *const f64, x: *const f64, v: *mut f64, lambda: *mut f64));
}

/// Six numbers from one place to another: the two vectors overlap.
#[inline(always)]
unsafe fn copy_six<S: Lanes>(from: *const f64, to: *mut f64) {
    // SAFETY: six numbers at both.
    unsafe {
        let (head, tail) = (S::load(from), S::load(from.add(2)));
        head.store(to);
        tail.store(to.add(2));
    }
}

#[inline(always)]
unsafe fn fill_kernel<S: Lanes>(
    sides: &Sides,
    some: Range<usize>,
    numbers: Numbers<'_>,
    r_v: *const f64,
    r_lambda: *const f64,
    x: *mut f64,
) {
    // SAFETY: `Sides::new` checked places, rows and bodies; the caller the lengths. Local vectors are a multiple of four numbers.
    unsafe {
        let groups = some.end == sides.count();
        for stretch in sides.stretches(some) {
            // What begins in the stretch before and ends here is written whole.
            std::ptr::write_bytes(x.add(stretch.begin), 0, stretch.end - stretch.begin);
            for &(body, at) in stretch.bodies {
                copy_six::<S>(r_v.add(6 * body as usize), x.add(at as usize));
            }
            for &(body, width, at) in stretch.narrow {
                x.add(at as usize).copy_from(r_v.add(6 * body as usize), width as usize);
            }
            for &(row, n, at) in stretch.multipliers {
                let (w, from) = (numbers.weight.as_ptr().add(row as usize), r_lambda.add(row as usize));
                let (to, mut r) = (x.add(at as usize), 0);
                while r + 4 <= n as usize {
                    S::load(from.add(r)).where_not_zero(S::load(w.add(r))).store(to.add(r));
                    r += 4;
                }
                while r < n as usize {
                    *to.add(r) = if *w.add(r) != 0.0 { *from.add(r) } else { 0.0 };
                    r += 1;
                }
            }
        }
        for group in sides.groups.iter().filter(|_| groups) {
            match group.bodies % 2 {
                _ if group.narrow => fill_narrow(sides, group, numbers, r_lambda, x),
                0 => fill_group::<S, 2>(sides, group, numbers, r_lambda, x),
                _ => fill_group::<S, 1>(sides, group, numbers, r_lambda, x),
            }
        }
    }
}

/// x += Jᵀ (C+D)⁻¹ r_λ of one group with bodies of fewer than six unknowns.
unsafe fn fill_narrow(sides: &Sides, group: &Group, numbers: Numbers<'_>, r_lambda: *const f64, x: *mut f64) {
    let stride = 6 * group.bodies as usize;
    // SAFETY: as for `fill_kernel`: a body's place has room for its width, which `Sides::new` checked.
    unsafe {
        for r in 0..group.rows as usize {
            let w = *numbers.weight.get_unchecked(group.row as usize + r);
            if w == 0.0 {
                continue;
            }
            let y = *r_lambda.add(group.row as usize + r) * w;
            let j = numbers.jacobian.as_ptr().add(group.entry as usize + r * stride);
            for k in 0..group.bodies as usize {
                let body = *sides.bodies.get_unchecked(group.body as usize + k) as usize;
                let at = *sides.body_at.get_unchecked(body) as usize;
                let width = usize::from(*sides.width.get_unchecked(body));
                (0..width).for_each(|c| *x.add(at + c) += *j.add(6 * k + c) * y);
            }
        }
    }
}

/// x += Jᵀ (C+D)⁻¹ r_λ of one group, B bodies at a time.
#[inline(always)]
unsafe fn fill_group<S: Lanes, const B: usize>(
    sides: &Sides,
    group: &Group,
    numbers: Numbers<'_>,
    r_lambda: *const f64,
    x: *mut f64,
) {
    let (row, rows, stride) = (group.row as usize, group.rows as usize, 6 * group.bodies as usize);
    // SAFETY: as for `fill_kernel`.
    unsafe {
        let weight = numbers.weight.as_ptr().add(row);
        let r_lambda = r_lambda.add(row);
        let jacobian = numbers.jacobian.as_ptr().add(group.entry as usize);
        let mut first = 0;
        while first < group.bodies as usize {
            let mut sum = [[S::splat(0.0); 2]; B];
            let j = jacobian.add(6 * first);
            macro_rules! four {
                ($r:expr, $($lane:literal),*) => {
                    let w = S::load(weight.add($r));
                    // Of tight rows nothing is known.
                    let y = S::load(r_lambda.add($r)).mul(w).where_not_zero(w);
                    $(add_row::<S, B>(&mut sum, y.broadcast($lane), j.add(($r + $lane) * stride));)*
                };
            }
            let mut r = 0;
            while r + 4 <= rows {
                four!(r, 0, 1, 2, 3);
                r += 4;
            }
            match (rows >= 4, rows - r) {
                (true, 3) => {
                    four!(rows - 4, 1, 2, 3);
                }
                (true, 2) => {
                    four!(rows - 4, 2, 3);
                }
                (true, 1) => {
                    four!(rows - 4, 3);
                }
                _ => {
                    while r < rows {
                        let w = *weight.add(r);
                        let y = if w != 0.0 { *r_lambda.add(r) * w } else { 0.0 };
                        add_row::<S, B>(&mut sum, S::splat(y), j.add(r * stride));
                        r += 1;
                    }
                }
            }
            for k in 0..B {
                let body = *sides.bodies.get_unchecked(group.body as usize + first + k) as usize;
                let [head, tail] = sum[k];
                head.add_to_six(tail, x.add(*sides.body_at.get_unchecked(body) as usize));
            }
            first += B;
        }
    }
}

/// sum += y times the six numbers of each of B bodies; the second vector overlaps the first.
#[inline(always)]
unsafe fn add_row<S: Lanes, const B: usize>(sum: &mut [[S; 2]; B], y: S, j: *const f64) {
    for (k, sum) in sum.iter_mut().enumerate() {
        // SAFETY: six numbers a body.
        unsafe {
            sum[0] = sum[0].add_mul(S::load(j.add(6 * k)), y);
            sum[1] = sum[1].add_mul(S::load(j.add(6 * k + 2)), y);
        }
    }
}

#[inline(always)]
unsafe fn read_kernel<S: Lanes>(
    sides: &Sides,
    some: Range<usize>,
    numbers: Numbers<'_>,
    r_lambda: *const f64,
    x: *const f64,
    v: *mut f64,
    lambda: *mut f64,
) {
    // SAFETY: as for `fill_kernel`.
    unsafe {
        let groups = some.start == 0;
        for stretch in sides.stretches(some) {
            for &(body, at) in stretch.bodies {
                copy_six::<S>(x.add(at as usize), v.add(6 * body as usize));
            }
            for &(body, width, at) in stretch.narrow {
                let (to, width) = (v.add(6 * body as usize), width as usize);
                to.copy_from(x.add(at as usize), width);
                std::ptr::write_bytes(to.add(width), 0, 6 - width);
            }
            for &(row, n, at) in stretch.multipliers {
                let (w, from) = (numbers.weight.as_ptr().add(row as usize), x.add(at as usize));
                let (to, mut r) = (lambda.add(row as usize), 0);
                while r + 4 <= n as usize {
                    let new = S::splat(-0.0).sub(S::load(from.add(r)));
                    store_free(new, S::load(w.add(r)), to.add(r));
                    r += 4;
                }
                while r < n as usize {
                    if *w.add(r) != 0.0 {
                        *to.add(r) = -*from.add(r);
                    }
                    r += 1;
                }
            }
        }
        for group in sides.groups.iter().filter(|_| groups) {
            match group.bodies % 2 {
                0 => read_group::<S, 2>(sides, group, numbers, r_lambda, v, lambda),
                _ => read_group::<S, 1>(sides, group, numbers, r_lambda, v, lambda),
            }
        }
    }
}

/// λ = (C+D)⁻¹ (r_λ − J v) of the free rows of one group, B bodies at a time.
#[inline(always)]
unsafe fn read_group<S: Lanes, const B: usize>(
    sides: &Sides,
    group: &Group,
    numbers: Numbers<'_>,
    r_lambda: *const f64,
    v: *const f64,
    lambda: *mut f64,
) {
    let (row, rows) = (group.row as usize, group.rows as usize);
    // SAFETY: as for `fill_kernel`.
    unsafe {
        let weight = numbers.weight.as_ptr().add(row);
        let (r_lambda, lambda) = (r_lambda.add(row), lambda.add(row));
        if rows < 4 {
            let mut start = [0.0; 4];
            let mut w = [0.0; 4];
            for r in 0..rows {
                start[r] = *r_lambda.add(r);
                w[r] = *weight.add(r);
            }
            let start = S::load(start.as_ptr());
            let rest = match rows {
                3 => remainder::<S, B, 3>(sides, group, 0, numbers.jacobian, start, v),
                2 => remainder::<S, B, 2>(sides, group, 0, numbers.jacobian, start, v),
                _ => remainder::<S, B, 1>(sides, group, 0, numbers.jacobian, start, v),
            };
            let new = rest.lanes();
            for r in 0..rows {
                if w[r] != 0.0 {
                    *lambda.add(r) = new[r] * w[r];
                }
            }
            return;
        }
        let mut r = 0;
        while r < rows {
            // The last four overlap those before them and come to the same there.
            let at = r.min(rows - 4);
            let start = S::load(r_lambda.add(at));
            let rest = remainder::<S, B, 4>(sides, group, at, numbers.jacobian, start, v);
            let w = S::load(weight.add(at));
            store_free(rest.mul(w), w, lambda.add(at));
            r += 4;
        }
    }
}

/// to = new where the weight is not zero.
#[inline(always)]
unsafe fn store_free<S: Lanes>(new: S, weight: S, to: *mut f64) {
    // SAFETY: four numbers.
    unsafe {
        match weight.differs(S::splat(0.0)) {
            0b1111 => new.store(to),
            free => {
                let new = new.lanes();
                for k in 0..4 {
                    if free >> k & 1 != 0 {
                        *to.add(k) = new[k];
                    }
                }
            }
        }
    }
}

/// r − J v of N rows of a group from row `r` on, B bodies at a time.
#[inline(always)]
unsafe fn remainder<S: Lanes, const B: usize, const N: usize>(
    sides: &Sides,
    group: &Group,
    r: usize,
    jacobian: &[f64],
    start: S,
    v: *const f64,
) -> S {
    let stride = 6 * group.bodies as usize;
    // SAFETY: as for `fill_kernel`. The overlapping part of the second vector is multiplied by zero.
    unsafe {
        let first = jacobian.as_ptr().add(group.entry as usize + r * stride);
        let mut rest = start;
        let mut done = 0;
        while done < group.bodies as usize {
            let mut six = [[S::splat(0.0); 2]; B];
            for k in 0..B {
                let body = *sides.bodies.get_unchecked(group.body as usize + done + k) as usize;
                let end = S::load(v.add(6 * body + 2));
                six[k] = [S::load(v.add(6 * body)), S::splat(0.0).pick(end, 2).pick(end, 3)];
            }
            let mut sums = [S::splat(0.0); 4];
            for i in 0..N {
                let p = first.add(6 * done + i * stride);
                let mut sum = S::load(p).mul(six[0][0]).add_mul(S::load(p.add(2)), six[0][1]);
                for k in 1..B {
                    sum = sum.add_mul(S::load(p.add(6 * k)), six[k][0]);
                    sum = sum.add_mul(S::load(p.add(6 * k + 2)), six[k][1]);
                }
                sums[i] = sum;
            }
            rest = rest.sub(S::sums(sums));
            done += B;
        }
        rest
    }
}
