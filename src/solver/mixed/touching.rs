//! Products with J and Jᵀ, body by body.
//!
//! Jᵀ λ adds to two bodies a row. Row by row, every addition waits until the one before it to the same body is in memory; body by
//! body, with its rows in their order, the sums stay in registers and have the same bits.

use super::MixedSystem;
use crate::linalg::kernels::with_avx2;
use crate::solver::linear::{Point, Scratch};
use crate::solver::{Label, RowProblem, momentum_residual};

/// Rows of one block on one body.
#[derive(Clone, Copy, Debug, Default)]
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
        let mut start = vec![0u32; problem.bodies() + 2];
        problem.block_bodies.iter().for_each(|&body| start[body as usize + 2] += 1);
        for body in 2..start.len() {
            start[body] += start[body - 1];
        }
        let mut of = vec![Touch::default(); problem.block_bodies.len()];
        for block in &problem.blocks {
            for (k, &body) in (0..).zip(problem.bodies_of(block)) {
                let entry = block.entry + 6 * k;
                let next = &mut start[body as usize + 1];
                of[*next as usize] =
                    Touch { row: block.row, rows: block.rows, entry, stride: 6 * block.bodies };
                *next += 1;
            }
        }
        Self { start, of }
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

impl MixedSystem {
    /// See [`LinearSystem::measure`](crate::solver::linear::LinearSystem::measure).
    pub fn measure(
        &self,
        problem: &RowProblem,
        index_set: (&[Label], Option<&[f64]>),
        point: &mut Point<'_>,
        scratch: &mut Scratch,
    ) -> (f64, f64) {
        let (v, lambda) = (&*point.v, &*point.lambda);
        let Scratch { r_v, r_lambda, size, .. } = scratch;
        self.form_balance(problem, (v, lambda), (r_v, size));
        (
            momentum_residual::worst(r_v, size),
            momentum_residual::slack(problem, index_set, (v, lambda), point.w, r_lambda),
        )
    }

    /// p + Jᵀ λ − M v, and the sum of the sizes of its terms.
    pub fn form_balance(
        &self,
        problem: &RowProblem,
        point: (&[f64], &[f64]),
        (r, size): (&mut [f64], &mut [f64]),
    ) {
        let Some(plan) = self.plan.as_deref() else { return size.fill(f64::INFINITY) };
        with_avx2(
            #[inline(always)]
            || form(&plan.touching, problem, point, (r, size)),
        );
    }

    /// r_v −= M v − J_Fᵀ λ_F, r_λ −= J_F v + (C+D) λ_F: what refinement starts from.
    pub fn subtract_product(
        &self,
        problem: &RowProblem,
        v: &[f64],
        lambda: &[f64],
        r_v: &mut [f64],
        r_lambda: &mut [f64],
    ) {
        let Some(plan) = self.plan.as_deref() else { return };
        let regular = &self.regular[..];
        with_avx2(
            #[inline(always)]
            || {
                for (body, r) in r_v.chunks_exact_mut(6).enumerate().take(problem.bodies()) {
                    subtract_momentum(&problem.mass[body], &v[6 * body..], r);
                    plan.touching.for_each(problem, body, |row, j| add_free(j, regular[row], lambda[row], r));
                }
                problem.subtract_coupled(v, r_v);
                subtract_rows(problem, regular, (v, lambda), r_lambda);
            },
        );
    }
}

/// r_λ −= J_F v + (C+D) λ_F.
#[inline(always)]
fn subtract_rows(problem: &RowProblem, regular: &[f64], (v, lambda): (&[f64], &[f64]), r: &mut [f64]) {
    for block in &problem.blocks {
        let (bodies, width) = (problem.bodies_of(block), 6 * block.bodies as usize);
        for k in 0..block.rows as usize {
            let (row, at) = (block.row as usize + k, block.entry as usize + k * width);
            if regular[row].is_finite() {
                let jv = product(&problem.jacobian[at..at + width], bodies, v);
                r[row] -= jv + regular[row] * lambda[row];
            }
        }
    }
}

/// J v of one row. Six sums: one alone would wait for every addition.
#[inline(always)]
fn product(j: &[f64], bodies: &[u32], v: &[f64]) -> f64 {
    let mut sum = [0.0; 6];
    for (six, &body) in j.chunks_exact(6).zip(bodies) {
        let v = &v[6 * body as usize..6 * body as usize + 6];
        for c in 0..6 {
            sum[c] += six[c] * v[c];
        }
    }
    ((sum[0] + sum[1]) + (sum[2] + sum[3])) + (sum[4] + sum[5])
}

/// r += j λ if the row is free.
#[inline(always)]
fn add_free(j: &[f64; 6], regular: f64, lambda: f64, r: &mut [f64]) {
    let l = if regular.is_finite() { lambda } else { 0.0 };
    let r = &mut r[..6];
    (0..6).for_each(|c| r[c] += j[c] * l);
}

/// r −= M v of one body.
#[inline(always)]
fn subtract_momentum(mass: &[f64; 36], v: &[f64], r: &mut [f64]) {
    for i in 0..6 {
        let mut sum = 0.0;
        for j in 0..6 {
            sum += mass[6 * i + j] * v[j];
        }
        r[i] -= sum;
    }
}

/// [`momentum_residual::form`] body by body.
#[inline(always)]
fn form(
    touching: &Touching,
    problem: &RowProblem,
    (v, lambda): (&[f64], &[f64]),
    all: (&mut [f64], &mut [f64]),
) {
    let bodies = all.0.chunks_exact_mut(6).zip(all.1.chunks_exact_mut(6)).take(problem.bodies());
    for (body, (r, size)) in bodies.enumerate() {
        momentum_residual::begin(
            &problem.momentum[body],
            &problem.mass[body],
            &v[6 * body..6 * body + 6],
            r,
            size,
        );
        touching.for_each(problem, body, |row, j| momentum_residual::add(j, lambda[row], r, size));
    }
    problem.balance_coupled(v, all.0, all.1);
}
