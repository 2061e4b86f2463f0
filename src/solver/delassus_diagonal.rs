//! What the numbers of a problem say before anything is factored: M⁻¹, M⁻¹ p, the diagonal of A and b = J M⁻¹ p + d.

use super::problem::{RowBlock, RowProblem};
use super::residual;
use super::row_solver::are_finite;
use crate::linalg::Isa;
use crate::linalg::kernels::{self, Six, with_avx2};

/// Compliance below this share of A_ii counts as rigid: its square root is where double precision
/// stops telling redundant rows apart, and 1/C would drown the masses.
const COMPLIANCE_FLOOR: f64 = 1e-14;

/// What is known of some rows before anything is factored.
#[derive(Clone, Copy, Debug)]
pub struct Formed {
    /// Are they, and the masses of their bodies, numbers?
    pub finite: bool,
    /// Σ b².
    pub square: f64,
    /// Has any of them less than the least compliance?
    pub lacks: bool,
}

impl Formed {
    /// Of rows with these numbers.
    pub fn of(finite: bool, compliance: &[f64], diagonal: &[f64], b: &[f64]) -> Self {
        Formed { finite, square: residual::square(b), lacks: lacks(compliance, diagonal) }
    }

    /// And of others.
    pub fn add(&mut self, others: &Self) {
        self.finite &= others.finite;
        self.square += others.square;
        self.lacks |= others.lacks;
    }
}

/// What is missing to the least compliance of a row.
#[inline(always)]
pub fn missing_compliance(compliance: f64, diagonal: f64) -> f64 {
    (COMPLIANCE_FLOOR * diagonal.abs().max(1e-30) - compliance).max(0.0)
}

/// Is anything missing to the least compliance of any row? Nobody stops at the first: without an end to look for, many are looked at in
/// one instruction.
fn lacks(compliance: &[f64], diagonal: &[f64]) -> bool {
    let rows = compliance.iter().zip(diagonal);
    with_avx2(
        #[inline(always)]
        || rows.fold(false, |any, (&c, &a)| any | (missing_compliance(c, a) > 0.0)),
    )
}

/// M⁻¹ and M⁻¹ p of one body. Are its mass and what comes of it numbers?
pub fn invert(problem: &RowProblem, body: usize, inverse: &mut [f64; 36], q: &mut [f64]) -> bool {
    *inverse = problem.inverse_mass(body);
    let p = &problem.momentum[body];
    let mut sum = [0.0; 6];
    for c in 0..6 {
        (0..6).for_each(|r| sum[r] += inverse[6 * c + r] * p[c]);
    }
    q[..6].copy_from_slice(&sum);
    are_finite(&problem.mass[body]) & are_finite(&inverse[..])
}

/// The diagonal of A and b of some blocks, from the first row of the first of them on. Are they numbers?
pub fn form_rows(
    isa: Isa,
    problem: &RowProblem,
    blocks: &[RowBlock],
    (inverse, q): (&[[f64; 36]], &[f64]),
    (diagonal, b): (&mut [f64], &mut [f64]),
) -> bool {
    let first = blocks.first().map_or(0, |block| block.row as usize);
    for block in blocks {
        let own = block.row as usize - first..(block.row + block.rows) as usize - first;
        let bodies = problem.bodies_of(block);
        let free = |k: usize| (&inverse[bodies[k] as usize], &q[6 * bodies[k] as usize..][..6]);
        add_block(isa, problem, block, free, (&mut diagonal[own.clone()], &mut b[own]));
    }
    are_finite(diagonal) & are_finite(b)
}

/// The same of one block whose k-th body has M⁻¹ and M⁻¹ p as `free` says.
pub fn form_block<'a>(
    isa: Isa,
    problem: &RowProblem,
    block: &RowBlock,
    free: impl Fn(usize) -> (&'a [f64; 36], &'a [f64; 6]),
    (diagonal, b): (&mut [f64], &mut [f64]),
) -> bool {
    add_block(isa, problem, block, |k| (free(k).0, &free(k).1[..]), (diagonal, b));
    are_finite(diagonal) & are_finite(b)
}

#[inline(always)]
fn add_block<'a>(
    isa: Isa,
    problem: &RowProblem,
    block: &RowBlock,
    free: impl Fn(usize) -> (&'a [f64; 36], &'a [f64]),
    (diagonal, b): (&mut [f64], &mut [f64]),
) {
    let rows = block.row as usize..(block.row + block.rows) as usize;
    diagonal.copy_from_slice(&problem.compliance[rows.clone()]);
    b.copy_from_slice(&problem.d[rows]);
    for k in 0..block.bodies as usize {
        let numbers = &problem.jacobian[block.entry as usize + 6 * k..];
        let six = Six { numbers, stride: 6 * block.bodies as usize };
        let (inverse, q) = free(k);
        kernels::add_mobility(isa, six, inverse, q, diagonal, b);
    }
}
