//! Numbers that one thread hands to another, again and again.
//!
//! A line of memory that another core has read is no longer one's own: the store that writes over it waits until the other has given it
//! up, some 50 ns a line where numbers are written here and there. Copied in one go, lines are asked for ahead. So what is worked with
//! stays with whoever works with it, and what is to be told is copied to lines of its own. (Stores past the caches were slower than
//! that: whoever reads then waits for memory.)

use super::aligned::Aligned;

/// Numbers written by one thread for another.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    numbers: Aligned,
    len: usize,
}

impl Outbox {
    /// Hands on copies of these numbers.
    pub fn post(&mut self, from: &[f64]) {
        // Whole lines, so that none is shared with anything else.
        if self.numbers.len() < from.len() {
            self.numbers = Aligned::zeros(from.len().next_multiple_of(8));
        }
        self.len = from.len();
        self.numbers[..from.len()].copy_from_slice(from);
    }

    /// What was posted last.
    pub fn read(&self) -> &[f64] {
        &self.numbers[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_posted_last_is_read() {
        let mut posted = Outbox::default();
        for n in [0usize, 1, 7, 8, 9, 100, 33] {
            let numbers: Vec<f64> = (0..n).map(|i| (i * i + n) as f64).collect();
            posted.post(&numbers);
            assert_eq!(posted.read(), numbers);
            assert_eq!(posted.clone().read(), numbers);
        }
    }
}
