//! S_Γ where it is sparse: the interface as one more elimination tree.
//!
//! A partition ties only the seams that it touches itself. Cut into many parts, a bridge has a chain of seams and a pile a
//! thin graph of them; a dense factor would spend m³/3 operations on zeros, all of them on the critical path. So seams are
//! nodes, every partition a clique of those it touches, and S_Γ is factored by the same ordering and the same fronts as
//! the partitions themselves: the separators of a nested dissection, one level up.

use super::cut::Part;
use super::member::Member;
use crate::linalg::kernels::{Numbers, Varying};
use crate::linalg::multifrontal::{Assemble, FrontMut};
use crate::linalg::ordering::MinDegree;
use crate::linalg::packed;
use crate::linalg::symbolic::Layout;
use crate::linalg::{BlockGraph, Kernels, Multifrontal, NodeKind, OrderingKind, Symbolic, dissection};

/// Rows below which a dense factor is as fast as any.
const FEW: usize = 96;

/// Share of the dense operations up to which smaller fronts pay for themselves.
const SPARSE: f64 = 0.5;

/// A seam: rows between partitions that stand together.
#[derive(Clone, Copy, Debug)]
struct Node {
    row: u32,
    rows: u32,
    /// Place of its first row among the local vectors.
    at: u32,
}

/// What a partition adds to a front: the response of one seam to another.
#[derive(Clone, Copy, Debug)]
struct Entry {
    member: u32,
    /// First rows in the partition's response, and their numbers.
    down: (u32, u32),
    across: (u32, u32),
    /// Local rows in the front.
    to: (u32, u32),
}

/// The tree of an interface and its factor.
#[derive(Clone, Debug, Default)]
pub(super) struct Separator {
    factor: Multifrontal,
    nodes: Vec<Node>,
    /// Per front the nodes it eliminates and what is added to it: where its entries begin in `entries`.
    pivots: Vec<Vec<u32>>,
    begin: Vec<u32>,
    entries: Vec<Entry>,
    x: Vec<f64>,
}

impl Separator {
    /// The tree of the seams of these partitions; none where a dense factor of `m` rows is as good.
    pub(super) fn plan(parts: &[Part], m: usize, kernels: Kernels) -> Option<Self> {
        if m < FEW {
            return None;
        }
        let mut nodes: Vec<Node> =
            parts.iter().flat_map(Part::seams).map(|(row, rows, _)| Node { row, rows, at: 0 }).collect();
        nodes.sort_unstable_by_key(|node| node.row);
        nodes.dedup_by_key(|node| node.row);
        let number = |row: u32| nodes.binary_search_by_key(&row, |node| node.row).ok().map(|n| n as u32);
        let mut graph = BlockGraph::default();
        for node in &nodes {
            graph.node(node.rows, NodeKind::Body, true);
        }
        let own: Vec<Vec<(u32, u32, u32)>> = parts
            .iter()
            .map(|part| {
                part.seams().filter_map(|(row, rows, at)| number(row).map(|n| (n, at, rows))).collect()
            })
            .collect();
        for seams in &own {
            for (k, &(a, ..)) in seams.iter().enumerate() {
                seams[..k].iter().for_each(|&(b, ..)| graph.edge(a, b));
            }
        }
        graph.finish();
        let order = dissection::order(&graph, OrderingKind::MinDegree, &mut MinDegree::default());
        let symbolic = Symbolic::build(&graph, &order, Layout::Sequence);
        let dense = (m * m * m) as f64 / 3.0;
        if symbolic.flops() as f64 > SPARSE * dense {
            return None;
        }
        for (n, node) in nodes.iter_mut().enumerate() {
            let front = &symbolic.fronts[symbolic.node_front[n] as usize];
            node.at = front.local as u32 + symbolic.node_local[n];
        }
        let mut separator = Self { nodes, ..Self::default() };
        separator.list(&own, &symbolic);
        separator.x.resize(symbolic.locals, 0.0);
        separator.factor = Multifrontal::new(kernels);
        let varying = Varying::none(&symbolic);
        separator.factor.plan(symbolic, varying);
        Some(separator)
    }

