//! Minimum-degree partitioning with the orphan rule (000 Algorithm 2).
//!
//! Groups grow from the periphery: the next body is the one next to the group that has the fewest
//! neighbours left in the default group G₀. Degrees count neighbours in G₀ only; ties go to the smaller
//! body. Bodies next to a finished group that would be left alone join it.

use super::bodies::{BodyGraph, Grouping};

/// In no group yet: a member of G₀.
const DEFAULT: u32 = u32::MAX;

/// Groups of `most` bodies (a few more where orphans join); the last group is what remains of G₀.
pub fn partition(graph: &BodyGraph, most: u32) -> Grouping {
    let n = graph.len();
    let mut growth = Growth {
        graph,
        group: vec![DEFAULT; n],
        degree: (0..n as u32).map(|b| graph.of(b).len() as u32).collect(),
        seen: vec![false; n],
        frontier: Vec::new(),
        left: n,
    };
    let mut groups = 0;
    while growth.left > most.max(1) as usize {
        growth.grow(groups, most.max(1));
        groups += 1;
    }
    for group in &mut growth.group {
        if *group == DEFAULT {
            *group = groups;
        }
    }
    Grouping::from_labels(&growth.group)
}

struct Growth<'a> {
    graph: &'a BodyGraph,
    group: Vec<u32>,
    /// Neighbours in G₀.
    degree: Vec<u32>,
    /// Is the body in the frontier?
    seen: Vec<bool>,
    frontier: Vec<u32>,
    left: usize,
}

impl Growth<'_> {
    fn grow(&mut self, group: u32, most: u32) {
        let default = (0..self.group.len() as u32).filter(|&b| self.group[b as usize] == DEFAULT);
        let Some(seed) = default.min_by_key(|&b| (self.degree[b as usize], b)) else { return };
        self.frontier.clear();
        self.take(seed, group);
        let mut size = 1;
        while size < most {
            let next = self.frontier.iter().copied().min_by_key(|&b| (self.degree[b as usize], b));
            let Some(body) = next else { break };
            self.take(body, group);
            size += 1;
        }
        // Orphans: next to this group, and with no neighbour left in G₀.
        let mut orphans: Vec<u32> =
            self.frontier.iter().copied().filter(|&b| self.degree[b as usize] == 0).collect();
        orphans.sort_unstable();
        for orphan in orphans {
            self.take(orphan, group);
        }
        for &body in &self.frontier {
            self.seen[body as usize] = false;
        }
    }

    /// Moves a body from G₀ into the group and its neighbours into the frontier.
    fn take(&mut self, body: u32, group: u32) {
        self.group[body as usize] = group;
        self.left -= 1;
        self.seen[body as usize] = false;
        self.frontier.retain(|&b| b != body);
        for &other in self.graph.of(body) {
            self.degree[other as usize] -= 1;
            if self.group[other as usize] == DEFAULT && !self.seen[other as usize] {
                self.seen[other as usize] = true;
                self.frontier.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bodies::tests::{chain, grid};
    use super::*;

    #[test]
    fn a_chain_is_cut_into_pieces_of_the_size_asked_for() {
        let grouping = partition(&chain(20), 8);
        assert_eq!(grouping.count, 3);
        // From the end 0, eight bodies; then from the new end; four remain.
        let expected: Vec<u32> = (0..20).map(|b| b / 8).collect();
        assert_eq!(grouping.of, expected);
    }

    #[test]
    fn an_orphan_joins_its_neighbours_group() {
        // 0 – 1 – 2 – 3 – 4 with 5 hanging on 1: after {0, 5, 1} nothing is alone, but cutting {0, 1} leaves 5 alone.
        let mut graph = BodyGraph::default();
        graph.reset(6);
        for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 4), (1, 5)] {
            graph.tie(a, b, 3);
        }
        graph.finish();
        let grouping = partition(&graph, 2);
        assert_eq!(grouping.of[5], grouping.of[1], "{grouping:?}");
        assert!(grouping.of.iter().filter(|&&g| g == grouping.of[1]).count() == 3, "{grouping:?}");
    }

    #[test]
    fn no_partition_is_left_with_a_single_body_on_grids() {
        for most in [4, 8, 16] {
            let graph = grid(12, 9);
            let grouping = partition(&graph, most);
            let mut size = vec![0; grouping.count as usize];
            grouping.of.iter().for_each(|&g| size[g as usize] += 1);
            let lonely = (0..graph.len() as u32).filter(|&b| {
                let own = grouping.of[b as usize];
                size[own as usize] == 1 && graph.of(b).iter().all(|&o| grouping.of[o as usize] < own)
            });
            assert_eq!(lonely.count(), 0, "most {most}: {size:?}");
            assert!(size.iter().all(|&s| s <= most + most / 2), "{size:?}");
        }
    }

    #[test]
    fn small_or_empty_graphs_stay_whole() {
        assert_eq!(partition(&chain(3), 8), Grouping::whole(3));
        assert_eq!(partition(&BodyGraph::default(), 8), Grouping::default());
    }
}
