//! Preconditioners against worked examples, references and many random matrices.

use super::*;
use sprs::TriMat;

/// The same numbers on every machine (xorshift64*).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn matrix(rows: &[&[f64]]) -> CsMat<f64> {
    let mut t = TriMat::new((rows.len(), rows.len()));
    for (i, row) in rows.iter().enumerate() {
        for (j, &x) in row.iter().enumerate() {
            if x != 0.0 {
                t.add_triplet(i, j, x);
            }
        }
    }
    t.to_csr()
}

/// G Gᵀ + c I with a sparse G: positive definite, with zeros for IC(0) to trip over.
fn random_spd(random: &mut Random, n: usize) -> CsMat<f64> {
    let g: Vec<Vec<f64>> = (0..n)
        .map(|_| (0..n).map(|_| if random.unit() < 0.3 { random.unit() - 0.5 } else { 0.0 }).collect())
        .collect();
    let c = 10f64.powf(-6.0 * random.unit());
    let mut t = TriMat::new((n, n));
    for i in 0..n {
        for j in 0..n {
            let a = (0..n).map(|k| g[i][k] * g[j][k]).sum::<f64>() + if i == j { c } else { 0.0 };
            if a != 0.0 {
                t.add_triplet(i, j, a);
            }
        }
    }
    t.to_csr()
}

#[test]
fn an_imaginary_column_worked_by_hand() {
    // Like the example of 003 Fig. 4.1: the pivot of column 2 becomes 5 − 9 = −4, so L̂₂₂ = 2 stands for
    // 2i, and L̂₃₂ = η (5 − 3·1)/2 = −1 for −i; the last pivot is 5 − 1 − η·1 = 5.
    let a = matrix(&[&[1.0, 3.0, 1.0], &[3.0, 5.0, 5.0], &[1.0, 5.0, 5.0]]);
    let mut p = Preconditioner::new(Kind::Imaginary, Scaling::None);
    p.analyse(&a);
    let report = p.factor(&a, &[true; 3], None);
    let (entries, eta) = p.ic0.parts();
    assert_eq!(eta, [1.0, -1.0, 1.0]);
    assert_eq!(report.negative, 1);
    let expected = [(0, 0, 1.0), (1, 0, 3.0), (1, 1, 2.0), (2, 0, 1.0), (2, 1, -1.0), (2, 2, 5f64.sqrt())];
    for (found, expected) in entries.iter().zip(expected) {
        assert_eq!((found.0, found.1), (expected.0, expected.1));
        // A handful of operations on numbers of size one.
        assert!((found.2 - expected.2).abs() < 1e-15);
    }
    // P = L̂ L̂ᵀ, so P⁻¹ P e = e.
    let l = |i: usize, j: usize| entries.iter().find(|e| (e.0, e.1) == (i, j)).map_or(0.0, |e| e.2);
    for c in 0..3 {
        let r: Vec<f64> = (0..3).map(|i| (0..3).map(|k| l(i, k) * l(c, k)).sum()).collect();
        let mut z = vec![0.0; 3];
        p.apply(&r, &mut z);
        for i in 0..3 {
            // Condition number of P about 1e2.
            assert!((z[i] - f64::from(u8::from(i == c))).abs() < 1e-13);
        }
    }
}

#[test]
fn ic0_of_an_m_matrix_is_the_textbook_one() {
    // The 5-point lattice, 3×3. Reference: IC(0) column by column as in 003 Algorithm 4, dense.
    let n = 9;
    let mut dense = vec![vec![0.0; n]; n];
    for i in 0..n {
        dense[i][i] = 4.0;
        if i % 3 != 2 {
            (dense[i][i + 1], dense[i + 1][i]) = (-1.0, -1.0);
        }
        if i + 3 < n {
            (dense[i][i + 3], dense[i + 3][i]) = (-1.0, -1.0);
        }
    }
    let rows: Vec<&[f64]> = dense.iter().map(Vec::as_slice).collect();
    let a = matrix(&rows);
    let mut l = dense.clone();
    for i in 0..n {
        l[i][i] = l[i][i].sqrt();
        for j in i + 1..n {
            if l[j][i] != 0.0 {
                l[j][i] /= l[i][i];
            }
        }
        for j in i + 1..n {
            for k in j..n {
                if dense[k][j] != 0.0 {
                    l[k][j] -= l[k][i] * l[j][i];
                }
            }
        }
    }
    for kind in [Kind::Ic0, Kind::Compensated, Kind::PartialShift, Kind::Imaginary] {
        let mut p = Preconditioner::new(kind, Scaling::None);
        p.analyse(&a);
        let report = p.factor(&a, &[true; 9], None);
        assert_eq!((report.negative, report.restarts), (0, 0), "M-matrices never break down");
        for (i, j, x) in p.ic0.parts().0 {
            // Nine columns of numbers of size one.
            assert!((x - l[i][j]).abs() < 1e-14, "{kind:?} ({i}, {j})");
        }
    }
}

