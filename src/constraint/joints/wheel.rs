//! A wheel on a chassis: suspension, steering, drive and brake.

use super::anchored::push_coordinate;
use super::axis::{Axis, Limits, Motor};
use super::frame::{Coordinate, Frames, Placed};
use crate::constraint::{BodyView, Constraint, Row, RowWriter, Softness, check};
use crate::math;
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// A wheel whose axle is the x axis, which springs along the z axis of the first frame and steers about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheel {
    /// The chassis.
    pub a: Entity,
    /// The wheel.
    pub b: Entity,
    /// Where it sits: x is the axle, z the suspension's direction on the chassis (up).
    pub frames: Frames,
    /// N/m; infinite for a rigid axle.
    pub suspension_stiffness: f64,
    /// N·s/m.
    pub suspension_damping: f64,
    /// Where the suspension rests without load, relative to the anchor along z (m).
    pub suspension_rest: f64,
    /// Stops of the suspension.
    pub suspension_limits: Option<Limits>,
    /// Steering angle about z (rad). The wheel is held at it; turn it gradually, as a hand does.
    pub steering: f64,
    /// Drive: a velocity motor with the engine's torque.
    pub drive: Motor,
    /// Brake torque (N·m), zero when released.
    pub brake: f64,
}

impl Wheel {
    /// A wheel of these frames with a suspension.
    pub fn new(a: Entity, b: Entity, frames: Frames, stiffness: f64, damping: f64) -> Wheel {
        Wheel {
            a,
            b,
            frames,
            suspension_stiffness: stiffness,
            suspension_damping: damping,
            suspension_rest: 0.0,
            suspension_limits: None,
            steering: 0.0,
            drive: Motor::Off,
            brake: 0.0,
        }
    }

    /// The wheel's spin relative to the chassis (rad/s).
    pub fn spin(&self, [a, b]: [&BodyView; 2]) -> f64 {
        let placed = Placed::new(&self.frames, a, b);
        placed.spin(self.axle(&placed)).speed(a, b)
    }

    /// Where the axle is to point: turned about z of the chassis' frame.
    pub(crate) fn axle(&self, placed: &Placed) -> DVec3 {
        let (sin, cos) = math::sin_cos(self.steering);
        placed.axes_a.x_axis * cos + placed.axes_a.y_axis * sin
    }
}

impl Constraint for Wheel {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.drive.check()?;
        self.suspension_limits.iter().try_for_each(Limits::check)?;
        let (stiffness, damping) = (self.suspension_stiffness, self.suspension_damping);
        check::suspension(stiffness, damping, self.suspension_rest, self.steering, self.brake)
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, views[0], views[1]);
        let of_a = placed.axes_a;
        push_coordinate(placed.slide(of_a.x_axis), 0, out);
        push_coordinate(placed.slide(of_a.y_axis), 1, out);
        let axle = self.axle(&placed);
        let x = placed.axes_b.x_axis;
        push_coordinate(placed.perpendicular(of_a.z_axis.cross(axle), x), 2, out);
        push_coordinate(placed.perpendicular(of_a.z_axis, x), 3, out);
        self.push_suspension(&placed, views, out);
        let spin = Axis { motor: self.drive, limits: None, friction: self.brake };
        spin.write_slide(placed.spin(axle), views, 1, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}

impl Wheel {
    fn push_suspension(&self, placed: &Placed, views: [&BodyView; 2], out: &mut RowWriter<'_, 2>) {
        let at: Coordinate = placed.slide(placed.axes_a.z_axis);
        let rigid = !self.suspension_stiffness.is_finite();
        let spring =
            Softness::Spring { stiffness: self.suspension_stiffness, damping: self.suspension_damping };
        out.push(Row {
            jacobian: at.jacobian,
            violation: at.value - self.suspension_rest,
            softness: if rigid { Softness::Rigid } else { spring },
            key: 4,
            measured: rigid,
            ..Row::default()
        });
        Axis { limits: self.suspension_limits, ..Axis::FREE }.write_slide(at, views, 0, out);
    }
}
