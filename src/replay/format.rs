//! Recordings as files.
//!
//! ```text
//! "TURNBKLE"  version u32  length u64  zlib( header length u32 · header JSON · spaces to 4 bytes · blocks )
//! ```
//! All little-endian. The header names the blocks in order; a block is a table of integers (rows = frames),
//! replaced by differences along time and split into byte planes, which is what makes it deflate well: a body
//! that moves evenly becomes zeros. Readers skip blocks they do not know, so new ones need no new version.

use super::recording::*;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version this library writes, and the newest it reads.
pub const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"TURNBKLE";
const PREAMBLE: usize = 20;
/// Nothing larger is read, so that a damaged length cannot ask for all the memory there is.
const LIMIT: u64 = 4 << 30;

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
    /// Something else.
    #[error(
        "this is not a Turnbuckle recording: it does not start with \"TURNBKLE\", nor does it hold a replay page's data"
    )]
    NotARecording,
    /// From the future.
    #[error("the recording has version {found}; this program reads up to {VERSION}: use a newer turnbuckle")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Cut short or altered.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
    /// There is nothing to show.
    #[error("the recording has no frame; record at least one step")]
    Empty,
}

#[derive(Serialize, Deserialize)]
struct Header {
    info: RunInfo,
    stride: u32,
    quantum: f64,
    contact_quantum: f64,
    frames: usize,
    stats: Vec<String>,
    systems: Vec<String>,
    bodies: Vec<BodyInfo>,
    joints: Vec<JointInfo>,
    meshes: Vec<Mesh>,
    blocks: Vec<Block>,
}

/// A table in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    name: String,
    rows: usize,
    columns: usize,
    /// Bytes an entry.
    width: usize,
    /// How many times differences along rows were taken.
    order: usize,
}

struct Writer {
    blocks: Vec<Block>,
    bytes: Vec<u8>,
}

impl Writer {
    fn put(&mut self, name: &str, rows: usize, width: usize, order: usize, mut values: Vec<u32>) {
        let columns = values.len().checked_div(rows).unwrap_or(0);
        for _ in 0..order {
            for i in (columns..values.len()).rev() {
                values[i] = values[i].wrapping_sub(values[i - columns]);
            }
        }
        for plane in 0..width {
            self.bytes.extend(values.iter().map(|v| v.to_le_bytes()[plane]));
        }
        self.blocks.push(Block { name: name.into(), rows, columns, width, order });
    }
}

/// Undoes [`Writer::put`].
fn take(block: &Block, bytes: &[u8]) -> Vec<u32> {
    let n = block.rows * block.columns;
    let mut values: Vec<u32> = (0..n)
        .map(|i| (0..block.width).fold(0, |v, plane| v | u32::from(bytes[plane * n + i]) << (8 * plane)))
        .collect();
    for _ in 0..block.order {
        for i in block.columns..n {
            values[i] = values[i].wrapping_add(values[i - block.columns]);
        }
    }
    values
}

/// Upper half of an `f32`, rounded to nearest.
fn to_half(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0 } else { (x.to_bits().saturating_add(0x8000) >> 16) & 0xffff }
}

fn from_half(h: u32) -> f32 {
    f32::from_bits(h << 16)
}

/// An absent coordinate.
const ABSENT: i32 = i32::MIN;
const REACH: f64 = (1u32 << 30) as f64;

fn to_fixed(x: f32, quantum: f64) -> u32 {
    if !x.is_finite() {
        return ABSENT as u32;
    }
    (f64::from(x) / quantum).round().clamp(-REACH, REACH) as i32 as u32
}

fn from_fixed(v: u32, quantum: f64) -> f32 {
    if v as i32 == ABSENT { f32::NAN } else { (f64::from(v as i32) * quantum) as f32 }
}