#[test]
fn ict_without_dropping_is_the_complete_factor() {
    let mut random = Random(99);
    for _ in 0..50 {
        let a = random_spd(&mut random, 20);
        let mut p = Preconditioner::new(Kind::Ict { drop: 0.0, keep: usize::MAX }, Scaling::Diagonal);
        p.analyse(&a);
        let report = p.factor(&a, &[true; 20], None);
        assert_eq!(report.restarts, 0);
        let x: Vec<f64> = (0..20).map(|i| (i as f64).cos()).collect();
        let mut r = vec![0.0; 20];
        for (i, row) in a.outer_iterator().enumerate() {
            r[i] = row.iter().map(|(j, &v)| v * x[j]).sum();
        }
        let mut z = vec![0.0; 20];
        p.apply(&r, &mut z);
        for i in 0..20 {
            // A complete factor solves: ε times condition numbers up to 1e7.
            assert!((z[i] - x[i]).abs() < 1e-8);
        }
    }
}

#[test]
fn ict_keeps_no_more_than_asked() {
    let mut random = Random(7);
    let a = random_spd(&mut random, 40);
    for keep in [0, 3, 10] {
        let mut p = Preconditioner::new(Kind::Ict { drop: 1e-3, keep }, Scaling::Diagonal);
        p.analyse(&a);
        p.factor(&a, &[true; 40], None);
        assert!(p.ict.longest_column() <= keep);
    }
}

/// |xᵀ P⁻¹ y − yᵀ P⁻¹ x| relative to √(xᵀ P⁻¹ x · yᵀ P⁻¹ y); both forms must be positive.
fn asymmetry(p: &mut Preconditioner, random: &mut Random, n: usize) -> f64 {
    let x: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
    let y: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
    let (mut px, mut py) = (vec![0.0; n], vec![0.0; n]);
    p.apply(&x, &mut px);
    p.apply(&y, &mut py);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (xx, yy) = (dot(&x, &px), dot(&y, &py));
    assert!(xx >= 0.0 && yy >= 0.0, "P is positive definite");
    (dot(&x, &py) - dot(&y, &px)).abs() / (xx * yy).sqrt().max(f64::MIN_POSITIVE)
}

#[test]
fn imaginary_columns_never_break_down_and_stay_symmetric() {
    let mut random = Random(2022);
    let mut imaginary = 0;
    for case in 0..100_000 {
        let n = 2 + case % 9;
        let a = random_spd(&mut random, n);
        let free: Vec<bool> = (0..n).map(|_| case % 3 == 0 || random.unit() < 0.8).collect();
        let mut p = Preconditioner::new(Kind::Imaginary, Scaling::Diagonal);
        p.analyse(&a);
        let report = p.factor(&a, &free, None);
        imaginary += report.negative;
        assert_eq!(report.restarts, 0);
        // The two orders of summation differ by round-off of numbers of the size of the forms.
        let off = asymmetry(&mut p, &mut random, n);
        assert!(off <= 1e-12, "case {case}: {off:e}");
    }
    assert!(imaginary > 1000, "the matrices do provoke negative pivots: {imaginary}");
}

#[test]
fn every_kind_is_symmetric_and_leaves_tight_rows_alone() {
    let mut random = Random(5);
    for kind in [
        Kind::None,
        Kind::Jacobi,
        Kind::BlockJacobi,
        Kind::Ic0,
        Kind::Compensated,
        Kind::PartialShift,
        Kind::Imaginary,
        Kind::Ict { drop: 1e-2, keep: 10 },
    ] {
        for scaling in [Scaling::None, Scaling::Diagonal, Scaling::ColumnNorm] {
            for case in 0..200 {
                let n = 3 + case % 12;
                let a = random_spd(&mut random, n);
                let free: Vec<bool> = (0..n).map(|i| (i + case) % 4 != 0).collect();
                let mut p = Preconditioner::new(kind, scaling);
                p.analyse(&a);
                p.factor(&a, &free, None);
                // As above.
                assert!(asymmetry(&mut p, &mut random, n) <= 1e-12, "{kind:?} {scaling:?}");
                let mut z = vec![1.0; n];
                p.apply(&vec![1.0; n], &mut z);
                assert!((0..n).all(|i| free[i] || z[i] == 0.0));
            }
        }
    }
}
