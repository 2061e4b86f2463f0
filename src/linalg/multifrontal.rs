//! The numeric phase: block multifrontal LDLᵀ with known signs, and its solves.
//!
//! Every front keeps its factor *and* its update matrix, so that a change in one place is carried up one path
//! of the tree: fronts whose numbers and descendants did not change are not touched. Each front writes to its
//! own storage only and reads its children's.

use super::aligned::Aligned;
use super::kernels::{self, AHEAD, Isa, Kernels, Numbers, Shape, Sides, Storage, Tree, Varying, Written};
use super::symbolic::{NONE, Symbolic};
use std::ops::Range;

/// Writes the entries of fronts that stay as they are until everything is factored anew.
pub trait Assemble {
    /// Writes the entries of front `front` in columns of its pivots, and sets their signs (+1, −1).
    fn assemble(&self, front: usize, into: &mut FrontMut<'_>);

    /// Asks for the numbers of a front that will be assembled soon, and has so many pivots.
    fn fetch(&self, _front: usize, _pivots: usize) {}
}

/// A front being assembled: columns by local row number.
pub struct FrontMut<'a> {
    /// Its shape.
    pub shape: Shape,
    /// Sign per pivot.
    pub sign: &'a mut [f64],
    panel: &'a mut [f64],
}

impl FrontMut<'_> {
    /// The numbers from (local row, local column of a pivot) on, and the leading dimension. An entry goes into the column that is
    /// eliminated first. What is written above the diagonal is not read.
    #[inline]
    pub fn block(&mut self, row: usize, column: usize) -> (&mut [f64], usize) {
        let ld = self.shape.ld();
        (&mut self.panel[column * ld + row..], ld)
    }
}

/// Factor storage for a [`Symbolic`] plan.
#[derive(Clone, Debug, Default)]
pub struct Multifrontal {
    /// The plan.
    pub symbolic: Symbolic,
    tree: Tree,
    isa: Isa,
    panels: Aligned,
    updates: Aligned,
    sign: Aligned,
    dirty: Vec<bool>,
    /// Fixed entries of small panels, and whether they are known; they never are of large ones.
    fixed: Aligned,
    known: Vec<bool>,
    /// Parent and operations of each front.
    above: Vec<(u32, u64)>,
    hand: Hand,
}

/// Scratch of one factorization.
#[derive(Clone, Debug, Default)]
struct Hand {
    /// Fronts to be factored in one call.
    batch: Vec<u32>,
    scratch: Aligned,
    /// Fronts, operations and wrong signs of the last time.
    done: (usize, u64, u32),
}

impl Hand {
    fn fit(&mut self, fronts: usize, scratch: usize) {
        self.batch.clear();
        self.batch.reserve(fronts);
        self.scratch.grow(scratch);
    }
}

/// A stretch of fronts being factored, in its own storage.
struct Stretch<'a> {
    isa: Isa,
    tree: &'a Tree,
    above: &'a [(u32, u64)],
    dirty: &'a mut [bool],
    known: &'a mut [bool],
    fixed: &'a mut [f64],
    panels: &'a mut [f64],
    updates: &'a mut [f64],
    sign: &'a mut [f64],
    hand: &'a mut Hand,
}

impl Stretch<'_> {
    /// Factors the touched ones of some of its fronts.
    fn factor(&mut self, fronts: Range<usize>, assembler: &impl Assemble, numbers: Numbers<'_>) {
        let (mut count, mut flops, mut wrong) = (0, 0, 0);
        let end = fronts.end;
        let far = self.tree.far();
        for f in fronts {
            if !self.dirty[f] {
                continue;
            }
            self.dirty[f] = false;
            count += 1;
            flops += self.above[f].1;
            if self.known[f] {
                self.hand.batch.push(f as u32);
            } else {
                if far && f + AHEAD < end {
                    assembler.fetch(f + AHEAD, self.tree.place_of(f + AHEAD).0.pivots);
                    self.tree.fetch(f + AHEAD, self.panels, self.updates, numbers.regular);
                }
                wrong += self.place_fixed(f, assembler, numbers);
            }
        }
        wrong += self.factor_batch(numbers);
        if self.tree.beyond_caches() {
            kernels::settle_streams();
        }
        self.hand.done = (count, flops, wrong);
    }

    /// Assembles the fixed entries of a front and puts it into the batch. Where they are not kept beside it, it is eliminated at once, in
    /// the cache: in its panel, or in the work space if it is small.
    fn place_fixed(&mut self, f: usize, assembler: &impl Assemble, numbers: Numbers<'_>) -> u32 {
        let (shape, written) = self.tree.place_of(f);
        let n = shape.front_len();
        let mut wrong = 0;
        self.known[f] = matches!(written, Written::Beside(..));
        if !self.known[f] {
            wrong += self.factor_batch(numbers);
        }
        let (panel, sign) = match written {
            Written::Beside(range, sign) => (&mut self.fixed[range], &mut self.sign[sign..]),
            Written::InPanel(panel, sign) => (&mut self.panels[panel..panel + n], &mut self.sign[sign..]),
            Written::InWorkSpace => self.hand.scratch.split_at_mut(n),
        };
        panel.fill(0.0);
        assembler.assemble(f, &mut FrontMut { shape, sign: &mut sign[..shape.pivots], panel });
        self.hand.batch.push(f as u32);
        if !self.known[f] {
            wrong += self.factor_batch(numbers);
        }
        wrong
    }

    fn factor_batch(&mut self, numbers: Numbers<'_>) -> u32 {
        let Hand { batch, scratch, .. } = &mut *self.hand;
        if batch.is_empty() {
            return 0;
        }
        let storage = Storage { panels: self.panels, updates: self.updates, sign: self.sign, scratch };
        let wrong = kernels::factor_fronts(self.isa, self.tree, numbers, self.fixed, batch, storage);
        batch.clear();
        wrong
    }
}

