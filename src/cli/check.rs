//! `turnbuckle check`: what a scene is made of.

use super::{Failure, SceneArgs};
use clap::Args;
use hecs::Entity;
use std::collections::BTreeMap;
use turnbuckle::components::{BodyKind, Contact, Manifold, Name};
use turnbuckle::scene::plan::{JointKind, JointPlan, ScenePlan, ScriptPlan};
use turnbuckle::scene::{self, Scene};

/// Options of `check`.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    scene: SceneArgs,
}

/// Loads a scene and explains it.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let path = args.scene.path();
    let plan = scene::plan(&path, &args.scene.options()?)?;
    println!("{} is a valid scene.\n", path.display());
    println!("{}: {}", plan.name, plan.about);
    bodies(&plan);
    joints(&plan);
    partitions(&plan);
    rest(&plan);
    for warning in &plan.warnings {
        println!("  warning      {}", warning.explained().replace('\n', "\n               "));
    }
    first_step(plan);
    Ok(())
}

fn bodies(plan: &ScenePlan) {
    let count = |kind| plan.bodies.iter().filter(|b| b.kind == kind).count();
    println!(
        "  bodies       {} dynamic, {} kinematic, {} fixed",
        count(BodyKind::Dynamic),
        count(BodyKind::Kinematic),
        count(BodyKind::Fixed)
    );
    let masses = plan.bodies.iter().filter(|b| b.kind == BodyKind::Dynamic).map(|b| b.mass);
    let (least, most) = masses.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
    if most > 0.0 {
        let total = plan.mass();
        println!(
            "  mass         {total:.6} kg in all, from {least:.6} to {most:.6} kg: ratio {:.0} : 1",
            most / least
        );
    }
}

fn kind_name(kind: &JointKind) -> &'static str {
    match kind {
        JointKind::Fixed => "fixed",
        JointKind::Revolute => "revolute",
        JointKind::Prismatic => "prismatic",
        JointKind::Cylindrical => "cylindrical",
        JointKind::Ball => "ball",
        JointKind::Universal => "universal",
        JointKind::Planar => "planar",
        JointKind::PointOnLine => "point-on-line",
        JointKind::Distance(_) => "distance",
        JointKind::Rope(_) => "rope",
        JointKind::Spring { .. } => "spring",
        JointKind::Cable(_) => "cable",
        JointKind::Gear { .. } => "gear",
        JointKind::Rack { .. } => "rack",
        JointKind::Wheel { .. } => "wheel",
        JointKind::Pulley { .. } => "pulley rope",
    }
}

fn joints(plan: &ScenePlan) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for joint in &plan.joints {
        *kinds.entry(kind_name(&joint.kind)).or_default() += 1;
    }
    let list: Vec<String> = kinds.iter().map(|(k, n)| format!("{n} {k}")).collect();
    let driven = |number: usize| {
        plan.scripts.iter().any(|s| matches!(s, ScriptPlan::Drive { joint, .. } if *joint as usize == number))
    };
    // A winch is a motor: one that hauls, or that a script may let haul.
    let is_motor = |(number, joint): &(usize, &JointPlan)| match joint.kind {
        JointKind::Pulley { speed, .. } => speed != 0.0 || driven(*number),
        _ => joint.motors.iter().any(Option::is_some),
    };
    let motors = plan.joints.iter().enumerate().filter(is_motor).count();
    let list = if list.is_empty() { "none".to_string() } else { list.join(", ") };
    println!(
        "  joints       {list}{}",
        if motors > 0 { format!("; {motors} with motors") } else { String::new() }
    );
}

fn partitions(plan: &ScenePlan) {
    if plan.partitions.is_empty() {
        return;
    }
    let mut sizes = vec![0usize; plan.partitions.len()];
    for p in plan.bodies.iter().filter_map(|b| b.partition) {
        sizes[p as usize] += 1;
    }
    let (least, most) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
    println!("  partitions   {} by name, of {least} to {most} bodies", sizes.len());
}

fn rest(plan: &ScenePlan) {
    for (name, value) in &plan.parameters {
        println!("  parameter    {name} = {value}   (--set {name}=..)");
    }
    for script in &plan.scripts {
        match script {
            ScriptPlan::Event { time, action } => println!("  script       after {time} s: {action:?}"),
            ScriptPlan::Move { body, .. } => {
                println!("  script       {} follows a motion", plan.bodies[*body as usize].name)
            }
            ScriptPlan::Drive { joint, .. } => {
                println!("  script       the motor of {} is driven", plan.joints[*joint as usize].name)
            }
        }
    }
    for e in &plan.expectations {
        println!("  promise      {}", e.sentence());
    }
}

/// One step, to say how large the problem is.
fn first_step(plan: ScenePlan) {
    let mut scene = Scene::new(plan);
    let dt = scene.dt();
    let steps = scene.steps(dt);
    let r = scene.physics.step(&mut scene.world, dt).clone();
    println!(
        "  first step   {} rows in {} island(s), {} contacts, joints open by at most {}",
        r.rows,
        r.islands,
        r.contacts,
        super::table::meters(r.joint_error_max)
    );
    if let Some((depth, a, b)) = deepest(&scene) {
        println!("  overlap      {a} and {b} start {} inside each other", super::table::meters(depth));
    }
    for trouble in r.troubles.iter().take(5) {
        println!("  trouble      {trouble}");
    }
    println!("  length       {steps} steps of {:.3} ms", 1e3 * dt);
}

/// The deepest overlap at the start that joints do not explain, and whose it is.
fn deepest(scene: &Scene) -> Option<(f64, String, String)> {
    let mut worst: Option<(f64, Entity, Entity)> = None;
    for (contact, manifold) in scene.world.query::<(&Contact, &Manifold)>().iter() {
        let depth = manifold.points.iter().map(|p| -p.separation).fold(0.0, f64::max);
        let of = |e: Entity| scene.bodies.iter().position(|b| *b == e).map(|i| i as u32);
        let (a, b) = (of(contact.a), of(contact.b));
        let tied = scene.plan.joints.iter().any(|j| {
            let pair = (j.a.body, j.b.body);
            pair == (a, b) || pair == (b, a)
        });
        // A hundredth of a millimetre is what one step of falling together makes.
        if depth > 1e-5 && !tied && worst.is_none_or(|w| depth > w.0) {
            worst = Some((depth, contact.a, contact.b));
        }
    }
    let name = |e: Entity| scene.world.get::<&Name>(e).map_or(format!("{e:?}"), |n| n.0.clone());
    worst.map(|(depth, a, b)| (depth, name(a), name(b)))
}
