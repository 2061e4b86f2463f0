//! The door for JavaScript: numbers and one buffer, which both sides see.

// What is exported under a name of its own, and what is read where somebody else has written.
#![allow(unsafe_code)]

use super::Cases;
use std::cell::RefCell;
use turnbuckle::scene::Memory;

#[derive(Default)]
struct Door {
    buffer: Vec<u8>,
    files: Memory,
    cases: Option<Cases>,
}

thread_local! {
    static DOOR: RefCell<Door> = RefCell::default();
}

/// Room for `len` bytes, to be written before the next call.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    DOOR.with_borrow_mut(|door| {
        door.buffer.clear();
        door.buffer.resize(len, 0);
        door.buffer.as_mut_ptr()
    })
}

/// Takes what was written as a file: `name` bytes of path, and its text.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn put(name: usize) {
    DOOR.with_borrow_mut(|door| {
        let (path, text) = door.buffer.split_at(name.min(door.buffer.len()));
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        door.files.0.insert(text_of(path).into(), text_of(text));
    });
}

/// How many cases there are, once all files are there.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn cases() -> usize {
    DOOR.with_borrow_mut(|door| {
        let files = std::mem::take(&mut door.files);
        door.cases.insert(Cases::new(files)).count()
    })
}

/// Runs a case and leaves its line in the buffer; so long is it.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn run(case: usize) -> usize {
    DOOR.with_borrow_mut(|door| {
        let line = door.cases.as_ref().map_or(String::new(), |cases| cases.run(case));
        door.buffer = line.into_bytes();
        door.buffer.len()
    })
}

/// Where the buffer is.
// SAFETY: no other function of this name is linked.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *const u8 {
    DOOR.with_borrow(|door| door.buffer.as_ptr())
}
