//! Golden hashes: the bits of every scene after a short run, with `auto` and with the paper's loop, on one thread and on two.
//!
//! Plain kernels give the same bits on every machine, so the file is one for all. A change that is meant to leave the motion
//! alone leaves `golden/hashes.txt` alone; one that is meant to move it mints the file anew and says why:
//!
//! ```sh
//! TURNBUCKLE_MINT_GOLDEN="friction is a cone now" cargo test --release --test golden
//! ```
//!
//! Beside each hash stand factorizations and pivots of the whole run: work that grows without a change of the motion shows here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use turnbuckle::scene::{self, LoadOptions};
use turnbuckle::solver::Method;
use turnbuckle::testing::state_hash;

const STEPS: u32 = 40;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// What a run leaves behind, as a line of the file.
fn run(name: &str, method: Method, threads: usize) -> String {
    let path = format!("{FOLDER}/scenes/{name}.ron");
    let mut scene = scene::load_with(path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    scene.physics.settings.plain_kernels = true;
    scene.physics.settings.method = method;
    scene.physics.set_threads(threads);
    let dt = scene.dt();
    let (mut factorizations, mut pivots) = (0u64, 0u64);
    for _ in 0..STEPS {
        let report = scene.physics.step(&mut scene.world, dt);
        factorizations += u64::from(report.factorizations);
        pivots += u64::from(report.pivots);
    }
    format!("{:016x} factorizations {factorizations} pivots {pivots}", state_hash(&scene.world))
}

fn scenes() -> Vec<String> {
    let files = std::fs::read_dir(format!("{FOLDER}/scenes")).expect("the scenes are there");
    let names = files.map(|entry| entry.expect("a file").path());
    let names = names.filter(|file| file.extension().is_some_and(|e| e == "ron"));
    let mut names: Vec<String> =
        names.map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn file(method: Method) -> PathBuf {
    format!("{FOLDER}/tests/golden/{}.txt", method.name()).into()
}

/// Runs every scene on one thread and on two, and compares with the file, or writes it.
fn check(method: Method) {
    let mut found = BTreeMap::new();
    for name in scenes() {
        let one = run(&name, method, 1);
        assert_eq!(one, run(&name, method, 2), "{name}, {}: one thread and two differ", method.name());
        found.insert(name, one);
    }
    if let Ok(reason) = std::env::var("TURNBUCKLE_MINT_GOLDEN") {
        assert!(
            reason.len() > 10,
            "TURNBUCKLE_MINT_GOLDEN says in a sentence why the motion was meant to change"
        );
        let mut text = format!("# {STEPS} steps with plain kernels. Minted because: {reason}\n");
        found.iter().for_each(|(name, line)| text += &format!("{name} {line}\n"));
        return std::fs::write(file(method), text).expect("the file can be written");
    }
    let text = std::fs::read_to_string(file(method)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let expected: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once(' ')).collect();
    let differ: Vec<String> = found
        .iter()
        .filter(|(name, line)| expected.get(name.as_str()) != Some(&line.as_str()))
        .map(|(name, line)| {
            format!("{name}: {line}, expected {}", expected.get(name.as_str()).unwrap_or(&"nothing"))
        })
        .collect();
    let gone: Vec<_> = expected.keys().filter(|name| !found.contains_key(**name)).collect();
    assert!(
        differ.is_empty() && gone.is_empty(),
        "{}:\n  {}\n  gone: {gone:?}",
        method.name(),
        differ.join("\n  ")
    );
}

#[test]
fn auto_keeps_its_bits() {
    check(Method::Auto);
}

#[test]
fn the_papers_loop_keeps_its_bits() {
    check(Method::SchurBpp);
}
