//! Something to look at: recordings of runs, the replay page, pictures without a browser.
//!
//! A [`Recorder`] looks at the world after each step; the [`Recording`] it makes becomes a file
//! ([`Recording::write`]) or a page ([`page::write_page`]).

#[doc(hidden)]
pub mod format;
mod observe;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod palette;
#[doc(hidden)]
pub mod parts;
#[doc(hidden)]
pub mod picture;
pub mod recorder;
pub mod recording;
#[doc(hidden)]
pub mod sample;

pub use format::{ReplayError, write_atomically};
pub use recorder::{RecordOptions, Recorder};
pub use recording::{Frame, Recording, RunInfo, Stat, View};
