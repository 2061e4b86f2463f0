//! Every tunable, with unit, default and nominal range.

pub mod table;

pub use crate::solver::Method;
use crate::solver::mixed::{Kernels, MixedOptions};
use glam::DVec3;

/// How bodies are grouped for the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Partitioning {
    /// One problem per island.
    None,
    /// As the users' `PartitionHint`s say.
    Semantic,
    /// Algorithm 2 of the paper, with at most this many bodies a partition.
    MinDegree(u32),
    /// Whatever the cost model finds best.
    #[default]
    Auto,
}

impl std::fmt::Display for Partitioning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Partitioning::None => f.write_str("none"),
            Partitioning::Semantic => f.write_str("semantic"),
            Partitioning::MinDegree(n) => write!(f, "min-degree:{n}"),
            Partitioning::Auto => f.write_str("auto"),
        }
    }
}

impl std::str::FromStr for Partitioning {
    type Err = String;

    fn from_str(s: &str) -> Result<Partitioning, String> {
        let expected = || format!("\"{s}\" is not none, semantic, min-degree:N (N ≥ 2) or auto");
        match s {
            "none" => Ok(Partitioning::None),
            "semantic" => Ok(Partitioning::Semantic),
            "auto" => Ok(Partitioning::Auto),
            _ => match s.strip_prefix("min-degree:").and_then(|n| n.parse().ok()) {
                Some(n) if n >= 2 => Ok(Partitioning::MinDegree(n)),
                _ => Err(expected()),
            },
        }
    }
}

/// How time advances; both take one solve a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Integrator {
    /// Half a step of free flight, impulses, half a step of free flight: second order, exact parabolas.
    #[default]
    Midpoint,
    /// Impulses, then the whole step with the new velocity (000 eqs. 2, 6): first order.
    SemiImplicit,
}

/// What bounds friction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FrictionLaw {
    /// Two tangent rows with bounds of their own from the normal impulses of the last steps (000 eq. 11): what slides one way is held
    /// across it.
    #[default]
    Box,
    /// Coulomb's cone, in the same solve as the normal impulses. Solvers that decide all rows of a group together have it (`auto`,
    /// `bpp`, `ipm`, `schur-ipm`); under the others friction stays a box.
    Cone,
}

/// What a game or a simulation sets. Change fields between steps as you like: a number that is out of its range ([`table`]) is told
/// in the next step's report, and the last one that was within is put back.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Gravity (m/s²). Default (0, 0, −9.81).
    pub gravity: DVec3,
    /// Pipeline runs per step, each of `dt / substeps`. Default 1, nominal 1–8.
    pub substeps: u32,
    /// How time advances. Default midpoint.
    pub integrator: Integrator,
    /// Which solver. Default `auto`.
    pub method: Method,
    /// How bodies are grouped. Default `auto`.
    pub partitioning: Partitioning,
    /// Forces the plain kernels, so that results have the same bits on every platform. Default no.
    pub plain_kernels: bool,
    /// Compliance C of rigid rows (m/s per N·s; rad/s per N·m·s). A force F opens a joint by h²CF: 3 µm for 10 kN at the
    /// default of 1e-6, which is also what makes the forces of redundant joints well determined. It is the greatest: between
    /// heavy bodies C is 1e-7 of J M⁻¹ Jᵀ, so that joints open by no more of the way that their forces move them.
    /// Nominal 1e-10–1e-6.
    pub joint_compliance: f64,
    /// Distance (m) at which surfaces are looked at before they touch, beyond what their speed asks for; small bodies
    /// use a twentieth of their size. Default 5 mm.
    pub contact_margin: f64,
    /// Slower approaches (m/s) do not bounce; neither do those slower than what presses the surfaces together makes in a step and a half.
    /// Default 0.01.
    pub bounce_threshold: f64,
    /// Impulse (N·s) of a blow above which `ContactEvent::Hit` is sent, if the surfaces also approach faster than
    /// `bounce_threshold`; bodies may have a `HitThreshold` of their own. Default infinite: none.
    pub impulse_event_threshold: f64,
    /// Do islands at rest fall asleep? Default yes.
    pub sleep: bool,
    /// Speed (m/s, and rad/s times the body's size) below which a body counts as at rest, unless it gains a tenth of that in
    /// `sleep_time`, as a swing does where it turns. Default 1 mm/s.
    pub sleep_speed: f64,
    /// Seconds at rest before an island falls asleep. Default 0.5.
    pub sleep_time: f64,
    /// Are energy and joint error measured after each step? Default yes; costs one evaluation of the constraints.
    pub measure: bool,
    /// Law of friction. Default box.
    pub friction_law: FrictionLaw,
    /// How large groups are cut and how their parts meet.
    pub coupling: CouplingOptions,
    /// What the engine has found to be right for every scene so far.
    pub tuning: Tuning,
}

