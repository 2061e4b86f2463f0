//! The row form as a [`PivotSystem`]: the mixed factorization, A never formed.
//!
//! Products with A = J M⁻¹ Jᵀ + C go through the bodies. (A + D)_FF x = r is the mixed system with no
//! momentum and r on the rows, because v = M⁻¹ Jᵀ x then gives J v + (C + D) x = r.

use super::Label;
use super::mixed::MixedSystem;
use super::problem::{RowProblem, invert_spd6};
use super::system::PivotSystem;

/// Compliance below this share of A_ii counts as rigid: its square root is where double precision
/// stops telling redundant rows apart, and 1/C would drown the masses.
const COMPLIANCE_FLOOR: f64 = 1e-14;

/// Memory of a [`RowSystem`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct RowMemory {
    mixed: MixedSystem,
    inverse: Vec<[f64; 36]>,
    diagonal: Vec<f64>,
    b: Vec<f64>,
    hi: Vec<f64>,
    labels: Vec<Label>,
    /// What is missing to the least compliance; empty when nothing is.
    floor: Vec<f64>,
    shift: Vec<f64>,
    q: Vec<f64>,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    v: Vec<f64>,
    evaluated: Vec<f64>,
    factorizations: u32,
    analysed: bool,
}

/// A row problem with its mixed factor.
pub struct RowSystem<'a> {
    problem: &'a RowProblem,
    memory: &'a mut RowMemory,
}

impl<'a> RowSystem<'a> {
    /// Looks at a problem whose numbers are finite and whose indices are in range.
    pub fn new(problem: &'a RowProblem, memory: &'a mut RowMemory) -> Self {
        let n = problem.rows();
        memory.factorizations = 0;
        memory.analysed = memory.mixed.load(problem);
        memory.inverse.clear();
        memory.inverse.extend(problem.mass.iter().map(invert_spd6));
        memory.hi.clear();
        let bounds = problem.lo.iter().zip(&problem.hi);
        memory.hi.extend(bounds.map(|(&lo, &hi)| hi.max(lo)));
        for buffer in [&mut memory.diagonal, &mut memory.b, &mut memory.r_lambda] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        for buffer in [&mut memory.q, &mut memory.r_v, &mut memory.v] {
            buffer.clear();
            buffer.resize(6 * problem.bodies(), 0.0);
        }
        memory.evaluated.clear();
        let mut system = RowSystem { problem, memory };
        system.form_diagonal();
        system.form_floor();
        system.form_b();
        system
    }

    /// Was the pattern of the factor found anew?
    pub fn analysed(&self) -> bool {
        self.memory.analysed
    }

    /// v after the step for an impulse vector: that of the factorization where it belongs to `lambda`,
    /// which is more accurate than M⁻¹ (p + Jᵀ λ) when impulses are large beside masses.
    pub fn velocity(&mut self, lambda: &[f64], v: &mut Vec<f64>) {
        v.clear();
        if self.memory.evaluated == lambda && !lambda.is_empty() {
            v.extend_from_slice(&self.memory.v);
            return;
        }
        self.problem.impulse_to_momentum(lambda, &mut self.memory.q);
        self.divide_by_mass();
        v.extend_from_slice(&self.memory.q);
    }

    /// Is everything derived from the problem a number?
    pub fn is_finite(&self) -> bool {
        let memory = &self.memory;
        let b = memory.b.iter().chain(&memory.diagonal);
        b.chain(memory.inverse.iter().flatten()).all(|x| x.is_finite())
    }

