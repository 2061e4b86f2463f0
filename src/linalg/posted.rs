//! Numbers that one thread hands to another, again and again.
//!
//! A line of memory that another core has read is no longer one's own: the store that writes over it waits until the other has given it
//! up, some 50 ns a line, and makes those behind it wait. The diagonal and b of two thousand rows took a helper 17 µs to form, and 43 once
//! the leader had read those of the solve before. Stores past the caches ask nobody. So what is worked with stays with whoever works
//! with it, and what is to be told is posted.

use super::aligned::Aligned;
use super::kernels;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers written by one thread for another. Where both are the same, this is a copy.
#[derive(Debug, Default)]
pub struct Posted {
    numbers: Aligned,
    len: usize,
    /// Who read it last.
    reader: AtomicUsize,
}

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number for the calling thread; never zero.
fn here() -> usize {
    HERE.with(|here| &raw const *here as usize)
}

impl Posted {
    /// Hands on copies of these numbers.
    pub fn post(&mut self, from: &[f64]) {
        // Whole lines, so that none is written in two ways.
        if self.numbers.len() < from.len() {
            self.numbers = Aligned::zeros(from.len().next_multiple_of(8));
        }
        self.len = from.len();
        if from.is_empty() || *self.reader.get_mut() == here() {
            self.numbers[..from.len()].copy_from_slice(from);
        } else {
            kernels::store_past_caches(from, &mut self.numbers);
        }
    }

    /// What was posted last.
    pub fn read(&self) -> &[f64] {
        let reader = here();
        // Written only where it changes: the line it is on is read by whoever posts.
        if self.reader.load(Ordering::Relaxed) != reader {
            self.reader.store(reader, Ordering::Relaxed);
        }
        &self.numbers[..self.len]
    }
}

impl Clone for Posted {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.post(&self.numbers[..self.len]);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_read_here_and_elsewhere() {
        let mut posted = Posted::default();
        for n in [0usize, 1, 7, 8, 9, 100, 33] {
            let numbers: Vec<f64> = (0..n).map(|i| (i * i + n) as f64).collect();
            std::thread::scope(|scope| drop(scope.spawn(|| posted.post(&numbers)).join()));
            assert_eq!(posted.read(), numbers);
            posted.post(&numbers);
            assert_eq!(posted.clone().read(), numbers);
        }
    }
}
