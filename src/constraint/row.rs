//! One scalar equation and the writer that takes it.

use super::BodyView;
use crate::components::RowImpulses;
use crate::solver::RowKind;
use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

/// A row's part on one body: multiplied with the body's velocity it gives the row's velocity,
/// multiplied with the impulse it gives what the body feels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Twist {
    /// On the velocity of the centre of mass.
    pub linear: DVec3,
    /// On the angular velocity.
    pub angular: DVec3,
}

impl Twist {
    /// Nothing.
    pub const ZERO: Twist = Twist { linear: DVec3::ZERO, angular: DVec3::ZERO };

    /// Acts on the centre of mass only.
    pub fn linear(linear: DVec3) -> Twist {
        Twist { linear, angular: DVec3::ZERO }
    }

    /// Acts on the rotation only.
    pub fn angular(angular: DVec3) -> Twist {
        Twist { linear: DVec3::ZERO, angular }
    }

    /// Acts along `direction` at a point `arm` away from the centre of mass.
    pub fn at(arm: DVec3, direction: DVec3) -> Twist {
        Twist { linear: direction, angular: arm.cross(direction) }
    }

    /// How fast a row with this part moves due to the body's velocity.
    pub fn speed(self, body: &BodyView) -> f64 {
        self.linear.dot(body.linear_velocity) + self.angular.dot(body.angular_velocity)
    }

    /// The six numbers, linear first.
    pub fn to_array(self) -> [f64; 6] {
        let (l, a) = (self.linear, self.angular);
        [l.x, l.y, l.z, a.x, a.y, a.z]
    }
}

impl std::ops::Neg for Twist {
    type Output = Twist;
    fn neg(self) -> Twist {
        Twist { linear: -self.linear, angular: -self.angular }
    }
}

impl std::ops::Mul<f64> for Twist {
    type Output = Twist;
    fn mul(self, s: f64) -> Twist {
        Twist { linear: self.linear * s, angular: self.angular * s }
    }
}

impl std::ops::Add for Twist {
    type Output = Twist;
    fn add(self, other: Twist) -> Twist {
        Twist { linear: self.linear + other.linear, angular: self.angular + other.angular }
    }
}

/// Bounds of a row's **force** (N, or N·m): the engine multiplies them by the step to bound the impulse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least force.
    pub lower: f64,
    /// Greatest force.
    pub upper: f64,
}

impl Bounds {
    /// Holds in both directions.
    pub const BOTH: Bounds = Bounds { lower: f64::NEG_INFINITY, upper: f64::INFINITY };
    /// Only makes the violation grow: contacts, stops.
    pub const PUSH_ONLY: Bounds = Bounds { lower: 0.0, upper: f64::INFINITY };
    /// Only makes the violation shrink: ropes.
    pub const PULL_ONLY: Bounds = Bounds { lower: f64::NEG_INFINITY, upper: 0.0 };

    /// At most this much either way.
    pub fn symmetric(limit: f64) -> Bounds {
        Bounds { lower: -limit, upper: limit }
    }
}

/// One scalar equation. `..Row::default()` is a rigid bilateral row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<const N: usize = 2> {
    /// J, one twist a body.
    pub jacobian: [Twist; N],
    /// φ: by how much the constraint is violated (m or rad). J must be its derivative.
    pub violation: f64,
    /// Least and greatest force.
    pub bounds: Bounds,
    /// w₀: the velocity the row is to have (m/s or rad/s), on top of correcting the violation.
    pub target_velocity: f64,
    /// How soft the row is.
    pub softness: Softness,
    /// Which row of the constraint this is, for warm starts and for reading its force. `Row::AUTO_KEY`
    /// stands for its number in the order of writing.
    pub key: u32,
    /// What it stands for.
    pub kind: RowKind,
    /// May its violation be read as an error of a joint in reports? Springs, motors and one-sided rows say no.
    pub measured: bool,
}

/// Rows with keys from here on are geometric stiffness between two bodies, J (v⁺ − v) + C λ = 0 with 1/C = β h² k: they hold nothing.
pub(crate) const STIFFNESS_KEYS: u32 = 1 << 30;

/// How a row gives way. The engine turns it into C and the share of φ that is corrected per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Softness {
    /// As hard as the settings say (`Settings::joint_compliance`, `Tuning::joint_correction`).
    Rigid,
    /// A spring with a damper, integrated implicitly (003 eqs. 2.20–2.25): never unstable.
    Spring {
        /// N/m or N·m/rad.
        stiffness: f64,
        /// N·s/m or N·m·s/rad.
        damping: f64,
    },
    /// Compliance and correction by hand.
    Compliant {
        /// C of 000 eq. (3) (m/s per N·s): how much velocity a unit impulse leaves.
        compliance: f64,
        /// Share of φ corrected in a step, 0..=1.
        correction: f64,
        /// Greatest velocity of correction (m/s or rad/s).
        max_speed: f64,
    },
    /// No position term: the row is about velocity only (motors, friction).
    Velocity {
        /// C of 000 eq. (3).
        compliance: f64,
    },
}

impl<const N: usize> Row<N> {
    /// Stands for "my number in the order of writing".
    pub const AUTO_KEY: u32 = u32::MAX;
}

impl<const N: usize> Default for Row<N> {
    fn default() -> Self {
        Row {
            jacobian: [Twist::ZERO; N],
            violation: 0.0,
            bounds: Bounds::BOTH,
            target_velocity: 0.0,
            softness: Softness::Rigid,
            key: Self::AUTO_KEY,
            kind: RowKind::Joint,
            measured: true,
        }
    }
}

