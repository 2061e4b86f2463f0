//! Original entries that stay into fronts.

use super::InterfaceRows;
use super::plan::{CouplingPlace, JacobianPlace, Plan};
use crate::linalg::kernels::{self, Six};
use crate::linalg::multifrontal::{Assemble, FrontMut};
use crate::solver::RowProblem;

/// Everything that stays in a front while index sets change.
pub struct Assembler<'a> {
    /// Where things go.
    pub plan: &'a Plan,
    /// The numbers.
    pub problem: &'a RowProblem,
    /// The numbers of the interface.
    pub interface: &'a InterfaceRows,
}

impl Assemble for Assembler<'_> {
    /// Masses and Jacobians.
    fn assemble(&self, front: usize, into: &mut FrontMut<'_>) {
        for &(body, local, width) in self.plan.pivot_bodies.of(front) {
            let (local, width) = (local as usize, width as usize);
            into.sign[local..local + width].fill(1.0);
            let mass = &self.problem.mass[body as usize];
            let (block, ld) = into.block(local, local);
            for (c, column) in mass.as_chunks::<6>().0.iter().enumerate().take(width) {
                match width {
                    6 => block[c * ld..c * ld + 6].copy_from_slice(column),
                    _ => block[c * ld..c * ld + width].copy_from_slice(&column[..width]),
                }
            }
        }
        for place in self.plan.couplings.of(front) {
            add_coupling(place, &self.problem.couplings[place.coupling as usize].block, into);
        }
        for coupling in self.plan.jacobians.of(front) {
            let numbers = match coupling.interface {
                true => &self.interface.jacobian,
                false => &self.problem.jacobian,
            };
            couple(coupling, &numbers[coupling.entry as usize..], into);
        }
    }

    fn fetch(&self, front: usize, pivots: usize) {
        for &(body, ..) in self.plan.pivot_bodies.of(front) {
            kernels::fetch(&self.problem.mass[body as usize]);
        }
        for place in self.plan.couplings.of(front) {
            kernels::fetch(
                &self.problem.couplings[place.coupling as usize].block
                    [..6 * place.columns.max(place.rows) as usize],
            );
        }
        // Where body and multiplier are both eliminated here, a child has mostly brought the rows' lines with its own.
        let new =
            |c: &&JacobianPlace| !c.interface && c.rows > 0 && c.multiplier.max(c.body) as usize >= pivots;
        for coupling in self.plan.jacobians.of(front).iter().filter(new) {
            let n = (coupling.rows - 1) * coupling.stride + 6;
            kernels::fetch(&self.problem.jacobian[coupling.entry as usize..][..n as usize]);
        }
    }
}

/// Adds a block of A below the node that is eliminated first.
fn add_coupling(place: &CouplingPlace, numbers: &[f64; 36], into: &mut FrontMut<'_>) {
    let (block, ld) = into.block(place.row as usize, place.column as usize);
    if (place.rows, place.columns) == (3, 3) {
        let at = |r: usize, c: usize| numbers[if place.transposed { 6 * c + r } else { 6 * r + c }];
        for c in 0..3 {
            let column: &mut [f64] = &mut block[c * ld..c * ld + 3];
            (0..3).for_each(|r| column[r] += at(r, c));
        }
        return;
    }
    for c in 0..place.columns as usize {
        for r in 0..place.rows as usize {
            block[c * ld + r] += numbers[if place.transposed { 6 * c + r } else { 6 * r + c }];
        }
    }
}

/// Writes a Jacobian block beside or below its body, whichever column is eliminated first.
fn couple(coupling: &JacobianPlace, numbers: &[f64], into: &mut FrontMut<'_>) {
    let (m, b) = (coupling.multiplier as usize, coupling.body as usize);
    let six = Six { numbers, stride: coupling.stride as usize };
    let (rows, width) = (coupling.rows as usize, coupling.width as usize);
    let (block, ld) = if b < m { into.block(m, b) } else { into.block(b, m) };
    match (b < m, width) {
        (true, 6) => kernels::place_beside(six, rows, block, ld),
        (false, 6) => kernels::place_below(six, rows, block, ld),
        (beside, _) => kernels::place_narrow(six, (rows, width), beside, block, ld),
    }
}
