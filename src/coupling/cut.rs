//! Cutting one problem into partitions and an interface (000 eqs. 13–14).
//!
//! The paper's interface Γ are the constraints between partitions ([`Seam::Rows`]). Where bodies touch at
//! many points that is a wide interface: four contact points are twelve rows. [`Seam::Bodies`] may instead
//! let a body take part on both sides, with a share of its mass in each, and glue the copies together by
//! six rows with no compliance; the constraints then lie inside a partition. Both describe the same
//! problem: eliminating the glue gives back the whole body. Per body the narrower seam is taken.

use super::copy_map::CopyMap;
use crate::graph::Grouping;
use crate::solver::mixed::InterfaceRows;
use crate::solver::{Coupling, RowBlock, RowKind, RowProblem};
use std::collections::BTreeMap;

/// What may lie between partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Seam {
    /// The constraints whose bodies are in different partitions, as in the paper.
    Rows,
    /// Those, or six rows that glue two copies of a body, whichever are fewer.
    #[default]
    Bodies,
}

/// Marks an interface row that glues copies of a body.
pub const GLUE: u32 = u32::MAX;

/// How one stretch of a partition's interface rows is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// The bodies of a block that are in this partition: their columns are listed in `columns`.
    Block { block: u32, column: u32, columns: u32 },
    /// A copy of a body, with its sign.
    Glue { positive: bool },
}

/// The shape of one partition: numbers of the whole problem it takes over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Bodies, ascending.
    pub bodies: Vec<u32>,
    /// Is this the copy whose velocity counts?
    pub owned: Vec<bool>,
    /// Share of mass and momentum.
    pub share: Vec<f64>,
    /// Blocks inside, ascending.
    pub blocks: Vec<u32>,
    /// Rows inside, in the order of the blocks.
    pub rows: Vec<u32>,
    /// Interface rows that touch this partition, by their number in the interface.
    pub interface: Vec<u32>,
    /// Rows inside that touch a copy whose velocity does not count: the first of those that stand together, and how many.
    pub on_copies: Vec<(u32, u32)>,
    /// Its rows in the whole, as stretches.
    pub row_runs: CopyMap,
    /// The bodies whose velocity counts here, as stretches.
    pub owned_runs: CopyMap,
    /// All its bodies, and the Jacobian numbers of its rows, as stretches; how many of these there are.
    body_runs: CopyMap,
    entry_runs: CopyMap,
    entries: u32,
    pieces: Vec<Piece>,
    columns: Vec<u32>,
    width: Vec<u8>,
    /// Couplings inside: number, and the two nodes here.
    couplings: Vec<(u32, u32, u32)>,
    local_blocks: Vec<RowBlock>,
    local_bodies: Vec<u32>,
    seam_blocks: Vec<RowBlock>,
    seam_bodies: Vec<u32>,
}

/// The shape of all partitions and of what lies between them. Made once per topology and grouping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cut {
    /// Partitions.
    pub parts: Vec<Part>,
    /// Per interface row the row of the whole problem, or [`GLUE`].
    pub interface: Vec<u32>,
    /// Blocks between partitions.
    pub between: Vec<u32>,
    seam: Seam,
    /// The grouping asked for, and the same with coupled nodes in one partition.
    asked: Grouping,
    grouping: Grouping,
    coupled: Vec<(u32, u32)>,
    width: Vec<u8>,
    blocks: Vec<RowBlock>,
    block_bodies: Vec<u32>,
}

impl Cut {
    /// Is this the cut of that problem, grouping and seam?
    pub fn fits(&self, problem: &RowProblem, grouping: &Grouping, seam: Seam) -> bool {
        self.seam == seam
            && self.asked == *grouping
            && self.coupled.iter().copied().eq(problem.couplings.iter().map(|c| (c.a, c.b)))
            && self.width == problem.width
            && self.blocks == problem.blocks
            && self.block_bodies == problem.block_bodies
    }

