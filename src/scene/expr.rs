//! Arithmetic in scenes: `"$length / $links"`, `"2 * sin($t)"`.
//!
//! `$name` is a parameter, a generator's counter, or `$t`, the time, in scripted motion. Operators
//! `+ - * / % ^`, comparisons (1 or 0), brackets, `pi`, and the functions of [`FUNCTIONS`].

use super::error::{closest, suggestion};
use super::random::Random;
use super::text::shorten;
use crate::math;
use std::cell::RefCell;

/// Functions and how many arguments they take.
pub const FUNCTIONS: &[(&str, usize)] = &[
    ("sin", 1),
    ("cos", 1),
    ("tan", 1),
    ("asin", 1),
    ("acos", 1),
    ("atan2", 2),
    ("sqrt", 1),
    ("abs", 1),
    ("floor", 1),
    ("ceil", 1),
    ("round", 1),
    ("exp", 1),
    ("min", 2),
    ("max", 2),
    ("clamp", 3),
    ("if", 3),
    ("rad", 1),
    ("random", 2),
];

/// Longest expression, in bytes; it bounds the depth of the tree too.
const LONGEST: usize = 400;
const DEEPEST: usize = 40;

/// Names and their values, innermost last.
#[derive(Clone, Debug)]
pub struct Variables {
    values: Vec<(String, f64)>,
    random: RefCell<Random>,
}

impl Variables {
    /// No names yet.
    pub fn new(seed: u64) -> Variables {
        Variables { values: Vec::new(), random: RefCell::new(Random::new(seed)) }
    }

    /// Adds a name; it hides an older one.
    pub fn push(&mut self, name: impl Into<String>, value: f64) {
        self.values.push((name.into(), value));
    }

    /// Gives the newest of these names another value.
    pub fn set(&mut self, name: &str, value: f64) {
        match self.values.iter_mut().rev().find(|(n, _)| n == name) {
            Some(entry) => entry.1 = value,
            None => self.push(name, value),
        }
    }

    /// How many there are, to go back to with [`Variables::truncate`].
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Forgets the names added since.
    pub fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.values.iter().map(|(n, _)| n.as_str())
    }

    /// Starts another random sequence and returns the old one.
    pub fn reseed(&self, random: Random) -> Random {
        self.random.replace(random)
    }

    /// The random sequence of this scope.
    pub fn random(&self) -> std::cell::RefMut<'_, Random> {
        self.random.borrow_mut()
    }
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// `$name`.
    Variable(String),
    /// −x.
    Negate(Box<Expr>),
    /// x op y.
    Binary(char, Box<Expr>, Box<Expr>),
    /// f(x, ..).
    Call(&'static str, Vec<Expr>),
}

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// A sentence saying what is wrong with it.
    pub fn parse(text: &str) -> Result<Expr, String> {
        if text.len() > LONGEST {
            return Err(format!("the expression has {} characters; at most {LONGEST} are read", text.len()));
        }
        let mut p = ExprParser { rest: text.trim_start(), depth: 0 };
        let e = p.comparison()?;
        if p.rest.is_empty() {
            return Ok(e);
        }
        Err(format!("`{}`: expected an operator or the end, found `{}`", shorten(text), shorten(p.rest)))
    }

    /// Its value.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn value(&self, variables: &Variables) -> Result<f64, String> {
        Ok(match self {
            Expr::Number(v) => *v,
            Expr::Variable(name) => variables.get(name).ok_or_else(|| {
                let hint = suggestion(name, variables.names());
                format!("there is no parameter `${}`{hint}", shorten(name))
            })?,
            Expr::Negate(e) => -e.value(variables)?,
            Expr::Binary(op, a, b) => binary(*op, a.value(variables)?, b.value(variables)?),
            Expr::Call("if", args) => {
                let chosen = if args[0].value(variables)? != 0.0 { &args[1] } else { &args[2] };
                chosen.value(variables)?
            }
            Expr::Call(name, args) => {
                let mut x = [0.0; 3];
                for (slot, arg) in x.iter_mut().zip(args) {
                    *slot = arg.value(variables)?;
                }
                call(name, x, variables)
            }
        })
    }

    /// The same with every known variable filled in; only the names in `open` stay.
    ///
    /// # Errors
    /// A name that is neither known nor open.
    pub fn bind(&self, variables: &Variables, open: &[&str]) -> Result<Expr, String> {
        Ok(match self {
            Expr::Variable(name) if open.contains(&name.as_str()) => self.clone(),
            Expr::Number(_) | Expr::Variable(_) => Expr::Number(self.value(variables)?),
            Expr::Negate(e) => Expr::Negate(Box::new(e.bind(variables, open)?)),
            Expr::Binary(op, a, b) => {
                Expr::Binary(*op, Box::new(a.bind(variables, open)?), Box::new(b.bind(variables, open)?))
            }
            Expr::Call(f, args) => {
                let args: Vec<Expr> =
                    args.iter().map(|a| a.bind(variables, open)).collect::<Result<_, _>>()?;
                if *f != "random" {
                    return Ok(Expr::Call(f, args));
                }
                // Drawn once, here: a motion must be a function of time, or restoring a snapshot would change it.
                let drawn = Expr::Call(f, args).value(&Variables::new(0));
                drawn.map_err(|_| "`random` in a motion must not depend on `$t`".to_string())?;
                Expr::Number(self.value(variables)?)
            }
        })
    }
}

fn truth(claim: bool) -> f64 {
    if claim { 1.0 } else { 0.0 }
}

