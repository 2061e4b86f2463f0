//! What a user meets: few public items, and a map of the house that is true.

use std::fs;
use std::path::Path;

/// What `use turnbuckle::prelude::*` brings and the doors stand in: made to be many small things.
const DOORS: &[&str] = &["components", "constraint", "prelude", "subsystem"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Counts the public items of a file and of the modules below it that the documentation shows.
fn count(file: &Path, folder: &Path, top: bool) -> usize {
    let text = read(file);
    let (mut items, mut hidden) = (0, false);
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if line.starts_with("#[doc(hidden)]") {
            hidden = true;
            continue;
        }
        if line.starts_with("#[") || line.starts_with("//") {
            continue;
        }
        let shown = !std::mem::take(&mut hidden);
        let Some(item) = line.strip_prefix("pub ").filter(|_| shown) else { continue };
        let word = item.trim_start_matches("const ").trim_start_matches("unsafe ");
        let module = item.strip_prefix("mod ").and_then(|m| m.strip_suffix(';'));
        if let Some(name) = module.filter(|name| !(top && DOORS.contains(name))) {
            let (one, many) = (folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs"));
            if one.exists() {
                items += count(&one, &folder.join(name), false);
            } else if many.exists() {
                items += count(&many, &folder.join(name), false);
            }
        } else if ["fn ", "struct ", "enum ", "trait ", "type ", "static "]
            .iter()
            .any(|w| word.starts_with(w))
            || item.starts_with("const ")
        {
            items += 1;
        }
    }
    items
}

#[test]
fn a_user_meets_few_items_beside_the_doors() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let items = count(&src.join("lib.rs"), &src, true);
    // 1,299 once; what is left is physics, settings, report, snapshot, scene, clock, shapes and schedule.
    assert!(items <= 400, "{items} public items outside of the doors and the prelude");
}

#[test]
fn the_map_names_places_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = read(&root.join("docs/architecture.md"));
    let named: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains('/') || word.ends_with(".rs") || word.ends_with(".md"))
        .filter(|word| !word.contains(' '))
        .collect();
    assert!(named.len() > 20, "the page names its places between backticks");
    let gone: Vec<&&str> = named.iter().filter(|place| !root.join(place).exists()).collect();
    assert!(gone.is_empty(), "docs/architecture.md names places that are gone: {gone:?}");
}
