//! The row form as a [`ConeSystem`]: the mixed factorization, with the rows of cones turned to the axes of C + D.
//!
//! A symmetric block of C + D has axes in which it is diagonal: C + D = Q Λ Qᵀ. The problem with QᵀJ, Qᵀd and Λ for these three rows is the
//! same problem, and one that every [`LinearSystem`] solves already: one number a row, the same pattern, ordering and partitions. A contact
//! that slides is turned to its direction, which is then held.

use super::law::{Laws, NO_CONE};
use super::system::{Block, ConeSystem, Shift};
use crate::solver::linear::{LinearSystem, Point, Scratch};
use crate::solver::momentum_residual;
use crate::solver::row_system::RowSystem;
use crate::solver::system::PivotSystem;
use crate::solver::{Label, RowProblem, SolveStats};

/// Steps of refinement of a response.
const REFINED: u32 = 1;

/// Three orthonormal axes, one a row.
type Axes = [[f64; 3]; 3];

const PLAIN: Axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Memory of a [`ConeRows`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct ConeRowsMemory {
    /// The problem in the axes of its cones.
    turned: RowProblem,
    /// First Jacobian number of each cone, and numbers a row.
    place: Vec<(usize, usize)>,
    axes: Vec<Axes>,
    labels: Vec<Label>,
    diagonal: Vec<f64>,
    rhs: Vec<f64>,
    x: Vec<f64>,
    w: Vec<f64>,
    r_v: Vec<f64>,
    dv: Vec<f64>,
    scratch: Scratch,
    /// v and λ of the point that was placed last.
    v: Vec<f64>,
    lambda: Vec<f64>,
    loaded: bool,
    analysed: bool,
    factorizations: u32,
}

/// A row problem with its linear system.
pub struct ConeRows<'a, L> {
    problem: &'a RowProblem,
    system: RowSystem<'a, L>,
    memory: &'a mut ConeRowsMemory,
}

impl<'a, L: LinearSystem> ConeRows<'a, L> {
    /// Looks at a problem whose diagonal of A and b are formed.
    pub fn new(
        problem: &'a RowProblem,
        system: RowSystem<'a, L>,
        laws: &Laws,
        memory: &'a mut ConeRowsMemory,
    ) -> Self {
        let n = problem.rows();
        memory.turned.clone_from(problem);
        memory.place.clear();
        let mut blocks = problem.blocks.iter();
        let mut block = blocks.next();
        for cone in &laws.cones {
            while block.is_some_and(|b| b.row + b.rows <= cone.row) {
                block = blocks.next();
            }
            if let Some(block) = block {
                let stride = 6 * block.bodies as usize;
                let first = block.entry as usize + (cone.row - block.row) as usize * stride;
                memory.place.push((first, stride));
            }
        }
        memory.axes.clear();
        memory.axes.resize(laws.cones.len(), PLAIN);
        for buffer in [&mut memory.diagonal, &mut memory.rhs, &mut memory.x, &mut memory.w] {
            buffer.resize(n, 0.0);
        }
        memory.labels.resize(n, Label::Free);
        for buffer in [&mut memory.r_v, &mut memory.dv, &mut memory.v] {
            buffer.resize(6 * problem.bodies(), 0.0);
        }
        memory.lambda.clear();
        memory.scratch.fit(problem);
        (memory.loaded, memory.analysed, memory.factorizations) = (false, false, 0);
        ConeRows { problem, system, memory }
    }

    /// v and w of a point: those of the factorization it came from, else through the masses.
    pub fn tell(&mut self, lambda: &[f64], v: &mut Vec<f64>, w: &mut Vec<f64>) {
        w.resize(lambda.len(), 0.0);
        let known = &self.memory.lambda;
        let size = lambda.iter().fold(0.0f64, |m, l| m.max(l.abs()));
        // λ was brought into its cone: round-off of μ λ_n.
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-15 * size;
        if known.len() == lambda.len() && known.iter().zip(lambda).all(near) {
            v.clone_from(&self.memory.v);
            self.problem.slack(v, lambda, w);
        } else {
            self.system.slack(lambda, w);
            v.clear();
            v.extend_from_slice(self.system.last_velocity());
        }
    }

