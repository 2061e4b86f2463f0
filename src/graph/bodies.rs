//! What is tied to what: bodies as nodes, constraints as weighted edges.

/// An undirected graph over bodies as compressed neighbour lists; both directions of an edge are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyGraph {
    start: Vec<u32>,
    neighbour: Vec<u32>,
    weight: Vec<u32>,
    /// Work a body stands for; partitions are balanced by it.
    pub work: Vec<u32>,
    edges: Vec<(u32, u32, u32)>,
}

impl BodyGraph {
    /// `n` bodies without ties, each of one unit of work; memory is kept.
    pub fn reset(&mut self, n: usize) {
        self.edges.clear();
        self.work.clear();
        self.work.resize(n, 1);
        self.start.clear();
        self.start.resize(n + 1, 0);
        self.neighbour.clear();
        self.weight.clear();
    }

    /// Adds a tie of `rows` rows between two bodies; ties between the same bodies add up.
    pub fn tie(&mut self, a: u32, b: u32, rows: u32) {
        if a != b {
            self.edges.push((a, b, rows));
            self.edges.push((b, a, rows));
        }
    }

    /// Builds the neighbour lists.
    pub fn finish(&mut self) {
        self.edges.sort_unstable();
        let n = self.work.len();
        let mut last = (u32::MAX, u32::MAX);
        let mut count = vec![0u32; n + 1];
        for &(a, b, rows) in &self.edges {
            if last == (a, b) {
                if let Some(weight) = self.weight.last_mut() {
                    *weight += rows;
                }
                continue;
            }
            last = (a, b);
            self.neighbour.push(b);
            self.weight.push(rows);
            count[a as usize + 1] += 1;
        }
        for i in 0..n {
            count[i + 1] += count[i];
        }
        self.start = count;
    }

    /// Number of bodies.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Neighbours of a body, ascending.
    pub fn of(&self, body: u32) -> &[u32] {
        &self.neighbour[self.range(body)]
    }

    /// Neighbours of a body with the rows between them.
    pub fn ties(&self, body: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.range(body);
        self.neighbour[range.clone()].iter().copied().zip(self.weight[range].iter().copied())
    }

    /// Makes every tie weigh at most this much.
    pub fn cap_weights(&mut self, most: u32) {
        for weight in &mut self.weight {
            *weight = (*weight).min(most);
        }
    }

    fn range(&self, body: u32) -> std::ops::Range<usize> {
        self.start[body as usize] as usize..self.start[body as usize + 1] as usize
    }
}

/// A partition number per body, `0..count`; partitions are numbered by their smallest body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// Partition of each body.
    pub of: Vec<u32>,
    /// Number of partitions.
    pub count: u32,
}

impl Grouping {
    /// Everything in one partition.
    pub fn whole(n: usize) -> Grouping {
        Grouping { of: vec![0; n], count: u32::from(n > 0) }
    }

    /// The same with the two bodies of every pair in one partition: that of the smallest body they are joined with.
    pub fn joined(&self, pairs: impl Iterator<Item = (u32, u32)>) -> Grouping {
        let mut islands = super::islands::Islands::default();
        islands.reset(self.of.len());
        let mut any = false;
        for (a, b) in pairs {
            any = true;
            islands.tie(a, b);
        }
        if !any {
            return self.clone();
        }
        let labels: Vec<u32> =
            (0..self.of.len() as u32).map(|body| self.of[islands.root(body) as usize]).collect();
        Grouping::from_labels(&labels)
    }

    /// Numbers the groups of any labels by their smallest body.
    pub fn from_labels(labels: &[u32]) -> Grouping {
        let most = labels.iter().copied().max().map_or(0, |m| m as usize + 1);
        let mut number = vec![u32::MAX; most];
        let mut count = 0;
        let of = labels
            .iter()
            .map(|&label| {
                let number = &mut number[label as usize];
                if *number == u32::MAX {
                    *number = count;
                    count += 1;
                }
                *number
            })
            .collect();
        Grouping { of, count }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A grid of `w` × `h` bodies, three rows a tie.
    pub(crate) fn grid(w: u32, h: u32) -> BodyGraph {
        let mut graph = BodyGraph::default();
        graph.reset((w * h) as usize);
        for y in 0..h {
            for x in 0..w {
                if x + 1 < w {
                    graph.tie(y * w + x, y * w + x + 1, 3);
                }
                if y + 1 < h {
                    graph.tie(y * w + x, y * w + x + w, 3);
                }
            }
        }
        graph.finish();
        graph
    }

    /// A chain of `n` bodies.
    pub(crate) fn chain(n: u32) -> BodyGraph {
        grid(n, 1)
    }

    #[test]
    fn ties_between_the_same_bodies_add_up() {
        let mut graph = BodyGraph::default();
        graph.reset(3);
        graph.tie(2, 0, 3);
        graph.tie(0, 2, 4);
        graph.tie(1, 1, 9);
        graph.finish();
        assert_eq!(graph.ties(0).collect::<Vec<_>>(), [(2, 7)]);
        assert_eq!(graph.of(1), [0u32; 0]);
        assert_eq!(graph.ties(2).collect::<Vec<_>>(), [(0, 7)]);
    }

    #[test]
    fn groups_are_numbered_by_their_smallest_body() {
        let grouping = Grouping::from_labels(&[7, 3, 7, 0]);
        assert_eq!(grouping, Grouping { of: vec![0, 1, 0, 2], count: 3 });
        assert_eq!(Grouping::from_labels(&[]), Grouping::default());
    }
}
