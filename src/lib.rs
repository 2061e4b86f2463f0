//! Turnbuckle: a physics stage for games and simulators that holds.

pub mod linalg;
pub mod solver;