    /// max(1, ‖b‖).
    fn scale(&self) -> f64 {
        self.system.scale()
    }

    /// Turns the rows of a cone.
    fn turn_rows(&mut self, k: usize, first: usize, axes: Axes) -> bool {
        if self.memory.axes[k] == axes {
            return false;
        }
        self.memory.axes[k] = axes;
        let (entry, stride) = self.memory.place[k];
        let own = &self.problem.jacobian[entry..entry + 3 * stride];
        let (j0, j1, j2) = (&own[..stride], &own[stride..2 * stride], &own[2 * stride..]);
        for (row, axis) in axes.iter().enumerate() {
            let out = &mut self.memory.turned.jacobian[entry + row * stride..][..stride];
            for (c, out) in out.iter_mut().enumerate() {
                *out = axis[0] * j0[c] + axis[1] * j1[c] + axis[2] * j2[c];
            }
        }
        let d = [self.problem.d[first], self.problem.d[first + 1], self.problem.d[first + 2]];
        self.memory.turned.d[first..first + 3].copy_from_slice(&times(&axes, d));
        true
    }

    /// The problem in the axes of the shift; labels and D there.
    fn set(&mut self, laws: &Laws, shift: &Shift) {
        let mut stale = false;
        let label = |held: bool| if held { Label::Lower } else { Label::Free };
        let memory = &mut *self.memory;
        memory.diagonal.copy_from_slice(&shift.diagonal);
        memory.labels.iter_mut().zip(&shift.held).for_each(|(l, held)| *l = label(*held));
        for (k, (cone, block)) in laws.cones.iter().zip(&shift.blocks).enumerate() {
            let i = cone.row as usize;
            let c = [0, 1, 2].map(|r| self.problem.compliance[i + r]);
            let (axes, compliance, diagonal, held) = match *block {
                Block::Held => (PLAIN, c, [0.0; 3], [true; 3]),
                Block::Free => (PLAIN, c, [0.0; 3], [false; 3]),
                Block::Slip { along: [x, y], across } => {
                    let axes = [PLAIN[0], [0.0, x, y], [0.0, -y, x]];
                    // That of the held direction is not read.
                    let over = y * y * c[1] + x * x * c[2];
                    (axes, [c[0], c[1], over], [0.0, 0.0, across], [false, true, false])
                }
                Block::Full(d) => {
                    let (sizes, axes) = axes_of([d[0] + c[0], d[1], d[2], d[3] + c[1], d[4], d[5] + c[2]]);
                    let least = c[0].min(c[1]).min(c[2]);
                    (axes, [least; 3], sizes.map(|s| (s - least).max(0.0)), [false; 3])
                }
            };
            stale |= self.turn_rows(k, i, axes);
            for r in 0..3 {
                stale |= self.memory.turned.compliance[i + r] != compliance[r];
                self.memory.turned.compliance[i + r] = compliance[r];
                self.memory.diagonal[i + r] = diagonal[r];
                self.memory.labels[i + r] = label(held[r]);
            }
        }
        for (i, d) in self.memory.diagonal.iter_mut().enumerate() {
            *d += self.system.missing_compliance(i);
        }
        if !self.memory.loaded {
            // Partitions that have formed the problem take their numbers from that at the first load.
            self.memory.analysed = self.system.linear().load(self.problem);
            self.memory.loaded = true;
        }
        if stale {
            self.memory.analysed |= self.system.linear().load(&self.memory.turned);
        }
        self.memory.factorizations += 1;
    }

    /// Into the axes of the cones.
    fn turn(&self, laws: &Laws, x: &[f64], out: &mut [f64]) {
        out.copy_from_slice(x);
        for (axes, cone) in self.memory.axes.iter().zip(&laws.cones) {
            let i = cone.row as usize;
            out[i..i + 3].copy_from_slice(&times(axes, [x[i], x[i + 1], x[i + 2]]));
        }
    }

