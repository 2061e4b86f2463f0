//! Turnbuckle: a physics stage for games and simulators that holds.

pub mod clock;
pub mod components;
pub mod constraint;
pub mod geometry;
pub mod graph;
pub mod impulse;
pub mod linalg;
pub mod physics;
pub mod report;
pub mod schedule;
pub mod settings;
pub mod snapshot;
pub mod solid;
pub mod solver;
#[path = "../systems/mod.rs"]
pub mod systems;
pub mod testing;
pub mod work;

pub use physics::Physics;
pub use report::StepReport;
pub use schedule::{Stage, Step};
pub use settings::Settings;
