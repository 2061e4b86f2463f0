//! Reads the text files of the fclib collection and solves its contact problems.

// Each test uses its part.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use turnbuckle::linalg::sparse_cholesky::SparseCholesky;
use turnbuckle::solver::{Cone, MatrixProblem, Method, RowKind, Settings, solve_matrix};

/// The collection, from `TURNBUCKLE_DATA` or the first `shared/data` above the manifest; else a sentence.
pub fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("TURNBUCKLE_DATA").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|up| up.join("shared/data"));
    let found = named.into_iter().chain(above).map(|data| data.join("fclib")).find(|f| f.is_dir());
    if found.is_none() {
        println!("No fclib data beside the sources (set TURNBUCKLE_DATA): skipped.");
    }
    found
}

/// Files with one of the extensions, in order.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a readable folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)))
        .collect();
    found.sort();
    found
}

/// Entries (row, column, value).
type Triplets = Vec<(usize, usize, f64)>;

/// One file: header words, vectors, matrices.
#[derive(Default)]
pub struct File {
    words: BTreeMap<String, String>,
    vectors: BTreeMap<String, Vec<f64>>,
    matrices: BTreeMap<String, (usize, Triplets)>,
}

/// Reads a file of the collection.
pub fn read(path: &Path) -> File {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let mut file = File::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["matrix", name, rows, _, count] => {
                let entries = lines.by_ref().take(count.parse().unwrap()).map(|line| {
                    let mut w = line.split_whitespace();
                    let mut next = || w.next().unwrap();
                    (next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap())
                });
                file.matrices.insert(name.into(), (rows.parse().unwrap(), entries.collect()));
            }
            ["vector", name, count] => {
                let numbers = lines.by_ref().take(count.parse().unwrap());
                file.vectors.insert(name.into(), numbers.map(|x| x.trim().parse().unwrap()).collect());
            }
            [key, ..] => {
                file.words.insert(key.into(), words[1..].join(" "));
            }
            [] => {}
        }
    }
    file
}

impl File {
    /// A header word, or nothing.
    pub fn word(&self, key: &str) -> &str {
        self.words.get(key).map_or("", String::as_str)
    }

    /// 0 ≤ z ⟂ M z + q ≥ 0, or equations where `is_complementarity` is 0.
    pub fn lcp(&self) -> MatrixProblem {
        let (n, entries) = &self.matrices["M"];
        let mut a = sprs::TriMat::new((*n, *n));
        for &(i, j, x) in entries {
            a.add_triplet(i, j, x);
        }
        let complementary = self.vectors.get("is_complementarity");
        let lower = |i: usize| complementary.is_none_or(|c| c[i] != 0.0);
        MatrixProblem {
            a: a.to_csr(),
            b: self.vectors["q"].clone(),
            lo: (0..*n).map(|i| if lower(i) { 0.0 } else { f64::NEG_INFINITY }).collect(),
            hi: vec![f64::INFINITY; *n],
            kind: vec![RowKind::Joint; *n],
            cones: Vec::new(),
            partition: None,
            lambda0: None,
        }
    }

    /// u = W r + q with box friction bounds for given normal impulses; W made symmetric.
    fn contacts(&self, normal: &[f64]) -> MatrixProblem {
        let (n, entries) = &self.matrices["W"];
        let mut a = sprs::TriMat::new((*n, *n));
        for &(i, j, x) in entries {
            a.add_triplet(i, j, 0.5 * x);
            a.add_triplet(j, i, 0.5 * x);
        }
        let mu = &self.vectors["mu"];
        let bound = |i: usize| mu[i / 2] * normal[i / 2];
        MatrixProblem {
            a: a.to_csr(),
            b: self.vectors["q"].clone(),
            lo: (0..*n).map(|i| if i % 2 == 0 { 0.0 } else { -bound(i) }).collect(),
            hi: (0..*n).map(|i| if i % 2 == 0 { f64::INFINITY } else { bound(i) }).collect(),
            kind: (0..*n).map(|i| if i % 2 == 0 { RowKind::Normal } else { RowKind::Friction }).collect(),
            cones: Vec::new(),
            partition: None,
            lambda0: None,
        }
    }
}

/// Solves Coulomb friction in the plane by boxes whose bounds follow the normal impulses, and returns
/// the residual of the law, relative to max(|q|, |r|, |u|) as in the index of the collection.
pub fn solve_plane_contacts(file: &File) -> f64 {
    let contacts = file.vectors["mu"].len();
    let mut normal = vec![0.0; contacts];
    let mut step = vec![0.0; contacts];
    let mut guess = None;
    let mut last = f64::INFINITY;
    for sweep in 0..300 {
        let mut problem = file.contacts(&normal);
        problem.lambda0 = guess;
        let settings = Settings { target: 1e-13, ..Settings::default() };
        let (solution, stats) = solve_matrix(&problem, Method::Auto, &settings).expect("a contact problem");
        assert!(stats.converged, "{stats:?}");
        let r = solution.lambda;
        last = law_residual(file, &r);
        if last <= 1e-13 {
            break;
        }
        // Full steps may swing between two answers; half steps settle, geometrically, and every tenth
        // goes to where the geometric series ends.
        let size = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
        let new: Vec<f64> = (0..contacts).map(|c| 0.5 * (r[2 * c].max(0.0) - normal[c])).collect();
        let ratio = size(&new) / size(&step).max(1e-300);
        let reach = if sweep % 10 == 9 && ratio < 0.999 { 1.0 / (1.0 - ratio) } else { 1.0 };
        for c in 0..contacts {
            normal[c] = (normal[c] + reach * new[c]).max(0.0);
        }
        step = new;
        guess = Some(r);
    }
    last
}

