//! Files that are there whole or not at all: written under another name, then renamed.

use super::Failure;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file in the making. Dropped without [`Output::finish`], it leaves nothing behind.
pub struct Output {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

fn failure(path: &Path, e: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {e}", path.display()))
}

impl Output {
    /// Starts a file; also makes its folder.
    pub fn create(path: &Path) -> Result<Output, Failure> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| failure(folder, &e))?;
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&temporary).map_err(|e| failure(path, &e))?;
        Ok(Output { path: path.to_path_buf(), temporary, file: Some(BufWriter::new(file)) })
    }

    /// Appends text.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => file.write_all(text.as_bytes()).map_err(|e| failure(&self.path, &e)),
            None => Ok(()),
        }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        let written = self.file.take().map_or(Ok(()), |mut f| f.flush());
        written
            .and_then(|()| std::fs::rename(&self.temporary, &self.path))
            .map_err(|e| failure(&self.path, &e))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nothing to be done if it cannot be removed: it is a temporary file.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a whole text.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    let mut output = Output::create(path)?;
    output.write(text)?;
    output.finish()
}
