//! The rows through which a partition meets its neighbours: J_Γᵢ of 000 eq. (14).

use crate::solver::RowBlock;

/// Interface rows restricted to the bodies of one partition; rows count from 0.
///
/// Blocks are laid out as in [`RowProblem`](crate::solver::RowProblem); `fold` is not read. C_Γ, d_Γ
/// and the bounds belong to the interface problem, not here.
#[derive(Clone, Debug, Default)]
pub struct InterfaceRows {
    /// Blocks in row order.
    pub blocks: Vec<RowBlock>,
    /// Body numbers of all blocks, one after another.
    pub block_bodies: Vec<u32>,
    /// Jacobian numbers of all blocks, one after another.
    pub jacobian: Vec<f64>,
}

impl InterfaceRows {
    /// Number of interface rows that touch this partition.
    pub fn rows(&self) -> usize {
        self.blocks.last().map_or(0, |block| (block.row + block.rows) as usize)
    }

    /// Empties the rows and keeps their memory.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.block_bodies.clear();
        self.jacobian.clear();
    }

    /// J_Γ v, into `out`. With the v of a solve without interface impulses this is the partition's
    /// term of z_Γ (000 eq. 25) beside d_Γ.
    pub fn velocity(&self, v: &[f64], out: &mut [f64]) {
        for block in &self.blocks {
            for row in 0..block.rows {
                let mut sum = 0.0;
                self.for_each_body(block, row, |body, j| {
                    for c in 0..6 {
                        sum += j[c] * v[6 * body + c];
                    }
                });
                out[(block.row + row) as usize] = sum;
            }
        }
    }

    /// q += J_Γᵀ λ_Γ (six numbers a body).
    pub fn add_impulse(&self, lambda: &[f64], q: &mut [f64]) {
        for block in &self.blocks {
            for row in 0..block.rows {
                let l = lambda[(block.row + row) as usize];
                self.for_each_body(block, row, |body, j| {
                    for c in 0..6 {
                        q[6 * body + c] += j[c] * l;
                    }
                });
            }
        }
    }

    /// q += |J_Γᵀ| |λ_Γ|.
    pub fn add_size(&self, lambda: &[f64], q: &mut [f64]) {
        for block in &self.blocks {
            for row in 0..block.rows {
                let l = lambda[(block.row + row) as usize].abs();
                self.for_each_body(block, row, |body, j| {
                    for c in 0..6 {
                        q[6 * body + c] += j[c].abs() * l;
                    }
                });
            }
        }
    }

    fn for_each_body(&self, block: &RowBlock, row: u32, mut f: impl FnMut(usize, &[f64])) {
        for k in 0..block.bodies {
            let body = self.block_bodies[(block.body + k) as usize] as usize;
            let at = (block.entry + 6 * (row * block.bodies + k)) as usize;
            f(body, &self.jacobian[at..at + 6]);
        }
    }
}
