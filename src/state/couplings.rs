//! What ties bodies beside rows: blocks of A and impulses, written by constraints ([`crate::constraint::RowWriter::couple`]) and
//! subsystems ([`crate::subsystem::Subsystem`]).
//!
//! Invariant: blocks and impulses of an element are stretches that follow one another in the order of writing; every body of an
//! element has exactly one impulse, in the order of the element's bodies; a point mass has zeros behind its three numbers.

use hecs::Entity;
use std::ops::Range;

/// What one constraint or one subsystem has written.
#[derive(Clone, Debug)]
pub struct Element {
    /// Whose it is.
    pub entity: Entity,
    /// Its part of [`Couplings::blocks`].
    pub blocks: Range<usize>,
    /// Its part of [`Couplings::impulses`].
    pub impulses: Range<usize>,
}

/// All elements of a step: A gets their blocks, p their impulses.
#[derive(Default)]
pub struct Couplings {
    /// Elements in the order of writing.
    pub elements: Vec<Element>,
    /// Slots a and b, and A_ab row by row; A_ba is its transpose, and where a = b it is symmetric.
    pub blocks: Vec<(u32, u32, [f64; 36])>,
    /// Slot, and what p gets there.
    pub impulses: Vec<(u32, [f64; 6])>,
    /// Slots of the bodies that are ports of subsystems: these stay awake.
    pub ports: Vec<u32>,
}

impl Couplings {
    /// Empties the buffers and keeps their memory.
    pub fn clear(&mut self) {
        self.elements.clear();
        self.blocks.clear();
        self.impulses.clear();
        self.ports.clear();
    }

    /// Appends an element on these slots: `block(a, b)` gives A_ab for places a ≤ b among them, `impulse(a)` what p gets.
    pub fn push(
        &mut self,
        entity: Entity,
        slots: &[u32],
        mut block: impl FnMut(usize, usize) -> [f64; 36],
        mut impulse: impl FnMut(usize) -> [f64; 6],
    ) {
        let (blocks, impulses) = (self.blocks.len(), self.impulses.len());
        for (k, &a) in slots.iter().enumerate() {
            self.impulses.push((a, impulse(k)));
            self.blocks.extend(slots[k..].iter().enumerate().map(|(n, &b)| (a, b, block(k, k + n))));
        }
        let (blocks, impulses) = (blocks..self.blocks.len(), impulses..self.impulses.len());
        self.elements.push(Element { entity, blocks, impulses });
    }

    /// The slots of an element.
    pub fn slots(&self, element: &Element) -> impl Iterator<Item = u32> + Clone + '_ {
        self.impulses[element.impulses.clone()].iter().map(|(slot, _)| *slot)
    }

    /// Calls `f(slot, part)` for the parts of what an element does to its bodies at these velocities: g − H v, to be summed.
    pub fn for_each_impulse(
        &self,
        element: &Element,
        velocity: impl Fn(u32) -> [f64; 6],
        mut f: impl FnMut(u32, [f64; 6]),
    ) {
        self.impulses[element.impulses.clone()].iter().for_each(|&(slot, g)| f(slot, g));
        for (a, b, block) in &self.blocks[element.blocks.clone()] {
            let (va, vb) = (velocity(*a), velocity(*b));
            f(*a, std::array::from_fn(|i| -(0..6).map(|j| block[6 * i + j] * vb[j]).sum::<f64>()));
            if a != b {
                f(*b, std::array::from_fn(|i| -(0..6).map(|j| block[6 * j + i] * va[j]).sum::<f64>()));
            }
        }
    }
}
