//! The lower triangle of a symmetric matrix, its columns one after another from the diagonal down.

use super::kernels::wide;

/// Numbers of a matrix of `n` rows.
pub fn len(n: usize) -> usize {
    n * (n + 1) / 2
}

/// Where the diagonal of a column is; the rest of the column follows.
#[inline(always)]
pub fn diagonal(n: usize, column: usize) -> usize {
    column * n - column * column.saturating_sub(1) / 2
}

/// Where an entry is, on either side of the diagonal.
#[inline(always)]
pub fn at(n: usize, row: usize, column: usize) -> usize {
    let (row, column) = if row < column { (column, row) } else { (row, column) };
    diagonal(n, column) + row - column
}

/// The columns from the diagonal down.
pub fn columns(n: usize, a: &[f64]) -> impl Iterator<Item = &[f64]> {
    let mut rest = a;
    (0..n).map(move |column| {
        let (own, behind) = rest.split_at(n - column);
        rest = behind;
        own
    })
}

/// y += A x.
pub fn add_product(a: &[f64], x: &[f64], y: &mut [f64]) {
    wide(
        #[inline(always)]
        || add_product_plainly(a, x, y),
    );
}

#[inline(always)]
fn add_product_plainly(a: &[f64], x: &[f64], y: &mut [f64]) {
    let n = x.len();
    let mut begin = 0;
    for column in 0..n {
        let own = &a[begin + 1..begin + n - column];
        let (xc, below, to) = (x[column], &x[column + 1..], &mut y[column..]);
        let (first, to) = to.split_at_mut(1);
        // Four sums: one alone would wait for every addition.
        let mut sums = [0.0; 4];
        let (fours, rest) = own.as_chunks::<4>();
        let ((x_fours, x_rest), (y_fours, y_rest)) = (below.as_chunks::<4>(), to.as_chunks_mut::<4>());
        for ((a, x), y) in fours.iter().zip(x_fours).zip(y_fours) {
            for k in 0..4 {
                y[k] += a[k] * xc;
                sums[k] += a[k] * x[k];
            }
        }
        for ((a, x), y) in rest.iter().zip(x_rest).zip(y_rest) {
            *y += a * xc;
            sums[0] += a * x;
        }
        first[0] += a[begin] * xc + ((sums[0] + sums[2]) + (sums[1] + sums[3]));
        begin += n - column;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_that_of_the_full_matrix() {
        for n in [0usize, 1, 2, 5, 12, 33] {
            let a: Vec<f64> = (0..len(n)).map(|k| (k as f64 * 0.7).sin()).collect();
            let x: Vec<f64> = (0..n).map(|k| 1.0 + k as f64).collect();
            let mut y = vec![0.5; n];
            add_product(&a, &x, &mut y);
            for (row, y) in y.iter().enumerate() {
                let full: f64 = (0..n).map(|column| a[at(n, row, column)] * x[column]).sum();
                // Round-off of n products of numbers up to n.
                assert!((y - 0.5 - full).abs() <= 1e-15 * (n * n * 8) as f64, "{n}: row {row}");
            }
            assert_eq!(columns(n, &a).map(<[f64]>::len).sum::<usize>(), len(n));
        }
    }
}
