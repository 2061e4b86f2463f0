//! The row form as a [`PivotSystem`]: the mixed factorization, A never formed.
//!
//! Products with A = J M⁻¹ Jᵀ + C go through the bodies. (A + D)_FF x = r is the mixed system with no
//! momentum and r on the rows, because v = M⁻¹ Jᵀ x then gives J v + (C + D) x = r.

use super::ipm::Chunk;
use super::linear::LinearSystem;
use super::matrix_system::gauss_seidel;
use super::mixed::{MixedOptions, MixedSystem};
use super::problem::{RowKind, RowProblem, invert_spd6};
use super::system::{Pass, PivotSystem};
use super::{Label, residual};

/// Compliance below this share of A_ii counts as rigid: its square root is where double precision
/// stops telling redundant rows apart, and 1/C would drown the masses.
const COMPLIANCE_FLOOR: f64 = 1e-14;

/// Relative imbalance of M v = p + Jᵀ λ that is round-off: a body has tens of rows, each adds ε.
const BALANCED: f64 = 1e-14;

/// Slack of the free rows, relative to max(1, ‖b‖), at which refinement stops: a few hundred ε.
const REFINED: f64 = 1e-13;

/// Refinement steps beyond the one every solve has.
const MAX_REFINEMENTS: u32 = 5;

/// Memory of a [`RowSystem`], kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Memory<L> {
    mixed: L,
    options: MixedOptions,
    inverse: Vec<[f64; 36]>,
    diagonal: Vec<f64>,
    b: Vec<f64>,
    hi: Vec<f64>,
    labels: Vec<Label>,
    /// What is missing to the least compliance; empty when nothing is.
    floor: Vec<f64>,
    shift: Vec<f64>,
    shifted: bool,
    q: Vec<f64>,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    w: Vec<f64>,
    v: Vec<f64>,
    dv: Vec<f64>,
    dlambda: Vec<f64>,
    size: Vec<f64>,
    response: Vec<f64>,
    evaluated: bool,
    factorizations: u32,
    analysed: bool,
    loaded: bool,
}

/// Memory of a [`RowSystem`] on one factorization of the whole problem.
pub type RowMemory = Memory<MixedSystem>;

/// A row problem with its linear system.
pub struct RowSystem<'a, L = MixedSystem> {
    problem: &'a RowProblem,
    memory: &'a mut Memory<L>,
}

