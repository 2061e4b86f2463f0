//! The two forms of one step's constraint problem.
//!
//! Source: 000 eqs. (2)–(12). Find impulses λ and slack velocities w with
//!
//! ```text
//!     A λ + b = w,   lo ≤ λ ≤ hi,   w ≥ 0 where λ = lo,  w ≤ 0 where λ = hi,  w = 0 between
//! ```
//!
//! The engine speaks the **row form** ([`RowProblem`]): body mass blocks M, momenta p = M v + h f,
//! Jacobian rows J, compliances C and offsets d = φ/h − w₀, from which A = J M⁻¹ Jᵀ + C and
//! b = J M⁻¹ p + d follow. Files and the papers' baselines speak the **matrix form**
//! ([`MatrixProblem`]): A, b, lo, hi. [`RowProblem::to_matrix`] goes from the first to the second.

use super::mixed::CoupledInertia;
use crate::linalg::kernels::with_avx2;
use sprs::{CsMat, TriMat};

/// What a row stands for; reports, friction rules and dumps tell rows apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowKind {
    /// A joint, motor, limit or user row.
    #[default]
    Joint,
    /// The normal direction of a contact point.
    Normal,
    /// A tangent (or torsion, or rolling) direction of a contact point.
    Friction,
}

/// Rows `row`, +1 and +2 are the normal and two tangents of a contact under Coulomb's law: |λ_t| ≤ μ λ_n, and friction acts against the
/// sliding. What bounds say of these rows does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cone {
    /// The normal row.
    pub row: u32,
    /// Coefficient of friction.
    pub mu: f64,
}

/// Do cones lie in order within so many rows, one beside the other, each with a μ?
pub fn are_cones(cones: &[Cone], rows: usize) -> bool {
    let mut end = 0;
    cones.iter().all(|cone| {
        let fits = cone.row as usize >= end && cone.row as usize + 3 <= rows;
        end = cone.row as usize + 3;
        fits && cone.mu >= 0.0 && cone.mu.is_finite()
    })
}

/// The rows of one joint or one contact: they share their bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlock {
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First entry in [`RowProblem::block_bodies`].
    pub body: u32,
    /// Number of bodies (at least one; fixed and kinematic bodies are not part of the problem).
    pub bodies: u32,
    /// First number in [`RowProblem::jacobian`]; the block holds `rows × bodies × 6` of them, row by row.
    pub entry: u32,
    /// May the free rows of this block be folded into the body blocks (contacts), or must they stay
    /// multipliers (joints)? See the mixed form in the documentation of the solver module.
    pub fold: bool,
}

/// A block of A beside its diagonal: what the stiffness and damping of an element or a spring, h D + h² K, have between two nodes.
/// What they have on the diagonal belongs to the nodes' own blocks ([`RowProblem::mass`]); A as a whole is positive definite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coupling {
    /// The node of the block's rows.
    pub a: u32,
    /// The node of its columns; another one.
    pub b: u32,
    /// A_ab, row by row; zero behind the widths of the two. A_ba is its transpose.
    pub block: [f64; 36],
}

impl Coupling {
    /// Calls `f(node, term)` for the numbers of A_ab v_b and A_ba v_a, six a node.
    #[inline]
    fn products(&self, v: &[f64], mut f: impl FnMut(usize, [[f64; 6]; 6])) {
        let (va, vb) = (&v[6 * self.a as usize..][..6], &v[6 * self.b as usize..][..6]);
        let k = &self.block;
        f(self.a as usize, std::array::from_fn(|i| std::array::from_fn(|j| k[6 * i + j] * vb[j])));
        f(self.b as usize, std::array::from_fn(|i| std::array::from_fn(|j| k[6 * j + i] * va[j])));
    }
}

/// One step's constraints in row form. Everything is a dense array; a body is its number.
///
/// A body is a **node** of one to six unknown velocities: a rigid body has six, a point mass three. Storage has six numbers a node
/// whatever its width, and those behind a narrow node's own are zero: products with J and M need not ask for the width. Only the
/// matrix that is factored does, where a point costs what three unknowns cost.
#[derive(Clone, Debug, Default)]
pub struct RowProblem {
    /// Unknowns of each node, 1 to 6; empty where every node has six.
    pub width: Vec<u8>,
    /// Symmetric positive definite 6×6 mass block per body, row by row (linear first, then angular).
    pub mass: Vec<[f64; 36]>,
    /// What ties nodes beside rows; empty where A is block diagonal, as with rigid bodies.
    pub couplings: Vec<Coupling>,
    /// p = M v + h f per body.
    pub momentum: Vec<[f64; 6]>,
    /// Constraint blocks, in row order.
    pub blocks: Vec<RowBlock>,
    /// Body numbers of all blocks, one after another; within a block they are distinct.
    pub block_bodies: Vec<u32>,
    /// Jacobian numbers of all blocks, one after another.
    pub jacobian: Vec<f64>,
    /// C > 0 per row.
    pub compliance: Vec<f64>,
    /// d = φ/h − w₀ per row: the slack velocity is w = J v + C λ + d.
    pub d: Vec<f64>,
    /// Lower bound of λ per row (−∞ allowed).
    pub lo: Vec<f64>,
    /// Upper bound of λ per row (+∞ allowed).
    pub hi: Vec<f64>,
    /// What each row stands for.
    pub kind: Vec<RowKind>,
    /// Rows under Coulomb's law, by first row; the three of a cone are in one block.
    pub cones: Vec<Cone>,
}

