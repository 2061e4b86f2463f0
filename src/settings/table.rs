//! The table of all settings that are numbers: name, unit, range. Checks, words and documentation come from it.

use super::{Partitioning, Settings};
use crate::range::{OutOfRange, Range, Short};
use glam::DVec3;

/// One row of the table.
pub struct Setting {
    /// Name, unit and range.
    pub range: Range,
    /// Can it be given as one number?
    pub scalar: bool,
    /// Is it a whole number?
    pub whole: bool,
    get: fn(&Settings) -> [f64; 3],
    set: fn(&mut Settings, [f64; 3]),
    take: fn(&mut Settings, &Settings),
}

/// What a setting is made of: one number three times, or three.
trait Numbers: Copy {
    const SCALAR: bool = true;
    const WHOLE: bool = false;
    fn numbers(self) -> [f64; 3];
    fn of(numbers: [f64; 3]) -> Self;
}

impl Numbers for f64 {
    fn numbers(self) -> [f64; 3] {
        [self; 3]
    }
    fn of(numbers: [f64; 3]) -> f64 {
        numbers[0]
    }
}

impl Numbers for u32 {
    const WHOLE: bool = true;
    fn numbers(self) -> [f64; 3] {
        [f64::from(self); 3]
    }
    fn of(numbers: [f64; 3]) -> u32 {
        numbers[0] as u32
    }
}

impl Numbers for DVec3 {
    const SCALAR: bool = false;
    fn numbers(self) -> [f64; 3] {
        self.to_array()
    }
    fn of(numbers: [f64; 3]) -> DVec3 {
        DVec3::from_array(numbers)
    }
}

/// Bodies of a partition.
impl Numbers for Partitioning {
    const SCALAR: bool = false;
    fn numbers(self) -> [f64; 3] {
        let Partitioning::MinDegree(bodies) = self else { return [2.0; 3] };
        bodies.numbers()
    }
    fn of(numbers: [f64; 3]) -> Partitioning {
        Partitioning::MinDegree(numbers[0] as u32)
    }
}

/// Scalar? Whole? The type is inferred from the field.
const fn kind<T: Numbers>(_: fn(&Settings) -> &T) -> (bool, bool) {
    (T::SCALAR, T::WHOLE)
}

const ANY: f64 = f64::INFINITY;

macro_rules! table {
    ($($name:ident $($place:ident).+ : $unit:literal $least:literal $most:expr;)*) => {
        /// All of them, in the order of [`Settings`].
        pub const TABLE: &[Setting] = &[$(Setting {
            range: Range::new(stringify!($name), $unit, $least, $most),
            scalar: kind(|s| &s.$($place).+).0,
            whole: kind(|s| &s.$($place).+).1,
            get: |s| s.$($place).+.numbers(),
            set: |s, numbers| s.$($place).+ = Numbers::of(numbers),
            take: |s, from| s.$($place).+ = from.$($place).+,
        }),*];
    };
}

// The name in scenes and reports, and where it is.
table! {
    gravity gravity: "m/s²" -1e5 1e5;
    substeps substeps: "" 1.0 1e3;
    partitioning partitioning: "bodies" 2.0 1e6;
    joint_compliance joint_compliance: "m/s per N·s" 0.0 1e6;
    contact_margin contact_margin: "m" 0.0 10.0;
    bounce_threshold bounce_threshold: "m/s" 0.0 ANY;
    impulse_event_threshold impulse_event_threshold: "N·s" 0.0 ANY;
    sleep_speed sleep_speed: "m/s" 0.0 1e3;
    sleep_time sleep_time: "s" 0.0 ANY;
    parallelism coupling.parallelism: "threads" 1.0 1024.0;
    partition_solver_rows coupling.partition_solver_rows: "rows" 0.0 ANY;
    max_coupling_iterations coupling.max_iterations: "" 1.0 1e3;
    joint_correction tuning.joint_correction: "" 0.0 1.0;
    stop_correction tuning.stop_correction: "" 0.0 1.0;
    max_correction_speed tuning.max_correction_speed: "m/s" 0.0 ANY;
    contact_compliance tuning.contact_compliance: "" 1e-12 1e6;
    friction_compliance tuning.friction_compliance: "" 1e-12 1e6;
    contact_correction tuning.contact_correction: "" 0.0 1.0;
    max_recovery_speed tuning.max_recovery_speed: "m/s" 0.0 ANY;
    contact_passes tuning.contact_passes: "" 0.0 1e3;
    contact_tolerance tuning.contact_tolerance: "m" 0.0 10.0;
    friction_passes tuning.friction_passes: "" 0.0 100.0;
    friction_tolerance tuning.friction_tolerance: "" 0.0 ANY;
    friction_follow tuning.friction_follow: "" 0.0 1.0;
    geometric_stiffness tuning.geometric_stiffness: "" 0.0 10.0;
    stiffness_damping tuning.stiffness_damping: "" 0.0 10.0;
    refine tuning.refine: "" 0.0 100.0;
    refine_tolerance tuning.refine_tolerance: "m" 0.0 ANY;
    newton tuning.newton: "" 0.0 100.0;
    projection tuning.projection: "" 0.0 100.0;
    max_speed tuning.max_speed: "m/s" 1e-3 1e9;
    max_position tuning.max_position: "m" 1e-3 1e12;
}

