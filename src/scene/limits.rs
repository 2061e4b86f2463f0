//! How large a scene may be, so that no file can exhaust the machine that reads it.

/// Limits of the loader. With the defaults, reading any file needs less than 1 GiB, whatever is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Values in one file.
    pub nodes: usize,
    /// Brackets inside brackets.
    pub nesting: usize,
    /// Files of one scene.
    pub files: usize,
    /// Parts inside parts.
    pub part_depth: usize,
    /// Bodies after all generators have run.
    pub bodies: usize,
    /// Joints after all generators have run.
    pub joints: usize,
    /// Items and turns of generators in all, also those that make nothing.
    pub work: usize,
    /// Corner points of all hulls, meshes and height fields together.
    pub points: usize,
    /// Bytes of all names together (patterns such as `"link_{$i}"` can grow).
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 4 << 20,
            nodes: 400_000,
            nesting: 64,
            files: 64,
            part_depth: 16,
            bodies: 250_000,
            joints: 250_000,
            work: 2_000_000,
            points: 1_000_000,
            name_bytes: 32 << 20,
        }
    }
}

impl Limits {
    /// Tight limits, for files from strangers and for tests: a few megabytes at most.
    pub fn tight() -> Limits {
        Limits {
            file_bytes: 64 << 10,
            nodes: 20_000,
            nesting: 32,
            files: 8,
            part_depth: 8,
            bodies: 1_000,
            joints: 1_000,
            work: 5_000,
            points: 5_000,
            name_bytes: 256 << 10,
        }
    }
}

/// Largest coordinate and measure (m): beyond it 64-bit numbers no longer resolve a micrometre.
pub const LARGEST_LENGTH: f64 = 1e7;
/// Largest magnitude of any other number; keeps products of a few of them finite.
pub const LARGEST_NUMBER: f64 = 1e30;
