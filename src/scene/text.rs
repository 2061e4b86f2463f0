//! RON text to a tree of values that know where they stand.
//!
//! A parser of our own rather than `ron`'s, because every fault found later (a negative mass, a joint to a
//! body that is not there) must still name its line and column. The text it takes is RON: numbers, strings,
//! raw strings, booleans, lists, maps, tuples, structs with or without a name, both kinds of comments,
//! trailing commas, `#![enable(..)]` lines.

use super::error::{Fault, Read, Span};
use super::limits::Limits;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it starts.
    pub at: Span,
}

/// One field of a struct or entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub at: Span,
    /// Its value.
    pub node: Node,
}

/// What a text can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `1`, `-2.5e3`, `0x1f`, `inf`, `NaN`.
    Number(f64),
    /// `"text"`, `r#"text"#`.
    Text(String),
    /// `true`, `false`.
    Bool(bool),
    /// A bare word: `dynamic`.
    Word(String),
    /// `[a, b]`.
    List(Vec<Node>),
    /// `(a, b)` or `Name(a, b)`.
    Tuple(Option<String>, Vec<Node>),
    /// `(a: x)` or `Name(a: x)`, also `{"a": x}`.
    Struct(Option<String>, Vec<Field>),
}

impl Node {
    /// "a number", "a list": for sentences.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Number(_) => "a number".into(),
            Value::Text(_) => "a text".into(),
            Value::Bool(_) => "a boolean".into(),
            Value::Word(w) => format!("`{}`", shorten(w)),
            Value::List(_) => "a list".into(),
            Value::Tuple(None, items) => format!("a tuple of {}", items.len()),
            Value::Struct(None, _) => "a struct".into(),
            Value::Tuple(Some(n), _) | Value::Struct(Some(n), _) => format!("`{}(..)`", shorten(n)),
        }
    }
}

/// At most 40 characters of a word, for messages.
pub fn shorten(word: &str) -> String {
    if word.chars().count() <= 40 {
        word.into()
    } else {
        word.chars().take(37).chain("...".chars()).collect()
    }
}

/// Reads a whole text.
///
/// # Errors
/// Anything that is not RON, or more of it than the limits allow.
pub fn parse(text: &str, file: u16, limits: &Limits) -> Read<Node> {
    let at = Span { file, line: 1, column: 1 };
    let mut p = Parser { rest: text, at, end: at, spaced: at, opened: (at, '('), nodes: 0, depth: 0, limits };
    if text.len() > limits.file_bytes {
        return Err(p.fault(format!(
            "the file has {} bytes; at most {} are read",
            text.len(),
            limits.file_bytes
        )));
    }
    p.skip_bom();
    p.space()?;
    while p.rest.starts_with('#') {
        p.extension()?;
        p.space()?;
    }
    let node = p.value()?;
    p.space()?;
    if !p.rest.is_empty() {
        return Err(p.fault(format!("expected the end of the file after the scene, found {}", p.found())));
    }
    Ok(node)
}

