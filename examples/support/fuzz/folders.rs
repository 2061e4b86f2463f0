//! Problem folders with changed files, for the solvers by name.

use super::{Fault, Random, Verdict, any_problem};
use turnbuckle::solver::{MatrixProblem, Method, Settings, files, solve_matrix};

/// The files of a folder.
pub struct FolderCase {
    files: Vec<(String, Vec<u8>)>,
    method: Method,
}

/// A folder of its own for this process, gone when dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let folder = std::env::temp_dir().join(format!("turnbuckle-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        if let Err(error) = std::fs::create_dir_all(&folder) {
            panic!("{}: {error}", folder.display());
        }
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl FolderCase {
    /// A random one.
    pub fn new(random: &mut Random) -> FolderCase {
        let problem = any_problem(random.bits(), 40).to_matrix();
        let method = random.pick(&Method::ALL);
        let scratch = Scratch::new();
        if let Err(error) = files::write(&scratch.0, &problem) {
            panic!("{error}");
        }
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for name in ["A.mtx", "b.txt", "lo.txt", "hi.txt", "kind.txt"] {
            files.push((name.into(), std::fs::read(scratch.0.join(name)).unwrap_or_default()));
        }
        if random.chance(0.3) {
            let parts: String =
                problem.b.iter().map(|_| format!("{}\n", random.below(4) as i32 - 1)).collect();
            files.push(("partition.txt".into(), parts.into_bytes()));
        }
        if random.chance(0.3) {
            let guess: String = problem.b.iter().map(|_| number(random) + "\n").collect();
            files.push(("lambda0.txt".into(), guess.into_bytes()));
        }
        for _ in 0..random.below(4) {
            let which = random.below(files.len());
            change(&mut files[which].1, random);
        }
        FolderCase { files, method }
    }

    /// Reads and solves it; what is told as converged is recomputed.
    pub fn run(self) -> Verdict {
        let scratch = Scratch::new();
        for (name, bytes) in &self.files {
            if let Err(error) = std::fs::write(scratch.0.join(name), bytes) {
                panic!("{name}: {error}");
            }
        }
        super::worker::alive();
        let problem = match files::read(&scratch.0) {
            Ok(problem) => problem,
            Err(error) => return Verdict::refused(error),
        };
        let (solution, stats) = match solve_matrix(&problem, self.method, &Settings::default()) {
            Ok(answer) => answer,
            Err(error) => return Verdict::refused(error),
        };
        if !solution.lambda.iter().all(|x| x.is_finite()) {
            return Verdict::fault(Fault::NotFinite, "an impulse is not finite");
        }
        for (name, x) in [("residual", stats.residual), ("relative residual", stats.residual_relative)] {
            if !x.is_finite() {
                return Verdict::fault(Fault::NullResidual, format!("{name} is {x}"));
            }
        }
        let largest = largest_error(&problem, &solution.lambda);
        if stats.converged && largest > 1.0 {
            let what = format!("told as converged, but a row is off by {largest:.1e} tolerances");
            return Verdict::fault(Fault::Untrue, what);
        }
        Verdict { unconverged: !stats.converged, ..Verdict::default() }
    }

    /// The folder's files.
    pub fn files(&self) -> (Vec<(String, Vec<u8>)>, String) {
        (self.files.clone(), format!("turnbuckle solve FOLDER --solver {}", self.method.name()))
    }
}

/// The largest natural residual of a row, in units of what the solver promises: 1e-9 of max(1, ‖b‖), and round-off of
/// the products that make the row up (1e-13 is some 500 units in the last place, for rows of 40 entries).
fn largest_error(problem: &MatrixProblem, lambda: &[f64]) -> f64 {
    let norm = problem.b.iter().map(|b| b * b).sum::<f64>().sqrt().max(1.0);
    let mut largest = 0.0f64;
    for (i, row) in problem.a.outer_iterator().enumerate() {
        let (mut w, mut size) = (problem.b[i], problem.b[i].abs());
        for (j, a) in row.iter() {
            w += a * lambda[j];
            size += (a * lambda[j]).abs();
        }
        let step = lambda[i] - (lambda[i] - w).clamp(problem.lo[i], problem.hi[i]);
        largest = largest.max(step.abs() / (1e-9 * norm + 1e-13 * (size + lambda[i].abs())));
    }
    largest
}

fn number(random: &mut Random) -> String {
    match random.below(8) {
        0 => random.pick(&["nan", "inf", "-inf", "1e300", "-1e300", "1e-300", "5e-324", "x", ""]).into(),
        1 => "0".into(),
        2 => format!("{:e}", random.power(-12.0, 12.0)),
        3 => format!("{:e}", -random.power(-12.0, 12.0)),
        _ => format!("{}", random.range(-2.0, 2.0)),
    }
}

/// One word or line of a file changed.
fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    if lines.is_empty() {
        return;
    }
    let k = random.below(lines.len());
    match random.below(6) {
        0 => drop(lines.remove(k)),
        1 => {
            let again = lines[k].clone();
            lines.push(again);
        }
        2 => {
            let other = random.below(lines.len());
            lines.swap(k, other);
        }
        _ => {
            let mut words: Vec<String> = lines[k].split_whitespace().map(String::from).collect();
            match words.last_mut() {
                Some(word) => *word = number(random),
                None => words.push(number(random)),
            }
            lines[k] = words.join(" ");
        }
    }
    *bytes = (lines.join("\n") + "\n").into_bytes();
}
