//! Which module may use which (the architecture section of the crate's documentation), read off the `use` lines.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder (or file), what it must not know, and why.
const RULES: &[(&str, &[&str], &str)] = &[
    ("src/linalg", &["hecs", "glam", "rayon", "parry3d_f64"], "linear algebra speaks slices and indices"),
    (
        "src/linalg",
        &["crate::solver", "crate::systems", "crate::components", "crate::geometry"],
        "it is the ground floor",
    ),
    ("src/solver", &["hecs", "glam", "rayon", "parry3d_f64"], "solvers speak slices and indices"),
    (
        "src/solver",
        &["crate::systems", "crate::components", "crate::geometry", "crate::constraint", "crate::physics"],
        "solvers stand on linear algebra alone",
    ),
    ("src/graph", &["hecs", "glam", "rayon", "parry3d_f64"], "graphs are indices in, indices out"),
    ("src/partition", &["hecs", "rayon", "parry3d_f64"], "partitions stand on solvers"),
    (
        "src/coupling",
        &["hecs", "rayon", "parry3d_f64"],
        "coupling sees partitions only through their three questions",
    ),
    (
        "src/geometry",
        &["hecs", "crate::systems", "crate::physics", "crate::components"],
        "geometry knows no entities",
    ),
    (
        "src/components",
        &["rayon", "parry3d_f64", "crate::systems", "crate::physics"],
        "components are plain data",
    ),
    (
        "src/constraint",
        &["rayon", "parry3d_f64", "crate::systems"],
        "constraints write rows and nothing else",
    ),
    ("systems", &["parry3d_f64"], "parry lives in geometry"),
    ("src/scene", &["parry3d_f64"], "parry lives in geometry"),
    ("src/replay", &["parry3d_f64"], "parry lives in geometry"),
    ("src/cli", &["parry3d_f64"], "parry lives in geometry"),
];

#[test]
fn knowledge_flows_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for (place, forbidden, why) in RULES {
        for file in sources(&root.join(place)) {
            let text = fs::read_to_string(&file).expect("a source file can be read");
            let name = file.strip_prefix(root).expect("below the root").display().to_string();
            for (number, line) in text.lines().enumerate() {
                for word in *forbidden {
                    if mentions(line, word) {
                        broken.push(format!("{name}:{}: {place} must not know {word}: {why}", number + 1));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Functions whose last bits are the platform's, or the compiler's; `turnbuckle::math` has them.
const OF_THE_PLATFORM: &[&str] = &[
    "sin",
    "cos",
    "tan",
    "sin_cos",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log",
    "log2",
    "log10",
    "powf",
    "powi",
    "cbrt",
    "hypot",
    // glam's, made of these.
    "angle_between",
    "from_axis_angle",
    "from_scaled_axis",
    "to_scaled_axis",
    "to_axis_angle",
    "from_rotation_x",
    "from_rotation_y",
    "from_rotation_z",
    "from_euler",
    "to_euler",
    "slerp",
];

/// Places where they may stand: what is shown, and never goes back into a step.
const SHOWN: &[&str] = &["src/cli", "src/replay", "src/math.rs"];

#[test]
fn only_one_module_knows_functions_of_the_platform() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for file in ["src", "systems"].iter().flat_map(|place| sources(&root.join(place))) {
        let name = file.strip_prefix(root).expect("below the root").display().to_string();
        if SHOWN.iter().any(|place| name.starts_with(place)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file can be read");
        // Unit tests stand last and may compare with the platform.
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        for (number, line) in product.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let calls = |word: &str| [format!(".{word}("), format!("f64::{word}"), format!("Quat::{word}")];
            let is_call = |call: &String| {
                let next = |at: usize| code[at + call.len()..].chars().next();
                code.match_indices(call.as_str()).any(|(at, _)| {
                    call.ends_with('(') || !next(at).is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
            };
            if let Some(word) = OF_THE_PLATFORM.iter().find(|word| calls(word).iter().any(is_call)) {
                broken.push(format!(
                    "{name}:{}: `{word}` differs between platforms: use crate::math",
                    number + 1
                ));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Does a line of code (not of comment) use this path?
fn mentions(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or("");
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + word.len()..];
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '"');
        starts && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

fn sources(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(place) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_name().is_none_or(|n| n != "tests.rs")
        {
            // Unit tests may look up the house: they hold a floor against the problems of the one above.
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn files_stay_short_enough_to_be_one_idea() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for place in ["src", "systems"] {
        for file in sources(&root.join(place)) {
            let lines = fs::read_to_string(&file).expect("a source file can be read").lines().count();
            assert!(lines <= 800, "{} has {lines} lines; one idea per file, cut it", file.display());
        }
    }
}