/// ‖r − P_K(r − (u + μ|u_t| n))‖ / max(|q|, |r|, |u|), the measure of the collection, in the plane.
fn law_residual(file: &File, r: &[f64]) -> f64 {
    let (_, entries) = &file.matrices["W"];
    let q = &file.vectors["q"];
    let mut u = q.clone();
    for &(i, j, x) in entries {
        u[i] += x * r[j];
    }
    let norm = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
    let mut sum = 0.0;
    for (c, &mu) in file.vectors["mu"].iter().enumerate() {
        let x = [r[2 * c] - u[2 * c] - mu * u[2 * c + 1].abs(), r[2 * c + 1] - u[2 * c + 1]];
        let tangent = x[1].abs();
        let p = if tangent <= mu * x[0] {
            x
        } else if mu * tangent <= -x[0] {
            [0.0, 0.0]
        } else {
            let n = (x[0] + mu * tangent) / (1.0 + mu * mu);
            [n, mu * n * x[1].signum()]
        };
        sum += (r[2 * c] - p[0]).powi(2) + (r[2 * c + 1] - p[1]).powi(2);
    }
    sum.sqrt() / norm(q).max(norm(r)).max(norm(&u))
}

/// A contact problem with Coulomb's cones: W as it is, its symmetric part as the problem.
pub struct Contacts {
    /// W of u = W r + q, three rows a contact (the plane's third is apart from all others).
    pub w: Triplets,
    /// The problem with the symmetric part of W.
    pub problem: MatrixProblem,
    /// Rows a contact in the file.
    pub dim: usize,
    /// The best impulses known, as in the file.
    pub best: Vec<f64>,
}

impl File {
    /// The problem with its cones.
    pub fn cones(&self) -> Contacts {
        let (n, entries, q) = self.delassus();
        let dim: usize = self.word("dim").parse().expect("a dimension");
        let mu = &self.vectors["mu"];
        let place = |i: usize| i / dim * 3 + i % dim;
        let mut w: Triplets = entries.iter().map(|&(i, j, x)| (place(i), place(j), x)).collect();
        let mut b = vec![0.0; 3 * n / dim];
        q.iter().enumerate().for_each(|(i, q)| b[place(i)] = *q);
        if dim == 2 {
            let diagonal =
                |i: usize| entries.iter().filter(|e| e.0 == i && e.1 == i).map(|e| e.2).sum::<f64>();
            w.extend((0..n / 2).map(|c| (3 * c + 2, 3 * c + 2, diagonal(2 * c).max(f64::MIN_POSITIVE))));
        }
        let rows = b.len();
        let mut a = sprs::TriMat::new((rows, rows));
        for &(i, j, x) in &w {
            a.add_triplet(i, j, 0.5 * x);
            a.add_triplet(j, i, 0.5 * x);
        }
        let kinds = [RowKind::Normal, RowKind::Friction, RowKind::Friction];
        let problem = MatrixProblem {
            a: a.to_csr(),
            b,
            lo: vec![f64::NEG_INFINITY; rows],
            hi: vec![f64::INFINITY; rows],
            kind: (0..rows).map(|i| kinds[i % 3]).collect(),
            cones: mu.iter().enumerate().map(|(c, &mu)| Cone { row: 3 * c as u32, mu }).collect(),
            partition: None,
            lambda0: None,
        };
        Contacts { w, problem, dim, best: self.vectors["r_best"].clone() }
    }

