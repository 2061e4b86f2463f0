//! Coulomb's cones: real problems of other codes, and random ones against two other ways to the same answer.

#[path = "support/fclib.rs"]
mod fclib;

use std::path::Path;
use turnbuckle::solver::{
    Cone, Coupling, Method, RowBlock, RowKind, RowProblem, RowSolver, Settings, Solution, solve_matrix,
};

#[test]
fn contact_problems_of_other_codes_are_solved_to_the_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cones");
    let files = fclib::files(&folder, &["fc"]);
    assert!(files.len() >= 10);
    for path in files {
        let contacts = fclib::read(&path).cones();
        let (r, recomputed, stats) = contacts.solve(Method::Auto, &Settings::default());
        let (rel, scaled) = contacts.residuals(&r);
        assert_eq!(rel.max(scaled), recomputed);
        // 1e-9 is the tolerance of the solver; a skew part of W is worked off in twelve rounds.
        assert!(recomputed <= 1e-9, "{}: {rel:e} {scaled:e} {stats:?}", path.display());
    }
}

/// Numbers in [−1, 1), the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn below(&mut self, n: usize) -> usize {
        (
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407),
            (self.0 >> 33) as usize % n,
        )
            .1
    }
}

/// Nodes of one to six unknowns, some coupled, with joints, limits and contacts under Coulomb's law.
fn random_problem(seed: u64) -> RowProblem {
    let mut random = Random(seed.wrapping_mul(0x9E3779B97F4A7C15) ^ 0x5DEECE66D);
    random.next();
    let nodes = 2 + random.below(6);
    let mut p = RowProblem::default();
    for _ in 0..nodes {
        let width = 1 + random.below(6);
        let mut mass = [0.0; 36];
        let scale = 10f64.powf(1.5 * random.next());
        for i in 0..width {
            for j in 0..i {
                let x = 0.15 * scale * random.next();
                (mass[6 * i + j], mass[6 * j + i]) = (x, x);
            }
            // Larger than a row's other entries: positive definite, couplings included.
            mass[7 * i] = 3.0 * scale;
        }
        p.width.push(width as u8);
        p.mass.push(mass);
        p.momentum.push(std::array::from_fn(|i| if i < width { 3.0 * scale * random.next() } else { 0.0 }));
    }
    if random.below(2) == 0 {
        let (a, b) = (random.below(nodes), random.below(nodes));
        if a != b {
            let smaller = p.mass[a][0].min(p.mass[b][0]);
            let (wa, wb) = (usize::from(p.width[a]), usize::from(p.width[b]));
            let mut block = [0.0; 36];
            (0..wa).for_each(|i| (0..wb).for_each(|j| block[6 * i + j] = 0.05 * smaller * random.next()));
            p.couplings.push(Coupling { a: a as u32, b: b as u32, block });
        }
    }
    for _ in 0..2 + random.below(6) {
        let what = random.below(4);
        let rows = if what >= 2 { 3 } else { 1 };
        let mut bodies = vec![random.below(nodes) as u32, random.below(nodes) as u32];
        bodies.sort_unstable();
        bodies.dedup();
        let (row, entry) = (p.d.len() as u32, p.jacobian.len() as u32);
        for r in 0..rows {
            for &body in &bodies {
                let width = usize::from(p.width[body as usize]);
                p.jacobian.extend((0..6).map(|c| if c < width { random.next() } else { 0.0 }));
            }
            p.d.push(random.next());
            p.compliance.push(1e-4);
            let (lo, hi, kind) = match (what, r) {
                (0, _) => (f64::NEG_INFINITY, f64::INFINITY, RowKind::Joint),
                (1, _) => (-random.next().abs(), 1.0, RowKind::Joint),
                (_, 0) => (0.0, f64::INFINITY, RowKind::Normal),
                _ => (0.0, 0.0, RowKind::Friction),
            };
            p.lo.push(lo);
            p.hi.push(hi);
            p.kind.push(kind);
        }
        if rows == 3 {
            p.cones.push(Cone { row, mu: [0.0, 0.2, 0.5, 1.2][random.below(4)] });
        }
        p.blocks.push(RowBlock {
            row,
            rows: rows as u32,
            body: p.block_bodies.len() as u32,
            bodies: bodies.len() as u32,
            entry,
            fold: rows == 3,
        });
        p.block_bodies.extend(bodies);
    }
    p
}

