//! The constraint graph: indices in, indices out.
//!
//! [`islands`] finds what is connected; the partitioners cut an island into groups of bodies:
//! [`semantic`] as the user says, [`min_degree`] as the paper does, [`bisection`] by thin cuts; [`pins`] are the user's last word.

pub mod bisection;
pub mod bodies;
pub mod islands;
pub mod min_degree;
pub mod pins;
pub mod semantic;

pub use bodies::{BodyGraph, Grouping};
