//! Opens replay pages in headless Chromium. Without a Chromium the tests say so and are skipped, unless
//! `TURNBUCKLE_REQUIRE_BROWSER=1`. `TURNBUCKLE_SCREENSHOTS=DIR` keeps the pictures, to be looked at.

#[path = "support/chromium.rs"]
mod chromium;

use chromium::Chromium;
use serde_json::json;
use std::path::PathBuf;
use turnbuckle::replay::{Recording, page, sample};

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

/// Keeps a screenshot if somebody wants to look at it.
fn keep(browser: &mut Chromium, name: &str) -> Vec<u8> {
    let png = browser.screenshot();
    if let Some(dir) = std::env::var_os("TURNBUCKLE_SCREENSHOTS") {
        let dir = PathBuf::from(dir);
        std::fs::create_dir_all(&dir).expect("a folder for screenshots");
        std::fs::write(dir.join(format!("{name}.png")), &png).expect("screenshots can be written");
    }
    png
}

#[test]
fn look() {
    let Some(mut browser) = browser() else { return };
    let recording = sample::tumbling(60, 300);
    let path = write("tumbling", &[recording]);
    for (name, w, h, phone, dark) in [
        ("desktop-light", 1280, 800, false, false),
        ("desktop-dark", 1280, 800, false, true),
        ("phone-light", 390, 844, true, false),
    ] {
        browser.screen(w, h, phone, dark);
        browser.open(&path);
        browser.eval("turnbuckle.setFrame(40)");
        keep(&mut browser, name);
    }
    eprintln!("{:?} {:?}", browser.complaints, browser.requests);
    assert_eq!(browser.eval("turnbuckle.drawn()"), json!(60));
    for n in [500, 1000] {
        let path = write("many", &[sample::tumbling(n, 600)]);
        let mb = std::fs::metadata(&path).unwrap().len();
        browser.screen(1280, 800, false, false);
        browser.open(&path);
        let ready = browser.eval("turnbuckle.sinceNavigation");
        let m = browser.eval("turnbuckle.measure(4)");
        eprintln!("{n}: {mb} bytes, ready {ready}, {m}");
    }
}
