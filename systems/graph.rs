//! Which bodies belong together (000 §4).

use crate::graph::islands::Islands;
use crate::schedule::Step;
use crate::state::{Bodies, NO_ISLAND, Work};

/// Finds the connected groups of dynamic bodies and hands every block of rows to its group.
///
/// Islands are numbered by their smallest body. A group that persists keeps its buffers, so factorizations and warm
/// starts survive changes elsewhere.
pub fn find_islands(step: &mut Step<'_>) {
    let work = &mut *step.work;
    tie_bodies(work);
    number_islands(work);
    distribute(work);
    step.report.islands = work.islands.len() as u32;
    step.report.rows = work.rows.len() as u32;
}

fn tie_bodies(work: &mut Work) {
    let Work { groups, rows, bodies, .. } = work;
    groups.reset(bodies.len());
    for block in &rows.blocks {
        let slots = &rows.body[block.body as usize..(block.body + block.bodies) as usize];
        tie(groups, bodies, slots.iter().copied());
    }
    for element in &rows.couplings.elements {
        tie(groups, bodies, rows.couplings.slots(element));
    }
}

fn tie(groups: &mut Islands, bodies: &Bodies, slots: impl Iterator<Item = u32>) {
    let mut first = None;
    for slot in slots.filter(|&s| bodies.is_dynamic(s)) {
        match first {
            None => first = Some(slot),
            Some(other) => groups.tie(other, slot),
        }
    }
}

/// Gives every group with rows or couplings a number, and its buffers of the last step if its smallest body had any.
fn number_islands(work: &mut Work) {
    work.island_of.clear();
    work.island_of.resize(work.bodies.len(), NO_ISLAND);
    for block in &work.rows.blocks {
        let slots = &work.rows.body[block.body as usize..(block.body + block.bodies) as usize];
        for &slot in slots.iter().filter(|&&s| work.bodies.is_dynamic(s)) {
            let root = work.groups.root(slot);
            work.island_of[root as usize] = 0;
        }
    }
    for &(slot, _) in work.rows.couplings.impulses.iter().filter(|(s, _)| work.bodies.is_dynamic(*s)) {
        let root = work.groups.root(slot);
        work.island_of[root as usize] = 0;
    }
    let Work { islands, old_islands, spare_islands, island_of, .. } = work;
    std::mem::swap(islands, old_islands);
    let mut old = old_islands.drain(..).peekable();
    for root in 0..island_of.len() as u32 {
        if island_of[root as usize] == NO_ISLAND {
            continue;
        }
        // Both lists ascend by smallest body: groups that are gone are passed over, and their memory is kept.
        while let Some(gone) = old.next_if(|i| i.bodies.first() < Some(&root)) {
            spare_islands.push(gone);
        }
        let same = old.next_if(|i| i.bodies.first() == Some(&root));
        let mut island = same.or_else(|| spare_islands.pop()).unwrap_or_default();
        island.clear();
        island_of[root as usize] = islands.len() as u32;
        islands.push(island);
    }
    spare_islands.extend(old);
}

fn distribute(work: &mut Work) {
    for slot in 0..work.bodies.len() as u32 {
        if !work.bodies.is_dynamic(slot) {
            continue;
        }
        let root = work.groups.root(slot);
        let island = work.island_of[root as usize];
        work.island_of[slot as usize] = island;
        if island != NO_ISLAND {
            work.islands[island as usize].bodies.push(slot);
        }
    }
    for (b, block) in work.rows.blocks.iter().enumerate() {
        let slots = &work.rows.body[block.body as usize..(block.body + block.bodies) as usize];
        let Some(&slot) = slots.iter().find(|&&s| work.bodies.is_dynamic(s)) else { continue };
        let island = &mut work.islands[work.island_of[slot as usize] as usize];
        island.blocks.push(b as u32);
        island.rows.extend(block.row..block.row + block.rows);
    }
    let couplings = &work.rows.couplings;
    for (e, element) in (0..).zip(&couplings.elements) {
        let Some(slot) = couplings.slots(element).find(|&s| work.bodies.is_dynamic(s)) else { continue };
        work.islands[work.island_of[slot as usize] as usize].elements.push(e);
    }
}
