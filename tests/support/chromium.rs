//! A headless Chromium, driven over its debugging pipe: no driver program, no network port, no packages.
//!
//! Chromium reads commands from file descriptor 3 and answers on 4, JSON with a zero byte after each
//! (`--remote-debugging-pipe`); a shell puts our ends of stdin and stdout there.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A running browser with one page open.
pub struct Chromium {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    next: u64,
    session: String,
    profile: PathBuf,
    /// Errors and warnings of the console, uncaught exceptions.
    pub complaints: Vec<String>,
    /// Addresses the page asked for, its own file apart.
    pub requests: Vec<String>,
}

/// The browser's path: `TURNBUCKLE_CHROMIUM`, or the usual names on the search path.
pub fn find() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("TURNBUCKLE_CHROMIUM") {
        return Some(path.into());
    }
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&paths).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file())
}

const FLAGS: &str = "--headless --no-sandbox --disable-quic --no-first-run --disable-background-networking \
     --disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage --hide-scrollbars \
     --mute-audio --use-angle=swiftshader --enable-unsafe-swiftshader --remote-debugging-pipe";

impl Chromium {
    /// Starts the browser and opens an empty page.
    pub fn start(path: &Path) -> Chromium {
        let profile = std::env::temp_dir().join(format!(
            "turnbuckle-chromium-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&profile).expect("a temporary folder");
        let script = format!(
            "exec \"$0\" {FLAGS} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>\"$1/stderr\""
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(path)
            .arg(&profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell to start Chromium with");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let (send, messages) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && send.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Chromium {
            child,
            stdin,
            messages,
            next: 0,
            session: String::new(),
            profile,
            complaints: Vec::new(),
            requests: Vec::new(),
        };
        browser.open_page();
        browser
    }

    fn open_page(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = target["targetId"].as_str().expect("a target").to_owned();
        let attached = self.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        self.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Sends a command and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.stdin.write_all(&bytes).and_then(|()| self.stdin.flush()).expect("Chromium listens");
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(answer) if answer["id"] == json!(id) => {
                    assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                    return answer["result"].clone();
                }
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer from Chromium in 60 s"),
                Err(RecvTimeoutError::Disconnected) => {
                    let stderr = std::fs::read_to_string(self.profile.join("stderr")).unwrap_or_default();
                    panic!("{method}: Chromium is gone:\n{stderr}")
                }
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" if ["error", "warning", "assert"].contains(&text(&params["type"])) => {
                self.complaints.push(params["args"].to_string());
            }
            "Runtime.exceptionThrown" => self.complaints.push(params["exceptionDetails"].to_string()),
            "Log.entryAdded" if text(&params["entry"]["level"]) == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = text(&params["request"]["url"]);
                // The page's own file, its empty icon and blobs in memory are no network.
                if !["file:", "data:", "blob:", "about:"].iter().any(|s| url.starts_with(s)) {
                    self.requests.push(url.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Sets the size of the page (CSS pixels), as a phone or not, light or dark.
    pub fn screen(&mut self, width: u32, height: u32, phone: bool, dark: bool) {
        let ratio = if phone { 2 } else { 1 };
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": ratio, "mobile": phone });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Opens a file and waits until its replay is ready.
    pub fn open(&mut self, file: &Path) {
        let url = format!("file://{}#still", file.canonicalize().expect("the page is there").display());
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.eval("!!(window.turnbuckle && window.turnbuckle.ready)") != json!(true) {
            assert!(Instant::now() < deadline, "the page is not ready after 30 s: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Evaluates an expression (awaiting promises) to JSON.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Presses and releases the mouse, as a person would.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// A picture of the page, as the bytes of a PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        decode_base64(text(&answer["data"]))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Its own process only; Chromium ends its helpers itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn decode_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut out = Vec::new();
    let (mut word, mut bits) = (0u32, 0);
    for d in text.bytes().filter_map(digit) {
        word = word << 6 | u32::from(d);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    out
}
