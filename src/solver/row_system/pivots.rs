//! What pivoting and interior point ask of the row form.

use super::super::matrix_system::gauss_seidel;
use super::*;

impl<L: LinearSystem> PivotSystem for RowSystem<'_, L> {
    fn b(&self) -> &[f64] {
        &self.memory.b
    }
    fn scale(&self) -> f64 {
        self.memory.scale
    }
    fn lo(&self) -> &[f64] {
        &self.problem.lo
    }
    fn hi(&self) -> &[f64] {
        &self.memory.hi
    }
    fn kind(&self) -> &[RowKind] {
        &self.problem.kind
    }
    fn diagonal(&self) -> &[f64] {
        &self.memory.diagonal
    }
    fn factorizations(&self) -> u32 {
        self.memory.factorizations
    }

    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        self.need_inverse();
        self.memory.q.fill(0.0);
        for block in &self.problem.blocks {
            let bodies = self.problem.bodies_of(block);
            for row in 0..block.rows {
                let l = x[(block.row + row) as usize];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = self.problem.jacobian_of(block, row, k as u32);
                    let q = &mut self.memory.q[6 * body as usize..6 * body as usize + 6];
                    for c in 0..6 {
                        q[c] += j[c] * l;
                    }
                }
            }
        }
        self.divide_by_mass();
        self.problem.slack(&self.memory.q, x, y);
        for (y, d) in y.iter_mut().zip(&self.problem.d) {
            *y -= d;
        }
    }

    // w = J v + C λ + d with the v of the factorization where λ belongs to it.
    fn honest_slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        let belonging = self.belonging(lambda);
        self.slack_by(belonging, lambda, w);
    }

    fn slack(&mut self, lambda: &[f64], w: &mut [f64]) {
        self.respond(lambda);
        self.memory.slack_of_response(self.problem, lambda, w);
    }

    fn factor(&mut self, free: &[bool], shift: Option<&[f64]>) {
        self.load();
        self.combine_shift(shift);
        let Memory { mixed, labels, shift, shifted, factorizations, .. } = &mut *self.memory;
        labels.clear();
        labels.extend(free.iter().map(|&f| if f { Label::Free } else { Label::Lower }));
        *factorizations += 1;
        mixed.factor(self.problem, labels, shifted.then_some(shift.as_slice()));
    }

    fn solve(&mut self, x: &mut [f64]) {
        self.solve_shifted(x, 1);
    }

    fn solve_roughly(&mut self, x: &mut [f64]) {
        self.solve_shifted(x, 0);
    }

    fn chunks(&mut self, chunks: &mut Vec<Chunk>) {
        self.load();
        let Memory { mixed, floor, .. } = &*self.memory;
        mixed.chunks(self.problem, chunks);
        if !floor.is_empty() {
            for chunk in chunks {
                chunk.floor.extend(chunk.rows.iter().map(|&row| floor[row as usize]));
            }
        }
    }

    fn newton(
        &mut self,
        chunks: &mut [Chunk],
        factor: bool,
        refined: bool,
        before: &Pass<'_>,
        after: &Pass<'_>,
    ) {
        self.load();
        self.memory.factorizations += u32::from(factor);
        self.memory.mixed.newton(self.problem, chunks, factor, u32::from(refined), before, after);
    }

    fn renew_slack(&mut self, chunks: &mut [Chunk], before: &Pass<'_>, after: &Pass<'_>) {
        self.load();
        self.memory.mixed.renew_slack(self.problem, chunks, before, after);
    }

    fn recompute(&mut self, chunks: &mut [Chunk], after: &Pass<'_>) {
        let mut lambda = std::mem::take(&mut self.memory.r_lambda);
        for chunk in chunks.iter() {
            for (&row, l) in chunk.rows.iter().zip(&chunk.lambda) {
                lambda[row as usize] = *l;
            }
        }
        self.respond(&lambda);
        let mut w = std::mem::take(&mut self.memory.w);
        w.resize(lambda.len(), 0.0);
        self.memory.slack_of_response(self.problem, &lambda, &mut w);
        let (mixed, q) = (&self.memory.mixed, &self.memory.q);
        mixed.for_each(chunks, |_, chunk| {
            for (&row, to) in chunk.rows.iter().zip(&mut chunk.w) {
                *to = w[row as usize];
            }
            for (&body, v) in chunk.bodies.iter().zip(chunk.v.chunks_exact_mut(6)) {
                v.copy_from_slice(&q[6 * body as usize..6 * body as usize + 6]);
            }
            after(chunk);
        });
        (self.memory.r_lambda, self.memory.w) = (lambda, w);
    }

    fn evaluate(&mut self, labels: &[Label], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, None, lambda, w);
    }

    fn evaluate_softened(&mut self, labels: &[Label], shift: &[f64], lambda: &mut [f64], w: &mut [f64]) {
        self.point_of(labels, Some(shift), lambda, w);
    }

    fn sweep(&mut self, lambda: &mut [f64]) {
        if !self.problem.couplings.is_empty() {
            return self.sweep_coupled(lambda);
        }
        self.form_response();
        self.respond(lambda);
        let Memory { q, response, diagonal, hi, .. } = &mut *self.memory;
        let problem = self.problem;
        for block in &problem.blocks {
            let bodies = problem.bodies_of(block);
            for row in 0..block.rows {
                let i = (block.row + row) as usize;
                let mut w = problem.compliance[i] * lambda[i] + problem.d[i];
                for (k, &body) in bodies.iter().enumerate() {
                    let j = problem.jacobian_of(block, row, k as u32);
                    for c in 0..6 {
                        w += j[c] * q[6 * body as usize + c];
                    }
                }
                let new = gauss_seidel(lambda[i], w, diagonal[i], problem.lo[i], hi[i]);
                let change = new - lambda[i];
                lambda[i] = new;
                for (k, &body) in bodies.iter().enumerate() {
                    let at = (block.entry + 6 * (row * block.bodies + k as u32)) as usize;
                    for c in 0..6 {
                        q[6 * body as usize + c] += response[at + c] * change;
                    }
                }
            }
        }
    }
}
