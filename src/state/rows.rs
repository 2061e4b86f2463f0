//! Rows as arrays, in the order in which constraints wrote them.
//!
//! Invariant: every array that is indexed by row has [`Rows::len`] entries; the rows, bodies and twists of a block are stretches that
//! follow one another in block order; rows of contacts come last.

use crate::solver::RowKind;
use glam::DVec3;
use hecs::Entity;

/// A row that no normal impulse bounds.
pub const NO_ROW: u32 = u32::MAX;

/// How much of a row's violation a step takes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Closing {
    /// This share.
    Share(f64),
    /// None: the row is about velocity.
    Velocity,
    /// As its spring says.
    Spring {
        /// N/m or N·m/rad.
        stiffness: f64,
        /// N·s/m or N·m·s/rad.
        damping: f64,
    },
    /// As the rules of contacts say.
    Contact,
    /// None: the row is geometric stiffness between two bodies.
    Tangent,
}

/// One constraint's rows.
#[derive(Clone, Copy, Debug)]
pub struct ConstraintBlock {
    /// Whose rows they are.
    pub entity: Entity,
    /// First row.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// First entry in `Rows::body`.
    pub body: u32,
    /// Number of bodies.
    pub bodies: u32,
    /// First twist in `Rows::jacobian` (`rows × bodies`, row by row).
    pub entry: u32,
    /// May it be folded into the body blocks?
    pub fold: bool,
    /// Place of the constraint's last body among its slots: the one whose force is reported.
    pub last: u32,
    /// From that body's centre of mass to the point at which its force is reported.
    pub lever: DVec3,
}

/// All rows of a step, as arrays. Bodies are slots; fixed and kinematic ones are included here.
#[derive(Default)]
pub struct Rows {
    /// Constraints in the order of writing.
    pub blocks: Vec<ConstraintBlock>,
    /// Slots of all blocks, one after another.
    pub body: Vec<u32>,
    /// Jacobian of all blocks, six numbers a row and body.
    pub jacobian: Vec<[f64; 6]>,
    /// φ at the start of the step.
    pub violation: Vec<f64>,
    /// C.
    pub compliance: Vec<f64>,
    /// d without the part of kinematic bodies.
    pub d: Vec<f64>,
    /// Least impulse.
    pub lo: Vec<f64>,
    /// Greatest impulse.
    pub hi: Vec<f64>,
    /// What it stands for.
    pub kind: Vec<RowKind>,
    /// Which row of its constraint.
    pub key: Vec<u32>,
    /// Does it count as a joint error?
    pub measured: Vec<bool>,
    /// Is φ to be closed at the end of the step, so that the curvature of the motion counts?
    pub position_level: Vec<bool>,
    /// Does it drive what it acts on (motors, winches, springs, belts), so that energy may come from it?
    pub drives: Vec<bool>,
    /// How much of φ is to be closed.
    pub closing: Vec<Closing>,
    /// Greatest velocity of a correction; contacts, which come last, have none.
    pub most: Vec<f64>,
    /// Impulses of the last step.
    pub before: Vec<f64>,
    /// λ: the last step's before the solve, this step's after it.
    pub lambda: Vec<f64>,
    /// Label: likewise.
    pub label: Vec<crate::solver::Label>,
    /// Friction rows: the row of the normal impulse that bounds them, [`NO_ROW`] for others.
    pub normal_of: Vec<u32>,
    /// Friction rows of new points that slide: they rub only once the normal impulse of the step is known.
    pub slides: Vec<bool>,
    /// Friction rows: |λ| ≤ `friction` × λ of `normal_of`.
    pub friction: Vec<f64>,
    /// Contacts under Coulomb's cone, by normal row.
    pub cones: Vec<crate::solver::Cone>,
    /// Geometric stiffness: slot, slot of the body at the other end (the same where there is not one), 6×6 block.
    pub stiffness: Vec<(u32, u32, crate::constraint::row::Stiffness)>,
    /// What ties bodies beside rows.
    pub couplings: super::Couplings,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.d.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.d.is_empty()
    }

    /// Empties the buffers and keeps their memory.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.body.clear();
        self.jacobian.clear();
        self.violation.clear();
        self.compliance.clear();
        self.d.clear();
        self.lo.clear();
        self.hi.clear();
        self.kind.clear();
        self.key.clear();
        self.measured.clear();
        self.position_level.clear();
        self.drives.clear();
        self.closing.clear();
        self.most.clear();
        self.before.clear();
        self.lambda.clear();
        self.label.clear();
        self.normal_of.clear();
        self.slides.clear();
        self.friction.clear();
        self.cones.clear();
        self.stiffness.clear();
        self.couplings.clear();
    }
}
