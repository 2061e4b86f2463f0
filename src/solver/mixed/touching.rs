//! Products with J and Jᵀ in stretches that may be worked on at once.
//!
//! Jᵀ λ adds to two bodies a row. Body by body, with its rows in their order, every sum has the same terms in the same order as
//! row by row, so that stretches of bodies give the same bits.

use super::Mixed;
use super::solve::product;
use crate::linalg::executor::Executor;
use crate::linalg::kernels::wide;
use crate::solver::{RowBlock, RowProblem, balance};

/// Stretches of bodies, and of rows.
const STRETCHES: usize = 4;

/// Rows of one block on one body.
#[derive(Clone, Copy, Debug)]
struct Touch {
    row: u32,
    rows: u32,
    /// The first six Jacobian numbers, and how far it is from row to row.
    entry: u32,
    stride: u32,
}

/// The rows that touch each body, in their order.
#[derive(Clone, Debug, Default)]
pub struct Touching {
    start: Vec<u32>,
    of: Vec<Touch>,
}

impl Touching {
    /// Of all blocks of a problem.
    pub fn new(problem: &RowProblem) -> Self {
        let mut all = Vec::with_capacity(problem.block_bodies.len());
        for block in &problem.blocks {
            for (k, &body) in (0..).zip(problem.bodies_of(block)) {
                let entry = block.entry + 6 * k;
                all.push((body, Touch { row: block.row, rows: block.rows, entry, stride: 6 * block.bodies }));
            }
        }
        all.sort_by_key(|&(body, _)| body);
        let start = (0..=problem.bodies() as u32).map(|b| all.partition_point(|&(body, _)| body < b) as u32);
        Self { start: start.collect(), of: all.iter().map(|&(_, touch)| touch).collect() }
    }

    /// Calls `f(row, its six numbers)` for the rows of a body.
    #[inline(always)]
    fn for_each(&self, problem: &RowProblem, body: usize, mut f: impl FnMut(usize, &[f64; 6])) {
        for touch in &self.of[self.start[body] as usize..self.start[body + 1] as usize] {
            let numbers = &problem.jacobian[touch.entry as usize..];
            for r in 0..touch.rows as usize {
                let six = &numbers[r * touch.stride as usize..][..6];
                f(touch.row as usize + r, six.try_into().expect("six numbers"));
            }
        }
    }
}

/// Something to be done at once with others.
enum Piece<'a> {
    Nothing,
    /// Momenta of bodies from the first one on, and a second vector of the same length.
    Bodies(usize, &'a mut [f64], &'a mut [f64]),
    /// Rows of blocks from the first row on.
    Rows(&'a [RowBlock], usize, &'a mut [f64]),
}

/// Cuts vectors over bodies and a vector over rows into pieces. The second vector may be empty.
fn pieces<'a>(
    problem: &'a RowProblem,
    (mut first, mut second): (&'a mut [f64], &'a mut [f64]),
    mut rows: &'a mut [f64],
) -> [Piece<'a>; 2 * STRETCHES] {
    let mut pieces = std::array::from_fn(|_| Piece::Nothing);
    let share = problem.bodies().div_ceil(STRETCHES).max(1);
    for (k, piece) in pieces[..STRETCHES].iter_mut().enumerate() {
        let n = (6 * share).min(first.len());
        let (own, rest) = std::mem::take(&mut first).split_at_mut(n);
        let (other, left) = std::mem::take(&mut second).split_at_mut(n.min(second.len()));
        (first, second) = (rest, left);
        *piece = Piece::Bodies(k * share, own, other);
    }
    let share = problem.blocks.len().div_ceil(STRETCHES).max(1);
    let mut begin = 0;
    for (piece, blocks) in pieces[STRETCHES..].iter_mut().zip(problem.blocks.chunks(share)) {
        let n = blocks.iter().map(|block| block.rows as usize).sum();
        let (own, rest) = std::mem::take(&mut rows).split_at_mut(n);
        rows = rest;
        *piece = Piece::Rows(blocks, begin, own);
        begin += n;
    }
    pieces
}

impl<E: Executor> Mixed<E> {
    /// What is missing to M v = p + Jᵀ λ into `r`, the sizes of its terms into `size`, and w = J v + C λ + d.
    pub fn measure(
        &self,
        problem: &RowProblem,
        (v, lambda): (&[f64], &[f64]),
        (r, size): (&mut [f64], &mut [f64]),
        w: &mut [f64],
    ) {
        let Some(plan) = self.plan.as_deref().filter(|_| self.is_shared()) else {
            balance::form(problem, v, lambda, r, size);
            return problem.slack(v, lambda, w);
        };
        self.executor.for_each(&mut pieces(problem, (r, size), w), |_, piece| match piece {
            Piece::Nothing => {}
            Piece::Bodies(first, r, size) => {
                wide(
                    #[inline(always)]
                    || form(&plan.touching, problem, *first, (v, lambda), (r, size)),
                );
            }
            Piece::Rows(blocks, first, w) => problem.slack_in(blocks, *first, v, lambda, w),
        });
    }

    /// [`subtract_product`](Self::subtract_product) at once.
    pub(super) fn subtract_in_pieces(
        &self,
        problem: &RowProblem,
        (v, lambda): (&[f64], &[f64]),
        r_v: &mut [f64],
        r_lambda: &mut [f64],
    ) {
        let Some(plan) = self.plan.as_deref() else { return };
        let regular = &self.regular;
        self.executor.for_each(&mut pieces(problem, (r_v, &mut []), r_lambda), |_, piece| match piece {
            Piece::Nothing => {}
            Piece::Bodies(first, r, _) => {
                for (body, r) in (*first..).zip(r.chunks_exact_mut(6)) {
                    subtract_momentum(&problem.mass[body], &v[6 * body..], r);
                    plan.touching.for_each(problem, body, |row, j| {
                        if regular[row].is_finite() {
                            (0..6).for_each(|c| r[c] += j[c] * lambda[row]);
                        }
                    });
                }
            }
            Piece::Rows(blocks, first, r) => {
                for block in blocks.iter() {
                    let (bodies, width) = (problem.bodies_of(block), 6 * block.bodies as usize);
                    for k in 0..block.rows as usize {
                        let (row, at) = (block.row as usize + k, block.entry as usize + k * width);
                        if regular[row].is_finite() {
                            let jv = product(&problem.jacobian[at..at + width], bodies, v);
                            r[row - *first] -= jv + regular[row] * lambda[row];
                        }
                    }
                }
            }
        });
    }
}

/// r −= M v of one body.
#[inline]
pub(super) fn subtract_momentum(mass: &[f64; 36], v: &[f64], r: &mut [f64]) {
    for i in 0..6 {
        let mut sum = 0.0;
        for j in 0..6 {
            sum += mass[6 * i + j] * v[j];
        }
        r[i] -= sum;
    }
}

/// [`balance::form`] of some bodies.
#[inline(always)]
fn form(
    touching: &Touching,
    problem: &RowProblem,
    first: usize,
    (v, lambda): (&[f64], &[f64]),
    (r, size): (&mut [f64], &mut [f64]),
) {
    for (body, (r, size)) in (first..).zip(r.chunks_exact_mut(6).zip(size.chunks_exact_mut(6))) {
        balance::begin(&problem.momentum[body], &problem.mass[body], &v[6 * body..6 * body + 6], r, size);
        touching.for_each(problem, body, |row, j| balance::add(j, lambda[row], r, size));
    }
}
