//! The joint between two segments of a cable: holds their ends together, resists bending and twisting.

use super::anchored::{push_coordinate, push_force_stiffness, push_soft};
use super::frame::{Frames, Placed};
use crate::constraint::{BodyView, Constraint, RowWriter, Softness};
use crate::range::OutOfRange;
use glam::DVec3;
use hecs::Entity;
use std::f64::consts::PI;

/// A round elastic rod: what a cable's joints are made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rod {
    /// Young's modulus E (Pa). A laid rope bends far more easily than a bar: give its effective value.
    pub youngs_modulus: f64,
    /// Shear modulus G (Pa).
    pub shear_modulus: f64,
    /// Radius (m).
    pub radius: f64,
    /// Length of one segment (m).
    pub length: f64,
    /// Damping ratio of bending and twisting against the stiffness, as a time (s): damping = time × stiffness.
    pub damping_time: f64,
}

impl Rod {
    /// Area of the section (m²).
    pub fn area(&self) -> f64 {
        PI * self.radius * self.radius
    }

    /// EI / length (N·m/rad), I = π r⁴ / 4.
    pub fn bending_stiffness(&self) -> f64 {
        self.youngs_modulus * self.area() * self.radius * self.radius / 4.0 / self.length
    }

    /// GJ / length (N·m/rad), J = π r⁴ / 2.
    pub fn torsion_stiffness(&self) -> f64 {
        self.shear_modulus * self.area() * self.radius * self.radius / 2.0 / self.length
    }

    /// EA / length (N/m).
    pub fn stretch_stiffness(&self) -> f64 {
        self.youngs_modulus * self.area() / self.length
    }
}

/// Six rows between two segments: three hold the ends together, two resist bending, one resists twisting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cable {
    /// First segment.
    pub a: Entity,
    /// Second segment.
    pub b: Entity,
    /// Where it sits; x runs along the cable.
    pub frames: Frames,
    /// How the ends are held: `Rigid` (near inextensible) unless told otherwise.
    pub stretch: Softness,
    /// How it resists bending.
    pub bend: Softness,
    /// How it resists twisting.
    pub twist: Softness,
}

impl Cable {
    /// A near inextensible cable joint with the bending and torsion of a rod.
    pub fn new(a: Entity, b: Entity, frames: Frames, rod: &Rod) -> Cable {
        let spring = |stiffness: f64| Softness::Spring { stiffness, damping: stiffness * rod.damping_time };
        Cable {
            a,
            b,
            frames,
            stretch: Softness::Rigid,
            bend: spring(rod.bending_stiffness()),
            twist: spring(rod.torsion_stiffness()),
        }
    }

    /// The same joint, stretching as the rod does (EA / length) in place of near inextensible.
    pub fn elastic(mut self, rod: &Rod) -> Cable {
        let stiffness = rod.stretch_stiffness();
        self.stretch = Softness::Spring { stiffness, damping: stiffness * rod.damping_time };
        self
    }
}

impl Constraint for Cable {
    fn bodies(&self) -> [Entity; 2] {
        [self.a, self.b]
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.frames.check()?;
        self.stretch.check()?;
        self.bend.check()?;
        self.twist.check()
    }

    fn write_rows(&self, [a, b]: [&BodyView; 2], out: &mut RowWriter) {
        let placed = Placed::new(&self.frames, a, b);
        for (i, axis) in DVec3::AXES.into_iter().enumerate() {
            match self.stretch {
                Softness::Rigid => push_coordinate(placed.gap(axis), i as u32, out),
                soft => push_soft(placed.gap(axis), soft, i as u32, out),
            }
        }
        push_force_stiffness(placed.arm_a, placed.arm_b, out.last_force(), out);
        push_soft(placed.rotation_vector(0), self.twist, 3, out);
        push_soft(placed.rotation_vector(1), self.bend, 4, out);
        push_soft(placed.rotation_vector(2), self.bend, 5, out);
    }

    fn anchor(&self, [_, b]: [&BodyView; 2]) -> DVec3 {
        b.point(self.frames.b.anchor)
    }

    fn collide(&self) -> bool {
        false
    }
}