#[test]
fn rows_and_matrix_have_the_same_answer() {
    let mut solver = RowSolver::new(Method::Auto);
    let mut worst = 0.0f64;
    for seed in 0..600 {
        let problem = random_problem(seed);
        let mut rows = Solution::default();
        let stats = solver.solve(&problem, &mut rows);
        assert!(stats.converged, "{seed}: {stats:?}");
        let (dense, told) =
            solve_matrix(&problem.to_matrix(), Method::Auto, &Settings::default()).expect("a problem");
        assert!(told.converged, "{seed}: {told:?}");
        // v follows from λ: M v = p + Jᵀλ; with C = 1e-4 both are unique, unless sliding has several answers.
        let size = dense.lambda.iter().fold(1.0f64, |m, l| m.max(l.abs()));
        let apart =
            rows.lambda.iter().zip(&dense.lambda).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size;
        worst = worst.max(if apart < 1e-3 { apart } else { 0.0 });
        // Started from its own answer it stays there, with one factorization.
        let again = solver.solve(&problem, &mut rows);
        assert!(again.converged && again.ipm_iterations == 0, "{seed}: {again:?}");
    }
    // Residuals of 1e-9 through compliances of 1e-4.
    assert!(worst < 1e-4, "{worst:e}");
}

#[test]
fn sweeps_find_the_same_answer() {
    let settings = Settings { max_sweeps: 100_000, target: 1e-10, ..Settings::default() };
    for seed in 0..60 {
        let mut problem = random_problem(seed);
        // Soft enough for sweeps to end.
        problem.compliance.fill(0.05);
        let matrix = problem.to_matrix();
        let (exact, told) = solve_matrix(&matrix, Method::Auto, &settings).expect("a problem");
        let (swept, sweeps) = solve_matrix(&matrix, Method::Pgs, &settings).expect("a problem");
        if matrix.cones.is_empty() || sweeps.residual_relative > 1e-9 {
            continue;
        }
        assert!(told.converged, "{seed}: {told:?}");
        let size = exact.lambda.iter().fold(1.0f64, |m, l| m.max(l.abs()));
        for (a, b) in exact.lambda.iter().zip(&swept.lambda) {
            // 1e-9 through C = 0.05 and a condition of a thousand.
            assert!((a - b).abs() <= 1e-5 * size, "{seed}: {a} {b}");
        }
    }
}

#[test]
fn a_block_slides_against_its_friction_and_does_not_lift() {
    let mut mass = [0.0; 36];
    (0..6).for_each(|i| mass[7 * i] = 2.0);
    let mut jacobian = vec![0.0; 18];
    (jacobian[2], jacobian[6], jacobian[13]) = (1.0, 1.0, 1.0);
    let problem = RowProblem {
        mass: vec![mass],
        momentum: vec![[3.0, 4.0, -10.0, 0.0, 0.0, 0.0]],
        blocks: vec![RowBlock { row: 0, rows: 3, body: 0, bodies: 1, entry: 0, fold: true }],
        block_bodies: vec![0],
        jacobian,
        compliance: vec![1e-10; 3],
        d: vec![0.0; 3],
        lo: vec![0.0; 3],
        hi: vec![f64::INFINITY, 0.0, 0.0],
        kind: vec![RowKind::Normal, RowKind::Friction, RowKind::Friction],
        cones: vec![Cone { row: 0, mu: 0.3 }],
        ..RowProblem::default()
    };
    for method in [Method::Auto, Method::Ipm, Method::Bpp] {
        let mut solution = Solution::default();
        let stats = RowSolver::new(method).solve(&problem, &mut solution);
        assert!(stats.converged, "{stats:?}");
        // 3 N s of friction against 5 N s: 2/5 of the velocity is left, along itself. C moves λ by 2e-10 of itself.
        assert!((solution.lambda[0] - 10.0).abs() < 1e-8);
        assert!((solution.lambda[1] + 1.8).abs() < 1e-8 && (solution.lambda[2] + 2.4).abs() < 1e-8);
        assert!((solution.v[0] - 0.6).abs() < 1e-8 && (solution.v[1] - 0.8).abs() < 1e-8);
        assert!(solution.v[2].abs() < 1e-8, "it lifts: {:?}", solution.v);
    }
}
