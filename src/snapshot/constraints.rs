//! What constraints keep for themselves, in a snapshot: rope on a drum, the length of a winch's rope, that one is broken.

use super::{Reader, SnapshotError, Writer};
use crate::components::{Broken, ConstraintIndex, JointForce, Quarantined, RowImpulse, RowImpulses};
use crate::constraint::Constraint;
use crate::subsystem::Subsystem;
use hecs::{Entity, World};
use std::collections::BTreeMap;

/// Constraints and what they keep.
type States = Vec<(Entity, Vec<f64>)>;

/// Saves and loads the state of constraints of one type.
pub struct StateCodec {
    /// The type's full name.
    name: &'static str,
    list: fn(&World, &mut Vec<Entity>),
    save: fn(&World, &mut States),
    load: fn(&mut World, Entity, &[f64]),
}

impl StateCodec {
    /// That of a type.
    pub fn of<T: Constraint<N>, const N: usize>() -> StateCodec {
        StateCodec {
            name: std::any::type_name::<T>(),
            list: list::<T>,
            save: |world, out| save::<T>(world, out, T::save),
            load: |world, entity, state| load::<T>(world, entity, |constraint| constraint.load(state)),
        }
    }

    /// That of a type of subsystems.
    pub fn of_subsystem<T: Subsystem>() -> StateCodec {
        StateCodec {
            name: std::any::type_name::<T>(),
            list: list::<T>,
            save: save_subsystems::<T>,
            load: |world, entity, state| {
                let [out, state @ ..] = state else { return };
                load::<T>(world, entity, |subsystem| subsystem.load(state));
                // What is gone needs no mark.
                let _ = match *out {
                    0.0 => world.remove_one::<Quarantined>(entity).is_ok(),
                    _ => world.insert_one(entity, Quarantined).is_ok(),
                };
            },
        }
    }
}

/// A constraint's number and impulses; no number yet before its first step.
pub(super) struct SavedConstraint {
    pub entity: Entity,
    pub index: Option<u64>,
    rows: Vec<RowImpulse>,
}

/// Stands for "not numbered yet".
const NEW: u64 = u64::MAX;

/// Writes numbers and impulses of all constraints, by number; those that no step has seen follow by entity.
pub(super) fn write_impulses(world: &World, codecs: &[StateCodec], out: &mut Writer) {
    let mut query = world.query::<(Entity, &ConstraintIndex, &RowImpulses)>();
    let mut all: Vec<(u64, Entity, &[RowImpulse])> =
        query.iter().map(|(e, i, r)| (i.0, e, &r.0[..])).collect();
    let mut new = Vec::new();
    codecs.iter().for_each(|keeper| (keeper.list)(world, &mut new));
    all.extend(new.into_iter().map(|entity| (NEW, entity, &[][..])));
    all.sort_unstable_by_key(|&(index, entity, _)| (index, entity.to_bits()));
    // An entity may carry constraints of several types.
    all.dedup_by_key(|&mut (index, entity, _)| (index, entity));
    out.u32(all.len() as u32);
    for (index, entity, rows) in all {
        out.u64(entity.to_bits().get());
        out.u64(index);
        out.rows(rows);
    }
}

/// Reads one of those that [`write_impulses`] wrote.
pub(super) fn read_impulses(input: &mut Reader<'_>) -> Result<SavedConstraint, SnapshotError> {
    let (entity, index) = (input.entity()?, input.u64()?);
    let index = (index != NEW).then_some(index);
    Ok(SavedConstraint { entity, index, rows: input.list(12, Reader::row)? })
}

/// Gives a constraint its number and impulses back; one that had none is new again.
pub(super) fn apply_impulses(saved: &SavedConstraint, world: &mut World) {
    type Stored<'a> = (&'a mut ConstraintIndex, &'a mut RowImpulses);
    let Some(number) = saved.index else {
        let _ = world.remove::<(ConstraintIndex, RowImpulses)>(saved.entity);
        return;
    };
    if let Ok((index, impulses)) = world.query_one_mut::<Stored<'_>>(saved.entity) {
        index.0 = number;
        impulses.0.clone_from(&saved.rows);
    } else {
        let _ = world.insert(saved.entity, (ConstraintIndex(number), RowImpulses(saved.rows.clone())));
    }
}

/// Is every state one that a constraint of its type keeps? What is gone, or of a type that this engine does not know, is not
/// looked at; it will be left alone.
pub(super) fn check(saved: &Saved, world: &World, codecs: &[StateCodec]) -> Result<(), SnapshotError> {
    let mut now = Vec::new();
    for keeper in codecs {
        let of_type = || saved.states.iter().filter(|s| s.name == keeper.name);
        if of_type().next().is_none() {
            continue;
        }
        now.clear();
        (keeper.save)(world, &mut now);
        let sizes: BTreeMap<u64, usize> = now.iter().map(|(e, s)| (e.to_bits().get(), s.len())).collect();
        for state in of_type() {
            let size = sizes.get(&state.entity.to_bits().get());
            if size.is_some_and(|size| *size != state.values.len()) {
                return Err(SnapshotError::Malformed("a constraint keeps another number of values"));
            }
        }
    }
    match saved.broken.iter().find(|(entity, _)| !world.contains(*entity)) {
        Some(&(entity, _)) => Err(SnapshotError::Missing { entity }),
        None => Ok(()),
    }
}

/// Those that no step has seen yet.
fn list<T: Send + Sync + 'static>(world: &World, out: &mut Vec<Entity>) {
    out.extend(world.query::<Entity>().with::<&T>().without::<&ConstraintIndex>().iter());
}

fn save<T: Send + Sync + 'static>(world: &World, out: &mut States, save: impl Fn(&T, &mut Vec<f64>)) {
    for (entity, constraint) in world.query::<(Entity, &T)>().iter() {
        let mut state = Vec::new();
        save(constraint, &mut state);
        if !state.is_empty() {
            out.push((entity, state));
        }
    }
}

/// Before the state of a subsystem stands whether it is out; then its numbers may be none, and zeros are kept in their place.
fn save_subsystems<T: Subsystem>(world: &World, out: &mut States) {
    for (entity, subsystem, quarantined) in
        world.query::<(Entity, &T, hecs::Satisfies<&Quarantined>)>().iter()
    {
        let mut state = vec![f64::from(u8::from(quarantined))];
        subsystem.save(&mut state);
        state.iter_mut().filter(|x| quarantined && !x.is_finite()).for_each(|x| *x = 0.0);
        out.push((entity, state));
    }
}

fn load<T: Send + Sync + 'static>(world: &mut World, entity: Entity, load: impl FnOnce(&mut T)) {
    if let Ok(constraint) = world.query_one_mut::<&mut T>(entity) {
        load(constraint);
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
pub(super) fn write(world: &World, codecs: &[StateCodec], out: &mut Writer) {
    let mut all = Vec::new();
    for keeper in codecs {
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
        Ok(SavedState { name, entity: input.entity()?, values: input.list(8, Reader::sound)? })
    })?;
    let broken = input.list(56, |input| {
        let entity = input.entity()?;
        Ok((entity, JointForce { force: input.sound_vec3()?, torque: input.sound_vec3()? }))
    })?;
    Ok(Saved { states, broken })
}

/// Gives constraints their state back; those that broke later are whole again. What is gone, or of a type that this engine does
/// not know, is left alone.
pub(super) fn apply(
    saved: &Saved,
    world: &mut World,
    codecs: &[StateCodec],
    constraints: impl Iterator<Item = Entity>,
) {
    for state in &saved.states {
        if let Some(keeper) = codecs.iter().find(|k| k.name == state.name) {
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
