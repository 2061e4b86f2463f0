//! What is wrong with a scene, and where.

/// A place in one of the files a scene is made of. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Which file, in the order of reading.
    pub file: u16,
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A fault at a place; becomes a [`SceneError`] once file names are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: Span,
    /// What, as a sentence.
    pub message: String,
    /// Where the parts around it are used, innermost first.
    pub trail: Vec<Span>,
    /// Is reading to stop here, because a limit is reached?
    pub last: bool,
}

/// How many faults of a scene are told at once.
pub(super) const MOST_FAULTS: usize = 12;

/// Names and texts of the files of a scene, by the numbers that spans use.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// As they were named.
    pub names: Vec<String>,
    /// What they hold.
    pub texts: Vec<String>,
}

impl Sources {
    /// Gives a fault the name of its file and the line it is about.
    pub fn place(&self, fault: Fault) -> SceneError {
        let file = |s: Span| self.names.get(s.file as usize).cloned().unwrap_or_default();
        let text = self.texts.get(fault.at.file as usize).map_or("", String::as_str);
        let line = (fault.at.line as usize).checked_sub(1).and_then(|n| text.lines().nth(n));
        SceneError {
            file: file(fault.at),
            line: fault.at.line,
            column: fault.at.column,
            message: fault.message,
            used_at: fault
                .trail
                .iter()
                .take(3)
                .map(|s| format!("{}:{}:{}", file(*s), s.line, s.column))
                .collect(),
            source_line: line.unwrap_or_default().into(),
            others: Box::default(),
        }
    }

    /// All faults as one error, in the order of the files.
    pub fn place_all(&self, mut faults: Vec<Fault>) -> Option<SceneError> {
        faults.sort_by_key(|f| (f.at.file, f.at.line, f.at.column));
        let mut placed = faults.into_iter().map(|f| self.place(f));
        let first = placed.next()?;
        Some(SceneError { others: placed.collect(), ..first })
    }
}

impl Fault {
    /// A fault at a place.
    pub fn new(at: Span, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into(), trail: Vec::new(), last: false }
    }

    /// A fault after which nothing more is to be read: what follows would only say the same.
    pub fn last(at: Span, message: impl Into<String>) -> Fault {
        Fault { last: true, ..Fault::new(at, message) }
    }
}

/// Result of reading a piece of a scene.
pub type Read<T> = Result<T, Fault>;

/// Why a scene cannot be loaded: file, line, column, and a sentence that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneError {
    /// The file, as it was named.
    pub file: String,
    /// Line from 1; 0 if the fault has no place in the text (a file that is not there).
    pub line: u32,
    /// Column from 1.
    pub column: u32,
    /// What is wrong and what to do.
    pub message: String,
    /// `file:line:column` of the prefab uses around it, innermost first.
    pub used_at: Vec<String>,
    /// The line as it is written; empty if the fault has no place in the text.
    pub source_line: Box<str>,
    /// What else is wrong with the scene.
    pub others: Box<[SceneError]>,
}

impl SceneError {
    /// Every fault with the line it is about and a mark below its place.
    pub fn explained(&self) -> String {
        let one = |e: &SceneError| {
            let mut out = e.sentence();
            if !e.source_line.trim().is_empty() {
                let before = e.source_line.chars().take(e.column.saturating_sub(1) as usize);
                // A long line is shown from a little before its fault on.
                let skipped = before.clone().count().saturating_sub(80);
                let mark: String = before.skip(skipped).map(|c| if c == '\t' { c } else { ' ' }).collect();
                let shown: String = e.source_line.chars().skip(skipped).take(120).collect();
                let number = e.line.to_string();
                let margin = " ".repeat(number.len());
                out.push_str(&format!("\n {number} | {shown}\n {margin} | {mark}^"));
            }
            out
        };
        let all: Vec<String> = std::iter::once(self).chain(self.others.iter()).map(one).collect();
        all.join("\n")
    }

    fn sentence(&self) -> String {
        let mut out = match self.line {
            0 => format!("{}: {}", self.file, self.message),
            _ => format!("{}:{}:{}: {}", self.file, self.line, self.column, self.message),
        };
        for place in &self.used_at {
            out.push_str(&format!("\n  in a part used at {place}"));
        }
        out
    }

    /// A fault of a whole file.
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> SceneError {
        SceneError {
            file: file.into(),
            line: 0,
            column: 0,
            message: message.into(),
            used_at: Vec::new(),
            source_line: Box::default(),
            others: Box::default(),
        }
    }
}

impl std::fmt::Display for SceneError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.sentence())?;
        for other in &self.others {
            write!(f, "\n{}", other.sentence())?;
        }
        Ok(())
    }
}

impl std::error::Error for SceneError {}

/// The name closest to a misspelt one, if one is close enough to be meant.
pub fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).flat_map(char::to_lowercase).collect();
    let allowed = (word.len() / 3).max(2);
    names
        .into_iter()
        .map(|name| (edit_distance(&word, name), name))
        .filter(|(distance, name)| *distance <= allowed && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance, ignoring case.
fn edit_distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Names listed at most: more than there are kinds of items, fewer than a scene may have bodies.
const MOST_NAMES: usize = 40;

/// "; did you mean `x`?", or the names there are, or nothing.
pub fn suggestion<'a>(word: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = closest(word, names.clone()) {
        return format!("; did you mean `{name}`?");
    }
    let mut names: Vec<&str> = names.into_iter().take(MOST_NAMES + 1).collect();
    let more = names.len() > MOST_NAMES;
    names.truncate(MOST_NAMES);
    let rest = if more { ", …" } else { "" };
    if names.is_empty() { String::new() } else { format!("; expected one of: {}{rest}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name_and_a_stranger_does_not() {
        let names = ["friction", "restitution", "mass", "density"];
        assert_eq!(closest("fricton", names), Some("friction"));
        assert_eq!(closest("Mass", names), Some("mass"));
        assert_eq!(closest("wheelbase", names), None);
        assert_eq!(closest("", names), None);
    }
}