struct Parser<'a> {
    rest: &'a str,
    at: Span,
    /// Where what was read last ended, and where the space after it did.
    end: Span,
    spaced: Span,
    /// The bracket that is open, and where.
    opened: (Span, char),
    nodes: usize,
    depth: usize,
    limits: &'a Limits,
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Parser<'a> {
    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at, message)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    fn skip_bom(&mut self) {
        if let Some(rest) = self.rest.strip_prefix('\u{feff}') {
            self.rest = rest;
        }
    }

    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".into(),
            Some(c) if is_word_start(c) => {
                let word: String = self.rest.chars().take_while(|c| is_word(*c)).collect();
                format!("`{}`", shorten(&word))
            }
            Some(c) => format!("`{}`", c.escape_debug()),
        }
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Read<()> {
        if self.at != self.spaced {
            self.end = self.at;
        }
        self.skip_space()?;
        self.spaced = self.at;
        Ok(())
    }

    fn skip_space(&mut self) -> Read<()> {
        loop {
            if self.rest.starts_with("//") {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
            } else if self.rest.starts_with("/*") {
                self.block_comment()?;
            } else if self.peek().is_some_and(char::is_whitespace) {
                self.bump();
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Read<()> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.bump();
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.bump();
                if depth == 0 {
                    self.bump();
                    return Ok(());
                }
            }
            if self.bump().is_none() {
                return Err(Fault::new(start, "this comment is not closed; expected `*/`"));
            }
        }
    }

    /// `#![enable(implicit_some)]`: accepted and without effect.
    fn extension(&mut self) -> Read<()> {
        if !self.rest.starts_with("#![") {
            return Err(self.fault("expected `#![enable(..)]` or the scene"));
        }
        while let Some(c) = self.bump() {
            if c == ']' {
                return Ok(());
            }
        }
        Err(self.fault("expected `]`, found the end of the file"))
    }

    /// Something else should have come next. If a line has ended since, what is missing is missing at its end: the next
    /// line may be in order.
    fn missing(&self, what: &str) -> Fault {
        let found = self.found();
        if self.rest.is_empty() && self.opened.0.line != self.end.line {
            let message = format!("this `{}` is not closed: expected {what}, found {found}", self.opened.1);
            return Fault::new(self.opened.0, message);
        }
        if self.at.line == self.end.line {
            return self.fault(format!("expected {what}, found {found}"));
        }
        Fault::new(self.end, format!("expected {what} here, found {found} in line {}", self.at.line))
    }

    /// An item where a field was expected, or a field where a value was: a bracket before it is still open.
    fn not_closed(&self, at: Span, what: &str) -> Fault {
        let (opened, bracket) = self.opened;
        Fault::new(opened, format!("this `{bracket}` is not closed: line {} goes on with {what}", at.line))
    }

    fn expect(&mut self, c: char, after: &str) -> Read<()> {
        if self.peek() == Some(c) {
            self.bump();
            return Ok(());
        }
        Err(self.fault(format!("expected `{c}` {after}, found {}", self.found())))
    }

    fn value(&mut self) -> Read<Node> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.fault(format!("the file has more than {} values", self.limits.nodes)));
        }
        self.space()?;
        let at = self.at;
        let value = match self.peek() {
            Some('(') => self.brackets(None)?,
            Some('[') => self.list()?,
            Some('{') => self.map()?,
            Some('"') => Value::Text(self.string()?),
            Some('r') if self.rest.starts_with("r\"") || self.rest.starts_with("r#") => {
                Value::Text(self.raw_string()?)
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => Value::Number(self.number()?),
            Some(c) if is_word_start(c) => self.word_value()?,
            _ => return Err(self.fault(format!("expected a value, found {}", self.found()))),
        };
        Ok(Node { value, at })
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| is_word(*c)) {
            word.push(c);
            self.bump();
        }
        word
    }

    fn word_value(&mut self) -> Read<Value> {
        let word = self.word();
        self.space()?;
        Ok(match (self.peek(), word.as_str()) {
            (Some('('), _) => self.brackets(Some(word))?,
            (_, "true") => Value::Bool(true),
            (_, "false") => Value::Bool(false),
            (_, "inf") => Value::Number(f64::INFINITY),
            (_, "NaN") => Value::Number(f64::NAN),
            _ => Value::Word(word),
        })
    }

    /// Enters a bracket; returns the one around it.
    fn open(&mut self) -> Read<(Span, char)> {
        self.depth += 1;
        if self.depth > self.limits.nesting {
            return Err(self.fault(format!("brackets are nested more than {} deep", self.limits.nesting)));
        }
        let here = (self.at, self.peek().unwrap_or('('));
        self.bump();
        Ok(std::mem::replace(&mut self.opened, here))
    }

    fn close(&mut self, outer: (Span, char)) {
        self.bump();
        self.depth -= 1;
        self.opened = outer;
    }

    /// After `(`: fields if the first thing is `word:`, values otherwise.
    fn brackets(&mut self, name: Option<String>) -> Read<Value> {
        let outer = self.open()?;
        self.space()?;
        let is_struct = {
            let after = self.rest.trim_start_matches(is_word);
            after.len() < self.rest.len()
                && self.peek().is_some_and(is_word_start)
                && after.trim_start().starts_with(':')
        };
        let value = if is_struct {
            let mut fields: Vec<Field> = Vec::new();
            while self.peek() != Some(')') {
                let at = self.at;
                if !self.peek().is_some_and(is_word_start) {
                    return Err(self.missing("a field name or `)`"));
                }
                let field = self.word();
                self.space()?;
                if self.peek() == Some('(') && at.line != self.opened.0.line {
                    return Err(self.not_closed(at, &format!("the item `{}(..)`", shorten(&field))));
                }
                self.expect(':', &format!("after the field `{}`", shorten(&field)))?;
                self.add_field(&mut fields, field, at)?;
                self.separator(')')?;
            }
            Value::Struct(name, fields)
        } else {
            Value::Tuple(name, self.values(')')?)
        };
        self.close(outer);
        Ok(value)
    }

    fn add_field(&mut self, fields: &mut Vec<Field>, name: String, at: Span) -> Read<()> {
        if fields.len() >= 64 && fields.len() >= self.limits.nesting * 8 {
            return Err(Fault::new(at, "too many fields in one struct"));
        }
        if let Some(first) = fields.iter().find(|f| f.name == name) {
            let line = first.at.line;
            return Err(Fault::new(
                at,
                format!("the field `{}` is given twice, first in line {line}", shorten(&name)),
            ));
        }
        let node = self.value()?;
        fields.push(Field { name, at, node });
        Ok(())
    }

    /// After a value: a comma, or the closing bracket is next.
    fn separator(&mut self, close: char) -> Read<()> {
        self.space()?;
        if self.peek() == Some(',') {
            self.bump();
            return self.space();
        }
        if self.peek() == Some(close) {
            return Ok(());
        }
        if close == ']' && self.peek() == Some(':') && self.at.line != self.opened.0.line {
            return Err(self.not_closed(self.at, "a field"));
        }
        Err(self.missing(&format!("`,` or `{close}`")))
    }

    fn values(&mut self, close: char) -> Read<Vec<Node>> {
        let mut items = Vec::new();
        while self.peek() != Some(close) {
            items.push(self.value()?);
            self.separator(close)?;
        }
        Ok(items)
    }

    fn list(&mut self) -> Read<Value> {
        let outer = self.open()?;
        self.space()?;
        let items = self.values(']')?;
        self.close(outer);
        Ok(Value::List(items))
    }

    fn map(&mut self) -> Read<Value> {
        let outer = self.open()?;
        self.space()?;
        let mut fields = Vec::new();
        while self.peek() != Some('}') {
            let at = self.at;
            if self.peek() != Some('"') {
                return Err(self.fault(format!("expected a key in quotes or `}}`, found {}", self.found())));
            }
            let key = self.string()?;
            self.space()?;
            self.expect(':', "after the key")?;
            self.add_field(&mut fields, key, at)?;
            self.separator('}')?;
        }
        self.close(outer);
        Ok(Value::Struct(None, fields))
    }

    fn number(&mut self) -> Read<f64> {
        let at = self.at;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            let exponent_sign = matches!(c, '-' | '+')
                && (text.is_empty() || (text.ends_with(['e', 'E']) && !text.starts_with("0x")));
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent_sign) {
                break;
            }
            if c != '_' {
                text.push(c);
            }
            self.bump();
        }
        let bad = || Fault::new(at, format!("`{}` is not a number", shorten(&text)));
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
        };
        if digits == "inf" {
            return Ok(sign * f64::INFINITY);
        }
        for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
            if let Some(rest) = digits.strip_prefix(prefix) {
                return u64::from_str_radix(rest, radix).map(|v| sign * v as f64).map_err(|_| bad());
            }
        }
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Err(bad());
        }
        digits.parse::<f64>().map(|v| sign * v).map_err(|_| bad())
    }

    fn string(&mut self) -> Read<String> {
        let start = self.at;
        self.bump();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.bump() {
                None => return Err(Fault::new(start, "this text is not closed; expected `\"`")),
                Some('"') => return Ok(text),
                Some('\\') => match self.bump() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('0') => text.push('\0'),
                    Some(c @ ('"' | '\\' | '\'')) => text.push(c),
                    Some('u') => text.push(self.unicode(at)?),
                    _ => {
                        return Err(Fault::new(
                            at,
                            "unknown escape in a text; there are \\n \\t \\\" \\\\ \\u{..}",
                        ));
                    }
                },
                Some(c) => text.push(c),
            }
        }
    }

    fn unicode(&mut self, at: Span) -> Read<char> {
        let bad = || Fault::new(at, "expected \\u{..} with the hexadecimal number of a character");
        if self.bump() != Some('{') {
            return Err(bad());
        }
        let mut code = 0u32;
        loop {
            match self.bump() {
                Some('}') => return char::from_u32(code).ok_or_else(bad),
                Some(c) => {
                    let digit = c.to_digit(16).ok_or_else(bad)?;
                    code = code.checked_mul(16).and_then(|v| v.checked_add(digit)).ok_or_else(bad)?;
                }
                None => return Err(bad()),
            }
        }
    }

    fn raw_string(&mut self) -> Read<String> {
        let start = self.at;
        self.bump();
        let mut hashes = 0;
        while self.peek() == Some('#') {
            hashes += 1;
            self.bump();
        }
        if self.peek() != Some('"') {
            return Err(Fault::new(start, "expected a raw text such as r#\"..\"#"));
        }
        self.bump();
        let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        let mut text = String::new();
        while !self.rest.starts_with(&close) {
            match self.bump() {
                Some(c) => text.push(c),
                None => return Err(Fault::new(start, "this raw text is not closed")),
            }
        }
        for _ in 0..close.chars().count() {
            self.bump();
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Read<Node> {
        parse(text, 0, &Limits::default())
    }

    #[test]
    fn reads_what_ron_reads() {
        let node = read(
            "#![enable(implicit_some)]\n// a comment\nScene(name: \"a\\u{e9}\", n: [1, -2.5e-3, 0x1F, 1_000,],\n  \
             at: (1, 2,), /* x /* y */ z */ on: true, kind: fixed, m: {\"k\": r#\"q\"q\"#})",
        )
        .expect("valid");
        let Value::Struct(Some(name), fields) = node.value else { panic!("a struct") };
        assert_eq!(name, "Scene");
        assert_eq!(fields[0].node.value, Value::Text("aé".into()));
        let Value::List(numbers) = &fields[1].node.value else { panic!("a list") };
        let numbers: Vec<_> = numbers.iter().map(|n| n.value.clone()).collect();
        assert_eq!(numbers, [1.0, -2.5e-3, 31.0, 1000.0].map(Value::Number));
        assert_eq!(fields[3].at, Span { file: 0, line: 4, column: 34 });
        assert_eq!(fields[4].node.value, Value::Word("fixed".into()));
    }

    #[test]
    fn faults_name_line_column_and_what_was_expected() {
        let place = |text: &str| {
            let e = read(text).expect_err("not RON");
            (e.at.line, e.at.column, e.message)
        };
        assert_eq!(place("(a: 1 b: 2)"), (1, 7, "expected `,` or `)`, found `b`".into()));
        assert_eq!(
            place("(a: 1 // one\n b: 2)"),
            (1, 6, "expected `,` or `)` here, found `b` in line 2".into())
        );
        assert_eq!(place("(a: 1, a: 2)").0, 1);
        assert_eq!(place("[1, 2"), (1, 6, "expected `,` or `]`, found the end of the file".into()));
        assert_eq!(place("(a: 1..2)").2, "`1..2` is not a number");
        assert_eq!(place("\"abc").2, "this text is not closed; expected `\"`");
        assert_eq!(place("(1) 2").2, "expected the end of the file after the scene, found `2`");
    }

    #[test]
    fn nesting_is_limited_before_the_stack_is() {
        let deep = "[".repeat(100_000);
        assert!(read(&deep).expect_err("too deep").message.contains("nested more than 64 deep"));
    }
}