    /// Cuts a problem; `grouping` has one entry per body.
    ///
    /// # Panics
    /// If the grouping is not one of this problem's bodies.
    pub fn new(problem: &RowProblem, grouping: &Grouping, seam: Seam) -> Cut {
        assert_eq!(grouping.of.len(), problem.bodies(), "one partition number per body");
        let together = grouping.joined(problem.couplings.iter().map(|c| (c.a, c.b)));
        let copies = match seam {
            Seam::Rows => Vec::new(),
            Seam::Bodies => choose_copies(problem, &together),
        };
        let mut cut = Cut {
            parts: vec![Part::default(); together.count as usize],
            interface: Vec::new(),
            between: Vec::new(),
            seam,
            asked: grouping.clone(),
            grouping: together,
            coupled: problem.couplings.iter().map(|c| (c.a, c.b)).collect(),
            width: problem.width.clone(),
            blocks: problem.blocks.clone(),
            block_bodies: problem.block_bodies.clone(),
        };
        cut.place_bodies(&copies);
        for (b, block) in problem.blocks.iter().enumerate() {
            cut.place_block(problem, b as u32, block);
        }
        cut.glue(problem, &copies);
        cut.parts.iter_mut().for_each(|part| part.finish(problem));
        cut
    }

    /// The partition whose velocity of a body counts.
    pub fn owner(&self, body: u32) -> u32 {
        self.grouping.of[body as usize]
    }

    /// Rows between partitions.
    pub fn interface_rows(&self) -> usize {
        self.interface.len()
    }

    fn place_bodies(&mut self, copies: &[(u32, u32)]) {
        let n = self.grouping.of.len();
        let mut count = vec![1u32; n];
        copies.iter().for_each(|&(body, _)| count[body as usize] += 1);
        let owned = (0..n as u32).map(|b| (b, self.grouping.of[b as usize], true));
        let mut all: Vec<(u32, u32, bool)> =
            owned.chain(copies.iter().map(|&(b, p)| (b, p, false))).collect();
        all.sort_unstable();
        for (body, part, owned) in all {
            let part = &mut self.parts[part as usize];
            part.bodies.push(body);
            part.owned.push(owned);
            part.share.push(1.0 / f64::from(count[body as usize]));
        }
    }

    /// Inside the partition that has all of the block's bodies (the one that owns most of them), or in the interface.
    fn place_block(&mut self, problem: &RowProblem, b: u32, block: &RowBlock) {
        let bodies = problem.bodies_of(block);
        let mut best: Option<(usize, u32)> = None;
        let mut touched: Vec<u32> = bodies.iter().map(|&x| self.grouping.of[x as usize]).collect();
        touched.sort_unstable();
        touched.dedup();
        for &part in &touched {
            let has_all = bodies.iter().all(|&x| self.parts[part as usize].local(x).is_some());
            let owns = bodies.iter().filter(|&&x| self.grouping.of[x as usize] == part).count();
            if has_all && best.is_none_or(|(most, _)| owns > most) {
                best = Some((owns, part));
            }
        }
        if let Some((_, part)) = best {
            self.parts[part as usize].take(b, block, bodies);
            return;
        }
        let first = self.interface.len() as u32;
        self.between.push(b);
        self.interface.extend(block.row..block.row + block.rows);
        for &p in &touched {
            let part = &mut self.parts[p as usize];
            let mine: Vec<u32> = (0..bodies.len() as u32)
                .filter(|&k| self.grouping.of[bodies[k as usize] as usize] == p)
                .collect();
            let locals: Vec<u32> = mine.iter().filter_map(|&k| part.local(bodies[k as usize])).collect();
            let column = part.columns.len() as u32;
            part.columns.extend_from_slice(&mine);
            part.meet(
                first,
                block.rows,
                &locals,
                Piece::Block { block: b, column, columns: mine.len() as u32 },
            );
        }
    }

    fn glue(&mut self, problem: &RowProblem, copies: &[(u32, u32)]) {
        for &(body, part) in copies {
            let first = self.interface.len() as u32;
            let width = problem.width_of(body as usize);
            self.interface.resize(self.interface.len() + width, GLUE);
            let owner = self.grouping.of[body as usize];
            for (part, positive) in [(owner, true), (part, false)] {
                let part = &mut self.parts[part as usize];
                let local = part.local(body).expect("copies were placed");
                part.meet(first, width as u32, &[local], Piece::Glue { positive });
            }
        }
    }
}

