//! Bodies that are tied by far more rows than they have unknowns.

use crate::solver::{RowBlock, RowProblem};

/// Rows for each of the bodies, beyond which multipliers on the same one or two of them are folded: four for each unknown.
///
/// A thousand joints on one pair are 6,000 multipliers in one front, some 7e10 operations; folded they are 6,000 products into two
/// blocks. Folding divides by C, which costs digits, so that rows are left alone as long as they cost little.
pub const CROWDED: u32 = 24;

/// Folds the blocks of crowded bodies. It follows from the topology alone.
pub fn fold_crowds(problem: &RowProblem, blocks: &mut [RowBlock]) {
    if problem.rows() <= CROWDED as usize {
        return;
    }
    let mut order: Vec<([u32; 2], u32)> = Vec::new();
    for (k, block) in (0..).zip(blocks.iter()).filter(|(_, block)| !block.fold) {
        match *problem.bodies_of(block) {
            [a] => order.push(([a, a], k)),
            [a, b] => order.push(([a.min(b), a.max(b)], k)),
            _ => {}
        }
    }
    order.sort_unstable();
    for crowd in order.chunk_by(|x, y| x.0 == y.0) {
        let most = CROWDED * problem.bodies_of(&blocks[crowd[0].1 as usize]).len() as u32;
        if crowd.iter().map(|&(_, k)| blocks[k as usize].rows).sum::<u32>() > most {
            crowd.iter().for_each(|&(_, k)| blocks[k as usize].fold = true);
        }
    }
}
