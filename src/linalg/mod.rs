//! Linear algebra at the bottom of the house: slices and indices only.
//!
//! A symmetric quasi-definite block matrix is factored once per index set, on a plan made once per topology:
//! [`graph`] (what touches what) → [`ordering`] (in which order) → [`symbolic`] (which fronts) →
//! [`multifrontal`] (the numbers), on the dense [`kernels`].

// Matrix letters of the papers are capital; they stay so inside linear algebra.
#![allow(non_snake_case)]
// Loops over several arrays by one row or lane number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

pub mod aligned;
pub mod dense;
pub mod dissection;
pub mod executor;
pub mod graph;
pub mod incomplete;
pub mod kernels;
pub mod multifrontal;
pub mod ordering;
pub mod outbox;
pub mod packed;
mod separator;
pub mod sparse_cholesky;
pub mod symbolic;

#[cfg(test)]
mod tests;

pub use aligned::Aligned;
pub use graph::{BlockGraph, NodeKind};
pub use kernels::{Isa, Kernels};
pub use multifrontal::Multifrontal;
pub use ordering::OrderingKind;
pub use symbolic::Symbolic;
