//! The same bits for any number of threads, after every step; and after save and restore.

mod support;

use hecs::World;
use support::{CurtainOptions, curtain};
use turnbuckle::Physics;
use turnbuckle::testing::state_hash;

/// 1,000 bodies in ropes, chains and alone; every 20 steps a few are despawned, joints that name them stay.
fn hashes(threads: usize, steps: u32) -> Vec<u64> {
    let mut world = World::new();
    let (mut physics, bodies) = curtain(&mut world, &CurtainOptions::default());
    physics.set_threads(threads);
    (0..steps)
        .map(|step| {
            if step % 20 == 10 {
                for k in 0..5 {
                    let _ = world.despawn(bodies[(step as usize * 7 + 131 * k) % bodies.len()]);
                }
            }
            physics.step(&mut world, 1.0 / 60.0);
            state_hash(&world)
        })
        .collect()
}

#[test]
fn one_two_three_and_eight_threads_agree_after_every_step_with_despawns() {
    let one = hashes(1, 100);
    for threads in [2, 3, 8] {
        let many = hashes(threads, 100);
        for (step, (a, b)) in one.iter().zip(&many).enumerate() {
            assert_eq!(a, b, "{threads} threads differ from 1 at step {step}");
        }
    }
}

#[test]
fn restoring_gives_the_same_bits_as_never_having_left() {
    let mut world = World::new();
    let (mut physics, _) = curtain(&mut world, &CurtainOptions::default());
    let run = |physics: &mut Physics, world: &mut World, n: u32| -> Vec<u64> {
        (0..n)
            .map(|_| {
                physics.step(world, 1.0 / 60.0);
                state_hash(world)
            })
            .collect()
    };
    run(&mut physics, &mut world, 30);
    let saved = physics.snapshot(&world);
    let stayed = run(&mut physics, &mut world, 30);
    physics.restore(&mut world, &saved).unwrap();
    physics.set_threads(3);
    assert_eq!(stayed, run(&mut physics, &mut world, 30));
    // and into an engine that has never seen the world
    let (mut other, _) = curtain(&mut World::new(), &CurtainOptions::default());
    other.restore(&mut world, &saved).unwrap();
    assert_eq!(stayed, run(&mut other, &mut world, 30));
    assert_eq!(other.report().step, 60);
}

#[test]
fn a_snapshot_is_small() {
    let mut world = World::new();
    let free = CurtainOptions { ropes: 0, free: 10_000, ..CurtainOptions::default() };
    let (mut physics, _) = curtain(&mut world, &free);
    physics.step(&mut world, 1.0 / 60.0);
    let bytes = physics.snapshot(&world).as_bytes().len();
    println!("{} bytes a body", bytes as f64 / 1e4);
    assert!(bytes <= 200 * 10_000);
}

#[test]
fn broken_snapshots_and_missing_bodies_are_refused_and_change_nothing() {
    use turnbuckle::snapshot::{Snapshot, SnapshotError};
    let mut world = World::new();
    let (mut physics, bodies) = curtain(&mut world, &CurtainOptions::default());
    physics.step(&mut world, 1.0 / 60.0);
    let saved = physics.snapshot(&world);
    physics.step(&mut world, 1.0 / 60.0);
    let before = state_hash(&world);
    for cut in (0..saved.as_bytes().len()).step_by(997) {
        let broken = Snapshot::from_bytes(saved.as_bytes()[..cut].to_vec());
        assert!(matches!(physics.restore(&mut world, &broken), Err(SnapshotError::Malformed(_))));
    }
    let mut future = saved.as_bytes().to_vec();
    future[4] = 99;
    let error = physics.restore(&mut world, &Snapshot::from_bytes(future)).unwrap_err();
    assert_eq!(error.to_string(), "the snapshot has format 99, this build reads format 8; take a new one");
    assert_eq!(before, state_hash(&world));
    world.despawn(bodies[3]).unwrap();
    let error = physics.restore(&mut world, &saved).unwrap_err();
    assert_eq!(error, SnapshotError::Missing { entity: bodies[3] });
}
