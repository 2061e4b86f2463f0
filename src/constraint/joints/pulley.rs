//! A rope over sheaves: one length for the whole rope, friction where it wraps, a winch to haul it in.
//!
//! The rope runs through the points in order; the first and the last are its ends, those between are sheaves (taken
//! as eyes: small against the free lengths). The same body may carry several points, as a block with several sheaves does.
//!
//! Length: φ = Σ ℓ_k − L, pull only. Its force is the tension in the middle of the rope's span of tensions.
//! Capstan friction at sheave i: the row ½ d(Σ_{k>i} ℓ_k − Σ_{k≤i} ℓ_k) measures how fast rope passes the sheave; its force
//! f is the tension after minus the tension before. With T ± f/2 on the two sides, T₊ ≤ T₋ e^{μα} is
//! |f| ≤ 2 T tanh(μα/2), with T of the last step, as for the friction of contacts (000 eq. 11).

use super::frame::wrap_angle;
use crate::components::RowImpulses;
use crate::constraint::{BodyView, Bounds, Constraint, Row, RowWriter, Softness, Twist, check};
use crate::math;
use crate::range::OutOfRange;
use crate::solver::{Label, RowKind};
use glam::DVec3;
use hecs::Entity;

/// A place the rope runs through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopePoint {
    /// The body that carries it.
    pub body: Entity,
    /// Where, in the body's frame.
    pub anchor: DVec3,
    /// Friction coefficient of the sheave (not read at the ends); zero for a free-running one.
    pub friction: f64,
}

impl RopePoint {
    /// An end, or a sheave without friction.
    pub fn new(body: Entity, anchor: DVec3) -> RopePoint {
        RopePoint { body, anchor, friction: 0.0 }
    }

    /// A sheave with capstan friction.
    pub fn rubbing(body: Entity, anchor: DVec3, friction: f64) -> RopePoint {
        RopePoint { body, anchor, friction }
    }
}

/// What takes rope in and lets it out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Winch {
    /// Nothing: the length stays.
    #[default]
    None,
    /// The length changes at a rate, with no more tension than `max_force`; beyond it the rope slips out.
    Rate {
        /// m/s; negative hauls in.
        speed: f64,
        /// N.
        max_force: f64,
    },
    /// The rope's first point is a drum: turning it about `axis` (its body's frame) winds up `radius` × angle.
    Drum {
        /// Axis in the drum's body frame; a positive turn winds rope up.
        axis: DVec3,
        /// Radius (m).
        radius: f64,
        /// Angle wound so far (rad), counted over turns; kept by [`Constraint::advance`].
        wound: f64,
    },
}

/// A rope through `N` points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PulleyRope<const N: usize> {
    /// Ends and sheaves, in order.
    pub points: [RopePoint; N],
    /// Length between the ends (m) when nothing is wound up.
    pub length: f64,
    /// What changes the length.
    pub winch: Winch,
}

/// Key of the length's row; sheave i has key i.
const LENGTH: u32 = 0;

impl<const N: usize> PulleyRope<N> {
    /// A rope of a given length.
    pub fn new(points: [RopePoint; N], length: f64) -> PulleyRope<N> {
        PulleyRope { points, length, winch: Winch::None }
    }

    /// The same rope with a winch.
    pub fn with_winch(mut self, winch: Winch) -> PulleyRope<N> {
        self.winch = winch;
        self
    }

    /// How long the rope's path is now (m).
    pub fn path_length(&self, views: [&BodyView; N]) -> f64 {
        let at: [DVec3; N] = std::array::from_fn(|i| views[i].point(self.points[i].anchor));
        at.windows(2).map(|p| p[0].distance(p[1])).sum()
    }

    /// How fast the rope's path grows (m/s).
    pub fn path_rate(&self, views: [&BodyView; N]) -> f64 {
        let at: [DVec3; N] = std::array::from_fn(|i| views[i].point(self.points[i].anchor));
        let speed = |i: usize| views[i].velocity_at(at[i]);
        (1..N).map(|i| (at[i] - at[i - 1]).normalize_or_zero().dot(speed(i) - speed(i - 1))).sum()
    }

    /// Rope wound on the drum now, and its derivative on the drum's rotation.
    fn wound(&self, drum: &BodyView) -> (f64, DVec3) {
        match self.winch {
            Winch::Drum { axis, radius, wound } => {
                let axis = axis.normalize_or(DVec3::X);
                let (angle, derivative) = drum_angle(drum, axis);
                (radius * (wound + wrap_angle(angle - wound)), derivative * radius)
            }
            _ => (0.0, DVec3::ZERO),
        }
    }

    /// Tension of each stretch of rope in the last step (N).
    fn last_tensions(&self, last: impl Fn(u32) -> f64, dt: f64) -> [f64; N] {
        let middle = -last(LENGTH) / dt;
        std::array::from_fn(|k| {
            let friction: f64 =
                (1..N.saturating_sub(1)).map(|i| last(i as u32) / dt * if k >= i { -0.5 } else { 0.5 }).sum();
            (middle + friction).max(0.0)
        })
    }
}

