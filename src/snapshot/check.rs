//! What must hold of a snapshot before anything of it is written: its checksum, and that every number in it may be used as
//! it is. The second also holds for bytes whose checksum was made to fit.

use super::bodies::State as BodyComponents;
use super::{HEAD, SnapshotError, State, StateCodec, constraints};
use crate::components::RigidBody;
use hecs::{Entity, World};

/// Writes the checksum of a snapshot's bytes into them, for tests of what is checked besides it.
#[doc(hidden)]
pub fn seal(bytes: &mut [u8]) {
    let sum = checksum(bytes);
    if let Some(place) = bytes.get_mut(HEAD - 8..HEAD) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

/// A checksum of all that follows the head. Every step is a bijection of the sum so far, so that one changed word is always seen.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let payload = bytes.get(HEAD..).unwrap_or(&[]);
    let step = |sum: u64, word: u64| (sum.rotate_left(29) ^ word).wrapping_mul(PRIME);
    let (words, rest) = payload.as_chunks::<8>();
    let sum = words.iter().fold(payload.len() as u64, |sum, word| step(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| step(sum, u64::from(*byte)))
}

/// Numbers that count steps or constraints; the rest of the range is for those to come.
const MOST_COUNTED: u64 = 1 << 60;

fn ensure(holds: bool, what: &'static str) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { Err(SnapshotError::Malformed(what)) }
}

/// Are all of these different?
fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> bool {
    let mut all: Vec<T> = items.collect();
    all.sort_unstable();
    all.windows(2).all(|pair| pair[0] != pair[1])
}

impl State {
    /// Can it be put into this world, and does it say only what a snapshot can say?
    pub(super) fn check(&self, world: &World, codecs: &[StateCodec]) -> Result<(), SnapshotError> {
        self.check_clock()?;
        self.check_bodies(world)?;
        self.check_constraints(world)?;
        constraints::check(&self.own, world, codecs)?;
        let names = self.contacts.iter().map(|c| c.name());
        ensure(names.is_sorted_by(|a, b| a < b), "it has a contact twice")?;
        self.contacts.iter().try_for_each(|contact| ensure(contact.is_sound(), "a contact is none"))?;
        let slots = 0..self.bodies.len() as u32;
        let known = self.pivoting_failed.iter().all(|slot| slots.contains(slot));
        ensure(known && self.pivoting_failed.is_sorted(), "it names a body that it does not have")
    }

    fn check_clock(&self) -> Result<(), SnapshotError> {
        let time = self.time.is_finite() && self.time >= 0.0;
        let counts = self.step.max(self.next_constraint) < MOST_COUNTED;
        ensure(time && counts, "its clock or its count of constraints cannot be")
    }

    fn check_bodies(&self, world: &World) -> Result<(), SnapshotError> {
        let there = |e: Entity| world.satisfies::<BodyComponents<'_>>(e) || world.satisfies::<&RigidBody>(e);
        if let Some(gone) = self.bodies.iter().find(|b| !there(b.entity)) {
            return Err(SnapshotError::Missing { entity: gone.entity });
        }
        ensure(distinct(self.bodies.iter().map(|b| b.entity.to_bits())), "it has a body twice")?;
        let rest = |time: f64| time.is_finite() && time >= 0.0;
        ensure(self.bodies.iter().all(|b| rest(b.rest.time)), "a body rests for a time that cannot be")
    }

    fn check_constraints(&self, world: &World) -> Result<(), SnapshotError> {
        if let Some(gone) = self.constraints.iter().find(|c| !world.contains(c.entity)) {
            return Err(SnapshotError::Missing { entity: gone.entity });
        }
        let entities = self.constraints.iter().map(|c| c.entity.to_bits());
        let numbers = || self.constraints.iter().filter_map(|c| c.index);
        let numbered = numbers().all(|index| index < self.next_constraint) && distinct(numbers());
        ensure(distinct(entities) && numbered, "it has a constraint or its number twice")
    }
}
