//! A partition is whatever answers three questions.
//!
//! How would your handles move with no impulse at the interface? How do they respond to an impulse there? Take this
//! impulse and finish your step. [`Partition`] is those questions; [`rigid`] answers them for rigid bodies under
//! joints and contacts. The coupling sees nothing else of a partition, so an arm in reduced coordinates, a
//! cloth or a foreign simulator can sit at the same interface.

// Matrix letters of the papers are capital; they stay so here.
#![allow(non_snake_case)]

pub mod rigid;

/// The three questions, and what the coupling loop needs to know of the answers' life.
///
/// A handle is one interface row that touches the partition; vectors hold one number per handle, in the order of
/// [`handles`](Partition::handles). Between two calls of [`finish`](Partition::finish) the partition responds linearly:
/// with impulse λ its handles move at `free_motion + response λ`.
pub trait Partition {
    /// Interface rows that touch this partition, ascending.
    fn handles(&self) -> &[u32];

    /// Velocity of the handles with no impulse at the interface (its term of z_Γ, 000 eq. 25).
    fn free_motion(&mut self, velocity: &mut [f64]);

    /// Inverse effective mass at the handles: symmetric, row by row (its term of S_Γ, 000 eq. 24).
    fn response(&mut self, inverse_mass: &mut [f64]);

    /// Takes the impulse and finishes the step (000 eq. 16). True if the partition now moves and responds differently,
    /// because contacts opened, closed, stuck or slipped.
    fn finish(&mut self, impulse: &[f64]) -> bool;

    /// Takes the impulse without changing its mind about anything: the linear answer of `free_motion` and `response`.
    fn finish_linear(&mut self, impulse: &[f64]) {
        self.finish(impulse);
    }

    /// Begins a step of refinement: the velocity of the handles as they move now, the partition's own round-off
    /// corrected; false if the partition does not refine. Stiff partitions under large impulses need it: there the
    /// last bit of an impulse moves a light body by more than the answer may be wrong.
    fn begin_refinement(&mut self, velocity: &mut [f64]) -> bool {
        let _ = velocity;
        false
    }

    /// Ends the step: the impulses change by `step`, nobody changes his mind.
    fn end_refinement(&mut self, step: &[f64]) {
        let _ = step;
    }

    /// Goes back to the free motion and response before the last [`finish`](Partition::finish).
    fn revert(&mut self) {}

    /// A checksum of what decides its response; equal sums over several passes mean a cycle.
    fn checksum(&self) -> u64 {
        0
    }
}

impl<P: Partition + ?Sized> Partition for Box<P> {
    fn handles(&self) -> &[u32] {
        (**self).handles()
    }
    fn free_motion(&mut self, velocity: &mut [f64]) {
        (**self).free_motion(velocity);
    }
    fn response(&mut self, inverse_mass: &mut [f64]) {
        (**self).response(inverse_mass);
    }
    fn finish(&mut self, impulse: &[f64]) -> bool {
        (**self).finish(impulse)
    }
    fn finish_linear(&mut self, impulse: &[f64]) {
        (**self).finish_linear(impulse);
    }
    fn begin_refinement(&mut self, velocity: &mut [f64]) -> bool {
        (**self).begin_refinement(velocity)
    }
    fn end_refinement(&mut self, step: &[f64]) {
        (**self).end_refinement(step);
    }
    fn revert(&mut self) {
        (**self).revert();
    }
    fn checksum(&self) -> u64 {
        (**self).checksum()
    }
}
