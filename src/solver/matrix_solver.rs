//! Solves a problem that comes as a matrix, by any method; this is what `turnbuckle solve` calls.

use super::auto::{Engine, Settings};
use super::cone::ConeMemory;
use super::cone::dense::DenseSystem;
use super::cone::system::ConeSystem;
use super::index_sets;
use super::matrix_system::{MatrixMemory, MatrixSystem};
use super::problem::{MatrixProblem, are_cones};
use super::system::PivotSystem;
use super::{Method, Solution, SolveStats, residual};
use crate::linalg::sparse_cholesky::SparseCholesky;

/// Why a matrix problem is not one of ours.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatrixError {
    /// Vectors and matrix disagree.
    #[error("{name} has {found} entries, but A has {rows} rows")]
    Length {
        /// Which vector.
        name: &'static str,
        /// Its length.
        found: usize,
        /// Rows of A.
        rows: usize,
    },
    /// Not a number where one is needed.
    #[error("{name} is not a number in row {row}")]
    NotANumber {
        /// Which vector or matrix.
        name: &'static str,
        /// Row, from 0.
        row: usize,
    },
    /// A finite number whose square is none.
    #[error(
        "{name} is {value:e} in row {row}: numbers are at most {LARGEST:e}; a row without a bound has `inf` or `-inf`"
    )]
    TooLarge {
        /// Which vector or matrix.
        name: &'static str,
        /// Row, from 0.
        row: usize,
        /// The number.
        value: f64,
    },
    /// lo > hi.
    #[error("row {row} has lo = {lo} above hi = {hi}: no impulse lies between")]
    Bounds {
        /// Row, from 0.
        row: usize,
        /// Lower bound.
        lo: f64,
        /// Upper bound.
        hi: f64,
    },
    /// Cones that overlap, lie outside, or have no μ.
    #[error(
        "cones must lie in order within the {rows} rows, three rows each, with a friction of zero or more"
    )]
    Cones {
        /// Rows of A.
        rows: usize,
    },
    /// A differs from its transpose.
    #[error(
        "A is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ by {difference:.1e} of \
         the largest; use its symmetric part (A + Aᵀ)/2 if the difference is round-off"
    )]
    NotSymmetric {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// Difference relative to the largest entry.
        difference: f64,
    },
    /// A has a negative pivot.
    #[error("A is not positive semidefinite (found in row {row}): the problem may have no solution or many")]
    NotPositive {
        /// Row, from 0, at which the factorization found out.
        row: usize,
    },
}

/// Relative asymmetry that counts as round-off.
const SYMMETRIC: f64 = 1e-9;

/// Sums of a few thousand products of two such numbers are still numbers: norms and residuals stay finite.
const LARGEST: f64 = 1e100;

/// Checks a problem and solves it by one method, from its `lambda0` where there is one.
pub fn solve_matrix(
    problem: &MatrixProblem,
    method: Method,
    settings: &Settings,
) -> Result<(Solution, SolveStats), MatrixError> {
    check(problem)?;
    if !problem.cones.is_empty() {
        return Ok(solve_cones(problem, method, settings));
    }
    let mut memory = MatrixMemory::default();
    let mut system = MatrixSystem::new(problem, &mut memory);
    let mut solution = Solution::default();
    if let Some(guess) = &problem.lambda0 {
        solution.lambda.clone_from(guess);
        solution.labels = index_sets::labels_of(guess, &problem.lo, &problem.hi);
    }
    index_sets::legalise(&mut solution.labels, &problem.lo, &problem.hi);
    let mut engine = Engine::default();
    let mut stats = if matches!(method, Method::BppPcg | Method::Pgcg) {
        engine.conjugate(method, &mut system, (&problem.a, None), &solution, settings)
    } else {
        engine.run(method, &mut system, &solution, settings)
    };
    solution.lambda = std::mem::take(&mut engine.best.lambda);
    solution.labels = std::mem::take(&mut engine.best.labels);
    stats.factorizations = system.factorizations();
    stats.analysed = true;
    let mut w = Vec::new();
    residual::judge(&mut system, &solution.lambda, &problem.hi, settings.tolerance, &mut w, &mut stats);
    Ok((solution, stats))
}

