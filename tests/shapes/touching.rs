//! Shapes that touch exactly: depth 0, and a normal that parts them.

use crate::kinds::{Kind, kinds};
use glam::{DQuat, DVec3};
use turnbuckle::geometry::{ContactPoint, NarrowScratch, Placed, Shape, ShapeHandle, collide};
use turnbuckle::testing::RandomPoses;

/// Wanted. Rounding of poses is 1e-15 on shapes of half a metre.
const DEPTH: f64 = 1e-9;
/// Points of several parts are reduced to four, and a ten-thousandth of their patch counts as the same depth there (m).
const MERGED: f64 = 1e-5;
/// Where no face takes part, the depth follows from a direction that was searched for: corners and rims against round rims, where
/// GJK stops short now and then. (m, and a share of how far apart they are.)
const EDGES: (f64, f64) = (3e-7, 0.5);
/// Points that are further apart say what may be touched next.
const TOUCHING: f64 = 1e-11;

fn touch(a: &Placed, b: &Placed) -> Vec<ContactPoint> {
    let mut out = Vec::new();
    collide(a, b, 0.01, &mut NarrowScratch::default(), &mut out);
    out
}

/// Turns −z (after `twist` about it) to face a direction.
fn facing(from: DVec3, to: DVec3, twist: f64) -> DQuat {
    DQuat::from_axis_angle(to, twist) * DQuat::from_rotation_arc(from, to)
}

/// Width of the gap between two placed shapes along a direction, by their support functions.
fn gap(a: (&Kind, DVec3, DQuat), b: (&Kind, DVec3, DQuat), n: DVec3) -> f64 {
    let far = |(k, _, q): (&Kind, DVec3, DQuat), n: DVec3| k.support(q.inverse() * n).0;
    n.dot(b.1 - a.1) - far(a, n) - far(b, -n)
}

struct Fault {
    pair: String,
    what: String,
}

/// Tries two shapes against each other, `apart` metres from touching, along the directions of both.
fn try_pair(x: &Kind, y: &Kind, apart: f64, random: &mut RandomPoses, faults: &mut Vec<Fault>) -> usize {
    let directions = |k: &Kind| {
        let faces = k.faces.iter().map(|n| (*n, true));
        faces.chain(k.others.iter().map(|n| (*n, false))).collect::<Vec<_>>()
    };
    let mut tried = 0;
    for (nx, face_x) in directions(x) {
        for (ny, face_y) in directions(y) {
            for pose in 0..3 {
                let twist = if pose == 0 { 0.0 } else { random.number() };
                let world = if pose < 2 { DQuat::IDENTITY } else { random.rotation() };
                let qy = world * facing(ny, -nx, twist);
                let (n, px) = (world * nx, random.vector());
                let far = world * x.support(nx).1 - qy * y.support(ny).1;
                // Over a face the other shape may stand anywhere.
                let aside = random.vector() * 0.05;
                let aside = if face_x || face_y { aside - n * n.dot(aside) } else { DVec3::ZERO };
                let py = px + far + aside + n * apart;
                let a = Placed { shape: &x.shape, position: px, rotation: world };
                let b = Placed { shape: &y.shape, position: py, rotation: qy };
                let points = touch(&a, &b);
                tried += 1;
                let nearest = points.iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
                let near = |p: &&ContactPoint| p.separation < apart + TOUCHING;
                let normals = points.iter().filter(near).map(|p| gap((x, px, world), (y, py, qy), p.normal));
                let worst = normals.fold(f64::INFINITY, f64::min);
                // Points of several parts count as equally deep within a share of their patch.
                let merged = if x.parts > 1 || y.parts > 1 { MERGED } else { 0.0 };
                let wrong = if face_x || face_y {
                    (nearest - apart).abs() > DEPTH + merged
                } else {
                    // Along another direction corners and edges may be less deep; and corners that miss each other have no point.
                    let slack = EDGES.0 + EDGES.1 * apart.abs();
                    let missing = points.is_empty() && apart <= 0.0;
                    missing || nearest < apart - slack || (apart <= 0.0 && nearest > slack)
                };
                if wrong || worst < apart.min(0.0) - EDGES.0 - EDGES.1 * apart.abs() {
                    let pair = format!("{} on {}", y.name, x.name);
                    let what = format!(
                        "along {nx} and {ny}, pose {pose}: separation {nearest:.3e}, the normal leaves {worst:.3e}"
                    );
                    faults.push(Fault { pair, what });
                }
            }
        }
    }
    tried
}