impl Recording {
    /// The recording as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let rows = self.frames.len();
        let bodies = self.bodies.len();
        let quantum = self.quantum();
        let contact_quantum = self.contact_quantum();
        let mut w = Writer { blocks: Vec::new(), bytes: Vec::new() };
        let table = |width: usize, f: &dyn Fn(&Frame, usize) -> u32| -> Vec<u32> {
            self.frames.iter().flat_map(|frame| (0..width).map(move |i| f(frame, i))).collect()
        };
        let pose = |frame: &Frame, i: usize| frame.poses.get(i).copied().unwrap_or(Pose::ABSENT);
        for (k, name) in ["px", "py", "pz"].into_iter().enumerate() {
            w.put(name, rows, 4, 2, table(bodies, &|f, i| to_fixed(pose(f, i).position[k], quantum)));
        }
        for (k, name) in ["qx", "qy", "qz", "qw"].into_iter().enumerate() {
            w.put(name, rows, 2, 2, table(bodies, &|f, i| pose(f, i).rotation[k] as u16 as u32));
        }
        if self.frames.iter().any(|f| !f.partitions.is_empty()) {
            let partition =
                |f: &Frame, i: usize| u32::from(f.partitions.get(i).copied().unwrap_or(NO_PARTITION));
            w.put("partition", rows, 2, 1, table(bodies, &partition));
        }
        if self.frames.iter().any(|f| !f.loads.is_empty()) {
            let load = |f: &Frame, i: usize| f.loads.get(i).copied().unwrap_or_default();
            for (k, name) in ["lx", "ly", "lz"].into_iter().enumerate() {
                w.put(name, rows, 2, 1, table(self.joints.len(), &|f, i| to_half(load(f, i).force[k])));
            }
            w.put("lt", rows, 2, 1, table(self.joints.len(), &|f, i| to_half(load(f, i).torque)));
        }
        w.put("stats", rows, 4, 0, table(STATS.len(), &|f, i| f.stats[i].to_bits()));
        let timing = |f: &Frame, i: usize| f.timings.get(i).copied().unwrap_or(0.0).to_bits();
        w.put("timings", rows, 4, 0, table(self.systems.len(), &timing));
        self.put_contacts(&mut w, contact_quantum);
        self.assemble(w, quantum, contact_quantum)
    }

    fn put_contacts(&self, w: &mut Writer, quantum: f64) {
        if self.frames.iter().all(|f| f.contacts.is_empty()) {
            return;
        }
        let counts = self.frames.iter().map(|f| f.contacts.len() as u32).collect();
        w.put("contact_count", self.frames.len(), 4, 0, counts);
        let all = || self.frames.iter().flat_map(|f| &f.contacts);
        for (k, name) in ["cx", "cy", "cz"].into_iter().enumerate() {
            let fixed = |c: &ContactSample| (f64::from(c.point[k]) / quantum).round() as i16 as u16 as u32;
            w.put(name, 1, 2, 0, all().map(fixed).collect());
        }
        for (k, name) in ["cfx", "cfy", "cfz"].into_iter().enumerate() {
            w.put(name, 1, 2, 0, all().map(|c| to_half(c.force[k])).collect());
        }
    }

    /// Contact points are kept as `i16` of this distance (m): they are only drawn.
    fn contact_quantum(&self) -> f64 {
        let points = self.frames.iter().flat_map(|f| &f.contacts).flat_map(|c| c.point);
        let extent = points.filter(|c| c.is_finite()).fold(1.0f32, |m, c| m.max(c.abs()));
        f64::from(extent) / 32767.0
    }

    fn assemble(&self, w: Writer, quantum: f64, contact_quantum: f64) -> Vec<u8> {
        let header = Header {
            info: self.info.clone(),
            stride: self.stride,
            quantum,
            contact_quantum,
            frames: self.frames.len(),
            stats: STATS.map(String::from).to_vec(),
            systems: self.systems.clone(),
            bodies: self.bodies.clone(),
            joints: self.joints.clone(),
            meshes: self.meshes.clone(),
            blocks: w.blocks,
        };
        let mut json = serde_json::to_vec(&header).expect("plain data with string keys becomes JSON");
        json.resize(json.len().next_multiple_of(4), b' ');
        let mut raw = Vec::with_capacity(4 + json.len() + w.bytes.len());
        raw.extend((json.len() as u32).to_le_bytes());
        raw.extend(json);
        raw.extend(w.bytes);
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((raw.len() as u64).to_le_bytes());
        out.extend(miniz_oxide::deflate::compress_to_vec_zlib(&raw, 6));
        out
    }

    /// Reads a recording back.
    ///
    /// # Errors
    /// [`ReplayError::NotARecording`], [`ReplayError::Version`], [`ReplayError::Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Recording, ReplayError> {
        let damaged = |what: &str| ReplayError::Damaged(what.into());
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return Err(ReplayError::NotARecording);
        }
        let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let version = word(8).ok_or_else(|| damaged("it ends in the preamble"))?;
        if version > VERSION {
            return Err(ReplayError::Version { found: version });
        }
        let [low, high] = [word(12), word(16)].map(|w| w.map(u64::from));
        let length = low.zip(high).map(|(l, h)| l | h << 32).filter(|&l| l <= LIMIT);
        let length = length.ok_or_else(|| damaged("its length makes no sense"))? as usize;
        let raw = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes[PREAMBLE..], length)
            .map_err(|e| ReplayError::Damaged(format!("it does not inflate ({e})")))?;
        if raw.len() != length || length < 4 {
            return Err(damaged("it is shorter than it says"));
        }
        let json_len = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]) as usize;
        let json = raw.get(4..4usize.saturating_add(json_len)).ok_or_else(|| damaged("its header is cut"))?;
        let header: Header =
            serde_json::from_slice(json).map_err(|e| ReplayError::Damaged(format!("its header: {e}")))?;
        let tables = read_tables(&header.blocks, &raw[4 + json_len..])?;
        rebuild(header, &tables)
    }

    /// Writes the recording to a file, whole or not at all.
    ///
    /// # Errors
    /// [`ReplayError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), ReplayError> {
        write_atomically(path, &self.to_bytes())
    }

    /// Reads a recording from a file, or from a replay page that holds one.
    ///
    /// # Errors
    /// See [`Recording::from_bytes`]; [`ReplayError::Io`].
    pub fn read(path: &Path) -> Result<Recording, ReplayError> {
        let bytes = std::fs::read(path)
            .map_err(|source| ReplayError::Io { path: path.display().to_string(), source })?;
        match super::page::extract(&bytes) {
            Some(inner) => Recording::from_bytes(&inner),
            None => Recording::from_bytes(&bytes),
        }
    }
}

