//! Typed reading of tree nodes: numbers that may be expressions, vectors, rotations, struct fields.

use super::error::{Fault, Read, Span, suggestion};
use super::expr::{Expr, Variables};
use super::limits::{LARGEST_LENGTH, LARGEST_NUMBER};
use super::text::{Field, Node, Value, shorten};
use crate::math;
use glam::{DQuat, DVec3};

/// The fields of one struct, taken by name; what is left over at the end is an error.
pub struct Fields<'a, 'v> {
    what: &'a str,
    /// Where the struct stands.
    pub at: Span,
    fields: &'a [Field],
    known: Vec<&'static str>,
    /// Parameters for expressions.
    pub variables: &'v Variables,
}

impl<'a, 'v> Fields<'a, 'v> {
    /// The fields of a struct called `what` in sentences.
    ///
    /// # Errors
    /// The node is not a struct with named fields.
    pub fn of(node: &'a Node, what: &'a str, variables: &'v Variables) -> Read<Fields<'a, 'v>> {
        let fields = match &node.value {
            Value::Struct(_, fields) => fields.as_slice(),
            Value::Tuple(_, items) if items.is_empty() => &[],
            _ => {
                let found = node.kind();
                return Err(Fault::new(node.at, format!("expected {what} with named fields, found {found}")));
            }
        };
        Ok(Fields { what, at: node.at, fields, known: Vec::with_capacity(24), variables })
    }

    /// The field, if it is there.
    pub fn get(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.fields.iter().find(|f| f.name == name).map(|f| &f.node)
    }

    /// The field, if it is there, without making it one of those that may be.
    pub fn find(&self, name: &str) -> Option<&'a Node> {
        self.fields.iter().find(|f| f.name == name).map(|f| &f.node)
    }

    /// The field, which must be there.
    ///
    /// # Errors
    /// It is missing.
    pub fn need(&mut self, name: &'static str) -> Read<&'a Node> {
        let what = self.what;
        self.get(name).ok_or_else(|| {
            let missing = || Fault::new(self.at, format!("{what} needs the field `{name}`"));
            self.misspelt(name).unwrap_or_else(missing)
        })
    }

    /// A field that is not there by this name, but by one like it: that is likelier than that it was forgotten.
    pub fn misspelt(&self, name: &'static str) -> Option<Fault> {
        let unknown = |f: &&Field| !self.known.contains(&f.name.as_str());
        let mut near = self.fields.iter().filter(|f| super::error::closest(&f.name, [name]).is_some());
        near.find(unknown).map(|f| {
            let (what, found) = (self.what, shorten(&f.name));
            Fault::new(f.at, format!("{what} has no field `{found}`; did you mean `{name}`?"))
        })
    }

    /// Every field must have been asked for by now.
    ///
    /// # Errors
    /// An unknown field, with the closest known one.
    pub fn finish(self) -> Read<()> {
        match self.fields.iter().find(|f| !self.known.contains(&f.name.as_str())) {
            None => Ok(()),
            Some(f) => {
                let hint = suggestion(&f.name, self.known.iter().copied());
                Err(Fault::new(f.at, format!("{} has no field `{}`{hint}", self.what, shorten(&f.name))))
            }
        }
    }

    /// Any finite number.
    pub fn number(&mut self, name: &'static str) -> Read<Option<f64>> {
        let v = self.variables;
        self.get(name).map(|n| number(n, v)).transpose()
    }

    /// A number above zero.
    pub fn positive(&mut self, name: &'static str) -> Read<Option<f64>> {
        let v = self.variables;
        self.get(name).map(|n| positive(n, name, v)).transpose()
    }

    /// A number that is zero or more.
    pub fn not_negative(&mut self, name: &'static str) -> Read<Option<f64>> {
        let v = self.variables;
        self.get(name).map(|n| not_negative(n, name, v)).transpose()
    }

    /// A number above zero that must be there.
    pub fn need_positive(&mut self, name: &'static str) -> Read<f64> {
        let node = self.need(name)?;
        positive(node, name, self.variables)
    }

    /// A vector.
    pub fn vector(&mut self, name: &'static str) -> Read<Option<DVec3>> {
        let v = self.variables;
        self.get(name).map(|n| vector(n, v)).transpose()
    }

    /// A vector that must be there.
    pub fn need_vector(&mut self, name: &'static str) -> Read<DVec3> {
        let node = self.need(name)?;
        vector(node, self.variables)
    }

    /// A direction, normalized.
    pub fn direction(&mut self, name: &'static str) -> Read<Option<DVec3>> {
        let v = self.variables;
        self.get(name).map(|n| direction(n, v)).transpose()
    }

    /// A rotation.
    pub fn rotation(&mut self, name: &'static str) -> Read<Option<DQuat>> {
        let v = self.variables;
        self.get(name).map(|n| rotation(n, v)).transpose()
    }

    /// A text with its `{..}` filled in.
    pub fn text(&mut self, name: &'static str) -> Read<Option<String>> {
        let v = self.variables;
        self.get(name).map(|n| text(n, v)).transpose()
    }

    /// `true` or `false` (or an expression that is not zero).
    pub fn flag(&mut self, name: &'static str) -> Read<Option<bool>> {
        let v = self.variables;
        self.get(name).map(|n| flag(n, v)).transpose()
    }

    /// A whole number from 0 to `most`.
    pub fn count(&mut self, name: &'static str, most: usize) -> Read<Option<usize>> {
        let v = self.variables;
        self.get(name).map(|n| count(n, most, v)).transpose()
    }
}