    fn turn_back(&self, laws: &Laws, x: &[f64], out: &mut [f64]) {
        out.copy_from_slice(x);
        for (axes, cone) in self.memory.axes.iter().zip(&laws.cones) {
            let i = cone.row as usize;
            for c in 0..3 {
                out[i + c] = (0..3).map(|r| axes[r][c] * x[i + r]).sum();
            }
        }
    }

    /// The point with λ of held directions as given, from what the last factorization says of it.
    fn finish_place(&mut self, laws: &Laws, lambda: &mut [f64], w: &mut [f64]) {
        let mut out = std::mem::take(&mut self.memory.rhs);
        self.turn_back(laws, &self.memory.x, &mut out);
        lambda.copy_from_slice(&out);
        self.memory.rhs = out;
        self.problem.slack(&self.memory.v, lambda, w);
        self.memory.lambda.clear();
        self.memory.lambda.extend_from_slice(lambda);
    }
}

impl<L: LinearSystem> ConeSystem for ConeRows<'_, L> {
    fn b(&self) -> &[f64] {
        self.system.b()
    }
    fn diagonal(&self) -> &[f64] {
        self.system.diagonal()
    }
    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.system.slack(lambda, w);
    }

    fn factor(&mut self, laws: &Laws, shift: &Shift) {
        self.set(laws, shift);
        let ConeRowsMemory { turned, labels, diagonal, .. } = &*self.memory;
        self.system.linear().factor(turned, labels, Some(diagonal));
    }

    fn respond(&mut self, laws: &Laws, _shift: &Shift, r: &[f64], x: &mut [f64], ax: &mut [f64]) {
        let (mut rhs, mut own) = (std::mem::take(&mut self.memory.rhs), std::mem::take(&mut self.memory.x));
        self.turn(laws, r, &mut rhs);
        self.turn(laws, x, &mut own);
        let ConeRowsMemory { turned, labels, r_v, dv, .. } = &mut *self.memory;
        r_v.fill(0.0);
        // Impulses that are given push on their bodies.
        for (x, label) in own.iter_mut().zip(labels.iter()) {
            if *label == Label::Free {
                *x = 0.0;
            }
        }
        if own.iter().any(|x| *x != 0.0) {
            turned.add_impulse(&turned.blocks, &own, r_v);
        }
        self.system.linear().solve(turned, r_v, &rhs, dv, &mut own, REFINED);
        self.turn_back(laws, &own, x);
        self.problem.slack(&self.memory.dv, x, ax);
        ax.iter_mut().zip(&self.problem.d).for_each(|(ax, d)| *ax -= d);
        (self.memory.rhs, self.memory.x) = (rhs, own);
    }

    fn place(&mut self, laws: &Laws, shift: &Shift, lambda: &mut [f64], w: &mut [f64]) {
        self.set(laws, shift);
        let mut own = std::mem::take(&mut self.memory.x);
        self.turn(laws, lambda, &mut own);
        let enough = momentum_residual::REFINED * self.scale();
        let ConeRowsMemory { turned, labels, diagonal, v, w: slack, scratch, .. } = &mut *self.memory;
        let point = Point { v, lambda: &mut own, w: slack };
        self.system.linear().evaluate(turned, labels, Some(diagonal), point, enough, scratch);
        self.memory.x = own;
        self.finish_place(laws, lambda, w);
    }

    fn replace(&mut self, laws: &Laws, _shift: &Shift, lambda: &mut [f64], w: &mut [f64]) {
        let mut own = std::mem::take(&mut self.memory.x);
        self.turn(laws, lambda, &mut own);
        let enough = momentum_residual::REFINED * self.scale();
        let ConeRowsMemory { turned, labels, diagonal, v, w: slack, scratch, .. } = &mut *self.memory;
        let linear = self.system.linear();
        linear.solve_pivot(turned, v, &mut own, 0);
        let point = Point { v, lambda: &mut own, w: slack };
        linear.refine(turned, (labels, Some(diagonal)), point, enough, scratch);
        self.memory.x = own;
        self.finish_place(laws, lambda, w);
    }

    /// Through the masses, which forms w anew for every cone: slow, and only for comparison.
    fn sweep(&mut self, laws: &Laws, lambda: &mut [f64]) {
        let mut w = vec![0.0; lambda.len()];
        for i in 0..lambda.len() {
            let normal = match laws.of_row[i] {
                NO_CONE => i,
                k => laws.cones[k as usize].row as usize,
            };
            if i < normal + 2 {
                self.system.slack(lambda, &mut w);
            }
            let diagonal = self.diagonal();
            let step = if i == normal { diagonal[i] } else { diagonal[normal + 1].max(diagonal[normal + 2]) };
            laws.relax(i, lambda, w[i], step);
        }
    }

    fn count(&self, stats: &mut SolveStats) {
        stats.factorizations = self.memory.factorizations;
        stats.analysed = self.memory.analysed;
    }
}

