//! Light chains and nets under heavy loads, built by hand.

#![allow(dead_code)] // each program uses its own part

use glam::{DMat3, DQuat, DVec3};
use hecs::{Entity, World};
use turnbuckle::Physics;
use turnbuckle::components::*;
use turnbuckle::constraint::*;

/// A world with something heavy in it.
pub struct Loaded {
    pub world: World,
    pub physics: Physics,
    pub load: Entity,
}

impl Loaded {
    pub fn new() -> Loaded {
        let mut world = World::new();
        let load = world.spawn(RigidBody::fixed());
        Loaded { world, physics: Physics::new(), load }
    }

    pub fn position(&self, body: Entity) -> DVec3 {
        self.world.get::<&Position>(body).map_or(DVec3::NAN, |p| p.0)
    }

    fn pose(&self, body: Entity) -> Pose {
        let rotation = self.world.get::<&Rotation>(body).map_or(DQuat::IDENTITY, |r| r.0);
        Pose { position: self.position(body), rotation }
    }

    /// A ball joint at a world point.
    pub fn ball(&mut self, a: Entity, b: Entity, at: DVec3) -> Entity {
        let joint = Ball::at(a, &self.pose(a), b, &self.pose(b), at);
        self.world.spawn((joint,))
    }

    /// A rod from `p` to `q`, its x axis along it.
    pub fn rod(&mut self, p: DVec3, q: DVec3, mass: f64, radius: f64) -> Entity {
        let length = p.distance(q);
        let across = mass * (length * length / 12.0 + radius * radius / 4.0);
        let inertia = DMat3::from_diagonal(DVec3::new(0.5 * mass * radius * radius, across, across));
        let turn = DQuat::from_rotation_arc(DVec3::X, (q - p).normalize());
        self.world.spawn(RigidBody::dynamic(mass, inertia).at(0.5 * (p + q)).turned(turn))
    }

    pub fn slab(&mut self, centre: DVec3, size: DVec3, mass: f64) -> Entity {
        let s = size * size;
        let inertia = DMat3::from_diagonal(DVec3::new(s.y + s.z, s.x + s.z, s.x + s.y) * (mass / 12.0));
        self.world.spawn(RigidBody::dynamic(mass, inertia).at(centre))
    }
}

/// `chain_load`: rods from the origin, 30° below the horizontal, a cube at the end.
pub fn chain(links: usize, link_mass: f64, load_mass: f64) -> Loaded {
    let mut scene = Loaded::new();
    let ground = scene.load;
    let (length, down) = (0.2, DVec3::new(30f64.to_radians().cos(), 0.0, -0.5));
    let mut above = ground;
    for i in 0..links {
        let (p, q) = (down * (length * i as f64), down * (length * (i + 1) as f64));
        let rod = scene.rod(p, q, link_mass, 0.03);
        scene.ball(above, rod, p);
        above = rod;
    }
    let end = down * (length * links as f64);
    scene.load = scene.slab(end - DVec3::Z * 0.25, DVec3::splat(0.5), load_mass);
    let load = scene.load;
    scene.ball(above, load, end);
    scene
}

/// A chain of 0.2 m rods, hanging straight with its load struck to `velocity`.
pub fn struck(links: usize, link_mass: f64, load_mass: f64, velocity: DVec3) -> Loaded {
    let scene = hanging(links, link_mass, load_mass, 0.0);
    if let Ok(mut v) = scene.world.get::<&mut LinearVelocity>(scene.load) {
        v.0 = velocity;
    }
    scene
}

/// A chain of 0.2 m rods from the origin, folded in zigzags so that its load can fall by `slack` before it snaps taut.
pub fn hanging(links: usize, link_mass: f64, load_mass: f64, slack: f64) -> Loaded {
    let mut scene = Loaded::new();
    let (length, mut above, mut end) = (0.2, scene.load, DVec3::ZERO);
    let down = 1.0 - slack / (length * links as f64);
    let across = (1.0 - down * down).sqrt();
    for i in 0..links {
        let side = if i % 2 == 0 { across } else { -across };
        let next = end + DVec3::new(side, 0.0, -down) * length;
        let rod = scene.rod(end, next, link_mass, 0.03);
        scene.ball(above, rod, end);
        (above, end) = (rod, next);
    }
    scene.load = scene.slab(end - DVec3::Z * 0.25, DVec3::splat(0.5), load_mass);
    let load = scene.load;
    scene.ball(above, load, end);
    scene
}

/// `net_load`: a # of four cables with a slab hung at the crossings.
pub fn net_load() -> Loaded {
    let mut scene = Loaded::new();
    let ground = scene.load;
    let half = 1.9;
    scene.load = scene.slab(DVec3::new(0.0, 0.0, -0.25), DVec3::new(3.8, 3.8, 0.5), 8000.0);
    let load = scene.load;
    // Profile of a cable: node i of 0..=48 at (along, height).
    let dip = (2.0f64 * 2.0 - half * half).sqrt();
    let node = |i: usize| -> (f64, f64) {
        let (c, s) = (30f64.to_radians().cos(), 0.5);
        match i {
            0..=16 => (-half - 0.25 * c * (16 - i) as f64, 0.25 * s * (16 - i) as f64),
            17..=32 => {
                let t = (i - 16) as f64 / 8.0;
                (-half + half * t, -dip * (1.0 - (t - 1.0).abs()))
            }
            _ => (half + 0.25 * c * (i - 32) as f64, 0.25 * s * (i - 32) as f64),
        }
    };
    let mut cables = Vec::new();
    for (along, across, side) in [
        (DVec3::X, DVec3::Y, -half),
        (DVec3::X, DVec3::Y, half),
        (DVec3::Y, DVec3::X, -half),
        (DVec3::Y, DVec3::X, half),
    ] {
        let at = |i: usize| along * node(i).0 + across * side + DVec3::Z * node(i).1;
        let mut rods = Vec::new();
        let mut before = ground;
        for i in 0..48 {
            let rod = scene.rod(at(i), at(i + 1), 0.2, 0.03);
            scene.ball(before, rod, at(i));
            rods.push(rod);
            before = rod;
        }
        scene.ball(before, ground, at(48));
        cables.push(rods);
    }
    for (x_cable, y) in [(0, -half), (1, half)] {
        for (y_cable, x) in [(2, -half), (3, half)] {
            let at = DVec3::new(x, y, 0.0);
            let on_x = cables[x_cable][if x < 0.0 { 15 } else { 31 }];
            let on_y = cables[y_cable][if y < 0.0 { 15 } else { 31 }];
            scene.ball(on_x, on_y, at);
            scene.ball(on_x, load, at);
        }
    }
    scene
}

