//! Partitions on many threads. Each writes only what is its own, so the result has the same bits on any number of them.

use crate::coupling::executor::Executor;
use crate::team::Team;
use rayon::prelude::*;

/// Runs items on the rayon pool the step runs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parallel;

impl Executor for Parallel {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        items.par_iter_mut().enumerate().for_each(|(k, item)| f(k, item));
    }
}

/// Threads of the rayon pool that stay awake for a whole solve ([`Crew::together`]); before and after it, the calling thread alone.
#[derive(Debug, Default)]
pub struct Crew(std::sync::Arc<Team>);

/// A copy leads threads of its own.
impl Clone for Crew {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Crew {
    /// Another hand on the same threads.
    pub fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// Does some work whose regions are shared by the threads of the pool that have nothing else to do.
    pub fn together<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let threads = rayon::current_num_threads();
        if threads < 2 {
            return work();
        }
        self.0.gather(threads);
        let lead = || {
            let _end = Dismiss(&self.0);
            work()
        };
        rayon::join(lead, || help(&self.0, 1, threads)).0
    }
}

/// Helpers from this number on.
fn help(team: &Team, number: usize, threads: usize) {
    if number + 1 < threads {
        rayon::join(|| team.help(number), || help(team, number + 1, threads));
    } else {
        team.help(number);
    }
}

/// Lets the helpers go, even if the work panicked.
struct Dismiss<'a>(&'a Team);

impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

impl Executor for Crew {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        self.0.for_each(items, f);
    }
}
