//! Free flight: poses advance, nothing pushes.
//!
//! The midpoint step is drift – kick – drift: half a step of free flight, impulses from rows and forces taken in the
//! **middle** of the step, half a step of free flight. It costs one solve like the semi-implicit step, which is the same
//! thing seen from the half-way points, but what it leaves at the end of the step is of second order: a thrown
//! body follows its parabola exactly, and the 118 mm by which semi-implicit Euler misses a 20 m swing (half a step of its speed)
//! are gone.
//!
//! Rotation in free flight keeps angular momentum and energy (see [`super::gyro`]), so the kick has no gyroscopic term.

use super::collide::{stop_flight, sweep_flight};
use super::gather::world_inertia;
use super::gyro;
use super::impacts::take_back;
use super::integrate::{scatter_bodies, turned};
use super::parallel::for_each;
use crate::components::BodyKind;
use crate::constraint::BodyView;
use crate::schedule::Step;
use crate::settings::Integrator;
use crate::state::Bodies;
use glam::DVec3;
use rayon::prelude::*;

/// Bodies per task: fixed, so that the work is cut the same way for any number of threads.
const CHUNK: usize = 1024;

/// Brings every body to the middle of the step. From here to *integrate* the world shows the middle of the step.
pub fn drift_to_middle(step: &mut Step<'_>) {
    if step.settings.integrator != Integrator::Midpoint {
        return;
    }
    take_back(step);
    let stops = sweep_flight(step);
    fly_all(step);
    stop_flight(&mut step.work.bodies, &stops);
    scatter_bodies(step);
}

/// Half a step of free flight for every body that moves.
pub fn fly_all(step: &mut Step<'_>) {
    let half = 0.5 * step.dt;
    let Bodies { view, quarantined, asleep, .. } = &mut step.work.bodies;
    for_each(
        view.par_chunks_mut(CHUNK).zip(quarantined.par_chunks(CHUNK).zip(asleep.par_chunks(CHUNK))),
        |(view, (quarantined, asleep))| {
            for i in (0..view.len()).filter(|&i| !quarantined[i] && !asleep[i]) {
                fly(&mut view[i], half);
            }
        },
    );
}

/// Free flight of one body.
pub fn fly(view: &mut BodyView, dt: f64) {
    match view.kind {
        BodyKind::Fixed => {}
        BodyKind::Kinematic => {
            view.position += view.linear_velocity * dt;
            view.rotation = turned(view.rotation, view.angular_velocity, dt);
        }
        BodyKind::Dynamic => {
            view.position += view.linear_velocity * dt;
            if view.angular_velocity == DVec3::ZERO {
                // Renormalised like one that turns.
                view.rotation = turned(view.rotation, view.angular_velocity, dt);
                return;
            }
            let momentum = world_inertia(view) * view.angular_velocity;
            let middle = gyro::mid_velocity(view, momentum, dt);
            view.rotation = turned(view.rotation, middle, dt);
            if middle != view.angular_velocity {
                view.angular_velocity = gyro::carried(view, momentum, view.angular_velocity.dot(momentum));
            }
        }
    }
}
