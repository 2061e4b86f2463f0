//! The loader: what it says about bad files, and that no file hurts it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use turnbuckle::components::JointCollision;
use turnbuckle::scene::{self, Limits, LoadOptions, Memory, SceneError, ScenePlan};

fn files(list: &[(&str, &str)]) -> Memory {
    Memory(
        list.iter().map(|(name, text)| (PathBuf::from(name), text.to_string())).collect::<BTreeMap<_, _>>(),
    )
}

fn load(text: &str) -> Result<ScenePlan, SceneError> {
    scene::plan_from("test.ron", &LoadOptions::default(), &files(&[("test.ron", text)]))
}

/// The sentence about the only item of a scene, which stands in line 2.
fn fault(item: &str) -> String {
    let text = format!("Scene(items: [\n{item}\n])");
    load(&text).expect_err("the scene is wrong").to_string()
}

#[track_caller]
fn says(item: &str, expected: &str) {
    let sentence = fault(item);
    assert!(sentence.starts_with("test.ron:2:"), "no place in: {sentence}");
    assert!(sentence.contains(expected), "expected “{expected}” in: {sentence}");
}

#[test]
fn masses_must_be_positive() {
    says(
        "Body(name: \"a\", shape: Sphere(radius: 1), mass: 0)",
        "the mass is 0 kg; it must be greater than 0",
    );
    says("Body(shape: Sphere(radius: 1), mass: -3)", "the mass is -3 kg");
    says("Body(shape: Plane())", "a dynamic body needs a mass");
    says("Body(shape: Sphere(radius: 1), density: -1)", "`density` is -1; it must be greater than 0");
}

#[test]
fn quaternions_must_be_unit() {
    says("Body(shape: Sphere(radius: 1), rotate: Quat(0, 0, 0, 0))", "the quaternion is zero");
    says(
        "Body(shape: Sphere(radius: 1), rotate: Quat(0, 0, 0, 2))",
        "has length 2.000000; a rotation has length 1",
    );
    says("Body(shape: Sphere(radius: 1), rotate: Axis((0, 0, 0), 90))", "has no direction");
}

#[test]
fn inertia_must_obey_the_triangle_inequality() {
    says("Body(mass: 1, inertia: (1, 1, 3))", "violates the triangle inequality: Ixx + Iyy < Izz");
    says("Body(mass: 1, inertia: (5, 1, 1))", "Iyy + Izz < Ixx");
    says("Body(mass: 1, inertia: (1, 0, 1))", "a moment of inertia is 0 kg·m²; it must be greater than 0");
    says("Body(mass: 1, inertia: (1, 1))", "expected the inertia `(Ixx, Iyy, Izz)`, found 2 numbers");
}

#[test]
fn nothing_is_nan_or_infinite() {
    says("Body(shape: Sphere(radius: NaN), mass: 1)", "the number is NaN; it must be finite");
    says("Body(shape: Sphere(radius: 1), mass: inf)", "the number is inf; it must be finite");
    says("Body(shape: Sphere(radius: 1), at: (0, NaN, 0))", "must be finite");
    says("Body(shape: Sphere(radius: 1), mass: \"0 / 0\")", "the number is NaN");
    says("Body(shape: Sphere(radius: 1), at: (1e9, 0, 0))", "at most ±1e7 is allowed here");
}

