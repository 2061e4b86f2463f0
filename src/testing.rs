//! For tests, ours and users': checks for your own constraints (the same that the built-in ones pass), and the hash of a state.

mod state_hash;

pub use state_hash::state_hash;

use crate::components::RowImpulses;
use crate::constraint::{BodyView, Constraint, Row, RowWriter, Softness};
use crate::math;
use crate::solver::random::Random;
use glam::{DMat3, DQuat, DVec3};
use thiserror::Error;

/// What [`check_jacobian`] found wrong.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum JacobianError {
    /// J is not the derivative of the violation.
    #[error(
        "row {key}, pose {pose}: the Jacobian says {given:.9} for body {body} moved along component {component} \
         (0–2 linear, 3–5 angular), differences of the violation say {measured:.9}"
    )]
    Differs {
        /// The row's key.
        key: u32,
        /// Which of the random poses.
        pose: usize,
        /// Which body.
        body: usize,
        /// Which of its six components.
        component: usize,
        /// What `jacobian` says.
        given: f64,
        /// What differences say.
        measured: f64,
    },
    /// A row holds a number that is not finite.
    #[error("row {key}, pose {pose}: a number is not finite")]
    NotFinite {
        /// The row's key.
        key: u32,
        /// Which of the random poses.
        pose: usize,
    },
    /// No row was ever compared.
    #[error("no row with a violation was written in {poses} poses: nothing was checked")]
    NothingChecked {
        /// How many poses were tried.
        poses: usize,
    },
}

/// What [`check_jacobian`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JacobianReport {
    /// Rows compared.
    pub rows: usize,
    /// Largest difference met, relative to 1 + |J|².
    pub worst: f64,
}

/// A small generator of random poses: the same numbers everywhere for a seed.
#[derive(Clone, Debug)]
pub struct RandomPoses(Random);

impl RandomPoses {
    /// Starts from a seed.
    pub fn new(seed: u64) -> RandomPoses {
        RandomPoses(Random::new(seed))
    }

    /// A number in −1..1.
    pub fn number(&mut self) -> f64 {
        2.0 * self.0.unit() - 1.0
    }

    /// A vector with components in −1..1.
    pub fn vector(&mut self) -> DVec3 {
        DVec3::new(self.number(), self.number(), self.number())
    }

    /// Any rotation, evenly spread.
    pub fn rotation(&mut self) -> DQuat {
        loop {
            let q = [self.number(), self.number(), self.number(), self.number()];
            let square: f64 = q.iter().map(|x| x * x).sum();
            if square > 0.01 && square < 1.0 {
                return DQuat::from_array(q).normalize();
            }
        }
    }

    /// A dynamic body anywhere within two metres of the origin, turned in any way, in slow motion.
    pub fn body(&mut self) -> BodyView {
        BodyView {
            kind: crate::components::BodyKind::Dynamic,
            position: self.vector() * 2.0,
            rotation: self.rotation(),
            linear_velocity: self.vector() * 0.1,
            angular_velocity: self.vector() * 0.1,
            mass: 1.0,
            inertia: DMat3::IDENTITY,
        }
    }
}

/// Compares every row's Jacobian with differences of its violation in 1,000 random poses.
///
/// Rows about velocity only have no violation to compare with and are left out. A pose at which a violation
/// jumps (an angle that wraps) is passed over.
pub fn check_jacobian<const N: usize>(
    constraint: &impl Constraint<N>,
) -> Result<JacobianReport, JacobianError> {
    check_jacobian_with(constraint, 1000, 1, |poses| std::array::from_fn(|_| poses.body()))
}

