//! Opens replay pages in headless Chromium. Without a Chromium the tests say so and are skipped, unless
//! `TURNBUCKLE_REQUIRE_BROWSER=1`. `TURNBUCKLE_SCREENSHOTS=DIR` keeps the pictures, to be looked at.

#[path = "support/chromium.rs"]
mod chromium;

use chromium::Chromium;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use turnbuckle::replay::{RecordOptions, Recorder, Recording, Stat, page, sample};
use turnbuckle::scene;

/// Pages are opened side by side, but the one whose speed is measured has the machine to itself.
static ALONE: RwLock<()> = RwLock::new(());

/// A browser, or a sentence and `None`.
fn browser() -> Option<Chromium> {
    match chromium::find() {
        Some(path) => Some(Chromium::start(&path)),
        None if std::env::var_os("TURNBUCKLE_REQUIRE_BROWSER").is_some_and(|v| v == "1") => {
            panic!("TURNBUCKLE_REQUIRE_BROWSER=1, but there is no Chromium on the search path")
        }
        None => {
            eprintln!("skipped: no Chromium on the search path (TURNBUCKLE_CHROMIUM may name one)");
            None
        }
    }
}

/// Writes a page into a temporary folder.
fn write(name: &str, recordings: &[Recording]) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("turnbuckle-pages-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    let path = dir.join(format!("{name}.html"));
    page::write_page(&path, recordings).expect("the page can be written");
    path
}

/// Keeps a screenshot where a folder for it is named.
fn keep(browser: &mut Chromium, name: &str) -> Vec<u8> {
    let png = browser.screenshot();
    if let Some(dir) = std::env::var_os("TURNBUCKLE_SCREENSHOTS") {
        let dir = PathBuf::from(dir);
        std::fs::create_dir_all(&dir).expect("a folder for screenshots");
        std::fs::write(dir.join(format!("{name}.png")), &png).expect("screenshots can be written");
    }
    png
}

/// Opens a page and holds it against its recording: bodies, poses, colours, plots, no complaints, no network.
fn hold(browser: &mut Chromium, name: &str, recording: &Recording) {
    let path = write(name, std::slice::from_ref(recording));
    // What the page can know is what is in the file: positions rounded to its quantum.
    let read = Recording::read(&path).expect("the page holds its recording");
    browser.screen(960, 640, false, false);
    browser.open(&path);
    let visible = read.bodies.iter().filter(|b| !b.parts.is_empty()).count();
    assert_eq!(browser.eval("turnbuckle.drawn()"), json!(visible), "{name}: bodies drawn");
    let last = read.frames.len() - 1;
    for frame in [0, last / 3, last] {
        browser.eval(&format!("turnbuckle.setFrame({frame})"));
        for body in [0, read.bodies.len() / 2, read.bodies.len() - 1] {
            compare_pose(browser, &read, frame, body, name);
        }
        compare_plots(browser, &read, frame, name);
    }
    let material = browser.eval("turnbuckle.colors()");
    for (place, body) in read.bodies.iter().enumerate() {
        for k in 0..3 {
            let drawn = material[place][k].as_f64().expect("a number");
            // Both convert 8-bit sRGB by the same formula, the page in f32.
            assert!((drawn - linear(body.color[k])).abs() < 1e-6, "{name}: colour of {}", body.name);
        }
    }
    for mode in ["partition", "speed", "load"] {
        let offered =
            browser.eval(&format!("!document.querySelector('#mode option[value={mode}]').disabled"));
        browser.eval(&format!("turnbuckle.setMode('{mode}'); turnbuckle.setFrame({})", last / 3));
        if offered == json!(true) && read.bodies.len() > 2 {
            assert_ne!(browser.eval("turnbuckle.colors()"), material, "{name}: {mode} changes colours");
        }
        if std::env::var_os("TURNBUCKLE_SCREENSHOTS").is_some() {
            keep(browser, &format!("{name}-{mode}"));
        }
    }
    browser.eval("turnbuckle.setMode('material')");
    let blank = Picture::decode(&keep(browser, &format!("{name}-light")));
    assert!(blank.colours() > 200, "{name}: the page is nearly blank");
    assert!(browser.complaints.is_empty(), "{name}: {:#?}", browser.complaints);
    assert!(browser.requests.is_empty(), "{name}: {:?}", browser.requests);
}