impl Part {
    fn local(&self, body: u32) -> Option<u32> {
        self.bodies.binary_search(&body).ok().map(|k| k as u32)
    }

    fn take(&mut self, b: u32, block: &RowBlock, bodies: &[u32]) {
        let last = self.local_blocks.last();
        let entry = last.map_or(0, |l| l.entry + 6 * l.rows * l.bodies);
        let local =
            RowBlock { row: self.rows.len() as u32, body: self.local_bodies.len() as u32, entry, ..*block };
        self.blocks.push(b);
        self.rows.extend(block.row..block.row + block.rows);
        let mut counts = true;
        for &body in bodies {
            let local = self.local(body).expect("the partition has all bodies of the block");
            self.local_bodies.push(local);
            counts &= self.owned[local as usize];
        }
        if !counts {
            self.on_copies.push((local.row, local.rows));
        }
        self.local_blocks.push(local);
    }

    fn meet(&mut self, first: u32, rows: u32, locals: &[u32], piece: Piece) {
        let last = self.seam_blocks.last();
        let entry = last.map_or(0, |l| l.entry + 6 * l.rows * l.bodies);
        self.seam_blocks.push(RowBlock {
            row: self.interface.len() as u32,
            rows,
            body: self.seam_bodies.len() as u32,
            bodies: locals.len() as u32,
            entry,
            fold: false,
        });
        self.seam_bodies.extend_from_slice(locals);
        self.interface.extend(first..first + rows);
        self.pieces.push(piece);
    }

    fn finish(&mut self, problem: &RowProblem) {
        if !problem.width.is_empty() {
            self.width = self.bodies.iter().map(|&body| problem.width[body as usize]).collect();
        }
        // Coupled nodes are never copied: where the local one is, both are.
        let inside =
            (0..).zip(&problem.couplings).filter_map(|(k, c)| Some((k, self.local(c.a)?, self.local(c.b)?)));
        self.couplings = inside.collect();
        self.row_runs = CopyMap::new((0..).zip(self.rows.iter().copied()));
        let owned = (0..).zip(&self.bodies).zip(&self.owned).filter(|(_, owned)| **owned);
        self.owned_runs = CopyMap::new(owned.map(|((own, &whole), _)| (own, whole)));
        self.body_runs = CopyMap::new((0..).zip(self.bodies.iter().copied()));
        let numbers = |block: &RowBlock| 6 * block.rows * block.bodies;
        let blocks = || self.local_blocks.iter().zip(&self.blocks);
        self.entry_runs = CopyMap::joined(
            blocks().map(|(own, &b)| (own.entry, problem.blocks[b as usize].entry, numbers(own))),
        );
        self.entries = self.local_blocks.iter().map(numbers).sum();
    }

    /// The interface rows that stand together: first row in the interface, number, first row among its own.
    pub fn seams(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.seam_blocks.iter().map(|block| (self.interface[block.row as usize], block.rows, block.row))
    }

