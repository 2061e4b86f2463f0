//! Where every number of a problem goes: made once per topology.

use super::crowds::fold_crowds;
use super::touching::Touching;
use super::{InterfaceRows, MixedOptions};
use crate::linalg::dissection;
use crate::linalg::graph::{BlockGraph, NodeKind};
use crate::linalg::kernels::{Group, PivotRows, Place, Sides, Varying};
use crate::linalg::ordering::{MinDegree, OrderingKind};
use crate::linalg::symbolic::{Layout, NONE, Symbolic};
use crate::solver::{RowBlock, RowProblem};
use std::ops::Range;

/// A block of A between two nodes: which, and its local row and column.
#[derive(Clone, Copy, Debug)]
pub struct CouplingPlace {
    /// Number of the coupling.
    pub coupling: u32,
    /// Local row of the node that is eliminated later, local row of the other, and their unknowns.
    pub row: u32,
    pub column: u32,
    pub rows: u32,
    pub columns: u32,
    /// Are the block's rows those of the node that is eliminated first?
    pub transposed: bool,
}

/// A Jacobian block that stays in the matrix.
#[derive(Clone, Copy, Debug)]
pub struct JacobianPlace {
    /// First Jacobian number of the body's six in the first row.
    pub entry: u32,
    /// Jacobian numbers from row to row.
    pub stride: u32,
    /// Number of rows.
    pub rows: u32,
    /// Local row of the multiplier.
    pub multiplier: u32,
    /// Local row of the body.
    pub body: u32,
    /// Number of the body's unknowns.
    pub width: u32,
    /// Numbers come from the interface rows.
    pub interface: bool,
}

/// Lists of items per front, one after another.
#[derive(Clone, Debug)]
pub struct Lists<T> {
    start: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { start: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    /// The items of a front.
    pub fn of(&self, front: usize) -> &[T] {
        &self.items[self.start[front] as usize..self.start[front + 1] as usize]
    }

    fn build(fronts: usize, mut items: Vec<(u32, T)>) -> Self {
        items.sort_by_key(|&(front, _)| front);
        let mut start = vec![0u32; fronts + 1];
        for &(front, _) in &items {
            start[front as usize + 1] += 1;
        }
        for f in 0..fronts {
            start[f + 1] += start[f];
        }
        Self { start, items: items.into_iter().map(|(_, item)| item).collect() }
    }
}

/// The plan of a topology.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Bodies that each front eliminates, with their local rows and numbers of unknowns.
    pub pivot_bodies: Lists<(u32, u32, u32)>,
    /// Jacobian blocks of each front.
    pub jacobians: Lists<JacobianPlace>,
    /// Couplings of each front.
    pub couplings: Lists<CouplingPlace>,
    /// The front that depends on each row, or [`NONE`] for rows without a body.
    pub row_front: Vec<u32>,
    /// The end of the rows from each row on that depend on the same front.
    pub row_end: Vec<u32>,
    /// Where a body's unknowns are among the local vectors.
    pub body_at: Vec<u32>,
    /// Where a multiplier row is among the local vectors, or [`NONE`] for folded rows.
    pub row_at: Vec<u32>,
    /// The way of right-hand sides and answers.
    pub sides: Sides,
    /// Rows by bodies.
    pub touching: Touching,
    /// Most rows of a group.
    pub most_rows: usize,
    bodies: usize,
    width: Vec<u8>,
    coupled: Vec<(u32, u32)>,
    /// Blocks as they are treated: `fold` is set where [`folds`] says so, without regard to other blocks.
    blocks: Vec<RowBlock>,
    /// Which blocks had rows with bounds when it was made: those are eliminated later.
    pub bounded: Vec<bool>,
    block_bodies: Vec<u32>,
    interface_blocks: Vec<RowBlock>,
    interface_bodies: Vec<u32>,
}

/// Pivots by front; multiplier rows that stand together: first row, number, place among the local vectors.
type Places = (Vec<(u32, PivotRows)>, Vec<(u32, u32, u32)>);