/// A finite number, or a text holding an expression.
pub fn number(node: &Node, variables: &Variables) -> Read<f64> {
    let value = match &node.value {
        Value::Number(v) => *v,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Text(t) => {
            Expr::parse(t).and_then(|e| e.value(variables)).map_err(|m| Fault::new(node.at, m))?
        }
        _ => {
            let found = node.kind();
            return Err(Fault::new(
                node.at,
                format!("expected a number or an expression in quotes, found {found}"),
            ));
        }
    };
    if !value.is_finite() {
        return Err(Fault::new(node.at, format!("the number is {value}; it must be finite")));
    }
    if value.abs() > LARGEST_NUMBER {
        return Err(Fault::new(
            node.at,
            format!("the number is {value:e}; at most ±{LARGEST_NUMBER:e} is allowed"),
        ));
    }
    Ok(value)
}

/// A number above zero.
pub fn positive(node: &Node, name: &str, variables: &Variables) -> Read<f64> {
    match number(node, variables)? {
        v if v > 0.0 => Ok(v),
        v => Err(Fault::new(node.at, format!("`{name}` is {v}; it must be greater than 0"))),
    }
}

/// A number that is zero or more.
pub fn not_negative(node: &Node, name: &str, variables: &Variables) -> Read<f64> {
    match number(node, variables)? {
        v if v >= 0.0 => Ok(v),
        v => Err(Fault::new(node.at, format!("`{name}` is {v}; it must not be negative"))),
    }
}

/// A whole number from 0 to `most`.
pub fn count(node: &Node, most: usize, variables: &Variables) -> Read<usize> {
    let v = number(node, variables)?;
    // 1e-9: an expression such as 20 / 0.2 may miss its whole number by rounding.
    if (v - v.round()).abs() > 1e-9 * v.abs().max(1.0) || v < -1e-9 {
        return Err(Fault::new(node.at, format!("expected a whole number, found {v}")));
    }
    if v > most as f64 {
        return Err(Fault::new(node.at, format!("the count is {v}; at most {most} is allowed")));
    }
    Ok(v.round() as usize)
}

/// `true`, `false`, or a number that is not zero.
pub fn flag(node: &Node, variables: &Variables) -> Read<bool> {
    match &node.value {
        Value::Bool(b) => Ok(*b),
        Value::Text(_) => Ok(number(node, variables)? != 0.0),
        _ => Err(Fault::new(node.at, format!("expected true or false, found {}", node.kind()))),
    }
}

/// The items of a list or tuple.
pub fn items<'a>(node: &'a Node, what: &str) -> Read<&'a [Node]> {
    match &node.value {
        Value::List(items) | Value::Tuple(_, items) => Ok(items),
        _ => Err(Fault::new(node.at, format!("expected {what}, found {}", node.kind()))),
    }
}

/// `(x, y, z)` with every number within the largest length.
pub fn vector(node: &Node, variables: &Variables) -> Read<DVec3> {
    let parts = items(node, "a vector `(x, y, z)`")?;
    let [x, y, z] = parts else {
        return Err(Fault::new(
            node.at,
            format!("expected a vector `(x, y, z)`, found {} numbers", parts.len()),
        ));
    };
    let mut v = DVec3::ZERO;
    for (axis, part) in [x, y, z].into_iter().enumerate() {
        v[axis] = number(part, variables)?;
        if v[axis].abs() > LARGEST_LENGTH {
            let message = format!("the number is {:e}; at most ±{LARGEST_LENGTH:e} is allowed here", v[axis]);
            return Err(Fault::new(part.at, message));
        }
    }
    Ok(v)
}

/// A vector with a direction, normalized.
pub fn direction(node: &Node, variables: &Variables) -> Read<DVec3> {
    let v = vector(node, variables)?;
    v.try_normalize()
        .ok_or_else(|| Fault::new(node.at, format!("the vector {v} has no direction; it must not be zero")))
}

