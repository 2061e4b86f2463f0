//! What a step has to say for itself.

use crate::range::OutOfRange;
use hecs::Entity;

/// The first thing that was wrong with a body or constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BadQuantity {
    /// A position is not finite, or further out than `Tuning::max_position`.
    Position,
    /// A rotation is not finite, or has no length.
    Rotation,
    /// A linear velocity is not finite, or above `Tuning::max_speed`.
    LinearVelocity,
    /// An angular velocity is not finite, or above `Tuning::max_speed`.
    AngularVelocity,
    /// A mass is not positive and finite.
    Mass,
    /// An inertia is not symmetric positive definite, or breaks the triangle inequality.
    Inertia,
    /// Principal moments of an inertia differ by so much that double precision loses the least of them.
    Slender,
    /// A force is not finite.
    Force,
    /// A torque is not finite.
    Torque,
    /// A row of a constraint is not finite.
    Row,
}

impl BadQuantity {
    fn sentence(self) -> &'static str {
        match self {
            BadQuantity::Position => "position is not finite or out of bounds (Tuning::max_position)",
            BadQuantity::Rotation => "rotation is not a finite quaternion with a length",
            BadQuantity::LinearVelocity => "linear velocity is not finite or above Tuning::max_speed",
            BadQuantity::AngularVelocity => "angular velocity is not finite or above Tuning::max_speed",
            BadQuantity::Mass => "mass is not a positive finite number of kilograms (from 1e-15 to 1e15)",
            BadQuantity::Inertia => {
                "inertia is not symmetric positive definite within the triangle inequality \
                 (no principal moment may exceed the sum of the other two)"
            }
            BadQuantity::Slender => {
                "inertia has a principal moment below 1e-12 of the others (a body a million times as long as \
                 it is thick), of which double precision keeps nothing"
            }
            BadQuantity::Force => "force is not finite or above 1e18 N",
            BadQuantity::Torque => "torque is not finite or above 1e18 N·m",
            BadQuantity::Row => "a row is not finite",
        }
    }
}