impl Plan {
    /// Is this the plan of the problem's topology?
    pub fn fits(&self, problem: &RowProblem, interface: &InterfaceRows) -> bool {
        self.bodies == problem.bodies()
            && same(&self.width, &problem.width)
            && self.coupled.iter().copied().eq(problem.couplings.iter().map(|c| (c.a, c.b)))
            && self.row_at.len() == problem.rows()
            && self.blocks.len() == problem.blocks.len()
            && self.blocks.iter().zip(&problem.blocks).all(|(own, block)| *own == treated(problem, block))
            && same(&self.block_bodies, &problem.block_bodies)
            && self.interface_blocks == interface.blocks
            && same(&self.interface_bodies, &interface.block_bodies)
    }

    /// Where a body's unknowns are among the local vectors.
    #[inline]
    pub fn place_of(&self, problem: &RowProblem, body: u32) -> Range<usize> {
        let at = self.body_at[body as usize] as usize;
        at..at + problem.width_of(body as usize)
    }

    /// Orders, analyses and lays out a problem.
    pub fn build(
        problem: &RowProblem,
        interface: &InterfaceRows,
        bounded: &[bool],
        options: &MixedOptions,
        work: &mut MinDegree,
    ) -> (Self, Symbolic, Varying) {
        let mut graph = BlockGraph::default();
        let blocks: Vec<RowBlock> = problem.blocks.iter().map(|block| treated(problem, block)).collect();
        let mut folded = blocks.clone();
        fold_crowds(problem, &mut folded);
        let nodes = add_nodes(problem, (&folded, bounded), interface, &mut graph);
        let order = dissection::order(&graph, options.ordering, work);
        let layout = match options.ordering {
            OrderingKind::MinDegree => Layout::Sequence,
            OrderingKind::NestedDissection => Layout::Subtrees,
        };
        let symbolic = Symbolic::build(&graph, &order, layout);
        let mut plan = Self {
            bodies: problem.bodies(),
            width: problem.width.clone(),
            coupled: problem.couplings.iter().map(|c| (c.a, c.b)).collect(),
            blocks,
            bounded: bounded.to_vec(),
            block_bodies: problem.block_bodies.clone(),
            interface_blocks: interface.blocks.clone(),
            interface_bodies: interface.block_bodies.clone(),
            ..Self::default()
        };
        plan.touching = Touching::new(problem);
        let (mut rows, multipliers) = plan.place_unknowns(problem, &nodes, &symbolic);
        plan.place_jacobians(problem, interface, &nodes, &symbolic);
        plan.place_couplings(problem, &symbolic);
        let (mut groups, places) = plan.place_groups(problem, &folded, &symbolic);
        plan.row_end = ends(&plan.row_front);
        let numbers = problem.jacobian.len();
        let varying = Varying::new(&symbolic, &mut rows, &mut groups, places, problem.rows(), numbers);
        // Bodies hear of their rows in the order of the fronts.
        groups.sort_by_key(|&(front, _)| front);
        plan.sides = Sides::new(
            (0..).map(|node| problem.width_of(node) as u32).zip(plan.body_at.iter().copied()).collect(),
            multipliers,
            groups.iter().map(|&(_, group)| group).collect(),
            problem.block_bodies.clone(),
            (problem.rows(), numbers, symbolic.locals),
        );
        plan.sides.meet(&symbolic);
        (plan, symbolic, varying)
    }

    fn place_unknowns(&mut self, problem: &RowProblem, nodes: &Nodes, symbolic: &Symbolic) -> Places {
        let at = |node: u32| {
            let front = &symbolic.fronts[symbolic.node_front[node as usize] as usize];
            front.local as u32 + symbolic.node_local[node as usize]
        };
        self.body_at = (0..problem.bodies() as u32).map(at).collect();
        self.row_at = vec![NONE; problem.rows()];
        self.row_front = vec![NONE; problem.rows()];
        let place = |node: u32| (symbolic.node_front[node as usize], symbolic.node_local[node as usize]);
        let width = |body: u32| problem.width_of(body as usize) as u32;
        let bodies =
            (0..problem.bodies() as u32).map(|body| (place(body).0, (body, place(body).1, width(body))));
        self.pivot_bodies = Lists::build(symbolic.fronts.len(), bodies.collect());
        let (mut pivot_rows, mut multipliers) = (Vec::new(), Vec::new());
        for (block, &node) in problem.blocks.iter().zip(&nodes.multiplier) {
            if node == NONE {
                continue;
            }
            let (front, local) = place(node);
            pivot_rows.push((front, PivotRows { row: block.row, rows: block.rows, local }));
            multipliers.push((block.row, block.rows, at(node)));
            self.row_front[block.row as usize..(block.row + block.rows) as usize].fill(front);
            for r in 0..block.rows {
                self.row_at[(block.row + r) as usize] = at(node) + r;
            }
        }
        (pivot_rows, multipliers)
    }