/// Writes beside the target and renames: a reader sees the old file or the new one.
///
/// # Errors
/// [`ReplayError::Io`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ReplayError> {
    let io = |source| ReplayError::Io { path: path.display().to_string(), source };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let done = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    done.map_err(|e| {
        let _ = std::fs::remove_file(&part);
        io(e)
    })
}

type Tables = std::collections::BTreeMap<String, (Block, Vec<u32>)>;

fn read_tables(blocks: &[Block], mut rest: &[u8]) -> Result<Tables, ReplayError> {
    let mut tables = Tables::new();
    for block in blocks {
        let sane = (1..=4).contains(&block.width) && block.order <= 2;
        let size = block.rows.checked_mul(block.columns).and_then(|n| n.checked_mul(block.width));
        let Some((bytes, tail)) = size.filter(|_| sane).and_then(|s| rest.split_at_checked(s)) else {
            return Err(ReplayError::Damaged(format!("block {:?} is cut", block.name)));
        };
        rest = tail;
        tables.insert(block.name.clone(), (block.clone(), take(block, bytes)));
    }
    Ok(tables)
}

/// A table by name, if it is there and has the expected shape.
fn table<'a>(tables: &'a Tables, name: &str, rows: usize, columns: usize) -> Result<&'a [u32], ReplayError> {
    let found = tables.get(name).filter(|(b, _)| b.rows == rows && b.columns == columns);
    let missing = || ReplayError::Damaged(format!("block {name:?} should be {rows} × {columns}"));
    found.map(|(_, v)| &v[..]).ok_or_else(missing)
}

