//! The child process: runs cases one after another and says so line by line, so that its parent knows where it was when
//! it hangs or dies.
//!
//! ```text
//! case 17          before it begins
//! .                before each step
//! done 17 valid|refused|large [unconverged] [FAULT sentence]
//! ```

use super::{Case, Fault, Mode, Patience, Verdict};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Is this process a worker with a parent that listens?
static LISTENED: AtomicBool = AtomicBool::new(false);
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn say(line: &str) {
    // A parent that is gone has no use for the rest.
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// Tells the parent that the case goes on.
pub fn alive() {
    if LISTENED.load(Relaxed) {
        say(".");
    }
}

/// Runs one case and keeps its panic.
pub fn run(make: impl FnOnce() -> Case, patience: &Patience) -> Verdict {
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = panic.to_string().replace('\n', " ");
        }
    }));
    catch_unwind(AssertUnwindSafe(|| make().run(patience))).unwrap_or_else(|_| {
        let what = LAST_PANIC.lock().map(|text| text.clone()).unwrap_or_default();
        Verdict::fault(Fault::Panic, what)
    })
}

/// Runs the cases from `first` on until the parent ends this process or `cases` are done.
pub fn work(mode: Mode, seed: u64, first: u64, cases: u64, patience: &Patience) {
    LISTENED.store(true, Relaxed);
    for case in first..first.saturating_add(cases) {
        say(&format!("case {case}"));
        tell(case, &run(|| Case::new(mode, seed, case), patience));
    }
}

fn tell(case: u64, verdict: &Verdict) {
    let kind = match verdict {
        Verdict { refused: Some(_), .. } => "refused",
        Verdict { large: true, .. } => "large",
        _ => "valid",
    };
    let unconverged = if verdict.unconverged { " unconverged" } else { "" };
    let fault = verdict.fault.as_ref().map(|(f, what)| format!(" {} {what}", f.name())).unwrap_or_default();
    say(&format!("done {case} {kind}{unconverged}{fault}"));
}
