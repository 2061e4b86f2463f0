//! Nested dissection of a block graph by level sets, for short critical paths.
//!
//! Minimum degree makes path-shaped trees of chains and towers: nothing to share between threads, and every
//! change touches half the tree. Cutting the graph in halves by small separators costs more arithmetic there
//! and leaves a tree of logarithmic depth. Breadth-first levels from an end of the graph are separators
//! already; the thinnest level near the middle is taken, reduced to the nodes that touch the far side.

use super::graph::{BlockGraph, NodeKind};
use super::ordering::{MinDegree, OrderingKind};

/// Parts of at most this many scalars are ordered by minimum degree.
const LEAF: u32 = 96;

/// The elimination order of all nodes but the interface.
pub fn order(graph: &BlockGraph, kind: OrderingKind, work: &mut MinDegree) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.nodes());
    match kind {
        OrderingKind::MinDegree => work.order(graph, |_| false, &mut order),
        OrderingKind::NestedDissection => {
            Dissection::new(graph, work).run(&mut order);
            multipliers_after_a_body(graph, &mut order);
        }
    }
    order
}

struct Dissection<'a> {
    graph: &'a BlockGraph,
    work: &'a mut MinDegree,
    /// Set a node is in now; NOWHERE once ordered.
    set: Vec<u32>,
    level: Vec<u32>,
    queue: Vec<u32>,
    index: Vec<u32>,
    ordered: Vec<bool>,
    sets: u32,
}

const NOWHERE: u32 = u32::MAX;

enum Task {
    Split(Vec<u32>),
    Order(Vec<u32>),
}

impl<'a> Dissection<'a> {
    fn new(graph: &'a BlockGraph, work: &'a mut MinDegree) -> Self {
        let n = graph.nodes();
        Self {
            graph,
            work,
            set: vec![NOWHERE; n],
            level: vec![NOWHERE; n],
            queue: Vec::new(),
            index: vec![0; n],
            ordered: vec![false; n],
            sets: 0,
        }
    }

    fn run(mut self, order: &mut Vec<u32>) {
        let all: Vec<u32> = (0..self.graph.nodes() as u32)
            .filter(|&n| self.graph.kind[n as usize] != NodeKind::Interface)
            .collect();
        let mut tasks = vec![Task::Split(all)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Order(nodes) => self.order_part(&nodes, order),
                Task::Split(nodes) if self.weight(&nodes) <= LEAF => {
                    self.order_part(&nodes, order);
                }
                Task::Split(nodes) => self.split(nodes, &mut tasks),
            }
        }
    }

    fn weight(&self, nodes: &[u32]) -> u32 {
        nodes.iter().map(|&n| self.graph.size[n as usize]).sum()
    }

    /// Pushes separator, far side, near side: taken in the opposite order.
    fn split(&mut self, nodes: Vec<u32>, tasks: &mut Vec<Task>) {
        self.sets += 1;
        let set = self.sets;
        for &n in &nodes {
            self.set[n as usize] = set;
        }
        let reached = self.levels_from_an_end(nodes[0], set);
        if reached < nodes.len() {
            // Not connected: no separator needed. The rest is looked at again.
            let here = self.queue.clone();
            let rest = nodes.into_iter().filter(|&n| self.level[n as usize] == NOWHERE).collect();
            self.forget_levels();
            tasks.push(Task::Split(rest));
            tasks.push(Task::Split(here));
            return;
        }
        let Some(cut) = self.best_level(&nodes) else {
            self.forget_levels();
            tasks.push(Task::Order(nodes));
            return;
        };
        let (mut near, mut far, mut separator) = (Vec::new(), Vec::new(), Vec::new());
        for &n in &nodes {
            let level = self.level[n as usize];
            let touches_far = || {
                let of = self.graph.of(n).iter();
                of.copied().any(|o| self.set[o as usize] == set && self.level[o as usize] == cut + 1)
            };
            if level > cut {
                far.push(n);
            } else if level == cut && touches_far() {
                separator.push(n);
            } else {
                near.push(n);
            }
        }
        self.forget_levels();
        tasks.push(Task::Order(separator));
        tasks.push(Task::Split(far));
        tasks.push(Task::Split(near));
    }

    fn forget_levels(&mut self) {
        for &n in &self.queue {
            self.level[n as usize] = NOWHERE;
        }
    }

    /// Breadth-first levels from a node at an end of the graph; returns how many nodes were reached.
    fn levels_from_an_end(&mut self, start: u32, set: u32) -> usize {
        let mut start = start;
        let mut depth = 0;
        for pass in 0..4 {
            self.breadth_first(start, set);
            let last = self.queue[self.queue.len() - 1];
            let deepest = self.level[last as usize];
            if pass == 3 || (pass > 0 && deepest <= depth) {
                break;
            }
            depth = deepest;
            start = last;
            self.forget_levels();
        }
        self.queue.len()
    }

    fn breadth_first(&mut self, start: u32, set: u32) {
        self.queue.clear();
        self.queue.push(start);
        self.level[start as usize] = 0;
        let mut k = 0;
        while k < self.queue.len() {
            let n = self.queue[k];
            k += 1;
            for &o in self.graph.of(n) {
                if self.set[o as usize] == set && self.level[o as usize] == NOWHERE {
                    self.level[o as usize] = self.level[n as usize] + 1;
                    self.queue.push(o);
                }
            }
        }
    }

    /// The thinnest level with at least a quarter of the weight on either side.
    fn best_level(&self, nodes: &[u32]) -> Option<u32> {
        let levels = nodes.iter().map(|&n| self.level[n as usize]).max()? + 1;
        let mut weight = vec![0u32; levels as usize];
        for &n in nodes {
            weight[self.level[n as usize] as usize] += self.graph.size[n as usize];
        }
        let total: u32 = weight.iter().sum();
        let mut below = 0;
        let mut best: Option<(f64, u32)> = None;
        for level in 0..levels - 1 {
            let here = weight[level as usize];
            let above = total - below - here;
            let smaller = below.min(above) as f64 / total as f64;
            if smaller > 0.25 {
                // A cut off the middle must be thinner to be worth it.
                let score = here as f64 * (1.5 - smaller);
                if best.is_none_or(|(s, _)| score < s) {
                    best = Some((score, level));
                }
            }
            below += here;
        }
        best.map(|(_, level)| level)
    }

    fn order_part(&mut self, nodes: &[u32], order: &mut Vec<u32>) {
        self.sets += 1;
        let set = self.sets;
        let mut part = BlockGraph::default();
        for (k, &n) in nodes.iter().enumerate() {
            self.set[n as usize] = set;
            self.index[n as usize] = k as u32;
            let i = n as usize;
            part.node(self.graph.size[i], self.graph.kind[i], self.graph.dynamic[i]);
        }
        for &n in nodes {
            for &o in self.graph.of(n) {
                if self.set[o as usize] == set && o > n {
                    part.edge(self.index[n as usize], self.index[o as usize]);
                }
            }
        }
        part.finish();
        let released: Vec<bool> =
            nodes.iter().map(|&n| self.graph.of(n).iter().any(|&o| self.ordered[o as usize])).collect();
        let mut local = Vec::with_capacity(nodes.len());
        self.work.order(&part, |k| released[k as usize], &mut local);
        for k in local {
            let n = nodes[k as usize];
            self.set[n as usize] = NOWHERE;
            self.ordered[n as usize] = true;
            order.push(n);
        }
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
