//! CouplingLoop dissection of a block graph: small separators last, minimum degree in the parts between them.
//!
//! Minimum degree does the least arithmetic on chains, towers and small nets, but it makes path-shaped trees of them (nothing to
//! share between threads, and every change touches half the tree), and on large nets it falls behind: ten times the bodies are
//! sixty times the arithmetic, where good separators make it thirty.

use super::graph::{BlockGraph, NodeKind};
use super::ordering::{MinDegree, OrderingKind};
use super::separator::{Side, separate};
use super::symbolic;
use crate::graph::bisection::Level;

/// Parts of at most this many scalars are ordered by minimum degree where short paths are wanted.
const SHORT: u32 = 96;

/// Where little arithmetic is wanted: minimum degree is as good on parts of this size.
const LEAF: u32 = 800;

/// Operations of minimum degree from which on dissection is tried. The search takes as long as one or two factorizations of this
/// size; nets and piles gain a third of each, and more when they are larger.
const WORTH_A_SEARCH: u64 = 300_000_000;

/// The elimination order of all nodes but the interface.
pub fn order(graph: &BlockGraph, kind: OrderingKind, work: &mut MinDegree) -> Vec<u32> {
    match kind {
        OrderingKind::MinDegree => least_arithmetic(graph, work),
        OrderingKind::NestedDissection => dissected(graph, SHORT, work),
    }
}

fn least_arithmetic(graph: &BlockGraph, work: &mut MinDegree) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.nodes());
    let flops = work.order(graph, |_| false, &mut order);
    // A search walks nodes, whose arithmetic goes with the cube of their width: what is a large net of bodies is one of points, too.
    let widths = (0..graph.nodes()).filter(|&n| graph.kind[n] == NodeKind::Body).map(|n| graph.size[n]);
    let (count, sum) = widths.fold((0u32, 0u32), |(count, sum), width| (count + 1, sum + width));
    let width = f64::from(sum.max(1)) / f64::from(6 * count.max(1));
    if (flops as f64) < WORTH_A_SEARCH as f64 * width * width * width {
        return order;
    }
    let other = dissected(graph, LEAF, work);
    if symbolic::flops_of(graph, &other) < flops { other } else { order }
}

fn dissected(graph: &BlockGraph, leaf: u32, work: &mut MinDegree) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.nodes());
    Dissection::new(graph, leaf, work).run(&mut order);
    multipliers_after_a_body(graph, &mut order);
    order
}

struct Dissection<'a> {
    graph: &'a BlockGraph,
    leaf: u32,
    work: &'a mut MinDegree,
    /// Set a node is in now.
    set: Vec<u32>,
    sets: u32,
    index: Vec<u32>,
    /// Place in the order, or NOWHERE.
    position: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

enum Task {
    /// To be cut.
    Split(Vec<u32>),
    /// To be ordered by minimum degree.
    Part(Vec<u32>),
    /// To be ordered behind both sides.
    Separator(Vec<u32>),
}

impl<'a> Dissection<'a> {
    fn new(graph: &'a BlockGraph, leaf: u32, work: &'a mut MinDegree) -> Self {
        let n = graph.nodes();
        Self { graph, leaf, work, set: vec![0; n], sets: 0, index: vec![0; n], position: vec![NOWHERE; n] }
    }

    fn run(mut self, order: &mut Vec<u32>) {
        let all: Vec<u32> = (0..self.graph.nodes() as u32)
            .filter(|&n| self.graph.kind[n as usize] != NodeKind::Interface)
            .collect();
        let mut tasks = Vec::new();
        self.push_pieces(&all, &mut tasks);
        while let Some(task) = tasks.pop() {
            match task {
                Task::Part(nodes) => self.order_part(&nodes, order),
                Task::Separator(nodes) => self.order_separator(nodes, order),
                Task::Split(nodes) => self.split(nodes, &mut tasks),
            }
        }
    }

