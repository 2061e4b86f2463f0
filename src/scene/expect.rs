//! What a scene promises, in words a test can check.

use super::error::{Fault, Read, Span, suggestion};
use super::expr::Variables;
use super::read::{self, Fields};
use super::text::{Node, Value, shorten};
use glam::DVec3;

/// A promise of a scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What must hold.
    pub claim: Claim,
    /// The bodies it is about; empty for claims about the whole scene.
    pub bodies: Vec<u32>,
    /// How the author named them.
    pub pattern: String,
    /// From this time on (s).
    pub from: f64,
    /// Up to this time (s).
    pub until: f64,
    /// Only in the last step of the run.
    pub at_end: bool,
    /// Where the file says so.
    pub at: Span,
}

/// What must hold at every step of the time asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// No joint is open by more (m, or rad × 1 m).
    JointError(f64),
    /// No contact is deeper (m).
    Penetration(f64),
    /// The energy is not above that of the start by more (J).
    EnergyGain(f64),
    /// The natural residual of the MLCP is not larger.
    Residual(f64),
    /// Every centre of mass is above this height (m).
    Above(f64),
    /// Every centre of mass is below this height (m).
    Below(f64),
    /// Every body stays within this distance of where it was at `from` (m).
    MovesLess(f64),
    /// Every body is further than this from its start (m).
    MovesMore(f64),
    /// Every centre of mass is within this distance (m) of a point.
    Near(DVec3, f64),
    /// No body is faster (m/s).
    Slower(f64),
    /// Every body is at least this fast (m/s).
    Faster(f64),
    /// No body's up axis leans more from where it was at the start (rad).
    Upright(f64),
    /// Of the bodies, at least and at most so many are in a box (in the frame of a body, if one is given).
    Inside {
        /// Least corner.
        min: DVec3,
        /// Greatest corner.
        max: DVec3,
        /// The body in whose frame the box lies.
        of: Option<u32>,
        /// At least so many.
        at_least: usize,
        /// At most so many.
        at_most: usize,
    },
}

/// An expectation before names are looked up.
#[derive(Clone, Debug)]
pub struct ExpectationSpec {
    /// The promise, without bodies.
    pub expectation: Expectation,
    /// The frame of [`Claim::Inside`].
    pub of: Option<String>,
}

const CLAIMS: &[&str] = &[
    "JointError",
    "Penetration",
    "EnergyGain",
    "Residual",
    "Above",
    "Below",
    "Moves",
    "Near",
    "Speed",
    "Upright",
    "Inside",
];

/// Reads one expectation.
///
/// # Errors
/// Unknown claims and fields, missing numbers.
pub fn read_expectation(node: &Node, variables: &Variables) -> Read<ExpectationSpec> {
    let name = match &node.value {
        Value::Struct(Some(name), _) => name.as_str(),
        _ => "",
    };
    if !CLAIMS.contains(&name) {
        let hint = suggestion(name, CLAIMS.iter().copied());
        let found = if name.is_empty() { node.kind() } else { format!("`{}`", shorten(name)) };
        return Err(Fault::new(node.at, format!("expected something to expect, found {found}{hint}")));
    }
    let mut f = Fields::of(node, name, variables)?;
    let whole = matches!(name, "JointError" | "Penetration" | "EnergyGain" | "Residual");
    let pattern = if whole { String::new() } else { read::text(f.need("bodies")?, variables)? };
    let mut of = None;
    let claim = match name {
        "JointError" => Claim::JointError(f.need_positive("max")?),
        "Penetration" => Claim::Penetration(f.need_positive("max")?),
        "EnergyGain" => Claim::EnergyGain(f.need_positive("max")?),
        "Residual" => Claim::Residual(f.need_positive("max")?),
        "Above" => Claim::Above(read::number(f.need("z")?, variables)?),
        "Below" => Claim::Below(read::number(f.need("z")?, variables)?),
        "Moves" => match (f.positive("less")?, f.positive("more")?) {
            (Some(v), None) => Claim::MovesLess(v),
            (None, Some(v)) => Claim::MovesMore(v),
            _ => return Err(Fault::new(node.at, "`Moves` needs either `less` or `more`")),
        },
        "Speed" => match (f.positive("less")?, f.positive("more")?) {
            (Some(v), None) => Claim::Slower(v),
            (None, Some(v)) => Claim::Faster(v),
            _ => return Err(Fault::new(node.at, "`Speed` needs either `less` or `more`")),
        },
        "Near" => Claim::Near(f.need_vector("point")?, f.need_positive("within")?),
        "Upright" => Claim::Upright(f.need_positive("degrees")?.to_radians()),
        _ => {
            of = f.text("of")?;
            Claim::Inside {
                min: f.need_vector("min")?,
                max: f.need_vector("max")?,
                of: None,
                at_least: f.count("at_least", usize::MAX >> 12)?.unwrap_or(0),
                at_most: f.count("at_most", usize::MAX >> 12)?.unwrap_or(usize::MAX),
            }
        }
    };
    let expectation = Expectation {
        claim,
        bodies: Vec::new(),
        pattern,
        from: f.not_negative("from")?.unwrap_or(0.0),
        until: f.positive("until")?.unwrap_or(f64::INFINITY),
        at_end: f.flag("at_end")?.unwrap_or(false),
        at: node.at,
    };
    f.finish()?;
    Ok(ExpectationSpec { expectation, of })
}

impl Expectation {
    /// The promise as a sentence.
    pub fn sentence(&self) -> String {
        let who = &self.pattern;
        let what = match self.claim {
            Claim::JointError(v) => format!("no joint opens by more than {} mm", v * 1e3),
            Claim::Penetration(v) => format!("no contact is deeper than {} mm", v * 1e3),
            Claim::EnergyGain(v) => format!("no more than {v} J are gained"),
            Claim::Residual(v) => format!("the residual stays below {v:e}"),
            Claim::Above(z) => format!("{who} stays above z = {z} m"),
            Claim::Below(z) => format!("{who} stays below z = {z} m"),
            Claim::MovesLess(d) => format!("{who} moves less than {d} m"),
            Claim::MovesMore(d) => format!("{who} moves more than {d} m"),
            Claim::Near(p, d) => format!("{who} stays within {d} m of {p}"),
            Claim::Slower(v) => format!("{who} is slower than {v} m/s"),
            Claim::Faster(v) => format!("{who} is faster than {v} m/s"),
            Claim::Upright(a) => format!("{who} leans less than {:.1}°", a.to_degrees()),
            Claim::Inside { at_least, at_most, .. } => match (at_least, at_most) {
                (0, most) => format!("at most {most} of {who} are in the box"),
                (least, usize::MAX) => format!("at least {least} of {who} are in the box"),
                (least, most) => format!("{least} to {most} of {who} are in the box"),
            },
        };
        let when = match (self.at_end, self.from, self.until) {
            (true, ..) => " at the end".to_string(),
            (_, f, u) if f > 0.0 && u.is_finite() => format!(" from {f} s to {u} s"),
            (_, f, _) if f > 0.0 => format!(" from {f} s on"),
            (_, _, u) if u.is_finite() => format!(" until {u} s"),
            _ => String::new(),
        };
        what + &when
    }
}
