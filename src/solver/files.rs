//! An MLCP on disk: a folder with `A.mtx`, `b.txt`, `lo.txt`, `hi.txt` and optional companions.
//!
//! `A.mtx` is Matrix Market, coordinate real, symmetric (lower triangle) or general; the others hold one
//! entry a line: numbers (`inf` and `-inf` allowed in bounds), partition numbers (−1 = interface) in
//! `partition.txt`, `joint`, `normal` or `friction` in `kind.txt`, a starting guess in `lambda0.txt`.
//! `cone.txt` has one line a friction cone, `first_row mu`, in row order: rows first_row (from 0), +1 and +2 are a normal and two
//! tangents under Coulomb's law, and their bounds are not read. The row form of a problem is in [`row_form`].

pub mod row_form;

use super::problem::{Cone, MatrixProblem, RowKind};
use sprs::TriMat;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What may be wrong with a problem folder, and where.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused a file.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line cannot be read.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What was found and what was expected.
        what: String,
    },
    /// A file has the wrong number of entries.
    #[error("{path}: {found} entries, but {of} has {rows} {what}; every one needs a line")]
    Length {
        /// The file.
        path: PathBuf,
        /// Entries in it.
        found: usize,
        /// How many there should be.
        rows: usize,
        /// Of what.
        what: &'static str,
        /// The file that says so.
        of: &'static str,
    },
}

fn line_error(path: &Path, line: usize, what: impl Into<String>) -> FileError {
    FileError::Line { path: path.to_path_buf(), line, what: what.into() }
}

fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Io { path: path.to_path_buf(), source })
}

/// Reads a problem folder; where it holds the row form alone, A and b follow from that.
pub fn read(folder: &Path) -> Result<MatrixProblem, FileError> {
    let path = folder.join("A.mtx");
    if !path.exists()
        && let Some(form) = row_form::read(folder)?
    {
        let lambda0 = form.lambda0.clone();
        return Ok(MatrixProblem { lambda0, ..form.problem.to_matrix() });
    }
    let (a, place) = read_matrix(&path)?;
    if a.rows() != a.cols() {
        return Err(line_error(&path, place, format!("A must be square, not {} × {}", a.rows(), a.cols())));
    }
    let rows = Count { number: a.rows(), what: "rows", of: "A.mtx" };
    let b = read_column(&folder.join("b.txt"), rows, number)?;
    let RowFiles { lo, hi, kind, cones, lambda0 } = RowFiles::read(folder, rows)?;
    let partition = optional(&folder.join("partition.txt"), rows, whole_number)?;
    Ok(MatrixProblem { a: a.to_csr(), b, lo, hi, kind, cones, partition, lambda0 })
}

/// What both forms say of their rows.
struct RowFiles {
    lo: Vec<f64>,
    hi: Vec<f64>,
    kind: Vec<RowKind>,
    cones: Vec<Cone>,
    lambda0: Option<Vec<f64>>,
}

impl RowFiles {
    fn read(folder: &Path, rows: Count) -> Result<Self, FileError> {
        let lo = read_column(&folder.join("lo.txt"), rows, number)?;
        let hi = read_column(&folder.join("hi.txt"), rows, number)?;
        let kind = optional(&folder.join("kind.txt"), rows, kind_of)?;
        let kind = kind.unwrap_or_else(|| vec![RowKind::Joint; rows.number]);
        let cones = read_cones(&folder.join("cone.txt"), rows.number)?;
        Ok(RowFiles { lo, hi, kind, cones, lambda0: optional(&folder.join("lambda0.txt"), rows, number)? })
    }
}

fn read_cones(path: &Path, rows: usize) -> Result<Vec<Cone>, FileError> {
    let mut cones = Vec::new();
    if !path.exists() {
        return Ok(cones);
    }
    let mut end = 0;
    for (k, line) in read_text(path)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| line_error(path, k + 1, what);
        let mut words = line.split_whitespace();
        let row = words.next().and_then(|w| w.parse::<usize>().ok());
        let mu = words.next().and_then(|w| w.parse::<f64>().ok());
        let (Some(row), Some(mu), None) = (row, mu, words.next()) else {
            return Err(wrong(format!("expected `first_row mu`, found `{}`", line.trim())));
        };
        if !(mu >= 0.0 && mu.is_finite()) {
            return Err(wrong(format!("a friction of {mu}: expected a number of zero or more")));
        }
        if row + 3 > rows {
            return Err(wrong(format!("rows {row} to {} lie outside 0..{rows}", row + 2)));
        }
        if row < end {
            return Err(wrong(format!(
                "row {row} is in the cone before it, which ends with row {}",
                end - 1
            )));
        }
        end = row + 3;
        cones.push(Cone { row: row as u32, mu });
    }
    Ok(cones)
}

/// How many entries a file should have, and why.
#[derive(Clone, Copy)]
struct Count {
    number: usize,
    what: &'static str,
    of: &'static str,
}