    /// Connected pieces of some nodes: large ones to be cut, the others together.
    fn push_pieces(&mut self, nodes: &[u32], tasks: &mut Vec<Task>) {
        self.sets += 1;
        let set = self.sets;
        for &n in nodes {
            self.set[n as usize] = set;
        }
        let mut small = Vec::new();
        for &n in nodes {
            if self.set[n as usize] != set {
                continue;
            }
            let piece = self.piece_of(n, set);
            if self.weight(&piece) > self.leaf {
                tasks.push(Task::Split(piece));
            } else {
                small.extend(piece);
            }
        }
        if !small.is_empty() {
            tasks.push(Task::Part(small));
        }
    }

    /// The nodes of a set that are connected to one of it; they leave the set.
    fn piece_of(&mut self, node: u32, set: u32) -> Vec<u32> {
        let mut piece = vec![node];
        self.set[node as usize] = 0;
        let mut k = 0;
        while k < piece.len() {
            for &o in self.graph.of(piece[k]) {
                if self.set[o as usize] == set {
                    self.set[o as usize] = 0;
                    piece.push(o);
                }
            }
            k += 1;
        }
        // Numbers that grow with the nodes': the same part looks the same however it was reached.
        piece.sort_unstable();
        piece
    }

    fn weight(&self, nodes: &[u32]) -> u32 {
        nodes.iter().map(|&n| self.graph.size[n as usize]).sum()
    }

    /// Pushes separator, high side, low side: taken in the opposite order.
    fn split(&mut self, nodes: Vec<u32>, tasks: &mut Vec<Task>) {
        let side = separate(&self.level_of(&nodes));
        let on = |s: Side| -> Vec<u32> {
            nodes.iter().zip(&side).filter(|&(_, &t)| t == s).map(|(&n, _)| n).collect()
        };
        let (low, high, cut) = (on(Side::Low), on(Side::High), on(Side::Cut));
        if low.is_empty() || high.is_empty() {
            tasks.push(Task::Part(nodes));
            return;
        }
        tasks.push(Task::Separator(cut));
        self.push_pieces(&high, tasks);
        self.push_pieces(&low, tasks);
    }

    /// The graph of some nodes alone.
    fn level_of(&mut self, nodes: &[u32]) -> Level {
        self.number(nodes);
        let mut level = Level { start: vec![0], ..Level::default() };
        for &n in nodes {
            let size = |n: u32| self.graph.size[n as usize];
            let inside = self.graph.of(n).iter().filter(|&&o| self.set[o as usize] == self.sets);
            // What it takes at least to cut the tie.
            level.ties.extend(inside.map(|&o| (self.index[o as usize], size(n).min(size(o)))));
            level.start.push(level.ties.len() as u32);
            level.work.push(u64::from(size(n)));
        }
        level
    }

    /// Makes a new set of some nodes and numbers them.
    fn number(&mut self, nodes: &[u32]) {
        self.sets += 1;
        for (k, &n) in nodes.iter().enumerate() {
            self.set[n as usize] = self.sets;
            self.index[n as usize] = k as u32;
        }
    }

    /// Minimum degree in a part, whose neighbours in separators are seen but stay.
    fn order_part(&mut self, nodes: &[u32], order: &mut Vec<u32>) {
        self.number(nodes);
        let set = self.sets;
        let mut part = BlockGraph::default();
        for &n in nodes {
            let i = n as usize;
            part.node(self.graph.size[i], self.graph.kind[i], self.graph.dynamic[i]);
        }
        for (k, &n) in nodes.iter().enumerate() {
            for &o in self.graph.of(n) {
                let i = o as usize;
                if self.set[i] != set {
                    if self.position[i] != NOWHERE {
                        continue;
                    }
                    self.set[i] = set;
                    self.index[i] = part.node(self.graph.size[i], NodeKind::Interface, false);
                }
                if self.index[i] > k as u32 {
                    part.edge(k as u32, self.index[i]);
                }
            }
        }
        part.finish();
        let released: Vec<bool> = nodes.iter().map(|&n| self.is_released(n)).collect();
        let mut local = Vec::with_capacity(nodes.len());
        self.work.order(&part, |k| released[k as usize], &mut local);
        for k in local {
            self.append(nodes[k as usize], order);
        }
    }

