//! Shapes, mass properties and collision. The only place that knows parry3d-f64; it knows no entities.

#[doc(hidden)]
pub mod broad;
#[doc(hidden)]
pub mod crowd;
pub mod mass;
#[doc(hidden)]
pub mod narrow;
pub mod query;
pub mod shape;
pub mod surface;
#[doc(hidden)]
pub mod sweep;

pub use broad::{Bounds, Box3, BroadPhase, insert_sorted};
pub use crowd::{Core, inner_ball, own_direction};
pub use mass::MassProperties;
pub use narrow::{
    Approach, ContactPoint, NarrowScratch, Placed, Posed, Rides, Turns, collide, collide_ball, collide_forms,
    collide_moving, is_ball_pair,
};
pub use shape::{Form, Shape, ShapeError, ShapeHandle};
pub use surface::Surface;
pub use sweep::{ball_stays_apart, first_touch};
