//! How a stretch of the step is to be followed.

/// A stretch of the step.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Time from the start of the step (s).
    pub after: f64,
    /// Its length (s).
    pub dt: f64,
    /// Length of the whole step (s).
    pub step: f64,
}

/// How a stretch is to be followed.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Which stretch.
    pub moment: Moment,
    /// Share of the new velocity in the way.
    pub theta: f64,
    /// Right-hand sides at most.
    pub passes: u32,
    /// Joints may be open by so much (m or rad).
    pub open: f64,
    /// Share of the energy that may be missing or too much.
    pub work: f64,
    /// Is every pass factored anew?
    pub fresh: bool,
    /// Are velocities across joints projected afterwards, whatever the step resolves?
    pub project: bool,
}

impl Attempt {
    /// The step as it is meant.
    pub fn chord(moment: Moment) -> Attempt {
        Attempt { moment, theta: 0.5, passes: 16, open: 1e-6, work: 1e-7, fresh: false, project: false }
    }

    /// The step that only loses energy.
    pub fn decay(moment: Moment) -> Attempt {
        Attempt { moment, theta: 1.0, passes: 12, open: 1e-4, work: 1e-4, fresh: true, project: true }
    }

    /// Share of h²K in the tangent.
    pub fn share(&self) -> f64 {
        0.5 * self.theta
    }
}
