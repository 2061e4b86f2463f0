//! Numbers that stand together both in a partition and in the whole, so that they are copied together.

/// A stretch of numbers: where it begins in the partition and in the whole, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    own: u32,
    whole: u32,
    len: u32,
}

/// The stretches in which a partition's numbers lie in the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMap(Vec<Run>);

impl CopyMap {
    /// Joins (number here, number in the whole), ascending here.
    pub fn new(pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        Self::joined(pairs.map(|(own, whole)| (own, whole, 1)))
    }

    /// Joins stretches: where they begin here and in the whole, and how long they are; ascending here.
    pub fn joined(stretches: impl Iterator<Item = (u32, u32, u32)>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (own, whole, len) in stretches {
            match runs.last_mut() {
                Some(last) if last.own + last.len == own && last.whole + last.len == whole => last.len += len,
                _ => runs.push(Run { own, whole, len }),
            }
        }
        Self(runs)
    }

    /// Takes numbers over from the whole.
    pub fn take<T: Copy>(&self, whole: &[T], own: &mut [T]) {
        for &Run { own: to, whole: from, len } in &self.0 {
            own[to as usize..(to + len) as usize]
                .copy_from_slice(&whole[from as usize..(from + len) as usize]);
        }
    }

    /// Hands numbers back to the whole.
    pub fn give<T: Copy>(&self, own: &[T], whole: &mut [T]) {
        for &Run { own: from, whole: to, len } in &self.0 {
            whole[to as usize..(to + len) as usize]
                .copy_from_slice(&own[from as usize..(from + len) as usize]);
        }
    }

    /// [`give`](Self::give) with six numbers each.
    pub fn give_sixes(&self, own: &[f64], whole: &mut [f64]) {
        self.give(own.as_chunks::<6>().0, whole.as_chunks_mut::<6>().0);
    }

    /// [`take`](Self::take) with six numbers each.
    pub fn take_sixes(&self, whole: &[f64], own: &mut [f64]) {
        self.take(whole.as_chunks::<6>().0, own.as_chunks_mut::<6>().0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_again() {
        let runs = CopyMap::new([(0, 3), (1, 4), (2, 8), (4, 9), (5, 10)].into_iter());
        assert_eq!(runs.0.len(), 3);
        let whole: Vec<u32> = (100..112).collect();
        let mut own = [0; 6];
        runs.take(&whole, &mut own);
        assert_eq!(own, [103, 104, 108, 0, 109, 110]);
        let mut back = vec![0; 12];
        runs.give(&own, &mut back);
        assert_eq!(back, [0, 0, 0, 103, 104, 0, 0, 0, 108, 109, 110, 0]);
    }
}
