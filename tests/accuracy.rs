//! Accuracy of the mixed form on stiff problems, against references in twice the precision.
//!
//! The reference comes from refinement with residuals and solution in double-double arithmetic (31 digits). Its own
//! error is known: the last correction, which must have become smaller than 1e-20.

use turnbuckle::solver::mixed::{Kernels, MixedOptions, MixedSystem, OrderingKind};
use turnbuckle::solver::{Label, RowProblem, generate};

/// An unevaluated sum of two numbers (Dekker 1971).
#[derive(Clone, Copy, Default)]
struct Double(f64, f64);

impl Double {
    fn sum(a: f64, b: f64) -> Self {
        let s = a + b;
        let t = s - a;
        Self(s, (a - (s - t)) + (b - t))
    }

    fn product(a: f64, b: f64) -> Self {
        let split = |x: f64| {
            let t = 134_217_729.0 * x;
            let high = t - (t - x);
            (high, x - high)
        };
        let p = a * b;
        let ((ah, al), (bh, bl)) = (split(a), split(b));
        Self(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
    }

    fn add(self, b: Self) -> Self {
        let s = Self::sum(self.0, b.0);
        let t = Self::sum(self.1, b.1);
        let u = Self::sum(s.0, s.1 + t.0);
        Self::sum(u.0, u.1 + t.1)
    }

    /// self + a x
    fn add_scaled(self, a: f64, x: Self) -> Self {
        let p = Self::product(a, x.0);
        self.add(Self::sum(p.0, p.1 + a * x.1))
    }
}

struct Reference {
    v: Vec<Double>,
    lambda: Vec<Double>,
}

/// r_v − M v + Jᵀ λ and r_λ − J v − C λ on free rows, in double-double.
fn residual(problem: &RowProblem, labels: &[Label], r_v: &[f64], x: &Reference) -> (Vec<f64>, Vec<f64>) {
    let mut rv: Vec<Double> = r_v.iter().map(|&r| Double(r, 0.0)).collect();
    let mut rl: Vec<Double> = problem.d.iter().map(|d| Double(-d, 0.0)).collect();
    for (body, m) in problem.mass.iter().enumerate() {
        for i in 0..6 {
            for j in 0..6 {
                rv[6 * body + i] = rv[6 * body + i].add_scaled(-m[6 * i + j], x.v[6 * body + j]);
            }
        }
    }
    for block in &problem.blocks {
        for r in 0..block.rows {
            let row = (block.row + r) as usize;
            if labels[row] != Label::Free {
                continue;
            }
            rl[row] = rl[row].add_scaled(-problem.compliance[row], x.lambda[row]);
            for (k, &body) in problem.bodies_of(block).iter().enumerate() {
                let j = problem.jacobian_of(block, r, k as u32);
                for (c, j) in j.iter().enumerate() {
                    let at = 6 * body as usize + c;
                    rl[row] = rl[row].add_scaled(-j, x.v[at]);
                    rv[at] = rv[at].add_scaled(*j, x.lambda[row]);
                }
            }
        }
    }
    (rv.iter().map(|r| r.0).collect(), rl.iter().map(|r| r.0).collect())
}

fn norm(a: impl Iterator<Item = f64>) -> f64 {
    a.map(|x| x * x).sum::<f64>().sqrt()
}

/// The solution for an index set with λ = 0 on tight rows, to at least twenty digits.
fn reference(problem: &RowProblem, labels: &[Label], r_v: &[f64]) -> Reference {
    let mut system = MixedSystem::new(MixedOptions { kernels: Kernels::Plain, ..Default::default() });
    system.load(problem);
    system.factor(problem, labels, None);
    let mut x = Reference {
        v: vec![Double::default(); 6 * problem.bodies()],
        lambda: vec![Double::default(); problem.rows()],
    };
    let (mut dv, mut dl) = (vec![0.0; x.v.len()], vec![0.0; x.lambda.len()]);
    let mut last = f64::INFINITY;
    for _ in 0..40 {
        let (rv, rl) = residual(problem, labels, r_v, &x);
        system.solve(problem, &rv, &rl, &mut dv, &mut dl, 0);
        for (x, d) in x.v.iter_mut().zip(&dv) {
            *x = x.add(Double(*d, 0.0));
        }
        for (x, d) in x.lambda.iter_mut().zip(&dl) {
            *x = x.add(Double(*d, 0.0));
        }
        let size = norm(x.lambda.iter().map(|x| x.0)).max(1e-300);
        last = norm(dl.iter().copied()) / size;
        if last < 1e-20 {
            return x;
        }
    }
    panic!("the reference did not converge: last correction {last:e}");
}

fn error(a: &[f64], b: &[Double]) -> f64 {
    norm(a.iter().zip(b).map(|(a, b)| (a - b.0) - b.1)) / norm(b.iter().map(|b| b.0))
}

/// Relative errors of v and λ with so many refinements.
fn errors(problem: &RowProblem, labels: &[Label], options: MixedOptions, refinements: u32) -> (f64, f64) {
    let r_v: Vec<f64> = problem.momentum.iter().flatten().copied().collect();
    let r_lambda: Vec<f64> = problem.d.iter().map(|d| -d).collect();
    let exact = reference(problem, labels, &r_v);
    let mut system = MixedSystem::new(options);
    system.load(problem);
    system.factor(problem, labels, None);
    let mut v = vec![0.0; r_v.len()];
    let mut lambda = vec![0.0; problem.rows()];
    system.solve(problem, &r_v, &r_lambda, &mut v, &mut lambda, refinements);
    (error(&v, &exact.v), error(&lambda, &exact.lambda))
}

/// Everything free, and an index set with every third bounded row tight.
fn index_sets(problem: &RowProblem) -> [Vec<Label>; 2] {
    let bounded = |r: usize| problem.lo[r].is_finite() || problem.hi[r].is_finite();
    let some = (0..problem.rows())
        .map(|r| if bounded(r) && r % 3 == 1 { Label::Lower } else { Label::Free })
        .collect();
    [vec![Label::Free; problem.rows()], some]
}

#[test]
fn one_refinement_gives_nine_digits_at_forty_thousand_to_one() {
    // Rigid to 1e-10, 40,000 : 1 by mass, as issue 3 asks; 1e-9 is its bound.
    let c = 1e-10;
    let problems = [
        ("chain", generate::chain(250, 10_000.0, c)),
        ("chain on the ground", generate::chain_on_ground(250, c)),
        ("tower, 2 points", generate::tower(80, 2, 2e6, c)),
        ("tower, 4 points", generate::tower(80, 4, 2e6, c)),
        ("net", generate::net(6, 50, 8_000.0, c)),
        // Soft enough for its joints of six rows to be folded, and no softer than need be.
        ("net, folded", generate::net(6, 50, 8_000.0, 1e-8)),
        ("rocks", generate::rocks(150, c)),
    ];
    for (name, problem) in &problems {
        for labels in index_sets(problem) {
            for ordering in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
                let options = MixedOptions { ordering, ..Default::default() };
                let (v0, l0) = errors(problem, &labels, options, 0);
                let (v1, l1) = errors(problem, &labels, options, 1);
                println!("{name:20} {ordering:?}: v {v0:.1e} -> {v1:.1e}, λ {l0:.1e} -> {l1:.1e}");
                assert!(v1 <= 1e-9, "{name} {ordering:?}: v {v1:e}");
                assert!(l1 <= 1e-9, "{name} {ordering:?}: λ {l1:e}");
            }
        }
    }
}
