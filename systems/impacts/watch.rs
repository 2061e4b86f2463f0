//! Pairs that may meet: where they touch at a time, and when they will.

use super::flight::Flyer;
use crate::components::ManifoldPoint;
use crate::constraint::contact_rows::relative_velocity;
use glam::DVec3;
use hecs::Entity;

/// Surfaces that are nearer than this touch (m).
pub(super) const TOUCH: f64 = 1e-6;
/// Fast points further off than this (m) have no row once nothing meets there any more.
const OFF: f64 = 1e-3;

/// A pair that was looked at in vain so often, or struck so often, is left to its rows.
pub(super) const LOOKS: u32 = 32;
pub(super) const STRIKES: u32 = 64;

/// A pair that is watched.
pub(super) struct Watched {
    /// Its contact, if it has one.
    pub entity: Option<Entity>,
    /// Numbers of the colliders.
    pub ids: (u32, u32),
    /// Its bodies among the flyers.
    pub flyers: [u32; 2],
    pub restitution: f64,
    pub friction: f64,
    /// Velocity of the surface of b over that of a that friction strives for (m/s).
    pub belt: DVec3,
    /// Where it touches, at the time `seen`.
    pub points: Vec<ManifoldPoint>,
    pub seen: f64,
    /// When something is to be looked at next (s); infinite for never.
    pub next: f64,
    /// How often it was looked at in vain since its bodies were struck last.
    pub looks: u32,
    /// How often it was struck, how fast at most (m/s), and what that took (N·s).
    pub strikes: u32,
    pub speed: f64,
    pub impulse: f64,
}

/// What a point does at a time.
pub(super) struct Closing {
    /// Distance (m).
    pub gap: f64,
    /// Speed of approach (m/s).
    pub speed: f64,
    /// How fast that grows (m/s²), as far as bodies fly.
    pub gain: f64,
    /// Slower approaches are for the rows (m/s).
    pub slow: f64,
}

impl Closing {
    /// Is it struck now?
    pub fn meets(&self) -> bool {
        self.gap <= TOUCH && self.speed > self.slow
    }

    /// In how many seconds it is struck; none where the approach is slow then.
    pub fn time(&self) -> Option<f64> {
        if self.gap <= TOUCH {
            return (self.speed > self.slow).then_some(0.0);
        }
        let square = self.speed * self.speed + 2.0 * self.gain * self.gap;
        if square.is_nan() || square <= self.slow * self.slow {
            return None;
        }
        let then = square.sqrt();
        // The earlier root of gap − speed t − ½ gain t².
        (self.speed + then > 0.0).then(|| 2.0 * self.gap / (self.speed + then))
    }

    /// Its gap after some time.
    pub fn gap_after(&self, time: f64) -> f64 {
        self.gap - time * (self.speed + 0.5 * self.gain * time)
    }
}

/// The numbers that all pairs share.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// The step (s).
    pub dt: f64,
    /// `Settings::bounce_threshold`.
    pub threshold: f64,
}

impl Watched {
    pub fn closing(&self, point: &ManifoldPoint, flyers: &[Flyer], time: f64, terms: Terms) -> Closing {
        let [a, b] = self.flyers.map(|k| &flyers[k as usize]);
        let views = [a.at(time), b.at(time)];
        let n = point.normal;
        let fly = |f: &Flyer| if f.stays { 0.0 } else { n.dot(f.pull[0]) };
        let pressed = n.dot(a.pull[0] - b.pull[0]).max(0.0);
        Closing {
            gap: point.separation + time * (b.left_out(point.arm_b, n) - a.left_out(point.arm_a, n)),
            speed: -n.dot(relative_velocity(point, views.each_ref())),
            gain: fly(a) - fly(b),
            slow: terms.threshold.max(1.5 * terms.dt * pressed),
        }
    }

    /// The least of its gaps.
    pub fn nearest(&self, flyers: &[Flyer], terms: Terms) -> f64 {
        let gaps = self.points.iter().map(|p| self.closing(p, flyers, self.seen, terms).gap);
        gaps.fold(f64::INFINITY, f64::min)
    }

    /// Is a point struck now?
    pub fn meets(&self, flyers: &[Flyer], terms: Terms) -> bool {
        self.points.iter().any(|p| self.closing(p, flyers, self.seen, terms).meets())
    }

    /// When the first of its points is met, as far as they can tell.
    pub fn soonest(&self, flyers: &[Flyer], terms: Terms) -> f64 {
        let times = self.points.iter().filter_map(|p| self.closing(p, flyers, self.seen, terms).time());
        self.seen + times.fold(f64::INFINITY, f64::min)
    }

    /// Is nothing left to look at in this step?
    fn is_settled(&self) -> bool {
        self.looks <= LOOKS && self.strikes < STRIKES
    }

    /// Points of a pair that neither meets nor has a body that was struck: what passes by is not held by a tangent.
    pub fn let_pass(&self, points: &mut [ManifoldPoint], flyers: &[Flyer], terms: Terms) {
        for point in points.iter_mut().filter(|_| self.is_settled()) {
            let now = self.closing(point, flyers, 0.0, terms);
            point.answered = now.speed > now.slow;
        }
    }

    /// Its points as the rows of the step are to see them: with the gap that leads to what there is now, or without a row.
    pub fn points_for_rows(&mut self, flyers: &[Flyer], terms: Terms) -> Vec<ManifoldPoint> {
        let (dt, seen, settled) = (terms.dt, self.seen, self.is_settled());
        let mut points = std::mem::take(&mut self.points);
        for point in &mut points {
            let now = self.closing(point, flyers, seen, terms);
            let fast = now.speed.abs() > now.slow || now.gap > OFF;
            let slow_comes = now.speed.abs() <= now.slow && now.gap_after(dt - seen) < 0.0;
            point.answered = fast && settled && !slow_comes;
            point.separation = match point.answered {
                true if self.strikes > 0 => now.gap.min(0.0),
                true => now.gap,
                false => now.gap_after(-seen) + now.gain * (dt * dt / 8.0),
            };
        }
        points
    }
}
