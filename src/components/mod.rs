//! Components: plain data, one idea each, no behaviour.
//!
//! Everything lives in the game's own `hecs::World`. A body is an entity with at least the components
//! of [`RigidBody`]; joints, contacts and partitions are entities too.

pub mod body;
pub mod collider;
pub mod constraint;
pub mod contact;
pub mod look;
pub mod partition;
mod ranges;

pub use body::*;
pub use collider::*;
pub use constraint::*;
pub use contact::*;
pub use look::*;
pub use partition::*;
