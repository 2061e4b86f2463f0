//! The row form as a [`PivotSystem`]: the mixed factorization, A never formed.
//!
//! Products with A = J M⁻¹ Jᵀ + C go through the bodies. (A + D)_FF x = r is the mixed system with no
//! momentum and r on the rows, because v = M⁻¹ Jᵀ x then gives J v + (C + D) x = r.

mod finalize;
mod pivots;

pub use finalize::Belonging;

use super::auto::Settings;
use super::condensed::{self, Whole};
use super::delassus_diagonal::{self, Formed};
use super::interior_point::Chunk;
use super::linear::{LinearSystem, Point, Scratch};
use super::matrix_system::gauss_seidel;
use super::mixed::{CoupledInertia, MixedOptions, MixedSystem};
use super::momentum_residual;
use super::problem::{RowKind, RowProblem};
use super::system::{Pass, PivotSystem};
use super::{Label, SolveStats, index_sets, residual};
use crate::linalg::Isa;

/// Stretches of bodies or rows that may be worked on at once.
const STRETCHES: usize = 4;

/// Memory of a [`RowSystem`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Memory<L> {
    mixed: L,
    options: MixedOptions,
    /// Inverse of every node's block of A: of A itself where nothing couples nodes, else a measure of what moves.
    inverse: Vec<[f64; 36]>,
    coupled: Option<Box<CoupledInertia>>,
    diagonal: Vec<f64>,
    b: Vec<f64>,
    /// max(1, ‖b‖₂).
    scale: f64,
    /// Are M⁻¹ those of the problem?
    inverted: bool,
    /// Are the masses of the problem, and all that was derived from it, numbers?
    finite: bool,
    /// Are the diagonal of A and b here, or still with the partitions?
    complete: bool,
    /// Has any row less than the least compliance?
    lacks: bool,
    hi: Vec<f64>,
    labels: Vec<Label>,
    /// What is missing to the least compliance; empty when nothing is.
    floor: Vec<f64>,
    shift: Vec<f64>,
    shifted: bool,
    q: Vec<f64>,
    /// Jᵀ λ of each stretch of rows.
    shares: [Vec<f64>; STRETCHES],
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    w: Vec<f64>,
    v: Vec<f64>,
    scratch: Scratch,
    /// λ and w of the last index set.
    last: Vec<f64>,
    last_w: Vec<f64>,
    /// Do λ and v of the last index set balance? None if nobody has looked.
    balanced: Option<bool>,
    response: Vec<f64>,
    evaluated: bool,
    factorizations: u32,
    analysed: bool,
    loaded: bool,
}

/// What became of rows with bounds before the whole problem is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    /// There are none.
    Nothing,
    /// They were decided while the others were eliminated. Was the last solve that of what was decided?
    Made(SolveStats, bool),
    /// They are to be decided with all the others.
    Open,
}

/// A row problem with its linear system.
pub struct RowSystem<'a, L = MixedSystem> {
    problem: &'a RowProblem,
    memory: &'a mut Memory<L>,
}

impl<L: LinearSystem> Memory<L> {
    /// Choices of the factorization; where they differ from those before, its memory is forgotten.
    pub fn set_options(&mut self, options: MixedOptions) {
        if options != self.options {
            self.options = options;
            self.mixed.set_options(options);
        }
    }

    /// Choices of the factorization.
    pub fn options(&self) -> MixedOptions {
        self.options
    }

    /// w = J q + C λ + d, by stretches of rows.
    fn slack_of_response(&self, problem: &RowProblem, lambda: &[f64], w: &mut [f64]) {
        let share = problem.blocks.len().div_ceil(STRETCHES).max(1);
        let mut rest = w;
        let mut stretches: [_; STRETCHES] = std::array::from_fn(|_| (&[][..], 0, &mut [][..]));
        let mut first = 0;
        for (stretch, blocks) in stretches.iter_mut().zip(problem.blocks.chunks(share)) {
            let rows: usize = blocks.iter().map(|block| block.rows as usize).sum();
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(rows);
            rest = behind;
            *stretch = (blocks, first, own);
            first += rows;
        }
        let q = &self.q;
        self.mixed
            .for_each(&mut stretches, |_, (blocks, first, w)| problem.slack_in(blocks, *first, q, lambda, w));
    }

    /// The linear system behind it.
    pub fn linear_mut(&mut self) -> &mut L {
        &mut self.mixed
    }

    /// The linear system behind it.
    pub fn linear(&self) -> &L {
        &self.mixed
    }
}