/// Something the world's data made the engine do, with the entity it concerns.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Trouble {
    /// A setting was out of its range; the last good value was put back.
    #[error("setting {number}; the last good value is in force")]
    Setting {
        /// The number.
        number: OutOfRange,
    },
    /// A number of a component was out of its range; the last good value was put back, or the default.
    #[error("{entity:?}: {number}; the last good value (or the default) is in force")]
    Number {
        /// What carries it.
        entity: Entity,
        /// The number.
        number: OutOfRange,
    },
    /// A number of a constraint is out of its range.
    #[error("constraint {entity:?}: {number}; the constraint is skipped in this step")]
    BadConstraint {
        /// The constraint.
        entity: Entity,
        /// The number.
        number: OutOfRange,
    },
    /// A body was taken out of the simulation.
    #[error("body {entity:?} is quarantined: its {}; mend it and remove `Quarantined`", quantity.sentence())]
    Quarantined {
        /// The body.
        entity: Entity,
        /// The first bad quantity.
        quantity: BadQuantity,
    },
    /// A force, torque or velocity set between the stages was not finite; it was dropped for this step.
    #[error("body {entity:?}: its {} in the forces stage; the change is ignored in this step", quantity.sentence())]
    Ignored {
        /// The body.
        entity: Entity,
        /// The bad quantity.
        quantity: BadQuantity,
    },
    /// A constraint names a body that is gone, or is no body.
    #[error(
        "constraint {entity:?} names {body:?}, which is not a body (any more); it is skipped: despawn it"
    )]
    MissingBody {
        /// The constraint.
        entity: Entity,
        /// What it names.
        body: Entity,
    },
    /// A constraint ties a body to itself.
    #[error("constraint {entity:?} ties {body:?} to itself; it is skipped")]
    SameBody {
        /// The constraint.
        entity: Entity,
        /// What it names twice.
        body: Entity,
    },
    /// A constraint wrote a row that is not finite.
    #[error(
        "constraint {entity:?}: a row is not finite, or its lower bound is above the upper; the constraint is skipped in this step"
    )]
    BadRow {
        /// The constraint.
        entity: Entity,
    },
    /// What a constraint couples is not symmetric, or would give energy.
    #[error(
        "constraint {entity:?}: a block that it couples is not symmetric positive semidefinite; it is skipped in this step"
    )]
    Indefinite {
        /// The constraint.
        entity: Entity,
    },
    /// A subsystem was taken out of the simulation, and its ports with it.
    #[error(
        "subsystem {entity:?} is quarantined with its ports: {fault}; mend it and remove `Quarantined` from all of them"
    )]
    Subsystem {
        /// The subsystem.
        entity: Entity,
        /// What is wrong with it.
        fault: crate::subsystem::Fault,
    },
    /// Constraints on one pair of bodies want what no motion of the two can give.
    #[error(
        "{joints} constraints between {a:?} and {b:?}, from {first:?} to {last:?}, have {rows} rows for {unknowns} unknowns \
         and contradict one another by {by:.3} (m, or rad); they are met half-way: keep one of them"
    )]
    Contradictory {
        /// One body.
        a: Entity,
        /// The other.
        b: Entity,
        /// The constraint that was made first.
        first: Entity,
        /// The one that was made last.
        last: Entity,
        /// How many there are.
        joints: u32,
        /// Their two-sided rows.
        rows: u32,
        /// Velocities that these rows can decide.
        unknowns: u32,
        /// What is left of a row where all are met as well as possible (m, or rad).
        by: f64,
    },
    /// Many constraints on one pair of bodies say the same.
    #[error(
        "{joints} constraints between {a:?} and {b:?}, from {first:?} to {last:?}, have {rows} rows for {unknowns} unknowns \
         and say the same: keep one of them"
    )]
    Repeated {
        /// One body.
        a: Entity,
        /// The other.
        b: Entity,
        /// The constraint that was made first.
        first: Entity,
        /// The one that was made last.
        last: Entity,
        /// How many there are.
        joints: u32,
        /// Their two-sided rows.
        rows: u32,
        /// Velocities that these rows can decide.
        unknowns: u32,
    },
    /// A group's numbers leave the range of double precision; its bodies moved as if nothing held them.
    #[error(
        "a group of {rows} rows has no answer in double precision: {entity:?} has the largest numbers ({size:.0e}); its bodies \
         move freely in this step: look at its masses, sizes and distances"
    )]
    OutOfRange {
        /// The constraint with the largest numbers.
        entity: Entity,
        /// How many rows the group has.
        rows: u32,
        /// The largest number of its Jacobian.
        size: f64,
    },
    /// Bodies are in each other in crowds; they part slowly, and not all of their contacts are solved.
    #[error(
        "{bodies} bodies around {entity:?} are more deeply in each other than contacts can be: of these contacts the {kept} \
         deepest are kept and at least {left_out} are left out in this step, and they part slowly; place them apart"
    )]
    Crowd {
        /// One of the bodies.
        entity: Entity,
        /// How many there are.
        bodies: u32,
        /// How many of their deep contacts are kept.
        kept: u32,
        /// How many are left out; those that were not even looked at are not among them.
        left_out: u32,
    },
    /// A solve did not reach its tolerance; the best answer found was used.
    #[error("a group of {rows} rows was solved to a relative residual of {residual:.1e} only")]
    Unconverged {
        /// How many rows the group has.
        rows: u32,
        /// What was reached.
        residual: f64,
    },
}

/// Why an island was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Every island is solved once.
    First,
    /// Joints were open, or work was missing: another right-hand side with the same factor.
    Correction,
    /// Corrections came too slowly: another factorization.
    Tangent,
    /// The step was not followed, and is taken with its forces at its start, which only loses energy.
    Decay,
    /// The step of this island is taken in parts.
    Part,
    /// Velocities across joints that the step does not resolve are taken away.
    Velocity,
    /// Friction was bounded by other normal impulses than those that were found.
    Friction,
    /// Surfaces would overlap after the step.
    Overlap,
    /// Joints would be open after the step, along the curve that bodies take.
    Curve,
    /// Joints were surprised by forces of which the last step knew nothing.
    Surprise,
    /// Nothing closed the joints; the island is held.
    Held,
}

/// A solve of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolve {
    /// Number of the island in this step.
    pub island: u32,
    /// Why.
    pub cause: Cause,
    /// How many solves of this island came before it in this step.
    pub pass: u32,
    /// Rows of the island.
    pub rows: u32,
    /// How far its rows are off before it (m/s) in the chord step, and after it elsewhere.
    pub residual: f64,
}