impl RowProblem {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.d.len()
    }

    /// Number of bodies.
    pub fn bodies(&self) -> usize {
        self.mass.len()
    }

    /// Number of unknowns of a node.
    #[inline]
    pub fn width_of(&self, node: usize) -> usize {
        self.width.get(node).map_or(6, |&width| usize::from(width))
    }

    /// Inverse of a node's mass block.
    #[inline]
    pub(crate) fn inverse_mass(&self, node: usize) -> [f64; 36] {
        invert_spd(&self.mass[node], self.width_of(node))
    }

    /// Empties the problem and keeps its memory.
    pub fn clear(&mut self) {
        self.width.clear();
        self.couplings.clear();
        self.mass.clear();
        self.momentum.clear();
        self.blocks.clear();
        self.block_bodies.clear();
        self.jacobian.clear();
        self.compliance.clear();
        self.d.clear();
        self.lo.clear();
        self.hi.clear();
        self.kind.clear();
        self.cones.clear();
    }

    /// The body numbers of a block.
    pub fn bodies_of(&self, block: &RowBlock) -> &[u32] {
        &self.block_bodies[block.body as usize..(block.body + block.bodies) as usize]
    }

    /// The six Jacobian numbers of row `row` (within the block) on body `body` (within the block).
    pub fn jacobian_of(&self, block: &RowBlock, row: u32, body: u32) -> &[f64; 6] {
        let start = (block.entry + 6 * (row * block.bodies + body)) as usize;
        self.jacobian[start..start + 6].try_into().expect("six numbers")
    }

    /// w = J v + C λ + d, into `w`.
    pub fn slack(&self, v: &[f64], lambda: &[f64], w: &mut [f64]) {
        self.slack_in(&self.blocks, 0, v, lambda, w);
    }

    /// w = J v + C λ + d of some blocks, into `w`, which begins with row `first`.
    pub fn slack_in(&self, blocks: &[RowBlock], first: usize, v: &[f64], lambda: &[f64], w: &mut [f64]) {
        with_avx2(
            #[inline(always)]
            || self.slack_plainly(blocks, first, v, lambda, w),
        );
    }

    #[inline(always)]
    fn slack_plainly(&self, blocks: &[RowBlock], first: usize, v: &[f64], lambda: &[f64], w: &mut [f64]) {
        for block in blocks {
            let own = block.row as usize - first;
            self.slack_of(block, v, lambda, &mut w[own..own + block.rows as usize]);
        }
    }

    /// w = J v + C λ + d of one block, into `w`.
    #[inline(always)]
    pub fn slack_of(&self, block: &RowBlock, v: &[f64], lambda: &[f64], w: &mut [f64]) {
        for row in 0..block.rows {
            let i = (block.row + row) as usize;
            let jv = self.velocity_of(block, row, v);
            w[row as usize] = jv + (self.compliance[i] * lambda[i] + self.d[i]);
        }
    }

    /// J v of a block's row. Six sums: one alone would wait for every addition.
    #[inline(always)]
    pub fn velocity_of(&self, block: &RowBlock, row: u32, v: &[f64]) -> f64 {
        let mut jv = [0.0; 6];
        for (k, &body) in self.bodies_of(block).iter().enumerate() {
            let j = self.jacobian_of(block, row, k as u32);
            let vb = &v[6 * body as usize..6 * body as usize + 6];
            for c in 0..6 {
                jv[c] += j[c] * vb[c];
            }
        }
        ((jv[0] + jv[1]) + (jv[2] + jv[3])) + (jv[4] + jv[5])
    }

    /// q = p + Jᵀ λ, into `q` (six numbers a body).
    pub fn impulse_to_momentum(&self, lambda: &[f64], q: &mut [f64]) {
        for (body, p) in self.momentum.iter().enumerate() {
            q[6 * body..6 * body + 6].copy_from_slice(p);
        }
        self.add_impulse(&self.blocks, lambda, q);
    }

    /// q += Jᵀ λ of some blocks.
    pub fn add_impulse(&self, blocks: &[RowBlock], lambda: &[f64], q: &mut [f64]) {
        with_avx2(
            #[inline(always)]
            || self.add_impulse_plainly(blocks, lambda, q),
        );
    }

    #[inline(always)]
    fn add_impulse_plainly(&self, blocks: &[RowBlock], lambda: &[f64], q: &mut [f64]) {
        for block in blocks {
            let bodies = self.bodies_of(block);
            for row in 0..block.rows {
                let l = lambda[(block.row + row) as usize];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = self.jacobian_of(block, row, k as u32);
                    let qb = &mut q[6 * body as usize..6 * body as usize + 6];
                    for c in 0..6 {
                        qb[c] += j[c] * l;
                    }
                }
            }
        }
    }

    /// r −= A v, of the couplings alone.
    pub fn subtract_coupled(&self, v: &[f64], r: &mut [f64]) {
        for coupling in &self.couplings {
            coupling.products(v, |node, terms| {
                r[6 * node..6 * node + 6]
                    .iter_mut()
                    .zip(terms)
                    .for_each(|(r, t)| *r -= t.iter().sum::<f64>());
            });
        }
    }

    /// The same, and the sizes of the terms.
    pub fn balance_coupled(&self, v: &[f64], r: &mut [f64], size: &mut [f64]) {
        self.subtract_coupled(v, r);
        for coupling in &self.couplings {
            coupling.products(v, |node, terms| {
                let size = size[6 * node..6 * node + 6].iter_mut();
                size.zip(terms).for_each(|(s, t)| *s += t.iter().map(|t| t.abs()).sum::<f64>());
            });
        }
    }

    /// The matrix form: A = J M⁻¹ Jᵀ + C (both triangles), b = J M⁻¹ p + d.
    ///
    /// For tests, dumps and baselines; the engine never forms A.
    pub fn to_matrix(&self) -> MatrixProblem {
        if !self.couplings.is_empty() {
            return self.to_dense_matrix();
        }
        let n = self.rows();
        let inverse: Vec<[f64; 36]> = (0..self.bodies()).map(|node| self.inverse_mass(node)).collect();
        let mut touching: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.bodies()];
        for (b, block) in self.blocks.iter().enumerate() {
            for (k, &body) in self.bodies_of(block).iter().enumerate() {
                touching[body as usize].push((b as u32, k as u32));
            }
        }
        let mut triplets = TriMat::new((n, n));
        let mut b = self.d.clone();
        for (body, list) in touching.iter().enumerate() {
            for &(bi, ki) in list {
                let block_i = &self.blocks[bi as usize];
                for ri in 0..block_i.rows {
                    let y = multiply6(&inverse[body], self.jacobian_of(block_i, ri, ki));
                    let i = (block_i.row + ri) as usize;
                    b[i] += dot6(&y, &self.momentum[body]);
                    for &(bj, kj) in list {
                        let block_j = &self.blocks[bj as usize];
                        for rj in 0..block_j.rows {
                            let a = dot6(&y, self.jacobian_of(block_j, rj, kj));
                            triplets.add_triplet(i, (block_j.row + rj) as usize, a);
                        }
                    }
                }
            }
        }
        for (i, &c) in self.compliance.iter().enumerate() {
            triplets.add_triplet(i, i, c);
        }
        self.matrix_of(symmetrise(&triplets.to_csr()), b)
    }

    fn matrix_of(&self, a: CsMat<f64>, b: Vec<f64>) -> MatrixProblem {
        let (lo, hi, kind) = (self.lo.clone(), self.hi.clone(), self.kind.clone());
        MatrixProblem { a, b, lo, hi, kind, cones: self.cones.clone(), partition: None, lambda0: None }
    }

    /// The same where A couples nodes, so that its inverse is full: one solve a row.
    fn to_dense_matrix(&self) -> MatrixProblem {
        let n = self.rows();
        let mut inertia = CoupledInertia::default();
        inertia.load(self);
        let mut triplets = TriMat::new((n, n));
        let (mut q, mut w, mut unit) = (self.momentum.as_flattened().to_vec(), vec![0.0; n], vec![0.0; n]);
        inertia.divide(&mut q);
        self.slack(&q, &unit, &mut w);
        let b = w.clone();
        for i in 0..n {
            unit[i] = 1.0;
            q.fill(0.0);
            self.add_impulse(&self.blocks, &unit, &mut q);
            inertia.divide(&mut q);
            self.slack(&q, &unit, &mut w);
            w.iter().zip(&self.d).enumerate().for_each(|(j, (w, d))| triplets.add_triplet(i, j, w - d));
            unit[i] = 0.0;
        }
        self.matrix_of(symmetrise(&triplets.to_csr()), b)
    }
}

