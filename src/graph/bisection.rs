//! Multilevel bisection of the weighted constraint graph: a better cut than growing groups (000 §8.3).
//!
//! The graph is coarsened by matching each body with the neighbour it shares the most rows with, halved
//! by growth from an end while it is small, and brought back level by level; on each level bodies change
//! sides as long as the cut shrinks (Fiduccia and Mattheyses 1982) and the balance holds. No random
//! numbers: the same graph always gives the same cut.

use super::bodies::{BodyGraph, Grouping};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Graphs of at most this many nodes are halved directly.
const SMALL: usize = 48;

/// How unequal the halves may be, as a share of the whole.
const IMBALANCE: f64 = 0.04;

/// `parts` partitions by repeated bisection, of nearly equal work.
pub fn partition(graph: &BodyGraph, parts: u32) -> Grouping {
    let n = graph.len();
    let mut label = vec![0u32; n];
    let mut tasks = vec![((0..n as u32).collect::<Vec<u32>>(), 0u32, parts.max(1))];
    while let Some((bodies, first, parts)) = tasks.pop() {
        if parts <= 1 || bodies.len() < 2 {
            bodies.iter().for_each(|&b| label[b as usize] = first);
            continue;
        }
        let low_parts = parts.div_ceil(2);
        let level = Level::induced(graph, &bodies);
        let high = halve(&level, f64::from(low_parts) / f64::from(parts));
        let side =
            |s: bool| bodies.iter().zip(&high).filter(move |&(_, &h)| h == s).map(|(&b, _)| b).collect();
        tasks.push((side(true), first + low_parts, parts - low_parts));
        tasks.push((side(false), first, low_parts));
    }
    Grouping::from_labels(&label)
}

/// A weighted graph of one level of coarsening.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// First tie of each node, and one more.
    pub start: Vec<u32>,
    /// Neighbours, ascending, with the weight of the tie.
    pub ties: Vec<(u32, u32)>,
    /// Work of each node.
    pub work: Vec<u64>,
}

