//! The symbolic phase: elimination tree, fronts, and where everything goes.
//!
//! Done once per topology. A front eliminates one or more nodes together; its border are the nodes they still
//! touch. What a front passes to its parent is described by runs: stretches of scalar rows that stay
//! together. Factorization, forward and backward substitution use the same runs.

use super::graph::{BlockGraph, NodeKind};
use super::kernels::Shape;

/// No front, no node.
pub const NONE: u32 = u32::MAX;

/// In which order fronts are stored and computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As they were eliminated: neighbours in time are seldom parent and child, so a processor works on two at once.
    Sequence,
    /// Subtree by subtree: every subtree is a range.
    Subtrees,
}

/// One front of the elimination tree. Children come before their parents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// Columns eliminated, rows that remain.
    pub shape: Shape,
    /// The front that takes the update, or [`NONE`].
    pub parent: u32,
    /// Offset of the panel.
    pub panel: usize,
    /// Offset of the update matrix.
    pub update: usize,
    /// Offset of the local vector.
    pub local: usize,
    runs: (u32, u32),
    children: (u32, u32),
    pivots: (u32, u32),
    borders: (u32, u32),
}

/// Scalar rows that are together in a child's border and in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First row in the child's border.
    pub child: u32,
    /// First local row in the parent.
    pub parent: u32,
    /// Number of rows.
    pub rows: u32,
}

/// The plan of a multifrontal factorization.
#[derive(Clone, Debug, Default)]
pub struct Symbolic {
    /// Fronts in elimination order.
    pub fronts: Vec<Front>,
    /// Front of each node; the interface front for interface nodes.
    pub node_front: Vec<u32>,
    /// First local row of each node in its own front.
    pub node_local: Vec<u32>,
    /// Numbers in all panels.
    pub panels: usize,
    /// Numbers in all update matrices.
    pub updates: usize,
    /// Numbers in all local vectors.
    pub locals: usize,
    /// Most work space of a front.
    pub scratch: usize,
    runs: Vec<Run>,
    children: Vec<u32>,
    pivot_nodes: Vec<u32>,
    border_nodes: Vec<u32>,
    border_local: Vec<u32>,
    rank: Vec<u32>,
}

impl Symbolic {
    /// The stretches of a front's border in its parent.
    pub fn runs(&self, front: &Front) -> &[Run] {
        &self.runs[front.runs.0 as usize..front.runs.1 as usize]
    }

    /// The children of a front, in their order.
    pub fn children(&self, front: &Front) -> &[u32] {
        &self.children[front.children.0 as usize..front.children.1 as usize]
    }

    /// The nodes a front eliminates, in order.
    pub fn pivot_nodes(&self, front: &Front) -> &[u32] {
        &self.pivot_nodes[front.pivots.0 as usize..front.pivots.1 as usize]
    }

    /// The nodes of a front's border, in order.
    pub fn border_nodes(&self, front: &Front) -> &[u32] {
        &self.border_nodes[front.borders.0 as usize..front.borders.1 as usize]
    }

    /// The local row of a node in a front that knows it.
    pub fn local_of(&self, front: u32, node: u32) -> Option<u32> {
        let f = &self.fronts[front as usize];
        if self.node_front[node as usize] == front && f.shape.pivots > 0 {
            return Some(self.node_local[node as usize]);
        }
        let rank = self.rank[node as usize];
        let at = self.border_nodes(f).binary_search_by_key(&rank, |&n| self.rank[n as usize]).ok()?;
        Some(self.border_local[f.borders.0 as usize + at])
    }

    /// Which of two nodes is eliminated first?
    pub fn before(&self, a: u32, b: u32) -> bool {
        self.rank[a as usize] < self.rank[b as usize]
    }

    /// Operations of a full factorization.
    pub fn flops(&self) -> u64 {
        self.fronts.iter().map(|f| f.shape.flops()).sum()
    }

    /// Operations on the longest way from a leaf to a root: what no number of threads can shorten.
    pub fn critical_path(&self) -> u64 {
        let mut longest = vec![0; self.fronts.len()];
        let mut answer = 0;
        for (f, front) in self.fronts.iter().enumerate() {
            let here: u64 = longest[f] + front.shape.flops();
            answer = answer.max(here);
            if front.parent != NONE {
                let up = &mut longest[front.parent as usize];
                *up = here.max(*up);
            }
        }
        answer
    }

