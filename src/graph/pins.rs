//! Partitions that the user insists on.

use super::bodies::Grouping;

/// Takes pinned bodies out of their partitions: those of the same number become one.
pub fn pin(grouping: &Grouping, pins: &[Option<u32>]) -> Grouping {
    let mut names: Vec<u32> = pins.iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let place = |pin: u32| names.binary_search(&pin).map_or(0, |i| i as u32);
    let labels: Vec<u32> = grouping
        .of
        .iter()
        .zip(pins)
        .map(|(&part, pin)| pin.map_or(part, |pin| grouping.count + place(pin)))
        .collect();
    Grouping::from_labels(&labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_bodies_leave_and_the_others_stay() {
        let grouping = Grouping { of: vec![0, 0, 1, 1, 2], count: 3 };
        let pinned = pin(&grouping, &[None, Some(7), Some(7), None, Some(2)]);
        // The partition of the last body is empty now, and its pin has a number of its own.
        assert_eq!(pinned, Grouping { of: vec![0, 1, 1, 2, 3], count: 4 });
        assert_eq!(pin(&grouping, &[None; 5]), grouping);
        let whole = pin(&Grouping::whole(3), &[Some(1), Some(1), Some(1)]);
        assert_eq!(whole, Grouping::whole(3));
    }
}