impl Level {
    /// Neighbours of a node and the weights of the ties.
    pub fn of(&self, node: usize) -> &[(u32, u32)] {
        &self.ties[self.start[node] as usize..self.start[node + 1] as usize]
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Are there no nodes?
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    fn induced(graph: &BodyGraph, bodies: &[u32]) -> Level {
        let mut number = vec![u32::MAX; graph.len()];
        for (k, &body) in bodies.iter().enumerate() {
            number[body as usize] = k as u32;
        }
        let mut level = Level { start: vec![0], ..Level::default() };
        for &body in bodies {
            let here = graph.ties(body).filter(|&(o, _)| number[o as usize] != u32::MAX);
            level.ties.extend(here.map(|(o, w)| (number[o as usize], w)));
            level.start.push(level.ties.len() as u32);
            level.work.push(u64::from(graph.work[body as usize]));
        }
        level
    }

    /// Matches every node with its heaviest unmatched neighbour; returns the coarse node of each.
    fn matching(&self) -> (Vec<u32>, usize) {
        let n = self.len();
        let mut coarse = vec![u32::MAX; n];
        let mut count = 0;
        let mut order: Vec<u32> = (0..n as u32).collect();
        // Ends first: a leaf has only one partner.
        order.sort_by_key(|&i| (self.of(i as usize).len(), i));
        let most = 3 * self.work.iter().sum::<u64>() / SMALL as u64 / 2 + 1;
        for &i in &order {
            if coarse[i as usize] != u32::MAX {
                continue;
            }
            let mut best: Option<(u64, u32)> = None;
            for &(o, w) in self.of(i as usize) {
                let fits = self.work[i as usize] + self.work[o as usize] <= most;
                if coarse[o as usize] == u32::MAX && fits {
                    // Heavy ties and light partners.
                    let score =
                        u64::from(w) * 1_000_000 / (self.work[o as usize] + self.work[i as usize]).max(1);
                    if best.is_none_or(|(s, b)| (score, b) > (s, o)) {
                        best = Some((score, o));
                    }
                }
            }
            coarse[i as usize] = count;
            if let Some((_, o)) = best {
                coarse[o as usize] = count;
            }
            count += 1;
        }
        (coarse, count as usize)
    }

    fn coarsen(&self, coarse: &[u32], count: usize) -> Level {
        // Members of each coarse node, one after another.
        let mut first = vec![0u32; count + 1];
        coarse.iter().for_each(|&c| first[c as usize + 1] += 1);
        for c in 0..count {
            first[c + 1] += first[c];
        }
        let (mut members, mut next) = (vec![0u32; self.len()], first.clone());
        for (i, &c) in coarse.iter().enumerate() {
            members[next[c as usize] as usize] = i as u32;
            next[c as usize] += 1;
        }
        let mut level = Level { start: vec![0], ties: Vec::new(), work: vec![0; count] };
        let mut place = vec![u32::MAX; count];
        for c in 0..count {
            let begin = level.ties.len();
            for &i in &members[first[c] as usize..first[c + 1] as usize] {
                level.work[c] += self.work[i as usize];
                for &(o, w) in self.of(i as usize) {
                    let to = coarse[o as usize];
                    let at = place[to as usize] as usize;
                    if to == c as u32 {
                        continue;
                    }
                    match level.ties.get_mut(at).filter(|tie| at >= begin && tie.0 == to) {
                        Some(tie) => tie.1 += w,
                        None => {
                            place[to as usize] = level.ties.len() as u32;
                            level.ties.push((to, w));
                        }
                    }
                }
            }
            level.ties[begin..].sort_unstable();
            level.start.push(level.ties.len() as u32);
        }
        level
    }
}

/// The side of each node (false = low); `share` of the work is wanted on the low side.
pub fn halve(level: &Level, share: f64) -> Vec<bool> {
    if level.is_empty() {
        return Vec::new();
    }
    if level.len() > SMALL {
        let (coarse, count) = level.matching();
        // Stars and cliques of heavy nodes do not shrink; they are halved as they are.
        if count as f64 <= 0.9 * level.len() as f64 {
            let small = halve(&level.coarsen(&coarse, count), share);
            let mut high: Vec<bool> = coarse.iter().map(|&c| small[c as usize]).collect();
            refine(level, &mut high, share);
            return high;
        }
    }
    let mut best: Option<(u64, Vec<bool>)> = None;
    for seed in seeds(level) {
        let mut high = grow(level, seed, share);
        refine(level, &mut high, share);
        let cut = cut(level, &high);
        if best.as_ref().is_none_or(|(c, _)| cut < *c) {
            best = Some((cut, high));
        }
    }
    best.map_or_else(Vec::new, |(_, high)| high)
}

fn cut(level: &Level, high: &[bool]) -> u64 {
    let mut sum = 0;
    for i in 0..level.len() {
        for &(o, w) in level.of(i) {
            if high[i] && !high[o as usize] {
                sum += u64::from(w);
            }
        }
    }
    sum
}

/// Nodes to grow from: an end of the graph, its opposite end, and a few evenly spread.
fn seeds(level: &Level) -> Vec<usize> {
    let n = level.len();
    let a = farthest(level, 0);
    let b = farthest(level, a);
    let mut seeds = vec![a, b];
    seeds.extend((0..4.min(n)).map(|k| k * n / 4));
    seeds.dedup();
    seeds
}

fn farthest(level: &Level, from: usize) -> usize {
    let mut seen = vec![false; level.len()];
    let mut queue = vec![from];
    seen[from] = true;
    let mut k = 0;
    while k < queue.len() {
        for &(o, _) in level.of(queue[k]) {
            if !seen[o as usize] {
                seen[o as usize] = true;
                queue.push(o as usize);
            }
        }
        k += 1;
    }
    queue[queue.len() - 1]
}

/// Grows the low side from a seed, always by the node that adds least to the cut.
fn grow(level: &Level, seed: usize, share: f64) -> Vec<bool> {
    let n = level.len();
    let total: u64 = level.work.iter().sum();
    let wanted = share * total as f64;
    let mut high = vec![true; n];
    let mut inside = vec![0i64; n];
    let weight: Vec<i64> = (0..n).map(|i| level.of(i).iter().map(|&(_, w)| i64::from(w)).sum()).collect();
    // Nodes not reached yet come last: the graph may have more than one piece.
    let key = |inside: i64, i: usize| Reverse((inside == 0, weight[i] - 2 * inside, i));
    let mut heap: BinaryHeap<_> = (0..n).map(|i| key(0, i)).collect();
    let mut work = 0.0;
    let mut next = Some(seed);
    while let Some(node) = next {
        let more = level.work[node] as f64;
        if work > 0.0 && work + 0.5 * more > wanted {
            break;
        }
        high[node] = false;
        work += more;
        for &(o, w) in level.of(node) {
            inside[o as usize] += i64::from(w);
            heap.push(key(inside[o as usize], o as usize));
        }
        next = None;
        while let Some(entry) = heap.pop() {
            let i = entry.0.2;
            if high[i] && entry == key(inside[i], i) {
                next = Some(i);
                break;
            }
        }
    }
    high
}

/// Passes of single moves; each keeps its best prefix. Ends when a pass gains nothing.
fn refine(level: &Level, high: &mut [bool], share: f64) {
    let total: u64 = level.work.iter().sum();
    let heaviest = level.work.iter().copied().max().unwrap_or(0);
    let slack = (IMBALANCE * total as f64).max(heaviest as f64);
    for _ in 0..8 {
        if !refine_once(level, high, share * total as f64, slack) {
            break;
        }
    }
}

fn refine_once(level: &Level, high: &mut [bool], wanted: f64, slack: f64) -> bool {
    let n = level.len();
    let mut low: f64 = (0..n).filter(|&i| !high[i]).map(|i| level.work[i] as f64).sum();
    let mut gain: Vec<i64> = (0..n).map(|i| gain_of(level, high, i)).collect();
    let mut heap: BinaryHeap<(i64, Reverse<usize>)> =
        (0..n).filter(|&i| on_border(level, high, i)).map(|i| (gain[i], Reverse(i))).collect();
    let mut moved = vec![false; n];
    let (mut sum, mut best, mut best_at) = (0i64, 0i64, 0usize);
    // Balance first, then the cut, then balance again.
    let mut best_off = (low - wanted).abs();
    let start_off = best_off;
    let mut moves: Vec<usize> = Vec::new();
    while let Some((g, Reverse(i))) = heap.pop() {
        if moved[i] || g != gain[i] {
            continue;
        }
        let work = level.work[i] as f64;
        let after = if high[i] { low + work } else { low - work };
        let off = (after - wanted).abs();
        if off > slack && off > (low - wanted).abs() {
            continue;
        }
        low = after;
        high[i] = !high[i];
        moved[i] = true;
        moves.push(i);
        sum += g;
        let (over, best_over) = ((off - slack).max(0.0), (best_off - slack).max(0.0));
        if over < best_over || (over == best_over && (sum > best || (sum == best && off < best_off))) {
            (best, best_at, best_off) = (sum, moves.len(), off);
        }
        // Long losing streaks do not come back.
        if moves.len() > best_at + 60 {
            break;
        }
        for &(o, _) in level.of(i) {
            let o = o as usize;
            if !moved[o] {
                gain[o] = gain_of(level, high, o);
                heap.push((gain[o], std::cmp::Reverse(o)));
            }
        }
    }
    for &i in &moves[best_at..] {
        high[i] = !high[i];
    }
    best > 0 || best_off < start_off - slack
}

fn gain_of(level: &Level, high: &[bool], i: usize) -> i64 {
    level
        .of(i)
        .iter()
        .map(|&(o, w)| if high[o as usize] != high[i] { i64::from(w) } else { -i64::from(w) })
        .sum()
}

fn on_border(level: &Level, high: &[bool], i: usize) -> bool {
    level.of(i).iter().any(|&(o, _)| high[o as usize] != high[i])
}

#[cfg(test)]
mod tests {
    use super::super::bodies::tests::{chain, grid};
    use super::super::min_degree;
    use super::*;

