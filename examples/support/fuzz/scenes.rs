//! Scene texts with one to three values changed, or an item deleted, repeated or exchanged.

use super::{MOST_BODIES, Patience, Random, Verdict};
use std::ops::Range;
use std::path::{Path, PathBuf};
use turnbuckle::scene::{Disk, Files, Limits, LoadOptions, Scene, plan_from};

/// A changed scene.
pub struct SceneCase {
    /// The shipped scene it was made from.
    base: PathBuf,
    /// Its text.
    text: String,
}

/// The changed text in place of the file, everything else from the disk.
struct Overlay<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Files for Overlay<'_> {
    fn read(&self, path: &Path, limit: usize) -> Result<String, String> {
        if path == self.path { Ok(self.text.to_string()) } else { Disk.read(path, limit) }
    }
}

/// The shipped scenes, sorted.
pub fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let entries = std::fs::read_dir(&folder).map(|e| e.flatten().map(|e| e.path()).collect());
    let mut all: Vec<PathBuf> = entries.unwrap_or_default();
    all.retain(|path| path.extension().is_some_and(|e| e == "ron"));
    all.sort();
    assert!(!all.is_empty(), "{}: there are no scenes", folder.display());
    all
}

impl SceneCase {
    /// A random one.
    pub fn new(random: &mut Random) -> SceneCase {
        let all = shipped();
        let base = all[random.below(all.len())].clone();
        let mut text = std::fs::read_to_string(&base).unwrap_or_default();
        for _ in 0..1 + random.below(3) {
            text = changed(&text, random);
        }
        SceneCase { base, text }
    }

    /// That of a file, which takes the place of a shipped scene as far as the parts it names are concerned.
    pub fn of_file(path: &Path) -> std::io::Result<SceneCase> {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/found.ron");
        Ok(SceneCase { base, text: std::fs::read_to_string(path)? })
    }

    /// Loads and steps it.
    pub fn run(self, patience: &Patience) -> Verdict {
        let files = Overlay { path: &self.base, text: &self.text };
        let limits =
            Limits { bodies: 20_000, joints: 20_000, work: 100_000, points: 50_000, ..Limits::default() };
        let options = LoadOptions { limits, ..LoadOptions::default() };
        let plan = match plan_from(&self.base, &options, &files) {
            Ok(plan) => plan,
            Err(error) => return Verdict::refused(error),
        };
        if plan.bodies.len() > MOST_BODIES as usize {
            return Verdict { large: true, ..Verdict::default() };
        }
        let mut scene = Scene::new(plan);
        let dt = scene.dt();
        patience.watch(&mut scene.world, &mut scene.physics, dt, |_, _, _| ())
    }

    /// The scene file.
    pub fn files(&self) -> (Vec<(String, Vec<u8>)>, String) {
        let name = self.base.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (vec![(format!("{name}.ron"), self.text.clone().into_bytes())], "--replay FILE.ron".into())
    }
}

/// What can be changed in a text.
#[derive(Default)]
struct Places {
    numbers: Vec<Range<usize>>,
    words: Vec<Range<usize>>,
    /// Names before a colon.
    fields: Vec<Range<usize>>,
    texts: Vec<Range<usize>>,
    /// What stands between brackets and commas.
    items: Vec<Range<usize>>,
}

