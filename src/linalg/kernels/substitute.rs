//! Forward and backward substitution in one front.

// As in `kernels`: four columns at a time in registers.
#![allow(unsafe_code)]

use super::lanes::Lanes;
use super::{Shape, block_at};

/// W columns: from their diagonal on, in `l` with leading dimension `lead`, for `rows` rows.
#[inline(always)]
unsafe fn forward_block<S: Lanes, const W: usize>(rows: usize, l: *const f64, lead: usize, x: *mut f64) {
    // SAFETY: so many rows exist in the panel's columns and in x; a multiple of four.
    unsafe {
        let mut head = S::load(x);
        let mut value = head;
        let mut scale = [S::splat(0.0); W];
        for c in 0..W {
            value = value.pick(head, c);
            scale[c] = head.broadcast(c);
            if c + 1 < W {
                head = head.sub_mul(S::load(l.add(c * lead)), scale[c]);
            }
        }
        value.store(x);
        let mut r = 4;
        while r < rows {
            let mut row = S::load(x.add(r));
            for c in 0..W {
                row = row.sub_mul(S::load(l.add(r + c * lead)), scale[c]);
            }
            row.store(x.add(r));
            r += 4;
        }
    }
}

#[inline(always)]
pub(in crate::linalg) unsafe fn forward_kernel<S: Lanes>(shape: Shape, panel: *const f64, x: *mut f64) {
    let (n, ld) = (shape.pivots, shape.ld());
    // From block to block, a packed panel loses four rows.
    let loss = if shape.is_small() { 4 } else { 0 };
    // SAFETY: the slices were checked against the shape.
    unsafe {
        let (mut j, mut l, mut lead) = (0, panel, ld);
        while j + 4 <= n {
            forward_block::<S, 4>(ld - j, l, lead, x.add(j));
            j += 4;
            l = l.add(4 * lead + 4 - loss);
            lead -= loss;
        }
        match n - j {
            3 => forward_block::<S, 3>(ld - j, l, lead, x.add(j)),
            2 => forward_block::<S, 2>(ld - j, l, lead, x.add(j)),
            1 => forward_block::<S, 1>(ld - j, l, lead, x.add(j)),
            _ => {}
        }
    }
}

#[inline(always)]
unsafe fn backward_block<S: Lanes, const W: usize>(rows: usize, l: *const f64, lead: usize, x: *mut f64) {
    // SAFETY: as for `forward_block`.
    unsafe {
        let mut dot = [S::splat(0.0); 4];
        let mut r = 4;
        while r < rows {
            let row = S::load(x.add(r));
            for c in 0..W {
                dot[c] = dot[c].add_mul(S::load(l.add(r + c * lead)), row);
            }
            r += 4;
        }
        let mut columns = [S::splat(0.0); W];
        let mut inverse = S::splat(0.0);
        for c in 0..W {
            columns[c] = S::load(l.add(c * lead));
            inverse = inverse.pick(columns[c], c);
        }
        let mut value = S::load(x).mul(inverse).sub(S::sums(dot));
        let mut done = value;
        for c in (1..W).rev() {
            done = done.pick(value, c);
            value = value.sub_mul(columns[c], value.broadcast(c));
        }
        done.pick(value, 0).store(x);
    }
}

#[inline(always)]
pub(in crate::linalg) unsafe fn backward_kernel<S: Lanes>(shape: Shape, panel: *const f64, x: *mut f64) {
    let (n, ld) = (shape.pivots, shape.ld());
    let loss = if shape.is_small() { 4 } else { 0 };
    // SAFETY: the slices were checked against the shape; blocks in reverse order.
    unsafe {
        let mut j = n / 4 * 4;
        let (mut l, mut lead) = match shape.is_small() {
            true => (panel.add(block_at(j, ld)), ld - j),
            false => (panel.add(j + j * ld), ld),
        };
        match n - j {
            3 => backward_block::<S, 3>(ld - j, l, lead, x.add(j)),
            2 => backward_block::<S, 2>(ld - j, l, lead, x.add(j)),
            1 => backward_block::<S, 1>(ld - j, l, lead, x.add(j)),
            _ => {}
        }
        while j >= 4 {
            j -= 4;
            lead += loss;
            l = l.sub(4 * lead + 4 - loss);
            backward_block::<S, 4>(ld - j, l, lead, x.add(j));
        }
    }
}
