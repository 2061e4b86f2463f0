//! The hash of a state.

use crate::components::*;
use hecs::World;

/// A hash of every body's pose and velocity bits, in body order (creation order). Two runs agree exactly if and only if
/// (but for one chance in 2⁶⁴) their hashes agree. Bodies that have not been through a step yet are left out.
pub fn state_hash(world: &World) -> u64 {
    type Hashed<'a> = (&'a BodyIndex, &'a Position, &'a Rotation, &'a LinearVelocity, &'a AngularVelocity);
    let mut query = world.query::<Hashed<'_>>();
    let mut order: Vec<(u32, [f64; 13])> = query
        .iter()
        .map(|(index, x, q, v, w)| {
            let mut bits = [0.0; 13];
            bits[..3].copy_from_slice(&x.0.to_array());
            bits[3..7].copy_from_slice(&q.0.to_array());
            bits[7..10].copy_from_slice(&v.0.to_array());
            bits[10..].copy_from_slice(&w.0.to_array());
            (index.0, bits)
        })
        .collect();
    order.sort_unstable_by_key(|&(index, _)| index);
    order.iter().flat_map(|(_, bits)| bits).fold(FNV_OFFSET, |hash, number| {
        number.to_bits().to_le_bytes().iter().fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(FNV_PRIME))
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
