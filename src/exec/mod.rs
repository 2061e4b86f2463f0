//! How work is spread over threads.

pub mod spin_pool;
