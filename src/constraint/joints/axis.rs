//! What may act along a free axis of a joint: a motor, limits, friction.

use super::frame::{Coordinate, wrap_angle};
use crate::constraint::{BodyView, Bounds, Row, RowWriter, Softness};

/// What drives an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Motor {
    /// Nothing.
    #[default]
    Off,
    /// Keeps a speed, with no more than `max_force`. Speed zero is a brake.
    Velocity {
        /// m/s or rad/s.
        target: f64,
        /// N or N·m.
        max_force: f64,
    },
    /// Pulls towards a place as a spring with a damper does, with no more than `max_force`.
    Position {
        /// m or rad.
        target: f64,
        /// N/m or N·m/rad.
        stiffness: f64,
        /// N·s/m or N·m·s/rad.
        damping: f64,
        /// N or N·m.
        max_force: f64,
    },
    /// Goes to a place no faster than `max_speed` and stays there, with no more than `max_force`.
    Servo {
        /// m or rad.
        target: f64,
        /// m/s or rad/s.
        max_speed: f64,
        /// N or N·m.
        max_force: f64,
    },
}

/// How far an axis may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Least value (m or rad).
    pub lower: f64,
    /// Greatest value (m or rad).
    pub upper: f64,
    /// `Rigid` is a hard stop, `Spring` a soft one that acts from the limit on.
    pub softness: Softness,
}

impl Limits {
    /// Hard stops.
    pub fn hard(lower: f64, upper: f64) -> Limits {
        Limits { lower, upper, softness: Softness::Rigid }
    }

    /// Springs that begin at the limits.
    pub fn soft(lower: f64, upper: f64, stiffness: f64, damping: f64) -> Limits {
        Limits { lower, upper, softness: Softness::Spring { stiffness, damping } }
    }
}

/// One free axis of a joint. The default is free and does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// What drives it.
    pub motor: Motor,
    /// How far it may go.
    pub limits: Option<Limits>,
    /// Dry friction (N or N·m), however fast it moves.
    pub friction: f64,
}

/// Compliance of motor rows (m/s per N·s): small against any mass, so that a motor that has the force has the speed.
const MOTOR_COMPLIANCE: f64 = 1e-9;

/// A limit's row is written only when the stop is this near (m or rad), so that far stops cost nothing.
const NEAR: f64 = 0.05;

/// Keys of an axis' rows: axis `n` of a joint uses `AXIS_KEYS + 4 n ..`.
pub const AXIS_KEYS: u32 = 16;

impl Axis {
    /// A free axis.
    pub const FREE: Axis = Axis { motor: Motor::Off, limits: None, friction: 0.0 };

    /// The same axis with a motor.
    pub fn driven(mut self, motor: Motor) -> Axis {
        self.motor = motor;
        self
    }

    /// The same axis with limits.
    pub fn limited(mut self, limits: Limits) -> Axis {
        self.limits = Some(limits);
        self
    }

    /// The same axis with dry friction.
    pub fn rubbing(mut self, friction: f64) -> Axis {
        self.friction = friction;
        self
    }

    /// Does it need any rows?
    pub fn is_free(&self) -> bool {
        self.motor == Motor::Off && self.limits.is_none() && self.friction <= 0.0
    }

    /// Writes the rows of a sliding axis, number `number` of its joint.
    pub fn write_slide(
        &self,
        at: Coordinate,
        [a, b]: [&BodyView; 2],
        number: u32,
        out: &mut RowWriter<'_, 2>,
    ) {
        self.write(at, at.speed(a, b), number, false, out);
    }

    /// Writes the rows of a turning axis, number `number` of its joint. Angles are counted within half a turn
    /// of the motor's target and of the middle between the limits, so limits may span less than a turn.
    pub fn write_turn(
        &self,
        at: Coordinate,
        [a, b]: [&BodyView; 2],
        number: u32,
        out: &mut RowWriter<'_, 2>,
    ) {
        self.write(at, at.speed(a, b), number, true, out);
    }

