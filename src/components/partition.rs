//! Partitions are entities: one per group of bodies that an island was cut into.
//!
//! The engine spawns, fills and keeps them; they are there to be read. An entity whose members are empty waits in the
//! pool for the next cut. Islands that are solved as a whole have none.

use crate::solver::{Label, Method};
use hecs::Entity;

/// A partition: its number (the [`PartitionIndex`](crate::components::PartitionIndex) of its bodies) and its island.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Number over all islands.
    pub number: u32,
    /// Number of the island.
    pub island: u32,
}

/// The bodies of a partition, in creation order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionMembers(pub Vec<Entity>);

/// Rows of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionRows {
    /// Rows all of whose bodies are inside.
    pub internal: u32,
    /// Rows it shares with other partitions.
    pub interface: u32,
    /// Rows inside that were free after the last step; the others were at a bound.
    pub free: u32,
}

/// The index set of a partition's internal rows after the last step, in their order: which were free, which at a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionIndexSet(pub Vec<Label>);

/// The factor of a partition, kept while its constraint graph is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionFactor {
    /// Fronts of its elimination tree.
    pub fronts: u32,
    /// Floating-point operations of a factorization from scratch.
    pub operations: u64,
}

/// The solver that decides a partition's rows: its own in the coupling loop, the island's where all rows are decided together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSolver(pub Method);