fn binary(op: char, a: f64, b: f64) -> f64 {
    match op {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        '%' => a.rem_euclid(b),
        '^' => math::pow(a, b),
        '<' => truth(a < b),
        '>' => truth(a > b),
        'l' => truth(a <= b),
        'g' => truth(a >= b),
        '=' => truth(a == b),
        _ => truth(a != b),
    }
}

fn call(name: &str, [x, y, z]: [f64; 3], variables: &Variables) -> f64 {
    match name {
        "sin" => math::sin(x),
        "cos" => math::cos(x),
        "tan" => math::tan(x),
        "asin" => math::asin(x),
        "acos" => math::acos(x),
        "atan2" => math::atan2(x, y),
        "sqrt" => x.sqrt(),
        "abs" => x.abs(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round" => x.round(),
        "exp" => math::exp(x),
        "min" => x.min(y),
        "max" => x.max(y),
        "clamp" => x.max(y).min(z),
        "rad" => x.to_radians(),
        "random" => variables.random().range(x, y),
        _ => f64::NAN,
    }
}

struct ExprParser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> ExprParser<'a> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn found(&self) -> String {
        if self.rest.is_empty() { "the end".into() } else { format!("`{}`", shorten(self.rest)) }
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is nested too deeply".into());
        }
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn chain(
        &mut self,
        operators: &[(&str, char)],
        next: fn(&mut Self) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let mut left = next(self)?;
        while let Some((_, op)) = operators.iter().find(|(token, _)| self.take(token)) {
            let right = next(self)?;
            left = Expr::Binary(*op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let tokens = [("<=", 'l'), (">=", 'g'), ("==", '='), ("!=", '!'), ("<", '<'), (">", '>')];
        self.chain(&tokens, ExprParser::sum)
    }

    fn sum(&mut self) -> Result<Expr, String> {
        self.chain(&[("+", '+'), ("-", '-')], ExprParser::product)
    }

    fn product(&mut self) -> Result<Expr, String> {
        self.chain(&[("*", '*'), ("/", '/'), ("%", '%')], ExprParser::signed)
    }

    fn signed(&mut self) -> Result<Expr, String> {
        self.deeper(|p| {
            if p.take("-") {
                return Ok(Expr::Negate(Box::new(p.signed()?)));
            }
            let base = p.atom()?;
            if p.take("^") {
                let exponent = p.signed()?;
                return Ok(Expr::Binary('^', Box::new(base), Box::new(exponent)));
            }
            Ok(base)
        })
    }

    fn word(&mut self) -> &'a str {
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn atom(&mut self) -> Result<Expr, String> {
        match self.rest.chars().next() {
            Some('(') => {
                self.take("(");
                let e = self.deeper(ExprParser::comparison)?;
                if self.take(")") { Ok(e) } else { Err(format!("expected `)`, found {}", self.found())) }
            }
            Some('$') => {
                self.rest = &self.rest[1..];
                match self.word() {
                    "" => Err("expected a parameter name after `$`".into()),
                    name => Ok(Expr::Variable(name.into())),
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.named(),
            _ => Err(format!("expected a number, `$parameter`, function or `(`, found {}", self.found())),
        }
    }

    fn number(&mut self) -> Result<Expr, String> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() {
            let sign = matches!(bytes[end], b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
            if !(bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e' | b'E') || sign) {
                break;
            }
            end += 1;
        }
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        digits.parse().map(Expr::Number).map_err(|_| format!("`{}` is not a number", shorten(digits)))
    }

    fn named(&mut self) -> Result<Expr, String> {
        let word = self.word();
        if word == "pi" {
            return Ok(Expr::Number(std::f64::consts::PI));
        }
        let Some(&(name, count)) = FUNCTIONS.iter().find(|(n, _)| *n == word) else {
            let hint = match closest(word, FUNCTIONS.iter().map(|(n, _)| *n)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("write `${}` for a parameter", shorten(word)),
            };
            return Err(format!("`{}` is neither a number nor a function; {hint}", shorten(word)));
        };
        if !self.take("(") {
            return Err(format!("expected `(` after `{name}`, found {}", self.found()));
        }
        let mut args = Vec::new();
        while !self.take(")") {
            if !args.is_empty() && !self.take(",") {
                return Err(format!("expected `,` or `)` in `{name}(..)`, found {}", self.found()));
            }
            args.push(self.deeper(ExprParser::comparison)?);
        }
        if args.len() != count {
            return Err(format!("`{name}` takes {count} argument(s), {} given", args.len()));
        }
        Ok(Expr::Call(name, args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let mut v = Variables::new(1);
        v.push("links", 100.0);
        v.push("length", 20.0);
        Expr::parse(text)?.value(&v)
    }

    #[test]
    fn arithmetic_has_the_usual_precedence() {
        assert_eq!(value("$length / $links"), Ok(0.2));
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Ok(5.0));
        assert_eq!(value("-2 ^ 2 + (1 - 3) * -1.5e0"), Ok(-1.0));
        assert_eq!(value("2 ^ 3 ^ 2"), Ok(512.0));
        assert_eq!(value("if($links > 50, max(1, 2), 7) + 7 % 4"), Ok(5.0));
        assert_eq!(value("clamp(rad(180) / pi, 0, 0.5)"), Ok(0.5));
    }

    #[test]
    fn faults_say_what_was_expected() {
        assert!(value("$link * 2").expect_err("no such name").contains("did you mean `links`?"));
        assert!(value("sine(1)").expect_err("no such function").contains("did you mean `sin`?"));
        assert!(value("1 +").expect_err("unfinished").contains("found the end"));
        assert!(value("min(1)").expect_err("too few").contains("takes 2"));
        assert!(value(&"(".repeat(300)).expect_err("too deep").contains("too deeply"));
        assert!(value("1 2").expect_err("two numbers").contains("expected an operator"));
    }
}