/// Takes the rows of one constraint.
pub struct RowWriter<'a, const N: usize = 2> {
    dt: f64,
    last: &'a RowImpulses,
    rows: &'a mut Vec<Row<N>>,
    stiffness: &'a mut Vec<(usize, Stiffness)>,
    share: f64,
    coupled: Option<&'a mut Coupled<N>>,
}

/// What a constraint ties beside rows.
#[doc(hidden)]
#[derive(Debug)]
pub struct Coupled<const N: usize> {
    /// Springs, as rows.
    pub rows: Vec<Row<N>>,
    /// Blocks on all bodies, 6N × 6N each, row by row, and behind each its 6N impulses.
    pub blocks: Vec<f64>,
}

impl<const N: usize> Default for Coupled<N> {
    fn default() -> Self {
        Coupled { rows: Vec::new(), blocks: Vec::new() }
    }
}

/// Geometric stiffness of one body due to a constraint, at its centre of mass: dF = −K dq.
/// Symmetric; the engine folds its positive part into the body's mass block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stiffness {
    /// Force due to translation.
    pub linear: DMat3,
    /// Torque due to translation (transposed: force due to rotation).
    pub coupling: DMat3,
    /// Torque due to rotation.
    pub angular: DMat3,
}

/// No stiffness at all (the default of a glam matrix is the identity, which is not what one means here).
impl Default for Stiffness {
    fn default() -> Stiffness {
        Stiffness { linear: DMat3::ZERO, coupling: DMat3::ZERO, angular: DMat3::ZERO }
    }
}

impl<'a, const N: usize> RowWriter<'a, N> {
    /// A writer into these buffers.
    pub fn new(
        dt: f64,
        last: &'a RowImpulses,
        rows: &'a mut Vec<Row<N>>,
        stiffness: &'a mut Vec<(usize, Stiffness)>,
    ) -> RowWriter<'a, N> {
        RowWriter { dt, last, rows, stiffness, share: 0.0, coupled: None }
    }

    /// The same writer for an engine that takes `share`·h²·K of the geometric stiffness into the mass blocks; zero,
    /// as in [`RowWriter::new`], stands for none.
    pub fn with_stiffness_share(mut self, share: f64) -> RowWriter<'a, N> {
        self.share = share;
        self
    }

    /// The same writer with a place for what [`RowWriter::couple`] and [`RowWriter::couple_block`] are given; without it that is dropped.
    #[doc(hidden)]
    pub fn with_coupled(mut self, coupled: &'a mut Coupled<N>) -> RowWriter<'a, N> {
        self.coupled = Some(coupled);
        self
    }

    /// Is geometric stiffness asked for? If not, working it out is wasted.
    pub fn implicit_stiffness(&self) -> bool {
        self.share > 0.0
    }

    /// β: the engine adds β h² K to the mass blocks. For constraints that tie bodies to each other by rows
    /// J (v⁺ − v) + C λ = 0 with 1/C = β h² k.
    pub fn stiffness_share(&self) -> f64 {
        self.share
    }

    /// The force (N) that rows 0, 1 and 2 carried in the last step: what a joint with three rows along the
    /// world's axes put on its second body.
    pub fn last_force(&self) -> DVec3 {
        DVec3::new(self.last_impulse(0), self.last_impulse(1), self.last_impulse(2)) / self.dt
    }

    /// The step (s).
    pub fn dt(&self) -> f64 {
        self.dt
    }

    /// The impulse that the row with this key needed in the last step, zero if it is new.
    pub fn last_impulse(&self, key: u32) -> f64 {
        self.last.lambda(key)
    }

    /// Writes a row.
    pub fn push(&mut self, mut row: Row<N>) {
        if row.key == Row::<N>::AUTO_KEY {
            row.key = self.rows.len() as u32;
        }
        self.rows.push(row);
    }

    /// Writes a soft row without bounds as part of A in place of a row: A gets Jᵀ C⁻¹ J and p gets −Jᵀ C⁻¹ d. The motion is that of
    /// [`RowWriter::push`]; there is no impulse to be found, to be read or to be bounded. Bounds, key and kind do not count.
    pub fn couple(&mut self, row: Row<N>) {
        if let Some(coupled) = &mut self.coupled {
            coupled.rows.push(row);
        }
    }

    /// Adds a block to A and impulses to p: what an element's damping and stiffness, h D + β h² K, are between all of its bodies, and
    /// h times the force of it. `matrix` has 6N × 6N numbers, row by row, six a body (linear first), symmetric and positive
    /// semidefinite; `impulse` has 6N. Of a point mass the last three do not count.
    ///
    /// # Panics
    /// If the numbers are not as many.
    pub fn couple_block(&mut self, matrix: &[f64], impulse: &[f64]) {
        assert!(matrix.len() == 36 * N * N && impulse.len() == 6 * N, "6N × 6N numbers and 6N");
        if let Some(coupled) = &mut self.coupled {
            coupled.blocks.extend_from_slice(matrix);
            coupled.blocks.extend_from_slice(impulse);
        }
    }

    /// Adds geometric stiffness to body `body` (its place in `bodies()`).
    pub fn push_stiffness(&mut self, body: usize, stiffness: Stiffness) {
        self.stiffness.push((body, stiffness));
    }
}