fn compare_pose(browser: &mut Chromium, read: &Recording, frame: usize, body: usize, name: &str) {
    let drawn = browser.eval(&format!("turnbuckle.pose({body})"));
    let Some(pose) = read.pose(frame, body) else { return };
    let q = pose.rotation().to_array();
    for k in 0..3 {
        let off = drawn[k].as_f64().expect("a number") - f64::from(pose.position[k]);
        // One f32 rounding of the same product on each side.
        assert!(
            off.abs() <= 1e-6 * f64::from(pose.position[k].abs().max(1.0)),
            "{name} {frame} {body}: {drawn}"
        );
    }
    for k in 0..4 {
        let off = drawn[3 + k].as_f64().expect("a number") - q[k];
        // Normalised in f32 there, in f64 here.
        assert!(off.abs() < 1e-6, "{name} {frame} {body}: {drawn} {q:?}");
    }
}

fn compare_plots(browser: &mut Chromium, read: &Recording, frame: usize, name: &str) {
    let names = browser.eval("turnbuckle.plots");
    assert!(names.as_array().is_some_and(|n| n.len() >= 4), "{name}: {names}");
    let pairs = [
        ("residual", Stat::Residual),
        ("coupling", Stat::Coupling),
        ("energy", Stat::Kinetic),
        ("joint_error", Stat::JointError),
    ];
    for (plot, stat) in pairs {
        if !names.as_array().is_some_and(|n| n.contains(&json!(plot))) {
            continue;
        }
        let value = browser.eval(&format!("turnbuckle.plot('{plot}').values[{frame}]"));
        let recorded = read.frames[frame].stat(stat);
        // The same f32, through JSON.
        let same = value.as_f64().map_or(!recorded.is_finite(), |v| v as f32 == recorded);
        assert!(same, "{name}: {plot} at {frame}: {value} instead of {recorded}");
    }
    let total: f64 = read.frames[frame].timings.iter().map(|&t| f64::from(t)).sum();
    let layers = read.systems.len();
    let shown = browser.eval(&format!(
        "Array.from({{length: {layers}}}, (_, k) => turnbuckle.plot('time', k).values[{frame}]).reduce((a, b) => a + b, 0)"
    ));
    assert!((shown.as_f64().expect("a sum") - total).abs() <= 1e-5 * total.max(1.0), "{name}: times");
}

fn linear(byte: u8) -> f64 {
    let c = f64::from(byte) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// Some steps of a scene of ours.
fn play(name: &str, steps: u32) -> Recording {
    let path = format!("{}/scenes/{name}.ron", env!("CARGO_MANIFEST_DIR"));
    let mut scene = scene::load_with(path, &Default::default()).expect("a scene of ours");
    let dt = scene.dt();
    let mut recorder = Recorder::of_scene(&scene, dt, 1, RecordOptions::default());
    for _ in 0..steps {
        scene.physics.step(&mut scene.world, dt);
        recorder.observe(&scene.world, &mut scene.physics);
    }
    recorder.finish()
}

#[test]
fn pages_show_what_was_simulated() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    // Contacts and a chain; every shape there is; joints with motors and limits.
    for (name, steps) in [("hello", 100), ("mixed_shapes", 60), ("ragdoll", 60)] {
        hold(&mut browser, name, &play(name, steps));
    }
}

#[test]
fn pages_show_what_was_recorded() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    for (name, recording) in [("tumbling", sample::tumbling(60, 120)), ("one", sample::tumbling(2, 1))] {
        hold(&mut browser, name, &recording);
    }
}

