//! Storage that begins with a line of the cache.

use std::ops::{Deref, DerefMut};

/// Numbers whose first one begins a cache line. Kernels load and store four at a time; in memory that begins at half of that, as the
/// system may give it, every second load would reach over two lines.
#[derive(Debug, Default)]
pub struct Aligned {
    numbers: Vec<f64>,
    begin: usize,
    len: usize,
}

/// Numbers of a cache line.
const LINE: usize = 8;

impl Aligned {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        let numbers = vec![0.0; len + LINE];
        let begin = numbers.as_ptr().align_offset(size_of::<f64>() * LINE).min(LINE);
        Self { numbers, begin, len }
    }

    /// Makes room without keeping the old numbers: fresh memory comes zeroed without being touched.
    pub fn grow(&mut self, len: usize) {
        if self.len < len {
            *self = Self::zeros(len);
        }
    }

    /// So many zeros, in the memory at hand if it suffices.
    pub fn reset(&mut self, len: usize) {
        if self.numbers.len() < len + LINE {
            *self = Self::zeros(len);
        } else {
            self.len = len;
            self.fill(0.0);
        }
    }
}

impl Deref for Aligned {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.numbers[self.begin..self.begin + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.numbers[self.begin..self.begin + self.len]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}
