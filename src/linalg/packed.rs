//! The lower triangle of a symmetric matrix, its columns one after another from the diagonal down.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_entries_are_those_of_the_full_matrix() {
        for n in [0usize, 1, 2, 5, 12] {
            let full = |row: usize, column: usize| (100 * row.max(column) + row.min(column)) as f64;
            let a: Vec<f64> = (0..n).flat_map(|c| (c..n).map(move |row| full(row, c))).collect();
            assert_eq!(a.len(), len(n));
            for (column, own) in columns(n, &a).enumerate() {
                assert_eq!(own.len(), n - column);
                for row in 0..n {
                    assert_eq!(a[at(n, row, column)], full(row, column));
                }
                assert_eq!(a[diagonal(n, column)..][..own.len()], *own);
            }
        }
    }
}