fn places(text: &str) -> Places {
    let bytes = text.as_bytes();
    let mut found = Places::default();
    let mut open: Vec<usize> = Vec::new();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(bytes.len(), |n| at + n);
                continue;
            }
            b'"' => {
                at = text[at + 1..].find('"').map_or(bytes.len(), |n| at + n + 2);
                found.texts.push(start..at);
                continue;
            }
            b'(' | b'[' | b'{' => open.push(at + 1),
            b')' | b']' | b'}' => {
                if let Some(begin) = open.pop() {
                    found.items.push(begin..at);
                }
            }
            b',' => {
                if let Some(begin) = open.last_mut() {
                    found.items.push(*begin..at);
                    *begin = at + 1;
                }
            }
            b if b.is_ascii_digit() || (b == b'-' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) => {
                at += 1;
                while bytes.get(at).is_some_and(|&b| is_word(b) || b == b'.') {
                    // The sign of an exponent belongs to the number.
                    let exponent = matches!(bytes[at], b'e' | b'E');
                    at += 1 + usize::from(exponent && matches!(bytes.get(at + 1), Some(b'-' | b'+')));
                }
                found.numbers.push(start..at);
                continue;
            }
            b if is_word(b) => {
                while bytes.get(at).is_some_and(|&b| is_word(b)) {
                    at += 1;
                }
                let field = text[at..].trim_start().starts_with(':');
                if field {
                    found.fields.push(start..at)
                } else {
                    found.words.push(start..at)
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found.items.retain(|r| !text[r.clone()].trim().is_empty());
    found
}

fn pick(random: &mut Random, from: &[Range<usize>]) -> Option<Range<usize>> {
    (!from.is_empty()).then(|| from[random.below(from.len())].clone())
}

/// The text with something else in one place.
fn with(text: &str, place: Range<usize>, new: &str) -> String {
    [&text[..place.start], new, &text[place.end..]].concat()
}

/// The text with two places exchanged; as it is if they overlap.
fn exchanged(text: &str, a: Range<usize>, b: Range<usize>) -> String {
    let (a, b) = if a.start <= b.start { (a, b) } else { (b, a) };
    if a.end > b.start {
        return text.to_string();
    }
    let parts = [&text[..a.start], &text[b.clone()], &text[a.end..b.start], &text[a.clone()], &text[b.end..]];
    parts.concat()
}

/// A text with one change.
fn changed(text: &str, random: &mut Random) -> String {
    let found = places(text);
    let change = match random.below(20) {
        0..=10 => pick(random, &found.numbers).map(|place| {
            let new = number(&text[place.clone()], random);
            with(text, place, &new)
        }),
        11 => pick(random, &found.numbers)
            .and_then(|a| pick(random, &found.numbers).map(|b| exchanged(text, a, b))),
        12 => pick(random, &found.fields)
            .and_then(|a| pick(random, &found.fields).map(|b| exchanged(text, a, b))),
        13 => pick(random, &found.words)
            .and_then(|a| pick(random, &found.words).map(|b| with(text, a, &text[b]))),
        14 => pick(random, &found.texts)
            .and_then(|a| pick(random, &found.texts).map(|b| with(text, a, &text[b]))),
        15 | 16 => pick(random, &found.items).map(|place| {
            // The comma goes with the item where there is one.
            let comma = usize::from(text[place.end..].starts_with(','));
            with(text, place.start..place.end + comma, "")
        }),
        17 | 18 => pick(random, &found.items).map(|place| {
            let item = &text[place.clone()];
            let twice = format!("{item},{item}");
            with(text, place, &twice)
        }),
        _ => {
            pick(random, &found.items).and_then(|a| pick(random, &found.items).map(|b| exchanged(text, a, b)))
        }
    };
    change.unwrap_or_else(|| text.to_string())
}

fn number(old: &str, random: &mut Random) -> String {
    let x: f64 = old.parse().unwrap_or(1.0);
    match random.below(16) {
        0 => "0".into(),
        1 => format!("{}", -x),
        2 => format!("{}", x * 1e3),
        3 => format!("{}", x * 1e-3),
        4 => format!("{}", x * 10.0),
        5 => format!("{}", x * 0.1),
        6 => "1e7".into(),
        7 => "-1e7".into(),
        8 => "1e-6".into(),
        9 => format!("{}", x + random.range(-1.0, 1.0)),
        10 => random.pick(&["NaN", "inf", "-inf", "1e30", "-1e30", "1e300", "1e-300"]).into(),
        11 => random.pick(&["1000", "-1", "1", "2", "0.5", "1e6", "1e5", "1e12"]).into(),
        12 => format!("{:e}", random.power(-9.0, 9.0)),
        13 => format!("{}", x * (1.0 + 1e-9)),
        14 => "\"$nothing\"".into(),
        _ => format!("{}", x * random.power(-3.0, 3.0)),
    }
}
