//! Contacts in a snapshot. They are the engine's own entities, so they are written whole and spawned again.

use super::{Reader, SnapshotError, Writer};
use crate::components::*;
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
    let name = |c: &Contact| (c.a.to_bits(), c.collider_a, c.b.to_bits(), c.collider_b);
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
            out.f64(point.approach);
            out.f64(point.load);
            out.f64(point.seen);
            out.f64(point.calm);
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

/// Reads what [`write`] wrote.
pub(super) fn read(input: &mut Reader<'_>) -> Result<Vec<SavedContact>, SnapshotError> {
    input.list(100, |input| {
        let (a, b) = (input.entity()?, input.entity()?);
        let (collider_a, collider_b, flags) = (input.u32()?, input.u32()?, input.u32()?);
        let (approach, blow) = (input.f64()?, input.f64()?);
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
    let (key, age, separation) = (input.u32()?, input.u32()?, input.f64()?);
    let (approach, load) = (input.f64()?, input.f64()?);
    let (seen, calm, flags) = (input.f64()?, input.f64()?, input.u32()?);
    let mut vectors = [DVec3::ZERO; 8];
    for v in &mut vectors {
        *v = input.vec3()?;
    }
    let [normal, normal_a, normal_b, tangent, arm_a, arm_b, anchor_a, anchor_b] = vectors;
    let rides = [Rides::A, Rides::B, Rides::Between][(flags >> 2 & 3).min(2) as usize];
    let turns = [Turns::A, Turns::B, Turns::Neither][(flags & 3).min(2) as usize];
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
        approach,
        load,
        calm,
        struck: 0.0,
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
