//! Small vertex separators of weighted graphs.
//!
//! The graph is halved with few ties between the halves; the border of a half separates it from the other. Then nodes leave the
//! separator for one side and pull their neighbours of the other side into it, as long as that makes it lighter (Ashcraft and
//! Liu 1998). The same graph always gives the same separator.

use crate::graph::bisection::{Level, halve};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The share of the weight that a side may have at most.
const HEAVIEST: f64 = 0.58;

/// Moves without gain after which a pass ends.
const PATIENCE: usize = 40;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On one side.
    Low,
    /// On the other side.
    High,
    /// Between them.
    Cut,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Low => Side::High,
            Side::High => Side::Low,
            Side::Cut => Side::Cut,
        }
    }
}

/// The side of every node: no tie leads from one side to the other. The graph must be connected.
pub fn separate(level: &Level) -> Vec<Side> {
    let mut best: Option<Separator<'_>> = None;
    for high in [halve(level, 0.5), halve_between_landmarks(level)] {
        // The border of either half separates it from the other.
        for half in [false, true] {
            let mut cut = Separator::new(level, border_of(level, &high, half));
            cut.refine();
            if best.as_ref().is_none_or(|b| cut.score() < b.score()) {
                best = Some(cut);
            }
        }
    }
    best.map_or_else(Vec::new, |cut| cut.side)
}

fn border_of(level: &Level, high: &[bool], half: bool) -> Vec<Side> {
    let touches = |i: usize| level.of(i).iter().any(|&(o, _)| high[o as usize] != high[i]);
    let side = |i: usize| match high[i] {
        h if h == half && touches(i) => Side::Cut,
        true => Side::High,
        false => Side::Low,
    };
    (0..level.len()).map(side).collect()
}

/// The thinnest of the cuts half-way between two ends of the graph. Growth from one end of a net goes diagonally or around a corner
/// and cuts two cables where one would do; the difference of the distances to two corners is a coordinate along one side.
fn halve_between_landmarks(level: &Level) -> Vec<bool> {
    let far = landmarks(level);
    let mut best: Option<(u64, Vec<bool>)> = None;
    for (k, a) in far.iter().enumerate() {
        for b in &far[..k] {
            let key: Vec<u32> = (0..level.len()).map(|i| level.len() as u32 + a[i] - b[i]).collect();
            let high = upper_half(level, &key);
            let cut = cut_of(level, &high);
            if best.as_ref().is_none_or(|b| cut < b.0) {
                best = Some((cut, high));
            }
        }
    }
    best.map_or_else(|| vec![false; level.len()], |(_, high)| high)
}

/// Distances to four nodes far from each other.
fn landmarks(level: &Level) -> Vec<Vec<u32>> {
    let mut far: Vec<Vec<u32>> = Vec::new();
    if level.is_empty() {
        return far;
    }
    let first = distances(level, 0);
    for k in 0..4 {
        let apart = |i: usize| match k {
            0 => first[i],
            _ => far.iter().map(|d| d[i]).min().unwrap_or(0),
        };
        let Some(end) = (0..level.len()).max_by_key(|&i| (apart(i), Reverse(i))) else { break };
        far.push(distances(level, end));
    }
    far
}

/// Ties from a node to every other.
fn distances(level: &Level, from: usize) -> Vec<u32> {
    let mut distance = vec![u32::MAX; level.len()];
    let mut queue = Vec::with_capacity(level.len());
    queue.push(from as u32);
    distance[from] = 0;
    let mut k = 0;
    while k < queue.len() {
        let node = queue[k] as usize;
        for &(o, _) in level.of(node) {
            if distance[o as usize] == u32::MAX {
                distance[o as usize] = distance[node] + 1;
                queue.push(o);
            }
        }
        k += 1;
    }
    // What cannot be reached is not far.
    distance.iter_mut().filter(|d| **d == u32::MAX).for_each(|d| *d = 0);
    distance
}

