//! The block graph that orderings and the symbolic phase work on.

/// What a node stands for; it decides when the node may be eliminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A positive pivot block; any time.
    Body,
    /// A negative pivot block; only after at least one neighbour, so that −C is never a pivot by itself.
    Multiplier,
    /// Never eliminated: the Schur complement onto these nodes is what remains.
    Interface,
}

/// An undirected graph of blocks, as compressed neighbour lists.
#[derive(Clone, Debug, Default)]
pub struct BlockGraph {
    /// Scalar size of each node.
    pub size: Vec<u32>,
    /// Kind of each node.
    pub kind: Vec<NodeKind>,
    /// Nodes whose numbers change when rows pivot; they are better eliminated late.
    pub dynamic: Vec<bool>,
    /// Neighbours of node i are `neighbours[start[i]..start[i + 1]]`; sorted, without i, each once.
    pub start: Vec<u32>,
    /// Neighbour lists, one after another.
    pub neighbours: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl BlockGraph {
    /// Empties the graph and keeps its memory.
    pub fn clear(&mut self) {
        self.size.clear();
        self.kind.clear();
        self.dynamic.clear();
        self.edges.clear();
    }

    /// Adds a node and returns its number.
    pub fn node(&mut self, size: u32, kind: NodeKind, dynamic: bool) -> u32 {
        self.size.push(size);
        self.kind.push(kind);
        self.dynamic.push(dynamic);
        (self.size.len() - 1) as u32
    }

    /// Adds an edge; the same edge may be added more than once.
    pub fn edge(&mut self, a: u32, b: u32) {
        if a != b {
            self.edges.push((a, b));
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.size.len()
    }

    /// Neighbours of a node; valid after [`finish`](Self::finish).
    pub fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.neighbours[self.start[node] as usize..self.start[node + 1] as usize]
    }

    /// Builds the neighbour lists from the edges.
    pub fn finish(&mut self) {
        let n = self.nodes();
        let mut count = vec![0u32; n + 1];
        for &(a, b) in &self.edges {
            count[a as usize + 1] += 1;
            count[b as usize + 1] += 1;
        }
        for i in 0..n {
            count[i + 1] += count[i];
        }
        let mut list = vec![0u32; 2 * self.edges.len()];
        let mut next = count.clone();
        for &(a, b) in &self.edges {
            for (from, to) in [(a, b), (b, a)] {
                list[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        self.start.clear();
        self.start.push(0);
        self.neighbours.clear();
        for i in 0..n {
            let slice = &mut list[count[i] as usize..count[i + 1] as usize];
            slice.sort_unstable();
            let first = self.neighbours.len();
            for &x in slice.iter() {
                if self.neighbours.len() == first || self.neighbours.last() != Some(&x) {
                    self.neighbours.push(x);
                }
            }
            self.start.push(self.neighbours.len() as u32);
        }
    }
}
