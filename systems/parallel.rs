//! Partitions on many threads. Each writes only what is its own, so the result has the same bits on any number of them.

use crate::coupling::executor::Executor;
use rayon::prelude::*;

/// Runs items on the rayon pool the step runs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parallel;

impl Executor for Parallel {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        items.par_iter_mut().enumerate().for_each(|(k, item)| f(k, item));
    }
}
