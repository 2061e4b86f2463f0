//! Right-hand sides in, velocities and impulses out; refinement on the KKT residual.

use super::MixedSystem;
use super::plan::Plan;
use crate::linalg::Aligned;
use crate::linalg::kernels::{self, Group, Numbers, Six};
use crate::solver::RowProblem;
use std::ops::Range;

/// Vectors of a solve; keep their memory.
#[derive(Clone, Debug, Default)]
pub struct Work {
    local: Aligned,
    r_v: Vec<f64>,
    r_lambda: Vec<f64>,
    pub(super) pivot_v: Vec<f64>,
    pub(super) pivot_lambda: Vec<f64>,
    dv: Vec<f64>,
    dlambda: Vec<f64>,
    unknown: Vec<f64>,
}

impl Work {
    /// Makes room for a problem.
    pub fn reserve(&mut self, problem: &RowProblem, locals: usize) {
        self.local.reset(locals);
        for v in [&mut self.r_v, &mut self.pivot_v, &mut self.dv] {
            v.resize(6 * problem.bodies(), 0.0);
        }
        for v in [&mut self.r_lambda, &mut self.pivot_lambda, &mut self.dlambda] {
            v.resize(problem.rows(), 0.0);
        }
    }
}

impl MixedSystem {
    /// With the labels and D of the last factorization, finds v and λ_F of
    /// M v − J_Fᵀ λ_F = r_v and J_F v + (C+D)_F λ_F = r_λ. Of tight rows r_λ is not read and λ is left as it is.
    ///
    /// `refinements` counts steps of iterative refinement on the residual of these equations: 1 takes the
    /// error from about 1e-7 to below 1e-11 on stiff problems and costs another solve.
    ///
    /// # Panics
    /// If nothing was factored, or a slice has the wrong length.
    pub fn solve(
        &mut self,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
        refinements: u32,
    ) {
        let mut work = std::mem::take(&mut self.work);
        self.solve_once(problem, (r_v, r_lambda), (v, lambda), &mut work.local);
        for _ in 0..refinements {
            work.r_v.copy_from_slice(r_v);
            work.r_lambda.copy_from_slice(r_lambda);
            self.subtract_product(problem, v, lambda, &mut work.r_v, &mut work.r_lambda);
            self.solve_once(
                problem,
                (&work.r_v, &work.r_lambda),
                (&mut work.dv, &mut work.dlambda),
                &mut work.local,
            );
            for (x, d) in v.iter_mut().zip(&work.dv) {
                *x += d;
            }
            for (row, x) in lambda.iter_mut().enumerate() {
                if self.is_free(row) {
                    *x += work.dlambda[row];
                }
            }
        }
        self.work = work;
    }

    /// One pivot (000 eq. 28): reads λ of tight rows, solves with r_v = p + J_Tᵀ λ_T and r_λ = −d, writes v and λ of
    /// free rows.
    ///
    /// # Panics
    /// As [`solve`](Self::solve).
    pub fn solve_pivot(&mut self, problem: &RowProblem, v: &mut [f64], lambda: &mut [f64], refinements: u32) {
        let mut r_v = std::mem::take(&mut self.work.pivot_v);
        let mut r_lambda = std::mem::take(&mut self.work.pivot_lambda);
        for (r, d) in r_lambda.iter_mut().zip(&problem.d) {
            *r = -d;
        }
        if self.any_tight {
            r_v.copy_from_slice(problem.momentum.as_flattened());
            for_each_row(problem, |row, j, bodies| {
                if !self.is_free(row) && lambda[row] != 0.0 {
                    add_scaled(j, bodies, lambda[row], &mut r_v, |body| {
                        6 * body as usize..6 * body as usize + 6
                    });
                }
            });
        }
        let momentum = if self.any_tight { &r_v[..] } else { problem.momentum.as_flattened() };
        self.solve(problem, momentum, &r_lambda, v, lambda, refinements);
        self.work.pivot_v = r_v;
        self.work.pivot_lambda = r_lambda;
    }

    /// The first half of a solve whose interface impulses are not known yet: `out` = J_Γ v at λ_Γ = 0, the
    /// partition's term of z_Γ (000 eq. 25). [`expand`](Self::expand) is the second half.
    ///
    /// # Panics
    /// As [`solve`](Self::solve).
    pub fn condense(&mut self, problem: &RowProblem, r_v: &[f64], r_lambda: &[f64], out: &mut [f64]) {
        let mut work = std::mem::take(&mut self.work);
        let Some(plan) = self.plan.as_deref() else {
            panic!("MixedSystem::condense before MixedSystem::load: load and factor first");
        };
        assert!(r_v.len() == 6 * problem.bodies(), "six numbers a body");
        self.fill(plan, problem, r_v, r_lambda, &mut work.local);
        self.factor.forward(&mut work.local);
        match self.factor.interface_of(&work.local) {
            Some(x) => out.iter_mut().zip(x).for_each(|(out, x)| *out = -x),
            None => out.fill(0.0),
        }
        self.work = work;
    }

