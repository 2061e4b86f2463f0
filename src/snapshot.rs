//! Save and restore: the dynamic state only, compact, versioned, bit-exact.
//!
//! A snapshot holds what the next step depends on and the game does not set itself: clock, poses, velocities,
//! quarantine, every constraint's stored impulses and labels (the warm start), what it keeps for itself
//! ([`crate::constraint::Constraint::save`]), whether it is broken, and what solvers remember. Shapes, masses and the
//! constraints' own components stay in the world. Restoring and stepping gives the same bits as never having left, for any number
//! of threads.

mod bodies;
mod check;
mod constraints;
mod contacts;

pub use check::seal;
pub use constraints::StateCodec;

use crate::components::*;
use crate::physics::Physics;
use crate::solver::Label;
use crate::state::Island;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

const MAGIC: [u8; 4] = *b"TBSN";
const VERSION: u32 = 8;
/// Magic, version, checksum.
const HEAD: usize = 16;

/// A saved state; plain bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(Vec<u8>);

/// Why a snapshot cannot be restored. The world is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// These bytes are no snapshot.
    #[error("not a snapshot, or a damaged one: {0}; the world is as it was")]
    Malformed(&'static str),
    /// It was written by another version of the format.
    #[error("the snapshot has format {found}, this build reads format {VERSION}; take a new one")]
    Version {
        /// The format it has.
        found: u32,
    },
    /// An entity of the snapshot is gone.
    #[error(
        "{entity:?} is in the snapshot but no longer in the world; spawn it again (`World::spawn_at`) first"
    )]
    Missing {
        /// Who is gone.
        entity: Entity,
    },
}

impl Snapshot {
    /// The bytes, to be kept or sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A snapshot from bytes; they are checked when it is restored.
    pub fn from_bytes(bytes: Vec<u8>) -> Snapshot {
        Snapshot(bytes)
    }
}

impl Physics {
    /// Saves the dynamic state of all bodies and constraints as they are in the world, also of those that no step has seen yet:
    /// one taken before the first step is where a level starts again.
    pub fn snapshot(&self, world: &World) -> Snapshot {
        let mut out = Writer(Vec::new());
        out.0.extend(MAGIC);
        out.u32(VERSION);
        out.u64(0);
        out.u64(self.report().step);
        out.f64(self.report().time);
        out.u64(self.work.next_constraint);
        bodies::write(world, &mut out);
        bodies::write_rebounds(world, &mut out);
        constraints::write_impulses(world, &self.work.codecs, &mut out);
        constraints::write(world, &self.work.codecs, &mut out);
        contacts::write(world, &mut out);
        out.u32(self.work.joint_ties.len() as u32);
        for (a, b) in &self.work.joint_ties {
            out.u64(a.to_bits().get());
            out.u64(b.to_bits().get());
        }
        out.u32(self.work.jointed_pairs.len() as u32);
        for &(a, b) in &self.work.jointed_pairs {
            out.u64(u64::from(a) << 32 | u64::from(b));
        }
        let failed = self.work.islands.iter().filter(|i| i.solver.pivoting_failed());
        let failed: Vec<u32> = failed.filter_map(|i| i.bodies.first().copied()).collect();
        out.u32(failed.len() as u32);
        failed.into_iter().for_each(|slot| out.u32(slot));
        seal(&mut out.0);
        Snapshot(out.0)
    }

    /// Puts every body and constraint of the snapshot back. Entities that came later are left as they are.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or an entity of it is gone; then nothing is changed.
    pub fn restore(&mut self, world: &mut World, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let state = State::read(&snapshot.0)?;
        state.check(world, &self.work.codecs)?;
        state.apply(world, &self.work.codecs);
        // Constraints that came later keep their numbers.
        let later = world.query_mut::<&ConstraintIndex>().into_iter().map(|index| index.0 + 1).max();
        self.restart(state.step, state.time, state.next_constraint.max(later.unwrap_or(0)));
        self.work.joint_ties.clone_from(&state.joint_ties);
        self.work.jointed_pairs.clone_from(&state.jointed_pairs);
        self.work.islands.extend(state.pivoting_failed.iter().map(|&slot| remembered(slot)));
        Ok(())
    }
}

struct State {
    step: u64,
    time: f64,
    next_constraint: u64,
    bodies: Vec<bodies::SavedBody>,
    rebounds: Vec<(Entity, Rebound)>,
    constraints: Vec<constraints::SavedConstraint>,
    own: constraints::Saved,
    contacts: Vec<contacts::SavedContact>,
    joint_ties: Vec<(Entity, Entity)>,
    jointed_pairs: Vec<(u32, u32)>,
    /// Smallest bodies of the groups whose solver has to remember that pivoting failed.
    pivoting_failed: Vec<u32>,
}

/// A group of which only the smallest body and the solver's memory are known; the graph stage fills in the rest.
fn remembered(slot: u32) -> Box<Island> {
    let mut island = Box::new(Island { bodies: vec![slot], ..Island::default() });
    island.solver.set_pivoting_failed(true);
    island
}

