//! Partitions are entities: one per group of bodies that an island was cut into.
//!
//! The engine spawns, fills and keeps them; they are there to be read. An entity whose members are empty waits in the
//! pool for the next cut. Islands that are solved as a whole have none.

use crate::solver::Method;
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

/// The solver that decides a partition's rows: its own in the coupling loop, the island's where all rows are decided together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSolver(pub Method);
