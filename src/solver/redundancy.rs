//! How many rows of a problem say what others say already.

use super::RowProblem;

/// Number of two-sided rows that depend on the others: rows less the rank of J, by pivoted Cholesky of J M⁻¹ Jᵀ scaled to
/// unit diagonal. Dense: for a look at a mechanism, not for every step.
pub fn redundant_rows(problem: &RowProblem) -> usize {
    let two_sided: Vec<usize> = (0..problem.rows())
        .filter(|&i| problem.lo[i] == f64::NEG_INFINITY && problem.hi[i] == f64::INFINITY)
        .collect();
    let n = two_sided.len();
    let mut place = vec![usize::MAX; problem.rows()];
    for (k, &i) in two_sided.iter().enumerate() {
        place[i] = k;
    }
    let mut a = vec![0.0; n * n];
    let matrix = problem.to_matrix().a;
    for (i, row) in matrix.outer_iterator().enumerate().filter(|(i, _)| place[*i] != usize::MAX) {
        for (j, &x) in row.iter().filter(|(j, _)| place[*j] != usize::MAX) {
            a[place[i] * n + place[j]] = x - if i == j { problem.compliance[i] } else { 0.0 };
        }
    }
    n - rank(&mut a, n)
}

/// Rank of a symmetric positive semidefinite matrix, which is destroyed.
fn rank(a: &mut [f64], n: usize) -> usize {
    // Round-off of n products of numbers of order one; a true pivot of a mechanism is far above it.
    const SMALL: f64 = 1e-9;
    let scale: Vec<f64> = (0..n).map(|i| a[i * n + i].max(f64::MIN_POSITIVE).sqrt().recip()).collect();
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] *= scale[i] * scale[j];
        }
    }
    let mut left: Vec<usize> = (0..n).collect();
    for done in 0..n {
        let best =
            (0..left.len()).max_by(|&x, &y| a[left[x] * n + left[x]].total_cmp(&a[left[y] * n + left[y]]));
        let Some(best) = best else { return done };
        let p = left.swap_remove(best);
        let pivot = a[p * n + p];
        if pivot <= SMALL {
            return done;
        }
        for &i in &left {
            let f = a[i * n + p] / pivot;
            for &j in &left {
                a[i * n + j] -= f * a[p * n + j];
            }
        }
    }
    n
}
