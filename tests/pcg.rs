//! Conjugate gradients inside pivoting (003): the same answers as the direct solver, or an honest no.

#![allow(clippy::needless_range_loop)] // rows are numbered; several arrays are read at one number

#[path = "support/mlcp.rs"]
#[allow(dead_code)]
mod problems;

use problems::Random;
use turnbuckle::linalg::incomplete::{Kind, Scaling};
use turnbuckle::solver::baselines::bpp_pcg::InnerSettings;
use turnbuckle::solver::baselines::softening::Softening;
use turnbuckle::solver::{Label, Method, RowProblem, RowSolver, Solution, SolveStats};

fn solve_with(
    problem: &RowProblem,
    method: Method,
    change: impl Fn(&mut RowSolver),
) -> (Solution, SolveStats) {
    let mut solver = RowSolver::new(method);
    change(&mut solver);
    let mut solution = Solution::default();
    let stats = solver.solve(problem, &mut solution);
    (solution, stats)
}

fn solve(problem: &RowProblem, method: Method) -> (Solution, SolveStats) {
    solve_with(problem, method, |_| {})
}

/// Steps of chains, walls and heaps at the paper's mass ratios and compliances.
fn stream() -> Vec<(String, RowProblem)> {
    let mut list = Vec::new();
    for seed in 0..4 {
        let mut random = Random::new(900 + seed);
        list.push((format!("chain {seed}"), problems::chain(&mut random, 20, 500.0, 1e-7, true)));
        list.push((format!("wall {seed}"), problems::wall(&mut random, 3, 3, 4.0, 1e-7)));
        list.push((format!("heap {seed}"), problems::heap(&mut random, 20, 3.0, 1e-7)));
        list.push((format!("heap of ratio 250 {seed}"), problems::heap(&mut random, 12, 250.0, 1e-8)));
    }
    list
}

#[test]
fn where_they_report_convergence_they_agree_with_the_direct_solver() {
    let mut converged = [0, 0];
    let problems = stream();
    for (name, problem) in &problems {
        let (exact, stats) = solve(problem, Method::Auto);
        assert!(stats.converged, "{name}");
        for (k, method) in [Method::BppPcg, Method::Pgcg].into_iter().enumerate() {
            let (found, stats) = solve_with(problem, method, |solver| {
                solver.settings.tolerance = 1e-6;
                solver.settings.max_outer = 100;
            });
            if !stats.converged {
                continue;
            }
            converged[k] += 1;
            assert!(stats.residual_relative <= 1e-6, "{name}: {stats:?}");
            let speed = exact.v.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            for (a, b) in exact.v.iter().zip(&found.v) {
                // Residuals of 1e-9 m/s on bodies of 0.06 kg and more, through A⁻¹ at C = 1e-8.
                assert!((a - b).abs() <= 1e-4 * speed, "{name} {}: {a} and {b}", method.name());
            }
            // The same index set where it is unique: rows at a bound with a clear slack.
            let mut w = vec![0.0; problem.rows()];
            problem.slack(&exact.v, &exact.lambda, &mut w);
            for i in 0..w.len() {
                if exact.labels[i] != Label::Free && w[i].abs() > 1e-4 {
                    assert_eq!(exact.labels[i], found.labels[i], "{name} row {i}");
                }
            }
        }
    }
    println!("of {}: bpp-pcg {} and pgcg {} converged", problems.len(), converged[0], converged[1]);
    // PGCG lowers an energy at every step and never wanders; block pivoting does, with any linear solver.
    assert!(converged[1] == problems.len(), "pgcg converged on {} of {}", converged[1], problems.len());
}