/// A net of 2 × 6 crossing cables of 50 links with 6-row joints, pinned all around, a slab hung in its middle.
pub fn cable_net(load_mass: f64) -> Loaded {
    let mut scene = Loaded::new();
    let ground = scene.load;
    let rod = Rod { youngs_modulus: 2e9, shear_modulus: 8e8, radius: 0.01, length: 0.25, damping_time: 0.02 };
    let place = |s: f64| {
        if s.abs() <= 1.0 { s } else { s.signum() * (1.0 + (s.abs() - 1.0) * 30f64.to_radians().cos()) }
    };
    let height = |s: f64| (s.abs() - 1.0).max(0.0) * 0.5;
    let lines = [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0];
    let mut cables: Vec<Vec<Entity>> = Vec::new();
    for (along, across) in [(DVec3::X, DVec3::Y), (DVec3::Y, DVec3::X)] {
        for side in lines {
            let at = |i: usize| {
                let s = 0.25 * (i as f64 - 25.0);
                along * place(s) + across * place(side) + DVec3::Z * (height(s) + height(side))
            };
            let mut rods: Vec<Entity> = Vec::new();
            for i in 0..50 {
                let link = scene.rod(at(i), at(i + 1), 0.2, 0.01);
                match rods.last() {
                    None => {
                        scene.ball(ground, link, at(0));
                    }
                    Some(&before) => {
                        let (pa, pb) = (scene.pose(before), scene.pose(link));
                        let frames = Frames::in_world(&pa, &pb, at(i), at(i + 1) - at(i));
                        scene.world.spawn((Cable::new(before, link, frames, &rod),));
                    }
                }
                rods.push(link);
            }
            scene.ball(rods[49], ground, at(50));
            cables.push(rods);
        }
    }
    let end_node = |line: f64| (25.0 + line * 4.0) as usize;
    for (k, &y) in lines.iter().enumerate() {
        for (j, &x) in lines.iter().enumerate() {
            let at = DVec3::new(place(x), place(y), height(x) + height(y));
            scene.ball(cables[k][end_node(x)], cables[6 + j][end_node(y)], at);
        }
    }
    scene.load = scene.slab(DVec3::new(0.0, 0.0, -0.25), DVec3::new(2.0, 2.0, 0.5), load_mass);
    let load = scene.load;
    for (k, y) in [(2, -1.0), (3, 1.0)] {
        for x in [-1.0, 1.0] {
            scene.ball(cables[k][end_node(x)], load, DVec3::new(x, y, 0.0));
        }
    }
    scene
}

/// What a run showed.
pub struct Outcome {
    /// Position of the load after each frame.
    pub path: Vec<DVec3>,
    /// Largest opening of a joint (m).
    pub separation: f64,
    /// Largest total energy over that at the start, as a share of load × g × `drop`.
    pub gain: f64,
    /// Median time of a frame (ms).
    pub median_ms: f64,
    /// Steps whose solve did not reach its tolerance.
    pub unconverged: usize,
}

/// Runs a scene for some seconds of 60 frames each.
pub fn run(mut scene: Loaded, seconds: f64, substeps: u32, drop: f64) -> Outcome {
    scene.physics.settings.substeps = substeps;
    let mass = scene.world.get::<&Mass>(scene.load).map_or(1.0, |m| m.0);
    let mut out = Outcome { path: Vec::new(), separation: 0.0, gain: 0.0, median_ms: 0.0, unconverged: 0 };
    let start = energy(&scene.world);
    let mut times = Vec::new();
    for _ in 0..(60.0 * seconds).round() as usize {
        let report = scene.physics.step(&mut scene.world, 1.0 / 60.0);
        out.separation = out.separation.max(report.joint_error_max);
        out.unconverged += usize::from(!report.converged);
        let energy = report.kinetic + report.potential;
        out.gain = out.gain.max((energy - start) / (mass * 9.81 * drop));
        times.push(report.step_ms);
        out.path.push(scene.world.get::<&Position>(scene.load).map_or(DVec3::NAN, |p| p.0));
    }
    times.sort_by(f64::total_cmp);
    out.median_ms = times[times.len() / 2];
    out
}

/// Energy of bodies that do not turn.
fn energy(world: &World) -> f64 {
    let mut query = world.query::<(&Mass, &Position, &LinearVelocity, &BodyKind)>();
    let moving = query.iter().filter(|(_, _, _, k)| **k == BodyKind::Dynamic);
    moving.map(|(m, x, v, _)| m.0 * (9.81 * x.0.z + 0.5 * v.0.length_squared())).sum()
}

/// Largest distance between two paths (m).
pub fn path_error(a: &[DVec3], b: &[DVec3]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(p, q)| p.distance(*q))
        .fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) })
}
