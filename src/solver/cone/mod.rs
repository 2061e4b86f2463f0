//! Coulomb friction, exactly: cones beside boxes.
//!
//! ```text
//!     w = A λ + b ,   K ∋ λ ⟂ (w_n + μ|w_t|, w_t) ∈ K*          (De Saxcé's form of Signorini's and Coulomb's laws)
//! ```
//!
//! | file | what |
//! |---|---|
//! | `law` | the laws of all rows in one place, residuals, labels |
//! | `jordan` | the algebra of the cone, Nesterov–Todd scaling |
//! | `newton` | the warm way: pieces of the law, one symmetric factorization a step |
//! | `interior` | the way from anywhere: interior point with De Saxcé's shift as an unknown |
//! | `krylov` | GMRES for the few unknowns that are not symmetric |
//! | `system` | what both need of a linear system; `dense` and `rows` have it |

pub mod dense;
pub mod interior;
pub mod jordan;
pub mod krylov;
pub mod law;
pub mod newton;
pub mod rows;
pub mod system;

use super::{Label, Method, Settings, SolveStats};
use interior::{InteriorMemory, InteriorSettings, Pause};
use law::Laws;
use newton::{BestPoint, From, NewtonMemory, NewtonSettings};
use system::ConeSystem;

/// Relative residual of an interior point at which its pieces are tried for the first time; then at every decade below. Earlier than that
/// most of them are wrong.
const TRIED: f64 = 1e-3;

/// Memory of the solvers of cones, kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct ConeMemory {
    /// The laws of the problem.
    pub laws: Laws,
    /// The best point of the last solve.
    pub best: BestPoint,
    newton: NewtonMemory,
    interior: InteriorMemory,
}

impl ConeMemory {
    /// Solves a problem whose laws have been taken: from the labels and impulses of the last step where there are any, else cold.
    pub fn solve<S: ConeSystem>(
        &mut self,
        system: &mut S,
        method: Method,
        start: Option<(&[Label], &[f64])>,
        settings: &Settings,
    ) -> SolveStats {
        let mut stats = SolveStats::default();
        self.best.reset();
        match method {
            Method::Pgs | Method::PgsSm => self.sweep(system, start, settings, &mut stats),
            Method::Ipm | Method::SchurIpm => self.solve_cold(system, settings, &mut stats),
            _ => {
                if let Some((labels, lambda)) = start {
                    let warm = NewtonSettings {
                        steps: settings.warm_pivots,
                        target: settings.target,
                        ..NewtonSettings::default()
                    };
                    let ConeMemory { laws, best, newton, .. } = self;
                    stats.pivots += newton.run(system, laws, From::Labels(labels, lambda), &warm, best);
                }
                if self.best.residual > settings.tolerance || start.is_none() {
                    self.solve_cold(system, settings, &mut stats);
                }
            }
        }
        system.count(&mut stats);
        stats
    }

    /// Interior point; from a thousandth on, and at every decade, the pieces of its iterate.
    fn solve_cold<S: ConeSystem>(&mut self, system: &mut S, settings: &Settings, stats: &mut SolveStats) {
        let ConeMemory { laws, best, newton, interior } = self;
        let inner = InteriorSettings {
            max_iterations: settings.max_iterations,
            target: settings.target,
            ..InteriorSettings::default()
        };
        let polish = NewtonSettings { target: settings.target, ..NewtonSettings::default() };
        interior.start(system, laws, &inner);
        let mut until = TRIED;
        loop {
            let pause = interior.proceed(system, laws, &inner, until);
            let found = interior.best();
            until = 0.1 * found.residual.min(until);
            best.offer(&found.lambda, &found.w, found.residual);
            if pause == Pause::Arrived {
                break;
            }
            let (lambda, w) = (found.lambda.clone(), found.w.clone());
            stats.pivots += newton.run(system, laws, From::Point(&lambda, &w), &polish, best);
            if best.residual <= settings.tolerance || pause == Pause::Over {
                break;
            }
        }
        stats.ipm_iterations += interior.iterations();
    }

    fn sweep<S: ConeSystem>(
        &mut self,
        system: &mut S,
        start: Option<(&[Label], &[f64])>,
        settings: &Settings,
        stats: &mut SolveStats,
    ) {
        let mut lambda = start.map_or_else(|| vec![0.0; self.laws.lo.len()], |(_, lambda)| lambda.to_vec());
        let mut w = vec![0.0; lambda.len()];
        self.laws.project(&mut lambda);
        system.slack(&lambda, &mut w);
        // Every tenth sweep is looked at: a slack costs what a sweep costs.
        while stats.pivots < settings.max_sweeps {
            system.sweep(&self.laws, &mut lambda);
            stats.pivots += 1;
            if stats.pivots.is_multiple_of(10) || stats.pivots == settings.max_sweeps {
                system.slack(&lambda, &mut w);
                let (_, residual) = self.laws.residual(&lambda, &w, system.b());
                self.best.offer(&lambda, &w, residual);
                if residual <= settings.target {
                    return;
                }
            }
        }
    }
}