#[test]
fn the_ranking_of_preconditioners_on_the_chain() {
    let mut random = Random::new(2022);
    // 100 links of 0.25 kg with 500 kg, as in 003 §6.1.4.
    let problem = problems::chain(&mut random, 100, 500.0, 1e-8, true);
    let (exact, _) = solve(&problem, Method::Auto);
    // Warm, as within a simulation: every row that reaches a bound costs an iteration whatever the
    // preconditioner, and from a cold start there are 150 of them (190 iterations against 3,236).
    let iterations = |kind: Kind| {
        let mut solver = RowSolver::new(Method::Pgcg);
        solver.settings.inner =
            InnerSettings { preconditioner: kind, tolerance: 1e-8, ..InnerSettings::default() };
        solver.settings.tolerance = 1e-6;
        // The index set only: with the impulses there would be nothing left to iterate on.
        let mut solution = Solution { lambda: Vec::new(), ..exact.clone() };
        let stats = solver.solve(&problem, &mut solution);
        println!("{kind:?}: {stats:?}");
        (stats.inner_iterations, stats.converged)
    };
    let (imaginary, arrived) = iterations(Kind::Imaginary);
    assert!(arrived);
    let (ict, _) = iterations(Kind::Ict { drop: 1e-5, keep: usize::MAX });
    let (jacobi, _) = iterations(Kind::Jacobi);
    // 003 Fig. 6.1: two orders of magnitude; at least fifty times is asked for.
    assert!(jacobi >= 50 * imaginary, "jacobi {jacobi}, imaginary {imaginary}, ict {ict}");
    assert!(jacobi >= 50 * ict, "jacobi {jacobi}, ict {ict}");
}

#[test]
fn every_preconditioner_leads_to_the_same_answer() {
    let mut random = Random::new(3);
    let problem = problems::heap(&mut random, 10, 3.0, 1e-6);
    let (exact, _) = solve(&problem, Method::Auto);
    for kind in [
        Kind::None,
        Kind::Jacobi,
        Kind::BlockJacobi,
        Kind::Ic0,
        Kind::Compensated,
        Kind::PartialShift,
        Kind::Imaginary,
        Kind::Ict { drop: 1e-3, keep: 20 },
    ] {
        for scaling in [Scaling::None, Scaling::Diagonal, Scaling::ColumnNorm] {
            let (found, stats) = solve_with(&problem, Method::Pgcg, |solver| {
                solver.settings.inner =
                    InnerSettings { preconditioner: kind, scaling, ..InnerSettings::default() };
            });
            assert!(stats.converged, "{kind:?} {scaling:?}: {stats:?}");
            for (a, b) in exact.v.iter().zip(&found.v) {
                // As above, at C = 1e-6.
                assert!((a - b).abs() <= 1e-5, "{kind:?} {scaling:?}");
            }
        }
    }
}

#[test]
fn softened_rows_are_never_hidden() {
    let mut softened = 0;
    for seed in 0..20 {
        let mut random = Random::new(40 + seed);
        let problem = problems::wall(&mut random, 3, 4, 4.0, 1e-8);
        for method in [Method::Bpp, Method::BppPcg, Method::Pgcg] {
            let (solution, stats) = solve_with(&problem, method, |solver| {
                solver.settings.softening = Some(Softening { limit: 2, shift: 1e-3 });
                solver.settings.max_pivots = 60;
                solver.settings.max_outer = 60;
            });
            softened += stats.softened_rows;
            assert_eq!(stats.softened_rows > 0, stats.softening > 0.0);
            assert!(stats.softening < 1.0);
            // The residual is that of the problem as it was given, recomputed here.
            let mut w = vec![0.0; problem.rows()];
            problem.slack(&solution.v, &solution.lambda, &mut w);
            let r = turnbuckle::solver::residual::natural(&solution.lambda, &w, &problem.lo, &problem.hi);
            // v and λ round like ε times impulses of some hundred over kilograms.
            assert!((r - stats.residual).abs() <= 1e-6 * r + 1e-9, "{r:e} and {stats:?}");
        }
    }
    assert!(softened > 0, "the walls do make friction rows pivot");
}