fn rebuild(header: Header, tables: &Tables) -> Result<Recording, ReplayError> {
    let (rows, bodies, joints) = (header.frames, header.bodies.len(), header.joints.len());
    let position = ["px", "py", "pz"].map(|n| table(tables, n, rows, bodies));
    let [px, py, pz] = position;
    let position = [px?, py?, pz?];
    let [qx, qy, qz, qw] = ["qx", "qy", "qz", "qw"].map(|n| table(tables, n, rows, bodies));
    let rotation = [qx?, qy?, qz?, qw?];
    let stats = table(tables, "stats", rows, header.stats.len())?;
    let timings = table(tables, "timings", rows, header.systems.len())?;
    let partition =
        if tables.contains_key("partition") { table(tables, "partition", rows, bodies)? } else { &[] };
    let has_loads = tables.contains_key("lt");
    let [lx, ly, lz, lt] = ["lx", "ly", "lz", "lt"].map(|n| table(tables, n, rows, joints));
    let loads = if has_loads { Some([lx?, ly?, lz?, lt?]) } else { None };
    let mut contacts = read_contacts(tables, rows, header.contact_quantum)?.into_iter();
    let place = |name: &str| header.stats.iter().position(|s| s == name);
    let places = STATS.map(place);
    let frames = (0..rows).map(|r| Frame {
        stats: places.map(|p| p.map_or(f32::NAN, |p| f32::from_bits(stats[r * header.stats.len() + p]))),
        timings: timings[r * header.systems.len()..][..header.systems.len()]
            .iter()
            .map(|&b| f32::from_bits(b))
            .collect(),
        poses: (r * bodies..(r + 1) * bodies)
            .map(|i| Pose {
                position: position.map(|t| from_fixed(t[i], header.quantum)),
                rotation: rotation.map(|t| t[i] as u16 as i16),
            })
            .collect(),
        partitions: partition.iter().skip(r * bodies).take(bodies).map(|&p| p as u16).collect(),
        loads: loads.map_or_else(Vec::new, |[x, y, z, t]| {
            (r * joints..(r + 1) * joints)
                .map(|i| Load {
                    force: [from_half(x[i]), from_half(y[i]), from_half(z[i])],
                    torque: from_half(t[i]),
                })
                .collect()
        }),
        contacts: contacts.next().unwrap_or_default(),
    });
    let frames = frames.collect();
    Ok(Recording {
        info: header.info,
        stride: header.stride,
        meshes: header.meshes,
        bodies: header.bodies,
        joints: header.joints,
        systems: header.systems,
        frames,
    })
}

fn read_contacts(tables: &Tables, rows: usize, quantum: f64) -> Result<Vec<Vec<ContactSample>>, ReplayError> {
    if !tables.contains_key("contact_count") {
        return Ok(Vec::new());
    }
    let counts = table(tables, "contact_count", rows, 1)?;
    let total = counts.iter().map(|&c| c as usize).sum();
    let [cx, cy, cz] = ["cx", "cy", "cz"].map(|n| table(tables, n, 1, total));
    let point = [cx?, cy?, cz?];
    let [fx, fy, fz] = ["cfx", "cfy", "cfz"].map(|n| table(tables, n, 1, total));
    let force = [fx?, fy?, fz?];
    let mut at = 0;
    let frame = |&count: &u32| {
        let range = at..at + count as usize;
        at = range.end;
        let sample = |i: usize| ContactSample {
            point: point.map(|t| (f64::from(t[i] as u16 as i16) * quantum) as f32),
            force: force.map(|t| from_half(t[i])),
        };
        range.map(sample).collect()
    };
    Ok(counts.iter().map(frame).collect())
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