/// How large groups are cut and how their parts meet: what the papers compare.
#[derive(Clone, Debug, PartialEq)]
pub struct CouplingOptions {
    /// Threads that `Partitioning::Auto` cuts for. Results depend on it and not on the threads there are, so that they have
    /// the same bits everywhere. Default 2, nominal 2–16.
    pub parallelism: u32,
    /// Runs `schur-bpp` and `schur-pgs-sm` to the letter of the paper: block pivoting in every partition, no breaking of
    /// cycles, no last linear pass. Default no.
    pub as_published: bool,
    /// Solver of the rows inside partitions of the `schur-*` methods and `fbic`; none is the one that suits their rows.
    pub partition_solver: Option<Method>,
    /// Partitions of fewer rows keep their direct solver whatever `partition_solver` says. Default 0.
    pub partition_solver_rows: u32,
    /// Solver of the interface of the `schur-*` methods; none is what the method's name says.
    pub interface_solver: Option<Method>,
    /// Coupling iterations before the loop gives up. Default 10 (000 Table 1).
    pub max_iterations: u32,
}

/// Numbers of the methods themselves. The defaults hold in all shipped scenes; a scene that needs another value is worth a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Do solves start from the last step's impulses and index sets? Default yes.
    pub warm_start: bool,
    /// Share of a two-sided rigid row's violation corrected in a step (Baumgarte). Default 1: the exact solver takes back the
    /// correction's velocity in the next step. Nominal 0.1–1.
    pub joint_correction: f64,
    /// The same for stops, ropes and other one-sided rows, which would keep that velocity as a bounce. Default 0.2.
    pub stop_correction: f64,
    /// Greatest velocity of a correction (m/s or rad/s). Default 4.
    pub max_correction_speed: f64,
    /// Compliance of the normal rows of contacts, relative to the inverse mass of the lighter body: C is this over the
    /// mass (m/s per N·s). A body sinks by this × g h² / β of its weight: 14 nm at the default 1e-6 (and h = 1/60, with
    /// `contact_correction` β = 0.2). Nominal 1e-8–1e-5.
    pub contact_compliance: f64,
    /// Compliance of friction rows, likewise relative: a body held by friction creeps by at most this × g h, 16 nm/s at
    /// the default 1e-7.
    pub friction_compliance: f64,
    /// Share of a penetration recovered in a step. Default 0.2, nominal 0.05–0.5.
    pub contact_correction: f64,
    /// Greatest velocity of recovery (m/s): what overlaps parts without a jump. Default 0.3.
    pub max_recovery_speed: f64,
    /// How often a step may be solved again because surfaces would overlap after it: where bodies are led by the velocities
    /// just found is looked at, and what would go into each other there gets rows of its own. Default 16: most
    /// steps need none, a log whose end whirls into another needed more than twelve. With 0 only what is near at
    /// the start of the step is held.
    pub contact_passes: u32,
    /// What surfaces may overlap by after the step before that (m); a hundredth of their size for small bodies. The second
    /// time it may be twice that, and so on. Default 1 mm.
    pub contact_tolerance: f64,
    /// How often a step may be solved again to bound the friction of points that are new (000 §8.2): they stick in the
    /// first pass, and get the bounds of its normal impulses in the second. Default 1; with 0 friction begins one step
    /// after the contact.
    pub friction_passes: u32,
    /// Share of an island's friction by which new points must exceed their bounds to be worth a pass. Default 0.01.
    pub friction_tolerance: f64,
    /// Share by which the mean normal impulse that bounds friction follows the last step's; 1 is the box friction of
    /// 000 eq. 11 to the letter. Default 0.5.
    pub friction_follow: f64,
    /// β: this share of h²K, K the geometric stiffness of constraint forces, is added to the mass blocks. Above ¼ the
    /// transverse swing of a taut light chain is stable whatever its tension; what is beyond ¼ is for tension that
    /// grows from one step to the next. Zero leaves it out. Default 0.5, nominal 0.3–0.6.
    pub geometric_stiffness: f64,
    /// ε: this share of h²K damps the turning of neighbours against each other, which keeps slack chains quiet when they
    /// snap taut; their common swing, and any motion that the step resolves, does not feel it. Default 0.5, nominal 0.1–1.
    pub stiffness_damping: f64,
    /// How often a step is solved again because joints would be open by more than `refine_tolerance` after it, this time
    /// along the curve that the bodies take. Default 1, nominal 0–2.
    pub refine: u32,
    /// What a joint may be open by before that (m, or rad). Default 0.5 mm.
    pub refine_tolerance: f64,
    /// Newton iterations for joints that are surprised: by forces of which the last step knew nothing (a chain snapping
    /// taut, a blow), or by links that whirl. Default 16; most such steps need three. Zero leaves the surprise in.
    pub newton: u32,
    /// Iterations of post-step projection (Cline and Pai), which puts the bodies of two-sided joints exactly together after
    /// each step, for mechanisms that must not drift. Each costs about a solve. Default 0, nominal 0–3.
    pub projection: u32,
    /// Velocities beyond this (m/s, or rad/s) count as absurd and are quarantined. Default 1e6.
    pub max_speed: f64,
    /// Positions beyond this (m) count as absurd and are quarantined. Default 1e9.
    pub max_position: f64,
}

