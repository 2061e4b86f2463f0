//! Reads the text files of the fclib collection and solves its plane contact problems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use turnbuckle::solver::{MatrixProblem, Method, RowKind, Settings, solve_matrix};

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