/// `Quat(x, y, z, w)`, `Axis((x, y, z), degrees)`, `Degrees(x, y, z)` (about the fixed axes, x first),
/// `Along((x, y, z))` (turns local +y there: capsules, cylinders and cones stand along y).
pub fn rotation(node: &Node, variables: &Variables) -> Read<DQuat> {
    let known = ["Quat", "Axis", "Degrees", "Along"];
    let (Value::Tuple(Some(name), parts), at) = (&node.value, node.at) else {
        let found = node.kind();
        let message =
            format!("expected a rotation such as `Axis((0, 0, 1), 90)` or `Quat(0, 0, 0, 1)`, found {found}");
        return Err(Fault::new(node.at, message));
    };
    let wrong = |usage: &str| Fault::new(at, format!("expected `{usage}`, found {} values", parts.len()));
    match (name.as_str(), parts.as_slice()) {
        ("Quat", [x, y, z, w]) => {
            let q: Vec<f64> = [x, y, z, w].into_iter().map(|n| number(n, variables)).collect::<Read<_>>()?;
            unit(DQuat::from_xyzw(q[0], q[1], q[2], q[3]), at)
        }
        ("Quat", _) => Err(wrong("Quat(x, y, z, w)")),
        ("Axis", [axis, degrees]) => {
            let axis = direction(axis, variables)?;
            Ok(math::rotation(axis, number(degrees, variables)?.to_radians()))
        }
        ("Axis", _) => Err(wrong("Axis((x, y, z), degrees)")),
        ("Degrees", [x, y, z]) => {
            let angle = |n| number(n, variables).map(f64::to_radians);
            let (x, y, z) = (angle(x)?, angle(y)?, angle(z)?);
            Ok(math::rotation(DVec3::Z, z) * math::rotation(DVec3::Y, y) * math::rotation(DVec3::X, x))
        }
        ("Degrees", _) => Err(wrong("Degrees(x, y, z)")),
        ("Along", [to]) => Ok(along(direction(to, variables)?)),
        ("Along", [_, _, _]) => {
            let to = Node { value: Value::Tuple(None, parts.clone()), at };
            Ok(along(direction(&to, variables)?))
        }
        ("Along", _) => Err(wrong("Along((x, y, z))")),
        (other, _) => Err(Fault::new(
            at,
            format!("there is no rotation `{}`{}", shorten(other), suggestion(other, known)),
        )),
    }
}

/// The shortest rotation that turns +y to `to`.
pub fn along(to: DVec3) -> DQuat {
    DQuat::from_rotation_arc(DVec3::Y, to).normalize()
}

fn unit(q: DQuat, at: Span) -> Read<DQuat> {
    let length = q.length();
    if length == 0.0 {
        return Err(Fault::new(
            at,
            "the quaternion is zero; it turns nowhere: write Quat(0, 0, 0, 1) for no rotation",
        ));
    }
    // 1e-3: hand-written quaternions have three to four digits.
    if (length - 1.0).abs() > 1e-3 {
        return Err(Fault::new(
            at,
            format!("the quaternion has length {length:.6}; a rotation has length 1"),
        ));
    }
    Ok(q.normalize())
}

/// A bare word or a text.
pub fn word(node: &Node) -> Read<&str> {
    match &node.value {
        Value::Word(w) | Value::Text(w) => Ok(w),
        _ => Err(Fault::new(node.at, format!("expected a word, found {}", node.kind()))),
    }
}

/// One of the given words.
pub fn choice<T: Copy>(node: &Node, what: &str, choices: &[(&'static str, T)]) -> Read<T> {
    let word = word(node)?;
    choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(|| {
        let hint = suggestion(word, choices.iter().map(|(n, _)| *n));
        Fault::new(node.at, format!("there is no {what} `{}`{hint}", shorten(word)))
    })
}

/// A text in which every `{expression}` is replaced by its value.
pub fn text(node: &Node, variables: &Variables) -> Read<String> {
    let (Value::Text(raw) | Value::Word(raw)) = &node.value else {
        return Err(Fault::new(node.at, format!("expected a text in quotes, found {}", node.kind())));
    };
    if !raw.contains('{') {
        return Ok(raw.clone());
    }
    let fault = |message: String| Fault::new(node.at, message);
    let mut out = String::with_capacity(raw.len() + 8);
    let mut rest = raw.as_str();
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        let close = after.find('}').ok_or_else(|| fault("expected `}` after `{` in the text".into()))?;
        let value = Expr::parse(&after[..close]).and_then(|e| e.value(variables)).map_err(fault)?;
        out.push_str(&format!("{value}"));
        if out.len() > 2_000 {
            return Err(fault("the text grows beyond 2,000 bytes".into()));
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// An expression of time: `$t` stays open.
pub fn motion(node: &Node, variables: &Variables) -> Read<Expr> {
    match &node.value {
        Value::Text(t) => {
            let e = Expr::parse(t).and_then(|e| e.bind(variables, &["t"]));
            e.map_err(|m| Fault::new(node.at, m))
        }
        _ => number(node, variables).map(Expr::Number),
    }
}
