//! A fixed clock for game loops, and poses between two steps.

use crate::components::{Position, PreviousPose, Rotation};
use crate::math;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// Turns frame times into a whole number of fixed steps.
///
/// ```
/// # use turnbuckle::clock::FixedClock;
/// let mut clock = FixedClock::new(1.0 / 60.0);
/// for _ in 0..clock.advance(1.0 / 24.0) {
///     // physics.step(&mut world, clock.dt());
/// }
/// let alpha = clock.alpha(); // how far the frame lies between the last two steps
/// # assert!((alpha - 0.5).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FixedClock {
    dt: f64,
    left: f64,
    most: u32,
    dropped: f64,
}

impl FixedClock {
    /// A clock with steps of `dt` seconds that catches up by at most 4 steps a frame.
    ///
    /// # Panics
    /// If `dt` is not a positive finite number.
    pub fn new(dt: f64) -> FixedClock {
        assert!(dt.is_finite() && dt > 0.0, "dt is {dt}; a clock needs a positive finite number of seconds");
        FixedClock { dt, left: 0.0, most: 4, dropped: 0.0 }
    }

    /// The same clock with another cap on catch-up steps a frame (at least 1).
    pub fn with_cap(mut self, most: u32) -> FixedClock {
        self.most = most.max(1);
        self
    }

    /// Length of a step (s).
    pub fn dt(&self) -> f64 {
        self.dt
    }

    /// Takes a frame's time and says how many steps are due. What goes beyond the cap is dropped, so that a slow
    /// frame does not make the next one slower still; times that are not finite or negative count as zero.
    pub fn advance(&mut self, frame: f64) -> u32 {
        if frame.is_finite() && frame > 0.0 {
            self.left += frame;
        }
        let due = (self.left / self.dt).floor();
        if due > f64::from(self.most) {
            let kept = self.left - due * self.dt;
            self.dropped += (due - f64::from(self.most)) * self.dt;
            self.left = kept.max(0.0);
            return self.most;
        }
        self.left = (self.left - due * self.dt).max(0.0);
        due as u32
    }

    /// How far the present lies between the last two steps, 0..1.
    pub fn alpha(&self) -> f64 {
        (self.left / self.dt).min(1.0)
    }

    /// Simulated time that was given up to keep the frame rate (s).
    pub fn dropped(&self) -> f64 {
        self.dropped
    }
}

/// The pose to draw: between the one before the last step and the one after it. Never fed back into the simulation.
/// Bodies without [`PreviousPose`] give their present pose; `None` if the entity is no body.
pub fn interpolated_pose(world: &World, body: Entity, alpha: f64) -> Option<(DVec3, DQuat)> {
    let mut query = world.query_one::<(&Position, &Rotation, Option<&PreviousPose>)>(body);
    let (x, q, previous) = query.get().ok()?;
    Some(match previous {
        Some(p) => (p.position.lerp(x.0, alpha), math::slerp(p.rotation, q.0, alpha)),
        None => (x.0, q.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_neither_lost_nor_made_below_the_cap() {
        let (mut clock, mut steps, mut time) = (FixedClock::new(0.01), 0, 0.0);
        for k in 0..1000 {
            let frame = 0.003 + 0.00002 * f64::from(k % 7);
            time += frame;
            steps += clock.advance(frame);
        }
        // round-off of a thousand sums
        assert!((f64::from(steps) * 0.01 + clock.alpha() * 0.01 - time).abs() < 1e-12);
        assert_eq!(clock.dropped(), 0.0);
    }

    #[test]
    fn a_hitch_costs_at_most_the_cap_and_nonsense_nothing() {
        let mut clock = FixedClock::new(0.01).with_cap(3);
        assert_eq!(clock.advance(5.004), 3);
        assert!((clock.alpha() - 0.4).abs() < 1e-6 && (clock.dropped() - 4.97).abs() < 1e-9);
        assert_eq!(clock.advance(f64::NAN) + clock.advance(-1.0) + clock.advance(f64::INFINITY), 0);
    }
}