    fn form_diagonal(&mut self) {
        for block in &self.problem.blocks {
            let bodies = self.problem.bodies_of(block);
            for row in 0..block.rows {
                let i = (block.row + row) as usize;
                let mut sum = self.problem.compliance[i];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = self.problem.jacobian_of(block, row, k as u32);
                    let inverse = &self.memory.inverse[body as usize];
                    for r in 0..6 {
                        for c in 0..6 {
                            sum += j[r] * inverse[6 * r + c] * j[c];
                        }
                    }
                }
                self.memory.diagonal[i] = sum;
            }
        }
    }

    fn form_floor(&mut self) {
        let RowMemory { floor, diagonal, .. } = &mut *self.memory;
        floor.clear();
        let missing = |(&c, &a): (&f64, &f64)| (COMPLIANCE_FLOOR * a.abs().max(1e-30) - c).max(0.0);
        let rows = || self.problem.compliance.iter().zip(diagonal.iter());
        if rows().any(|row| missing(row) > 0.0) {
            floor.extend(rows().map(missing));
        }
    }

    fn form_b(&mut self) {
        let memory = &mut *self.memory;
        for (body, p) in self.problem.momentum.iter().enumerate() {
            memory.q[6 * body..6 * body + 6].copy_from_slice(p);
        }
        self.divide_by_mass();
        let memory = &mut *self.memory;
        memory.r_lambda.fill(0.0);
        self.problem.slack(&memory.q, &memory.r_lambda, &mut memory.b);
    }

    /// q := M⁻¹ q.
    fn divide_by_mass(&mut self) {
        let RowMemory { q, inverse, .. } = &mut *self.memory;
        for (body, inverse) in inverse.iter().enumerate() {
            let old: [f64; 6] = std::array::from_fn(|i| q[6 * body + i]);
            for i in 0..6 {
                q[6 * body + i] = (0..6).map(|j| inverse[6 * i + j] * old[j]).sum();
            }
        }
    }
}

impl PivotSystem for RowSystem<'_> {
    fn rows(&self) -> usize {
        self.problem.rows()
    }
    fn b(&self) -> &[f64] {
        &self.memory.b
    }
    fn lo(&self) -> &[f64] {
        &self.problem.lo
    }
    fn hi(&self) -> &[f64] {
        &self.memory.hi
    }
    fn diagonal(&self) -> &[f64] {
        &self.memory.diagonal
    }
    fn factorizations(&self) -> u32 {
        self.memory.factorizations
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        self.memory.q.fill(0.0);
        for block in &self.problem.blocks {
            let bodies = self.problem.bodies_of(block);
            for row in 0..block.rows {
                let l = x[(block.row + row) as usize];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = self.problem.jacobian_of(block, row, k as u32);
                    let q = &mut self.memory.q[6 * body as usize..6 * body as usize + 6];
                    for c in 0..6 {
                        q[c] += j[c] * l;
                    }
                }
            }
        }
        self.divide_by_mass();
        self.problem.slack(&self.memory.q, x, y);
        for (y, d) in y.iter_mut().zip(&self.problem.d) {
            *y -= d;
        }
    }

    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.problem.impulse_to_momentum(lambda, &mut self.memory.q);
        self.divide_by_mass();
        self.problem.slack(&self.memory.q, lambda, w);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        let RowMemory { mixed, labels, floor, shift: sum, factorizations, .. } = &mut *self.memory;
        labels.clear();
        labels.extend(free.iter().map(|&f| if f { Label::Free } else { Label::Lower }));
        *factorizations += 1;
        let shift = match shift {
            _ if floor.is_empty() => shift,
            None => Some(floor.as_slice()),
            Some(shift) => {
                sum.clear();
                sum.extend(shift.iter().zip(floor.iter()).map(|(s, f)| s + f));
                Some(sum.as_slice())
            }
        };
        mixed.factor(self.problem, labels, shift);
    }

    fn solve(&mut self, x: &mut [f64]) {
        let RowMemory { mixed, r_v, r_lambda, q, labels, .. } = &mut *self.memory;
        r_v.fill(0.0);
        r_lambda.copy_from_slice(x);
        for (x, label) in x.iter_mut().zip(labels.iter()) {
            if *label != Label::Free {
                *x = 0.0;
            }
        }
        mixed.solve(self.problem, r_v, r_lambda, q, x, 1);
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        let RowMemory { mixed, floor, v, evaluated, factorizations, hi, .. } = &mut *self.memory;
        let shift = (!floor.is_empty()).then_some(floor.as_slice());
        mixed.factor(self.problem, labels, shift);
        *factorizations += 1;
        for i in 0..labels.len() {
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.problem.lo[i],
                Label::Upper => hi[i],
            };
        }
        mixed.solve_pivot(self.problem, v, lambda, 1);
        self.problem.slack(v, lambda, w);
        evaluated.clear();
        evaluated.extend_from_slice(lambda);
    }
}
