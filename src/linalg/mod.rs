//! Linear algebra at the bottom of the house: slices and indices only.

// Matrix letters of the papers are capital; they stay so inside linear algebra.
#![allow(non_snake_case)]

pub mod sparse_cholesky;
