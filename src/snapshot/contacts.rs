//! Contacts in a snapshot. They are the engine's own entities, so they are written whole and spawned again.

use super::{Reader, SnapshotError, Writer};
use crate::components::*;
use crate::constraint::contact_rows::STRIDE;
use crate::geometry::{Rides, Turns};
use glam::DVec3;
use hecs::{Entity, World};

/// A contact with all its components.
pub(super) struct SavedContact {
    contact: Contact,
    surface: Surface,
    manifold: Manifold,
    rows: Vec<RowImpulse>,
}

/// Writes all contacts, sorted by who they are.
pub(super) fn write(world: &World, out: &mut Writer) {
    let mut query = world.query::<(&Contact, &Manifold, &Surface, &RowImpulses)>();
    let mut all: Vec<_> = query.iter().collect();
    all.sort_unstable_by_key(|(contact, ..)| name(contact));
    out.u32(all.len() as u32);
    for (contact, manifold, surface, impulses) in all {
        out.u64(contact.a.to_bits().get());
        out.u64(contact.b.to_bits().get());
        out.u32(contact.collider_a);
        out.u32(contact.collider_b);
        out.u32(
            u32::from(contact.sensor) | u32::from(contact.touching) << 1 | u32::from(surface.enabled) << 2,
        );
        for number in [
            contact.approach,
            contact.blow,
            surface.friction,
            surface.restitution,
            surface.compliance,
            surface.friction_compliance,
            surface.torsion_radius,
            surface.rolling_radius,
        ] {
            out.f64(number);
        }
        out.vec3(surface.velocity);
        out.u32(manifold.points.len() as u32);
        for point in &manifold.points {
            out.u32(point.key);
            out.u32(point.age);
            out.f64(point.separation);
            out.f64(point.load);
            out.f64(point.seen);
            out.f64(point.resting_fraction);
            let flags = turns_number(point.turns) | rides_number(point.rides) << 2;
            out.u32(flags | u32::from(point.carried) << 4);
            for v in [point.normal, point.normal_a, point.normal_b, point.tangent] {
                out.vec3(v);
            }
            for v in [point.arm_a, point.arm_b, point.anchor_a, point.anchor_b] {
                out.vec3(v);
            }
        }
        out.rows(&impulses.0);
    }
}

/// Who a contact is: bodies and colliders.
type PairName = (std::num::NonZeroU64, u32, std::num::NonZeroU64, u32);

fn name(contact: &Contact) -> PairName {
    (contact.a.to_bits(), contact.collider_a, contact.b.to_bits(), contact.collider_b)
}

impl SavedContact {
    /// By this they are sorted.
    pub fn name(&self) -> PairName {
        name(&self.contact)
    }

    /// Can it be used as it is? Its surface is looked at in the next step, where users may change it.
    pub fn is_sound(&self) -> bool {
        self.contact.a != self.contact.b && self.manifold.points.iter().all(is_sound)
    }
}

/// A point whose rows have keys, whose normal is one, and which has not lived longer than there were steps.
fn is_sound(point: &ManifoldPoint) -> bool {
    // 1e-6: far above the round-off of a unit vector, far below what would be seen in a motion.
    let unit = |n: DVec3| (n.length_squared() - 1.0).abs() < 1e-6;
    let normals = !point.carried || (unit(point.normal_a) && unit(point.normal_b));
    point.key < u32::MAX / STRIDE && point.age < u32::MAX / 2 && unit(point.normal) && normals
}

