//! Threads that wait awake between the regions of a solve.
//!
//! A factorization in parts has some seven regions of ten to two hundred microseconds each. Putting threads to sleep and waking them costs
//! as much as a small region; a thread that keeps looking takes up the next one within a fraction of a microsecond. So helpers stay,
//! look for work while there is none, and leave when they are dismissed or have found none for long. The leading thread works
//! too and depends on no helper: without any it does everything itself.
//!
//! Every thread begins with items of its own, the same in every region: what a partition owns is a megabyte that lies in the cache of
//! the core that worked on it last, and fetching it from there costs more than most regions.

// Items and a closure are lent to other threads for the time of a call. No safe way of sharing them knows that the call waits.
#![allow(unsafe_code)]

use crate::stopwatch::Stopwatch;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Looks between which a waiting thread does not offer its core to other programs: some tens of microseconds, the longest
/// stretch between two shared regions. Where another program takes the core, the thread is gone for milliseconds.
const LOOKS: u32 = 10_000;

/// Time without any work after which a helper leaves, or dozes.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long it dozes at a time.
const DOZE: Duration = Duration::from_micros(50);

/// What a helper does after long idleness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Looks again every now and then: the leader analyses a new pattern, and there is nothing else to do.
    #[default]
    Dozes,
    /// Leaves, so that its thread can do something else.
    Leaves,
}

/// Items that are told apart.
const BITS: usize = 64;

/// A call of a closure on one of its items.
#[derive(Clone, Copy)]
struct Job {
    call: unsafe fn(*const (), usize),
    data: *const (),
    items: usize,
}

impl Job {
    /// Works on the items of a bit, which no other thread has.
    fn run(&self, bit: usize) {
        for item in (bit..self.items).step_by(BITS) {
            // SAFETY: a bit is taken once, and `for_each` keeps items and closure until all are done.
            unsafe { (self.call)(self.data, item) };
        }
    }
}

/// A number on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// Work shared by the thread that leads it and those that help.
#[derive(Default)]
pub struct Team {
    /// What is to be done.
    call: Line<Call>,
    /// Bits that are done.
    done: Line<AtomicU32>,
    /// Bits that each thread begins with; the leader has the first of them.
    own: AtomicU64,
    threads: AtomicU32,
    /// Those who help just now.
    helpers: AtomicU32,
    over: AtomicBool,
    busy: AtomicBool,
    broken: AtomicBool,
}

/// Items and what to do with them, on one cache line: who sees one has the other.
#[derive(Default)]
struct Call {
    /// Items to be taken, a bit each; with more than [`BITS`] items a bit stands for every so many-th.
    items: AtomicU64,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: `job` is written by the leader while no item can be taken, and read by threads that have taken one; the leader waits for these.
unsafe impl Sync for Team {}
// SAFETY: between calls `job` points to nothing that is used.
unsafe impl Send for Team {}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Team {
    /// Helps the leader until [`dismiss`](Self::dismiss); `idle` says what comes of having nothing to do for long. Helpers are numbered
    /// from one.
    pub fn help(&self, number: usize, idle: Idle) {
        let _here = Here::new(&self.helpers);
        let own = self.own_of(number);
        let (mut looks, mut since) = (0, None);
        while !self.over.load(Ordering::Acquire) {
            if let Some(bit) = self.take(own) {
                self.work(bit);
                (looks, since) = (0, None);
                continue;
            }
            wait(&mut looks);
            if looks == 0 && since.get_or_insert_with(Stopwatch::start).elapsed() > PATIENCE {
                match idle {
                    Idle::Leaves => return,
                    // Most looks are skipped: this one comes right after it wakes.
                    Idle::Dozes => {
                        std::thread::sleep(DOZE);
                        looks = LOOKS - 1;
                    }
                }
            }
        }
    }

    /// Are there helpers?
    pub fn has_helpers(&self) -> bool {
        self.helpers.load(Ordering::Relaxed) > 0
    }

    /// From now on so many threads may share the work, and helpers stay.
    pub fn gather(&self, threads: usize) {
        let threads = threads.clamp(1, BITS);
        self.threads.store(threads as u32, Ordering::Relaxed);
        self.own.store((0..BITS).step_by(threads).map(|bit| 1 << bit).sum(), Ordering::Relaxed);
        self.over.store(false, Ordering::Release);
    }

