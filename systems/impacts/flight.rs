//! Bodies between impacts: each has its own time.

use crate::constraint::BodyView;
use crate::systems::drift::fly;
use glam::DVec3;

/// A body that takes part in impacts.
pub(super) struct Flyer {
    pub slot: u32,
    /// Its state at its own time.
    pub view: BodyView,
    /// That time (s), from the pose of the step on.
    pub time: f64,
    /// Its acceleration (m/s²) and angular acceleration (rad/s²): what forces do together with what carries it.
    pub pull: [DVec3; 2],
    /// Does it stay where it is, because nothing moves it or joints hold it?
    pub stays: bool,
    /// Do impulses move it?
    pub moves: bool,
    /// Is it tied by joints?
    pub jointed: bool,
    pub struck: bool,
    /// Its state at the end of the step, if it is struck later.
    pub shown: Option<BodyView>,
}

impl Flyer {
    /// Its state at a time.
    pub fn at(&self, time: f64) -> BodyView {
        if self.stays || time == self.time {
            self.view
        } else {
            flown(&self.view, time - self.time, self.pull[0])
        }
    }

    /// Takes it from the stored state of the step to the parabola.
    pub fn begin(&mut self, dt: f64) {
        if !self.moves {
            return;
        }
        if !self.stays {
            self.view.position += self.pull[0] * (dt * dt / 8.0);
        }
        self.view.linear_velocity += self.pull[0] * (0.5 * dt);
        self.view.angular_velocity += self.pull[1] * (0.5 * dt);
    }

    /// The state of the step that leads to where it is.
    pub fn end(&self, dt: f64) -> BodyView {
        let mut view = self.at(0.0);
        if !self.stays {
            view.position -= self.pull[0] * (dt * dt / 8.0);
        }
        view.linear_velocity -= self.pull[0] * (0.5 * dt);
        view.angular_velocity -= self.pull[1] * (0.5 * dt);
        view
    }

    /// Speed with which it moves away from its pose along a direction, if it stays there although it moves.
    pub fn left_out(&self, arm: DVec3, along: DVec3) -> f64 {
        if !(self.stays && self.moves) {
            return 0.0;
        }
        along.dot(self.view.linear_velocity + self.view.angular_velocity.cross(arm))
    }
}

/// Free flight along a parabola, also back.
fn flown(view: &BodyView, time: f64, pull: DVec3) -> BodyView {
    let mut view = *view;
    fly(&mut view, time);
    view.position += pull * (0.5 * time * time);
    view.linear_velocity += pull * time;
    view
}
