//! What the solvers of cones need of a linear system, whichever form the problem is in.
//!
//! ```text
//!     (A + D) x = r   on the directions that are free,   x given on those that are held
//! ```
//!
//! D has one number a row and a symmetric block a cone; a row is free or held, and of a cone that slides one direction of the tangent
//! plane is held. No factorization needs blocks: the rows of a cone are turned to the axes of C + D, or to the direction of sliding, and
//! D is diagonal there. Kernels, patterns and partitions stay what they are for boxes.

use super::law::Laws;
use crate::solver::SolveStats;

/// What is added to A at a cone, and which of its directions are held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Block {
    /// All three are held.
    Held,
    /// All three are free, nothing is added.
    Free,
    /// The tangent direction `along` is held; `across` is added to the one across it.
    Slip {
        /// Unit vector.
        along: [f64; 2],
        /// 1/kg.
        across: f64,
    },
    /// All three are free, and this symmetric block is added: entries 00, 01, 02, 11, 12, 22.
    Full([f64; 6]),
}

/// D and the free directions of all rows.
#[derive(Clone, Debug, Default)]
pub struct Shift {
    /// D of rows in no cone.
    pub diagonal: Vec<f64>,
    /// Rows in no cone that are held.
    pub held: Vec<bool>,
    /// One a cone, in the order of [`Laws::cones`].
    pub blocks: Vec<Block>,
}

impl Shift {
    /// Makes room: all rows free, nothing added.
    pub fn reset(&mut self, rows: usize, cones: usize) {
        self.diagonal.clear();
        self.diagonal.resize(rows, 0.0);
        self.held.clear();
        self.held.resize(rows, false);
        self.blocks.clear();
        self.blocks.resize(cones, Block::Free);
    }

    /// y += D x.
    pub fn add_product(&self, laws: &Laws, x: &[f64], y: &mut [f64]) {
        for (i, d) in self.diagonal.iter().enumerate() {
            y[i] += d * x[i];
        }
        for (block, cone) in self.blocks.iter().zip(&laws.cones) {
            let i = cone.row as usize;
            match *block {
                Block::Held | Block::Free => {}
                Block::Slip { along, across } => {
                    let part = across * (along[0] * x[i + 2] - along[1] * x[i + 1]);
                    y[i + 1] -= part * along[1];
                    y[i + 2] += part * along[0];
                }
                Block::Full(block) => {
                    let part = super::jordan::times(&block, [x[i], x[i + 1], x[i + 2]]);
                    (0..3).for_each(|k| y[i + k] += part[k]);
                }
            }
        }
    }

    /// Takes the held directions out of a vector.
    pub fn keep_free(&self, laws: &Laws, x: &mut [f64]) {
        x.iter_mut().zip(&self.held).filter(|(_, held)| **held).for_each(|(x, _)| *x = 0.0);
        for (block, cone) in self.blocks.iter().zip(&laws.cones) {
            let i = cone.row as usize;
            match *block {
                Block::Held => x[i..i + 3].fill(0.0),
                Block::Slip { along, .. } => {
                    let part = along[0] * x[i + 2] - along[1] * x[i + 1];
                    (x[i + 1], x[i + 2]) = (-part * along[1], part * along[0]);
                }
                Block::Free | Block::Full(_) => {}
            }
        }
    }
}

/// A problem A λ + b = w with a linear solver on any free directions of its rows.
pub trait ConeSystem {
    /// b.
    fn b(&self) -> &[f64];
    /// The diagonal of A.
    fn diagonal(&self) -> &[f64];
    /// w = A λ + b.
    fn slack(&mut self, lambda: &[f64], w: &mut [f64]);
    /// Factors A + D on the free directions.
    fn factor(&mut self, laws: &Laws, shift: &Shift);
    /// With the last factor: x on the free directions such that (A + D) x = r there; `x` holds what is given on the held ones on entry.
    /// `ax` = A x.
    fn respond(&mut self, laws: &Laws, shift: &Shift, r: &[f64], x: &mut [f64], ax: &mut [f64]);
    /// Factors and finds the point with A λ + b + D λ = 0 on the free directions; `lambda` holds what is given on the held ones on entry.
    /// w = A λ + b.
    fn place(&mut self, laws: &Laws, shift: &Shift, lambda: &mut [f64], w: &mut [f64]);
    /// What the point that [`place`](Self::place) found has become after responses were added to it: λ in and out, w out. A form that
    /// follows velocities mends what adding up has lost.
    fn replace(&mut self, laws: &Laws, shift: &Shift, lambda: &mut [f64], w: &mut [f64]);
    /// One sweep of Gauss–Seidel: every row to its law in turn; of a cone the normal first, then the disk of radius μ λ_n. (A projection on
    /// the cone as a whole would lift what slides.)
    fn sweep(&mut self, laws: &Laws, lambda: &mut [f64]);
    /// Counts of factorizations.
    fn count(&self, stats: &mut SolveStats);
}