impl State {
    fn read(bytes: &[u8]) -> Result<State, SnapshotError> {
        let mut input = Reader(bytes);
        if input.take::<4>()? != MAGIC {
            return Err(SnapshotError::Malformed("it does not begin like one"));
        }
        let found = input.u32()?;
        if found != VERSION {
            return Err(SnapshotError::Version { found });
        }
        if input.u64()? != check::checksum(bytes) {
            return Err(SnapshotError::Malformed("its checksum does not fit what it holds"));
        }
        let (step, time, next_constraint) = (input.u64()?, input.f64()?, input.u64()?);
        let bodies = input.list(bodies::BYTES, bodies::read)?;
        let rebounds = input.list(bodies::REBOUND_BYTES, bodies::read_rebound)?;
        let constraints = input.list(20, constraints::read_impulses)?;
        let own = constraints::read(&mut input)?;
        let contacts = contacts::read(&mut input)?;
        let joint_ties = input.list(16, |input| Ok((input.entity()?, input.entity()?)))?;
        let jointed_pairs = input.list(8, |input| input.u64().map(|x| ((x >> 32) as u32, x as u32)))?;
        let pivoting_failed = input.list(4, Reader::u32)?;
        if !input.0.is_empty() {
            return Err(SnapshotError::Malformed("it goes on after its end"));
        }
        Ok(State {
            step,
            time,
            next_constraint,
            bodies,
            rebounds,
            constraints,
            own,
            contacts,
            joint_ties,
            jointed_pairs,
            pivoting_failed,
        })
    }

    fn apply(&self, world: &mut World, codecs: &[StateCodec]) {
        self.bodies.iter().for_each(|body| bodies::apply(body, world));
        bodies::apply_rebounds(&self.rebounds, world);
        contacts::apply(&self.contacts, world);
        constraints::apply(&self.own, world, codecs, self.constraints.iter().map(|c| c.entity));
        self.constraints.iter().for_each(|c| constraints::apply_impulses(c, world));
    }
}

/// Little-endian numbers, one after another.
struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, x: u32) {
        self.0.extend(x.to_le_bytes());
    }
    fn u64(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }
    fn f64(&mut self, x: f64) {
        self.0.extend(x.to_le_bytes());
    }
    fn vec3(&mut self, v: DVec3) {
        v.to_array().into_iter().for_each(|x| self.f64(x));
    }
    fn rows(&mut self, rows: &[RowImpulse]) {
        self.u32(rows.len() as u32);
        for row in rows {
            self.u32(row.key << 2 | row.label as u32);
            self.f64(row.lambda);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (head, tail) = self.0.split_first_chunk().ok_or(SnapshotError::Malformed("it ends too early"))?;
        self.0 = tail;
        Ok(*head)
    }
    fn u32(&mut self) -> Result<u32, SnapshotError> {
        Ok(u32::from_le_bytes(self.take()?))
    }
    fn u64(&mut self) -> Result<u64, SnapshotError> {
        Ok(u64::from_le_bytes(self.take()?))
    }
    fn f64(&mut self) -> Result<f64, SnapshotError> {
        Ok(f64::from_le_bytes(self.take()?))
    }
    fn vec3(&mut self) -> Result<DVec3, SnapshotError> {
        Ok(DVec3::new(self.f64()?, self.f64()?, self.f64()?))
    }
    /// A number that a solver may be given.
    fn sound(&mut self) -> Result<f64, SnapshotError> {
        let x = self.f64()?;
        // 1e30: the largest number that constraints may write.
        if x.abs() <= 1e30 { Ok(x) } else { Err(SnapshotError::Malformed("it has a number that cannot be")) }
    }
    fn sound_vec3(&mut self) -> Result<DVec3, SnapshotError> {
        Ok(DVec3::new(self.sound()?, self.sound()?, self.sound()?))
    }
    fn quat(&mut self) -> Result<DQuat, SnapshotError> {
        Ok(DQuat::from_xyzw(self.f64()?, self.f64()?, self.f64()?, self.f64()?))
    }
    fn entity(&mut self) -> Result<Entity, SnapshotError> {
        Entity::from_bits(self.u64()?).ok_or(SnapshotError::Malformed("it names an entity that cannot be"))
    }
    fn row(&mut self) -> Result<RowImpulse, SnapshotError> {
        let packed = self.u32()?;
        let label = match packed & 3 {
            0 => Label::Free,
            1 => Label::Lower,
            2 => Label::Upper,
            _ => return Err(SnapshotError::Malformed("it has a row label that cannot be")),
        };
        Ok(RowImpulse { key: packed >> 2, lambda: self.sound()?, label })
    }
    /// A counted list; the count is checked against what is left, so that it cannot ask for memory it has no right to.
    fn list<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, SnapshotError>,
    ) -> Result<Vec<T>, SnapshotError> {
        let count = self.u32()? as usize;
        if count.saturating_mul(least) > self.0.len() {
            return Err(SnapshotError::Malformed("it promises more than it holds"));
        }
        (0..count).map(|_| read(self)).collect()
    }
}