fn tell(faults: &[Fault], tried: usize) {
    let mut pairs: Vec<_> = faults.iter().map(|f| &f.pair).collect();
    pairs.dedup();
    for pair in &pairs {
        let of: Vec<_> = faults.iter().filter(|f| f.pair == **pair).collect();
        println!("{pair}: {} faults, first {}", of.len(), of[0].what);
    }
    assert!(faults.is_empty(), "{} of {tried} are wrong", faults.len());
}

#[test]
fn what_touches_exactly_has_no_depth() {
    let (all, mut random) = (kinds(), RandomPoses::new(3));
    let (mut faults, mut tried) = (Vec::new(), 0);
    for x in &all {
        for y in &all {
            tried += try_pair(x, y, 0.0, &mut random, &mut faults);
        }
    }
    tell(&faults, tried);
}

/// A hair apart, or a hair deep: resting bodies are both.
#[test]
fn what_nearly_touches_is_as_far_apart_as_it_is() {
    let (all, mut random) = (kinds(), RandomPoses::new(4));
    let (mut faults, mut tried) = (Vec::new(), 0);
    for apart in [1e-5, 1e-7, 1e-10, -1e-10, -1e-7, -1e-5] {
        for x in &all {
            for y in &all {
                tried += try_pair(x, y, apart, &mut random, &mut faults);
            }
        }
    }
    tell(&faults, tried);
}

/// Half-spaces, flat height fields and flat meshes carry what stands on them at depth 0.
#[test]
fn what_stands_on_flat_ground_has_no_depth() {
    let side = |i: usize| 0.5 * i as f64 - 2.0;
    let vertices = (0..81).map(|i| DVec3::new(side(i / 9), 0.0, side(i % 9))).collect();
    let cells = (0..64u32).map(|c| c / 8 * 9 + c % 8);
    let indices = cells.flat_map(|v| [[v, v + 1, v + 9], [v + 1, v + 10, v + 9]]).collect();
    let grounds = [
        ("half-space", Shape::HalfSpace { normal: DVec3::Y }),
        ("mesh", Shape::TriMesh { vertices, indices }),
        (
            "height field",
            Shape::HeightField { size: [9, 9], heights: vec![0.0; 81], scale: DVec3::new(4.0, 1.0, 4.0) },
        ),
    ];
    let (mut random, mut faults, mut tried) = (RandomPoses::new(5), Vec::new(), 0);
    for (name, ground) in grounds {
        let ground = ShapeHandle::new(ground).expect("a valid shape");
        for kind in kinds() {
            for (i, n) in kind.faces.iter().chain(&kind.others).flat_map(|n| [*n; 3]).enumerate() {
                let world = if i % 3 == 0 { DQuat::IDENTITY } else { random.rotation() };
                let up = world * DVec3::Y;
                let turn = facing(n, -up, random.number());
                let aside = random.vector();
                // On the lines of the grid, too.
                let aside = if i % 3 == 1 { DVec3::ZERO } else { aside - up * up.dot(aside) };
                let at = random.vector();
                let a = Placed { shape: &ground, position: at, rotation: world };
                let place = at - turn * kind.support(n).1 + aside;
                let points = touch(&a, &Placed { shape: &kind.shape, position: place, rotation: turn });
                tried += 1;
                let nearest = points.iter().map(|p| p.separation).fold(f64::INFINITY, f64::min);
                let lean = points
                    .iter()
                    .filter(|p| p.separation < TOUCHING)
                    .map(|p| p.normal.distance(up))
                    .fold(0.0, f64::max);
                if nearest.abs() > DEPTH || lean > DEPTH {
                    let pair = format!("{} on {name}", kind.name);
                    faults.push(Fault {
                        pair,
                        what: format!("along {n}: separation {nearest:.3e}, normal off by {lean:.1e}"),
                    });
                }
            }
        }
    }
    tell(&faults, tried);
}
