//! Right-hand sides into the local vectors of fronts, and answers out of them, in one call each.

// As in `kernels_fronts`: what can be checked is checked when the plan is made.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

use super::kernels_fronts::{Group, Numbers, any, clear};
use super::kernels_lanes::{Isa, Lanes, dispatch};

/// Where unknowns are among the local vectors. Can only be made by [`Sides::new`], which checks it.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    body_at: Vec<u32>,
    multipliers: Vec<(u32, u32, u32)>,
    groups: Vec<Group>,
    /// Bodies of the groups, from [`Group::body`] on.
    bodies: Vec<u32>,
    rows: usize,
    numbers: usize,
    locals: usize,
}

impl Sides {
    /// Takes the places of bodies, of multiplier rows that stand together (first row, number, place) and the folded groups with
    /// the bodies of all blocks, for so many rows, Jacobian numbers and local numbers.
    ///
    /// # Panics
    /// If anything lies outside.
    pub fn new(
        body_at: Vec<u32>,
        multipliers: Vec<(u32, u32, u32)>,
        groups: Vec<Group>,
        bodies: Vec<u32>,
        (rows, numbers, locals): (usize, usize, usize),
    ) -> Self {
        assert!(locals.is_multiple_of(4), "local vectors are padded");
        assert!(body_at.iter().all(|&at| at as usize + 6 <= locals), "bodies outside of the local vectors");
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
            assert!(of.iter().all(|&body| (body as usize) < body_at.len()), "bodies that are not there");
        }
        Self { body_at, multipliers, groups, bodies, rows, numbers, locals }
    }

    fn check(&self, numbers: &Numbers<'_>, v: usize, lambda: usize, x: usize) {
        assert!(numbers.jacobian.len() >= self.numbers && numbers.regular.len() >= self.rows);
        assert!(numbers.weight.len() >= self.rows && lambda >= self.rows);
        assert!(v >= 6 * self.body_at.len() && x >= self.locals);
    }
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
    sides.check(&numbers, r_v.len(), r_lambda.len(), x.len());
    let (r_v, r_lambda, x) = (r_v.as_ptr(), r_lambda.as_ptr(), x.as_mut_ptr());
    dispatch!(isa, fill_kernel(sides: &Sides, numbers: Numbers<'_>, r_v: *const f64, r_lambda: *const f64, x: *mut f64));
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
    sides.check(&numbers, v.len(), r_lambda.len().min(lambda.len()), x.len());
    let (r_lambda, x, v, lambda) = (r_lambda.as_ptr(), x.as_ptr(), v.as_mut_ptr(), lambda.as_mut_ptr());
    dispatch!(isa, read_kernel(sides: &Sides, numbers: Numbers<'_>, r_lambda: *const f64, x: *const f64, v: *mut f64, lambda: *mut f64));
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
    numbers: Numbers<'_>,
    r_v: *const f64,
    r_lambda: *const f64,
    x: *mut f64,
) {
    // SAFETY: `Sides::new` checked places, rows and bodies; the caller the lengths. Local vectors are a multiple of four numbers.
    unsafe {
        clear::<S>(x, sides.locals);
        for (body, &at) in sides.body_at.iter().enumerate() {
            copy_six::<S>(r_v.add(6 * body), x.add(at as usize));
        }
        for &(row, n, at) in &sides.multipliers {
            for r in 0..n as usize {
                let free = *numbers.regular.as_ptr().add(row as usize + r) < f64::INFINITY;
                *x.add(at as usize + r) = if free { *r_lambda.add(row as usize + r) } else { 0.0 };
            }
        }
        for group in &sides.groups {
            let (row, rows, stride) = (group.row as usize, group.rows as usize, 6 * group.bodies as usize);
            let weight = numbers.weight.as_ptr().add(row);
            if !any::<S>(weight, rows) {
                continue;
            }
            let jacobian = numbers.jacobian.as_ptr().add(group.entry as usize);
            for k in 0..group.bodies as usize {
                let (mut head, mut tail) = (S::splat(0.0), S::splat(0.0));
                for r in 0..rows {
                    let w = *weight.add(r);
                    let y = S::splat(if w != 0.0 { *r_lambda.add(row + r) * w } else { 0.0 });
                    let p = jacobian.add(6 * k + r * stride);
                    head = head.add_mul(S::load(p), y);
                    tail = tail.add_mul(S::load(p.add(2)), y);
                }
                let body = *sides.bodies.get_unchecked(group.body as usize + k) as usize;
                head.add_to_six(tail, x.add(*sides.body_at.get_unchecked(body) as usize));
            }
        }
    }
}

#[inline(always)]
unsafe fn read_kernel<S: Lanes>(
    sides: &Sides,
    numbers: Numbers<'_>,
    r_lambda: *const f64,
    x: *const f64,
    v: *mut f64,
    lambda: *mut f64,
) {
    // SAFETY: as for `fill_kernel`.
    unsafe {
        for (body, &at) in sides.body_at.iter().enumerate() {
            copy_six::<S>(x.add(at as usize), v.add(6 * body));
        }
        for &(row, n, at) in &sides.multipliers {
            for r in 0..n as usize {
                if *numbers.regular.as_ptr().add(row as usize + r) < f64::INFINITY {
                    *lambda.add(row as usize + r) = -*x.add(at as usize + r);
                }
            }
        }
        for group in &sides.groups {
            let (row, rows) = (group.row as usize, group.rows as usize);
            let weight = numbers.weight.as_ptr().add(row);
            let mut r = 0;
            while r + 4 <= rows {
                let rest =
                    remainder::<S, 4>(sides, group, r, numbers.jacobian, S::load(r_lambda.add(row + r)), v);
                let w = S::load(weight.add(r));
                let (new, to) = (rest.mul(w), lambda.add(row + r));
                match w.differs(S::splat(0.0)) {
                    0b1111 => new.store(to),
                    free => {
                        for (k, new) in
                            new.lanes().into_iter().enumerate().filter(|(k, _)| free >> k & 1 != 0)
                        {
                            *to.add(k) = new;
                        }
                    }
                }
                r += 4;
            }
            while r < rows {
                let w = *weight.add(r);
                if w != 0.0 {
                    let start = S::splat(*r_lambda.add(row + r));
                    let rest = remainder::<S, 1>(sides, group, r, numbers.jacobian, start, v);
                    *lambda.add(row + r) = rest.lanes()[0] * w;
                }
                r += 1;
            }
        }
    }
}

/// r − J v of N rows of a group from row `r` on.
#[inline(always)]
unsafe fn remainder<S: Lanes, const N: usize>(
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
        for k in 0..group.bodies as usize {
            let body = *sides.bodies.get_unchecked(group.body as usize + k) as usize;
            let head = S::load(v.add(6 * body));
            let end = S::load(v.add(6 * body + 2));
            let tail = S::splat(0.0).pick(end, 2).pick(end, 3);
            let mut sums = [S::splat(0.0); 4];
            for (i, sum) in sums.iter_mut().enumerate().take(N) {
                let p = first.add(6 * k + i * stride);
                *sum = S::load(p).mul(head).add_mul(S::load(p.add(2)), tail);
            }
            rest = rest.sub(S::sums(sums));
        }
        rest
    }
}
