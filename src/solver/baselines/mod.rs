//! The solvers that the papers compare with, and what 003 builds on conjugate gradients. `auto` uses none of them.

pub mod bpp_pcg;
pub mod pcg;
pub mod pgcg;
pub mod pgs;
pub mod pgs_sm;
pub mod softening;