    fn write(&self, at: Coordinate, speed: f64, number: u32, angle: bool, out: &mut RowWriter<'_, 2>) {
        if self.is_free() {
            return;
        }
        let from = |zero: f64| if angle { wrap_angle(at.value - zero) } else { at.value - zero };
        let key = AXIS_KEYS + 4 * number;
        self.write_motor(&at, &from, key, out);
        if let Some(limits) = self.limits {
            let middle = 0.5 * (limits.lower + limits.upper);
            let value = if angle { middle + from(middle) } else { at.value };
            let reach = NEAR + 2.0 * out.dt() * speed.abs();
            write_limit(&at, value - limits.lower, Bounds::PUSH_ONLY, limits.softness, reach, key + 1, out);
            write_limit(&at, value - limits.upper, Bounds::PULL_ONLY, limits.softness, reach, key + 2, out);
        }
        if self.friction > 0.0 {
            out.push(velocity_row(&at, 0.0, self.friction, key + 3));
        }
    }

    fn write_motor(&self, at: &Coordinate, from: &dyn Fn(f64) -> f64, key: u32, out: &mut RowWriter<'_, 2>) {
        match self.motor {
            Motor::Off => {}
            Motor::Velocity { target, max_force } => out.push(velocity_row(at, target, max_force, key)),
            Motor::Servo { target, max_speed, max_force } => {
                let wish = (-from(target) / out.dt()).clamp(-max_speed.abs(), max_speed.abs());
                out.push(velocity_row(at, wish, max_force, key));
            }
            Motor::Position { target, stiffness, damping, max_force } => out.push(Row {
                jacobian: at.jacobian,
                violation: from(target),
                bounds: Bounds::symmetric(max_force),
                softness: Softness::Spring { stiffness, damping },
                key,
                measured: false,
                ..Row::default()
            }),
        }
    }
}

fn velocity_row(at: &Coordinate, target_velocity: f64, max_force: f64, key: u32) -> Row<2> {
    Row {
        jacobian: at.jacobian,
        bounds: Bounds::symmetric(max_force.abs()),
        target_velocity,
        softness: Softness::Velocity { compliance: MOTOR_COMPLIANCE },
        key,
        measured: false,
        ..Row::default()
    }
}

/// A stop: `gap` is positive on the allowed side for push-only rows, negative for pull-only ones.
pub(in crate::constraint) fn write_limit(
    at: &Coordinate,
    gap: f64,
    bounds: Bounds,
    softness: Softness,
    reach: f64,
    key: u32,
    out: &mut RowWriter<'_, 2>,
) {
    let open = if bounds == Bounds::PUSH_ONLY { gap } else { -gap };
    let soft = !matches!(softness, Softness::Rigid);
    if open > if soft { 0.0 } else { reach } {
        return;
    }
    out.push(Row {
        jacobian: at.jacobian,
        violation: gap,
        bounds,
        softness,
        key,
        measured: false,
        ..Row::default()
    });
}

/// What drives the rotation of a ball joint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RotationMotor {
    /// Nothing.
    #[default]
    Off,
    /// Keeps a relative angular velocity (rad/s, seen from the first frame), each component with no more than
    /// `max_torque`. Zero is a brake, or dry friction.
    Velocity {
        /// rad/s.
        target: glam::DVec3,
        /// N·m.
        max_torque: f64,
    },
    /// Turns the second frame towards an orientation seen from the first.
    Position {
        /// The orientation.
        target: glam::DQuat,
        /// N·m/rad.
        stiffness: f64,
        /// N·m·s/rad.
        damping: f64,
        /// N·m, each component.
        max_torque: f64,
    },
}

impl RotationMotor {
    /// Writes its rows with keys from `key` on.
    pub(in crate::constraint) fn write(
        &self,
        placed: &super::frame::Placed,
        key: u32,
        out: &mut RowWriter<'_, 2>,
    ) {
        for i in 0..3 {
            match *self {
                RotationMotor::Off => {}
                RotationMotor::Velocity { target, max_torque } => {
                    let at = placed.spin(placed.axes_a.col(i));
                    out.push(velocity_row(&at, target[i], max_torque, key + i as u32));
                }
                RotationMotor::Position { target, stiffness, damping, max_torque } => {
                    let at = placed.rotation_error(target, i);
                    out.push(Row {
                        jacobian: at.jacobian,
                        violation: at.value,
                        bounds: Bounds::symmetric(max_torque),
                        softness: Softness::Spring { stiffness, damping },
                        key: key + i as u32,
                        measured: false,
                        ..Row::default()
                    });
                }
            }
        }
    }
}
