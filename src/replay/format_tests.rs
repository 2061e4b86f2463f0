use super::*;
use crate::replay::sample;

#[test]
fn what_is_written_is_read_back() {
    let recording = sample::tumbling(30, 40);
    let back = Recording::from_bytes(&recording.to_bytes()).expect("just written");
    assert_eq!(back.bodies, recording.bodies);
    assert_eq!(back.joints, recording.joints);
    assert_eq!(back.info, recording.info);
    assert_eq!(back.frames.len(), 40);
    let quantum = recording.quantum() as f32;
    for (a, b) in recording.frames.iter().zip(&back.frames) {
        assert_eq!(a.stats.map(f32::to_bits), b.stats.map(f32::to_bits));
        assert_eq!(a.timings, b.timings);
        assert_eq!(a.partitions, b.partitions);
        for (p, q) in a.poses.iter().zip(&b.poses) {
            assert_eq!(p.rotation, q.rotation);
            for k in 0..3 {
                // Half a quantum by rounding; the rest is the f32 rounding of coordinates below 16 m.
                assert!((p.position[k] - q.position[k]).abs() <= 0.5 * quantum + 1e-6);
            }
        }
        for (l, m) in a.loads.iter().zip(&b.loads) {
            for k in 0..3 {
                // 8 bits of mantissa, rounded: 2⁻⁸ of the value.
                assert!((l.force[k] - m.force[k]).abs() <= l.force[k].abs() / 256.0);
            }
        }
        assert_eq!(a.contacts.len(), b.contacts.len());
    }
    // A second trip changes nothing: what was read is exactly what is in the file.
    let again = Recording::from_bytes(&back.to_bytes()).expect("just written");
    assert_eq!(again.frames[7].poses, back.frames[7].poses);
}

#[test]
fn bodies_that_come_late_are_absent_before() {
    let mut recording = sample::tumbling(3, 4);
    recording.frames[0].poses.truncate(2);
    let back = Recording::from_bytes(&recording.to_bytes()).expect("just written");
    assert!(back.pose(0, 2).is_none());
    assert!(back.pose(1, 2).is_some());
}

#[test]
fn damage_is_told_not_panicked_on() {
    let bytes = sample::tumbling(5, 5).to_bytes();
    assert!(matches!(Recording::from_bytes(b"GIF89a"), Err(ReplayError::NotARecording)));
    let mut newer = bytes.clone();
    newer[8] = 200;
    assert!(matches!(Recording::from_bytes(&newer), Err(ReplayError::Version { found: 200 })));
    for cut in [8, 12, 19, 20, 40, bytes.len() / 2, bytes.len() - 1] {
        assert!(matches!(Recording::from_bytes(&bytes[..cut]), Err(ReplayError::Damaged(_))), "{cut}");
    }
    // Flip single bytes all over: an error or a recording, never a panic.
    for at in (8..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x5a;
        let _ = Recording::from_bytes(&flipped);
    }
}

#[test]
fn a_thousand_bodies_for_six_hundred_frames_fit_a_page() {
    let bytes = sample::tumbling(1000, 600).to_bytes();
    let page = bytes.len() * 4 / 3;
    // 12 MB is the promise for the page; 1 MB of it belongs to the viewer.
    assert!(page < 11_000_000, "{page} bytes");
}

#[test]
fn halves_round_to_nearest() {
    for x in [0.0, 1.0, -1.0, 3.25e5, -7.125e-3, f32::MAX, f32::INFINITY] {
        let back = from_half(to_half(x));
        // 7 bits after the leading one are kept and rounded: 2⁻⁸ relative. The largest number may become infinite.
        assert!(back == x || (back - x).abs() <= x.abs() / 256.0 || back.is_infinite(), "{x} {back}");
    }
    assert!(from_half(to_half(f32::NAN)).is_nan());
}
