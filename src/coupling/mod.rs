//! How partitions meet: exactly, through their responses at the interface (000 §4–5).
//!
//! [`cut`] says which rows and bodies a partition has and what lies between partitions. [`flat`] makes of the
//! partitions one linear system for the solvers that decide all rows together; it is what `auto` and
//! `schur-ipm` use. [`schur`] is the paper's loop over partitions of any kind, [`nested`] runs it on a problem of rigid
//! bodies, [`fbic`] is its baseline. [`cost`] decides whether cutting pays. Threads are not known here: whoever
//! calls brings an [`executor::Executor`].

// Matrix letters of the papers are capital; they stay so here.
#![allow(non_snake_case)]
// Loops over several arrays by one row number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

pub mod cost;
pub mod cut;
pub mod executor;
pub mod fbic;
pub mod flat;
pub mod interface;
mod member;
pub mod nested;
pub mod schur;
