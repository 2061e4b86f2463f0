//! Solves with a limit of time: a problem goes to a file, and a process of its own solves it, prints numbers on one line, and is
//! ended when it takes too long. A solver cannot be stopped from outside in any other way.

use crate::child;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;
use turnbuckle::solver::{Label, RowBlock, RowKind, RowProblem, Solution};

/// A problem with the warm start it had, and the partitions that the scene names (−1 for none).
pub struct Spooled {
    /// The problem.
    pub problem: RowProblem,
    /// Impulses and index set of the step before.
    pub start: Solution,
    /// Partition of every body.
    pub hints: Vec<i32>,
}

/// A file that goes away with its owner.
pub struct Spool(PathBuf);

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Spool {
    /// Writes problems to a file of this process.
    pub fn new(problems: &[Spooled]) -> Spool {
        let path = std::env::temp_dir().join(format!("turnbuckle-papers-{}", std::process::id()));
        let mut bytes = Vec::new();
        put(&mut bytes, &[problems.len() as f64]);
        for p in problems {
            write(&mut bytes, p);
        }
        File::create(&path).and_then(|mut f| f.write_all(&bytes)).expect("room for a temporary file");
        Spool(path)
    }

    /// Runs this program again as `--one ARGS FILE` and reads the numbers it prints; nothing if that takes longer than `limit`.
    pub fn solve(&self, args: &[&str], limit: Duration) -> Option<Vec<f64>> {
        let args = args.iter().map(OsStr::new).chain([self.0.as_os_str()]);
        child::numbers(args, limit)
    }
}

/// Reads what [`Spool::new`] wrote.
pub fn read(path: &str) -> Vec<Spooled> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut f| f.read_to_end(&mut bytes)).expect("the file this program wrote");
    let words: Vec<f64> =
        bytes.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes"))).collect();
    let mut at = 0;
    let count = get(&words, &mut at)[0] as usize;
    (0..count).map(|_| take(&words, &mut at)).collect()
}

/// All numbers are written as f64, in lists that begin with their length: whole numbers up to 2⁵³ survive.
fn put(bytes: &mut Vec<u8>, list: &[f64]) {
    bytes.extend((list.len() as f64).to_le_bytes());
    list.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
}

fn get<'a>(words: &'a [f64], at: &mut usize) -> &'a [f64] {
    let length = words[*at] as usize;
    let list = &words[*at + 1..*at + 1 + length];
    *at += 1 + length;
    list
}

fn write(bytes: &mut Vec<u8>, spooled: &Spooled) {
    let p = &spooled.problem;
    let block = |b: &RowBlock| [b.row, b.rows, b.body, b.bodies, b.entry, u32::from(b.fold)].map(f64::from);
    put(bytes, p.mass.as_flattened());
    put(bytes, p.momentum.as_flattened());
    put(bytes, p.blocks.iter().map(block).collect::<Vec<_>>().as_flattened());
    put(bytes, &p.block_bodies.iter().map(|b| f64::from(*b)).collect::<Vec<_>>());
    for list in [&p.jacobian, &p.compliance, &p.d, &p.lo, &p.hi] {
        put(bytes, list);
    }
    put(bytes, &p.kind.iter().map(|k| f64::from(*k as u8)).collect::<Vec<_>>());
    put(bytes, &spooled.start.lambda);
    put(bytes, &spooled.start.v);
    put(bytes, &spooled.start.labels.iter().map(|l| f64::from(*l as u8)).collect::<Vec<_>>());
    put(bytes, &spooled.hints.iter().map(|h| f64::from(*h)).collect::<Vec<_>>());
}

fn take(words: &[f64], at: &mut usize) -> Spooled {
    let mut list = || get(words, at).to_vec();
    let blocks = |b: &[f64; 6]| {
        let [row, rows, body, bodies, entry, fold] = b.map(|x| x as u32);
        RowBlock { row, rows, body, bodies, entry, fold: fold == 1 }
    };
    let kind = |k: &f64| [RowKind::Joint, RowKind::Normal, RowKind::Friction][*k as usize];
    let label = |l: &f64| [Label::Free, Label::Lower, Label::Upper][*l as usize];
    let problem = RowProblem {
        width: Vec::new(),
        couplings: Vec::new(),
        cones: Vec::new(),
        mass: list().as_chunks().0.to_vec(),
        momentum: list().as_chunks().0.to_vec(),
        blocks: list().as_chunks().0.iter().map(blocks).collect(),
        block_bodies: list().iter().map(|b| *b as u32).collect(),
        jacobian: list(),
        compliance: list(),
        d: list(),
        lo: list(),
        hi: list(),
        kind: list().iter().map(kind).collect(),
    };
    let start = Solution { lambda: list(), v: list(), labels: list().iter().map(label).collect() };
    Spooled { problem, start, hints: list().iter().map(|h| *h as i32).collect() }
}