    /// W and q: as they stand, or Hᵀ M⁻¹ H and Hᵀ M⁻¹ f + w.
    fn delassus(&self) -> (usize, Triplets, Vec<f64>) {
        if let Some((n, entries)) = self.matrices.get("W") {
            return (*n, entries.clone(), self.vectors["q"].clone());
        }
        let (size, mass) = &self.matrices["M"];
        let mut m = sprs::TriMat::new((*size, *size));
        mass.iter().for_each(|&(i, j, x)| m.add_triplet(i, j, x));
        let m: sprs::CsMat<f64> = m.to_csr();
        let mut factor = SparseCholesky::default();
        factor.analyse(&m, &vec![true; *size]);
        factor.factor(&m, None);
        let divide = |x: &[f64]| -> Vec<f64> {
            let mut y = x.to_vec();
            factor.clone().solve(&mut y);
            // One step of refinement: M of finite elements is ill conditioned.
            let mut r = x.to_vec();
            m.outer_iterator()
                .enumerate()
                .for_each(|(i, row)| row.iter().for_each(|(j, a)| r[i] -= a * y[j]));
            factor.clone().solve(&mut r);
            y.iter_mut().zip(r).for_each(|(y, r)| *y += r);
            y
        };
        let mut q = self.vectors["w"].clone();
        let n = q.len();
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        self.matrices["H"].1.iter().for_each(|&(i, j, x)| columns[j].push((i, x)));
        let free = divide(&self.vectors["f"]);
        let mut w = Triplets::new();
        for (j, column) in columns.iter().enumerate() {
            q[j] += column.iter().map(|&(i, x)| x * free[i]).sum::<f64>();
            let mut side = vec![0.0; *size];
            column.iter().for_each(|&(i, x)| side[i] += x);
            let answer = divide(&side);
            for (k, other) in columns.iter().enumerate() {
                let x: f64 = other.iter().map(|&(i, x)| x * answer[i]).sum();
                if x != 0.0 {
                    w.push((k, j, x));
                }
            }
        }
        (n, w, q)
    }
}

impl Contacts {
    /// Solves and, where W is not symmetric, solves again with what its skew part has done moved to b. Returns the impulses, what was told
    /// last (0 if W is symmetric: then it is told of W itself) and the work.
    pub fn solve(
        &self,
        method: Method,
        settings: &Settings,
    ) -> (Vec<f64>, f64, turnbuckle::solver::SolveStats) {
        let mut problem = self.problem.clone();
        let (mut best, mut smallest) = (Vec::new(), f64::INFINITY);
        let mut work = turnbuckle::solver::SolveStats::default();
        for round in 0..12 {
            let (solution, stats) = solve_matrix(&problem, method, settings).expect("a contact problem");
            work.factorizations += stats.factorizations;
            work.pivots += stats.pivots;
            work.ipm_iterations += stats.ipm_iterations;
            let r = solution.lambda;
            let (rel, scaled) = self.residuals(&r);
            if rel.max(scaled) < smallest {
                smallest = rel.max(scaled);
                best.clone_from(&r);
                (work.residual, work.residual_relative) = (stats.residual, stats.residual_relative);
            } else if round > 2 {
                break;
            }
            if smallest <= 1e-12 || !self.moves(&r, &mut problem) {
                break;
            }
            problem.lambda0 = Some(r);
        }
        (best, smallest, work)
    }

    /// b = q + (W − its symmetric part) r. Is there any such part?
    fn moves(&self, r: &[f64], problem: &mut MatrixProblem) -> bool {
        problem.b.clone_from(&self.problem.b);
        let mut skew = vec![0.0; r.len()];
        for &(i, j, x) in &self.w {
            skew[i] += 0.5 * x * r[j];
            skew[j] -= 0.5 * x * r[i];
        }
        let size = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
        problem.b.iter_mut().zip(&skew).for_each(|(b, s)| *b += s);
        size(&skew) > 1e-13 * size(&problem.b)
    }

    /// The two measures of `check.py`: relative, and scaled by ρ = |r_best|/|q|.
    pub fn residuals(&self, r: &[f64]) -> (f64, f64) {
        let q = &self.problem.b;
        let mut u = q.clone();
        for &(i, j, x) in &self.w {
            u[i] += x * r[j];
        }
        let size = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
        let map = |rho: f64| {
            let mut sum = 0.0;
            for cone in &self.problem.cones {
                let i = cone.row as usize;
                let t = u[i + 1].hypot(u[i + 2]);
                let x =
                    [r[i] - rho * (u[i] + cone.mu * t), r[i + 1] - rho * u[i + 1], r[i + 2] - rho * u[i + 2]];
                let n = x[1].hypot(x[2]);
                let p = if n <= cone.mu * x[0] {
                    x
                } else if cone.mu * n <= -x[0] {
                    [0.0; 3]
                } else {
                    let a = (x[0] + cone.mu * n) / (1.0 + cone.mu * cone.mu);
                    [a, cone.mu * a * x[1] / n, cone.mu * a * x[2] / n]
                };
                sum += (0..3).map(|k| (r[i + k] - p[k]).powi(2)).sum::<f64>();
            }
            sum.sqrt()
        };
        let yardstick = size(q).max(size(r)).max(size(&u));
        let rel = if yardstick > 2.3e-16 { map(1.0) / yardstick } else { map(1.0) };
        let (best, free) = (size(&self.best), size(q));
        let scaled = if best > 0.0 && free > 1e-13 { map(best / free) / best } else { rel };
        (rel, scaled)
    }

    /// Impulses as the file has them: `dim` rows a contact.
    pub fn as_in_file(&self, r: &[f64]) -> Vec<f64> {
        r.iter().enumerate().filter(|(i, _)| i % 3 < self.dim).map(|(_, r)| *r).collect()
    }
}
