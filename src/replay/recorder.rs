//! Looks at the world after each step and remembers what it saw.

use super::palette;
use super::parts::PartBuilder;
use super::recording::*;
use crate::components::*;
use hecs::{Entity, World};

/// What to record and how much memory to spend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordOptions {
    /// Contact points and their forces.
    pub contacts: bool,
    /// Forces of joints.
    pub loads: bool,
    /// Partition of each body.
    pub partitions: bool,
    /// Memory for frames (bytes). When it is used up every second frame is forgotten and from then on only every
    /// second step is recorded, and so on: a long run becomes coarser, never larger.
    pub most_bytes: usize,
}

impl Default for RecordOptions {
    fn default() -> Self {
        RecordOptions { contacts: true, loads: true, partitions: true, most_bytes: 512 << 20 }
    }
}

/// Records a run. Call [`Recorder::record`] after each step and [`Recorder::finish`] at the end.
pub struct Recorder {
    options: RecordOptions,
    recording: Recording,
    parts: PartBuilder,
    /// Who is at each place of `recording.bodies`.
    entities: Vec<Entity>,
    /// Place by entity id; a reader compares the entity.
    slot_by_id: Vec<u32>,
    steps: u64,
    bytes: usize,
    /// Who is at each place of `recording.joints`, and the place by entity id.
    joints: Vec<Entity>,
    joint_by_id: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Recorder {
    /// An empty recording of a run.
    pub fn new(info: RunInfo, options: RecordOptions) -> Recorder {
        Recorder {
            options,
            recording: Recording { info, stride: 1, ..Recording::default() },
            parts: PartBuilder::default(),
            entities: Vec::new(),
            slot_by_id: Vec::new(),
            steps: 0,
            bytes: 0,
            joints: Vec::new(),
            joint_by_id: Vec::new(),
        }
    }

    /// What is recorded.
    pub fn options(&self) -> &RecordOptions {
        &self.options
    }

    /// Is the step that was just done one to record? (Only every second is, once memory has run out, and so on.)
    pub fn wants_next(&self) -> bool {
        self.steps.is_multiple_of(u64::from(self.recording.stride))
    }

    /// The place of a body in the recording.
    pub fn slot_of(&self, entity: Entity) -> Option<u32> {
        place_of(&self.entities, &self.slot_by_id, entity)
    }

    /// The place of a joint in the recording.
    pub fn joint_of(&self, entity: Entity) -> Option<u32> {
        place_of(&self.joints, &self.joint_by_id, entity)
    }

    /// Names the systems whose times come with each frame.
    pub fn name_systems(&mut self, names: Vec<String>) {
        self.recording.systems = names;
    }

    /// Adds a joint; loads of frames are in the order in which joints were added.
    pub fn add_joint(&mut self, entity: Entity, joint: JointInfo) {
        note_place(&mut self.joint_by_id, entity, self.joints.len());
        self.joints.push(entity);
        self.recording.joints.push(joint);
    }

    /// Records the world as it is before the first step.
    pub fn begin(&mut self, world: &World) {
        if let Some(frame) = self.record(world) {
            frame.stats[Stat::Time as usize] = 0.0;
        }
    }

    /// Records the poses (and partitions) of the world into a new frame, to which the caller may add numbers, loads
    /// and contacts. `None` if this step is not to be recorded.
    pub fn record(&mut self, world: &World) -> Option<&mut Frame> {
        let wanted = self.wants_next();
        self.steps += 1;
        if !wanted {
            return None;
        }
        self.make_room();
        let frame = self.frame_of(world).unwrap_or_else(|| {
            self.meet_new_bodies(world);
            self.frame_of(world).unwrap_or_default()
        });
        self.recording.frames.push(frame);
        self.recording.frames.last_mut()
    }

    /// Counts a step that is not recorded.
    pub(super) fn skip(&mut self) {
        self.steps += 1;
    }

    /// The frame that was recorded last.
    pub(super) fn last_frame(&mut self) -> Option<&mut Frame> {
        self.recording.frames.last_mut()
    }

    /// The recording so far.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Recording {
        self.recording.meshes = self.parts.meshes().to_vec();
        self.recording
    }

    fn make_room(&mut self) {
        self.bytes += self.recording.frames.last().map_or(0, Frame::bytes);
        while self.bytes > self.options.most_bytes && self.recording.frames.len() > 1 {
            let mut keep = false;
            self.recording.frames.retain(|_| {
                keep = !keep;
                keep
            });
            self.recording.stride *= 2;
            self.bytes = self.recording.frames.iter().map(Frame::bytes).sum();
        }
    }

    fn meet_new_bodies(&mut self, world: &World) {
        let mut fresh = Vec::new();
        for (entity, index, _) in world.query::<(Entity, Option<&BodyIndex>, &Position)>().iter() {
            if self.slot_of(entity).is_none() {
                fresh.push((index.map_or(NOWHERE, |i| i.0), entity));
            }
        }
        fresh.sort_unstable_by_key(|&(index, entity)| (index, entity.id()));
        for (_, entity) in fresh {
            self.meet(world, entity);
        }
    }

