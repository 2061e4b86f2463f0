//! A rod without mass, a rope, and a spring with a damper: three ways to say "this far apart".

use super::frame::{Coordinate, Pose};
use crate::constraint::row::STIFFNESS_KEYS;
use crate::constraint::{BodyView, Bounds, Constraint, Row, RowWriter, Softness, Twist, check};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;

/// Keeps two anchors a given distance apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Anchor in the frame of the first body.
    pub anchor_a: DVec3,
    /// Anchor in the frame of the second body.
    pub anchor_b: DVec3,
    /// How far apart (m).
    pub length: f64,
}

/// Holds two anchors no further apart than `length`; pulls, never pushes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Anchor in the frame of the first body.
    pub anchor_a: DVec3,
    /// Anchor in the frame of the second body.
    pub anchor_b: DVec3,
    /// Greatest distance (m).
    pub length: f64,
}

/// A spring with a damper between two anchors, integrated implicitly: no stiffness makes it explode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpringDamper {
    /// First body.
    pub a: Entity,
    /// Second body.
    pub b: Entity,
    /// Anchor in the frame of the first body.
    pub anchor_a: DVec3,
    /// Anchor in the frame of the second body.
    pub anchor_b: DVec3,
    /// Length at which it does not pull (m).
    pub length: f64,
    /// N/m.
    pub stiffness: f64,
    /// N·s/m.
    pub damping: f64,
    /// Does it only pull, as an elastic band does?
    pub pull_only: bool,
}

macro_rules! between {
    ($name:ident $(, $stiffness:ident, $($field:ident: $value:expr),*)?) => {
        impl $name {
            /// Between two points, each in its own body's frame; lengths in m, stiffness in N/m.
            pub fn between(
                a: Entity,
                anchor_a: DVec3,
                b: Entity,
                anchor_b: DVec3,
                length: f64,
                $($stiffness: f64,)?
            ) -> $name {
                $name { a, b, anchor_a, anchor_b, length $(, $stiffness, $($field: $value),*)? }
            }

            /// Between two world points, as long as they are apart now.
            pub fn at(
                a: Entity,
                pose_a: &Pose,
                b: Entity,
                pose_b: &Pose,
                on_a: DVec3,
                on_b: DVec3,
                $($stiffness: f64,)?
            ) -> $name {
                let length = on_a.distance(on_b);
                $name::between(a, pose_a.local_point(on_a), b, pose_b.local_point(on_b), length $(, $stiffness)?)
            }
        }
    };
}
between!(Distance);
between!(Rope);
between!(SpringDamper, stiffness, damping: 0.0, pull_only: false);

impl SpringDamper {
    /// The same spring with a damper (N·s/m).
    pub fn damped(mut self, damping: f64) -> SpringDamper {
        self.damping = damping;
        self
    }
}

/// The distance between two anchors, its direction and its derivative.
pub(in crate::constraint) struct Span {
    pub at: Coordinate,
    pub n: DVec3,
    arms: [DVec3; 2],
}

impl Span {
    pub fn new([a, b]: [&BodyView; 2], anchor_a: DVec3, anchor_b: DVec3) -> Span {
        let arms = [a.direction(anchor_a), b.direction(anchor_b)];
        let span = b.position + arms[1] - a.position - arms[0];
        let n = span.normalize_or(DVec3::Z);
        let jacobian = [Twist::at(arms[0], -n), Twist::at(arms[1], n)];
        Span { at: Coordinate { value: span.length(), jacobian }, n, arms }
    }

    /// Geometric stiffness of the pull `tension` along the span.
    ///
    /// The arms turn with their bodies (a term in each body's own block), and the line turns with both anchors:
    /// P = (T/ℓ)(I − n nᵀ) on their relative motion. The second ties the two bodies to each other, so it is written
    /// as two rows J_t (v⁺ − v) + C λ = 0 with 1/C = ¼h²T/ℓ, the same weight that the engine gives to the blocks.
    pub fn push_stiffness(&self, views: [&BodyView; 2], tension: f64, out: &mut RowWriter<'_, 2>) {
        self.stiffen(views, tension, out, RowWriter::push);
    }

    /// The same with another place for the two rows.
    pub fn stiffen<'w>(
        &self,
        [a, b]: [&BodyView; 2],
        tension: f64,
        out: &mut RowWriter<'w, 2>,
        push: impl Fn(&mut RowWriter<'w, 2>, Row<2>),
    ) {
        if tension <= 0.0 || !out.implicit_stiffness() {
            return;
        }
        super::anchored::push_force_stiffness(self.arms[0], self.arms[1], -self.n * tension, out);
        let weight = out.stiffness_share() * out.dt() * out.dt() * tension / self.at.value.max(1e-6);
        let lighter = [a, b].iter().filter(|v| v.is_dynamic()).map(|v| v.mass).fold(f64::INFINITY, f64::min);
        // hω of the line's own swing is √(weight/mass): below a tenth the explicit step has nothing to fear.
        if weight < 0.01 * lighter {
            return;
        }
        let (t1, t2) = self.n.any_orthonormal_pair();
        for (i, t) in [t1, t2].into_iter().enumerate() {
            let jacobian = [Twist::at(self.arms[0], -t), Twist::at(self.arms[1], t)];
            let speed = Coordinate { value: 0.0, jacobian }.speed(a, b);
            let row = Row {
                jacobian,
                target_velocity: speed,
                softness: Softness::Velocity { compliance: 1.0 / weight },
                key: STIFFNESS_KEYS + i as u32,
                measured: false,
                ..Row::default()
            };
            push(out, row);
        }
    }

    /// Keeps the length, or what `bounds` leave of that.
    fn hold(&self, views: [&BodyView; 2], length: f64, bounds: Bounds, out: &mut RowWriter) {
        let violation = self.at.value - length;
        out.push(Row { jacobian: self.at.jacobian, violation, bounds, key: 0, ..Row::default() });
        self.push_stiffness(views, -out.last_impulse(0) / out.dt(), out);
    }
}

fn check_span(anchors: [DVec3; 2], length: f64) -> Result<(), OutOfRange> {
    anchors.into_iter().try_for_each(check::anchor)?;
    check::length(length)
}

impl Constraint for Distance {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        check_span([self.anchor_a, self.anchor_b], self.length)
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        Span::new(views, self.anchor_a, self.anchor_b).hold(views, self.length, Bounds::BOTH, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.anchor_b)
    }
}

impl Constraint for Rope {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        check_span([self.anchor_a, self.anchor_b], self.length)
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        Span::new(views, self.anchor_a, self.anchor_b).hold(views, self.length, Bounds::PULL_ONLY, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.anchor_b)
    }
}

impl Constraint for SpringDamper {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        check_span([self.anchor_a, self.anchor_b], self.length)?;
        check::spring(self.stiffness, self.damping)
    }

    fn write_rows(&self, views: [&BodyView; 2], out: &mut RowWriter) {
        let span = Span::new(views, self.anchor_a, self.anchor_b);
        out.push(Row {
            jacobian: span.at.jacobian,
            violation: span.at.value - self.length,
            bounds: if self.pull_only { Bounds::PULL_ONLY } else { Bounds::BOTH },
            softness: Softness::Spring { stiffness: self.stiffness, damping: self.damping },
            key: 0,
            measured: false,
            ..Row::default()
        });
        span.push_stiffness(views, -out.last_impulse(0) / out.dt(), out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.anchor_b)
    }
}