fn optional<T>(
    path: &Path,
    count: Count,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Option<Vec<T>>, FileError> {
    if path.exists() { read_column(path, count, parse).map(Some) } else { Ok(None) }
}

fn read_column<T>(
    path: &Path,
    count: Count,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, FileError> {
    let rows = count.number;
    let text = read_text(path)?;
    let mut column = Vec::with_capacity(rows);
    for (k, line) in text.lines().enumerate() {
        let word = line.trim();
        if !word.is_empty() {
            column.push(parse(word).map_err(|what| line_error(path, k + 1, what))?);
        }
    }
    if column.len() != rows {
        let Count { what, of, .. } = count;
        return Err(FileError::Length { path: path.to_path_buf(), found: column.len(), rows, what, of });
    }
    Ok(column)
}

fn number(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(x) if !x.is_nan() => Ok(x),
        _ => Err(format!("expected a number, `inf` or `-inf`, found `{word}`")),
    }
}

fn whole_number(word: &str) -> Result<i32, String> {
    word.parse().map_err(|_| format!("expected a partition number or -1, found `{word}`"))
}

fn kind_of(word: &str) -> Result<RowKind, String> {
    match word {
        "joint" => Ok(RowKind::Joint),
        "normal" => Ok(RowKind::Normal),
        "friction" => Ok(RowKind::Friction),
        _ => Err(format!("expected `joint`, `normal` or `friction`, found `{word}`")),
    }
}

fn kind_name(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Joint => "joint",
        RowKind::Normal => "normal",
        RowKind::Friction => "friction",
    }
}

/// A matrix, and the line with its size.
fn read_matrix(path: &Path) -> Result<(TriMat<f64>, usize), FileError> {
    let text = read_text(path)?;
    let mut lines = text.lines().enumerate().map(|(k, line)| (k + 1, line.trim()));
    let (_, header) = lines.next().unwrap_or((1, ""));
    let header = header.to_ascii_lowercase();
    let symmetric = match header.split_whitespace().collect::<Vec<_>>()[..] {
        ["%%matrixmarket", "matrix", "coordinate", "real" | "integer", "symmetric"] => true,
        ["%%matrixmarket", "matrix", "coordinate", "real" | "integer", "general"] => false,
        _ => {
            let what = "expected the header `%%MatrixMarket matrix coordinate real symmetric`";
            return Err(line_error(path, 1, what));
        }
    };
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
    let (at, size) = lines.next().ok_or_else(|| line_error(path, 2, "the size line is missing"))?;
    let size: Vec<usize> = size.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let &[rows, columns, entries] = &size[..] else {
        return Err(line_error(path, at, "expected `rows columns entries`"));
    };
    if symmetric && rows != columns {
        let what = format!("a symmetric matrix must be square, not {rows} × {columns}");
        return Err(line_error(path, at, what));
    }
    let mut a = TriMat::new((rows, columns));
    let (mut found, mut last) = (0, at);
    for (at, line) in lines {
        let (i, j, x) = entry(line, rows, columns).map_err(|what| line_error(path, at, what))?;
        a.add_triplet(i, j, x);
        if symmetric && i != j {
            a.add_triplet(j, i, x);
        }
        found += 1;
        last = at;
    }
    if found != entries {
        let what = format!("the file ends after {found} of {entries} entries");
        return Err(line_error(path, last, what));
    }
    Ok((a, at))
}

fn entry(line: &str, rows: usize, columns: usize) -> Result<(usize, usize, f64), String> {
    let mut words = line.split_whitespace();
    let mut index = || words.next().and_then(|w| w.parse::<usize>().ok());
    let (i, j) = (index(), index());
    let x = words.next().and_then(|w| w.parse::<f64>().ok());
    let (Some(i), Some(j), Some(x), None) = (i, j, x, words.next()) else {
        return Err(format!("expected `row column value`, found `{line}`"));
    };
    if i == 0 || j == 0 || i > rows || j > columns {
        return Err(format!("entry ({i}, {j}) lies outside 1..{rows}, 1..{columns}"));
    }
    if !x.is_finite() {
        return Err(format!("entry ({i}, {j}) is {x}"));
    }
    Ok((i - 1, j - 1, x))
}

/// Writes a problem folder (created if missing); each file appears whole or not at all.
pub fn write(folder: &Path, problem: &MatrixProblem) -> Result<(), FileError> {
    std::fs::create_dir_all(folder).map_err(|source| FileError::Io { path: folder.to_path_buf(), source })?;
    write_a(folder, problem)?;
    write_column(&folder.join("b.txt"), problem.b.iter())?;
    write_column(&folder.join("lo.txt"), problem.lo.iter())?;
    write_column(&folder.join("hi.txt"), problem.hi.iter())?;
    write_column(&folder.join("kind.txt"), problem.kind.iter().map(|&k| kind_name(k)))?;
    if !problem.cones.is_empty() {
        let cones = problem.cones.iter().map(|cone| format!("{} {}", cone.row, cone.mu));
        write_column(&folder.join("cone.txt"), cones)?;
    }
    if let Some(partition) = &problem.partition {
        write_column(&folder.join("partition.txt"), partition.iter())?;
    }
    if let Some(lambda0) = &problem.lambda0 {
        write_column(&folder.join("lambda0.txt"), lambda0.iter())?;
    }
    Ok(())
}

