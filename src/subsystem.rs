//! The door for physics that is not the engine's: a [`Subsystem`] is a component that answers three questions about its ports.
//!
//! Ports are bodies, mostly point masses: joints, contacts and forces act on them as on any other, and the engine moves them. What lies
//! behind them is the subsystem's own. With S the response of the ports to impulses and v₀ their free motion, the ports' part of the
//! step's problem is
//!
//! ```text
//!     v⁺ = v₀ + S λ      ⇔      S⁻¹ v⁺ = S⁻¹ v₀ + λ ,      λ = h f + Jᵀ λ_rows
//! ```
//!
//! so the ports are nodes whose block of A is S⁻¹, all of them coupled with one another, and every solver takes them as they are.

use crate::constraint::BodyView;
use hecs::Entity;

/// Physics behind some bodies. Implement it for a component, call `physics.add_subsystem::<T>()` once, and spawn entities with it.
///
/// Velocities and impulses are six numbers a port, linear first, in the order of [`Subsystem::ports`]; of a point mass the last three
/// are zero. Ports never sleep, and a port belongs to one subsystem only.
pub trait Subsystem: Send + Sync + 'static {
    /// The bodies that the rest of the world sees. S has all of their inertia: what their own [`crate::components::Mass`] is good for is
    /// their weight.
    fn ports(&self) -> &[Entity];

    /// Where would the ports go in this step if nothing acted on them from outside? `ports` is how they stand in the middle of the
    /// step (or at its start, see [`crate::settings::Integrator`]); `velocity` holds what they have, and is to hold what they would
    /// have at the end. Forces on ports, their weight among them, come as impulses.
    fn predict(&mut self, ports: &[BodyView], dt: f64, velocity: &mut [f64]);

    /// S λ: how an impulse on the ports changes their velocities at the end of the step, linear and symmetric positive definite.
    /// False if that cannot be said. Asked for one unit impulse after the other; again when the step's length or the ports change, after a
    /// restore, and when [`Subsystem::commit`] says so.
    fn respond(&mut self, impulse: &[f64], change: &mut [f64]) -> bool;

    /// The step is decided: these impulses came, and the ports have `predict`'s velocities plus S λ. Moves what lies behind. True if it
    /// responds differently from now on.
    fn commit(&mut self, impulse: &[f64]) -> bool;

    /// Appends what changes from step to step, for snapshots. Nothing unless told otherwise.
    fn save(&self, _state: &mut Vec<f64>) {}

    /// Takes back what [`Subsystem::save`] gave.
    fn load(&mut self, _state: &[f64]) {}
}

/// What is wrong with a subsystem.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A port is gone.
    #[error("its port {0:?} is not a body (any more)")]
    PortGone(Entity),
    /// A port is named twice, or by another subsystem as well.
    #[error("its port {0:?} is named twice, or is a port of another subsystem")]
    PortTaken(Entity),
    /// The free motion is no number.
    #[error("its free motion is not finite or above Tuning::max_speed")]
    FreeMotion,
    /// The response is no number.
    #[error("its response is not finite")]
    Response,
    /// It cannot say how it responds.
    #[error("it does not say how it responds")]
    Unsaid,
    /// The response is no inertia.
    #[error("its response is not symmetric positive definite")]
    Indefinite,
}

/// What the engine keeps of a subsystem: a component beside it.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct PortResponse {
    /// The ports asked about, and which of their six numbers each has.
    pub ports: Vec<(Entity, usize)>,
    /// The step's length, and the number of restores before.
    pub made_for: (f64, u64),
    /// S⁻¹, six rows and columns a port; zero behind a point's three. Empty: to be asked for.
    pub inverse: Vec<f64>,
    /// The free motion of the ports.
    pub free: Vec<f64>,
    /// Is a step under way that the subsystem takes part in?
    pub open: bool,
}
