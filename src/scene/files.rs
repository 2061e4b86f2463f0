//! Where scene files come from.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Something that has files: the disk, or a table for tests and programs that carry their scenes.
pub trait Files {
    /// The text of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// Why it cannot be read, as the end of a sentence.
    fn read(&self, path: &Path, limit: usize) -> Result<String, String>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, limit: usize) -> Result<String, String> {
        let file = std::fs::File::open(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_string(),
            std::io::ErrorKind::PermissionDenied => "it may not be read".to_string(),
            _ => e.to_string(),
        })?;
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() > limit {
            return Err(format!("it is larger than {limit} bytes"));
        }
        String::from_utf8(bytes)
            .map_err(|e| format!("it is not UTF-8 text (byte {})", e.utf8_error().valid_up_to()))
    }
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub BTreeMap<PathBuf, String>);

impl Files for Memory {
    fn read(&self, path: &Path, _limit: usize) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| "there is no such file".to_string())
    }
}
