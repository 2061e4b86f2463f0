//! The scenes, their lengths here, and what each must do to count as held.

/// What a scene must do to count as held.
pub struct Promise {
    /// Joints may open by this (m).
    pub joints: f64,
    /// Dynamic bodies whose name starts so …
    pub standing: &'static str,
    /// … may move by this (m) …
    pub moved: f64,
    /// … until then (s), …
    pub until: f64,
    /// … may lean by this against their start (degrees), …
    pub tilt: f64,
    /// … and may not be faster than this (m/s) from then on (s).
    pub resting_fraction: (f64, f64),
    /// Surfaces may overlap by this (m) …
    pub depth: f64,
    /// … from then on (s).
    pub depth_from: f64,
    /// A place that stays empty.
    pub empty: Option<Empty>,
}

/// No body whose name starts with `of` comes into this box, which moves with `with`.
pub struct Empty {
    pub of: &'static str,
    pub with: &'static str,
    pub least: [f64; 3],
    pub most: [f64; 3],
}

/// What the column of the path holds.
#[derive(Clone, Copy, PartialEq)]
pub enum Path {
    /// Largest distance of the load from our own run at so many substeps.
    Reference(u32),
    /// Farthest motion of what is to stand.
    Start,
    /// Nothing: it would rank no engine.
    Untold,
}

pub struct Case {
    pub name: &'static str,
    pub seconds: f64,
    /// Whose path is compared.
    pub load: &'static str,
    pub promise: Promise,
    pub path: Path,
}

const ANYTHING: Promise = Promise {
    joints: f64::INFINITY,
    standing: "",
    moved: f64::INFINITY,
    until: 0.0,
    tilt: f64::INFINITY,
    resting_fraction: (f64::INFINITY, 0.0),
    depth: f64::INFINITY,
    depth_from: 0.0,
    empty: None,
};

const fn jointed(name: &'static str, load: &'static str, seconds: f64, reference: u32) -> Case {
    let promise = Promise { joints: 1e-3, ..ANYTHING };
    Case { name, seconds, load, promise, path: Path::Reference(reference) }
}

const fn at_rest(name: &'static str, load: &'static str, seconds: f64, promise: Promise) -> Case {
    Case { name, seconds, load, promise, path: Path::Start }
}

const fn stands(standing: &'static str, moved: f64, until: f64, depth: f64) -> Promise {
    Promise { standing, moved, until, depth, ..ANYTHING }
}

/// Standing is 1 cm of motion and 5 mm of overlap, or what the scene file promises where it says more: log_tower's box
/// is dropped from 1 cm; wall is hit after half a second and stands until then. From cable_spinner on all is what the file promises.
pub const CASES: [Case; 16] = [
    jointed("chain_load", "load", 5.0, 16),
    jointed("net_load", "slab", 5.0, 16),
    jointed("rope_bridge", "ball", 4.0, 16),
    jointed("bridge", "plank_64", 1.0, 4),
    jointed("chain_wrap", "box", 4.0, 16),
    at_rest("stack", "heavy", 5.0, stands("", 0.01, 9.0, 5e-3)),
    at_rest("tower_boxes", "box", 5.0, stands("", 0.01, 9.0, 5e-3)),
    at_rest("log_tower", "box", 1.9, stands("box", 0.03, 1.9, 5e-3)),
    at_rest("wall", "brick_5_2", 2.0, stands("brick", 0.02, 0.45, 0.01)),
    Case {
        name: "cable_spinner",
        seconds: 4.0,
        load: "ball",
        promise: Promise { joints: 1e-3, depth: 0.01, ..ANYTHING },
        path: Path::Reference(4),
    },
    Case {
        name: "chain_drop",
        seconds: 10.0,
        load: "chain",
        // The file promises 0.02 rad of the universal joints' fourth row; the ruler sees anchors, as elsewhere.
        promise: Promise { joints: 1e-3, depth: 0.02, ..ANYTHING },
        path: Path::Untold,
    },
    Case {
        name: "rock_pile",
        seconds: 5.0,
        load: "shovel",
        promise: Promise {
            joints: 1e-3,
            depth: 0.03,
            empty: Some(Empty {
                of: "rock_",
                with: "shovel",
                least: [-9.0, -3.5, -2.0],
                most: [-0.1, 3.5, 1.0],
            }),
            ..ANYTHING
        },
        path: Path::Untold,
    },
    Case {
        name: "net_truck",
        seconds: 3.0,
        load: "truck/chassis",
        promise: Promise { joints: 1e-2, depth: 0.05, depth_from: 1.0, ..ANYTHING },
        path: Path::Reference(4),
    },
    Case {
        name: "tandem_cranes",
        seconds: 2.0,
        load: "pipe",
        promise: Promise { joints: 5e-3, depth: 0.03, ..ANYTHING },
        path: Path::Reference(4),
    },
    Case {
        name: "boxes",
        seconds: 4.0,
        load: "b_5_5_9",
        promise: Promise { standing: "b_", tilt: 3.0, resting_fraction: (0.05, 3.0), depth: 5e-3, ..ANYTHING },
        path: Path::Untold,
    },
    Case {
        name: "trucks",
        seconds: 2.0,
        load: "truck_1/chassis",
        promise: Promise { joints: 1e-2, ..ANYTHING },
        path: Path::Reference(4),
    },
];
