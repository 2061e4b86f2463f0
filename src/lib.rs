//! Turnbuckle: a physics stage for games and simulators that holds.

pub mod components;
pub mod constraint;
pub mod geometry;
pub mod linalg;
pub mod replay;
pub mod solver;
