//! What constraints and subsystems couple beside rows becomes elements: blocks of A and parts of p.

use super::rows::{Discrete, Ease, LARGEST, discretise, distinct, is_sound, merged};
use crate::constraint::row::Coupled;
use crate::linalg::dense::DenseLdl;
use crate::report::Trouble;
use crate::settings::Settings;
use crate::state::{Bodies, Rows};
use hecs::Entity;

/// Share of the largest number of a block that its symmetry and its least eigenvalue may miss by: round-off of what an element adds up.
const ROUND_OFF: f64 = 1e-9;

/// What one constraint couples.
pub(super) struct Element<'a, const N: usize> {
    pub entity: Entity,
    pub slots: &'a [u32; N],
    pub coupled: &'a Coupled<N>,
}

/// Memory for the test of blocks.
#[derive(Default)]
pub(super) struct Definite {
    factor: DenseLdl,
    shift: Vec<f64>,
}

impl<const N: usize> Element<'_, N> {
    /// Appends the element; none of it, and the reason, if it is no number or could give energy.
    pub fn store(
        &self,
        out: &mut Rows,
        bodies: &Bodies,
        (settings, dt): (&Settings, f64),
        definite: &mut Definite,
    ) -> Result<(), Trouble> {
        let entity = self.entity;
        let Coupled { rows, blocks } = self.coupled;
        if !rows.iter().all(is_sound) || !blocks.iter().all(|x| x.abs() <= LARGEST) {
            return Err(Trouble::BadRow { entity });
        }
        let size = 36 * N * N;
        if !blocks.chunks_exact(size + 6 * N).all(|block| definite.holds(&block[..size], 6 * N)) {
            return Err(Trouble::Indefinite { entity });
        }
        let (mut own, mut count) = ([0; N], 0);
        for (_, slot) in distinct(self.slots) {
            own[count] = slot;
            count += 1;
        }
        let ease = self.slots.map(|slot| Ease::of(bodies, slot));
        let (mut matrix, mut impulse) = ([[[0.0; 36]; N]; N], [[0.0; 6]; N]);
        for row in rows {
            let tied = row.jacobian.iter().zip(&ease).map(|(twist, ease)| ease.along(twist)).sum();
            let Discrete { compliance, d, .. } = discretise(row, settings, tied, dt);
            let mut j = [[0.0; 6]; N];
            merged(row, self.slots, bodies).zip(&mut j).for_each(|(from, to)| *to = from);
            for a in 0..count {
                (0..6).for_each(|i| impulse[a][i] -= j[a][i] * d / compliance);
                for b in a..count {
                    (0..36).for_each(|k| matrix[a][b][k] += j[a][k / 6] * j[b][k % 6] / compliance);
                }
            }
        }
        let width = |a: usize| if bodies.view[own[a] as usize].rotates() { 6 } else { 3 };
        // Places of one body that is named twice all belong to it.
        let of = |a: usize| (0..N).filter(move |&k| self.slots[k] == own[a]);
        for block in blocks.chunks_exact(size + 6 * N) {
            for a in 0..count {
                for i in 0..width(a) {
                    impulse[a][i] += of(a).map(|k| block[size + 6 * k + i]).sum::<f64>();
                    for (b, between) in matrix[a].iter_mut().enumerate().take(count).skip(a) {
                        for j in 0..width(b) {
                            let both = of(a).flat_map(|k| of(b).map(move |l| (k, l)));
                            between[6 * i + j] +=
                                both.map(|(k, l)| symmetric(block, 6 * N, 6 * k + i, 6 * l + j)).sum::<f64>();
                        }
                    }
                }
            }
        }
        out.couplings.push(entity, &own[..count], |a, b| matrix[a][b], |a| impulse[a]);
        Ok(())
    }
}

/// The mean of two numbers that differ by round-off.
fn symmetric(block: &[f64], n: usize, i: usize, j: usize) -> f64 {
    0.5 * (block[n * i + j] + block[n * j + i])
}

impl Definite {
    /// Is a matrix symmetric, and does it take energy from every motion or none?
    fn holds(&mut self, matrix: &[f64], n: usize) -> bool {
        let size = matrix.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let gap = |i: usize, j: usize| (matrix[n * i + j] - matrix[n * j + i]).abs();
        self.shift.clear();
        self.shift.resize(n, ROUND_OFF * size);
        (0..n).all(|i| (0..i).all(|j| gap(i, j) <= ROUND_OFF * size))
            && (size == 0.0 || self.factor.factor(n, matrix, |_| true, &self.shift) == 0)
    }
}
