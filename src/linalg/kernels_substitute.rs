//! Forward and backward substitution in one front.

// As in `kernels`: four columns at a time in registers.
#![allow(unsafe_code)]

use super::kernels::Shape;
use super::kernels_lanes::Lanes;

#[inline(always)]
unsafe fn forward_block<S: Lanes, const W: usize>(j: usize, ld: usize, panel: *const f64, x: *mut f64) {
    // SAFETY: rows j..ld exist in the panel's columns and in x; ld and j are multiples of four.
    unsafe {
        let mut head = S::load(x.add(j));
        let mut value = head;
        let mut scale = [S::splat(0.0); W];
        for c in 0..W {
            value = value.pick(head, c);
            scale[c] = head.broadcast(c);
            if c + 1 < W {
                head = head.sub_mul(S::load(panel.add(j + (j + c) * ld)), scale[c]);
            }
        }
        value.store(x.add(j));
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
pub(super) unsafe fn forward_kernel<S: Lanes>(shape: Shape, panel: *const f64, x: *mut f64) {
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
        let scaled = S::load(x.add(j)).mul(S::load(inverse_d.add(j)));
        let mut value = scaled.sub(S::sums(dot));
        let mut done = value;
        for c in (1..W).rev() {
            done = done.pick(value, c);
            let row = S::load(panel.add(j + (j + c) * ld));
            value = value.sub_mul(row, value.broadcast(c));
        }
        done.pick(value, 0).store(x.add(j));
    }
}

#[inline(always)]
pub(super) unsafe fn backward_kernel<S: Lanes>(
    shape: Shape,
    panel: *const f64,
    inverse_d: *const f64,
    x: *mut f64,
) {
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
