//! Partitions on many threads. Each writes only what is its own, so the result has the same bits on any number of them.

use crate::coupling::executor::Executor;
use crate::exec::spin_pool::{Idle, Team};
use rayon::iter::plumbing::{Producer, ProducerCallback};
use rayon::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// Does this thread do its step alone?
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does some work on the calling thread, all its regions too if `alone`: no pool is asked, and none is started.
pub fn on_this_thread<R>(alone: bool, work: impl FnOnce() -> R) -> R {
    /// Puts back what was there, even if the work panicked.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(alone));
    work()
}

/// Does `f` to all items: on the pool the step runs in, or in order where the calling thread is alone.
pub fn for_each<I: IndexedParallelIterator>(items: I, f: impl Fn(I::Item) + Sync + Send) {
    match ALONE.get() {
        true => items.with_producer(InOrder(f)),
        false => items.for_each(f),
    }
}

/// What to do with each item, one after another.
struct InOrder<F>(F);

impl<T, F: Fn(T)> ProducerCallback<T> for InOrder<F> {
    type Output = ();
    fn callback<P: Producer<Item = T>>(self, items: P) {
        items.into_iter().for_each(self.0);
    }
}

/// Runs items on the rayon pool the step runs in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parallel;

impl Executor for Parallel {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        for_each(items.par_iter_mut().enumerate(), |(k, item)| f(k, item));
    }
}

/// Threads of the rayon pool that stay awake for a while ([`Crew::together`]); before and after it, the calling thread alone.
///
/// A thread leads one team at a time: whatever it works on while it does, and whichever crew it asks, the regions are for that team. So
/// the helpers of a whole step serve every solve within it, and no thread has to be woken for each.
#[derive(Debug, Default)]
pub struct Crew(Arc<Team>);

/// A copy leads threads of its own.
impl Clone for Crew {
    fn clone(&self) -> Self {
        Self::default()
    }
}

thread_local! {
    /// The team that this thread leads.
    static LED: RefCell<Option<Arc<Team>>> = const { RefCell::new(None) };
}

impl Crew {
    /// Another hand on the same threads.
    pub fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// Does some work whose regions are shared by so many threads of the pool, the calling one among them, as far as they have nothing
    /// else to do. Until it is over the pool has to do without them. Within the work of another crew that has helpers, this is nothing
    /// but a call.
    pub fn together<R: Send>(&self, threads: usize, work: impl FnOnce() -> R + Send) -> R {
        self.lead(threads, Idle::Dozes, work)
    }

    /// The same for work in which the pool may be needed for other things: helpers that have had nothing to do for long go back to it.
    pub fn loosely_together<R: Send>(&self, threads: usize, work: impl FnOnce() -> R + Send) -> R {
        self.lead(threads, Idle::Leaves, work)
    }

    fn lead<R: Send>(&self, threads: usize, idle: Idle, work: impl FnOnce() -> R + Send) -> R {
        // Asking how many threads there are would start them.
        if threads < 2 || ALONE.get() {
            return work();
        }
        let threads = threads.min(rayon::current_num_threads());
        let helped = LED.with_borrow(|led| led.as_ref().is_some_and(|team| team.has_helpers()));
        if threads < 2 || helped {
            return work();
        }
        self.0.gather(threads);
        let lead = || {
            let _end = Lead { team: &self.0, before: LED.replace(Some(self.0.clone())) };
            work()
        };
        rayon::join(lead, || help(&self.0, idle, 1, threads)).0
    }
}

/// Helpers from this number on.
fn help(team: &Team, idle: Idle, number: usize, threads: usize) {
    if number + 1 < threads {
        rayon::join(|| team.help(number, idle), || help(team, idle, number + 1, threads));
    } else {
        team.help(number, idle);
    }
}

/// Lets the helpers go, even if the work panicked.
struct Lead<'a> {
    team: &'a Team,
    before: Option<Arc<Team>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.team.dismiss();
        LED.set(self.before.take());
    }
}

impl Executor for Crew {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        match LED.with_borrow(Clone::clone) {
            Some(team) => team.for_each(items, f),
            None => self.0.for_each(items, f),
        }
    }
}
