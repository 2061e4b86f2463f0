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
}

impl Fault {
    /// A fault at a place.
    pub fn new(at: Span, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into(), trail: Vec::new() }
    }

    /// Gives the fault the names of its files.
    pub fn name(self, files: &[String]) -> SceneError {
        let file = |s: Span| files.get(s.file as usize).cloned().unwrap_or_default();
        SceneError {
            file: file(self.at),
            line: self.at.line,
            column: self.at.column,
            message: self.message,
            used_at: self
                .trail
                .iter()
                .take(3)
                .map(|s| format!("{}:{}:{}", file(*s), s.line, s.column))
                .collect(),
        }
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
}

impl SceneError {
    /// A fault of a whole file.
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> SceneError {
        SceneError { file: file.into(), line: 0, column: 0, message: message.into(), used_at: Vec::new() }
    }
}

impl std::fmt::Display for SceneError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)?;
        } else {
            write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        }
        for place in &self.used_at {
            write!(f, "\n  in a part used at {place}")?;
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

/// "; did you mean `x`?", or the names there are, or nothing.
pub fn suggestion<'a>(word: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = closest(word, names.clone()) {
        return format!("; did you mean `{name}`?");
    }
    let names: Vec<&str> = names.into_iter().take(25).collect();
    if names.is_empty() { String::new() } else { format!("; expected one of: {}", names.join(", ")) }
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
