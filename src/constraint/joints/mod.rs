//! The built-in joints, one file a kind. Each is a component that comes through the door that users have.

mod anchored;
pub mod axis;
pub mod ball;
pub mod cable;
pub mod cylindrical;
pub mod distance;
pub mod fixed;
pub mod frame;
pub mod gear;
pub mod planar;
pub mod point_on_line;
pub mod prismatic;
pub mod pulley;
pub mod revolute;
pub mod spring;
pub mod universal;
pub mod wheel;
