//! Who runs work that falls into independent items: one after another here, many at once where threads are known.

/// Calls a function on every item; items do not know of each other, so the order does not matter.
pub trait Executor {
    /// Runs `f(number, item)` on all items and returns when all are done.
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send);
}

/// One item after another, on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Executor for Serial {
    fn for_each<T: Send>(&self, items: &mut [T], f: impl Fn(usize, &mut T) + Sync + Send) {
        for (k, item) in items.iter_mut().enumerate() {
            f(k, item);
        }
    }
}
