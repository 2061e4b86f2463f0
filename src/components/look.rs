//! How a body looks in replays and pictures. Nothing here changes the motion.

/// The colour a body is drawn in; bodies without one get a colour of the house palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Appearance {
    /// Red, green, blue (sRGB).
    pub color: [u8; 3],
}

/// What things are made of, by name: the colours scenes may ask for.
const NAMED: [(&str, [u8; 3]); 18] = [
    ("wood", [193, 145, 92]),
    ("bark", [128, 91, 62]),
    ("steel", [139, 151, 166]),
    ("iron", [84, 92, 104]),
    ("brass", [214, 170, 76]),
    ("concrete", [178, 176, 170]),
    ("brick", [188, 97, 74]),
    ("stone", [142, 139, 133]),
    ("rope", [206, 176, 124]),
    ("rubber", [58, 60, 66]),
    ("ground", [207, 208, 204]),
    ("white", [238, 238, 234]),
    ("red", [219, 84, 72]),
    ("orange", [240, 142, 60]),
    ("yellow", [240, 192, 74]),
    ("green", [98, 168, 112]),
    ("blue", [74, 132, 196]),
    ("violet", [140, 110, 186]),
];

impl Appearance {
    /// A colour by its red, green and blue (sRGB).
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Appearance {
        Appearance { color: [red, green, blue] }
    }

    /// A colour by name (`wood`, `steel`, `brick`, … see [`Appearance::names`]) or as `#rrggbb`.
    pub fn named(name: &str) -> Option<Appearance> {
        if let Some(hex) = name.strip_prefix('#') {
            let value = u32::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 6)?;
            let [_, red, green, blue] = value.to_be_bytes();
            return Some(Appearance::rgb(red, green, blue));
        }
        NAMED.iter().find(|(n, _)| *n == name).map(|&(_, color)| Appearance { color })
    }

    /// The names [`Appearance::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(n, _)| *n)
    }
}

/// Marks a body as one link of a cable, so that the cable is drawn as one smooth tube through its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CableLink {
    /// Which cable: any number, the same for all its links.
    pub cable: u32,
    /// Rank of the link along the cable.
    pub order: u32,
    /// Radius the cable is drawn with (m).
    pub radius: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_by_name_and_by_number() {
        assert_eq!(Appearance::named("#102030"), Some(Appearance::rgb(16, 32, 48)));
        assert_eq!(Appearance::named("#12"), None);
        assert_eq!(Appearance::named("mauve"), None);
        for name in Appearance::names() {
            assert!(Appearance::named(name).is_some());
        }
    }
}
