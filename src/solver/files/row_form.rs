//! The row form on disk: `M.mtx`, `J.mtx`, `p.txt`, `d.txt`, `C.txt` beside `lo.txt`, `hi.txt` and what else a folder has.
//!
//! A = J M⁻¹ Jᵀ + C and b = J M⁻¹ p + d follow from it; C is diagonal, one number a row. Velocity unknowns that M ties to one another
//! are a node, in the order of the file, or several nodes with couplings between them where there are more than six. `subsystem.txt`
//! has the number of the subsystem of every velocity unknown.

use super::{
    Count, FileError, RowFiles, line_error, number, optional, read_column, read_matrix, whole_number,
};
use crate::solver::{Coupling, RowBlock, RowProblem};
use sprs::CsMat;
use std::path::Path;

/// A problem in row form as a folder holds it.
#[derive(Clone, Debug, Default)]
pub struct RowForm {
    /// The problem.
    pub problem: RowProblem,
    /// Where each velocity unknown of the files is among the six numbers a node.
    pub place: Vec<usize>,
    /// Subsystem of each velocity unknown.
    pub subsystem: Option<Vec<i32>>,
    /// A starting guess.
    pub lambda0: Option<Vec<f64>>,
}

/// Reads the row form of a folder; nothing if there is no `J.mtx`.
pub fn read(folder: &Path) -> Result<Option<RowForm>, FileError> {
    let path = folder.join("J.mtx");
    if !path.exists() {
        return Ok(None);
    }
    let (j, _) = read_matrix(&path)?;
    let rows = Count { number: j.rows(), what: "rows", of: "J.mtx" };
    let unknowns = Count { number: j.cols(), what: "columns", of: "J.mtx" };
    let path = folder.join("M.mtx");
    let (m, at) = read_matrix(&path)?;
    if m.rows() != j.cols() || m.cols() != j.cols() {
        let what = format!("M is {} × {}, but J.mtx has {} columns", m.rows(), m.cols(), j.cols());
        return Err(line_error(&path, at, what));
    }
    let (m, j): (CsMat<f64>, CsMat<f64>) = (m.to_csr(), j.to_csr());
    if let Some((i, k)) = first_skew(&m) {
        return Err(line_error(&path, at, format!("M is not symmetric at ({}, {})", i + 1, k + 1)));
    }
    let p = read_column(&folder.join("p.txt"), unknowns, number)?;
    let d = read_column(&folder.join("d.txt"), rows, number)?;
    let compliance = read_column(&folder.join("C.txt"), rows, number)?;
    let RowFiles { lo, hi, kind, cones, lambda0 } = RowFiles::read(folder, rows)?;
    let mut problem = RowProblem { d, compliance, lo, hi, kind, cones, ..RowProblem::default() };
    let place = place_unknowns(&mut problem, &m, &p);
    place_rows(&mut problem, &j, &place);
    let subsystem = optional(&folder.join("subsystem.txt"), unknowns, whole_number)?;
    Ok(Some(RowForm { problem, place, subsystem, lambda0 }))
}

fn first_skew(m: &CsMat<f64>) -> Option<(usize, usize)> {
    let largest = m.data().iter().fold(0.0f64, |a, x| a.max(x.abs()));
    // 1e-9: round-off of matrices written with ten digits.
    let skew = |i: usize, k: usize, x: f64| (x - m.get(k, i).copied().unwrap_or(0.0)).abs() > 1e-9 * largest;
    m.iter().find(|&(x, (i, k))| skew(i, k, *x)).map(|(_, at)| at)
}

/// Nodes and couplings of M; where each unknown is.
fn place_unknowns(problem: &mut RowProblem, m: &CsMat<f64>, p: &[f64]) -> Vec<usize> {
    let n = p.len();
    let mut group: Vec<usize> = (0..n).collect();
    for (_, (i, k)) in m.iter().filter(|(x, (i, k))| i != k && **x != 0.0) {
        let (a, b) = (root(&mut group, i), root(&mut group, k));
        group[a.max(b)] = a.min(b);
    }
    let mut node_of = vec![(0usize, 0usize); n];
    // The node that each group fills at present.
    let mut open: Vec<Option<usize>> = vec![None; n];
    for i in 0..n {
        let own = root(&mut group, i);
        let node = match open[own] {
            Some(node) if problem.width[node] < 6 => node,
            _ => {
                problem.width.push(0);
                problem.width.len() - 1
            }
        };
        open[own] = Some(node);
        node_of[i] = (node, usize::from(problem.width[node]));
        problem.width[node] += 1;
    }
    problem.mass.resize(problem.width.len(), [0.0; 36]);
    problem.momentum.resize(problem.width.len(), [0.0; 6]);
    let mut blocks = std::collections::BTreeMap::new();
    for (&x, (i, k)) in m.iter() {
        let ((a, r), (b, c)) = (node_of[i], node_of[k]);
        if a == b {
            problem.mass[a][6 * r + c] = x;
        } else if a < b {
            blocks.entry((a, b)).or_insert([0.0; 36])[6 * r + c] = x;
        }
    }
    let couplings = blocks.into_iter().map(|((a, b), block)| Coupling { a: a as u32, b: b as u32, block });
    problem.couplings.extend(couplings);
    node_of.iter().zip(p).for_each(|(&(node, k), p)| problem.momentum[node][k] = *p);
    node_of.iter().map(|(node, k)| 6 * node + k).collect()
}