impl<'a, L: LinearSystem> RowSystem<'a, L> {
    /// Looks at a problem whose numbers are finite and whose indices are in range.
    pub fn new(problem: &'a RowProblem, memory: &'a mut Memory<L>) -> Self {
        let mut system = Self::begin(problem, memory);
        system.complete();
        system
    }

    /// The same, but partitions may keep the diagonal of A and b to themselves until somebody needs more than
    /// [`decide_condensed`](Self::decide_condensed) and [`confirm`](Self::confirm).
    pub(super) fn begin(problem: &'a RowProblem, memory: &'a mut Memory<L>) -> Self {
        let n = problem.rows();
        memory.factorizations = 0;
        memory.analysed = false;
        memory.loaded = false;
        memory.hi.clear();
        let bounds = problem.lo.iter().zip(&problem.hi);
        memory.hi.extend(bounds.map(|(&lo, &hi)| hi.max(lo)));
        // All of these are written before they are read.
        for buffer in [&mut memory.diagonal, &mut memory.b, &mut memory.r_lambda] {
            buffer.resize(n, 0.0);
        }
        for buffer in [&mut memory.q, &mut memory.r_v, &mut memory.v] {
            buffer.resize(6 * problem.bodies(), 0.0);
        }
        memory.evaluated = false;
        memory.coupled = None;
        memory.response.clear();
        // That of the problem before, until this one is known to lack some.
        memory.floor.clear();
        memory.inverse.resize(problem.bodies(), [0.0; 36]);
        memory.scratch.fit(problem);
        let mut system = RowSystem { problem, memory };
        system.form();
        system
    }

    /// The diagonal of A and b of all rows, and what is missing to the least compliance.
    pub(super) fn complete(&mut self) {
        let Memory { mixed, diagonal, b, floor, complete, lacks, .. } = &mut *self.memory;
        if !std::mem::replace(complete, true) {
            mixed.report_formed(self.problem, (diagonal, b));
        }
        if *lacks && floor.is_empty() {
            let rows = self.problem.compliance.iter().zip(diagonal.iter());
            floor.extend(rows.map(|(&c, &a)| delassus_diagonal::missing_compliance(c, a)));
        }
    }

    /// Decides the rows with bounds while the others are eliminated, where that pays: labels in and out. They are good
    /// guesses; the whole problem has the last word.
    pub(super) fn decide_condensed(
        &mut self,
        condensed: &mut condensed::Memory,
        labels: &mut [Label],
        failed: bool,
        settings: &Settings,
    ) -> Decision {
        let outline = condensed.outline(self.problem);
        if outline.bounded == 0 {
            return Decision::Nothing;
        }
        if !outline.pays_in(self.memory.mixed.hands() > 1) {
            return Decision::Open;
        }
        if self.memory.lacks {
            self.complete();
        }
        self.load();
        let Memory { mixed, hi, b, diagonal, floor, factorizations, complete, .. } = &mut *self.memory;
        let formed = complete.then_some((&diagonal[..], &b[..]));
        let whole = Whole { problem: self.problem, linear: mixed, hi, formed, floor };
        let (stats, near) = condensed.decide(whole, labels, failed, settings);
        *factorizations += stats.factorizations;
        Decision::Made(stats, near)
    }

