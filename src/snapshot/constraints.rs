//! What constraints keep for themselves, in a snapshot: rope on a drum, the length of a winch's rope, that one is broken.

use super::{Reader, SnapshotError, Writer};
use crate::components::{Broken, ConstraintIndex, JointForce};
use crate::constraint::Constraint;
use hecs::{Entity, World};

/// Constraints and what they keep.
type States = Vec<(Entity, Vec<f64>)>;

/// Saves and loads the state of constraints of one type.
pub struct Keeper {
    /// The type's full name.
    name: &'static str,
    save: fn(&World, &mut States),
    load: fn(&mut World, Entity, &[f64]),
}

impl Keeper {
    /// That of a type.
    pub fn of<T: Constraint<N>, const N: usize>() -> Keeper {
        Keeper { name: std::any::type_name::<T>(), save: save::<T, N>, load: load::<T, N> }
    }
}

fn save<T: Constraint<N>, const N: usize>(world: &World, out: &mut States) {
    for (entity, constraint) in world.query::<(Entity, &T)>().with::<&ConstraintIndex>().iter() {
        let mut state = Vec::new();
        constraint.save(&mut state);
        if !state.is_empty() {
            out.push((entity, state));
        }
    }
}

fn load<T: Constraint<N>, const N: usize>(world: &mut World, entity: Entity, state: &[f64]) {
    if let Ok(constraint) = world.query_one_mut::<&mut T>(entity) {
        constraint.load(state);
    }
}

/// State of one constraint.
pub(super) struct SavedState {
    name: String,
    entity: Entity,
    values: Vec<f64>,
}

/// States and breaks of all constraints.
#[derive(Default)]
pub(super) struct Saved {
    states: Vec<SavedState>,
    broken: Vec<(Entity, JointForce)>,
}

/// Writes states, sorted by type and entity, and breaks.
pub(super) fn write(world: &World, keepers: &[Keeper], out: &mut Writer) {
    let mut all = Vec::new();
    for keeper in keepers {
        let mut states = Vec::new();
        (keeper.save)(world, &mut states);
        states.sort_unstable_by_key(|(entity, _)| entity.to_bits());
        all.extend(states.into_iter().map(|(entity, state)| (keeper.name, entity, state)));
    }
    out.u32(all.len() as u32);
    for (name, entity, state) in all {
        out.u32(name.len() as u32);
        out.0.extend(name.as_bytes());
        out.u64(entity.to_bits().get());
        out.u32(state.len() as u32);
        state.into_iter().for_each(|x| out.f64(x));
    }
    let mut query = world.query::<(Entity, &Broken)>();
    let mut broken: Vec<(Entity, JointForce)> = query.iter().map(|(entity, b)| (entity, b.by)).collect();
    broken.sort_unstable_by_key(|(entity, _)| entity.to_bits());
    out.u32(broken.len() as u32);
    for (entity, by) in broken {
        out.u64(entity.to_bits().get());
        out.vec3(by.force);
        out.vec3(by.torque);
    }
}

/// Reads what [`write`] wrote.
pub(super) fn read(input: &mut Reader<'_>) -> Result<Saved, SnapshotError> {
    let states = input.list(16, |input| {
        let name = input.list(1, |input| Ok(input.take::<1>()?[0]))?;
        let name = String::from_utf8(name)
            .map_err(|_| SnapshotError::Malformed("it has a name that is not text"))?;
        Ok(SavedState { name, entity: input.entity()?, values: input.list(8, Reader::f64)? })
    })?;
    let broken = input.list(56, |input| {
        let entity = input.entity()?;
        Ok((entity, JointForce { force: input.vec3()?, torque: input.vec3()? }))
    })?;
    Ok(Saved { states, broken })
}

/// Gives constraints their state back; those that broke later are whole again. What is gone, or of a type that this engine does
/// not know, is left alone.
pub(super) fn apply(
    saved: &Saved,
    world: &mut World,
    keepers: &[Keeper],
    constraints: impl Iterator<Item = Entity>,
) {
    for state in &saved.states {
        if let Some(keeper) = keepers.iter().find(|k| k.name == state.name) {
            (keeper.load)(world, state.entity, &state.values);
        }
    }
    for entity in constraints {
        let _ = world.remove_one::<Broken>(entity);
    }
    for &(entity, by) in &saved.broken {
        let _ = world.insert_one(entity, Broken { by });
    }
}