    /// Its bodies that other partitions have too, by their number here.
    pub fn shared(&self) -> impl Iterator<Item = usize> + '_ {
        self.share.iter().enumerate().filter(|&(_, share)| *share < 1.0).map(|(k, _)| k)
    }

    /// The numbers of a step, taken over from the whole problem.
    pub fn load(&self, whole: &RowProblem, own: &mut RowProblem, seam: &mut InterfaceRows) {
        if own.blocks != self.local_blocks || own.block_bodies != self.local_bodies || own.width != self.width
        {
            own.width.clone_from(&self.width);
            own.blocks.clone_from(&self.local_blocks);
            own.block_bodies.clone_from(&self.local_bodies);
        }
        own.couplings.clear();
        let inside = self.couplings.iter();
        own.couplings.extend(inside.map(|&(k, a, b)| Coupling { a, b, ..whole.couplings[k as usize] }));
        own.mass.resize(self.bodies.len(), [0.0; 36]);
        own.momentum.resize(self.bodies.len(), [0.0; 6]);
        self.body_runs.take(&whole.mass, &mut own.mass);
        self.body_runs.take(&whole.momentum, &mut own.momentum);
        for k in self.shared() {
            let share = self.share[k];
            own.mass[k].iter_mut().chain(&mut own.momentum[k]).for_each(|x| *x *= share);
        }
        own.jacobian.resize(self.entries as usize, 0.0);
        self.entry_runs.take(&whole.jacobian, &mut own.jacobian);
        for (to, from) in [
            (&mut own.compliance, &whole.compliance),
            (&mut own.d, &whole.d),
            (&mut own.lo, &whole.lo),
            (&mut own.hi, &whole.hi),
        ] {
            to.resize(self.rows.len(), 0.0);
            self.row_runs.take(from, to);
        }
        own.kind.resize(self.rows.len(), RowKind::default());
        self.row_runs.take(&whole.kind, &mut own.kind);
        seam.clear();
        seam.blocks.extend_from_slice(&self.seam_blocks);
        seam.block_bodies.extend_from_slice(&self.seam_bodies);
        for (piece, rows) in self.pieces.iter().zip(&self.seam_blocks) {
            match *piece {
                Piece::Block { block, column, columns } => {
                    let block = &whole.blocks[block as usize];
                    for row in 0..block.rows {
                        for &k in &self.columns[column as usize..(column + columns) as usize] {
                            seam.jacobian.extend_from_slice(whole.jacobian_of(block, row, k));
                        }
                    }
                }
                Piece::Glue { positive } => {
                    for row in 0..rows.rows as usize {
                        let mut j = [0.0; 6];
                        j[row] = if positive { 1.0 } else { -1.0 };
                        seam.jacobian.extend_from_slice(&j);
                    }
                }
            }
        }
    }
}

/// Bodies that are better copied into a neighbouring partition: (body, partition), sorted.
///
/// A copy costs as many rows as the body has unknowns and takes all constraints between the body and that partition out of the interface. The
/// one that saves most is taken first; ties go to the smaller body.
fn choose_copies(problem: &RowProblem, grouping: &Grouping) -> Vec<(u32, u32)> {
    let mut coupled = vec![false; problem.bodies()];
    for c in &problem.couplings {
        (coupled[c.a as usize], coupled[c.b as usize]) = (true, true);
    }
    // A cut block can be saved by a copy if one partition lacks only one of its bodies.
    let mut options: Vec<Vec<(u32, u32)>> = Vec::new();
    let mut rows: Vec<i64> = Vec::new();
    let mut blocks_of: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for block in &problem.blocks {
        let bodies = problem.bodies_of(block);
        let part = |body: u32| grouping.of[body as usize];
        if bodies.iter().all(|&b| part(b) == part(bodies[0])) {
            continue;
        }
        let mut own: Vec<(u32, u32)> = Vec::new();
        for &body in bodies {
            let home = bodies.iter().find(|&&o| o != body).map(|&o| part(o));
            if let Some(home) = home
                && part(body) != home
                && !coupled[body as usize]
                && bodies.iter().all(|&o| o == body || part(o) == home)
            {
                own.push((body, home));
            }
        }
        for &option in &own {
            blocks_of.entry(option).or_default().push(rows.len() as u32);
        }
        options.push(own);
        rows.push(i64::from(block.rows));
    }
    let mut gain: BTreeMap<(u32, u32), i64> = blocks_of
        .iter()
        .map(|(&o, b)| {
            let saved = b.iter().map(|&b| rows[b as usize]).sum::<i64>();
            (o, saved - problem.width_of(o.0 as usize) as i64)
        })
        .collect();
    let mut saved = vec![false; rows.len()];
    let mut copies = Vec::new();
    while let Some((&option, _)) =
        gain.iter().filter(|&(_, &g)| g > 0).max_by_key(|&(&option, &g)| (g, std::cmp::Reverse(option)))
    {
        gain.remove(&option);
        copies.push(option);
        for &b in &blocks_of[&option] {
            if !std::mem::replace(&mut saved[b as usize], true) {
                for other in &options[b as usize] {
                    if let Some(gain) = gain.get_mut(other) {
                        *gain -= rows[b as usize];
                    }
                }
            }
        }
    }
    copies.sort_unstable();
    copies
}
