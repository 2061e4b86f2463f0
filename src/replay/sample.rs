//! A made-up run: bouncing, spinning bodies of every form and a cable. For trying pages, pictures and files
//! without simulating anything.

use super::palette;
use super::recording::*;
use glam::{DQuat, DVec3};

const FORMS: [Form; 4] = [Form::Box, Form::Sphere, Form::Cylinder, Form::Cone];

fn part(form: Form, size: [f32; 3]) -> Part {
    Part { form, size, position: [0.0; 3], rotation: [0.0, 0.0, 0.0, 1.0], mesh: None }
}

/// A number in 0..1 that looks random and is the same on every machine (SplitMix64's finaliser).
fn noise(seed: u64) -> f64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Height of a ball that falls from `drop` and bounces back to 60 % each time.
fn bounce(mut time: f64, mut drop: f64) -> f64 {
    const G: f64 = 9.81;
    let fall = (2.0 * drop / G).sqrt();
    if time < fall {
        return drop - 0.5 * G * time * time;
    }
    time -= fall;
    while drop > 1e-3 {
        drop *= 0.6;
        let flight = 2.0 * (2.0 * drop / G).sqrt();
        if time < flight {
            return (2.0 * G * drop).sqrt() * time - 0.5 * G * time * time;
        }
        time -= flight;
    }
    0.0
}

/// `bodies` bodies (the first one is the floor) for `frames` frames of 1/60 s.
pub fn tumbling(bodies: usize, frames: usize) -> Recording {
    let side = (bodies as f64).sqrt().ceil().max(1.0);
    let mut recording = Recording {
        info: RunInfo {
            scene: "tumbling".into(),
            solver: "none".into(),
            partition: "none".into(),
            dt: 1.0 / 60.0,
            threads: 1,
            about: "A made-up run.".into(),
            camera: None,
        },
        stride: 1,
        systems: ["collide", "rows", "solve", "integrate"].map(String::from).to_vec(),
        ..Recording::default()
    };
    for i in 0..bodies {
        let floor = i == 0;
        let r = 0.2 + 0.15 * noise(i as u64) as f32;
        let form = if floor { Form::Plane } else { FORMS[i % FORMS.len()] };
        let size = if form == Form::Sphere { [r; 3] } else { [r, 1.3 * r, r] };
        recording.bodies.push(BodyInfo {
            name: if floor { "floor".into() } else { format!("body {i}") },
            kind: if floor { Kind::Fixed } else { Kind::Dynamic },
            mass: r.powi(3) * 1000.0,
            color: palette::default_color(i, floor),
            parts: vec![part(form, size)],
            cable: None,
        });
    }
    for i in 1..bodies.saturating_sub(1).min(20) as u32 {
        recording.joints.push(JointInfo {
            name: format!("joint {i}"),
            kind: "ball".into(),
            bodies: [Some(i), Some(i + 1)],
            anchor: [0.0, 0.3, 0.0],
        });
    }
    for f in 0..frames {
        let frame = frame(&recording, f, side);
        recording.frames.push(frame);
    }
    recording
}

fn frame(recording: &Recording, f: usize, side: f64) -> Frame {
    let time = (f + 1) as f64 / 60.0;
    let previous = recording.frames.last();
    let pose = |i: usize| {
        if i == 0 {
            return Pose::new(DVec3::ZERO, DQuat::IDENTITY, None);
        }
        let (row, column) = ((i as f64 / side).floor(), i as f64 % side);
        let drop = 1.0 + 5.0 * noise(i as u64 + 7);
        let jitter = 1e-4 * noise((i * 7919 + f) as u64);
        let height = bounce(time, drop);
        let position = DVec3::new(column - 0.5 * side, row - 0.5 * side, 0.45 + height + jitter);
        let axis = DVec3::new(noise(i as u64), noise(i as u64 + 1), 0.2).normalize();
        let angle = if height > 1e-3 { 3.0 * time * noise(i as u64 + 2) } else { 0.0 };
        Pose::new(position, DQuat::from_axis_angle(axis, angle), previous.map(|p: &Frame| &p.poses[i]))
    };
    let poses: Vec<Pose> = (0..recording.bodies.len()).map(pose).collect();
    let mut stats = [0.0f32; STATS.len()];
    stats[Stat::Time as usize] = time as f32;
    stats[Stat::Residual as usize] = (1e-10 * (1.0 + 50.0 * noise(f as u64))) as f32;
    stats[Stat::Coupling as usize] = (1.0 + 5.0 * noise(f as u64 + 3)).floor() as f32;
    stats[Stat::Rows as usize] = 100.0;
    stats[Stat::Kinetic as usize] = (40.0 * (1.0 + (3.0 * time).sin())) as f32;
    stats[Stat::Potential as usize] = (40.0 * (1.0 - (3.0 * time).sin())) as f32;
    stats[Stat::JointError as usize] = (1e-6 * (1.0 + noise(f as u64 + 5))) as f32;
    stats[Stat::Penetration as usize] = 1e-5;
    stats[Stat::StepMs as usize] = 4.0;
    let low = poses.iter().skip(1).filter(|p| p.position[2] < 0.5);
    let contacts: Vec<ContactSample> = low
        .map(|p| ContactSample { point: [p.position[0], p.position[1], 0.0], force: [0.0, 0.0, 50.0] })
        .collect();
    stats[Stat::Contacts as usize] = contacts.len() as f32;
    Frame {
        stats,
        timings: (0..4).map(|k| 0.5 + noise((f * 4 + k) as u64) as f32).collect(),
        partitions: (0..poses.len()).map(|i| if i == 0 { NO_PARTITION } else { (i / 16) as u16 }).collect(),
        loads: (0..recording.joints.len())
            .map(|j| Load { force: [3.0, 0.0, 100.0 * noise((j * 31 + f / 9) as u64) as f32], torque: 2.5 })
            .collect(),
        poses,
        contacts,
    }
}
