//! Solves every dumped problem below a folder by several methods, one row each:
//! `cargo run --release --example frames -- FOLDER auto,ipm,bpp,pgcg`.

use std::path::{Path, PathBuf};
use std::time::Instant;
use turnbuckle::solver::{Method, Settings, files, solve_matrix};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("Which folder? One written by `turnbuckle run SCENE --dump-mlcp FOLDER`.");
        std::process::exit(2);
    };
    let methods = arguments.next().unwrap_or_else(|| "auto".to_string());
    let mut found = Vec::new();
    collect(Path::new(&folder), &mut found);
    found.sort();
    for name in methods.split(',') {
        let Some(method) = Method::from_name(name) else {
            eprintln!("There is no solver called {name}.");
            std::process::exit(2);
        };
        frames(&found, method);
    }
}

/// Folders that hold a problem.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("A.mtx").exists() {
        found.push(folder.to_path_buf());
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), found);
        }
    }
}

fn frames(folders: &[PathBuf], method: Method) {
    let (mut solved, mut outer, mut most, mut inner, mut worst) = (0, 0u64, 0, 0u64, 0.0f64);
    let mut time = 0.0;
    for folder in folders {
        let problem = match files::read(folder) {
            Ok(problem) => problem,
            Err(e) => {
                eprintln!("{e}");
                continue;
            }
        };
        let start = Instant::now();
        match solve_matrix(&problem, method, &Settings::default()) {
            Ok((_, stats)) => {
                time += start.elapsed().as_secs_f64();
                let count = stats.pivots + stats.ipm_iterations;
                solved += u32::from(stats.converged);
                outer += u64::from(count);
                most = most.max(count);
                inner += stats.inner_iterations;
                worst = worst.max(stats.residual_relative);
                if std::env::var_os("FRAMES").is_some() {
                    let (rows, end) = (problem.b.len(), folder.display());
                    println!(
                        "{end}: {rows} rows, {} pivots, {} interior, {:.1e}",
                        stats.pivots, stats.ipm_iterations, stats.residual_relative
                    );
                }
            }
            Err(e) => eprintln!("{}: {e}", folder.display()),
        }
    }
    let n = folders.len().max(1) as f64;
    println!(
        "{:8} solved {solved} of {}, iterations {:.1} on average and {most} at most, {:.0} inner, \
         worst residual {worst:.1e}, {:.1} ms each",
        method.name(),
        folders.len(),
        outer as f64 / n,
        inner as f64 / n,
        1e3 * time / n
    );
}
