//! Bodies in a snapshot: pose, velocity, quarantine, rest.

use super::{Reader, SnapshotError, Writer};
use crate::components::*;
use glam::{DQuat, DVec3};
use hecs::{Entity, World};

/// State of one body.
pub(super) struct SavedBody {
    pub entity: Entity,
    quarantined: bool,
    pub rest: Rest,
    position: DVec3,
    rotation: DQuat,
    linear: DVec3,
    angular: DVec3,
}

/// What every body has.
pub(super) type State<'a> = (&'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity);

/// Bytes of one body.
pub(super) const BYTES: usize = 8 * WORDS;
const WORDS: usize = 3 + 7 + 13;

/// Writes all bodies in creation order; those that no step has numbered yet follow by entity, as they will be numbered.
pub(super) fn write(world: &World, out: &mut Writer) {
    type Saved<'a> =
        (Entity, State<'a>, Option<&'a BodyIndex>, hecs::Satisfies<&'a Quarantined>, Option<&'a Rest>);
    let mut all: Vec<(u64, [u64; WORDS])> = Vec::new();
    for (entity, (x, q, v, w), index, quarantined, rest) in world.query::<Saved<'_>>().iter() {
        let new = Rest { position: x.0, rotation: q.0, ..Rest::default() };
        let rest = rest.copied().unwrap_or(new);
        all.push((rank(entity, index), words(entity, quarantined, &rest, (x, q, v, w))));
    }
    // A `RigidBody` inside a tuple is one component until the first step takes it apart.
    for (entity, body) in world.query::<(Entity, &RigidBody)>().iter() {
        let state = (&body.position, &body.rotation, &body.linear_velocity, &body.angular_velocity);
        let new = Rest { position: body.position.0, rotation: body.rotation.0, ..Rest::default() };
        all.push((rank(entity, None), words(entity, false, &new, state)));
    }
    if !all.is_sorted_by_key(|(rank, words)| (*rank, words[0])) {
        all.sort_unstable_by_key(|(rank, words)| (*rank, words[0]));
    }
    out.u32(all.len() as u32);
    out.0.reserve(all.len() * BYTES);
    for (_, words) in all {
        words.into_iter().for_each(|word| out.u64(word));
    }
}

fn rank(entity: Entity, index: Option<&BodyIndex>) -> u64 {
    index.map_or(1 << 32 | u64::from(entity.id()), |i| u64::from(i.0))
}

fn words(entity: Entity, quarantined: bool, rest: &Rest, (x, q, v, w): State<'_>) -> [u64; WORDS] {
    let flags = u64::from(quarantined) | u64::from(rest.asleep) << 1 | u64::from(rest.steady) << 2;
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[entity.to_bits().get(), flags, rest.time.to_bits()]);
    let since = rest.position.to_array().into_iter().chain(rest.rotation.to_array());
    let numbers = since.chain(x.0.to_array()).chain(q.0.to_array());
    let numbers = numbers.chain(v.0.to_array()).chain(w.0.to_array());
    words[3..].iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_bits());
    words
}

/// Reads what [`write`] wrote. Poses and velocities may be anything: the guard of the next step looks at them.
pub(super) fn read(input: &mut Reader<'_>) -> Result<SavedBody, SnapshotError> {
    let (entity, flags, time) = (input.entity()?, input.u64()?, input.f64()?);
    if flags > 7 {
        return Err(SnapshotError::Malformed("it has a body in a state that cannot be"));
    }
    let (position, rotation) = (input.vec3()?, input.quat()?);
    let rest = Rest { time, steady: flags & 4 != 0, asleep: flags & 2 != 0, position, rotation };
    let (position, rotation) = (input.vec3()?, input.quat()?);
    let (linear, angular) = (input.vec3()?, input.vec3()?);
    Ok(SavedBody { entity, quarantined: flags & 1 != 0, rest, position, rotation, linear, angular })
}

/// Puts a body back.
pub(super) fn apply(body: &SavedBody, world: &mut World) {
    type Target<'a> = (&'a mut Position, &'a mut Rotation, &'a mut LinearVelocity, &'a mut AngularVelocity);
    if let Ok((x, q, v, w)) = world.query_one_mut::<Target<'_>>(body.entity) {
        (x.0, q.0, v.0, w.0) = (body.position, body.rotation, body.linear, body.angular);
    } else if let Ok(whole) = world.query_one_mut::<&mut RigidBody>(body.entity) {
        (whole.position.0, whole.rotation.0) = (body.position, body.rotation);
        (whole.linear_velocity.0, whole.angular_velocity.0) = (body.linear, body.angular);
    }
    let _ = world.insert_one(body.entity, body.rest);
    let out = world.satisfies::<&Quarantined>(body.entity);
    if body.quarantined && !out {
        let _ = world.insert_one(body.entity, Quarantined);
    } else if out && !body.quarantined {
        let _ = world.remove_one::<Quarantined>(body.entity);
    }
}

/// Bytes of one body that is struck after the end of the step.
pub(super) const REBOUND_BYTES: usize = 8 * 27;

/// Writes how bodies go on that are struck after the end of the step.
pub(super) fn write_rebounds(world: &World, out: &mut Writer) {
    let mut query = world.query::<(Entity, &Rebound, Option<&BodyIndex>)>();
    let pending = query.iter().filter(|(_, rebound, _)| rebound.pending);
    let mut all: Vec<_> = pending.map(|(e, rebound, index)| (rank(e, index), e, *rebound)).collect();
    all.sort_unstable_by_key(|(rank, entity, _)| (*rank, entity.to_bits()));
    out.u32(all.len() as u32);
    for (_, entity, rebound) in all {
        out.u64(entity.to_bits().get());
        for state in [rebound.shown, rebound.then] {
            out.vec3(state.position);
            state.rotation.to_array().into_iter().for_each(|x| out.f64(x));
            out.vec3(state.linear_velocity);
            out.vec3(state.angular_velocity);
        }
    }
}

/// Reads one of what [`write_rebounds`] wrote.
pub(super) fn read_rebound(input: &mut Reader<'_>) -> Result<(Entity, Rebound), SnapshotError> {
    let entity = input.entity()?;
    let mut state = || {
        Ok(MotionState {
            position: input.sound_vec3()?,
            rotation: input.quat()?,
            linear_velocity: input.sound_vec3()?,
            angular_velocity: input.sound_vec3()?,
        })
    };
    let (shown, then) = (state()?, state()?);
    let length = then.rotation.length_squared();
    // 1e-6: what a step leaves is a unit rotation.
    if length.is_nan() || (length - 1.0).abs() > 1e-6 {
        return Err(SnapshotError::Malformed("it has a body that goes on with no orientation"));
    }
    Ok((entity, Rebound { pending: true, shown, then }))
}

/// Puts them back; other bodies have none.
pub(super) fn apply_rebounds(rebounds: &[(Entity, Rebound)], world: &mut World) {
    world.query_mut::<&mut Rebound>().into_iter().for_each(|rebound| rebound.pending = false);
    for (entity, rebound) in rebounds {
        let _ = world.insert_one(*entity, *rebound);
    }
}
