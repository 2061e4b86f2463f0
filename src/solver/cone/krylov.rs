//! GMRES for the few unknowns that make a symmetric system Coulomb's: shifts of cones, impulses of contacts that slide.
//!
//! Source: Saad and Schultz 1986. Every product costs one solve with a factor that is at hand. The answers of these solves are kept: the
//! caller adds them up with the same weights, so that nothing is solved once more for the whole.

use crate::math::hypot;

/// Memory of a run.
#[derive(Clone, Debug, Default)]
pub struct Gmres {
    /// Orthonormal vectors, one after another.
    basis: Vec<Vec<f64>>,
    /// Columns of the Hessenberg matrix, turned into triangular form.
    columns: Vec<Vec<f64>>,
    turns: Vec<(f64, f64)>,
    right: Vec<f64>,
    weights: Vec<f64>,
}

/// How far a run goes.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Residual relative to that of zero.
    pub tolerance: f64,
    /// Most products.
    pub products: usize,
}

impl Gmres {
    /// Solves G x = g. `apply(k, v, out)` writes G v, its k-th product, for a unit vector v; x = Σ weight_k v_k, and the weights come back.
    pub fn solve(
        &mut self,
        g: &[f64],
        reach: Reach,
        mut apply: impl FnMut(usize, &[f64], &mut Vec<f64>),
    ) -> &[f64] {
        let size = norm(g);
        self.weights.clear();
        // Written so that what is not a number ends here.
        if !(size > 0.0 && size.is_finite()) {
            return &self.weights;
        }
        self.turns.clear();
        self.right.clear();
        self.right.push(size);
        let mut done = 0;
        self.begin(0, g, size);
        for k in 0..reach.products {
            if self.basis.len() < k + 2 {
                self.basis.push(Vec::new());
                self.columns.push(Vec::new());
            }
            let (known, rest) = self.basis.split_at_mut(k + 1);
            let next = &mut rest[0];
            apply(k, &known[k], next);
            let column = &mut self.columns[k];
            column.clear();
            column.resize(k + 2, 0.0);
            for _ in 0..2 {
                for (v, h) in known.iter().zip(column.iter_mut()) {
                    let part: f64 = v.iter().zip(next.iter()).map(|(v, n)| v * n).sum();
                    *h += part;
                    next.iter_mut().zip(v).for_each(|(n, v)| *n -= part * v);
                }
            }
            let length = norm(next);
            column[k + 1] = length;
            if !column.iter().all(|h| h.is_finite()) {
                break;
            }
            for (i, &(c, s)) in self.turns.iter().enumerate() {
                let (a, b) = (column[i], column[i + 1]);
                (column[i], column[i + 1]) = (c * a + s * b, c * b - s * a);
            }
            let radius = hypot(column[k], column[k + 1]);
            if radius == 0.0 {
                break;
            }
            let (c, s) = (column[k] / radius, column[k + 1] / radius);
            self.turns.push((c, s));
            column[k] = radius;
            let left = self.right[k];
            self.right[k] = c * left;
            self.right.push(-s * left);
            done = k + 1;
            if (s * left).abs() <= reach.tolerance * size || length <= 1e-14 * radius {
                break;
            }
            next.iter_mut().for_each(|n| *n /= length);
        }
        self.weights.resize(done, 0.0);
        for i in (0..done).rev() {
            let known: f64 = (i + 1..done).map(|k| self.columns[k][i] * self.weights[k]).sum();
            self.weights[i] = (self.right[i] - known) / self.columns[i][i];
        }
        &self.weights
    }

    fn begin(&mut self, k: usize, g: &[f64], size: f64) {
        if self.basis.len() <= k {
            self.basis.push(Vec::new());
        }
        self.basis[k].clear();
        self.basis[k].extend(g.iter().map(|g| g / size));
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsymmetric_system_is_solved_in_as_many_products_as_it_has_unknowns() {
        let n = 7;
        let entry = |i: usize, j: usize| if i == j { 2.0 } else { ((3 * i + 5 * j) as f64).sin() * 0.3 };
        let wanted: Vec<f64> = (0..n).map(|i| 1.0 - i as f64).collect();
        let times =
            |x: &[f64]| -> Vec<f64> { (0..n).map(|i| (0..n).map(|j| entry(i, j) * x[j]).sum()).collect() };
        let g = times(&wanted);
        let (mut gmres, mut kept) = (Gmres::default(), Vec::new());
        let reach = Reach { tolerance: 1e-15, products: n };
        let weights = gmres
            .solve(&g, reach, |_, v, out| {
                kept.push(v.to_vec());
                out.clone_from(&times(v));
            })
            .to_vec();
        for i in 0..n {
            let x: f64 = weights.iter().zip(&kept).map(|(a, v)| a * v[i]).sum();
            // Condition number below ten.
            assert!((x - wanted[i]).abs() < 1e-12);
        }
    }
}
