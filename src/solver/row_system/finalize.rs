//! The end of a solve: how impulses and velocities belong together, and what is to be said of them.

use super::{Memory, RowSystem};
use crate::solver::auto::Settings;
use crate::solver::linear::{LinearSystem, Point, Scratch};
use crate::solver::system::PivotSystem;
use crate::solver::{Label, RowProblem, Solution, SolveStats, index_sets, momentum_residual, residual};

/// How impulses and the velocities of the last factorization belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belonging {
    /// They are those it found. Do they obey M v = p + Jᵀ λ to round-off?
    Same {
        /// See above.
        balanced: bool,
    },
    /// They differ by no more than round-off.
    Near {
        /// As with `Same`.
        balanced: bool,
    },
    /// They do not.
    Apart,
}

impl Belonging {
    fn balances(self) -> bool {
        matches!(self, Self::Same { balanced: true } | Self::Near { balanced: true })
    }
}

impl<L: LinearSystem> RowSystem<'_, L> {
    /// The point of labels that are probably right, with what is to be said of it; none if they are not, or if that is not as simple.
    /// `near`: was the last solve near rows in focus that of these labels?
    pub(in crate::solver) fn confirm(
        &mut self,
        solution: &mut Solution,
        near: bool,
        w: &mut Vec<f64>,
        settings: &Settings,
    ) -> Option<SolveStats> {
        let (problem, n) = (self.problem, self.problem.rows());
        if self.memory.lacks {
            return None;
        }
        self.load();
        let Memory { mixed, diagonal, hi, scale, scratch, factorizations, analysed, .. } = &mut *self.memory;
        *factorizations += 1;
        let Solution { labels, lambda, v, .. } = solution;
        // All of these are written in full.
        lambda.resize(n, 0.0);
        w.resize(n, 0.0);
        v.resize(6 * problem.bodies(), 0.0);
        index_sets::begin(labels, &problem.lo, hi, lambda);
        let enough = momentum_residual::REFINED * *scale;
        let point = Point { v, lambda, w };
        let found = mixed.confirm(problem, (labels, near), point, enough, diagonal, scratch);
        let mut stats = SolveStats {
            pivots: 1,
            factorizations: *factorizations,
            analysed: *analysed,
            ..SolveStats::default()
        };
        found.sums.judge(n, *scale, settings.tolerance, &mut stats);
        let arrived = stats.residual_relative <= settings.target;
        (found.balanced && found.sums.inside && arrived).then_some(stats)
    }

    /// Makes v of the last factorization belong to the best point: where a later index set has replaced it, the best one's
    /// is computed again (λ is replaced if that makes the residual smaller); where single bodies are out of balance, they
    /// are brought back. λ alone does not tell v as exactly as the factorization does. Says how λ and v belong together then.
    pub fn settle(&mut self, labels: &[Label], lambda: &mut Vec<f64>) -> Belonging {
        let belonging = self.belonging(lambda);
        if !self.memory.evaluated || belonging.balances() {
            return belonging;
        }
        let n = lambda.len();
        let mut w = vec![0.0; n];
        self.slack(lambda, &mut w);
        let before = residual::natural(lambda, &w, self.lo(), self.hi());
        if moved_away(&self.memory.last, lambda) {
            let mut exact = vec![0.0; n];
            self.point_of(labels, None, &mut exact, &mut w);
            index_sets::project(&mut exact, self.lo(), self.hi());
            self.balance_bodies(&exact, f64::INFINITY, &mut w);
            self.honest_slack(&exact, &mut w);
            if residual::natural(&exact, &w, self.lo(), self.hi()) < before {
                *lambda = exact;
            }
        } else {
            self.balance_bodies(lambda, before, &mut w);
        }
        self.belonging(lambda)
    }

    /// v += M⁻¹ (p + Jᵀ λ − M v) for bodies out of balance, kept if the residual is below `before`.
    ///
    /// Beside stiff neighbours a light body's own mass is lost to all but a few digits of the factor, and refinement ends
    /// short of round-off. Moved by as little as it is out of balance, it disturbs the slacks by next to nothing.
    fn balance_bodies(&mut self, lambda: &[f64], before: f64, w: &mut [f64]) {
        let belonging = self.belonging(lambda);
        if belonging == Belonging::Apart || belonging.balances() {
            return;
        }
        self.need_inverse();
        let Memory { v, inverse, scratch, last, last_w, balanced, hi, .. } = &mut *self.memory;
        let Scratch { r_v, size, .. } = scratch;
        momentum_residual::form(self.problem, v, lambda, r_v, size);
        let old = v.clone();
        for (body, inverse) in inverse.iter().enumerate() {
            let six = 6 * body..6 * body + 6;
            if momentum_residual::worst(&r_v[six.clone()], &size[six.clone()]) > momentum_residual::BALANCED {
                let (v, r) = (&mut v[six.clone()], &r_v[six]);
                for i in 0..6 {
                    v[i] += (0..6).map(|j| inverse[6 * i + j] * r[j]).sum::<f64>();
                }
            }
        }
        momentum_residual::form(self.problem, v, lambda, r_v, size);
        self.problem.slack(v, lambda, w);
        let in_balance = momentum_residual::worst(r_v, size) <= momentum_residual::BALANCED;
        if in_balance && residual::natural(lambda, w, &self.problem.lo, hi) < before {
            for (to, from) in [(last, lambda), (last_w, &*w)] {
                to.clear();
                to.extend_from_slice(from);
            }
            *balanced = Some(true);
        } else {
            *v = old;
        }
    }

    /// v after the step for an impulse vector, and w: those of the factorization where they belong together, else
    /// v = M⁻¹ (p + Jᵀ λ).
    pub fn tell(&mut self, belonging: Belonging, lambda: &[f64], v: &mut Vec<f64>, w: &mut Vec<f64>) {
        // Both are written in full.
        w.resize(lambda.len(), 0.0);
        v.clear();
        self.slack_by(belonging, lambda, w);
        v.extend_from_slice(if belonging.balances() { &self.memory.v } else { &self.memory.q });
    }

    /// ‖r‖₂ of 000 eq. (29) that round-off leaves of the exact answer: λ and p are known to ε of themselves, and every row adds up
    ///
    /// ```text
    ///     w = J M⁻¹ (p + Jᵀλ) + C λ + d        to   γ ( |J| |M⁻¹| (|p| + |Jᵀ| |λ|) + C |λ| + |d| )
    /// ```
    ///
    /// A link of a chain under a load has 1e-11 m/s of it, a rod on a lever of 1,000 km millimetres a second.
    pub(in crate::solver) fn round_off(&mut self, lambda: &[f64]) -> f64 {
        self.need_inverse();
        let problem = self.problem;
        let mut reach: Vec<f64> = problem.momentum.as_flattened().iter().map(|p| p.abs()).collect();
        for_each_twist(problem, |row, body, j| {
            (0..6).for_each(|c| reach[6 * body + c] += j[c].abs() * lambda[row].abs());
        });
        for (inverse, six) in self.memory.inverse.iter().zip(reach.as_chunks_mut::<6>().0) {
            let momentum = *six;
            *six = std::array::from_fn(|i| (0..6).map(|k| inverse[6 * i + k].abs() * momentum[k]).sum());
        }
        let own = problem.compliance.iter().zip(&problem.d).zip(lambda);
        let mut size: Vec<f64> = own.map(|((c, d), l)| (c * l).abs() + d.abs()).collect();
        for_each_twist(problem, |row, body, j| {
            size[row] += (0..6).map(|c| j[c].abs() * reach[6 * body + c]).sum::<f64>();
        });
        ROUND_OFF * residual::square(&size).sqrt()
    }

    /// How λ and the v of the last factorization belong together.
    pub(super) fn belonging(&mut self, lambda: &[f64]) -> Belonging {
        let Memory { evaluated, scratch, v, last, balanced, .. } = &mut *self.memory;
        if !*evaluated {
            return Belonging::Apart;
        }
        let mut look = || {
            let Scratch { r_v, size, .. } = scratch;
            momentum_residual::form(self.problem, v, lambda, r_v, size);
            momentum_residual::worst(r_v, size) <= momentum_residual::BALANCED
        };
        if same_bits(last, lambda) {
            Belonging::Same { balanced: *balanced.get_or_insert_with(look) }
        } else if moved_away(last, lambda) {
            Belonging::Apart
        } else {
            Belonging::Near { balanced: look() }
        }
    }

    // A λ + b rounds like ε ‖A‖ ‖λ‖: a gram beside a tonne (A = 1e3, λ = 1e6) is then known to 1e-7 m/s
    // however exact the solution. v has an equation of its own, M v = p + Jᵀ λ, which is checked.
    pub(super) fn slack_by(&mut self, belonging: Belonging, lambda: &[f64], w: &mut [f64]) {
        match belonging {
            Belonging::Same { balanced: true } => w.copy_from_slice(&self.memory.last_w),
            Belonging::Near { balanced: true } => self.problem.slack(&self.memory.v, lambda, w),
            _ => self.slack(lambda, w),
        }
    }
}

/// γ of [`RowSystem::round_off`]: four to five ε, of which a row has a dozen products and a body some tens of rows, whose signs differ.
const ROUND_OFF: f64 = 1e-15;

/// Calls `f(row, body, the row's six numbers there)` for every row and body of it.
fn for_each_twist(problem: &RowProblem, mut f: impl FnMut(usize, usize, &[f64])) {
    for block in &problem.blocks {
        for row in 0..block.rows {
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                f((block.row + row) as usize, body as usize, problem.jacobian_of(block, row, k as u32));
            }
        }
    }
}

/// Numbers one by one would have to be looked at for what is not a number; bits are compared many at once.
fn same_bits(a: &[f64], b: &[f64]) -> bool {
    bytemuck::cast_slice::<f64, u8>(a) == bytemuck::cast_slice::<f64, u8>(b)
}

/// Is λ so far from the one that v belongs to that the two cannot balance to round-off?
fn moved_away(last: &[f64], lambda: &[f64]) -> bool {
    if same_bits(last, lambda) {
        return false;
    }
    let size = last.iter().fold(0.0f64, |m, l| m.max(l.abs()));
    last.len() != lambda.len() || last.iter().zip(lambda).any(|(a, b)| (a - b).abs() > 1e-9 * size)
}