    /// The second half: v and λ_F for the right-hand side of the last [`condense`](Self::condense) and the interface
    /// impulses `interface`. λ of tight rows is left as it is.
    ///
    /// # Panics
    /// As [`solve`](Self::solve).
    pub fn expand(
        &mut self,
        problem: &RowProblem,
        r_lambda: &[f64],
        interface: &[f64],
        v: &mut [f64],
        lambda: &mut [f64],
    ) {
        let mut work = std::mem::take(&mut self.work);
        let Some(plan) = self.plan.as_deref() else {
            panic!("MixedSystem::expand before MixedSystem::load: load and factor first");
        };
        work.unknown.clear();
        work.unknown.extend(interface.iter().map(|l| -l));
        self.factor.backward(&mut work.local, Some(&work.unknown));
        self.read(plan, problem, r_lambda, (v, lambda), &work.local);
        self.work = work;
    }

    #[inline]
    pub(super) fn is_free(&self, row: usize) -> bool {
        self.regular[row].is_finite()
    }

    fn solve_once(
        &self,
        problem: &RowProblem,
        (r_v, r_lambda): (&[f64], &[f64]),
        (v, lambda): (&mut [f64], &mut [f64]),
        x: &mut [f64],
    ) {
        let Some(plan) = self.plan.as_deref() else {
            panic!("MixedSystem::solve before MixedSystem::load: load and factor first");
        };
        assert!(r_v.len() == 6 * problem.bodies() && v.len() == r_v.len(), "six numbers a body");
        let sides = (&plan.sides, self.numbers(problem));
        self.factor.solve_sides(sides, (r_v, r_lambda), (v, lambda), x);
    }

    /// v and λ_F from the unknowns of the mixed form.
    pub(super) fn read(
        &self,
        plan: &Plan,
        problem: &RowProblem,
        r_lambda: &[f64],
        (v, lambda): (&mut [f64], &mut [f64]),
        x: &[f64],
    ) {
        kernels::read_sides(self.factor.isa(), &plan.sides, self.numbers(problem), r_lambda, x, v, lambda);
    }

    /// The numbers of the last factorization.
    pub(super) fn numbers<'a>(&'a self, problem: &'a RowProblem) -> Numbers<'a> {
        Numbers { jacobian: &problem.jacobian, regular: &self.regular, weight: &self.weight }
    }

    /// λ_c = (C+D)⁻¹ (r_c − J_c v) of a folded group.
    pub(super) fn recover(
        &self,
        problem: &RowProblem,
        group: &Group,
        r_lambda: &[f64],
        v: &[f64],
        lambda: &mut [f64],
        rows: &mut [f64],
    ) {
        let range = group.row as usize..(group.row + group.rows) as usize;
        let rest = &mut rows[..range.len()];
        rest.copy_from_slice(&r_lambda[range.clone()]);
        for_each_six(problem, group, |body, six| {
            kernels::subtract_six_times(self.factor.isa(), six, &v[6 * body..6 * body + 6], rest);
        });
        let weight = &self.weight[range.clone()];
        for ((lambda, rest), weight) in lambda[range].iter_mut().zip(rest).zip(weight) {
            if *weight != 0.0 {
                *lambda = *rest * weight;
            }
        }
    }

    /// The right-hand side of the mixed form, at the places of its unknowns.
    pub(super) fn fill(
        &self,
        plan: &Plan,
        problem: &RowProblem,
        r_v: &[f64],
        r_lambda: &[f64],
        x: &mut [f64],
    ) {
        kernels::fill_sides(self.factor.isa(), &plan.sides, self.numbers(problem), r_v, r_lambda, x);
    }
}

/// Calls `f(body, its columns of the group's rows)` for every body of a group.
#[inline]
pub(super) fn for_each_six(problem: &RowProblem, group: &Group, mut f: impl FnMut(usize, Six<'_>)) {
    let numbers = &problem.jacobian[group.entry as usize..];
    let stride = 6 * group.bodies as usize;
    for k in 0..group.bodies as usize {
        let body = problem.block_bodies[group.body as usize + k];
        f(body as usize, Six { numbers: &numbers[6 * k..], stride });
    }
}

/// Calls `f(row, the row's Jacobian numbers, its bodies)` for every row in order.
#[inline]
fn for_each_row(problem: &RowProblem, mut f: impl FnMut(usize, &[f64], &[u32])) {
    for block in &problem.blocks {
        let bodies = problem.bodies_of(block);
        let width = 6 * bodies.len();
        for r in 0..block.rows as usize {
            let at = block.entry as usize + r * width;
            f(block.row as usize + r, &problem.jacobian[at..at + width], bodies);
        }
    }
}

#[inline]
pub(super) fn add_scaled(
    j: &[f64],
    bodies: &[u32],
    scale: f64,
    q: &mut [f64],
    place: impl Fn(u32) -> Range<usize>,
) {
    for (six, &body) in j.chunks_exact(6).zip(bodies) {
        for (q, j) in q[place(body)].iter_mut().zip(six) {
            *q += j * scale;
        }
    }
}