    /// Plans the factorization of a graph in an order of its nodes without the interface.
    pub fn build(graph: &BlockGraph, order: &[u32], layout: Layout) -> Self {
        let tree = Tree::build(graph, order);
        let merged = tree.merge(graph, order);
        Builder { layout, graph, order, tree: &tree, merged: &merged }.build()
    }
}

/// Operations of a factorization in an order of the nodes without the interface, one node at a time.
pub fn flops_of(graph: &BlockGraph, order: &[u32]) -> u64 {
    let tree = Tree::build(graph, order);
    let size = |n: u32| graph.size[n as usize] as usize;
    let shapes = order.iter().enumerate().map(|(k, &node)| Shape {
        pivots: size(node),
        border: tree.boundary(k).iter().map(|&b| size(b)).sum(),
    });
    shapes.map(Shape::flops).sum()
}

/// The elimination tree of nodes, with the boundary of each.
struct Tree {
    /// Parent position, or [`NONE`].
    parent: Vec<u32>,
    /// Does the boundary reach the interface only?
    to_interface: Vec<bool>,
    start: Vec<u32>,
    /// Boundaries, as nodes.
    boundary: Vec<u32>,
    dynamic: Vec<bool>,
}

impl Tree {
    fn build(graph: &BlockGraph, order: &[u32]) -> Self {
        let n = order.len();
        let mut position = vec![NONE; graph.nodes()];
        for (k, &node) in order.iter().enumerate() {
            position[node as usize] = k as u32;
        }
        let mut tree = Self {
            parent: vec![NONE; n],
            to_interface: vec![false; n],
            start: vec![0],
            boundary: Vec::with_capacity(4 * n),
            dynamic: vec![false; n],
        };
        let mut mark = vec![NONE; graph.nodes()];
        let mut first_child = vec![NONE; n];
        let mut next_sibling = vec![NONE; n];
        for (k, &node) in order.iter().enumerate() {
            let begin = tree.boundary.len();
            mark[node as usize] = k as u32;
            let mut dynamic = graph.dynamic[node as usize];
            for &other in graph.of(node) {
                let later = position[other as usize] == NONE || position[other as usize] > k as u32;
                if later && mark[other as usize] != k as u32 {
                    mark[other as usize] = k as u32;
                    tree.boundary.push(other);
                }
            }
            let mut child = first_child[k];
            while child != NONE {
                let c = child as usize;
                for b in tree.start[c] as usize..tree.start[c + 1] as usize {
                    let other = tree.boundary[b];
                    if mark[other as usize] != k as u32 {
                        mark[other as usize] = k as u32;
                        tree.boundary.push(other);
                    }
                }
                dynamic |= tree.dynamic[c];
                child = next_sibling[c];
            }
            tree.start.push(tree.boundary.len() as u32);
            tree.dynamic[k] = dynamic;
            let parent =
                tree.boundary[begin..].iter().map(|&other| position[other as usize]).min().unwrap_or(NONE);
            tree.to_interface[k] = parent == NONE && tree.boundary.len() > begin;
            tree.parent[k] = parent;
            if parent != NONE {
                next_sibling[k] = first_child[parent as usize];
                first_child[parent as usize] = k as u32;
            }
        }
        tree
    }

    fn boundary(&self, k: usize) -> &[u32] {
        &self.boundary[self.start[k] as usize..self.start[k + 1] as usize]
    }

    /// Relaxed supernodes: the front each position belongs to, named by its last position.
    fn merge(&self, graph: &BlockGraph, order: &[u32]) -> Vec<u32> {
        let n = order.len();
        let border: Vec<u32> =
            (0..n).map(|k| self.boundary(k).iter().map(|&b| graph.size[b as usize]).sum()).collect();
        let mut pivots: Vec<u32> = order.iter().map(|&node| graph.size[node as usize]).collect();
        let mut into: Vec<u32> = (0..n as u32).collect();
        for k in 0..n {
            let parent = self.parent[k];
            if parent == NONE || self.dynamic[k] != self.dynamic[parent as usize] {
                continue;
            }
            let p = parent as usize;
            let apart = cost(pivots[k], border[k]) + cost(pivots[p], border[p]);
            if cost(pivots[k] + pivots[p], border[p]) <= apart {
                pivots[p] += pivots[k];
                into[k] = parent;
            }
        }
        for k in (0..n).rev() {
            into[k] = into[into[k] as usize];
        }
        into
    }
}