    fn place_couplings(&mut self, problem: &RowProblem, symbolic: &Symbolic) {
        let mut places = Vec::new();
        for (coupling, c) in (0..).zip(&problem.couplings) {
            let transposed = symbolic.before(c.a, c.b);
            let (first, later) = if transposed { (c.a, c.b) } else { (c.b, c.a) };
            let front = symbolic.node_front[first as usize];
            let local = |node| symbolic.local_of(front, node).expect("neighbours meet in a front");
            let width = |node: u32| problem.width_of(node as usize) as u32;
            let (row, column, rows, columns) = (local(later), local(first), width(later), width(first));
            places.push((front, CouplingPlace { coupling, row, column, rows, columns, transposed }));
        }
        self.couplings = Lists::build(symbolic.fronts.len(), places);
    }

    fn place_jacobians(
        &mut self,
        problem: &RowProblem,
        interface: &InterfaceRows,
        nodes: &Nodes,
        symbolic: &Symbolic,
    ) {
        let mut places = Vec::new();
        let mut add = |block: &RowBlock, bodies: &[u32], node: u32, interface: bool| {
            for (k, &body) in bodies.iter().enumerate() {
                let first = if symbolic.before(body, node) { body } else { node };
                let front = symbolic.node_front[first as usize];
                let local = |n| symbolic.local_of(front, n).expect("neighbours meet in a front");
                places.push((
                    front,
                    JacobianPlace {
                        entry: block.entry + 6 * k as u32,
                        stride: 6 * block.bodies,
                        rows: block.rows,
                        multiplier: local(node),
                        body: local(body),
                        width: problem.width_of(body as usize) as u32,
                        interface,
                    },
                ));
            }
        };
        for (block, &node) in problem.blocks.iter().zip(&nodes.multiplier) {
            if node != NONE {
                add(block, problem.bodies_of(block), node, false);
            }
        }
        for (k, block) in interface.blocks.iter().enumerate() {
            let bodies = &interface.block_bodies[block.body as usize..][..block.bodies as usize];
            add(block, bodies, nodes.interface + k as u32, true);
        }
        self.jacobians = Lists::build(symbolic.fronts.len(), places);
    }

    fn place_groups(
        &mut self,
        problem: &RowProblem,
        blocks: &[RowBlock],
        symbolic: &Symbolic,
    ) -> (Vec<(u32, Group)>, Vec<Place>) {
        let (mut groups, mut places) = (Vec::new(), Vec::new());
        for mut group in fold_groups(problem, blocks) {
            let bodies = &problem.block_bodies[group.body as usize..][..group.bodies as usize];
            let Some(first) = bodies.iter().copied().reduce(|a, b| if symbolic.before(a, b) { a } else { b })
            else {
                continue;
            };
            let front = symbolic.node_front[first as usize];
            group.place = places.len() as u32;
            for (k, &body) in bodies.iter().enumerate() {
                let local = symbolic.local_of(front, body).expect("neighbours meet in a front");
                let width = problem.width_of(body as usize) as u32;
                group.narrow |= width < 6;
                places.push(Place { column: k as u32, local, width });
            }
            places[group.place as usize..].sort_by_key(|p| p.local);
            self.row_front[group.row as usize..(group.row + group.rows) as usize].fill(front);
            self.most_rows = self.most_rows.max(group.rows as usize);
            groups.push((front, group));
        }
        (groups, places)
    }
}

/// Per item, where its stretch of equal items ends.
fn ends(items: &[u32]) -> Vec<u32> {
    let mut ends: Vec<u32> = (1..=items.len() as u32).collect();
    for i in (1..items.len()).rev() {
        if items[i - 1] == items[i] {
            ends[i - 1] = ends[i];
        }
    }
    ends
}