    /// Helpers leave.
    pub fn dismiss(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// The bits that a thread begins with.
    fn own_of(&self, number: usize) -> u64 {
        let threads = self.threads.load(Ordering::Relaxed).max(1);
        self.own.load(Ordering::Relaxed) << (number as u32 % threads)
    }

    /// Runs `f(number, item)` on all items, with the helpers there are, and returns when all are done. Within one of its own items, or for a
    /// second leader, everything happens on the calling thread.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn for_each<T: Send, F: Fn(usize, &mut T) + Sync>(&self, items: &mut [T], f: F) {
        let n = items.len();
        if n < 2 || self.busy.swap(true, Ordering::Acquire) {
            items.iter_mut().enumerate().for_each(|(k, item)| f(k, item));
            return;
        }
        let bits = n.min(BITS);
        let shared = Shared { first: items.as_mut_ptr(), f };
        let job = Job { call: call::<T, F>, data: (&raw const shared).cast(), items: n };
        // SAFETY: this call alone leads (`busy`), and every item of the last one is done, so that no thread reads the old job.
        unsafe { *self.call.0.job.get() = Some(job) };
        self.broken.store(false, Ordering::Relaxed);
        self.done.0.store(0, Ordering::Relaxed);
        // What the leader begins with is not offered: two who ask for the same line at once make each other wait.
        let (all, own) = (u64::MAX >> (BITS - bits), self.own_of(0));
        let mut mine = if self.has_helpers() { all & own } else { all };
        self.call.0.items.store(all & !mine, Ordering::Release);
        let lead = Lead { team: self, bits: (all & !mine).count_ones() };
        while mine != 0 {
            job.run(mine.trailing_zeros() as usize);
            mine &= mine - 1;
        }
        while let Some(bit) = self.take(own) {
            self.work(bit);
        }
        drop(lead);
        assert!(!self.broken.load(Ordering::Acquire), "work on an item panicked on another thread");
    }

    /// Takes one of its own bits, or one of another's.
    fn take(&self, own: u64) -> Option<usize> {
        let mut left = self.call.0.items.load(Ordering::Acquire);
        while left != 0 {
            let choice = if left & own != 0 { left & own } else { left };
            let bit = choice & choice.wrapping_neg();
            match self.call.0.items.compare_exchange_weak(
                left,
                left & !bit,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(bit.trailing_zeros() as usize),
                Err(now) => left = now,
            }
        }
        None
    }

    fn work(&self, bit: usize) {
        let _done = Done(self);
        // SAFETY: a thread that has taken a bit sees the job it belongs to, which stays until the bit is done.
        let Some(job) = (unsafe { *self.call.0.job.get() }) else { return };
        job.run(bit);
    }
}

/// A helper, for as long as this lives.
struct Here<'a>(&'a AtomicU32);

impl<'a> Here<'a> {
    fn new(helpers: &'a AtomicU32) -> Self {
        helpers.fetch_add(1, Ordering::Relaxed);
        Self(helpers)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Items and what is done to each.
struct Shared<T, F> {
    first: *mut T,
    f: F,
}

/// # Safety
/// `data` is a [`Shared`] of these types with more than `item` items, and no other thread has this one.
unsafe fn call<T: Send, F: Fn(usize, &mut T) + Sync>(data: *const (), item: usize) {
    // SAFETY: as the caller promised. `T: Send` and `F: Sync` let other threads do so.
    unsafe {
        let shared = &*data.cast::<Shared<T, F>>();
        (shared.f)(item, &mut *shared.first.add(item));
    }
}

/// Counts an item as done, even if it panicked.
struct Done<'a>(&'a Team);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
        self.0.done.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Waits for all items that were offered, even if one panicked here: others may still work on what was lent to them.
struct Lead<'a> {
    team: &'a Team,
    bits: u32,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        while let (true, Some(_)) = (std::thread::panicking(), self.team.take(0)) {
            self.team.done.0.fetch_add(1, Ordering::AcqRel);
        }
        let mut looks = 0;
        while self.team.done.0.load(Ordering::Acquire) < self.bits {
            wait(&mut looks);
        }
        self.team.busy.store(false, Ordering::Release);
    }
}

fn wait(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS {
        std::hint::spin_loop();
    } else {
        *looks = 0;
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_with_any_number_of_helpers() {
        for helpers in 0..3 {
            let team = &Team::default();
            team.gather(helpers + 1);
            std::thread::scope(|scope| {
                (1..=helpers).for_each(|number| drop(scope.spawn(move || team.help(number, Idle::Dozes))));
                for round in 0..2000usize {
                    let mut items = vec![0; 2 + round % 150];
                    team.for_each(&mut items, |k, item| *item += k + round);
                    assert!(items.iter().enumerate().all(|(k, &x)| x == k + round));
                }
                team.dismiss();
            });
        }
    }

    #[test]
    fn an_item_may_have_items_of_its_own() {
        let team = Team::default();
        let mut rows = vec![[0; 3]; 4];
        team.for_each(&mut rows, |k, row| team.for_each(row, |i, x| *x = 10 * k + i));
        assert_eq!(rows[3], [30, 31, 32]);
    }

    #[test]
    fn a_panic_reaches_the_leader_and_the_team_goes_on() {
        let team = Team::default();
        team.gather(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let help =
                    || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| team.help(1, Idle::Leaves)));
                while help().is_err() {}
            });
            let mut items = [0; 8];
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                team.for_each(&mut items, |k, _| assert!(k != 5, "as intended"));
            }));
            assert!(failed.is_err());
            team.for_each(&mut items, |k, item| *item = k);
            assert_eq!(items[7], 7);
            team.dismiss();
        });
    }
}
