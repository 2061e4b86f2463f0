//! Partitions as the user named them (000 §6.1).

use super::bodies::{BodyGraph, Grouping};

/// Bodies with the same hint share a partition. A body without one joins the partition it is tied to by the most rows,
/// nearest first; what no partition reaches becomes a partition of its own.
pub fn partition(graph: &BodyGraph, hints: &[Option<u32>]) -> Grouping {
    let mut names: Vec<u32> = hints.iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let unlabelled = names.len() as u32;
    let mut label: Vec<u32> = hints
        .iter()
        .map(|hint| hint.and_then(|h| names.binary_search(&h).ok()).map_or(unlabelled, |i| i as u32))
        .collect();
    let mut open: Vec<u32> = (0..label.len() as u32).filter(|&b| label[b as usize] == unlabelled).collect();
    let mut rows = vec![0u64; names.len()];
    // Wave by wave, so that the order of bodies within a wave does not matter.
    loop {
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for &body in &open {
            rows.fill(0);
            for (other, weight) in graph.ties(body) {
                if label[other as usize] != unlabelled {
                    rows[label[other as usize] as usize] += u64::from(weight);
                }
            }
            let best =
                (0..rows.len()).filter(|&g| rows[g] > 0).max_by_key(|&g| (rows[g], unlabelled as usize - g));
            if let Some(group) = best {
                joined.push((body, group as u32));
            }
        }
        if joined.is_empty() {
            break;
        }
        for &(body, group) in &joined {
            label[body as usize] = group;
        }
        open.retain(|&b| label[b as usize] == unlabelled);
    }
    Grouping::from_labels(&label)
}

#[cfg(test)]
mod tests {
    use super::super::bodies::tests::chain;
    use super::*;

    #[test]
    fn hints_rule_and_the_rest_joins_its_neighbours() {
        let hints = [Some(9), None, None, None, Some(4), None];
        let grouping = partition(&chain(6), &hints);
        // 1 joins 0, 3 and 5 join 4; 2 has one of each and joins the smaller name (4).
        assert_eq!(grouping.of, [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn without_hints_everything_is_one_partition() {
        assert_eq!(partition(&chain(4), &[None; 4]), Grouping::whole(4));
    }
}