impl Multifrontal {
    /// An empty factor with a choice of arithmetic.
    pub fn new(kernels: Kernels) -> Self {
        Self { isa: Isa::detect(kernels), ..Self::default() }
    }

    /// An empty factor with a given instruction set.
    #[cfg(test)]
    pub(crate) fn with(isa: Isa) -> Self {
        Self { isa, ..Self::default() }
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Takes a new plan; storage grows if it must, and everything is to be factored.
    pub fn plan(&mut self, symbolic: Symbolic, varying: Varying) {
        self.hand.fit(symbolic.fronts.len(), symbolic.scratch);
        self.panels.grow(symbolic.panels);
        self.updates.grow(symbolic.updates);
        self.dirty.clear();
        self.dirty.resize(symbolic.fronts.len(), true);
        self.known.clear();
        self.known.resize(symbolic.fronts.len(), false);
        self.above.clear();
        self.above.extend(symbolic.fronts.iter().map(|front| (front.parent, front.shape.flops())));
        self.tree = Tree::new(&symbolic, varying);
        self.fixed.grow(self.tree.fixed());
        self.sign.grow(self.tree.signs());
        self.symbolic = symbolic;
    }

    /// Everything is to be factored anew.
    pub fn touch_all(&mut self) {
        self.dirty.fill(true);
        self.known.fill(false);
    }

    /// The entries of one front changed.
    #[inline]
    pub fn touch(&mut self, front: u32) {
        self.dirty[front as usize] = true;
    }

    /// Factors the touched fronts and their root paths. Returns fronts, operations and wrong signs.
    pub fn factor(&mut self, assembler: &impl Assemble, numbers: Numbers<'_>) -> (usize, u64, u32) {
        for f in 0..self.above.len() {
            let parent = self.above[f].0;
            if self.dirty[f] && parent != NONE {
                self.dirty[parent as usize] = true;
            }
        }
        let fronts = 0..self.above.len();
        let Self { isa, tree, above, dirty, known, fixed, panels, updates, sign, hand, .. } = self;
        let mut stretch =
            Stretch { isa: *isa, tree, above, dirty, known, fixed, panels, updates, sign, hand };
        stretch.factor(fronts, assembler, numbers);
        hand.done
    }

    /// Solves in place. `x` holds the local vectors of all fronts (`symbolic.locals` numbers): the right-hand side at
    /// the pivots, zero elsewhere; on return the solution at the pivots. Interface unknowns count as zero.
    pub fn solve(&self, x: &mut [f64]) {
        self.forward(x);
        self.backward(x, None);
    }

    /// [`solve`](Self::solve) with right-hand sides r_v, r_λ and answers v, λ of a problem, in the local vectors `x`. Where these
    /// would come from memory, stretches are filled just before and read just after the fronts that meet them.
    pub fn solve_sides(
        &self,
        (sides, numbers): (&Sides, Numbers<'_>),
        (r_v, r_lambda): (&[f64], &[f64]),
        (v, lambda): (&mut [f64], &mut [f64]),
        x: &mut [f64],
    ) {
        let isa = self.isa;
        let together = sides.met().filter(|_| self.tree.beyond_caches());
        let Some(met) = together else {
            kernels::fill_sides(isa, sides, numbers, r_v, r_lambda, x);
            self.solve(x);
            return kernels::read_sides(isa, sides, numbers, r_lambda, x, v, lambda);
        };
        let mut done = 0;
        for (k, &(fill, _)) in met.iter().enumerate() {
            kernels::forward_steps(isa, &self.tree, done..fill as usize, &self.panels, x);
            kernels::fill_stretches(isa, sides, k..k + 1, numbers, (r_v, r_lambda), x);
            done = fill as usize;
        }
        let end = self.above.len();
        kernels::forward_steps(isa, &self.tree, done..end, &self.panels, x);
        self.set_interface(x, None);
        let mut done = end;
        for (k, &(_, read)) in met.iter().enumerate().rev() {
            kernels::backward_steps(isa, &self.tree, read as usize..done, &self.panels, x);
            kernels::read_stretches(isa, sides, k..k + 1, numbers, (r_lambda, x), (v, lambda));
            done = read as usize;
        }
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

    /// Backward substitution in a part of the tree whose parents are all in it, with the interface unknowns as given.
    pub fn backward_in(&self, part: &Tree, x: &mut [f64], interface: &[f64]) {
        self.set_interface(x, Some(interface));
        kernels::backward_tree(self.isa, part, &self.panels, x);
    }

    /// Backward substitution in a part of the tree where all that is above it is known.
    pub fn backward_below(&self, part: &Tree, x: &mut [f64]) {
        kernels::backward_tree(self.isa, part, &self.panels, x);
    }

    /// The second half, with the interface unknowns as given (none = zero).
    pub fn backward(&self, x: &mut [f64], interface: Option<&[f64]>) {
        self.set_interface(x, interface);
        kernels::backward_tree(self.isa, &self.tree, &self.panels, x);
    }

    fn set_interface(&self, x: &mut [f64], interface: Option<&[f64]>) {
        if let Some(last) = self.symbolic.fronts.last().filter(|last| last.shape.pivots == 0) {
            let own = &mut x[last.local..last.local + last.shape.ld()];
            own.fill(0.0);
            if let Some(given) = interface {
                own[..given.len()].copy_from_slice(given);
            }
        }
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