impl<L: LinearSystem> Memory<L> {
    /// Choices of the factorization; where they differ from those before, its memory is forgotten.
    pub fn set_options(&mut self, options: MixedOptions) {
        let same = options.kernels == self.options.kernels && options.ordering == self.options.ordering;
        if !same {
            self.options = options;
            self.mixed.set_options(options);
        }
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
        let n = problem.rows();
        memory.factorizations = 0;
        memory.analysed = false;
        memory.loaded = false;
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
        memory.evaluated = false;
        memory.response.clear();
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

    /// v after the step for an impulse vector: that of the factorization where the two belong together,
    /// else M⁻¹ (p + Jᵀ λ).
    pub fn velocity(&mut self, lambda: &[f64], v: &mut Vec<f64>) {
        v.clear();
        if self.balances(lambda) {
            v.extend_from_slice(&self.memory.v);
            return;
        }
        self.problem.impulse_to_momentum(lambda, &mut self.memory.q);
        self.divide_by_mass();
        v.extend_from_slice(&self.memory.q);
    }

    /// Do λ and the v of the last factorization obey M v = p + Jᵀ λ to round-off?
    fn balances(&mut self, lambda: &[f64]) -> bool {
        self.memory.evaluated && self.imbalance(lambda) <= BALANCED
    }

    /// Largest |p + Jᵀ λ − M v| relative to the sum of the sizes of its terms; the difference itself
    /// goes into `r_v`.
    fn imbalance(&mut self, lambda: &[f64]) -> f64 {
        let Memory { v, r_v, size, .. } = &mut *self.memory;
        let problem = self.problem;
        size.clear();
        size.resize(r_v.len(), 0.0);
        for (body, (p, m)) in problem.momentum.iter().zip(&problem.mass).enumerate() {
            for i in 0..6 {
                let k = 6 * body + i;
                r_v[k] = p[i];
                size[k] = p[i].abs();
                for j in 0..6 {
                    let mv = m[6 * i + j] * v[6 * body + j];
                    r_v[k] -= mv;
                    size[k] += mv.abs();
                }
            }
        }
        for block in &problem.blocks {
            for row in 0..block.rows {
                let l = lambda[(block.row + row) as usize];
                for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                    let j = problem.jacobian_of(block, row, k as u32);
                    for c in 0..6 {
                        let jl = j[c] * l;
                        r_v[6 * body as usize + c] += jl;
                        size[6 * body as usize + c] += jl.abs();
                    }
                }
            }
        }
        // A component takes the measure of its body: a zero beside large terms is round-off too.
        let mut worst = 0.0f64;
        for (r, size) in r_v.chunks(3).zip(size.chunks(3)) {
            let size = size.iter().fold(f64::MIN_POSITIVE, |m, s| m.max(*s));
            worst = r.iter().fold(worst, |m, r| m.max(r.abs() / size));
        }
        worst
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
        let Memory { floor, diagonal, .. } = &mut *self.memory;
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

    /// v and λ of an index set, refined.
    fn point_of(&mut self, labels: &[Label], shift: Option<&[f64]>, lambda: &mut [f64], w: &mut [f64]) {
        self.load();
        self.combine_shift(shift);
        let Memory { mixed, shift, shifted, v, factorizations, hi, .. } = &mut *self.memory;
        mixed.factor(self.problem, labels, shifted.then_some(shift.as_slice()));
        *factorizations += 1;
        for i in 0..labels.len() {
            lambda[i] = match labels[i] {
                Label::Free => 0.0,
                Label::Lower => self.problem.lo[i],
                Label::Upper => hi[i],
            };
        }
        mixed.solve_pivot(self.problem, v, lambda, 1);
        self.refine(labels, lambda, w);
        self.memory.evaluated = true;
    }

    /// Refines v and λ on the residual of the whole system.
    ///
    /// Folding divides by C: where C is 1e-13 of A_ii, λ of a light body keeps three digits per solve.
    fn refine(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        let enough = REFINED * residual::scale(&self.memory.b);
        let mut before = f64::INFINITY;
        for _ in 0..MAX_REFINEMENTS {
            let imbalance = self.imbalance(lambda);
            let Memory { mixed, v, r_v, r_lambda, dv, dlambda, shift, shifted, .. } = &mut *self.memory;
            self.problem.slack(v, lambda, w);
            let mut worst = imbalance / BALANCED;
            for i in 0..w.len() {
                let soft = if *shifted { shift[i] * lambda[i] } else { 0.0 };
                r_lambda[i] = -w[i] - soft;
                if labels[i] == Label::Free {
                    worst = worst.max(r_lambda[i].abs() / enough);
                }
            }
            // Below one it is done; not halved, it is round-off and another step would only stir it.
            if worst <= 1.0 || worst.is_nan() || worst > 0.5 * before {
                return;
            }
            before = worst;
            dlambda.clear();
            dlambda.resize(lambda.len(), 0.0);
            dv.clear();
            dv.resize(v.len(), 0.0);
            mixed.solve(self.problem, r_v, r_lambda, dv, dlambda, 0);
            for (v, d) in v.iter_mut().zip(dv.iter()) {
                *v += d;
            }
            for (l, d) in lambda.iter_mut().zip(dlambda.iter()) {
                *l += d;
            }
        }
        self.problem.slack(&self.memory.v, lambda, w);
    }

    /// M⁻¹ Jᵀ, laid out like J, once a step and only for sweeps.
    fn form_response(&mut self) {
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

    /// q := M⁻¹ q.
    fn divide_by_mass(&mut self) {
        let Memory { q, inverse, .. } = &mut *self.memory;
        for (body, inverse) in inverse.iter().enumerate() {
            let old: [f64; 6] = std::array::from_fn(|i| q[6 * body + i]);
            for i in 0..6 {
                q[6 * body + i] = (0..6).map(|j| inverse[6 * i + j] * old[j]).sum();
            }
        }
    }
}

impl<L: LinearSystem> PivotSystem for RowSystem<'_, L> {
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
    fn kind(&self) -> &[RowKind] {
        &self.problem.kind
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

    // w = J v + C λ + d with the v of the factorization where λ belongs to it.
    //
    // A λ + b rounds like ε ‖A‖ ‖λ‖: a gram beside a tonne (A = 1e3, λ = 1e6) is then known to 1e-7 m/s
    // however exact the solution. v has an equation of its own, M v = p + Jᵀ λ, which is checked.
    fn honest_slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        if self.balances(lambda) {
            self.problem.slack(&self.memory.v, lambda, w);
        } else {
            self.slack(lambda, w);
        }
    }

    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.problem.impulse_to_momentum(lambda, &mut self.memory.q);
        self.divide_by_mass();
        self.problem.slack(&self.memory.q, lambda, w);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        self.load();
        self.combine_shift(shift);
        let Memory { mixed, labels, shift, shifted, factorizations, .. } = &mut *self.memory;
        labels.clear();
        labels.extend(free.iter().map(|&f| if f { Label::Free } else { Label::Lower }));
        *factorizations += 1;
        mixed.factor(self.problem, labels, shifted.then_some(shift.as_slice()));
    }

