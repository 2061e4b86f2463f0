//! Time that passes, for reports: no result depends on it.

use std::time::Duration;

/// Has the platform a clock? A browser's is not in the standard library, and asking for one panics there.
const HAS_CLOCK: bool = !cfg!(all(target_family = "wasm", target_os = "unknown"));

/// A clock that runs from its start on, and stands at zero where the platform has none.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Option<std::time::Instant>);

impl Stopwatch {
    /// Starts one.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch(HAS_CLOCK.then(std::time::Instant::now))
    }

    /// Time since its start, and starts it anew.
    pub fn lap(&mut self) -> Duration {
        let now = Stopwatch::start();
        match (std::mem::replace(&mut self.0, now.0), now.0) {
            (Some(start), Some(now)) => now - start,
            _ => Duration::ZERO,
        }
    }

    /// Time since its start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |start| start.elapsed())
    }
}
