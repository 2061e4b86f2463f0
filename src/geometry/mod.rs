//! Shapes, mass properties and collision. The only place that knows parry3d-f64; it knows no entities.

pub mod mass;
pub mod shape;

pub use mass::MassProperties;
pub use shape::{Shape, ShapeError, ShapeHandle};