#[test]
fn steps_must_be_positive() {
    for (dt, expected) in
        [("0", "`dt` is 0"), ("-0.1", "`dt` is -0.1"), ("NaN", "must be finite"), ("inf", "must be finite")]
    {
        let sentence =
            load(&format!("Scene(\n settings: (dt: {dt}), items: [])")).expect_err("no step").to_string();
        assert!(sentence.starts_with("test.ron:2:17: "), "{sentence}");
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn joints_need_their_bodies() {
    let ball = "Body(name: \"ball\", shape: Sphere(radius: 1)), ";
    says(
        &format!("{ball}Ball(a: \"bal\", b: \"world\", at: (0, 0, 0))"),
        "there is no body `bal`; did you mean `ball`?",
    );
    says(&format!("{ball}Ball(a: \"ball\", b: \"ball\", at: (0, 0, 0))"), "the joint ties `ball` to itself");
    says(&format!("{ball}Ball(a: \"ball\", at: (0, 0, 0))"), "Ball needs the field `b`");
    says("Ball(a: \"world\", b: \"world\", at: (0, 0, 0))", "both ends are the world");
}

#[test]
fn names_are_unique() {
    let ball = "Body(name: \"ball\", shape: Sphere(radius: 1))";
    says(&format!("{ball}, {ball}"), "there are two bodies `ball`; the first is in line 2");
    says(
        &format!(
            "{ball}, Ball(name: \"j\", b: \"ball\", at: (0,0,0)), Ball(name: \"j\", b: \"ball\", at: (0,0,0))"
        ),
        "there are two joints `j`",
    );
    says("Body(name: \"world\", mass: 1)", "`world` is the name of the world");
}

#[test]
fn parts_do_not_include_themselves() {
    let direct = files(&[
        ("s.ron", "Scene(items: [\n Prefab(file: \"p.ron\")])"),
        ("p.ron", "Part(items: [\n\n  Prefab(file: \"p.ron\")])"),
    ]);
    let e = scene::plan_from("s.ron", &LoadOptions::default(), &direct).expect_err("a loop").to_string();
    assert_eq!(e, "p.ron:3:3: the part `p.ron` includes itself\n  in a part used at s.ron:2:2");
    let round = files(&[
        ("s.ron", "Scene(items: [Prefab(file: \"a.ron\")])"),
        ("a.ron", "Part(items: [Prefab(file: \"b.ron\")])"),
        ("b.ron", "Part(items: [Prefab(file: \"a.ron\")])"),
    ]);
    let e = scene::plan_from("s.ron", &LoadOptions::default(), &round).expect_err("a loop").to_string();
    assert!(e.contains("b.ron:1:14: the part `a.ron` includes itself"), "{e}");
    let local = "Scene(parts: {\"p\": Part(items: [Prefab(part: \"p\")])}, items: [Prefab(part: \"p\")])";
    assert!(load(local).expect_err("a loop").to_string().contains("the part `p` includes itself"));
}

#[test]
fn misspelt_words_get_a_suggestion() {
    says("Body(shap: Sphere(radius: 1), mass: 1)", "the body has no field `shap`; did you mean `shape`?");
    says("Body(shape: Spere(radius: 1))", "there is no shape `Spere`; did you mean `Sphere`?");
    says("Bodi(shape: Sphere(radius: 1))", "there is no item `Bodi`; did you mean `Body`?");
    says("Body(shape: Sphere(radus: 1))", "Sphere has no field `radus`; did you mean `radius`?");
    says(
        "Body(kind: fixd, shape: Sphere(radius: 1))",
        "there is no kind of body `fixd`; did you mean `fixed`?",
    );
    says("Body(mass: \"$lenght\")", "there is no parameter `$lenght`");
    says("Revolut(b: \"x\", at: (0,0,0))", "did you mean `Revolute`?");
    let e = load("Scene(item: [])").expect_err("misspelt").to_string();
    assert!(e.contains("the scene has no field `item`; did you mean `items`?"), "{e}");
    let e = load("Scene(settings: (solver: \"auto1\"), items: [])").expect_err("misspelt").to_string();
    assert!(e.contains("there is no solver `auto1`; did you mean `auto`?"), "{e}");
}

#[test]
fn prefab_files_stay_beside_the_scene() {
    says("Prefab(file: \"../secret.ron\")", "must be a relative path without `..`");
    says("Prefab(file: \"/etc/passwd\")", "must be a relative path without `..`");
    says("Prefab(file: \"nowhere.ron\")", "cannot read `nowhere.ron`: there is no such file");
}

#[test]
fn a_bracket_that_is_not_closed_is_blamed_on_its_own_line() {
    let place = |text: &str| {
        let e = load(text).expect_err("not closed");
        (e.line, e.column, e.message, e.source_line)
    };
    let a_body = "  Body(name: \"a\", mass: 1";
    let (line, column, message, source) =
        place(&format!("Scene(items: [\n{a_body}\n  Body(name: \"b\", mass: 1),\n])"));
    assert_eq!((line, column, &*source), (2, 26, a_body));
    assert_eq!(message, "expected `,` or `)` here, found `Body` in line 3");
    // The bracket of the shape takes the fields of the body, and the body the next one.
    let a_body = "  Body(name: \"a\", shape: Box(size: (1, 1, 1), mass: 1),";
    let (line, column, message, _) =
        place(&format!("Scene(items: [\n{a_body}\n  Body(name: \"b\", mass: 1),\n])"));
    assert_eq!((line, column), (2, 7), "{message}");
    assert_eq!(message, "this `(` is not closed: line 3 goes on with the item `Body(..)`");
    let (line, _, message, _) = place("Scene(\nitems: [\n  Body(mass: 1),\n expect: [])");
    assert_eq!((line, message.as_str()), (2, "this `[` is not closed: line 4 goes on with a field"));
    let (line, _, message, _) = place("Scene(\nitems: [\n  Body(mass: 1),\n]\n");
    assert_eq!(line, 1, "{message}");
    assert_eq!(message, "this `(` is not closed: expected `,` or `)`, found the end of the file");
}

#[test]
fn every_item_there_is_is_suggested() {
    let e = fault("Zzzzzzzzzz()");
    for name in ["Body", "Drive", "Revolute", "Wheel", "Winch", "Rack", "Pulley"] {
        assert!(e.contains(&format!(" {name}")), "{name} is missing in: {e}");
    }
}

#[test]
fn several_faults_are_told_at_once_with_their_lines() {
    let text = "Scene(settings: (dt: 0), items: [\n  Body(name: \"a\", mas: 1),\n  \
                Repeat(count: 100, items: [Body(mass: -1)]),\n  Ball(a: \"nobody\", b: \"world\", at: (0, 0, 0)),\n  \
                Bdy(mass: 1),\n])";
    let e = load(text).expect_err("four faults");
    let places: Vec<(u32, u32)> =
        std::iter::once(&e).chain(e.others.iter()).map(|f| (f.line, f.column)).collect();
    assert_eq!(places, [(1, 22), (2, 19), (3, 41), (5, 3)], "{e}");
    let told = e.explained();
    assert!(
        told.contains(
            "the body has no field `mas`; did you mean `mass`?\n 2 |   Body(name: \"a\", mas: 1),\n"
        ),
        "{told}"
    );
    assert!(told.contains("\n   |                   ^"), "{told}");
    // A faulty body does not keep its name from another one.
    let e = load(
        "Scene(items: [\n  Body(name: \"a\", mass: 1, pinned: true),\n  Body(name: \"a\", mass: 1),\n])",
    );
    let e = e.expect_err("a pin without a partition");
    assert!(e.line == 2 && e.others.is_empty() && e.message.contains("`pinned` needs to know where"), "{e}");
    // What refers to bodies is looked at once they are right.
    let text = "Scene(items: [\n  Body(name: \"a\", mass: 1),\n  Ball(a: \"b\", b: \"world\", at: (0, 0, 0)),\n  \
                Ball(a: \"a\", b: \"c\", at: (0, 0, 0)),\n])";
    let e = load(text).expect_err("two faults");
    assert_eq!((e.line, e.others.len(), e.others[0].line), (3, 1, 4), "{e}");
}

#[test]
fn what_is_legal_and_odd_is_warned_of() {
    let warned = |item: &str| -> Vec<String> {
        let plan = load(&format!("Scene(items: [\n{item}\n])")).expect("legal");
        plan.warnings.iter().map(ToString::to_string).collect()
    };
    let one = |item: &str, expected: &str| {
        let list = warned(item);
        assert!(list.len() == 1 && list[0].contains(expected), "{list:?}");
        assert!(list[0].starts_with("test.ron:2:"), "{list:?}");
    };
    let ball = "Body(name: \"a\", shape: Sphere(radius: 1)), ";
    one("Body(shape: Sphere(radius: 1), mass: 2, density: 500)", "`density` has no effect beside `mass`");
    one(
        &format!("{ball}Ball(a: \"a\", b: \"world\", at: (900, 0, 0))"),
        "this point is 900.0 m from the middle of `a`, whose size is 1.7 m",
    );
    one("Body(kind: fixed, shape: Sphere(radius: 1), velocity: (1, 0, 0))", "a fixed body never moves");
    one(
        &format!("{ball}Fixed(a: \"a\", b: \"world\", at: (0, 0, 0), motor: Velocity(target: 1))"),
        "`motor` has no effect: a Fixed has no free coordinate",
    );
    assert!(
        warned(&format!("{ball}Revolute(a: \"a\", b: \"world\", at: (2, 0, 0), limits: (lower: 0))"))
            .is_empty()
    );
    for (name, text) in corpus() {
        let plan =
            scene::plan(&name, &LoadOptions::default()).or_else(|_| load(&text)).expect("a scene of ours");
        let list: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
        assert!(list.is_empty() || name == "everything", "{name}: {list:?}");
    }
}

#[test]
fn names_lead_to_bodies_and_joints() {
    use turnbuckle::constraint::Motor;
    let set = files(&[
        (
            "s.ron",
            "Scene(settings: (sleep: false), items: [Prefab(file: \"p.ron\", name: \"crane\"), \
             Body(name: \"cart\", mass: 3, gravity_scale: 0), \
             Prismatic(name: \"slide\", a: \"world\", b: \"cart\", at: (0, 0, 0), axis: (1, 0, 0), motor: Velocity(target: 0.5, max: 6))])",
        ),
        (
            "p.ron",
            "Part(items: [Body(name: \"hook\", mass: 2, at: (9, 0, 0)), \
             Distance(name: \"line\", a: \"world\", b: \"hook\", from: (9, 0, 1.5), to: (9, 0, 0)), \
             Winch(name: \"winch\", points: [(\"world\", (9, 0, 5)), (\"hook\", (9, 0, 0))], length: 7)])",
        ),
    ]);
    let plan = scene::plan_from("s.ron", &LoadOptions::default(), &set).expect("valid");
    let mut scene = scene::Scene::new(plan);
    for _ in 0..60 {
        scene.physics.step(&mut scene.world, 0.01);
    }
    assert!(scene.body("hook").is_none() && scene.body("").is_none() && scene.joint("nothing").is_none());
    assert_eq!(scene.body("crane/hook"), Some(scene.bodies[0]));
    let line = scene.joint("crane/line").expect("a joint");
    let [length] = line.readings()[..] else { panic!("one coordinate") };
    // 2 kg hang at rest: 19.62 N, to the compliance of the joint and the residual of the solve.
    assert!((length.value - 1.5).abs() < 1e-4 && length.rate.abs() < 1e-6, "{length:?}");
    assert!((length.force + 19.62).abs() < 1e-3 && (line.force().force.z - 19.62).abs() < 1e-3, "{length:?}");
    assert!(line.motor(0).is_none() && line.target(0).is_none() && !line.set_target(0, 1.0));
    let slide = scene.joint("slide").expect("a joint");
    let [along] = slide.readings()[..] else { panic!("one coordinate") };
    // 3 kg pushed by 6 N reach 0.5 m/s in 0.25 s and 0.0625 m, a step's worth less or more, and keep the speed.
    assert!((along.rate - 0.5).abs() < 1e-6 && (along.value - 0.2375).abs() < 0.005, "{along:?}");
    assert_eq!(slide.coordinate(), Some(along.value));
    assert!(slide.set_target(0, -0.5) && slide.target(0) == Some(-0.5));
    assert!(matches!(slide.motor(0), Some(Motor::Velocity { target: -0.5, max_force: 6.0 })));
    let winch = scene.joint("crane/winch").expect("a joint");
    assert!(winch.set_target(0, -0.25) && winch.target(0) == Some(-0.25));
    scene.physics.step(&mut scene.world, 0.01);
    let [along] = scene.joint("slide").expect("a joint").readings()[..] else { panic!("one coordinate") };
    assert!((along.force + 6.0).abs() < 1e-6, "the motor pushes back with all it has: {along:?}");
    assert!(scene.joint("slide").expect("a joint").set_motor(0, Motor::Off));
    // Every kind of joint can be read out.
    let mut scene = scene::Scene::new(load(EVERYTHING).expect("the vocabulary"));
    let mut all = Vec::new();
    let watch = scene::Watch::new(&scene, &["*".into()]).expect("everything");
    for _ in 0..2 {
        scene.physics.step(&mut scene.world, 0.01);
        watch.read(&scene, &mut all);
        assert_eq!(all.len(), watch.columns().len());
        let bad = watch.columns().iter().zip(&all).find(|(_, v)| !v.is_finite());
        assert!(bad.is_none(), "{bad:?}");
    }
}

#[test]
fn sleep_can_be_set() {
    let scene = "Scene(settings: (sleep: false, sleep_speed: 0.01, sleep_time: 2), items: [Body(mass: 1)])";
    let scene = scene::Scene::new(load(scene).expect("valid"));
    let s = &scene.physics.settings;
    assert_eq!((s.sleep, s.sleep_speed, s.sleep_time), (false, 0.01, 2.0));
}

#[test]
fn limits_hold() {
    says("Repeat(count: 1000000000, items: [])", "the count is 1000000000; at most 2000000 is allowed");
    says(
        "Repeat(count: 100000, items: [Repeat(count: 100000, items: [])])",
        "the scene has more than 2000000 items and generator turns",
    );
    says(
        "Grid(counts: (1000, 1000, 1000), spacing: (1, 1, 1), body: Body(mass: 1))",
        "more than 250000 bodies",
    );
    says(
        "Scatter(count: 100, min: (0,0,0), max: (1,1,1), apart: 0.9, body: Body(mass: 1))",
        "make it larger",
    );
    let deep = format!("Scene(items: {}", "[".repeat(100));
    assert!(load(&deep).expect_err("too deep").to_string().contains("nested more than 64 deep"));
}

#[test]
fn parameters_reach_everything_and_can_be_set() {
    let text = "Scene(params: (n: 3, gap: \"$n * 2\"), items: [\n\
                Repeat(count: \"$n\", items: [Body(name: \"b_{$i}\", mass: 1, at: (\"$i * $gap\", 0, 0))])])";
    let plan = load(text).expect("valid");
    assert_eq!(plan.bodies.len(), 3);
    assert_eq!(plan.bodies[2].position.x, 12.0);
    let mut options = LoadOptions::default();
    options.set("n=5").expect("an assignment");
    let plan = scene::plan_from("t.ron", &options, &files(&[("t.ron", text)])).expect("valid");
    assert_eq!((plan.bodies.len(), plan.bodies[4].position.x), (5, 40.0));
    let mut options = LoadOptions::default();
    options.set("m=5").expect("an assignment");
    let e = scene::plan_from("t.ron", &options, &files(&[("t.ron", text)])).expect_err("no such parameter");
    assert!(e.to_string().contains("there is no parameter `m` to set"), "{e}");
    assert!(LoadOptions::default().set("n").is_err());
    assert!(LoadOptions::default().set("n=1/0").is_err());
}

#[test]
fn prefabs_are_moved_turned_named_and_nested() {
    let set = files(&[
        (
            "s.ron",
            "Scene(items: [Prefab(file: \"parts/p.ron\", name: \"left\", at: (10, 0, 0), rotate: Axis((0, 0, 1), 90), params: (d: 2))])",
        ),
        (
            "parts/p.ron",
            "Part(params: (d: 1), items: [Prefab(file: \"q.ron\", name: \"in\", at: (\"$d\", 0, 0)), Ball(name: \"j\", a: \"in/b\", b: \"world\", at: (\"$d\", 0, 1))])",
        ),
        ("parts/q.ron", "Part(items: [Body(name: \"b\", mass: 1, velocity: (1, 0, 0))])"),
    ]);
    let plan = scene::plan_from("s.ron", &LoadOptions::default(), &set).expect("valid");
    let b = &plan.bodies[0];
    assert_eq!(b.name, "left/in/b");
    // a quarter turn about z, rounding of sin and cos only
    assert!((b.position - glam::DVec3::new(10.0, 2.0, 0.0)).length() < 1e-12);
    assert!((b.velocity - glam::DVec3::Y).length() < 1e-12);
    assert_eq!(plan.joints[0].name, "left/j");
    assert!((plan.joints[0].a.point - glam::DVec3::Z).length() < 1e-12);
}

/// SplitMix64, so that the mutations are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

const SCRAPS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\",
    "$",
    "$i",
    "-",
    "1e308",
    "1e-308",
    "NaN",
    "inf",
    "-inf",
    "0",
    "-1",
    "99999999999",
    "0.0000001",
    "Body",
    "Repeat",
    "items",
    "count",
    "\"$n^$n\"",
    "\"1/0\"",
    "//",
    "/*",
    "*/",
    "é",
    "\u{0}",
    "mass",
    "Prefab",
    "path",
    "Quat(0,0,0,0)",
    "\"{$i}{$i}\"",
    "true",
    "dynamic",
    "world",
    "((((((((",
    "r#\"",
    "random(0,1)",
];

/// One to four random edits.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at..].truncate_to(random.below(20)),
            1 => bytes[at] = random.below(256) as u8,
            2 => {
                let end = (at + 1 + random.below(12)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 | 4 => {
                let scrap = SCRAPS[random.below(SCRAPS.len())];
                bytes.splice(at..at, scrap.bytes());
            }
            5 => {
                // a piece of the file somewhere else
                let from = random.below(bytes.len());
                let piece: Vec<u8> = bytes[from..(from + random.below(60)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                // another digit: counts and sizes change by orders of magnitude
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    bytes[at + digit] = b'0' + random.below(10) as u8;
                    if random.below(3) == 0 {
                        bytes.splice(at + digit..at + digit, *b"99");
                    }
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(b'(');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

trait TruncateTo {
    fn truncate_to(&mut self, n: usize);
}

impl TruncateTo for [u8] {
    /// Blanks everything after `n` bytes.
    fn truncate_to(&mut self, n: usize) {
        let n = n.min(self.len());
        self[n..].fill(b' ');
    }
}

/// Scenes of this folder that are small enough to be read a hundred thousand times.
fn corpus() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the scenes are there")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = std::fs::read_to_string(&path).ok()?;
            (path.extension()? == "ron" && text.len() < 2_500).then(|| (path.display().to_string(), text))
        })
        .collect();
    found.push(("everything".into(), EVERYTHING.into()));
    found.sort();
    found
}

const EVERYTHING: &str = include_str!("support/everything.ron");

#[test]
fn the_whole_vocabulary_loads() {
    let plan = load(EVERYTHING).expect("the vocabulary");
    assert!(plan.bodies.len() > 20 && plan.joints.len() > 20, "{} {}", plan.bodies.len(), plan.joints.len());
    let scene = scene::Scene::new(plan);
    assert_eq!(scene.joints.len(), scene.plan.joints.len());
    let switched = scene.joints.iter().map(|j| scene.world.get::<&JointCollision>(*j).ok().map(|c| c.0));
    assert_eq!(switched.flatten().collect::<Vec<_>>(), [true], "one joint says `collide: true`");
}

/// No panic, no hang, bounded memory, however a file is broken: the limits are tight, so that a mutation that asks for
/// a million bodies is refused instead of built, and each file takes a few megabytes at most.
#[test]
fn no_mutation_of_a_scene_hurts_the_loader() {
    let corpus = corpus();
    let options = LoadOptions { limits: Limits::tight(), ..LoadOptions::default() };
    let mut random = Random(2019);
    let (mut valid, mut slowest) = (0u32, std::time::Duration::ZERO);
    let start = std::time::Instant::now();
    for n in 0..100_000 {
        let (name, text) = &corpus[n % corpus.len()];
        let mutated = mutate(text, &mut random);
        let clock = std::time::Instant::now();
        match scene::plan_from("m.ron", &options, &files(&[("m.ron", &mutated)])) {
            Ok(plan) => {
                valid += 1;
                for b in &plan.bodies {
                    assert!(b.mass > 0.0 && b.position.is_finite() && b.inertia.is_finite(), "{name}: {b:?}");
                }
            }
            Err(e) => assert!(e.line > 0 && !e.message.is_empty(), "{name}: {e}"),
        }
        slowest = slowest.max(clock.elapsed());
    }
    println!(
        "100,000 mutations of {} scenes in {:.1} s, slowest {:.1} ms, {valid} still valid",
        corpus.len(),
        start.elapsed().as_secs_f64(),
        1e3 * slowest.as_secs_f64()
    );
    // A hang would be minutes; the tightest limits allow a few thousand bodies, some tens of milliseconds.
    assert!(slowest.as_secs_f64() < 5.0, "one file took {slowest:?}");
    assert!(valid > 1_000, "the mutations are too wild to test anything behind the parser: {valid} valid");
}
