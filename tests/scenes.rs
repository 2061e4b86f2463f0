//! Every scene keeps its promises, at a length that fits the tests (`test_seconds`, or the whole scene).
//! `turnbuckle run SCENE --expect` checks the full length.

use turnbuckle::components::BodyKind;
use turnbuckle::scene::{self, Judge, LoadOptions, Scene, ScenePlan};

fn path(name: &str) -> String {
    format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"))
}

fn plan(name: &str) -> ScenePlan {
    scene::plan(path(name), &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a scene for its test length; returns the promises it broke and the steps it left unsettled.
fn run(name: &str) -> (Vec<String>, u32) {
    let mut scene = Scene::new(plan(name));
    let dt = scene.dt();
    let seconds = scene.plan.settings.test_seconds.or(scene.plan.settings.seconds).unwrap_or(10.0);
    let steps = (seconds / dt).round() as u64;
    let mut judge = Judge::new(&scene);
    let (mut unsettled, mut ms) = (0, 0.0);
    for n in 1..=steps {
        let report = scene.physics.step(&mut scene.world, dt).clone();
        judge.observe(&scene, &report, n == steps);
        unsettled += u32::from(!report.converged);
        ms += report.step_ms;
        assert_eq!(report.quarantined, 0, "{name}: {:?}", report.troubles.first().map(ToString::to_string));
    }
    println!("{name}: {steps} steps, {:.2} ms each, {unsettled} unsettled", ms / steps as f64);
    let broken = judge.verdicts().iter().filter(|v| !v.kept);
    (broken.map(|v| format!("{} at {:.2} s {}", v.promise, v.time, v.body)).collect(), unsettled)
}

fn keeps_its_promises(name: &str) {
    let (broken, unsettled) = run(name);
    assert!(broken.is_empty(), "{name} breaks its promises:\n  {}", broken.join("\n  "));
    assert_eq!(unsettled, 0, "{name}: steps left unsettled");
}

macro_rules! scenes {
    ($list:ident, $how:ident: $($name:ident),+ $(,)?) => {
        const $list: &[&str] = &[$(stringify!($name)),+];
        $(#[test]
        fn $name() {
            $how(stringify!($name));
        })+
    };
}

scenes!(
    KEPT, keeps_its_promises: bin, bowling, boxes, bridge, cable_spinner, chain_drop, chain_load, chain_wrap, crane, dominoes,
    double_pendulum, dzhanibekov, hello, incline, log_tower, mixed_shapes, net_load, net_truck, newton_cradle, pendulum, ragdoll,
    rock_pile, rope_bridge, sheet, slider_crank, stack, tandem_cranes, tower_boxes, tower_capsules, trucks, vehicle, wall,
);

#[test]
fn every_scene_file_is_tested() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes");
    for entry in std::fs::read_dir(folder).expect("the scenes are there") {
        let file = entry.expect("a file").path();
        if file.extension().is_some_and(|e| e == "ron") {
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            let listed = KEPT.contains(&name.as_str());
            assert!(listed, "{name} is not in the lists of tests/scenes.rs");
            let plan = plan(&name);
            assert_eq!(plan.name, name, "a scene is called as its file");
            assert!(
                !plan.about.is_empty() && !plan.expectations.is_empty() && !plan.cameras.is_empty(),
                "{name}"
            );
        }
    }
}

/// Number of dynamic bodies whose name begins so, and their mass (kg).
fn count(plan: &ScenePlan, prefix: &str) -> (usize, f64) {
    let found = plan.bodies.iter().filter(|b| b.kind == BodyKind::Dynamic && b.name.starts_with(prefix));
    found.fold((0, 0.0), |(n, m), b| (n + 1, m + b.mass))
}

/// Masses are sums of a few dozen decimal numbers: 1e-9 covers their rounding.
fn weighs(mass: f64, expected: f64) -> bool {
    (mass - expected).abs() < 1e-9 * expected
}

/// 000 §7.1, Table 2, Fig. 11 and 003 Table 6.1, where they give numbers.
#[test]
fn the_papers_scenes_have_the_papers_sizes() {
    let tower = plan("log_tower");
    let (logs, mass) = count(&tower, "log_");
    assert!(logs == 160 && weighs(mass, 160.0 * 50.0) && weighs(count(&tower, "box").1, 2500.0));
    let spinner = plan("cable_spinner");
    let (links, mass) = count(&spinner, "cable_");
    assert!(links == 8 * 48 && weighs(mass, 38.4) && weighs(count(&spinner, "plate").1, 10.0));
    assert!(weighs(count(&spinner, "ball").1, 2500.0));
    for (name, links, load) in [("chain_wrap", 100, Some(500.0)), ("chain_drop", 250, None)] {
        let chain = plan(name);
        let (n, mass) = count(&chain, "chain/");
        assert!(n == links && weighs(mass, 0.25 * links as f64), "{name}");
        assert!(load.is_none_or(|m| weighs(count(&chain, "box").1, m)));
    }
    let rocks = plan("rock_pile");
    assert!(
        rocks.bodies.iter().filter(|b| b.name.starts_with("rock_")).all(|b| (80.0..=250.0).contains(&b.mass))
    );
    assert!(weighs(count(&rocks, "shovel").1, 1.0));
    let net = plan("net_truck");
    let (bodies, mass) = count(&net, "truck/");
    assert!(bodies == 22 && weighs(mass, 8000.0), "{bodies} {mass}");
    let (links, mass) = count(&net, "net/c_0_0/");
    assert!((48..=65).contains(&links) && weighs(mass, 0.2 * links as f64), "{links} {mass}");
    let trucks = plan("trucks");
    for k in 0..4 {
        assert!(weighs(count(&trucks, &format!("truck_{k}/")).1, 8000.0));
    }
    assert!((48..=65).contains(&count(&trucks, "net/c_1_5/").0));
    let cranes = plan("tandem_cranes");
    assert!(weighs(count(&cranes, "pipe").1, 3500.0));
    for k in 0..2 {
        let mass = count(&cranes, &format!("crane_{k}/")).1;
        // "approximately 75,000 kg": hook, block, hoist cable and sling are on top of it
        assert!((mass - 75_000.0).abs() < 750.0, "{mass}");
    }
    let bridge = plan("bridge");
    assert_eq!((bridge.bodies.len(), bridge.joints.len()), (893, 1278));
    assert!(weighs(count(&plan("boxes"), "b_0_0_0").1, 2.5));
    let wall = plan("wall");
    assert!(weighs(count(&wall, "brick_0_0").1, 2.5) && weighs(count(&wall, "box").1, 10.0));
}

/// The truck alone has more than 120 rows and each section of the net more than 280 (000 §7.1).
#[test]
fn the_truck_and_the_net_have_the_papers_rows() {
    let rows = |text: &str| {
        let mut files = scene::Memory::default();
        for part in ["truck", "net"] {
            let text = std::fs::read_to_string(path(&format!("parts/{part}"))).expect("the part");
            files.0.insert(format!("{part}.ron").into(), text);
        }
        files.0.insert("s.ron".into(), text.into());
        let plan =
            scene::plan_from("s.ron", &LoadOptions::default(), &files).unwrap_or_else(|e| panic!("{e}"));
        let mut scene = Scene::new(plan);
        scene.physics.step(&mut scene.world, 1.0 / 60.0).rows
    };
    let truck = rows("Scene(items: [Prefab(file: \"truck.ron\")])");
    assert!(truck > 120, "{truck}");
    let net = rows("Scene(items: [Prefab(file: \"net.ron\")])");
    assert!(net > 12 * 280, "{net}");
}