/// What is told about one step. Lists are bounded; `trouble_count` counts what did not fit.
#[derive(Clone, Debug, Default)]
pub struct StepReport {
    /// Number of the step since `Physics::new`.
    pub step: u64,
    /// Simulated time at its end (s).
    pub time: f64,
    /// Length of its substeps (s): impulses over it are forces.
    pub dt: f64,
    /// Bodies.
    pub bodies: u32,
    /// Those of them that may move: dynamic and kinematic ones.
    pub moving: u32,
    /// Contact pairs that touch.
    pub contacts: u32,
    /// Joints and other constraints that wrote rows, contacts not counted.
    pub joints: u32,
    /// Rows.
    pub rows: u32,
    /// Islands that were solved.
    pub islands: u32,
    /// Partitions over all islands.
    pub partitions: u32,
    /// Rows between partitions.
    pub interface_rows: u32,
    /// Coupling iterations, the most over all islands.
    pub coupling_iterations: u32,
    /// Did an island reach the limit of coupling iterations?
    pub coupling_at_limit: bool,
    /// Pivots, interior-point iterations included, over all islands.
    pub pivots: u32,
    /// Factorizations over all islands.
    pub factorizations: u32,
    /// Conjugate gradient iterations inside `bpp-pcg` and `pgcg`.
    pub inner_iterations: u64,
    /// Share of preconditioner columns with a negative pivot, the largest of an island.
    pub imaginary_share: f64,
    /// Friction rows softened by adaptive regularisation: these slip.
    pub softened_rows: u32,
    /// Natural residual norm over all rows (000 eq. 29).
    pub residual: f64,
    /// The same relative to max(1, ‖b‖), or to what round-off allows where that is more; the largest over the islands.
    pub residual_relative: f64,
    /// Unit-consistent energy measure (003 §6.2.2), the largest over the islands.
    pub residual_energy: f64,
    /// Groups whose joints could not be followed and that took a step that only loses energy.
    pub held: u32,
    /// The solves of the step outside of the paper's loop, at most [`StepReport::MOST_RESOLVES`] of them.
    pub resolves: Vec<Resolve>,
    /// Did every solve reach its tolerance?
    pub converged: bool,
    /// Largest opening of a bilateral joint after the step (m, or rad × 1 m).
    pub joint_error_max: f64,
    /// Whose it is, and which of its rows (its key).
    pub joint_error_at: Option<(Entity, u32)>,
    /// The same with angles times the size of the smaller body instead of 1 m: what the joint is open by where an eye looks (m).
    pub joint_gap_max: f64,
    /// Root mean square of the joint errors.
    pub joint_error_rms: f64,
    /// Deepest penetration (m).
    pub penetration_max: f64,
    /// Mean over the contact points that penetrate (m).
    pub penetration_mean: f64,
    /// Largest change of a normal impulse against the value its friction bound was taken from (N·s).
    pub friction_bound_shift: f64,
    /// Kinetic energy (J).
    pub kinetic: f64,
    /// Potential energy of gravity (J).
    pub potential: f64,
    /// Work (J) that the bodies were given in this step by motors, winches, springs, kinematic bodies, forces other than
    /// gravity, and by changes of the world between steps: what energy may come from.
    pub work_done: f64,
    /// Joints that broke in this step; they carry `Broken` from now on.
    pub broken: Vec<Entity>,
    /// Bodies in quarantine.
    pub quarantined: u32,
    /// What the world's data made the engine do; at most [`StepReport::MOST_TROUBLES`] are kept.
    pub troubles: Vec<Trouble>,
    /// How many there were.
    pub trouble_count: u32,
    /// Time of the whole step (ms).
    pub step_ms: f64,
    /// Time between assembled rows and impulses (ms).
    pub solve_ms: f64,
}

impl StepReport {
    /// How many troubles are kept a step.
    pub const MOST_TROUBLES: usize = 64;

    /// Counters of the pipeline start anew; what is told about the whole step stays.
    pub(crate) fn begin_substep(&mut self) {
        (self.joints, self.contacts) = (0, 0);
        self.converged = true;
    }

    /// The report of a step of this length in which nothing changed, after one in which nothing did.
    pub(crate) fn repeat(&mut self, dt: f64) {
        self.step += 1;
        self.time += dt;
        self.work_done = 0.0;
    }

    /// How many solves are kept a step.
    pub const MOST_RESOLVES: usize = 256;

    /// Notes a solve.
    pub(crate) fn resolve(&mut self, island: usize, cause: Cause, rows: usize, residual: f64) {
        if self.resolves.len() < Self::MOST_RESOLVES {
            let island = island as u32;
            let earlier = || self.resolves.iter().filter(|r| r.island == island).count() as u32;
            let pass = if cause == Cause::First { 0 } else { earlier() };
            let residual = residual.min(f64::MAX);
            self.resolves.push(Resolve { island, cause, pass, rows: rows as u32, residual });
        }
    }

    /// Notes a trouble.
    pub fn trouble(&mut self, trouble: Trouble) {
        self.trouble_count += 1;
        if self.troubles.len() < Self::MOST_TROUBLES {
            self.troubles.push(trouble);
        }
    }
}
