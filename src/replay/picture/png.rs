//! PNG files, still and animated (APNG: browsers play them, everything else shows the first picture).

use super::Image;

/// The image as a PNG file.
pub fn encode(image: &Image) -> Vec<u8> {
    let mut out = start(image);
    chunk(&mut out, b"IDAT", &compress(&image.rgb, image.width as usize));
    chunk(&mut out, b"IEND", &[]);
    out
}

/// The images as an animated PNG that loops for ever, `seconds` apart. All must have the size of the first; those that
/// have not are left out. Only what changes from one to the next is stored.
pub fn encode_animation(images: &[Image], seconds: f64) -> Vec<u8> {
    let Some(first) = images.first() else { return Vec::new() };
    let images: Vec<&Image> =
        images.iter().filter(|i| (i.width, i.height) == (first.width, first.height)).collect();
    let mut out = start(first);
    let mut control = (images.len() as u32).to_be_bytes().to_vec();
    control.extend(0u32.to_be_bytes());
    chunk(&mut out, b"acTL", &control);
    let delay = ((seconds * 1000.0).round().clamp(1.0, 65535.0)) as u16;
    let mut sequence = 0u32;
    for (k, image) in images.iter().enumerate() {
        let area = if k == 0 { Area::all(image) } else { Area::changed(images[k - 1], image) };
        let mut control = sequence.to_be_bytes().to_vec();
        sequence += 1;
        for value in [area.width, area.height, area.x, area.y] {
            control.extend((value as u32).to_be_bytes());
        }
        control.extend(delay.to_be_bytes());
        control.extend(1000u16.to_be_bytes());
        control.extend([0, 0]); // leave the picture, write over it
        chunk(&mut out, b"fcTL", &control);
        let data = compress(&area.cut(image), area.width);
        if k == 0 {
            chunk(&mut out, b"IDAT", &data);
        } else {
            let mut numbered = sequence.to_be_bytes().to_vec();
            sequence += 1;
            numbered.extend(data);
            chunk(&mut out, b"fdAT", &numbered);
        }
    }
    chunk(&mut out, b"IEND", &[]);
    out
}

/// A rectangle of an image.
struct Area {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl Area {
    fn all(image: &Image) -> Area {
        Area { x: 0, y: 0, width: image.width as usize, height: image.height as usize }
    }

    /// The smallest rectangle outside which nothing changes; one pixel if nothing does.
    fn changed(before: &Image, after: &Image) -> Area {
        let across = after.width as usize;
        let (mut left, mut right, mut top, mut bottom) = (across, 0, after.height as usize, 0);
        for (i, (a, b)) in before.rgb.chunks(3).zip(after.rgb.chunks(3)).enumerate() {
            if a != b {
                let (x, y) = (i % across, i / across);
                (left, right) = (left.min(x), right.max(x + 1));
                (top, bottom) = (top.min(y), bottom.max(y + 1));
            }
        }
        if right == 0 {
            return Area { x: 0, y: 0, width: 1, height: 1 };
        }
        Area { x: left, y: top, width: right - left, height: bottom - top }
    }

    fn cut(&self, image: &Image) -> Vec<u8> {
        let across = 3 * image.width as usize;
        let row = |y: usize| &image.rgb[y * across + 3 * self.x..][..3 * self.width];
        (self.y..self.y + self.height).flat_map(row).copied().collect()
    }
}

fn start(image: &Image) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = image.width.to_be_bytes().to_vec();
    header.extend(image.height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]); // 8 bits, red green blue
    chunk(&mut out, b"IHDR", &header);
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = checksum(&out[from..]);
    out.extend(sum.to_be_bytes());
}

/// CRC-32 as in the PNG specification, annex D.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        }
    }
    !crc
}

/// Filters each row the way that leaves the least, then deflates.
fn compress(rgb: &[u8], width: usize) -> Vec<u8> {
    let across = 3 * width;
    let mut filtered = Vec::with_capacity(rgb.len() + rgb.len() / across.max(1) + 1);
    let blank = vec![0; across];
    let mut above = &blank[..];
    for row in rgb.chunks(across.max(1)) {
        let candidates = [1, 2, 4].map(|kind| filter(kind, row, above));
        let rest = |f: &[u8]| f.iter().map(|&b| u64::from((b as i8).unsigned_abs())).sum::<u64>();
        let best = candidates.iter().enumerate().min_by_key(|(_, f)| rest(f)).map_or(0, |(i, _)| i);
        filtered.push([1, 2, 4][best]);
        filtered.extend(&candidates[best]);
        above = row;
    }
    miniz_oxide::deflate::compress_to_vec_zlib(&filtered, 9)
}

fn filter(kind: u8, row: &[u8], above: &[u8]) -> Vec<u8> {
    let at = |r: &[u8], i: usize| if i >= 3 { r[i - 3] } else { 0 };
    (0..row.len())
        .map(|i| {
            let (left, up, corner) = (at(row, i), above[i], at(above, i));
            let guess = match kind {
                1 => left,
                2 => up,
                _ => paeth(left, up, corner),
            };
            row[i].wrapping_sub(guess)
        })
        .collect()
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(corner);
    let off = |v: u8| (guess - i16::from(v)).abs();
    if off(left) <= off(up) && off(left) <= off(corner) {
        left
    } else if off(up) <= off(corner) {
        up
    } else {
        corner
    }
}