/// Angle of a body about one of its own axes, against its orientation at rest in the world.
fn drum_angle(drum: &BodyView, axis: DVec3) -> (f64, DVec3) {
    // Twist part of the rotation about the axis: θ = 2 atan2(v·a, w); dθ = ω·[w(w a + v×a) + (v·a) v]/(w² + (v·a)²),
    // with the axis fixed in the body at rest.
    let (v, w) = (drum.rotation.xyz(), drum.rotation.w);
    let s = v.dot(axis);
    let square = (w * w + s * s).max(1e-12);
    (2.0 * math::atan2(s, w), ((axis * w + v.cross(axis)) * w + v * s) / square)
}

impl<const N: usize> Constraint<N> for PulleyRope<N> {
    fn bodies(&self) -> [Entity; N] {
        self.points.map(|p| p.body)
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.points.iter().try_for_each(RopePoint::check)?;
        check::length(self.length)?;
        self.winch.check()
    }

    fn write_rows(&self, views: [&BodyView; N], out: &mut RowWriter<'_, N>) {
        let arms: [DVec3; N] = std::array::from_fn(|i| views[i].direction(self.points[i].anchor));
        let at: [DVec3; N] = std::array::from_fn(|i| views[i].position + arms[i]);
        // Stretch k runs from point k to point k + 1 along n[k].
        let n: [DVec3; N] = std::array::from_fn(|k| match at.get(k + 1) {
            Some(next) => (next - at[k]).normalize_or_zero(),
            None => DVec3::ZERO,
        });
        let gather = |sign: &dyn Fn(usize) -> f64| -> [Twist; N] {
            std::array::from_fn(|i| {
                let mut pull = -n[i] * sign(i);
                if i > 0 {
                    pull += n[i - 1] * sign(i - 1);
                }
                Twist::at(arms[i], pull)
            })
        };
        let (wound, turn) = self.wound(views[0]);
        let mut jacobian = gather(&|_| 1.0);
        jacobian[0].angular += turn;
        let (speed, max_force) = match self.winch {
            Winch::Rate { speed, max_force } => (speed, max_force),
            _ => (0.0, f64::INFINITY),
        };
        out.push(Row {
            jacobian,
            violation: at.windows(2).map(|p| p[0].distance(p[1])).sum::<f64>() - self.length + wound,
            bounds: Bounds { lower: -max_force, upper: 0.0 },
            target_velocity: speed,
            key: LENGTH,
            ..Row::default()
        });
        let dt = out.dt();
        let tensions = self.last_tensions(|key| out.last_impulse(key), dt);
        for i in 1..N.saturating_sub(1) {
            let wrap = math::angle_between(n[i - 1], n[i]);
            let mean = 0.5 * (tensions[i - 1] + tensions[i]);
            let limit = 2.0 * mean * math::tanh(0.5 * self.points[i].friction * wrap);
            if self.points[i].friction > 0.0 {
                let mut jacobian = gather(&|k| if k >= i { 0.5 } else { -0.5 });
                jacobian[0].angular -= turn * 0.5;
                out.push(Row {
                    jacobian,
                    bounds: Bounds::symmetric(limit),
                    softness: Softness::Velocity { compliance: 1e-9 },
                    key: i as u32,
                    kind: RowKind::Joint,
                    measured: false,
                    ..Row::default()
                });
            }
        }
        for i in 0..N {
            let mut force = n[i] * tensions[i];
            if i > 0 {
                force -= n[i - 1] * tensions[i - 1];
            }
            if force != DVec3::ZERO {
                out.push_stiffness(i, crate::constraint::row::Stiffness::of_force(arms[i], force));
            }
        }
    }

    fn advance(&mut self, views: [&BodyView; N], last: &RowImpulses, dt: f64) {
        let path = self.path_length(views);
        match &mut self.winch {
            Winch::None => {}
            Winch::Rate { speed, .. } => {
                self.length = (self.length + *speed * dt).max(0.0);
                // Overloaded, the rope slips: what has run out is not hauled back in one blow.
                let slips = last.0.iter().any(|r| r.key == LENGTH && r.label == Label::Lower);
                if slips {
                    self.length = self.length.max(path);
                }
            }
            Winch::Drum { axis, wound, .. } => {
                let (angle, _) = drum_angle(views[0], axis.normalize_or(DVec3::X));
                *wound += wrap_angle(angle - *wound);
            }
        }
    }

    fn save(&self, state: &mut Vec<f64>) {
        match self.winch {
            Winch::None => {}
            Winch::Rate { .. } => state.push(self.length),
            Winch::Drum { wound, .. } => state.push(wound),
        }
    }

    fn load(&mut self, state: &[f64]) {
        match (&mut self.winch, state) {
            (Winch::Rate { .. }, &[length]) => self.length = length,
            (Winch::Drum { wound, .. }, &[angle]) => *wound = angle,
            _ => {}
        }
    }

    fn anchor(&self, views: [&BodyView; N]) -> DVec3 {
        match N {
            0 => DVec3::ZERO,
            n => views[n - 1].point(self.points[n - 1].anchor),
        }
    }
}
