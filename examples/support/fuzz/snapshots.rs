//! Snapshots of running scenes with damaged bytes.

use super::{Fault, Patience, Random, Verdict, scenes};
use std::path::{Path, PathBuf};
use turnbuckle::scene::{LoadOptions, Scene, load_with};
use turnbuckle::snapshot::{Snapshot, seal};

/// A damaged snapshot.
pub struct SnapshotCase {
    scene: PathBuf,
    /// Steps before it was taken.
    age: u64,
    bytes: Vec<u8>,
    /// Was the checksum made to fit the damage?
    sealed: bool,
}

/// Scenes whose snapshots hold everything there is in one: joints, winches, contacts, sleepers.
const SCENES: [&str; 6] = ["crane", "tandem_cranes", "boxes", "vehicle", "ragdoll", "mixed_shapes"];

fn run_up(scene: &Path, age: u64) -> Scene {
    let mut scene = match load_with(scene, &LoadOptions::default()) {
        Ok(scene) => scene,
        Err(error) => panic!("{error}"),
    };
    let dt = scene.dt();
    for _ in 0..age {
        super::worker::alive();
        scene.physics.step(&mut scene.world, dt);
    }
    scene
}

impl SnapshotCase {
    /// A random one.
    pub fn new(random: &mut Random) -> SnapshotCase {
        let name = random.pick(&SCENES);
        let all = scenes::shipped();
        let scene = all.into_iter().find(|p| p.file_stem().is_some_and(|s| s == name));
        let scene = scene.unwrap_or_else(|| panic!("there is no scene {name}"));
        let age = random.pick(&[0, 1, 3, 10]);
        let good = run_up(&scene, age);
        let mut bytes = good.physics.snapshot(&good.world).as_bytes().to_vec();
        for _ in 0..1 + random.below(3) {
            damage(&mut bytes, random);
        }
        let sealed = random.chance(0.7);
        if sealed {
            seal(&mut bytes);
        }
        SnapshotCase { scene, age, bytes, sealed }
    }

    /// Restores it; where it is accepted, steps on.
    pub fn run(self, patience: &Patience) -> Verdict {
        let mut scene = run_up(&self.scene, self.age);
        let before = scene.physics.snapshot(&scene.world);
        if before.as_bytes() == self.bytes {
            return Verdict::refused("the damage left it as it was");
        }
        if let Err(error) = scene.physics.restore(&mut scene.world, &Snapshot::from_bytes(self.bytes)) {
            if scene.physics.snapshot(&scene.world) != before {
                return Verdict::fault(Fault::Untrue, format!("refused ({error}), but the world changed"));
            }
            return Verdict::refused(error);
        }
        if !self.sealed {
            return Verdict::fault(Fault::Untrue, "accepted, though its checksum does not fit");
        }
        let dt = scene.dt();
        patience.watch(&mut scene.world, &mut scene.physics, dt, |_, _, _| ())
    }

    /// The bytes.
    pub fn files(&self) -> (Vec<(String, Vec<u8>)>, String) {
        let name = self.scene.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (vec![(format!("{name}_after_{}.snapshot", self.age), self.bytes.clone())], String::new())
    }
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let n = bytes.len().max(1);
    if bytes.is_empty() {
        return;
    }
    match random.below(10) {
        0..=4 => bytes[random.below(n)] ^= 1 << random.below(8),
        5 => bytes[random.below(n)] = random.bits() as u8,
        6 => bytes.truncate(random.below(n)),
        7 => {
            let at = random.below(n);
            let end = (at + 1 + random.below(64)).min(n);
            bytes[at..end].fill(random.pick(&[0, 0xff, 0x80]));
        }
        8 => {
            // Numbers lie on multiples of four.
            let at = random.below(n) & !3;
            let x = random.pick(&[f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300, 1e-300, 5e-324]);
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(&x.to_le_bytes());
            }
        }
        _ => {
            let (from, to) = (random.below(n), random.below(n));
            let length = random.below(64).min(n - from.max(to));
            bytes.copy_within(from..from + length, to);
        }
    }
}