    /// A separator ends as one dense front. Its nodes follow those they touch first, so that what the parts pass up stays together.
    fn order_separator(&mut self, mut nodes: Vec<u32>, order: &mut Vec<u32>) {
        let first = |n: u32| self.graph.of(n).iter().map(|&o| self.position[o as usize]).min();
        nodes.sort_by_cached_key(|&n| (first(n), n));
        for n in nodes {
            self.append(n, order);
        }
    }

    /// Is a neighbour of the node gone?
    fn is_released(&self, node: u32) -> bool {
        self.graph.of(node).iter().any(|&o| self.position[o as usize] != NOWHERE)
    }

    fn append(&mut self, node: u32, order: &mut Vec<u32>) {
        self.position[node as usize] = order.len() as u32;
        order.push(node);
    }
}

/// Moves a multiplier that stands before all of its bodies to just behind the first of them.
fn multipliers_after_a_body(graph: &BlockGraph, order: &mut Vec<u32>) {
    let mut gone = vec![false; graph.nodes()];
    let mut waiting: Vec<u32> = Vec::new();
    let mut fixed = Vec::with_capacity(order.len());
    for &n in order.iter() {
        let early =
            graph.kind[n as usize] == NodeKind::Multiplier && !graph.of(n).iter().any(|&o| gone[o as usize]);
        if early {
            waiting.push(n);
            continue;
        }
        fixed.push(n);
        gone[n as usize] = true;
        if graph.kind[n as usize] == NodeKind::Body && !waiting.is_empty() {
            waiting.retain(|&m| {
                let free = graph.of(m).contains(&n);
                if free {
                    fixed.push(m);
                    gone[m as usize] = true;
                }
                !free
            });
        }
    }
    fixed.extend(waiting);
    *order = fixed;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies on a square, with a multiplier between neighbours.
    fn net(side: u32) -> BlockGraph {
        let mut graph = BlockGraph::default();
        for _ in 0..side * side {
            graph.node(6, NodeKind::Body, false);
        }
        for y in 0..side {
            for x in 0..side {
                for (right, up) in [(1, 0), (0, 1)] {
                    if x + right < side && y + up < side {
                        let joint = graph.node(3, NodeKind::Multiplier, false);
                        graph.edge(joint, y * side + x);
                        graph.edge(joint, (y + up) * side + x + right);
                    }
                }
            }
        }
        graph.finish();
        graph
    }

    #[test]
    fn every_node_is_ordered_once_and_multipliers_after_a_body() {
        let graph = net(20);
        for kind in [OrderingKind::MinDegree, OrderingKind::NestedDissection] {
            let order = order(&graph, kind, &mut MinDegree::default());
            let mut position = vec![NOWHERE; graph.nodes()];
            for (k, &n) in order.iter().enumerate() {
                assert_eq!(position[n as usize], NOWHERE);
                position[n as usize] = k as u32;
            }
            assert_eq!(order.len(), graph.nodes());
            for (n, &at) in position.iter().enumerate() {
                let early = graph.of(n as u32).iter().all(|&o| position[o as usize] > at);
                assert!(graph.kind[n] == NodeKind::Body || !early, "{kind:?}: multiplier {n} first");
            }
        }
    }

    #[test]
    fn large_nets_take_the_order_with_less_arithmetic() {
        let flops = |side| {
            let (graph, mut work) = (net(side), MinDegree::default());
            let mut plain = Vec::new();
            let counted = work.order(&graph, |_| false, &mut plain);
            assert_eq!(counted, symbolic::flops_of(&graph, &plain), "minimum degree counts what it orders");
            (counted, symbolic::flops_of(&graph, &order(&graph, OrderingKind::MinDegree, &mut work)))
        };
        let (small, large) = (flops(40), flops(80));
        assert_eq!(small.0, small.1, "not worth a search");
        assert!(large.1 < large.0);
        // Separators of n^½ in n bodies mean n^1.5 operations in all: four times the bodies, eight times the arithmetic, and a
        // quarter more for the small sizes where lower terms matter.
        assert!(large.1 < 10 * small.1, "{} {}", small.1, large.1);
    }
}