/// The matrix form, as on disk: A λ + b = w, lo ≤ λ ≤ hi.
#[derive(Clone, Debug)]
pub struct MatrixProblem {
    /// A, symmetric, both triangles stored.
    pub a: CsMat<f64>,
    /// b per row.
    pub b: Vec<f64>,
    /// Lower bounds.
    pub lo: Vec<f64>,
    /// Upper bounds.
    pub hi: Vec<f64>,
    /// What each row stands for.
    pub kind: Vec<RowKind>,
    /// Rows under Coulomb's law, by first row.
    pub cones: Vec<Cone>,
    /// Partition number per row, −1 for the interface.
    pub partition: Option<Vec<i32>>,
    /// A starting guess.
    pub lambda0: Option<Vec<f64>>,
}

/// Averages a matrix with its transpose, so that round-off cannot make it unsymmetric.
fn symmetrise(a: &CsMat<f64>) -> CsMat<f64> {
    let t = a.transpose_view().to_csr();
    let mut sum = a + &t;
    sum.map_inplace(|x| 0.5 * x);
    sum
}

fn dot6(a: &[f64; 6], b: &[f64; 6]) -> f64 {
    (0..6).map(|i| a[i] * b[i]).sum()
}

fn multiply6(m: &[f64; 36], x: &[f64; 6]) -> [f64; 6] {
    std::array::from_fn(|i| (0..6).map(|j| m[6 * i + j] * x[j]).sum())
}

