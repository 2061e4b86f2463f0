//! Colours for bodies that do not say how they look.

/// Warm and cool by turns, of similar lightness, so that neighbours differ and nothing shouts.
const PALETTE: [[u8; 3]; 8] = [
    [226, 116, 86],
    [84, 148, 184],
    [236, 178, 84],
    [106, 170, 132],
    [176, 120, 168],
    [208, 146, 104],
    [120, 138, 190],
    [150, 168, 92],
];

/// Grey for what does not move, a colour of the palette for the rest, in turn.
pub fn default_color(index: usize, fixed: bool) -> [u8; 3] {
    if fixed { [196, 196, 190] } else { PALETTE[index % PALETTE.len()] }
}

/// The same colour, a little lighter or darker from body to body, so that a wall shows its bricks.
pub fn varied([r, g, b]: [u8; 3], index: usize) -> [u8; 3] {
    // Golden ratio: neighbours in number differ, and the values spread evenly.
    let s = (index as f64 * 0.618_033_988_749_895).fract();
    let factor = 0.90 + 0.16 * s;
    [r, g, b].map(|c| (f64::from(c) * factor).round().min(255.0) as u8)
}