    fn solve(&mut self, x: &mut [f64]) {
        self.solve_shifted(x, 1);
    }

    fn solve_roughly(&mut self, x: &mut [f64]) {
        self.solve_shifted(x, 0);
    }

    fn chunks(&mut self, chunks: &mut Vec<Chunk>) {
        self.load();
        let Memory { mixed, floor, .. } = &*self.memory;
        mixed.chunks(self.problem, chunks);
        if !floor.is_empty() {
            for chunk in chunks {
                chunk.floor.extend(chunk.rows.iter().map(|&row| floor[row as usize]));
            }
        }
    }

    fn newton(
        &mut self,
        chunks: &mut [Chunk],
        factor: bool,
        refined: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        self.memory.factorizations += u32::from(factor);
        self.memory.mixed.newton(self.problem, chunks, factor, u32::from(refined), before, after);
    }

    fn renew_slack(&mut self, chunks: &mut [Chunk], before: &Pass<'_>, after: &Pass<'_>) {
        self.memory.mixed.renew_slack(self.problem, chunks, before, after);
    }

    fn recompute(&mut self, chunks: &mut [Chunk], after: &Pass<'_>) {
        let Memory { r_lambda, q, .. } = &mut *self.memory;
        for chunk in chunks.iter() {
            for (&row, lambda) in chunk.rows.iter().zip(&chunk.lambda) {
                r_lambda[row as usize] = *lambda;
            }
        }
        self.problem.impulse_to_momentum(r_lambda, q);
        self.divide_by_mass();
        let Memory { r_lambda, q, w, .. } = &mut *self.memory;
        w.resize(r_lambda.len(), 0.0);
        self.problem.slack(q, r_lambda, w);
        for chunk in chunks.iter_mut() {
            for (&row, to) in chunk.rows.iter().zip(&mut chunk.w) {
                *to = w[row as usize];
            }
            for (&body, v) in chunk.bodies.iter().zip(chunk.v.chunks_exact_mut(6)) {
                v.copy_from_slice(&q[6 * body as usize..6 * body as usize + 6]);
            }
            after(chunk);
        }
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, None, lambda, w);
    }

    fn evaluate_softened(&mut self, labels: &[Label], shift: &[f64], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, Some(shift), lambda, w);
    }

    fn sweep(&mut self, lambda: &mut [f64]) {
        self.form_response();
        self.problem.impulse_to_momentum(lambda, &mut self.memory.q);
        self.divide_by_mass();
        let Memory { q, response, diagonal, hi, .. } = &mut *self.memory;
        let problem = self.problem;
        for block in &problem.blocks {
            let bodies = problem.bodies_of(block);
            for row in 0..block.rows {
                let i = (block.row + row) as usize;
                let mut w = problem.compliance[i] * lambda[i] + problem.d[i];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = problem.jacobian_of(block, row, k as u32);
                    for c in 0..6 {
                        w += j[c] * q[6 * body as usize + c];
                    }
                }
                let new = gauss_seidel(lambda[i], w, diagonal[i], problem.lo[i], hi[i]);
                let change = new - lambda[i];
                lambda[i] = new;
                for (k, &body) in bodies.iter().enumerate() {
                    let at = (block.entry + 6 * (row * block.bodies + k as u32)) as usize;
                    for c in 0..6 {
                        q[6 * body as usize + c] += response[at + c] * change;
                    }
                }
            }
        }
    }
}
