//! The constraint graph: indices in, indices out.

pub mod islands;