/// The half of the work with the larger keys; equal keys by number. Keys are below twice the number of nodes.
fn upper_half(level: &Level, key: &[u32]) -> Vec<bool> {
    let mut work = vec![0u64; 2 * level.len() + 1];
    for (i, &k) in key.iter().enumerate() {
        work[k as usize] += level.work[i];
    }
    let half = work.iter().sum::<u64>() / 2;
    let (mut below, mut middle) = (0, 0);
    while middle < work.len() && below + work[middle] <= half {
        below += work[middle];
        middle += 1;
    }
    let mut high = Vec::with_capacity(level.len());
    for (i, &k) in key.iter().enumerate() {
        let here = k as usize == middle;
        let low = (k as usize) < middle || (here && below + level.work[i] <= half);
        if here && low {
            below += level.work[i];
        }
        high.push(!low);
    }
    high
}

fn cut_of(level: &Level, high: &[bool]) -> u64 {
    let across = |i: usize| {
        let ties = level.of(i).iter().filter(move |&&(o, _)| high[i] && !high[o as usize]);
        ties.map(|&(_, w)| u64::from(w)).sum::<u64>()
    };
    (0..level.len()).map(across).sum()
}

/// A separator being improved.
struct Separator<'a> {
    level: &'a Level,
    side: Vec<Side>,
    /// Weight of the low side, of the high side, and of the separator.
    weight: [u64; 3],
    total: u64,
    /// Pass in which a node left the separator last.
    moved: Vec<u32>,
    queue: BinaryHeap<(i64, Reverse<u32>, bool)>,
}

impl<'a> Separator<'a> {
    fn new(level: &'a Level, side: Vec<Side>) -> Self {
        let mut weight = [0; 3];
        for (i, &s) in side.iter().enumerate() {
            weight[s as usize] += level.work[i];
        }
        let moved = vec![0; level.len()];
        Self { level, side, weight, total: weight.iter().sum(), moved, queue: BinaryHeap::new() }
    }

    /// How much a side is over its share, the separator, how unequal the sides are: less is better.
    fn score(&self) -> (u64, u64, u64) {
        let [low, high, cut] = self.weight;
        let most = (HEAVIEST * self.total as f64) as u64;
        (low.max(high).saturating_sub(most), cut, low.abs_diff(high))
    }

    /// What the separator loses when a node of it goes to a side.
    fn gain(&self, node: u32, to: Side) -> i64 {
        let mut gain = self.level.work[node as usize] as i64;
        for &(o, _) in self.level.of(node as usize) {
            if self.side[o as usize] == to.other() {
                gain -= self.level.work[o as usize] as i64;
            }
        }
        gain
    }

    fn offer(&mut self, node: u32) {
        for to in [Side::Low, Side::High] {
            let gain = self.gain(node, to);
            self.queue.push((gain, Reverse(node), to == Side::High));
        }
    }

    fn refine(&mut self) {
        for pass in 1..=10 {
            if !self.pass(pass) {
                break;
            }
        }
    }

    /// Moves nodes out of the separator, each once, and goes back to the best point on the way. Was there a better one?
    fn pass(&mut self, pass: u32) -> bool {
        self.queue.clear();
        for node in 0..self.level.len() as u32 {
            if self.side[node as usize] == Side::Cut {
                self.offer(node);
            }
        }
        let begin = self.score();
        let mut best = (begin, 0);
        // Nodes in the order of their changes, with the side they were on.
        let mut changes: Vec<(u32, Side)> = Vec::new();
        let mut since = 0;
        while let Some((gain, Reverse(node), high)) = self.queue.pop() {
            let to = if high { Side::High } else { Side::Low };
            let stale = self.side[node as usize] != Side::Cut
                || self.moved[node as usize] == pass
                || gain != self.gain(node, to);
            if stale || !self.fits(node, to) {
                continue;
            }
            self.moved[node as usize] = pass;
            self.leave(node, to, &mut changes);
            since += 1;
            if self.score() < best.0 {
                best = (self.score(), changes.len());
                since = 0;
            }
            if since > PATIENCE {
                break;
            }
        }
        for &(node, was) in changes[best.1..].iter().rev() {
            self.set(node, was);
        }
        best.0 < begin
    }