    fn sizes(grouping: &Grouping) -> Vec<u32> {
        let mut size = vec![0; grouping.count as usize];
        grouping.of.iter().for_each(|&g| size[g as usize] += 1);
        size
    }

    /// Rows of ties between different partitions.
    fn cut_rows(grouping: &Grouping, graph: &BodyGraph) -> u32 {
        let of = |body: u32| grouping.of[body as usize];
        let cut =
            |body: u32| graph.ties(body).filter(move |&(other, _)| other > body && of(other) != of(body));
        (0..graph.len() as u32).flat_map(cut).map(|(_, weight)| weight).sum()
    }

    #[test]
    fn a_chain_is_halved_at_one_tie() {
        let graph = chain(400);
        let grouping = partition(&graph, 2);
        assert_eq!(cut_rows(&grouping, &graph), 3);
        // Balance allows 8 % of the whole.
        assert!(sizes(&grouping).iter().all(|&s| (168..=232).contains(&s)), "{:?}", sizes(&grouping));
    }

    #[test]
    fn a_long_grid_is_cut_across_its_short_side() {
        let graph = grid(40, 6);
        let grouping = partition(&graph, 4);
        assert_eq!(grouping.count, 4);
        // Three straight cuts of six ties of three rows; one tie more is allowed for a step in a cut.
        assert!(cut_rows(&grouping, &graph) <= 3 * 7 * 3, "{}", cut_rows(&grouping, &graph));
    }

    #[test]
    fn cuts_are_thinner_than_those_of_minimum_degree() {
        let graph = grid(24, 20);
        let grown = min_degree::partition(&graph, 60);
        let halved = partition(&graph, grown.count);
        assert!(cut_rows(&halved, &graph) < cut_rows(&grown, &graph));
    }

    #[test]
    fn unconnected_pieces_and_odd_numbers_of_parts_are_fine() {
        let mut graph = BodyGraph::default();
        graph.reset(30);
        for b in 0..29 {
            if b != 9 && b != 19 {
                graph.tie(b, b + 1, 5);
            }
        }
        graph.finish();
        let grouping = partition(&graph, 3);
        assert_eq!(grouping.count, 3);
        assert_eq!(cut_rows(&grouping, &graph), 0);
        assert!(partition(&chain(2), 5).count <= 2);
        assert_eq!(partition(&BodyGraph::default(), 4).count, 0);
    }
}