/// The same under Coulomb's law.
fn solve_cones(problem: &MatrixProblem, method: Method, settings: &Settings) -> (Solution, SolveStats) {
    let mut system = DenseSystem::new(problem);
    let mut memory = ConeMemory::default();
    memory.laws.take(&problem.lo, &problem.hi, &problem.cones);
    let labels = problem.lambda0.as_ref().map(|guess| {
        let mut labels = Vec::new();
        let mut w = vec![0.0; guess.len()];
        system.slack(guess, &mut w);
        memory.laws.labels(guess, &w, system.diagonal(), &mut labels);
        labels
    });
    let start = labels.as_deref().zip(problem.lambda0.as_deref());
    let mut stats = memory.solve(&mut system, method, start, settings);
    stats.analysed = true;
    let mut solution = Solution { lambda: memory.best.lambda.clone(), ..Solution::default() };
    let mut w = vec![0.0; solution.lambda.len()];
    system.slack(&solution.lambda, &mut w);
    memory.laws.judge((&solution.lambda, &w), &problem.b, system.diagonal(), settings.tolerance, &mut stats);
    memory.laws.labels(&solution.lambda, &w, system.diagonal(), &mut solution.labels);
    (solution, stats)
}

/// Is this a problem with a symmetric positive semidefinite A and bounds in order?
pub fn check(problem: &MatrixProblem) -> Result<(), MatrixError> {
    let rows = problem.a.rows();
    let columns = problem.a.cols();
    for (name, found) in [
        ("every row of A", columns),
        ("b", problem.b.len()),
        ("lo", problem.lo.len()),
        ("hi", problem.hi.len()),
        ("lambda0", problem.lambda0.as_ref().map_or(rows, Vec::len)),
    ] {
        if found != rows {
            return Err(MatrixError::Length { name, found, rows });
        }
    }
    for row in 0..rows {
        let (lo, hi) = (problem.lo[row], problem.hi[row]);
        if lo.is_nan() || hi.is_nan() || lo == f64::INFINITY || hi == f64::NEG_INFINITY {
            return Err(MatrixError::NotANumber { name: "a bound", row });
        }
        let guess = problem.lambda0.as_ref().map(|l| ("lambda0", l[row]));
        let bounds = [("lo", lo), ("hi", hi)].into_iter().filter(|(_, x)| x.is_finite());
        for (name, value) in bounds.chain([("b", problem.b[row])]).chain(guess) {
            check_number(name, row, value)?;
        }
        if lo > hi {
            return Err(MatrixError::Bounds { row, lo, hi });
        }
    }
    if !are_cones(&problem.cones, rows) {
        return Err(MatrixError::Cones { rows });
    }
    check_matrix(problem)
}

fn check_number(name: &'static str, row: usize, value: f64) -> Result<(), MatrixError> {
    match value.abs() {
        size if size <= LARGEST => Ok(()),
        size if size.is_finite() => Err(MatrixError::TooLarge { name, row, value }),
        _ => Err(MatrixError::NotANumber { name, row }),
    }
}

