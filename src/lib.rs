//! Turnbuckle is a physics stage for games and simulators that **holds**: cranes, cables, chains, nets, vehicles and
//! towers, with mass ratios of 40,000 : 1 and thousands of contacts, solved to the accuracy of a direct solver.
//!
//! The game owns its [`hecs::World`]; [`Physics`] is a stage that steps it. Bodies, joints, contacts and partitions are
//! entities. A step is one list of systems, declared in [`systems`]: read that first.
//!
//! # Where things are
//!
//! | module | what |
//! |---|---|
//! | [`systems`] | THE step: every system in order, with the papers' equation numbers |
//! | [`physics`] | the façade: pipeline, settings, buffers, last report |
//! | [`components`] | plain data: what bodies, colliders, joints and contacts are made of |
//! | [`state`] | what the engine keeps between systems and steps: bodies, rows, islands as dense arrays |
//! | [`constraint`] | the door: [`constraint::Constraint`] writes rows; one file per joint |
//! | [`subsystem`] | the door for physics that is not the engine's: three questions about ports |
//! | [`geometry`] | shapes, mass properties, collision (the only place that knows parry) |
//! | [`solver`] | the mixed linear complementarity problem of a step and its solvers: slices and indices |
//! | [`math`] | sines and their like, the same bits everywhere |
//! | [`linalg`] | orderings, factorizations, kernels |
//! | [`graph`] | islands and partitions: indices in, indices out |
//! | [`schedule`] | stages, pipeline, timings: mechanism only |
//! | [`exec`] | threads that share the work of one solve |
//! | [`settings`], [`report`], [`snapshot`], [`clock`], [`stopwatch`], [`impulse`], [`testing`] | what their names say |
//!
//! # Which module may use which
//!
//! ```text
//! cli, scene, replay ─► physics ─► systems ─► schedule, settings, report, state
//!                                     ├──► components ─► glam, bytemuck, Entity
//!                                     ├──► constraint ─► glam, Entity
//!                                     ├──► geometry   ─► glam, parry3d-f64
//!                                     ├──► graph      ─► indices only
//!                                     └──► coupling ─► partition ─► solver ─► linalg ─► sprs, slices
//! ```
//!
//! Queries on `hecs` and all of `rayon` live in `systems`; `solver` and `linalg` know no threads and no entities.
//! `tests/layering.rs` holds this.

pub mod clock;
#[doc(hidden)]
pub mod collision;
pub mod components;
pub mod constraint;
#[doc(hidden)]
pub mod coupling;
pub mod events;
#[doc(hidden)]
pub mod exec;
pub mod geometry;
#[doc(hidden)]
pub mod graph;
#[doc(hidden)]
pub mod impulse;
#[doc(hidden)]
pub mod linalg;
pub mod math;
#[doc(hidden)]
pub mod partition;
pub mod physics;
#[doc(hidden)]
pub mod range;
pub mod replay;
pub mod report;
pub mod scene;
pub mod schedule;
pub mod settings;
pub mod snapshot;
pub mod solid;
#[doc(hidden)]
pub mod solver;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod stopwatch;
pub mod subsystem;
#[doc(hidden)]
#[path = "../systems/mod.rs"]
pub mod systems;
pub mod testing;

pub use physics::Physics;
pub use report::StepReport;
pub use schedule::{Stage, Step};
pub use settings::Settings;
pub use solid::Solid;

/// What most programs need: `use turnbuckle::prelude::*;`.
pub mod prelude {
    pub use crate::clock::{FixedClock, interpolated_pose};
    pub use crate::components::*;
    pub use crate::constraint::*;
    pub use crate::events::{ContactEvent, Touch};
    pub use crate::geometry::{Shape, ShapeHandle};
    pub use crate::subsystem::Subsystem;
    pub use crate::{Physics, Settings, Solid, Stage, Step, StepReport};
    pub use glam::{DMat3, DQuat, DVec3};
    pub use hecs::{Entity, World};
}

/// The README's programs, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
