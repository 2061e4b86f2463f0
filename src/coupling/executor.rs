//! Who runs the partitions' work.

pub use crate::linalg::executor::{Executor, Serial};
