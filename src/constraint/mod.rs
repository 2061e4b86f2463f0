//! The door for everything that ties bodies together: a [`Constraint`] writes rows, the engine does the rest.
//!
//! A row is one scalar equation on velocities (000 eq. 3):
//!
//! ```text
//!     J v⁺ + C λ + φ/h = w₀ ,   lower ≤ λ ≤ upper
//! ```
//!
//! Built-in joints and contacts come through this same door.

pub mod row;
pub mod view;

pub use row::{Bounds, Row, RowWriter, Twist};
pub use view::BodyView;

use hecs::Entity;

/// Something that ties `N` bodies together (two, unless said otherwise).
///
/// Implement it for a component, call `physics.add_constraint::<T>()` once, and spawn entities with it.
pub trait Constraint<const N: usize = 2>: Send + Sync + 'static {
    /// The bodies, in the order in which `write_rows` gets them.
    fn bodies(&self) -> [Entity; N];

    /// Writes the rows for the current state of the bodies. The number of rows may change from step to step.
    fn write_rows(&self, bodies: [&BodyView; N], out: &mut RowWriter<'_, N>);

    /// May the tied bodies touch each other? Jointed bodies usually overlap, so the default is no.
    fn collide(&self) -> bool {
        false
    }
}
