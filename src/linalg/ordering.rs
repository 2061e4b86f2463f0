//! Fill-reducing elimination orders of a block graph.
//!
//! Minimum degree on the quotient graph with node weights and approximate external degrees (Amestoy, Davis,
//! Duff 1996), under two rules of the mixed form: a multiplier waits until one of its neighbours is gone,
//! and interface nodes are never eliminated. Nodes whose numbers do not depend on the index set go
//! first while that is cheap, so that they are factored once per step.

use super::graph::{BlockGraph, NodeKind};
use super::kernels::Shape;

/// How the block graph is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OrderingKind {
    /// Least arithmetic: minimum degree, or nested dissection where a large problem has less with it.
    #[default]
    MinDegree,
    /// Short critical path, for parallel work and partial refactorization.
    NestedDissection,
}

const NONE: u32 = u32::MAX;

/// A static node is taken before all dynamic ones while its weighted degree is at most this: three joints of six
/// rows. Beyond it, early elimination costs more fill than the once-per-step factor saves.
const STATIC_DEGREE: u32 = 18;

/// Work space of the minimum-degree ordering; keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct MinDegree {
    /// Lists of variables: elements first, then variables, in place of the original neighbours.
    list: Vec<u32>,
    begin: Vec<u32>,
    elements: Vec<u32>,
    length: Vec<u32>,
    /// Boundary of each element (eliminated node) in `boundary`.
    element_begin: Vec<u32>,
    element_end: Vec<u32>,
    element_weight: Vec<u32>,
    boundary: Vec<u32>,
    state: Vec<State>,
    degree: Vec<u32>,
    mark: Vec<u32>,
    stamp: u32,
    outside: Vec<u32>,
    outside_stamp: Vec<u32>,
    /// First and last node of each bucket.
    head: Vec<u32>,
    tail: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    lowest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// May be eliminated.
    Ready,
    /// A multiplier none of whose bodies is gone.
    Waiting,
    /// Must stay.
    Kept,
    /// Eliminated, its boundary still in use.
    Element,
    /// Eliminated and absorbed by a later element.
    Absorbed,
}

impl MinDegree {
    /// Appends the elimination order of all nodes but the interface to `order`. `released` says of a multiplier
    /// that a body of it is gone already (it lies outside of this graph). Returns the operations of a factorization.
    pub fn order(&mut self, graph: &BlockGraph, released: impl Fn(u32) -> bool, order: &mut Vec<u32>) -> u64 {
        self.start(graph, released);
        let mut flops = 0;
        while let Some(pivot) = self.pop(graph) {
            order.push(pivot);
            let border = self.eliminate(graph, pivot);
            flops += Shape { pivots: graph.size[pivot as usize] as usize, border: border as usize }.flops();
        }
        // Multipliers whose bodies are all interface or missing: nothing can go before them.
        for node in 0..graph.nodes() as u32 {
            if self.state[node as usize] == State::Waiting {
                order.push(node);
            }
        }
        flops
    }

    fn start(&mut self, graph: &BlockGraph, released: impl Fn(u32) -> bool) {
        let n = graph.nodes();
        self.list.clear();
        self.list.extend_from_slice(&graph.neighbours);
        self.begin.clear();
        self.begin.extend_from_slice(&graph.start[..n]);
        reset(&mut self.elements, n, 0);
        reset(&mut self.length, n, 0);
        reset(&mut self.element_begin, n, 0);
        reset(&mut self.element_end, n, 0);
        reset(&mut self.element_weight, n, 0);
        self.boundary.clear();
        reset(&mut self.mark, n, 0);
        self.stamp = 1;
        reset(&mut self.outside, n, 0);
        reset(&mut self.outside_stamp, n, 0);
        reset(&mut self.degree, n, 0);
        reset(&mut self.next, n, NONE);
        reset(&mut self.previous, n, NONE);
        self.head.clear();
        self.tail.clear();
        self.lowest = 0;
        self.state.clear();
        for node in 0..n {
            let neighbours = graph.of(node as u32);
            self.length[node] = neighbours.len() as u32;
            // A multiplier on one body goes with it and does not count: without it the fixed end of a chain would look
            // like its middle.
            let counts = |o: u32| graph.kind[o as usize] != NodeKind::Multiplier || graph.of(o).len() > 1;
            self.degree[node] =
                neighbours.iter().filter(|&&o| counts(o)).map(|&o| graph.size[o as usize]).sum();
            self.state.push(match graph.kind[node] {
                NodeKind::Body => State::Ready,
                NodeKind::Multiplier if released(node as u32) => State::Ready,
                NodeKind::Multiplier => State::Waiting,
                NodeKind::Interface => State::Kept,
            });
            if self.state[node] == State::Ready {
                self.push(graph, node as u32);
            }
        }
    }

    /// Buckets: static nodes of small degree first, everything else behind them.
    fn bucket(&self, graph: &BlockGraph, node: u32) -> usize {
        let degree = self.degree[node as usize];
        let first = !graph.dynamic[node as usize] && degree <= STATIC_DEGREE;
        degree as usize + if first { 0 } else { STATIC_DEGREE as usize + 1 }
    }

    fn push(&mut self, graph: &BlockGraph, node: u32) {
        let bucket = self.bucket(graph, node);
        if bucket >= self.head.len() {
            self.head.resize(bucket + 1, NONE);
            self.tail.resize(bucket + 1, NONE);
        }
        // First come, first served: both ends of a chain are eaten in turn, which makes two short paths of one long
        // one.
        let last = self.tail[bucket];
        self.previous[node as usize] = last;
        self.next[node as usize] = NONE;
        if last == NONE {
            self.head[bucket] = node;
        } else {
            self.next[last as usize] = node;
        }
        self.tail[bucket] = node;
        self.lowest = self.lowest.min(bucket);
    }

