//! Gears, racks and differentials: ratios between turns.
//!
//! Angles repeat every turn, teeth do not care which: the sum Σ teeth·angle is taken to within half a turn of a
//! tooth, so that no count of turns has to be kept and nothing drifts.

use super::frame::{Frame, wrap_angle};
use crate::constraint::{BodyView, Constraint, Row, RowWriter, Twist, check};
use crate::math;
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// A toothed wheel: how it sits on its body and on the body that carries it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GearWheel {
    /// In the wheel's body; x is its axle.
    pub frame: Frame,
    /// In the carrier's body (the world, for [`Gear`] and [`RackPinion`]); coincides with `frame` at angle zero.
    pub carrier: Frame,
    /// Number of teeth; negative turns the other way (an inner ring, or an axle pointing the other way).
    pub teeth: i32,
}

impl GearWheel {
    /// Angle of the wheel on its carrier, and its derivative on (carrier, wheel).
    fn angle(&self, carrier: &BodyView, wheel: &BodyView) -> (f64, DVec3) {
        let on_carrier = carrier.rotation * self.carrier.rotation;
        let (p, q) = (on_carrier * DVec3::Y, on_carrier * DVec3::Z);
        let u = wheel.rotation * (self.frame.rotation * DVec3::Y);
        let (c, s) = (u.dot(p), u.dot(q));
        (math::atan2(s, c), (u.cross(q) * c - u.cross(p) * s) / (c * c + s * s).max(1e-12))
    }
}

/// Two wheels with axles fixed in the world: turns of the first times its teeth plus turns of the second
/// times its teeth stay constant (outer gears of positive teeth turn against each other when their axles point
/// the same way only if one count is given as positive on both: Σ teeth·angle = const).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gear {
    /// First wheel.
    pub a: Entity,
    /// Second wheel.
    pub b: Entity,
    /// How they sit.
    pub wheels: [GearWheel; 2],
}

impl Constraint for Gear {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.wheels.iter().try_for_each(GearWheel::check)
    }

    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let scale = 1.0 / f64::from(self.wheels[0].teeth.max(1));
        let mut sum = 0.0;
        let mut jacobian = [Twist::ZERO; 2];
        for ((wheel, view), twist) in self.wheels.iter().zip([a, b]).zip(&mut jacobian) {
            let (angle, axis) = wheel.angle(&BodyView::WORLD, view);
            sum += f64::from(wheel.teeth) * angle;
            *twist = Twist::angular(axis * f64::from(wheel.teeth) * scale);
        }
        out.push(Row { jacobian, violation: wrap_angle(sum) * scale, key: 0, ..Row::default() });
    }
}

/// A train of wheels on a common carrier, the first body: Σ teeth·angle = 0. Two wheels make a gear, three a
/// differential (teeth 1, 1, −2) or a planetary set (sun, planet carrier, ring).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GearTrain<const N: usize> {
    /// The carrier, then the wheels.
    pub bodies: [Entity; N],
    /// How the wheels sit; the first entry stands for the carrier and is not read.
    pub wheels: [GearWheel; N],
}

/// A differential in its housing: carrier, input, left, right.
pub type Differential = GearTrain<4>;

impl<const N: usize> Constraint<N> for GearTrain<N> {
    fn bodies(&self) -> [Entity; N] {
        self.bodies
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.wheels.iter().skip(1).try_for_each(GearWheel::check)
    }

    fn write_rows(&self, views: [&BodyView; N], out: &mut RowWriter<'_, N>) {
        let scale = 1.0 / f64::from(self.wheels.get(1).map_or(1, |w| w.teeth.abs()).max(1));
        let mut sum = 0.0;
        let mut jacobian = [Twist::ZERO; N];
        for i in 1..N {
            let teeth = f64::from(self.wheels[i].teeth);
            let (angle, axis) = self.wheels[i].angle(views[0], views[i]);
            sum += teeth * angle;
            let part = Twist::angular(axis * teeth * scale);
            jacobian[i] = jacobian[i] + part;
            jacobian[0] = jacobian[0] + -part;
        }
        out.push(Row { jacobian, violation: wrap_angle(sum) * scale, key: 0, ..Row::default() });
    }
}

/// A pinion that turns on a carrier and drives a rack that slides on it: slide = radius × angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RackPinion {
    /// The carrier (a fixed body for one that stands in the world), the pinion, the rack.
    pub bodies: [Entity; 3],
    /// How the pinion sits (`teeth` is not read).
    pub pinion: GearWheel,
    /// On the carrier; x is the direction of the slide.
    pub rail: Frame,
    /// Anchor in the rack's body; at slide zero it lies on the rail's anchor.
    pub rack: DVec3,
    /// Pitch radius (m); negative turns the other way.
    pub radius: f64,
}

impl Constraint<3> for RackPinion {
    fn bodies(&self) -> [Entity; 3] {
        self.bodies
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.pinion.check()?;
        self.rail.check()?;
        check::anchor(self.rack)?;
        check::radius(self.radius)
    }

    fn write_rows(&self, [carrier, pinion, rack]: [&BodyView; 3], out: &mut RowWriter<'_, 3>) {
        let (angle, axis) = self.pinion.angle(carrier, pinion);
        let n = carrier.rotation * (self.rail.rotation * DVec3::X);
        let arm_rack = rack.direction(self.rack);
        let arm_rail = carrier.direction(self.rail.anchor);
        let span = rack.position + arm_rack - carrier.position - arm_rail;
        // The slide repeats with the pinion's turn: 2π·radius.
        let violation = wrap_angle(n.dot(span) / self.radius - angle) * self.radius;
        let jacobian = [
            Twist::at(arm_rail + span, -n) + Twist::angular(axis * self.radius),
            Twist::angular(axis * -self.radius),
            Twist::at(arm_rack, n),
        ];
        out.push(Row { jacobian, violation, key: 0, ..Row::default() });
    }
}
