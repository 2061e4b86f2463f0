//! What `run` and `render` share: writing recordings and pages, and saying where they are.

use super::Failure;
use std::path::Path;
use turnbuckle::replay::{Recording, ReplayError, page};

/// Writes the page; a path that does not end in `.html` gets the bare recording.
pub fn write(path: &Path, recordings: &[Recording]) -> Result<(), Failure> {
    make_folder(path)?;
    match recordings {
        [one] if !is_page(path) => one.write(path).map_err(failure),
        all => page::write_page(path, all).map_err(failure),
    }
}

/// Makes the folder of a file that is to be written.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    match path.parent().filter(|f| !f.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder)
            .map_err(|e| Failure::Usage(format!("cannot write {}: {e}", path.display()))),
        None => Ok(()),
    }
}

/// Is this the name of a page?
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"))
}

/// As a reason to end.
pub fn failure(e: ReplayError) -> Failure {
    Failure::Usage(e.to_string())
}

/// One line that says where the page is, for a person who wants to click on it.
pub fn say(path: &Path) {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let size = std::fs::metadata(&full).map_or(0, |m| m.len());
    println!("\n  watch it: file://{}  ({:.1} MB, any browser)", full.display(), size as f64 / 1e6);
}