/// Nanoseconds of a front in factor, assembly and solve, fitted on the measured kernels; only the proportions matter.
fn cost(pivots: u32, border: u32) -> f64 {
    let shape = Shape { pivots: pivots as usize, border: border as usize };
    let (s, r) = (pivots as f64, border as f64);
    90.0 + 9.0 * s + shape.flops() as f64 / 10.0 + 0.35 * r * r + 0.4 * s * (s + r)
}

struct Builder<'a> {
    layout: Layout,
    graph: &'a BlockGraph,
    order: &'a [u32],
    tree: &'a Tree,
    merged: &'a [u32],
}

impl Builder<'_> {
    fn build(self) -> Symbolic {
        let mut plan = Symbolic {
            node_front: vec![NONE; self.graph.nodes()],
            node_local: vec![0; self.graph.nodes()],
            rank: vec![NONE; self.graph.nodes()],
            ..Symbolic::default()
        };
        let sequence = match self.layout {
            Layout::Subtrees => self.postorder(),
            Layout::Sequence => {
                (0..self.order.len() as u32).filter(|&k| self.merged[k as usize] == k).collect()
            }
        };
        self.number(&mut plan, &sequence);
        self.borders(&mut plan, &sequence);
        plan.link();
        plan
    }

    /// Front tops (positions) in postorder.
    fn postorder(&self) -> Vec<u32> {
        let n = self.order.len();
        let mut first_child = vec![NONE; n];
        let mut next_sibling = vec![NONE; n];
        let mut roots = Vec::new();
        for k in (0..n).rev() {
            if self.merged[k] != k as u32 {
                continue;
            }
            let parent = self.tree.parent[k];
            if parent == NONE {
                roots.push(k as u32);
            } else {
                let p = self.merged[parent as usize] as usize;
                next_sibling[k] = first_child[p];
                first_child[p] = k as u32;
            }
        }
        let mut sequence = Vec::with_capacity(n);
        let mut stack: Vec<(u32, bool)> = Vec::new();
        for &root in roots.iter().rev() {
            stack.push((root, false));
            while let Some((k, done)) = stack.pop() {
                if done {
                    sequence.push(k);
                    continue;
                }
                stack.push((k, true));
                let at = stack.len();
                let mut child = first_child[k as usize];
                while child != NONE {
                    stack.push((child, false));
                    child = next_sibling[child as usize];
                }
                stack[at..].reverse();
            }
        }
        sequence
    }

    /// Ranks of nodes, pivots of fronts.
    fn number(&self, plan: &mut Symbolic, sequence: &[u32]) {
        let n = self.order.len();
        let mut front_of_top = vec![NONE; n];
        for (f, &top) in sequence.iter().enumerate() {
            front_of_top[top as usize] = f as u32;
        }
        let mut count = vec![0u32; sequence.len() + 1];
        for k in 0..n {
            count[front_of_top[self.merged[k] as usize] as usize + 1] += 1;
        }
        for f in 0..sequence.len() {
            count[f + 1] += count[f];
        }
        let mut next = count.clone();
        plan.pivot_nodes = vec![0; n];
        for (k, &node) in self.order.iter().enumerate() {
            let f = front_of_top[self.merged[k] as usize] as usize;
            plan.pivot_nodes[next[f] as usize] = node;
            next[f] += 1;
        }
        self.untouched_first(plan, sequence, &front_of_top, &count);
        for (f, &top) in sequence.iter().enumerate() {
            let range = (count[f], count[f + 1]);
            let mut local = 0;
            for rank in range.0..range.1 {
                let node = plan.pivot_nodes[rank as usize] as usize;
                plan.rank[node] = rank;
                plan.node_front[node] = f as u32;
                plan.node_local[node] = local;
                local += self.graph.size[node];
            }
            let parent = self.tree.parent[top as usize];
            plan.fronts.push(Front {
                shape: Shape { pivots: local as usize, border: 0 },
                parent: match parent {
                    NONE if self.tree.to_interface[top as usize] => sequence.len() as u32,
                    NONE => NONE,
                    p => front_of_top[self.merged[p as usize] as usize],
                },
                pivots: range,
                ..Front::default()
            });
        }
        self.number_interface(plan);
    }

    /// Moves bodies that no child touches to the front of their fronts: their elimination need not wait for a child. A multiplier
    /// has then still a body before it.
    fn untouched_first(&self, plan: &mut Symbolic, sequence: &[u32], front_of_top: &[u32], count: &[u32]) {
        let mut touched = vec![false; self.graph.nodes()];
        for &top in sequence {
            let parent = self.tree.parent[top as usize];
            if parent == NONE {
                continue;
            }
            let above = self.merged[parent as usize];
            let range = front_of_top[above as usize] as usize;
            if count[range + 1] - count[range] > 1 {
                self.tree.boundary(top as usize).iter().for_each(|&n| touched[n as usize] = true);
            }
        }
        for f in 0..sequence.len() {
            let nodes = &mut plan.pivot_nodes[count[f] as usize..count[f + 1] as usize];
            if nodes.len() > 1 {
                let body = |n: u32| self.graph.kind[n as usize] == NodeKind::Body;
                nodes.sort_by_key(|&n| touched[n as usize] || !body(n));
            }
        }
    }

    /// The interface is one last front that eliminates nothing.
    fn number_interface(&self, plan: &mut Symbolic) {
        let mut any = false;
        let front = plan.fronts.len() as u32;
        let mut rank = self.order.len() as u32;
        for node in 0..self.graph.nodes() {
            if self.graph.kind[node] == NodeKind::Interface {
                plan.rank[node] = rank;
                plan.node_front[node] = front;
                rank += 1;
                any = true;
            }
        }
        if any {
            let end = plan.pivot_nodes.len() as u32;
            plan.fronts.push(Front { parent: NONE, pivots: (end, end), ..Front::default() });
        }
    }

    fn borders(&self, plan: &mut Symbolic, sequence: &[u32]) {
        for f in 0..plan.fronts.len() {
            let begin = plan.border_nodes.len();
            match sequence.get(f) {
                Some(&top) => plan.border_nodes.extend_from_slice(self.tree.boundary(top as usize)),
                None => plan.border_nodes.extend(
                    (0..self.graph.nodes() as u32)
                        .filter(|&n| self.graph.kind[n as usize] == NodeKind::Interface),
                ),
            }
            let rank = &plan.rank;
            plan.border_nodes[begin..].sort_unstable_by_key(|&n| rank[n as usize]);
            let at = plan.fronts[f].shape.border_at() as u32;
            let mut rows = 0;
            for &node in &plan.border_nodes[begin..] {
                plan.border_local.push(at + rows);
                rows += self.graph.size[node as usize];
            }
            let front = &mut plan.fronts[f];
            front.shape.border = rows as usize;
            front.borders = (begin as u32, plan.border_nodes.len() as u32);
        }
        self.runs(plan);
    }

    fn runs(&self, plan: &mut Symbolic) {
        for f in 0..plan.fronts.len() {
            let front = plan.fronts[f];
            let begin = plan.runs.len();
            if front.parent != NONE {
                let at = front.shape.border_at() as u32;
                for b in front.borders.0..front.borders.1 {
                    let node = plan.border_nodes[b as usize];
                    let child = plan.border_local[b as usize] - at;
                    let rows = self.graph.size[node as usize];
                    let parent = plan
                        .local_of(front.parent, node)
                        .expect("the parent of a front knows every node of its border");
                    match plan.runs[begin..].last_mut() {
                        Some(last)
                            if last.child + last.rows == child && last.parent + last.rows == parent =>
                        {
                            last.rows += rows;
                        }
                        _ => plan.runs.push(Run { child, parent, rows }),
                    }
                }
            }
            plan.fronts[f].runs = (begin as u32, plan.runs.len() as u32);
        }
    }
}

impl Symbolic {
    /// Offsets and children.
    fn link(&mut self) {
        let n = self.fronts.len();
        let mut count = vec![0u32; n + 1];
        for front in &self.fronts {
            if front.parent != NONE {
                count[front.parent as usize + 1] += 1;
            }
        }
        for f in 0..n {
            count[f + 1] += count[f];
        }
        self.children = vec![0; count[n] as usize];
        let mut next = count.clone();
        for f in 0..n {
            self.fronts[f].children = (count[f], count[f + 1]);
            let shape = self.fronts[f].shape;
            let front = &mut self.fronts[f];
            (front.panel, front.update) = (self.panels, self.updates);
            front.local = self.locals;
            self.panels += shape.panel_len();
            self.updates += shape.update_len();
            self.locals += shape.ld();
            self.scratch = self.scratch.max(shape.scratch_len());
        }
        for f in 0..self.fronts.len() as u32 {
            let parent = self.fronts[f as usize].parent;
            if parent != NONE {
                self.children[next[parent as usize] as usize] = f;
                next[parent as usize] += 1;
            }
        }
    }
}