fn check_matrix(problem: &MatrixProblem) -> Result<(), MatrixError> {
    let a = &problem.a;
    let largest = a.data().iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (row, entries) in a.outer_iterator().enumerate() {
        for (column, &x) in entries.iter() {
            check_number("A", row, x)?;
            let mirrored = a.get(column, row).copied().unwrap_or(0.0);
            let difference = (x - mirrored).abs() / largest;
            if difference > SYMMETRIC {
                return Err(MatrixError::NotSymmetric { row, column, difference });
            }
        }
    }
    let mut factor = SparseCholesky::default();
    factor.analyse(a, &vec![true; a.rows()]);
    factor.factor(a, None);
    match factor.first_negative() {
        Some(row) => Err(MatrixError::NotPositive { row }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::RowKind;
    use sprs::TriMat;

    fn problem(entries: &[(usize, usize, f64)], b: &[f64], lo: f64, hi: f64) -> MatrixProblem {
        let n = b.len();
        let mut a = TriMat::new((n, n));
        for &(i, j, x) in entries {
            a.add_triplet(i, j, x);
        }
        MatrixProblem {
            a: a.to_csr(),
            b: b.to_vec(),
            lo: vec![lo; n],
            hi: vec![hi; n],
            kind: vec![RowKind::Joint; n],
            cones: Vec::new(),
            partition: None,
            lambda0: None,
        }
    }

    #[test]
    fn a_two_by_two_problem_worked_by_hand_is_solved_by_every_method() {
        // 2x + y + 1 = w₁, x + 2y − 4 = w₂ on [0, ∞): x = 0, y = 2, w = (3, 0).
        let entries = [(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 2.0)];
        let p = problem(&entries, &[1.0, -4.0], 0.0, f64::INFINITY);
        for method in Method::ALL {
            let (solution, stats) = solve_matrix(&p, method, &Settings::default()).unwrap();
            assert!(stats.converged, "{}", method.name());
            // PGS stops at a relative residual of 1e-9; the others are exact.
            assert!(solution.lambda[0].abs() < 1e-8 && (solution.lambda[1] - 2.0).abs() < 1e-8);
        }
    }

    #[test]
    fn a_rank_deficient_problem_with_solutions_is_solved() {
        // A = 1 1ᵀ: only x + y is determined, x + y = 3.
        let entries = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)];
        for (lo, hi) in [(f64::NEG_INFINITY, f64::INFINITY), (0.0, f64::INFINITY), (-10.0, 10.0)] {
            let p = problem(&entries, &[-3.0, -3.0], lo, hi);
            let (solution, stats) = solve_matrix(&p, Method::Auto, &Settings::default()).unwrap();
            assert!(stats.converged, "{stats:?}");
            // The residual is 1e-11 relative to ‖b‖ = 4.2.
            assert!((solution.lambda[0] + solution.lambda[1] - 3.0).abs() < 1e-10);
        }
    }

    #[test]
    fn a_problem_without_solution_is_not_called_converged() {
        // A = 0, b = −1 on [0, ∞): w = −1 for every λ.
        let p = problem(&[(0, 0, 0.0)], &[-1.0], 0.0, f64::INFINITY);
        let (_, stats) = solve_matrix(&p, Method::Auto, &Settings::default()).unwrap();
        assert!(!stats.converged && stats.residual > 0.1);
    }

    #[test]
    fn matrices_that_are_not_ours_are_refused_with_the_place() {
        let skew = problem(&[(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0)], &[0.0, 0.0], 0.0, 1.0);
        assert!(matches!(check(&skew), Err(MatrixError::NotSymmetric { row: 0, column: 1, .. })));
        let entries = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0)];
        let indefinite = problem(&entries, &[0.0, 0.0], 0.0, 1.0);
        assert!(matches!(check(&indefinite), Err(MatrixError::NotPositive { .. })));
        let crossed = problem(&[(0, 0, 1.0)], &[0.0], 1.0, -1.0);
        assert!(matches!(check(&crossed), Err(MatrixError::Bounds { row: 0, .. })));
        let nan = problem(&[(0, 0, 1.0)], &[f64::NAN], 0.0, 1.0);
        assert!(matches!(check(&nan), Err(MatrixError::NotANumber { name: "b", row: 0 })));
        for (b, lo, a, name) in [(1e300, 0.0, 1.0, "b"), (0.0, -1e300, 1.0, "lo"), (0.0, 0.0, 1e300, "A")] {
            let large = problem(&[(0, 0, a)], &[b], lo, 1.0);
            assert!(matches!(check(&large), Err(MatrixError::TooLarge { name: n, row: 0, .. }) if n == name));
        }
        let guessed = |guess: Vec<f64>| MatrixProblem {
            lambda0: Some(guess),
            ..problem(&[(0, 0, 1.0)], &[0.0], 0.0, 1.0)
        };
        assert!(matches!(
            check(&guessed(vec![f64::INFINITY])),
            Err(MatrixError::NotANumber { name: "lambda0", .. })
        ));
        assert!(matches!(check(&guessed(vec![1e300])), Err(MatrixError::TooLarge { name: "lambda0", .. })));
        assert!(matches!(check(&guessed(vec![])), Err(MatrixError::Length { name: "lambda0", .. })));
    }
}