#[test]
fn every_size_and_light_is_drawn_without_complaint() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    let path = write("sizes", &[sample::tumbling(60, 120)]);
    for (name, width, height, phone, dark) in [
        ("desktop-dark", 1280, 800, false, true),
        ("phone-light", 390, 844, true, false),
        ("phone-dark", 390, 844, true, true),
        ("phone-wide", 844, 390, true, false),
    ] {
        browser.screen(width, height, phone, dark);
        browser.open(&path);
        browser.eval("turnbuckle.setFrame(40); turnbuckle.setShow('contacts', true); turnbuckle.setShow('forces', true)");
        let card = browser.eval("turnbuckle.select('body', 5)");
        assert!(card.as_str().is_some_and(|c| c.contains("body 5") && c.contains("kg")), "{card}");
        let arrows = browser.eval("turnbuckle.arrows()");
        assert!(arrows["loads"].as_u64() > Some(0), "{arrows}");
        let picture = Picture::decode(&keep(&mut browser, name));
        assert!(picture.colours() > 200, "{name} is nearly blank");
        let wide = browser.eval("document.documentElement.scrollWidth");
        assert_eq!(wide, json!(width), "{name} must not scroll sideways");
    }
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn a_click_on_a_body_or_joint_shows_its_numbers() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    let path = write("click", &[sample::tumbling(4, 5)]);
    let read = Recording::read(&path).expect("the page holds its recording");
    browser.screen(1000, 700, false, false);
    browser.open(&path);
    for (kind, id, name, unit) in [("body", 1, "body 1", "kg"), ("joint", 0, "joint 1", "N·m")] {
        browser.eval(&format!("turnbuckle.setShow('forces', {})", kind == "joint"));
        let at = browser.eval(&format!("turnbuckle.where('{kind}', {id})"));
        browser.click(at[0].as_f64().expect("a number"), at[1].as_f64().expect("a number"));
        // The page draws the card with its next picture.
        browser.eval(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 0)",
        );
        let card = browser.eval("document.getElementById('inspector').innerText");
        assert!(card.as_str().is_some_and(|c| c.contains(name) && c.contains(unit)), "{kind}: {card}");
        keep(&mut browser, &format!("click-{kind}"));
        // Its own curves stand before those of the run.
        let first = if kind == "body" { "picked position" } else { "picked turn" };
        let plots = browser.eval("turnbuckle.plots");
        assert!(plots[0] == first || plots[0] == "picked force", "{plots}");
        if kind == "body" {
            for (axis, frame) in [(0, 2), (2, 4)] {
                let plotted =
                    browser.eval(&format!("turnbuckle.plot('picked position', {axis}).values[{frame}]"));
                let recorded = f64::from(read.frames[frame].poses[1].position[axis]);
                // Both are single-precision numbers of the same file.
                assert!(
                    (plotted.as_f64().expect("a number") - recorded).abs() < 1e-6,
                    "{plotted} {recorded}"
                );
            }
        }
    }
    browser.eval("(turnbuckle.app.select(null), 0)");
    assert!(!browser.eval("turnbuckle.plots.join()").to_string().contains("picked"));
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn several_solvers_stand_side_by_side() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    let mut runs = vec![sample::tumbling(20, 60), sample::tumbling(20, 60), sample::tumbling(20, 40)];
    for (run, solver) in runs.iter_mut().zip(["bpp", "schur-bpp", "pgs"]) {
        run.info.solver = solver.into();
    }
    let path = write("comparison", &runs);
    browser.screen(1280, 800, false, false);
    browser.open(&path);
    browser.eval("turnbuckle.setFrame(50)");
    for (number, run) in runs.iter().enumerate() {
        assert_eq!(browser.eval(&format!("turnbuckle.drawn({number})")), json!(20));
        let line = browser.eval(&format!("turnbuckle.plot('residual', {number}).values.length"));
        assert_eq!(line, json!(run.frames.len()));
    }
    let picture = Picture::decode(&keep(&mut browser, "comparison"));
    assert!(picture.colours() > 200);
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