/// Are two lists the same? Short ones have just been written number by number, and wide loads would wait until that is in memory.
fn same<T: PartialEq>(a: &[T], b: &[T]) -> bool {
    match a.len() {
        n if n != b.len() => false,
        0..64 => a.iter().zip(b).all(|(a, b)| a == b),
        _ => a == b,
    }
}

/// The block with `fold` as it is treated here.
fn treated(problem: &RowProblem, block: &RowBlock) -> RowBlock {
    RowBlock { fold: block.fold || folds(problem, block), ..*block }
}

/// Compliance, as a share of the row's own mobility, from which on a joint may be folded.
const SOFT: f64 = 2e-10;

/// Is a joint that could stay a multiplier better folded into its bodies? A multiplier of six rows doubles the unknowns of a
/// cable or a net. Folding divides by C, which costs digits: −log₁₀ of C relative to J M⁻¹ Jᵀ of its rows, some more along a
/// chain, and a refinement gives back what was there before it.
fn folds(problem: &RowProblem, block: &RowBlock) -> bool {
    let bodies = problem.bodies_of(block);
    if block.rows != 6 || bodies.len() > 2 {
        return false;
    }
    let mut mobility = [[0.0; 6]; 2];
    for (m, &body) in mobility.iter_mut().zip(bodies) {
        let mass = &problem.mass[body as usize];
        (0..problem.width_of(body as usize)).for_each(|c| m[c] = 1.0 / mass[7 * c]);
    }
    (0..block.rows).all(|row| {
        let mut a = 0.0;
        for k in 0..bodies.len() {
            let j = problem.jacobian_of(block, row, k as u32);
            a += (0..6).map(|c| j[c] * j[c] * mobility[k][c]).sum::<f64>();
        }
        problem.compliance[(block.row + row) as usize] >= SOFT * a
    })
}

/// Node numbers: bodies first, then multipliers, then the interface.
struct Nodes {
    /// Per block; NONE for folding blocks.
    multiplier: Vec<u32>,
    interface: u32,
}

fn add_nodes(
    problem: &RowProblem,
    (blocks, bounded): (&[RowBlock], &[bool]),
    interface: &InterfaceRows,
    graph: &mut BlockGraph,
) -> Nodes {
    for body in 0..problem.bodies() {
        graph.node(problem.width_of(body) as u32, NodeKind::Body, false);
    }
    problem.couplings.iter().for_each(|c| graph.edge(c.a, c.b));
    let mut multiplier = Vec::with_capacity(blocks.len());
    for (block, &bounded) in blocks.iter().zip(bounded) {
        let bodies = problem.bodies_of(block);
        if block.rows == 0 {
            multiplier.push(NONE);
        } else if block.fold {
            multiplier.push(NONE);
            for (k, &a) in bodies.iter().enumerate() {
                graph.dynamic[a as usize] |= bounded;
                for &b in &bodies[..k] {
                    graph.edge(a, b);
                }
            }
        } else {
            let node = graph.node(block.rows, NodeKind::Multiplier, bounded);
            multiplier.push(node);
            for &body in bodies {
                graph.edge(node, body);
            }
        }
    }
    let first = graph.nodes() as u32;
    for block in &interface.blocks {
        let node = graph.node(block.rows, NodeKind::Interface, false);
        for k in 0..block.bodies {
            graph.edge(node, interface.block_bodies[(block.body + k) as usize]);
        }
    }
    graph.finish();
    Nodes { multiplier, interface: first }
}

/// Joins folding blocks that follow each other on the same bodies.
fn fold_groups(problem: &RowProblem, blocks: &[RowBlock]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for block in blocks.iter().filter(|b| b.fold && b.rows > 0) {
        if let Some(last) = groups.last_mut() {
            let bodies = |at: u32, n: u32| &problem.block_bodies[at as usize..(at + n) as usize];
            let follows = last.row + last.rows == block.row
                && last.entry + 6 * last.rows * last.bodies == block.entry
                && bodies(last.body, last.bodies) == problem.bodies_of(block);
            if follows {
                last.rows += block.rows;
                continue;
            }
        }
        groups.push(Group {
            row: block.row,
            rows: block.rows,
            entry: block.entry,
            bodies: block.bodies,
            place: 0,
            body: block.body,
            narrow: false,
        });
    }
    groups
}