    fn remove(&mut self, graph: &BlockGraph, node: u32) {
        let bucket = self.bucket(graph, node);
        let (next, previous) = (self.next[node as usize], self.previous[node as usize]);
        match next {
            NONE => self.tail[bucket] = previous,
            _ => self.previous[next as usize] = previous,
        }
        match previous {
            NONE => self.head[bucket] = next,
            _ => self.next[previous as usize] = next,
        }
    }

    fn pop(&mut self, graph: &BlockGraph) -> Option<u32> {
        while self.lowest < self.head.len() {
            let node = self.head[self.lowest];
            if node != NONE {
                self.remove(graph, node);
                return Some(node);
            }
            self.lowest += 1;
        }
        None
    }

    /// Returns the weight of what the pivot touches.
    fn eliminate(&mut self, graph: &BlockGraph, pivot: u32) -> u32 {
        let (first, last, weight) = self.form_element(graph, pivot);
        self.measure_overlaps(graph, first, last);
        for k in first..last {
            let node = self.boundary[k];
            let degree = self.shrink_lists(graph, node, pivot, weight);
            let state = self.state[node as usize];
            if state == State::Ready {
                if degree == self.degree[node as usize] {
                    continue;
                }
                self.remove(graph, node);
            }
            self.degree[node as usize] = degree;
            if state != State::Kept {
                self.state[node as usize] = State::Ready;
                self.push(graph, node);
            }
        }
        weight
    }

    /// The boundary of the new element: neighbours of the pivot and of the elements it absorbs.
    fn form_element(&mut self, graph: &BlockGraph, pivot: u32) -> (usize, usize, u32) {
        let p = pivot as usize;
        self.stamp += 1;
        let stamp = self.stamp;
        self.mark[p] = stamp;
        let first = self.boundary.len();
        let mut weight = 0;
        let (begin, elements, length) =
            (self.begin[p] as usize, self.elements[p] as usize, self.length[p] as usize);
        for k in begin..begin + length {
            let item = self.list[k] as usize;
            if k < begin + elements {
                if self.state[item] != State::Element {
                    continue;
                }
                for b in self.element_begin[item] as usize..self.element_end[item] as usize {
                    weight += self.add_to_boundary(graph, self.boundary[b], stamp);
                }
                self.state[item] = State::Absorbed;
            } else {
                weight += self.add_to_boundary(graph, item as u32, stamp);
            }
        }
        self.state[p] = State::Element;
        self.element_begin[p] = first as u32;
        self.element_end[p] = self.boundary.len() as u32;
        self.element_weight[p] = weight;
        (first, self.boundary.len(), weight)
    }

    fn add_to_boundary(&mut self, graph: &BlockGraph, node: u32, stamp: u32) -> u32 {
        let n = node as usize;
        let gone = matches!(self.state[n], State::Element | State::Absorbed);
        if gone || self.mark[n] == stamp {
            return 0;
        }
        self.mark[n] = stamp;
        self.boundary.push(node);
        graph.size[n]
    }

    /// For every older element e that meets the new one: the weight of its boundary outside the new one.
    fn measure_overlaps(&mut self, graph: &BlockGraph, first: usize, last: usize) {
        for k in first..last {
            let node = self.boundary[k] as usize;
            let begin = self.begin[node] as usize;
            for q in begin..begin + self.elements[node] as usize {
                let e = self.list[q] as usize;
                if self.state[e] != State::Element {
                    continue;
                }
                if self.outside_stamp[e] != self.stamp {
                    self.outside_stamp[e] = self.stamp;
                    self.outside[e] = self.element_weight[e];
                }
                self.outside[e] = self.outside[e].saturating_sub(graph.size[node]);
            }
        }
    }

    /// Drops absorbed elements and covered variables from the list of `node`, enters the new element, and returns
    /// the new approximate degree.
    fn shrink_lists(&mut self, graph: &BlockGraph, node: u32, pivot: u32, weight: u32) -> u32 {
        let n = node as usize;
        let begin = self.begin[n] as usize;
        let (elements, length) = (self.elements[n] as usize, self.length[n] as usize);
        let mut degree = weight - graph.size[n];
        let mut kept = begin;
        for k in begin..begin + elements {
            let e = self.list[k] as usize;
            if self.state[e] != State::Element {
                continue;
            }
            if self.outside[e] == 0 {
                // Everything it reaches the new element reaches too.
                self.state[e] = State::Absorbed;
                continue;
            }
            degree += self.outside[e];
            self.list[kept] = e as u32;
            kept += 1;
        }
        let count = kept - begin;
        let mut write = kept;
        let mut displaced = NONE;
        for k in begin + elements..begin + length {
            let other = self.list[k];
            let covered = self.mark[other as usize] == self.stamp
                || matches!(self.state[other as usize], State::Element | State::Absorbed);
            if covered {
                continue;
            }
            degree += graph.size[other as usize];
            // The new element takes the place of the first variable, which moves to the end.
            if displaced == NONE && write == kept {
                displaced = other;
                write += 1;
            } else {
                self.list[write] = other;
                write += 1;
            }
        }
        self.list[kept] = pivot;
        if displaced != NONE {
            self.list[write] = displaced;
            write += 1;
        } else {
            write = kept + 1;
        }
        self.elements[n] = count as u32 + 1;
        self.length[n] = (write - begin) as u32;
        degree
    }
}

fn reset<T: Copy>(v: &mut Vec<T>, n: usize, value: T) {
    v.clear();
    v.resize(n, value);
}
