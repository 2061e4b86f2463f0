//! The numeric phase: block multifrontal LDLᵀ with known signs, and its solves.
//!
//! Every front keeps its factor *and* its update matrix, so that a change in one place is carried up one path
//! of the tree: fronts whose numbers and descendants did not change are not touched. Each front writes to its
//! own storage only and reads its children's; the result does not depend on who computes it when.

use super::kernels::{self, Isa, Kernels, Shape, Tree};
use super::symbolic::{Front, NONE, Symbolic};

/// Writes the original entries of fronts.
pub trait Assemble {
    /// Adds the entries of front `front` and sets the signs of its pivots (+1, −1, or 0 to take a pivot out).
    fn assemble(&mut self, front: usize, into: &mut FrontMut<'_>);
}

/// A front being assembled: columns by local row number.
pub struct FrontMut<'a> {
    /// Its shape.
    pub shape: Shape,
    /// Sign per pivot.
    pub sign: &'a mut [f64],
    panel: &'a mut [f64],
    update: &'a mut [f64],
}

impl FrontMut<'_> {
    /// The numbers from (local row, local column) on, and the leading dimension. Rows of the pivot part are out of reach
    /// for border columns: put an entry into the column that is eliminated first. What is written above the
    /// diagonal is not read.
    #[inline]
    pub fn block(&mut self, row: usize, column: usize) -> (&mut [f64], usize) {
        let border = self.shape.border_at();
        if column < border {
            let ld = self.shape.ld();
            (&mut self.panel[column * ld + row..], ld)
        } else {
            let ldu = self.shape.ldu();
            (&mut self.update[(column - border) * ldu + row - border..], ldu)
        }
    }
}

/// Factor storage for a [`Symbolic`] plan.
#[derive(Clone, Debug, Default)]
pub struct Multifrontal {
    /// The plan.
    pub symbolic: Symbolic,
    tree: Tree,
    isa: Isa,
    panels: Vec<f64>,
    updates: Vec<f64>,
    sign: Vec<f64>,
    inverse_d: Vec<f64>,
    scratch: Vec<f64>,
    dirty: Vec<bool>,
}

impl Multifrontal {
    /// An empty factor with a choice of arithmetic.
    pub fn new(kernels: Kernels) -> Self {
        Self { isa: Isa::detect(kernels), ..Self::default() }
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Takes a new plan; storage grows if it must, and everything is to be factored.
    pub fn plan(&mut self, symbolic: Symbolic) {
        grow(&mut self.panels, symbolic.panels);
        grow(&mut self.updates, symbolic.updates);
        grow(&mut self.sign, symbolic.pivots);
        // Padding is read by the kernels: no number of an old plan may stay there.
        self.inverse_d.clear();
        self.inverse_d.resize(symbolic.pivots, 0.0);
        grow(&mut self.scratch, symbolic.scratch);
        self.dirty.clear();
        self.dirty.resize(symbolic.fronts.len(), true);
        self.tree = Tree::new(&symbolic);
        self.symbolic = symbolic;
    }

    /// Everything is to be factored anew.
    pub fn touch_all(&mut self) {
        self.dirty.fill(true);
    }

    /// The entries of one front changed.
    #[inline]
    pub fn touch(&mut self, front: u32) {
        self.dirty[front as usize] = true;
    }

    /// Factors the touched fronts and their root paths. Returns fronts, operations and wrong signs.
    pub fn factor(&mut self, assembler: &mut impl Assemble) -> (usize, u64, u32) {
        let (mut count, mut flops, mut wrong) = (0, 0, 0);
        for f in 0..self.symbolic.fronts.len() {
            if !self.dirty[f] {
                continue;
            }
            self.dirty[f] = false;
            let front = self.symbolic.fronts[f];
            if front.parent != NONE {
                self.dirty[front.parent as usize] = true;
            }
            wrong += self.factor_front(f, &front, assembler);
            count += 1;
            flops += front.shape.flops();
        }
        (count, flops, wrong)
    }

    fn factor_front(&mut self, f: usize, front: &Front, assembler: &mut impl Assemble) -> u32 {
        let shape = front.shape;
        let (children, rest) = self.updates.split_at_mut(front.update);
        let update = &mut rest[..shape.update_len()];
        let panel = &mut self.panels[front.panel..front.panel + shape.panel_len()];
        update.fill(0.0);
        panel.fill(0.0);
        let sign = &mut self.sign[front.pivot..front.pivot + shape.pivots];
        assembler.assemble(f, &mut FrontMut { shape, sign, panel, update });
        for &child in self.symbolic.children(front) {
            let child = &self.symbolic.fronts[child as usize];
            let from = &children[child.update..child.update + child.shape.update_len()];
            kernels::extend_add(self.isa, self.symbolic.runs(child), child.shape, from, shape, panel, update);
        }
        kernels::factor_front(
            self.isa,
            shape,
            panel,
            update,
            &mut self.scratch,
            &self.sign[front.pivot..],
            &mut self.inverse_d[front.pivot..front.pivot + shape.border_at()],
        )
    }

    /// Solves in place. `x` holds the local vectors of all fronts (`symbolic.locals` numbers): the right-hand side at
    /// the pivots, zero elsewhere; on return the solution at the pivots. Interface unknowns count as zero.
    pub fn solve(&self, x: &mut [f64]) {
        self.forward(x);
        self.backward(x, None);
    }

    /// The first half of [`solve`](Self::solve). The local vector of the interface front ends as the right-hand side
    /// of the Schur complement: minus what the interface rows would read of the solution without them.
    pub fn forward(&self, x: &mut [f64]) {
        kernels::forward_tree(self.isa, &self.tree, &self.panels, x);
    }

    /// Forward substitution in a part of the tree.
    pub fn forward_in(&self, part: &Tree, x: &mut [f64]) {
        kernels::forward_tree(self.isa, part, &self.panels, x);
    }

    /// Backward substitution in a part of the tree whose parents are all in it.
    pub fn backward_in(&self, part: &Tree, x: &mut [f64]) {
        kernels::backward_tree(self.isa, part, &self.panels, &self.inverse_d, x);
    }

    /// The second half, with the interface unknowns as given (none = zero).
    pub fn backward(&self, x: &mut [f64], interface: Option<&[f64]>) {
        if let Some(last) = self.symbolic.fronts.last().filter(|last| last.shape.pivots == 0) {
            let own = &mut x[last.local..last.local + last.shape.ld()];
            own.fill(0.0);
            if let Some(given) = interface {
                own[..given.len()].copy_from_slice(given);
            }
        }
        kernels::backward_tree(self.isa, &self.tree, &self.panels, &self.inverse_d, x);
    }

    /// The interface part of local vectors, if there is an interface.
    pub fn interface_of<'a>(&self, x: &'a [f64]) -> Option<&'a [f64]> {
        let last = self.symbolic.fronts.last()?;
        (last.shape.pivots == 0).then(|| &x[last.local..last.local + last.shape.border])
    }

    /// The update matrix of the last front, column-major lower triangle, with its leading dimension: the Schur complement
    /// onto the interface, if there is one.
    pub fn last_update(&self) -> Option<(&[f64], usize)> {
        let last = self.symbolic.fronts.last()?;
        (last.shape.pivots == 0).then(|| {
            let at = last.update;
            (&self.updates[at..at + last.shape.update_len()], last.shape.ldu())
        })
    }
}

/// Makes room without keeping the old numbers: fresh memory comes zeroed without being touched.
fn grow(v: &mut Vec<f64>, n: usize) {
    if v.len() < n {
        *v = vec![0.0; n];
    }
}
