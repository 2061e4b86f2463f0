//! The replay page: one HTML file with the viewer and the recording in it. It asks the network for nothing.

use super::format::{ReplayError, write_atomically};
use super::recording::Recording;
use std::path::Path;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// three.js, bundled; see `page/three/README.md`.
const THREE: &str = include_str!("page/three/three.bundle.js");
const THREE_LICENSE: &str = include_str!("page/three/LICENSE");
/// The viewer, in the order in which its parts build on each other.
const VIEWER: [&str; 9] = [
    include_str!("page/decode.js"),
    include_str!("page/colors.js"),
    include_str!("page/stage.js"),
    include_str!("page/software.js"),
    include_str!("page/bodies.js"),
    include_str!("page/cables.js"),
    include_str!("page/arrows.js"),
    include_str!("page/plots.js"),
    include_str!("page/app.js"),
];
/// Stands before and after each recording in the page.
const OPEN: &str = "<script type=\"application/x-turnbuckle-recording\">";
const CLOSE: &str = "</script>";

/// A page that replays several runs side by side, in step, with their curves overlaid.
pub fn comparison_page(recordings: &[Recording]) -> String {
    comparison_page_with(recordings, "")
}

/// The same with more to read below it: `report` is HTML, with a place `#report` to jump to.
pub fn comparison_page_with(recordings: &[Recording], report: &str) -> String {
    let scene = recordings.first().map_or("nothing", |r| r.info.scene.as_str());
    let data: String =
        recordings.iter().map(|r| format!("{OPEN}{}{CLOSE}\n", base64(&r.to_bytes()))).collect();
    let licence = format!("/* three.js\n{THREE_LICENSE}*/\n");
    let viewer = VIEWER.concat();
    TEMPLATE
        .replace("{{title}}", &escape(scene))
        .replace("{{style}}", STYLE)
        .replace("{{three}}", &format!("{licence}{THREE}"))
        .replace("{{report}}", report)
        .replace("{{viewer}}", &format!("(() => {{\n\"use strict\";\n{viewer}\n}})();"))
        .replace("{{recordings}}", &data)
}

/// Writes a page that replays one run, whole or not at all.
///
/// # Errors
/// [`ReplayError::Empty`] if there is no frame; [`ReplayError::Io`].
pub fn write_page(path: &Path, recordings: &[Recording]) -> Result<(), ReplayError> {
    if recordings.iter().all(|r| r.frames.is_empty()) {
        return Err(ReplayError::Empty);
    }
    write_atomically(path, comparison_page(recordings).as_bytes())
}

/// The first recording inside a page; `None` if this is no page of ours.
pub(super) fn extract(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let start = text.find(OPEN)? + OPEN.len();
    let end = start + text[start..].find(CLOSE)?;
    unbase64(&text[start..end])
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut word, mut bits) = (0u32, 0);
    for c in text.bytes() {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::sample;

    #[test]
    fn base64_goes_both_ways() {
        assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        for n in 0..9u8 {
            let bytes: Vec<u8> = (0..n).map(|i| i.wrapping_mul(97)).collect();
            assert_eq!(unbase64(&base64(&bytes)), Some(bytes));
        }
        assert_eq!(unbase64("a b"), None);
    }

    #[test]
    fn a_page_holds_its_recording_and_nothing_from_outside() {
        let mut recording = sample::tumbling(12, 5);
        recording.info.scene = "</title><b>".into();
        let page = comparison_page(std::slice::from_ref(&recording));
        for placeholder in ["title", "style", "three", "viewer", "report", "recordings"] {
            assert!(!page.contains(&format!("{{{{{placeholder}}}}}")), "{placeholder} was left");
        }
        assert!(page.contains("&lt;/title&gt;"));
        for from_outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(from_outside), "{from_outside}");
        }
        let inner = extract(page.as_bytes()).expect("it is in there");
        assert_eq!(Recording::from_bytes(&inner).expect("just written").bodies, recording.bodies);
    }
}