    /// Would the side stay within its share, or be the lighter one?
    fn fits(&self, node: u32, to: Side) -> bool {
        let after = self.weight[to as usize] + self.level.work[node as usize];
        after as f64 <= HEAVIEST * self.total as f64 || after <= self.weight[to.other() as usize]
    }

    fn set(&mut self, node: u32, to: Side) {
        let weight = self.level.work[node as usize];
        self.weight[self.side[node as usize] as usize] -= weight;
        self.weight[to as usize] += weight;
        self.side[node as usize] = to;
    }

    fn leave(&mut self, node: u32, to: Side, changes: &mut Vec<(u32, Side)>) {
        let level = self.level;
        changes.push((node, Side::Cut));
        self.set(node, to);
        for &(o, _) in level.of(node as usize) {
            if self.side[o as usize] == to.other() {
                changes.push((o, to.other()));
                self.set(o, Side::Cut);
                if self.moved[o as usize] != self.moved[node as usize] {
                    self.offer(o);
                }
                for &(n, _) in level.of(o as usize) {
                    self.offer_again(n);
                }
            } else {
                self.offer_again(o);
            }
        }
    }

    /// The neighbourhood of a node in the separator has changed.
    fn offer_again(&mut self, node: u32) {
        if self.side[node as usize] == Side::Cut {
            self.offer(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(wide: u32, high: u32) -> Level {
        let mut level = Level { start: vec![0], ..Level::default() };
        for y in 0..high {
            for x in 0..wide {
                let at = |x: u32, y: u32| (y * wide + x, 1);
                if x > 0 {
                    level.ties.push(at(x - 1, y));
                }
                if x + 1 < wide {
                    level.ties.push(at(x + 1, y));
                }
                if y > 0 {
                    level.ties.push(at(x, y - 1));
                }
                if y + 1 < high {
                    level.ties.push(at(x, y + 1));
                }
                level.work.push(6);
                level.start.push(level.ties.len() as u32);
            }
        }
        level
    }

    fn check(level: &Level, side: &[Side]) -> [u64; 3] {
        let mut weight = [0; 3];
        for i in 0..level.len() as u32 {
            weight[side[i as usize] as usize] += level.work[i as usize];
            for &(o, _) in level.of(i as usize) {
                let (a, b) = (side[i as usize], side[o as usize]);
                assert!(a == b || a == Side::Cut || b == Side::Cut);
            }
        }
        weight
    }

    #[test]
    fn a_long_grid_is_cut_across() {
        let level = grid(120, 14);
        let [low, high, cut] = check(&level, &separate(&level));
        // Straight across are fourteen nodes of weight six; two more for a step in the cut.
        assert!(cut <= 6 * 16, "{cut}");
        let most = HEAVIEST * level.work.iter().sum::<u64>() as f64;
        assert!(low.max(high) as f64 <= most, "{low} {high}");
    }

    #[test]
    fn a_chain_is_cut_at_one_node() {
        let level = grid(1000, 1);
        let weight = check(&level, &separate(&level));
        assert_eq!(weight[2], 6);
    }

    #[test]
    fn odd_graphs_are_separated_too() {
        for level in [Level { start: vec![0], ..Level::default() }, grid(1, 1), grid(2, 1), grid(2, 2)] {
            let side = separate(&level);
            assert_eq!(side.len(), level.len());
            check(&level, &side);
        }
        // A star: its centre is the separator, or all of it one side.
        let n = 200;
        let mut star = Level { start: vec![0], ..Level::default() };
        star.ties.extend((1..n).map(|i| (i, 1)));
        star.start.push(n - 1);
        for k in 0..n - 1 {
            star.ties.push((0, 1));
            star.start.push(n + k);
        }
        star.work = vec![1; n as usize];
        let weight = check(&star, &separate(&star));
        assert_eq!(weight[2], 1);
    }
}
