//! Original entries into fronts.

use super::InterfaceRows;
use super::plan::{Coupling, Group, Pivot, Place, Plan};
use crate::linalg::kernels::{self, Isa};
use crate::linalg::multifrontal::{Assemble, FrontMut};
use crate::solver::RowProblem;

/// Work space for folding; keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    rows: Vec<f64>,
    scaled: Vec<f64>,
    product: Vec<f64>,
}

impl Fold {
    /// Makes room for the widest group.
    pub fn reserve(&mut self, plan: &Plan) {
        self.rows.resize(plan.widest * plan.most_rows, 0.0);
        self.scaled.resize(plan.widest * plan.most_rows, 0.0);
        self.product.resize(plan.widest * plan.widest, 0.0);
    }
}

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
    /// 1/(C+D) of folded rows, 0 for tight ones.
    pub weight: &'a [f64],
    /// Work space.
    pub fold: &'a mut Fold,
    /// Arithmetic.
    pub isa: Isa,
}

impl Assemble for Assembler<'_> {
    fn assemble(&mut self, front: usize, into: &mut FrontMut<'_>) {
        let mut local = 0;
        for pivot in self.plan.pivots.of(front) {
            match *pivot {
                Pivot::Body(body) => {
                    let mass = &self.problem.mass[body as usize];
                    into.sign[local..local + 6].fill(1.0);
                    for c in 0..6 {
                        into.column(local + c, local, 6).copy_from_slice(&mass[6 * c..6 * c + 6]);
                    }
                    local += 6;
                }
                Pivot::Rows(row, rows) => {
                    for r in 0..rows as usize {
                        let c = self.regular[row as usize + r];
                        let (sign, pivot) = if c.is_finite() { (-1.0, -c) } else { (0.0, -1.0) };
                        into.sign[local + r] = sign;
                        into.column(local + r, local + r, 1)[0] = pivot;
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
            couple(coupling, numbers, into);
        }
        for group in self.plan.groups.of(front) {
            self.fold_group(group, into);
        }
    }
}

/// Writes a Jacobian block beside or below its body.
fn couple(coupling: &Coupling, numbers: &[f64], into: &mut FrontMut<'_>) {
    let (m, b) = (coupling.multiplier as usize, coupling.body as usize);
    let rows = coupling.rows as usize;
    let (entry, stride) = (coupling.entry as usize, coupling.stride as usize);
    if b < m {
        for c in 0..6 {
            let column = into.column(b + c, m, rows);
            for (r, x) in column.iter_mut().enumerate() {
                *x = numbers[entry + r * stride + c];
            }
        }
    } else {
        for r in 0..rows {
            into.column(m + r, b, 6).copy_from_slice(&numbers[entry + r * stride..][..6]);
        }
    }
}

impl Assembler<'_> {
    /// Adds J_cᵀ (C+D)⁻¹ J_c of the group's free rows to its bodies' blocks.
    fn fold_group(&mut self, group: &Group, into: &mut FrontMut<'_>) {
        let bodies = group.bodies as usize;
        let places = &self.plan.places[group.place as usize..][..bodies];
        let width = kernels::pad(6 * bodies);
        let mut free = 0;
        for r in 0..group.rows as usize {
            let weight = self.weight[group.row as usize + r];
            if weight == 0.0 {
                continue;
            }
            let row = &self.problem.jacobian[group.entry as usize + 6 * bodies * r..][..6 * bodies];
            let plain = &mut self.fold.rows[width * free..][..width];
            let scaled = &mut self.fold.scaled[width * free..][..width];
            for (k, place) in places.iter().enumerate() {
                let from = &row[6 * place.column as usize..][..6];
                for c in 0..6 {
                    plain[6 * k + c] = from[c];
                    scaled[6 * k + c] = weight * from[c];
                }
            }
            plain[6 * bodies..].fill(0.0);
            scaled[6 * bodies..].fill(0.0);
            free += 1;
        }
        if free == 0 {
            return;
        }
        let product = &mut self.fold.product[..width * width];
        kernels::gram(self.isa, width, free, &self.fold.rows, &self.fold.scaled, product);
        scatter(places, width, product, into);
    }
}

/// Adds the lower triangle of a group's product to the bodies' blocks.
fn scatter(places: &[Place], width: usize, product: &[f64], into: &mut FrontMut<'_>) {
    for (k, across) in places.iter().enumerate() {
        for c in 0..6 {
            let source = &product[(6 * k + c) * width..][..width];
            let column = across.local as usize + c;
            let own = into.column(column, column, 6 - c);
            for (x, y) in own.iter_mut().zip(&source[6 * k + c..6 * k + 6]) {
                *x += y;
            }
            for (q, down) in places.iter().enumerate().skip(k + 1) {
                let below = into.column(column, down.local as usize, 6);
                for (x, y) in below.iter_mut().zip(&source[6 * q..6 * q + 6]) {
                    *x += y;
                }
            }
        }
    }
}