fn write_a(folder: &Path, problem: &MatrixProblem) -> Result<(), FileError> {
    let mut text = String::new();
    let mut entries = 0;
    for (i, row) in problem.a.outer_iterator().enumerate() {
        for (j, x) in row.iter().filter(|&(j, _)| j <= i) {
            let _ = writeln!(text, "{} {} {x:e}", i + 1, j + 1);
            entries += 1;
        }
    }
    let n = problem.b.len();
    let head = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {entries}\n");
    write_whole(&folder.join("A.mtx"), &(head + &text))
}

/// Writes one entry a line; numbers in the fewest digits that read back to the same bits.
pub fn write_column<T: std::fmt::Display>(
    path: &Path,
    column: impl Iterator<Item = T>,
) -> Result<(), FileError> {
    let mut text = String::new();
    for x in column {
        let _ = writeln!(text, "{x}");
    }
    write_whole(path, &text)
}

/// Writes a file under a temporary name and renames it, so that it is never seen half.
pub fn write_whole(path: &Path, text: &str) -> Result<(), FileError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".part");
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|source| FileError::Io { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("turnbuckle-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn example() -> MatrixProblem {
        let mut a = TriMat::new((3, 3));
        for (i, j, x) in [(0, 0, 2.0), (1, 1, 3.0), (2, 2, 1.0 / 3.0), (1, 0, -0.1), (0, 1, -0.1)] {
            a.add_triplet(i, j, x);
        }
        MatrixProblem {
            a: a.to_csr(),
            b: vec![1.0, -2e-300, 0.1],
            lo: vec![0.0, f64::NEG_INFINITY, -1.0],
            hi: vec![f64::INFINITY, 5.0, 1.0],
            kind: vec![RowKind::Normal, RowKind::Joint, RowKind::Friction],
            cones: vec![Cone { row: 0, mu: 0.5 }],
            partition: Some(vec![0, -1, 3]),
            lambda0: Some(vec![0.0, 1.0, 2.0]),
        }
    }

    #[test]
    fn what_is_written_reads_back_to_the_same_bits() {
        let folder = scratch("round");
        let problem = example();
        write(&folder, &problem).unwrap();
        let back = read(&folder).unwrap();
        assert_eq!(back.a.to_dense(), problem.a.to_dense());
        assert_eq!((back.b, back.lo, back.hi), (problem.b, problem.lo, problem.hi));
        assert_eq!((back.kind, back.partition), (problem.kind, problem.partition));
        assert_eq!(back.cones, problem.cones);
        assert_eq!(back.lambda0, problem.lambda0);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        let folder = scratch("errors");
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
        for (file, text, expected) in [
            ("b.txt", "1\ntwo\n3\n".to_string(), "b.txt:2: expected a number"),
            ("hi.txt", "1\n2\n".to_string(), "hi.txt: 2 entries, but A.mtx has 3 rows; every one"),
            ("cone.txt", "0 0.5 1\n".to_string(), "cone.txt:1: expected `first_row mu`"),
            ("cone.txt", "\n1 0.5\n".to_string(), "cone.txt:2: rows 1 to 3 lie outside 0..3"),
            ("cone.txt", "0 -1\n".to_string(), "cone.txt:1: a friction of -1"),
            ("cone.txt", "0 1\n0 1\n".to_string(), "cone.txt:2: row 0 is in the cone before"),
            ("kind.txt", "joint\nnormal\nrolling\n".to_string(), "kind.txt:3: expected `joint`"),
            ("A.mtx", "hello\n".to_string(), "A.mtx:1: expected the header"),
            ("A.mtx", format!("{symmetric}3 4 1\n1 1 2\n"), "A.mtx:2: a symmetric matrix must be square"),
            ("A.mtx", format!("{symmetric}% c\n3 3 1\n4 1 2\n"), "A.mtx:4: entry (4, 1) lies outside"),
            ("A.mtx", format!("{symmetric}3 3 2\n1 1 2\n"), "A.mtx:3: the file ends after 1 of 2"),
            ("A.mtx", format!("{symmetric}3 3 1\n1 1 nan\n"), "A.mtx:3: entry (1, 1) is NaN"),
        ] {
            write(&folder, &example()).unwrap();
            std::fs::write(folder.join(file), text).unwrap();
            let error = read(&folder).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        std::fs::remove_file(folder.join("A.mtx")).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains("A.mtx"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
