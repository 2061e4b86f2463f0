//! Queries against closed forms: support functions tell where a shape that moves along a normal touches.

use crate::contact_support::*;
use crate::kinds::kinds;
use glam::{DQuat, DVec3};
use hecs::World;
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::geometry::query::cast_shape;
use turnbuckle::geometry::{Placed, Shape, ShapeHandle};
use turnbuckle::systems::queries::QueryFilter;
use turnbuckle::testing::RandomPoses;

/// A shape moved along the normal of a face over that face, or of a rounding, meets it after the distance between the supporting
/// planes, with that normal, at a point in that plane.
#[test]
fn shapes_that_are_cast_meet_where_their_supports_say() {
    let (all, mut random) = (kinds(), RandomPoses::new(8));
    let mut wrong = Vec::new();
    for x in &all {
        for y in &all {
            for n in &x.faces {
                let m = y.faces.first().or(y.others.first()).expect("a direction");
                let world = random.rotation();
                let turn = DQuat::from_axis_angle(world * *n, random.number())
                    * DQuat::from_rotation_arc(*m, world * -*n);
                let (at, out, gap) = (random.vector(), world * *n, 0.7);
                let plane = at + world * x.support(*n).1;
                let b = plane - turn * y.support(*m).1 + out * gap;
                let a = Placed { shape: &x.shape, position: at, rotation: world };
                for start in [gap, 0.0] {
                    let b = Placed { shape: &y.shape, position: b + out * (start - gap), rotation: turn };
                    let found = cast_shape(&a, &b, -out * 1.5);
                    // Rounding on shapes of half a metre, and 1e-9 that the narrow phase is held to.
                    let good = found.is_some_and(|f| {
                        (f.distance - start).abs() < 2e-9
                            && (f.normal - out).length() < 1e-6
                            && out.dot(f.point - plane).abs() < 1e-6
                    });
                    if !good {
                        wrong.push(format!("{} on {} from {start}: {found:?}, normal {out}", y.name, x.name));
                    }
                    let away = cast_shape(&a, &b, out * 1.5);
                    if away.is_some() {
                        wrong.push(format!("{} away from {} from {start}: {away:?}", y.name, x.name));
                    }
                }
                let inside = Placed { shape: &y.shape, position: b - out * (gap + 0.005), rotation: turn };
                let found = cast_shape(&a, &inside, out);
                if !found.is_some_and(|f| f.distance == 0.0 && (f.normal - out).length() < 0.02) {
                    wrong.push(format!("{} in {}: {found:?}, normal {out}", y.name, x.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Balls, rays and points in closed form; filters; before the first step and after a teleport.
#[test]
fn queries_see_the_world_as_it_is() {
    let (mut world, mut physics) = (World::new(), Physics::new());
    let every = CollisionFilter::default();
    let ball = ShapeHandle::sphere(0.5);
    let cube = ShapeHandle::cuboid(DVec3::splat(0.5));
    floor(&mut world, 0.5);
    let one = spawn(&mut world, &ball, 1000.0, 0.5, DVec3::new(0.0, 0.0, 3.0));
    let two = spawn_fixed(&mut world, &cube, 0.5, DVec3::new(4.0, 0.0, 3.0), DQuat::IDENTITY);
    physics.refresh(&mut world);
    assert_eq!(physics.report().step, 0, "no time has passed");
    let small = ShapeHandle::sphere(0.1);
    let at = |p: DVec3| Placed { shape: &small, position: p, rotation: DQuat::IDENTITY };
    // Passing 0.3 m beside the middle of a ball of 0.5 m with one of 0.1 m: they touch where the centres are 0.6 m apart.
    let hits = physics.cast_shape(&world, &at(DVec3::new(-3.0, 0.3, 3.0)), DVec3::X * 10.0, every);
    assert_eq!(hits.iter().map(|h| h.body).collect::<Vec<_>>(), [one, two]);
    let normal = DVec3::new(-(0.36f64 - 0.09).sqrt(), 0.3, 0.0) / 0.6;
    assert!(
        (hits[0].distance - (3.0 + 0.6 * normal.x)).abs() < 1e-9 && (hits[0].normal - normal).length() < 1e-8
    );
    assert!((hits[0].point - (DVec3::Z * 3.0 + normal * 0.5)).length() < 1e-8);
    assert!((hits[1].distance - 6.4).abs() < 1e-9 && (hits[1].normal + DVec3::X).length() < 1e-9);
    assert!((hits[1].point - DVec3::new(3.5, 0.3, 3.0)).length() < 1e-8);
    let ray = physics.cast_ray(&world, DVec3::new(0.3, 0.0, 9.0), -DVec3::Z, 20.0, every).expect("the ball");
    assert!(
        (ray.point - DVec3::new(0.3, 0.0, 3.4)).length() < 1e-12
            && (ray.normal - DVec3::new(0.6, 0.0, 0.8)).length() < 1e-12
    );
    let inside = physics.cast_ray(&world, DVec3::new(0.0, 0.2, 3.0), DVec3::X, 1.0, every).expect("the ball");
    assert!(inside.distance == 0.0 && (inside.normal - DVec3::Y).length() < 1e-9);
    let near = physics.near_point(&world, DVec3::new(4.0, 0.0, 3.8), 0.5, every)[0];
    assert!(near.body == two && (near.distance - 0.3).abs() < 1e-12);
    assert!((near.point - DVec3::new(4.0, 0.0, 3.5)).length() < 1e-12 && near.normal == DVec3::Z);
    let deep = physics.overlapping(&world, &at(DVec3::new(4.0, 0.0, 3.55)), every)[0];
    assert!(
        deep.body == two
            && deep.normal == DVec3::Z
            && (deep.point - DVec3::new(4.0, 0.0, 3.5)).length() < 1e-12
    );
    // Who asks, and what is not of interest, is passed over.
    let along = |filter: QueryFilter<'_>| {
        let hits = physics.cast_ray_all(&world, DVec3::new(-3.0, 0.0, 3.0), DVec3::X, 20.0, filter);
        hits.iter().map(|h| h.body).collect::<Vec<_>>()
    };
    assert_eq!(along(QueryFilter::default()), [one, two]);
    assert_eq!(along(QueryFilter { exclude: &[one], ..QueryFilter::default() }), [two]);
    let only = |body: hecs::Entity, _: u32| body == one;
    assert_eq!(along(QueryFilter { predicate: Some(&only), ..QueryFilter::default() }), [one]);
    // Teleported, despawned, spawned.
    physics.step(&mut world, 1.0 / 60.0);
    world.get::<&mut Position>(one).expect("a body").0 = DVec3::new(0.0, 50.0, 3.0);
    world.despawn(two).expect("the cube");
    let hull = Shape::ConvexHull { points: crate::kinds::corners(DVec3::splat(0.5)) };
    let hull = ShapeHandle::new(hull).expect("a box");
    let three = spawn_fixed(&mut world, &hull, 0.5, DVec3::new(0.0, -50.0, 3.0), DQuat::IDENTITY);
    physics.refresh(&mut world);
    let hits = physics.cast_ray_all(&world, DVec3::new(0.0, -60.0, 3.0), DVec3::Y, 200.0, every);
    assert_eq!(hits.iter().map(|h| h.body).collect::<Vec<_>>(), [three, one]);
    assert!(physics.cast_ray(&world, DVec3::new(-9.0, 0.0, 3.0), DVec3::X, 20.0, every).is_none());
}

/// A refresh between steps changes no bit of the motion.
#[test]
fn refreshing_changes_nothing() {
    let run = |refresh: bool| {
        let (mut world, mut physics) = (World::new(), Physics::new());
        floor(&mut world, 0.5);
        let cube = ShapeHandle::cuboid(DVec3::new(0.3, 0.25, 0.2));
        let place = |i: i32| DVec3::new(0.03 * f64::from(i), 0.0, 0.3 + 0.5 * f64::from(i));
        let bodies: Vec<_> = (0..8).map(|i| spawn(&mut world, &cube, 500.0, 0.5, place(i))).collect();
        for _ in 0..120 {
            if refresh {
                physics.refresh(&mut world);
            }
            physics.step(&mut world, 1.0 / 60.0);
        }
        bodies.iter().map(|b| pose(&world, *b)).collect::<Vec<_>>()
    };
    assert_eq!(run(true), run(false));
}