    /// Upper bounds as the problem gives them: a system raises those below their lower ones.
    pub fn given_hi(&self) -> &'a [f64] {
        &self.problem.hi
    }

    /// The linear system, for problems that differ from this one in the axes of their rows.
    pub(super) fn linear(&mut self) -> &mut L {
        &mut self.memory.mixed
    }

    /// v of the impulses that [`slack`](PivotSystem::slack) was asked for last.
    pub(super) fn last_velocity(&self) -> &[f64] {
        &self.memory.q
    }

    /// What is missing to the least compliance of a row.
    pub(super) fn missing_compliance(&self, row: usize) -> f64 {
        self.memory.floor.get(row).copied().unwrap_or(0.0)
    }

    /// Was the pattern of the factor found anew?
    pub fn analysed(&self) -> bool {
        self.memory.analysed
    }

    /// Brings the numbers into the mixed form at the first factorization; iterative methods need none.
    fn load(&mut self) {
        if !self.memory.loaded {
            self.memory.loaded = true;
            self.memory.analysed = self.memory.mixed.load(self.problem);
        }
    }

    /// D of the next factorization: what is asked for and what is missing to the least compliance.
    fn combine_shift(&mut self, asked: Option<&[f64]>) {
        let Memory { floor, shift, shifted, .. } = &mut *self.memory;
        *shifted = asked.is_some() || !floor.is_empty();
        shift.clear();
        match asked {
            Some(asked) => shift.extend_from_slice(asked),
            None if *shifted => shift.resize(floor.len(), 0.0),
            None => {}
        }
        for (s, f) in shift.iter_mut().zip(floor.iter()) {
            *s += f;
        }
    }

    /// Multiplications of a product with A that goes through the bodies.
    pub fn product_work(&self) -> usize {
        2 * self.problem.jacobian.len() + 36 * self.problem.bodies()
    }

    /// Are the problem's masses and everything derived from it numbers? Then so are its Jacobians: one that is not leaves no
    /// diagonal that is.
    pub fn is_finite(&self) -> bool {
        self.memory.finite
    }

    /// The diagonal of A and b, by partitions where there are any.
    fn form(&mut self) {
        let Memory { mixed, options, inverted, complete, .. } = &mut *self.memory;
        let isa = Isa::detect(options.kernels);
        let by_parts = mixed.form(self.problem, isa);
        *inverted = by_parts.is_none();
        *complete = by_parts.is_none();
        let formed = by_parts.unwrap_or_else(|| {
            self.invert_masses();
            self.form_rows();
            let Memory { diagonal, b, finite, .. } = &*self.memory;
            Formed::of(*finite, &self.problem.compliance, diagonal, b)
        });
        let Memory { finite, scale, lacks, .. } = &mut *self.memory;
        (*finite, *scale, *lacks) = (formed.finite, residual::scale_of(formed.square), formed.lacks);
    }

    /// M⁻¹ of every body, for whoever needs it: partitions keep theirs to themselves.
    fn need_inverse(&mut self) {
        if !std::mem::replace(&mut self.memory.inverted, true) {
            self.invert_masses();
        }
        if !self.problem.couplings.is_empty() && self.memory.coupled.is_none() {
            let mut inertia = Box::<CoupledInertia>::default();
            inertia.load(self.problem);
            self.memory.coupled = Some(inertia);
        }
    }

    /// M⁻¹ and M⁻¹ p of every body.
    fn invert_masses(&mut self) {
        let Memory { mixed, inverse, q, finite, .. } = &mut *self.memory;
        let problem = self.problem;
        let share = problem.bodies().div_ceil(STRETCHES).max(1);
        let mut stretches: [_; STRETCHES] = std::array::from_fn(|_| (&mut [][..], &mut [][..], true));
        for (stretch, (inverse, q)) in
            stretches.iter_mut().zip(inverse.chunks_mut(share).zip(q.chunks_mut(6 * share)))
        {
            *stretch = (inverse, q, true);
        }
        mixed.for_each(&mut stretches, |k, (inverse, q, finite)| {
            // A number of its own: neighbours among the stretches lie on one cache line.
            let mut all = true;
            for (i, (inverse, q)) in inverse.iter_mut().zip(q.chunks_exact_mut(6)).enumerate() {
                all &= delassus_diagonal::invert(problem, k * share + i, inverse, q);
            }
            *finite = all;
        });
        *finite = stretches.iter().all(|stretch| stretch.2);
    }

    /// The diagonal of A, and b = J M⁻¹ p + d.
    fn form_rows(&mut self) {
        let Memory { options, inverse, diagonal, b, q, finite, .. } = &mut *self.memory;
        let (problem, isa) = (self.problem, Isa::detect(options.kernels));
        *finite &= delassus_diagonal::form_rows(isa, problem, &problem.blocks, (inverse, q), (diagonal, b));
    }

    /// v and λ of an index set, refined.
    fn point_of(&mut self, labels: &[Label], shift: Option<&[f64]>, lambda: &mut [f64], w: &mut [f64]) {
        self.load();
        self.combine_shift(shift);
        let enough = momentum_residual::REFINED * self.memory.scale;
        let Memory {
            mixed,
            shift,
            shifted,
            v,
            factorizations,
            hi,
            scratch,
            last,
            last_w,
            balanced,
            evaluated,
            ..
        } = &mut *self.memory;
        *factorizations += 1;
        index_sets::begin(labels, &self.problem.lo, hi, lambda);
        let shift = shifted.then_some(shift.as_slice());
        let point = Point { v, lambda: &mut *lambda, w: &mut *w };
        let imbalance = mixed.evaluate(self.problem, labels, shift, point, enough, scratch);
        *evaluated = true;
        last.clear();
        last.extend_from_slice(lambda);
        last_w.clear();
        last_w.extend_from_slice(w);
        *balanced = imbalance.map(|imbalance| imbalance <= momentum_residual::BALANCED);
    }

    /// M⁻¹ Jᵀ, laid out like J, once a step and only for sweeps where nothing couples nodes.
    fn form_response(&mut self) {
        self.need_inverse();
        let Memory { response, inverse, .. } = &mut *self.memory;
        if !response.is_empty() {
            return;
        }
        response.resize(self.problem.jacobian.len(), 0.0);
        for block in &self.problem.blocks {
            for row in 0..block.rows {
                for (k, &body) in self.problem.bodies_of(block).iter().enumerate() {
                    let j = self.problem.jacobian_of(block, row, k as u32);
                    let at = (block.entry + 6 * (row * block.bodies + k as u32)) as usize;
                    let inverse = &inverse[body as usize];
                    for r in 0..6 {
                        response[at + r] = (0..6).map(|c| inverse[6 * r + c] * j[c]).sum();
                    }
                }
            }
        }
    }

    /// (A + D)_FF x_F = r_F with so many steps of refinement; `x` holds r on entry.
    fn solve_shifted(&mut self, x: &mut [f64], refinements: u32) {
        let Memory { mixed, r_v, r_lambda, q, labels, .. } = &mut *self.memory;
        r_v.fill(0.0);
        r_lambda.copy_from_slice(x);
        for (x, label) in x.iter_mut().zip(labels.iter()) {
            if *label != Label::Free {
                *x = 0.0;
            }
        }
        mixed.solve(self.problem, r_v, r_lambda, q, x, refinements);
    }

    /// q := A⁻¹ (p + Jᵀ λ). Stretches of rows add up momenta of their own where several hands are there.
    fn respond(&mut self, lambda: &[f64]) {
        self.need_inverse();
        let problem = self.problem;
        let Memory { mixed, q, shares, inverse, .. } = &mut *self.memory;
        let hands = mixed.hands().min(STRETCHES);
        if hands < 2 || !problem.couplings.is_empty() {
            problem.impulse_to_momentum(lambda, q);
            return self.divide_by_mass();
        }
        let blocks = problem.blocks.len().div_ceil(hands).max(1);
        mixed.for_each(&mut shares[..hands], |k, share| {
            share.clear();
            share.resize(6 * problem.bodies(), 0.0);
            let first = (k * blocks).min(problem.blocks.len());
            let end = (first + blocks).min(problem.blocks.len());
            problem.add_impulse(&problem.blocks[first..end], lambda, share);
        });
        for (body, inverse) in inverse.iter().enumerate() {
            let mut sum = problem.momentum[body];
            for share in &shares[..hands] {
                sum.iter_mut().zip(&share[6 * body..]).for_each(|(sum, x)| *sum += x);
            }
            for i in 0..6 {
                q[6 * body + i] = (0..6).map(|j| inverse[6 * i + j] * sum[j]).sum();
            }
        }
    }

    /// A sweep over rows whose responses reach through couplings: one division by A a row.
    fn sweep_coupled(&mut self, lambda: &mut [f64]) {
        let problem = self.problem;
        self.respond(lambda);
        let mut v = self.memory.q.clone();
        for block in &problem.blocks {
            for row in 0..block.rows {
                let i = (block.row + row) as usize;
                let w =
                    problem.velocity_of(block, row, &v) + problem.compliance[i] * lambda[i] + problem.d[i];
                let new =
                    gauss_seidel(lambda[i], w, self.memory.diagonal[i], problem.lo[i], self.memory.hi[i]);
                let change = new - lambda[i];
                lambda[i] = new;
                self.memory.q.fill(0.0);
                for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                    let j = problem.jacobian_of(block, row, k as u32);
                    (0..6).for_each(|c| self.memory.q[6 * body as usize + c] = j[c] * change);
                }
                self.divide_by_mass();
                v.iter_mut().zip(&self.memory.q).for_each(|(v, d)| *v += d);
            }
        }
    }

    /// q := A⁻¹ q.
    fn divide_by_mass(&mut self) {
        let Memory { q, inverse, coupled, .. } = &mut *self.memory;
        if let Some(coupled) = coupled {
            return coupled.divide(q);
        }
        for (body, inverse) in inverse.iter().enumerate() {
            let old: [f64; 6] = std::array::from_fn(|i| q[6 * body + i]);
            for i in 0..6 {
                q[6 * body + i] = (0..6).map(|j| inverse[6 * i + j] * old[j]).sum();
            }
        }
    }
}
