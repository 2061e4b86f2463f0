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
mod runs;
pub mod schur;
mod separator;

use crate::graph::BodyGraph;
use crate::solver::RowProblem;

/// The graph of a problem's bodies: rows tie them, and weigh on them as `systems::partition` has it.
pub fn body_graph(problem: &RowProblem) -> BodyGraph {
    let mut graph = BodyGraph::default();
    graph.reset(problem.bodies());
    graph.work.fill(8);
    for block in &problem.blocks {
        let bodies = problem.bodies_of(block);
        for (k, &a) in bodies.iter().enumerate() {
            graph.work[a as usize] += if block.fold { 2 * block.rows } else { block.rows };
            bodies[..k].iter().for_each(|&b| graph.tie(a, b, block.rows));
        }
    }
    graph.finish();
    graph
}