/// What `turnbuckle compare --html` writes: the runs in step, the table and the plots below.
#[test]
fn the_page_of_a_comparison_shows_runs_table_and_plots() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    let dir = std::env::temp_dir().join(format!("turnbuckle-compare-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    let (path, report) = (dir.join("compare.html"), dir.join("compare.json"));
    let solvers = ["bpp", "auto", "pgs", "schur-bpp"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(["compare", "scenes/chain_load.ron", "--steps", "30", "--solvers", &solvers.join(",")])
        .args(["--partitions", "min-degree:4,min-degree:8"])
        .arg("--html")
        .arg(&path)
        .arg("--report")
        .arg(&report)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&report).expect("the report was written");
    let rows: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = rows["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2 * solvers.len());
    browser.screen(1280, 800, false, false);
    browser.open(&path);
    browser.eval("turnbuckle.setFrame(20)");
    let frames = browser.eval("turnbuckle.app.recordings.map(r => r.frames)");
    assert_eq!(
        frames,
        json!([31, 31, 31, 31]),
        "one film a solver: a frame before the first step and one after each"
    );
    let first =
        browser.eval("[...document.querySelectorAll('#report tr td:first-child')].map(t => t.innerText)");
    let labels: Vec<_> = rows.iter().map(|r| r["label"].clone()).collect();
    assert_eq!(first, json!(labels));
    // Solve time, residual and joint error over time, and solve time over the size of the partitions.
    assert_eq!(browser.eval("document.querySelectorAll('#report svg').length"), json!(4));
    assert!(Picture::decode(&keep(&mut browser, "compare")).colours() > 200);
    browser.eval("document.getElementById('report').scrollIntoView()");
    assert!(Picture::decode(&keep(&mut browser, "compare-table")).colours() > 200);
    browser.screen(390, 844, true, true);
    browser.eval("document.getElementById('report').scrollIntoView()");
    keep(&mut browser, "compare-phone");
    assert_eq!(
        browser.eval("document.documentElement.scrollWidth"),
        json!(390),
        "it must not scroll sideways"
    );
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
    assert!(browser.requests.is_empty(), "{:?}", browser.requests);
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

/// A thousand bodies for six hundred frames open fast and weigh little; five hundred play smoothly.
#[test]
fn large_pages_open_fast() {
    let _turn = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let Some(mut browser) = browser() else { return };
    let path = write("thousand", &[sample::tumbling(1000, 600)]);
    let bytes = std::fs::metadata(&path).expect("just written").len();
    assert!(bytes <= 12_000_000, "{bytes} bytes; the promise is 12 MB");
    browser.screen(1280, 800, false, false);
    browser.open(&path);
    let ready = browser.eval("turnbuckle.sinceNavigation").as_f64().expect("a number");
    assert_eq!(browser.eval("turnbuckle.drawn()"), json!(1000));
    browser.open(&write("five-hundred", &[sample::tumbling(500, 600)]));
    browser.eval("turnbuckle.measure(1)"); // settles the resolution
    let played = browser.eval("turnbuckle.measure(3)");
    eprintln!(
        "1,000 bodies x 600 frames: {bytes} bytes, ready after {ready:.0} ms; 500 bodies play: {played}"
    );
    // Speed is asserted only where the machine is known to be free: a test must not fail because others compile.
    if std::env::var_os("TURNBUCKLE_TIMING").is_some() {
        assert!(ready < 3000.0, "ready after {ready:.0} ms; the promise is 3 s");
        assert!(played["fps"].as_f64() >= Some(30.0), "{played}; the promise is 30 a second");
    }
}

/// Just enough of a PNG reader to see whether a screenshot is blank.
struct Picture(Vec<u8>);

impl Picture {
    /// Inflates the image data; filters stay, which is enough to count variety.
    fn decode(png: &[u8]) -> Picture {
        let mut at = 8;
        let mut data = Vec::new();
        while let Some(head) = png.get(at..at + 8) {
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if &head[4..8] == b"IDAT" {
                data.extend_from_slice(&png[at + 8..at + 8 + length]);
            }
            at += 12 + length;
        }
        Picture(miniz_oxide::inflate::decompress_to_vec_zlib(&data).expect("Chromium writes good PNGs"))
    }

    /// How many different neighbouring byte triples there are: a few on a blank page.
    fn colours(&self) -> usize {
        self.0.chunks(3).collect::<std::collections::BTreeSet<_>>().len()
    }
}