    fn meet(&mut self, world: &World, entity: Entity) {
        let slot = self.entities.len();
        let kind = match world.get::<&BodyKind>(entity).map(|k| *k) {
            Ok(BodyKind::Fixed) => Kind::Fixed,
            Ok(BodyKind::Kinematic) => Kind::Kinematic,
            _ => Kind::Dynamic,
        };
        let color = world.get::<&Appearance>(entity).map(|a| a.color);
        let parts = world.get::<&Colliders>(entity).map_or_else(
            |_| Vec::new(),
            |c| c.0.iter().filter(|c| !c.sensor).flat_map(|c| self.parts.parts(c)).collect(),
        );
        let cable = world.get::<&CableLink>(entity).ok().map(|c| CableTag {
            cable: c.cable,
            order: c.order,
            radius: c.radius as f32,
        });
        self.recording.bodies.push(BodyInfo {
            name: world.get::<&Name>(entity).map_or_else(|_| format!("body {slot}"), |n| n.0.clone()),
            kind,
            mass: if kind == Kind::Dynamic {
                world.get::<&Mass>(entity).map_or(0.0, |m| m.0 as f32)
            } else {
                0.0
            },
            color: match color {
                Ok(color) if kind == Kind::Dynamic && cable.is_none() => palette::varied(color, slot),
                Ok(color) => color,
                Err(_) => palette::default_color(slot, kind == Kind::Fixed),
            },
            parts,
            cable,
        });
        self.entities.push(entity);
        note_place(&mut self.slot_by_id, entity, slot);
    }

    /// The world's poses; `None` if there is a body that was not met yet.
    fn frame_of(&self, world: &World) -> Option<Frame> {
        let n = self.entities.len();
        let previous = self.recording.frames.last();
        let mut poses = vec![Pose::ABSENT; n];
        let mut partitions = if self.options.partitions { vec![NO_PARTITION; n] } else { Vec::new() };
        type Seen<'a> = (Entity, &'a Position, &'a Rotation, Option<&'a PartitionIndex>);
        for (entity, position, rotation, partition) in world.query::<Seen<'_>>().iter() {
            let slot = self.slot_of(entity)? as usize;
            let before = previous.and_then(|f| f.poses.get(slot)).filter(|p| p.is_present());
            poses[slot] = Pose::new(position.0, rotation.0, before);
            if let (Some(place), Some(partition)) = (partitions.get_mut(slot), partition) {
                *place = u16::try_from(partition.0).unwrap_or(NO_PARTITION);
            }
        }
        Some(Frame { stats: [f32::NAN; STATS.len()], poses, partitions, ..Frame::default() })
    }
}

fn place_of(entities: &[Entity], by_id: &[u32], entity: Entity) -> Option<u32> {
    let place = *by_id.get(entity.id() as usize)?;
    (entities.get(place as usize) == Some(&entity)).then_some(place)
}

fn note_place(by_id: &mut Vec<u32>, entity: Entity, place: usize) {
    let id = entity.id() as usize;
    if by_id.len() <= id {
        by_id.resize(id + 1, NOWHERE);
    }
    by_id[id] = place as u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{DMat3, DVec3};

    fn body(x: f64) -> RigidBody {
        RigidBody::dynamic(2.0, DMat3::IDENTITY).at(DVec3::new(x, 0.0, 0.0))
    }

    #[test]
    fn bodies_may_come_and_go() {
        let mut world = World::new();
        let a = world.spawn(body(1.0));
        let mut recorder = Recorder::new(RunInfo::default(), RecordOptions::default());
        recorder.record(&world);
        let b = world.spawn(body(2.0));
        recorder.record(&world);
        world.despawn(a).expect("it is there");
        let c = world.spawn(body(3.0)); // hecs gives it the id of `a`
        recorder.record(&world);
        assert_eq!(recorder.slot_of(a), None);
        assert_eq!((recorder.slot_of(b), recorder.slot_of(c)), (Some(1), Some(2)));
        let r = recorder.finish();
        let seen = |f: usize| (0..3).map(|i| r.pose(f, i).map(|p| p.position[0])).collect::<Vec<_>>();
        assert_eq!(seen(0), [Some(1.0), None, None]);
        assert_eq!(seen(1), [Some(1.0), Some(2.0), None]);
        assert_eq!(seen(2), [None, Some(2.0), Some(3.0)]);
        assert_eq!(r.bodies[0].mass, 2.0);
    }

    #[test]
    fn long_runs_become_coarser_not_larger() {
        let mut world = World::new();
        let e = world.spawn(body(0.0));
        let options = RecordOptions { most_bytes: 20_000, ..RecordOptions::default() };
        let mut recorder = Recorder::new(RunInfo::default(), options);
        for step in 0..1000 {
            world.get::<&mut Position>(e).expect("a body").0.x = f64::from(step);
            recorder.record(&world);
            let bytes: usize = recorder.recording().frames.iter().map(Frame::bytes).sum();
            // One frame more than the limit may be there until the next is asked for.
            assert!(bytes <= options.most_bytes + 400, "{bytes}");
        }
        let r = recorder.finish();
        assert!(r.stride.is_power_of_two() && r.stride > 1);
        for (i, frame) in r.frames.iter().enumerate() {
            assert_eq!(frame.poses[0].position[0], (i as u32 * r.stride) as f32);
        }
    }
}
