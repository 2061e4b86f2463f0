//! The range of a public number: where numbers enter, they are held against one of these.

/// What a number may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The number's name in the code.
    pub name: &'static str,
    /// Its unit; empty for counts and shares.
    pub unit: &'static str,
    /// The least it may be.
    pub least: f64,
    /// The most it may be; may be infinite.
    pub most: f64,
}

/// A number outside of its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`{}` is {value:?}; it must be {range}", range.name)]
pub struct OutOfRange {
    /// What it is.
    pub value: f64,
    /// What it may be.
    pub range: Range,
}

impl std::fmt::Display for Range {
    /// "from 0 to 10 m", "at least 0 s", "a number": the end of "it must be".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Range { unit, least, most, .. } = *self;
        match (least == f64::NEG_INFINITY, most == f64::INFINITY) {
            (true, true) => f.write_str("a number")?,
            (true, false) => write!(f, "at most {}", Short(most))?,
            (false, true) => write!(f, "at least {}", Short(least))?,
            (false, false) => write!(f, "from {} to {}", Short(least), Short(most))?,
        }
        if unit.is_empty() { Ok(()) } else { write!(f, " {unit}") }
    }
}

/// A number in few characters.
pub(crate) struct Short(pub f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = self.0.abs();
        let plain = size == 0.0 || size.is_infinite() || (1e-3..1e5).contains(&size);
        if plain { write!(f, "{}", self.0) } else { write!(f, "{:e}", self.0) }
    }
}

impl Range {
    /// A range of numbers.
    pub const fn new(name: &'static str, unit: &'static str, least: f64, most: f64) -> Range {
        Range { name, unit, least, most }
    }

    /// Is the number within? NaN never is.
    #[inline]
    pub fn check(&self, value: f64) -> Result<(), OutOfRange> {
        if value >= self.least && value <= self.most {
            Ok(())
        } else {
            Err(OutOfRange { value, range: *self })
        }
    }

    /// Are all of these within?
    #[inline]
    pub fn check_all(&self, values: impl IntoIterator<Item = f64>) -> Result<(), OutOfRange> {
        values.into_iter().try_for_each(|value| self.check(value))
    }
}