#[inline]
fn times(axes: &Axes, x: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|r| axes[r][0] * x[0] + axes[r][1] * x[1] + axes[r][2] * x[2])
}

/// Eigenvalues and axes of a symmetric block (entries 00, 01, 02, 11, 12, 22) by Jacobi's rotations.
fn axes_of(b: [f64; 6]) -> ([f64; 3], Axes) {
    let mut m = [[b[0], b[1], b[2]], [b[1], b[3], b[4]], [b[2], b[4], b[5]]];
    let mut axes = PLAIN;
    // Quadratic once it converges: six rounds leave round-off.
    for _ in 0..6 {
        for (p, q) in [(1, 2), (0, 1), (0, 2)] {
            // What is below round-off of both of its axes moves neither.
            if m[p][q].abs() <= 1e-300 || m[p][q].abs() <= 1e-17 * (m[p][p] * m[q][q]).abs().sqrt() {
                continue;
            }
            let half = 0.5 * (m[q][q] - m[p][p]) / m[p][q];
            let t = if half >= 0.0 { 1.0 } else { -1.0 } / (half.abs() + (1.0 + half * half).sqrt());
            let c = 1.0 / (1.0 + t * t).sqrt();
            let s = t * c;
            let shift = t * m[p][q];
            m[p][p] -= shift;
            m[q][q] += shift;
            (m[p][q], m[q][p]) = (0.0, 0.0);
            let r = 3 - p - q;
            let (x, y) = (m[r][p], m[r][q]);
            (m[r][p], m[r][q]) = (c * x - s * y, s * x + c * y);
            (m[p][r], m[q][r]) = (m[r][p], m[r][q]);
            for k in 0..3 {
                let (x, y) = (axes[p][k], axes[q][k]);
                (axes[p][k], axes[q][k]) = (c * x - s * y, s * x + c * y);
            }
        }
    }
    ([m[0][0], m[1][1], m[2][2]], axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_diagonal_in_its_axes() {
        for b in [
            [4.0, 1.0, -0.5, 3.0, 0.2, 2.0],
            [1e8, -1e8, 3.0, 1e8 + 1.0, 0.0, 1e-3],
            [1.0, 0.0, 0.0, 1.0, 0.0, 1.0],
        ] {
            let (sizes, axes) = axes_of(b);
            let full = [[b[0], b[1], b[2]], [b[1], b[3], b[4]], [b[2], b[4], b[5]]];
            let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            for (axis, size) in axes.iter().zip(sizes) {
                let image: [f64; 3] = std::array::from_fn(|i| (0..3).map(|j| full[i][j] * axis[j]).sum());
                // A few ε of the largest entry.
                (0..3).for_each(|i| assert!((image[i] - size * axis[i]).abs() <= 1e-14 * largest));
            }
        }
    }
}
