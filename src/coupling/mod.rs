//! How partitions meet: exactly, through their responses at the interface (000 §4–5).
//!
//! [`cut`] says which rows and bodies a partition has and what lies between partitions. [`substructured`] makes of the
//! partitions one linear system for the solvers that decide all rows together; it is what `auto` and
//! `schur-ipm` use. [`schur`] is the paper's loop over partitions of any kind, [`coupling_loop`] runs it on a problem of rigid
//! bodies, [`fbic`] is its baseline. [`cost`] decides whether cutting pays. Threads are not known here: whoever
//! calls brings an [`executor::Executor`].

// Matrix letters of the papers are capital; they stay so here.
#![allow(non_snake_case)]
// Loops over several arrays by one row number read like the equations they come from.
#![allow(clippy::needless_range_loop)]

mod copy_map;
pub mod cost;
pub mod coupling_loop;
pub mod cut;
pub mod executor;
pub mod fbic;
pub mod interface;
mod member;
pub mod schur;
mod separator;
pub mod substructured;

use crate::graph::BodyGraph;
use crate::solver::condensed::{Marks, Outline};
use crate::solver::{RowBlock, RowProblem};

/// The graph of a problem's bodies: rows tie them, and weigh on them as `systems::partition` has it.
pub fn body_graph(problem: &RowProblem) -> BodyGraph {
    graph_of(problem, |_| true)
}

/// The graph that tells `auto` where to cut, and its rows. Where few rows have bounds it is that of the others alone: contacts come and go, and partitions
/// stay.
pub fn cutting_graph(problem: &RowProblem) -> (BodyGraph, usize) {
    let by_joints = cost::is_cut_by_joints(&Outline::of(problem, &mut Marks::default()));
    let bounded = |row: u32| problem.lo[row as usize].is_finite() || problem.hi[row as usize].is_finite();
    let ties = |block: &RowBlock| !by_joints || !(block.row..block.row + block.rows).any(bounded);
    let rows = problem.blocks.iter().filter(|block| ties(block)).map(|block| block.rows as usize).sum();
    let mut graph = graph_of(problem, ties);
    // A body copied across a cut costs six rows, however many points it touches at.
    graph.cap_weights(6);
    (graph, rows)
}

fn graph_of(problem: &RowProblem, ties: impl Fn(&RowBlock) -> bool) -> BodyGraph {
    let mut graph = BodyGraph::default();
    graph.reset(problem.bodies());
    graph.work.fill(8);
    for block in problem.blocks.iter().filter(|block| ties(block)) {
        let bodies = problem.bodies_of(block);
        for (k, &a) in bodies.iter().enumerate() {
            graph.work[a as usize] += if block.fold { 2 * block.rows } else { block.rows };
            bodies[..k].iter().for_each(|&b| graph.tie(a, b, block.rows));
        }
    }
    graph.finish();
    graph
}