/// Inverse of the leading `width` × `width` part of a symmetric positive definite block by Cholesky, zero elsewhere. Where turning does
/// not move the centre of mass, as with every rigid body about it, the two halves are inverted apart: to the same bits in a third of
/// the time.
#[inline]
fn invert_spd(m: &[f64; 36], width: usize) -> [f64; 36] {
    let mut inverse = [0.0; 36];
    match width {
        1 => invert_part::<1>(m, 0, &mut inverse),
        2 => invert_part::<2>(m, 0, &mut inverse),
        3 => invert_part::<3>(m, 0, &mut inverse),
        4 => invert_part::<4>(m, 0, &mut inverse),
        5 => invert_part::<5>(m, 0, &mut inverse),
        _ => return invert_spd6(m),
    }
    inverse
}

#[inline]
fn invert_spd6(m: &[f64; 36]) -> [f64; 36] {
    let mut inverse = [0.0; 36];
    let apart = (3..6).all(|i| m[6 * i..6 * i + 3] == [0.0; 3]);
    let even = m[0] == m[7] && m[0] == m[14] && m[6] == 0.0 && m[12] == 0.0 && m[13] == 0.0;
    if apart {
        if even {
            let r = 1.0 / m[0].sqrt();
            (0..3).for_each(|i| inverse[7 * i] = r * r);
        } else {
            invert_part::<3>(m, 0, &mut inverse);
        }
        invert_part::<3>(m, 3, &mut inverse);
    } else {
        invert_part::<6>(m, 0, &mut inverse);
    }
    inverse
}

/// Inverse of the N × N block on the diagonal from row `first` on.
#[inline(always)]
fn invert_part<const N: usize>(m: &[f64; 36], first: usize, inverse: &mut [f64; 36]) {
    let at = |i: usize, j: usize| 6 * (first + i) + first + j;
    // L of M = L Lᵀ with the reciprocals of its diagonal in place of it: one division a column.
    let mut l = [[0.0; N]; N];
    for j in 0..N {
        let mut s = m[at(j, j)];
        for k in 0..j {
            s -= l[j][k] * l[j][k];
        }
        let r = 1.0 / s.sqrt();
        l[j][j] = r;
        for i in j + 1..N {
            let mut s = m[at(i, j)];
            for k in 0..j {
                s -= l[i][k] * l[j][k];
            }
            l[i][j] = s * r;
        }
    }
    // L⁻¹, then M⁻¹ = L⁻ᵀ L⁻¹.
    let mut x = [[0.0; N]; N];
    for c in 0..N {
        x[c][c] = l[c][c];
        for i in c + 1..N {
            let mut s = 0.0;
            for k in c..i {
                s -= l[i][k] * x[k][c];
            }
            x[i][c] = s * l[i][i];
        }
    }
    for i in 0..N {
        for j in 0..=i {
            let s: f64 = (i..N).map(|k| x[k][i] * x[k][j]).sum();
            inverse[at(i, j)] = s;
            inverse[at(j, i)] = s;
        }
    }
}
