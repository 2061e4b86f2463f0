//! The problems of the kernel benches and the pivots made on them.

use turnbuckle::solver::{Label, RowProblem, generate};

/// A named problem and what it is to reach.
pub struct Case {
    /// Name in reports.
    pub name: &'static str,
    /// The problem.
    pub problem: RowProblem,
    /// Times faster than the baseline, per pivot.
    pub target: f64,
}

/// The structures of the papers' scenes.
pub fn cases() -> Vec<Case> {
    let c = 1e-8;
    let case = |name, problem, target| Case { name, problem, target };
    vec![
        case("chain100", generate::chain(100, 500.0, c), 10.0),
        case("chain250", generate::chain(250, 500.0, c), 10.0),
        case("chain250-contacts", generate::chain_on_ground(250, c), 15.0),
        case("tower-2", generate::tower(80, 2, 2500.0, c), 40.0),
        case("tower-4", generate::tower(80, 4, 2500.0, c), 100.0),
        case("net-truck", generate::net(6, 50, 5000.0, c), 12.0),
        case("rocks300", generate::rocks(300, c), 30.0),
    ]
}

/// An index set: everything free, as pivoting starts and as the interior point always has it.
pub fn all_free(problem: &RowProblem) -> Vec<Label> {
    vec![Label::Free; problem.rows()]
}

/// An index set as late pivots meet it: two thirds of the bounded rows free.
pub fn mostly_free(problem: &RowProblem) -> Vec<Label> {
    let mut random = generate::Random::new(11);
    (0..problem.rows())
        .map(|row| {
            let bounded = problem.lo[row].is_finite() || problem.hi[row].is_finite();
            if bounded && random.below(3) == 0 { Label::Lower } else { Label::Free }
        })
        .collect()
}

/// λ of tight rows.
pub fn tight(problem: &RowProblem, labels: &[Label]) -> Vec<f64> {
    let at = |row: usize| if labels[row] == Label::Free { 0.0 } else { problem.lo[row] };
    (0..problem.rows()).map(at).collect()
}
