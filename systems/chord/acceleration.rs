//! Anderson's acceleration of the passes that share a factor.

/// Steps that are combined at most.
const DEPTH: usize = 3;

/// The last steps of a Newton's iteration with one factor.
#[derive(Default)]
pub(super) struct History {
    /// Differences of what was found, and of the points at which it was, newest last: velocities, then impulses.
    changes: Vec<[Vec<f64>; 2]>,
    kept: usize,
    /// The last step that was found, and the one that was taken.
    last: [Vec<f64>; 2],
    known: bool,
}

impl History {
    /// The factor is another one.
    pub fn forget(&mut self) {
        (self.kept, self.known) = (0, false);
    }

    /// Takes the step that was found and makes of it the one to take.
    pub fn accelerate(&mut self, dv: &mut [f64], dlambda: &mut [f64], mass: &[[f64; 36]]) {
        let n = dv.len();
        let found = || dv.iter().chain(dlambda.iter()).copied();
        if self.known {
            if self.kept == DEPTH {
                self.changes[..DEPTH].rotate_left(1);
                self.kept -= 1;
            }
            if self.changes.len() <= self.kept {
                self.changes.push(Default::default());
            }
            let [of_steps, of_points] = &mut self.changes[self.kept];
            of_steps.clear();
            of_steps.extend(found().zip(&self.last[0]).map(|(now, before)| now - before));
            of_points.clone_from(&self.last[1]);
            self.kept += 1;
        }
        self.last[0].clear();
        self.last[0].extend(found());
        let kept = &self.changes[..self.kept];
        let product = |a: &[f64], b: &[f64]| -> f64 {
            let bodies = mass.iter().zip(a.chunks_exact(6)).zip(b.chunks_exact(6));
            bodies.map(|((m, a), b)| (0..36).map(|k| a[k / 6] * m[k] * b[k % 6]).sum::<f64>()).sum()
        };
        let mut normal = [[0.0; DEPTH + 1]; DEPTH];
        for (i, [a, _]) in kept.iter().enumerate() {
            for (j, [b, _]) in kept.iter().enumerate() {
                normal[i][j] = product(&a[..n], &b[..n]);
            }
            normal[i][DEPTH] = product(&a[..n], dv);
        }
        let share = least_squares(&mut normal, self.kept);
        for (share, [of_steps, of_points]) in share.iter().zip(kept) {
            let both = of_steps.iter().zip(of_points);
            for (x, (s, p)) in dv.iter_mut().chain(dlambda.iter_mut()).zip(both) {
                *x -= share * (s + p);
            }
        }
        self.last[1].clear();
        self.last[1].extend(dv.iter().chain(dlambda.iter()));
        self.known = true;
    }
}

/// Solves normal equations; what is nearly a combination of others has no share.
fn least_squares(normal: &mut [[f64; DEPTH + 1]; DEPTH], n: usize) -> [f64; DEPTH] {
    let mut pivots = [0.0; DEPTH];
    for i in (0..n).rev() {
        // Newest first: they say most.
        let size = normal[i][i];
        for k in (i + 1..n).rev() {
            if pivots[k] > 0.0 {
                let factor = normal[i][k] / pivots[k];
                (0..n).for_each(|j| normal[i][j] -= factor * normal[k][j]);
                normal[i][DEPTH] -= factor * normal[k][DEPTH];
            }
        }
        pivots[i] = if normal[i][i] > 1e-4 * size { normal[i][i] } else { 0.0 };
    }
    let mut share = [0.0; DEPTH];
    for i in 0..n {
        if pivots[i] > 0.0 {
            let known: f64 = (0..i).map(|j| normal[i][j] * share[j]).sum();
            share[i] = (normal[i][DEPTH] - known) / pivots[i];
        }
    }
    share
}
