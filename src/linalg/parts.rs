//! Which subtrees of an elimination tree are worked on at once.
//!
//! In the papers' words the parts are the partitions Ω and the top of the tree is the interface Γ: nothing passes between parts but
//! through the top. Here they share one elimination order, so that the answer has the same bits whoever computes it.

use super::symbolic::NONE;

/// The part of fronts that wait for all parts.
pub const TOP: u32 = u32::MAX;

/// Most parts of a tree.
pub const MOST: usize = 8;

/// Nanoseconds of a factorization and its solve below which threads have nothing to gain.
const SMALL: f64 = 40_000.0;

/// Share of the work that the longest way through parts and top may be, for it to be worth the regions.
const GAIN: f64 = 0.8;

/// Subtrees per part at most: beyond that the top grows, and parts are even long before.
const SUBTREES: usize = 12;

/// The part of every front, or [`TOP`]; none if the tree is too small or too much of a path. Fronts are numbered children first and
/// have so much work (ns) each.
///
/// From the roots down, the largest subtree gives its root to the top, as long as that makes the longest part and the top together
/// shorter.
pub fn share_out(work: &[f64], parent: &[u32], parts: usize) -> Option<Vec<u32>> {
    let parts = parts.min(MOST);
    let total: f64 = work.iter().sum();
    if parts < 2 || total < SMALL {
        return None;
    }
    let tree = Subtrees::new(work, parent);
    let mut open: Vec<u32> = (0..work.len() as u32).filter(|&f| parent[f as usize] == NONE).collect();
    let mut best = (GAIN * total, Vec::new());
    let mut top = 0.0;
    while open.len() <= SUBTREES * parts && top < best.0 {
        open.sort_by(|&a, &b| tree.work[b as usize].total_cmp(&tree.work[a as usize]).then(a.cmp(&b)));
        let (longest, of) = tree.deal(&open, parts);
        if top + longest < best.0 {
            best = (top + longest, of);
        }
        if open.is_empty() {
            break;
        }
        let largest = open.remove(0) as usize;
        top += work[largest];
        open.extend(tree.children(largest));
    }
    if best.1.is_empty() {
        return None;
    }
    let mut part = vec![TOP; work.len()];
    for (root, own) in best.1 {
        part[root as usize] = own;
    }
    for f in (0..work.len()).rev() {
        if part[f] == TOP && parent[f] != NONE {
            part[f] = part[parent[f] as usize];
        }
    }
    Some(part)
}

struct Subtrees {
    /// Of the subtree that ends with each front.
    work: Vec<f64>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
}

impl Subtrees {
    fn new(own: &[f64], parent: &[u32]) -> Self {
        let n = own.len();
        let mut tree = Self { work: own.to_vec(), first_child: vec![NONE; n], next_sibling: vec![NONE; n] };
        for f in 0..n {
            if parent[f] != NONE {
                let above = parent[f] as usize;
                tree.work[above] += tree.work[f];
                tree.next_sibling[f] = tree.first_child[above];
                tree.first_child[above] = f as u32;
            }
        }
        tree
    }

    fn children(&self, front: usize) -> impl Iterator<Item = u32> {
        let some = |f: u32| (f != NONE).then_some(f);
        std::iter::successors(some(self.first_child[front]), move |&f| some(self.next_sibling[f as usize]))
    }

    /// Deals subtrees, the largest first, to the part that has least: the most a part has, and who has what.
    fn deal(&self, roots: &[u32], parts: usize) -> (f64, Vec<(u32, u32)>) {
        let mut load = [0.0f64; MOST];
        let mut of = Vec::with_capacity(roots.len());
        for &root in roots {
            let least = (1..parts).fold(0, |least, k| if load[k] < load[least] { k } else { least });
            load[least] += self.work[root as usize];
            of.push((root, least as u32));
        }
        (load.into_iter().fold(0.0, f64::max), of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_tree_is_halved_and_a_path_is_left_alone() {
        // Heap order upside down: the root is last.
        let n = 255usize;
        let parent: Vec<u32> =
            (0..n).map(|f| if f + 1 == n { NONE } else { (n - 1 - (n - 2 - f) / 2) as u32 }).collect();
        let part = share_out(&vec![1e4; n], &parent, 2).expect("worth it");
        assert_eq!(part.iter().filter(|&&p| p == 0).count(), 127);
        assert_eq!(part.iter().filter(|&&p| p == 1).count(), 127);
        assert_eq!(part[n - 1], TOP);
        let path: Vec<u32> = (1..=n as u32).map(|f| if f as usize == n { NONE } else { f }).collect();
        assert!(share_out(&vec![1e4; n], &path, 2).is_none());
        assert!(share_out(&vec![10.0; n], &parent, 2).is_none(), "too small");
    }
}
