//! Something to look at: recordings of runs, the replay page, pictures without a browser.
//!
//! A [`Recorder`] looks at the world after each step; the [`Recording`] it makes becomes a file
//! ([`Recording::write`]) or a page ([`page::write_page`]).

pub mod format;
mod observe;
pub mod page;
pub mod palette;
pub mod parts;
pub mod picture;
pub mod recorder;
pub mod recording;
pub mod sample;

pub use format::{ReplayError, write_atomically};
pub use recorder::{RecordOptions, Recorder};
pub use recording::{Frame, Recording, RunInfo, Stat, View};