impl Setting {
    /// The row of a name.
    pub fn of(name: &str) -> Option<&'static Setting> {
        TABLE.iter().find(|s| s.range.name == name)
    }

    /// Is it within its range?
    pub fn check(&self, settings: &Settings) -> Result<(), OutOfRange> {
        self.range.check_all((self.get)(settings))
    }
}

impl Settings {
    /// Sets the number called `name`: `settings.set("contact_margin", 0.01)`.
    ///
    /// # Errors
    /// A sentence: there is no such number, or its range.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let known = Setting::of(name).filter(|s| s.scalar);
        let setting = known.ok_or_else(|| format!("there is no setting `{name}` that is a number"))?;
        setting.range.check(value).map_err(|e| e.to_string())?;
        (setting.set)(self, [value; 3]);
        Ok(())
    }

    /// Puts numbers that are out of their range back to those of `good`, and tells each.
    pub(crate) fn mend(&mut self, good: &Settings, mut tell: impl FnMut(OutOfRange)) {
        for setting in TABLE {
            if let Err(bad) = setting.check(self) {
                (setting.take)(self, good);
                tell(bad);
            }
        }
    }
}

/// The table as it stands in `docs/settings.md`.
pub fn markdown() -> String {
    let defaults = Settings::default();
    let mut text = String::from("| setting | range | default |\n|---|---|---|\n");
    for setting in TABLE {
        let numbers = (setting.get)(&defaults);
        let default = match setting.range.name {
            "gravity" => format!("({}, {}, {})", numbers[0], numbers[1], numbers[2]),
            "partitioning" => defaults.partitioning.to_string(),
            _ => Short(numbers[0]).to_string(),
        };
        text += &format!("| `{}` | {} | {default} |\n", setting.range.name, setting.range);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_out_of_its_range_is_told_and_put_back() {
        let good = Settings::default();
        for setting in TABLE {
            let Range { name, least, most, .. } = setting.range;
            let mut bad = vec![];
            if !setting.whole && name != "partitioning" {
                bad.extend([f64::NAN, f64::NEG_INFINITY]);
            }
            if least > 0.0 || least < 0.0 && most.is_finite() {
                bad.push(least - 1.0);
            }
            if most < 1e9 {
                bad.push(most + 1.0);
            }
            assert_eq!(setting.check(&good), Ok(()), "{name}: the default is within");
            for number in bad {
                let (mut settings, mut told) = (good.clone(), Vec::new());
                (setting.set)(&mut settings, [number; 3]);
                settings.mend(&good, |bad| told.push(bad.to_string()));
                assert_eq!(settings, good, "{name} = {number}");
                assert!(told.len() == 1 && told[0].contains(&format!("`{name}`")), "{told:?}");
            }
        }
    }

    #[test]
    fn every_setting_that_is_a_number_is_in_the_table() {
        let text = format!("{:#?}", Settings::default());
        for line in text
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|l| !l.starts_with([' ', ')', '}']))
        {
            let Some((name, value)) = line.split_once(": ") else { continue };
            let number = value.trim_end_matches(',').parse::<f64>().is_ok() || value.starts_with("DVec3");
            assert!(!number || Setting::of(name).is_some(), "{name} has no range");
        }
    }

    #[test]
    fn words_set_numbers_within_their_ranges() {
        let mut settings = Settings::default();
        settings.set("contact_margin", 0.01).unwrap();
        settings.set("newton", 3.0).unwrap();
        assert_eq!((settings.contact_margin, settings.tuning.newton), (0.01, 3));
        let told = settings.set("contact_margin", f64::INFINITY).unwrap_err();
        assert_eq!(told, "`contact_margin` is inf; it must be from 0 to 10 m");
        assert!(settings.set("contact_marging", 1.0).is_err() && settings.set("gravity", 1.0).is_err());
    }
}
