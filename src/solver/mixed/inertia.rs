//! A⁻¹ where A is not block diagonal: the factor of the nodes and their couplings without any row.

use super::MixedSystem;
use crate::solver::RowProblem;

/// Divides momenta by a coupled A. The solvers that decide rows do not need it (there A is part of the mixed form); sweeps, products
/// with the matrix form and the response to impulses that no factorization has found do.
#[derive(Clone, Debug, Default)]
pub struct CoupledInertia {
    nodes: RowProblem,
    system: MixedSystem,
    v: Vec<f64>,
}

impl CoupledInertia {
    /// Takes the nodes and couplings of a problem and factors them.
    pub fn load(&mut self, problem: &RowProblem) {
        let RowProblem { width, mass, momentum, couplings, .. } = &mut self.nodes;
        width.clone_from(&problem.width);
        mass.clone_from(&problem.mass);
        momentum.clone_from(&problem.momentum);
        couplings.clone_from(&problem.couplings);
        self.system.load(&self.nodes);
        self.system.factor(&self.nodes, &[], None);
        self.v.resize(6 * problem.bodies(), 0.0);
    }

    /// q := A⁻¹ q. One refinement: the mixed form keeps some 1e-7 of stiff problems and gives the rest back with it.
    pub fn divide(&mut self, q: &mut [f64]) {
        self.system.solve(&self.nodes, q, &[], &mut self.v, &mut [], 1);
        q.copy_from_slice(&self.v);
    }
}