fn root(group: &mut [usize], mut i: usize) -> usize {
    while group[i] != i {
        group[i] = group[group[i]];
        i = group[i];
    }
    i
}

/// Blocks of rows: one a cone, one a row elsewhere.
fn place_rows(problem: &mut RowProblem, j: &CsMat<f64>, place: &[usize]) {
    let mut cones = problem.cones.iter().map(|cone| cone.row as usize).peekable();
    let mut row = 0;
    while row < j.rows() {
        let in_cone = cones.next_if_eq(&row).is_some();
        let rows = if in_cone { 3 } else { 1 };
        let own = |r: usize| j.outer_view(row + r).expect("a row of J");
        let mut bodies: Vec<u32> = (0..rows)
            .flat_map(|r| own(r).iter().map(|(k, _)| (place[k] / 6) as u32).collect::<Vec<_>>())
            .collect();
        bodies.sort_unstable();
        bodies.dedup();
        let entry = problem.jacobian.len();
        problem.jacobian.resize(entry + 6 * rows * bodies.len(), 0.0);
        for r in 0..rows {
            for (k, &x) in own(r).iter() {
                let body = bodies.partition_point(|&b| (b as usize) < place[k] / 6);
                problem.jacobian[entry + 6 * (r * bodies.len() + body) + place[k] % 6] = x;
            }
        }
        problem.blocks.push(RowBlock {
            row: row as u32,
            rows: rows as u32,
            body: problem.block_bodies.len() as u32,
            bodies: bodies.len() as u32,
            entry: entry as u32,
            fold: in_cone,
        });
        problem.block_bodies.extend(bodies);
        row += rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Method, RowSolver, Settings, Solution, files, solve_matrix};

    fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("turnbuckle-rows-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        folder
    }

    /// A block of 2 kg on a floor, tied by a row to a chain of eight unknowns that M couples.
    fn block_on_the_floor() -> Vec<(&'static str, &'static str)> {
        let head = "%%MatrixMarket matrix coordinate real";
        let mut m = format!("{head} symmetric\n11 11 18\n");
        (1..=11)
            .for_each(|i| m += &format!("{i} {i} {}\n", if i <= 3 { 2.0 } else { 4.0 + 0.1 * f64::from(i) }));
        (4..=10).for_each(|i| m += &format!("{} {i} -1.5\n", i + 1));
        let j = format!("{head} general\n4 11 5\n1 3 1\n2 1 1\n3 2 1\n4 1 1\n4 11 -1\n");
        vec![
            ("M.mtx", m.leak()),
            ("J.mtx", j.leak()),
            ("p.txt", "3\n4\n-10\n0\n0\n0\n0\n0\n0\n0\n1\n"),
            ("d.txt", "0\n0\n0\n0\n"),
            ("C.txt", "1e-9\n1e-9\n1e-9\n1e-9\n"),
            ("lo.txt", "0\n0\n0\n-inf\n"),
            ("hi.txt", "inf\n0\n0\ninf\n"),
            ("kind.txt", "normal\nfriction\nfriction\njoint\n"),
            ("cone.txt", "0 0.3\n"),
        ]
    }

    #[test]
    fn the_row_form_and_the_matrix_that_follows_have_the_same_answer() {
        let folder = folder("both", &block_on_the_floor());
        let form = read(&folder).unwrap().expect("a row form");
        assert_eq!((form.problem.bodies(), form.problem.couplings.len()), (5, 1));
        let matrix = files::read(&folder).unwrap();
        let (a, told) = solve_matrix(&matrix, Method::Auto, &Settings::default()).unwrap();
        let mut b = Solution::default();
        let stats = RowSolver::default().solve(&form.problem, &mut b);
        assert!(told.converged && stats.converged, "{told:?} {stats:?}");
        // Both residuals are below 1e-9 of impulses of ten.
        (0..4)
            .for_each(|i| assert!((a.lambda[i] - b.lambda[i]).abs() < 1e-7, "{:?} {:?}", a.lambda, b.lambda));
        assert!((b.lambda[1].hypot(b.lambda[2]) - 0.3 * b.lambda[0]).abs() < 1e-8, "it slides");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_of_the_row_form_name_the_file() {
        for (file, text, expected) in [
            ("p.txt", "1\n2\n", "p.txt: 2 entries, but J.mtx has 11 columns"),
            ("C.txt", "1\n2\nx\n4\n", "C.txt:3: expected a number"),
            ("M.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 0\n", "M.mtx:2: M is 2 × 2, but"),
        ] {
            let folder = folder("errors", &block_on_the_floor());
            std::fs::write(folder.join(file), text).unwrap();
            let error = read(&folder).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
