//! Original entries into fronts.

use super::InterfaceRows;
use super::plan::{Coupling, Group, Pivot, Plan};
use crate::linalg::kernels::{self, Isa, Six};
use crate::linalg::multifrontal::{Assemble, FrontMut};
use crate::solver::RowProblem;

/// Everything a front is assembled from.
pub struct Assembler<'a> {
    /// Where things go.
    pub plan: &'a Plan,
    /// The numbers.
    pub problem: &'a RowProblem,
    /// The numbers of the interface.
    pub interface: &'a InterfaceRows,
    /// C+D per row, infinite for tight rows.
    pub regular: &'a [f64],
    /// 1/(C+D) per row, 0 for tight ones.
    pub weight: &'a [f64],
    /// Arithmetic.
    pub isa: Isa,
}

impl Assemble for Assembler<'_> {
    fn assemble(&mut self, front: usize, into: &mut FrontMut<'_>) {
        let mut local = 0;
        for pivot in self.plan.pivots.of(front) {
            match *pivot {
                Pivot::Body(body) => {
                    into.sign[local..local + 6].fill(1.0);
                    let mass = &self.problem.mass[body as usize];
                    let (block, ld) = into.block(local, local);
                    for (c, column) in mass.as_chunks::<6>().0.iter().enumerate() {
                        block[c * ld..c * ld + 6].copy_from_slice(column);
                    }
                    local += 6;
                }
                Pivot::Rows(row, rows) => {
                    for r in 0..rows as usize {
                        let c = self.regular[row as usize + r];
                        let (sign, pivot) = if c.is_finite() { (-1.0, -c) } else { (0.0, -1.0) };
                        into.sign[local + r] = sign;
                        into.block(local + r, local + r).0[0] = pivot;
                    }
                    local += rows as usize;
                }
            }
        }
        for coupling in self.plan.couplings.of(front) {
            let numbers = match coupling.interface {
                true => &self.interface.jacobian,
                false => &self.problem.jacobian,
            };
            couple(coupling, &numbers[coupling.entry as usize..], into);
        }
        for group in self.plan.groups.of(front) {
            self.fold(group, into);
        }
    }
}

/// Writes a Jacobian block beside or below its body, whichever column is eliminated first.
fn couple(coupling: &Coupling, numbers: &[f64], into: &mut FrontMut<'_>) {
    let (m, b) = (coupling.multiplier as usize, coupling.body as usize);
    let six = Six { numbers, stride: coupling.stride as usize };
    if b < m {
        let (block, ld) = into.block(m, b);
        kernels::place_beside(six, coupling.rows as usize, block, ld);
    } else {
        let (block, ld) = into.block(b, m);
        kernels::place_below(six, coupling.rows as usize, block, ld);
    }
}

impl Assembler<'_> {
    /// Adds J_cᵀ (C+D)⁻¹ J_c of the group's free rows to its bodies' blocks.
    fn fold(&self, group: &Group, into: &mut FrontMut<'_>) {
        let places = &self.plan.places[group.place as usize..][..group.bodies as usize];
        let weight = &self.weight[group.row as usize..][..group.rows as usize];
        if weight.iter().all(|&w| w == 0.0) {
            return;
        }
        let numbers = &self.problem.jacobian[group.entry as usize..];
        let stride = 6 * group.bodies as usize;
        let six = |column: u32| Six { numbers: &numbers[6 * column as usize..], stride };
        for (k, across) in places.iter().enumerate() {
            for down in &places[k..] {
                let (block, ld) = into.block(down.local as usize, across.local as usize);
                kernels::fold_six(self.isa, six(down.column), six(across.column), weight, block, ld);
            }
        }
    }
}