impl Settings {
    /// Is friction Coulomb's cone under these settings?
    pub(crate) fn has_cones(&self) -> bool {
        let decides_all = matches!(self.method, Method::Auto | Method::Bpp | Method::Ipm | Method::SchurIpm);
        self.friction_law == FrictionLaw::Cone && decides_all
    }

    /// Choices of every factorization of a step: the one place that makes them.
    pub fn solver_options(&self) -> MixedOptions {
        let kernels = if self.plain_kernels { Kernels::Plain } else { Kernels::Auto };
        MixedOptions { kernels, ..MixedOptions::default() }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            gravity: DVec3::new(0.0, 0.0, -9.81),
            substeps: 1,
            integrator: Integrator::Midpoint,
            method: Method::Auto,
            partitioning: Partitioning::Auto,
            plain_kernels: false,
            joint_compliance: 1e-6,
            contact_margin: 5e-3,
            bounce_threshold: 0.01,
            impulse_event_threshold: f64::INFINITY,
            sleep: true,
            sleep_speed: 1e-3,
            sleep_time: 0.5,
            measure: true,
            friction_law: FrictionLaw::default(),
            coupling: CouplingOptions::default(),
            tuning: Tuning::default(),
        }
    }
}

impl Default for CouplingOptions {
    fn default() -> CouplingOptions {
        CouplingOptions {
            parallelism: 2,
            as_published: false,
            partition_solver: None,
            partition_solver_rows: 0,
            interface_solver: None,
            max_iterations: 10,
        }
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            warm_start: true,
            joint_correction: 1.0,
            stop_correction: 0.2,
            max_correction_speed: 4.0,
            contact_compliance: 1e-6,
            friction_compliance: 1e-7,
            contact_correction: 0.2,
            max_recovery_speed: 0.3,
            contact_passes: 16,
            contact_tolerance: 1e-3,
            friction_passes: 1,
            friction_tolerance: 0.01,
            friction_follow: 0.5,
            geometric_stiffness: 0.5,
            stiffness_damping: 0.5,
            refine: 1,
            refine_tolerance: 5e-4,
            newton: 16,
            projection: 0,
            max_speed: 1e6,
            max_position: 1e9,
        }
    }
}