/// Reads what [`write`] wrote.
pub(super) fn read(input: &mut Reader<'_>) -> Result<Vec<SavedContact>, SnapshotError> {
    input.list(100, |input| {
        let (a, b) = (input.entity()?, input.entity()?);
        let (collider_a, collider_b, flags) = (input.u32()?, input.u32()?, input.u32()?);
        if flags > 7 {
            return Err(SnapshotError::Malformed("it has a contact in a state that cannot be"));
        }
        let (approach, blow) = (input.sound()?, input.sound()?);
        let (sensor, touching) = (flags & 1 != 0, flags & 2 != 0);
        let contact = Contact { a, b, collider_a, collider_b, sensor, touching, approach, blow };
        let surface = Surface {
            friction: input.f64()?,
            restitution: input.f64()?,
            compliance: input.f64()?,
            friction_compliance: input.f64()?,
            torsion_radius: input.f64()?,
            rolling_radius: input.f64()?,
            velocity: input.vec3()?,
            enabled: flags & 4 != 0,
        };
        let points = input.list(244, point)?;
        let rows = input.list(12, Reader::row)?;
        Ok(SavedContact { contact, surface, manifold: Manifold { points }, rows })
    })
}

fn turns_number(turns: Turns) -> u32 {
    match turns {
        Turns::A => 0,
        Turns::B => 1,
        Turns::Neither => 2,
    }
}

fn rides_number(rides: Rides) -> u32 {
    match rides {
        Rides::A => 0,
        Rides::B => 1,
        Rides::Between => 2,
    }
}

fn point(input: &mut Reader<'_>) -> Result<ManifoldPoint, SnapshotError> {
    let (key, age, separation) = (input.u32()?, input.u32()?, input.sound()?);
    let load = input.sound()?;
    let (seen, resting_fraction, flags) = (input.sound()?, input.sound()?, input.u32()?);
    if flags > 0b11111 || flags & 3 == 3 || flags >> 2 & 3 == 3 {
        return Err(SnapshotError::Malformed("it has a point in a state that cannot be"));
    }
    let mut vectors = [DVec3::ZERO; 8];
    for v in &mut vectors {
        *v = input.sound_vec3()?;
    }
    let [normal, normal_a, normal_b, tangent, arm_a, arm_b, anchor_a, anchor_b] = vectors;
    let rides = [Rides::A, Rides::B, Rides::Between][(flags >> 2 & 3) as usize];
    let turns = [Turns::A, Turns::B, Turns::Neither][(flags & 3) as usize];
    Ok(ManifoldPoint {
        key,
        normal,
        separation,
        arm_a,
        arm_b,
        tangent,
        anchor_a,
        anchor_b,
        normal_a,
        normal_b,
        seen,
        carried: flags & 16 != 0,
        turns,
        rides,
        answered: false,
        load,
        resting_fraction,
        impacting: 0.0,
        age,
    })
}

/// Makes the world's contacts those of the snapshot.
pub(super) fn apply(saved: &[SavedContact], world: &mut World) {
    let present: Vec<Entity> = world.query_mut::<Entity>().with::<&Contact>().into_iter().collect();
    for entity in present {
        let _ = world.despawn(entity);
    }
    for s in saved {
        world.spawn((s.contact, s.manifold.clone(), s.surface, RowImpulses(s.rows.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_whose_rows_have_no_keys_is_none() {
        let unit = DVec3::Z;
        let mut bytes = Writer(Vec::new());
        (0..2).for_each(|_| bytes.u32(1));
        (0..4).for_each(|_| bytes.f64(0.0));
        bytes.u32(0);
        (0..8).for_each(|_| bytes.vec3(unit));
        let good = point(&mut Reader(&bytes.0)).unwrap();
        assert!(is_sound(&good));
        for bad in [
            ManifoldPoint { key: 1 << 29, ..good },
            ManifoldPoint { key: u32::MAX, ..good },
            ManifoldPoint { age: u32::MAX, ..good },
            ManifoldPoint { normal: DVec3::ZERO, ..good },
            ManifoldPoint { carried: true, normal_b: DVec3::X * 2.0, ..good },
        ] {
            assert!(!is_sound(&bad), "{bad:?}");
        }
        bytes.0[40] = 3;
        assert!(point(&mut Reader(&bytes.0)).is_err(), "there is no fourth way to turn");
    }
}