/// [`check_jacobian`] for constraints that need poses of their own: `poses` of them, from a seed.
pub fn check_jacobian_with<const N: usize>(
    constraint: &impl Constraint<N>,
    poses: usize,
    seed: u64,
    mut draw: impl FnMut(&mut RandomPoses) -> [BodyView; N],
) -> Result<JacobianReport, JacobianError> {
    let mut random = RandomPoses::new(seed);
    let mut report = JacobianReport::default();
    for pose in 0..poses {
        let bodies = draw(&mut random);
        for row in rows_of(constraint, &bodies) {
            if !is_finite(&row) {
                return Err(JacobianError::NotFinite { key: row.key, pose });
            }
            if matches!(row.softness, Softness::Velocity { .. }) {
                continue;
            }
            check_row(constraint, &bodies, &row, pose, &mut report)?;
            report.rows += 1;
        }
    }
    if report.rows == 0 { Err(JacobianError::NothingChecked { poses }) } else { Ok(report) }
}

fn check_row<const N: usize>(
    constraint: &impl Constraint<N>,
    bodies: &[BodyView; N],
    row: &Row<N>,
    pose: usize,
    report: &mut JacobianReport,
) -> Result<(), JacobianError> {
    // Fourth-order central differences: truncation ε⁴ and round-off 1e-16/ε are both below 1e-11 at ε = 1e-4 for
    // derivatives of order one; near a singular pose higher derivatives grow as powers of |J|, hence the scale.
    const STEP: f64 = 1e-4;
    const TOLERANCE: f64 = 1e-7;
    let size: f64 = row.jacobian.iter().flat_map(|t| t.to_array()).map(f64::abs).fold(0.0, f64::max);
    let scale = 1.0 + size * size + (size * size) * (size * size) * size;
    for body in 0..N {
        for component in 0..6 {
            let at = |s: f64| violation_moved(constraint, bodies, row.key, body, component, s * STEP);
            let Some([m2, m1, p1, p2]) = all([at(-2.0), at(-1.0), at(1.0), at(2.0)]) else { continue };
            if (p2 - m2).abs() > 0.05 + 8.0 * STEP * size {
                continue; // an angle wraps here
            }
            let measured = (8.0 * (p1 - m1) - (p2 - m2)) / (12.0 * STEP);
            let given = row.jacobian[body].to_array()[component];
            let error = (measured - given).abs() / scale;
            report.worst = report.worst.max(error);
            if error > TOLERANCE {
                return Err(JacobianError::Differs { key: row.key, pose, body, component, given, measured });
            }
        }
    }
    Ok(())
}

fn all<const K: usize>(values: [Option<f64>; K]) -> Option<[f64; K]> {
    let mut out = [0.0; K];
    for (o, v) in out.iter_mut().zip(values) {
        *o = v?;
    }
    Some(out)
}

fn is_finite<const N: usize>(row: &Row<N>) -> bool {
    row.jacobian.iter().all(|t| t.linear.is_finite() && t.angular.is_finite())
        && row.violation.is_finite()
        && row.target_velocity.is_finite()
        && !row.bounds.lower.is_nan()
        && !row.bounds.upper.is_nan()
}

/// The rows of a constraint in these poses, for a step of 1/60 s and without history.
pub fn rows_of<const N: usize>(constraint: &impl Constraint<N>, bodies: &[BodyView; N]) -> Vec<Row<N>> {
    let (mut rows, mut stiffness) = (Vec::new(), Vec::new());
    let last = RowImpulses::default();
    let mut writer = RowWriter::new(1.0 / 60.0, &last, &mut rows, &mut stiffness);
    constraint.write_rows(std::array::from_fn(|i| &bodies[i]), &mut writer);
    rows
}

fn violation_moved<const N: usize>(
    constraint: &impl Constraint<N>,
    bodies: &[BodyView; N],
    key: u32,
    body: usize,
    component: usize,
    by: f64,
) -> Option<f64> {
    let mut moved = *bodies;
    let axis = DVec3::AXES[component % 3];
    if component < 3 {
        moved[body].position += axis * by;
    } else {
        moved[body].rotation = (math::rotation(axis, by) * moved[body].rotation).normalize();
    }
    rows_of(constraint, &moved).iter().find(|r| r.key == key).map(|r| r.violation)
}