    /// What every partition adds to which front, in the order of the partitions.
    fn list(&mut self, own: &[Vec<(u32, u32, u32)>], symbolic: &Symbolic) {
        let fronts = symbolic.fronts.len();
        let mut entries: Vec<(u32, Entry)> = Vec::new();
        for (member, seams) in own.iter().enumerate() {
            for (k, &a) in seams.iter().enumerate() {
                for &b in &seams[..=k] {
                    let (first, last) = if symbolic.before(a.0, b.0) { (a, b) } else { (b, a) };
                    let front = symbolic.node_front[first.0 as usize];
                    let local = |n| symbolic.local_of(front, n).expect("neighbours meet in a front");
                    let to = (local(last.0), local(first.0));
                    let (down, across) = ((last.1, last.2), (first.1, first.2));
                    entries.push((front, Entry { member: member as u32, down, across, to }));
                }
            }
        }
        entries.sort_by_key(|&(front, _)| front);
        self.begin = (0..=fronts as u32).map(|f| entries.partition_point(|e| e.0 < f) as u32).collect();
        self.entries = entries.into_iter().map(|(_, entry)| entry).collect();
        self.pivots = symbolic.fronts.iter().map(|f| symbolic.pivot_nodes(f).to_vec()).collect();
    }

    /// Operations of a factorization.
    pub(super) fn flops(&self) -> u64 {
        self.factor.symbolic.flops()
    }

    /// Factors Σ Sᵢ + (C+D)_Γ of the rows whose C + D is finite.
    pub(super) fn factor(&mut self, members: &[Member], regular: &[f64]) {
        let Self { factor, nodes, pivots, begin, entries, .. } = self;
        factor.touch_all();
        let seams = Seams { members, regular, nodes, pivots, begin, entries };
        factor.factor(&seams, Numbers::default());
    }

    /// Solves in place; rows that take no part come out as zero.
    pub(super) fn solve(&mut self, step: &mut [f64], regular: &[f64]) {
        self.x.fill(0.0);
        for node in &self.nodes {
            for r in 0..node.rows as usize {
                let row = node.row as usize + r;
                if regular[row].is_finite() {
                    self.x[node.at as usize + r] = step[row];
                }
            }
        }
        self.factor.solve(&mut self.x);
        for node in &self.nodes {
            for r in 0..node.rows as usize {
                let row = node.row as usize + r;
                step[row] = if regular[row].is_finite() { self.x[node.at as usize + r] } else { 0.0 };
            }
        }
    }
}

/// Everything the fronts of an interface are assembled from.
struct Seams<'a> {
    members: &'a [Member],
    regular: &'a [f64],
    nodes: &'a [Node],
    pivots: &'a [Vec<u32>],
    begin: &'a [u32],
    entries: &'a [Entry],
}

impl Assemble for Seams<'_> {
    fn assemble(&self, front: usize, into: &mut FrontMut<'_>) {
        let mut local = 0;
        for &node in &self.pivots[front] {
            let node = &self.nodes[node as usize];
            for r in 0..node.rows as usize {
                let c = self.regular[node.row as usize + r];
                let (sign, pivot) = if c.is_finite() { (1.0, c) } else { (0.0, 1.0) };
                into.sign[local] = sign;
                into.block(local, local).0[0] = pivot;
                local += 1;
            }
        }
        for entry in &self.entries[self.begin[front] as usize..self.begin[front + 1] as usize] {
            let member = &self.members[entry.member as usize];
            let width = member.part.interface.len();
            let (block, ld) = into.block(entry.to.0 as usize, entry.to.1 as usize);
            let schur = member.posted.schur.read();
            for column in 0..entry.across.1 as usize {
                for row in 0..entry.down.1 as usize {
                    let (down, across) = (entry.down.0 as usize + row, entry.across.0 as usize + column);
                    block[column * ld + row] += schur[packed::at(width, down, across)];
                }
            }
        }
    }
}
