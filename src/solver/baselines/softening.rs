//! Adaptive regularisation of friction rows (003 Algorithm 9).
//!
//! A friction row that goes in and out of the tight set more often than its limit gets ε more compliance
//! while it is free, and twice the limit. That is slip: the solved problem is no longer the one that was
//! asked for. Residuals are always those of the original, and what was softened is reported.

use crate::solver::Label;
use crate::solver::problem::RowKind;

/// Settings of the regularisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softening {
    /// Pivots of a row before its first shift (5 or 10 in 003 Table 6.5).
    pub limit: u32,
    /// ε added to A_ii each time (1e-3 in 003 Table 6.5), in 1/kg.
    pub shift: f64,
}

impl Default for Softening {
    fn default() -> Self {
        Softening { limit: 10, shift: 1e-3 }
    }
}

/// Counts, limits and shifts of one solve.
#[derive(Clone, Debug, Default)]
pub struct SofteningMemory {
    count: Vec<u32>,
    limit: Vec<u32>,
    shift: Vec<f64>,
    rows: u32,
}

impl SofteningMemory {
    /// Forgets the last problem.
    pub fn reset(&mut self, rows: usize) {
        self.count.clear();
        self.count.resize(rows, 0);
        self.limit.clear();
        self.shift.clear();
        self.shift.resize(rows, 0.0);
        self.rows = 0;
    }

    /// Counts the rows that pivot and softens those beyond their limit.
    pub fn observe(&mut self, settings: Softening, kind: &[RowKind], pivots: &[(u32, Label)]) {
        self.limit.resize(self.count.len(), settings.limit.max(1));
        for &(row, _) in pivots {
            let i = row as usize;
            self.count[i] += 1;
            if kind.get(i) == Some(&RowKind::Friction) && self.count[i] > self.limit[i] {
                self.rows += u32::from(self.shift[i] == 0.0);
                self.shift[i] += settings.shift;
                self.limit[i] = self.limit[i].saturating_mul(2);
            }
        }
    }

    /// D per row.
    pub fn shift(&self) -> &[f64] {
        &self.shift
    }

    /// Was any row softened?
    pub fn any(&self) -> bool {
        self.rows > 0
    }

    /// Rows softened.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Largest shift.
    pub fn largest(&self) -> f64 {
        self.shift.iter().fold(0.0, |m, &s| m.max(s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_friction_rows_beyond_their_limit_soften_and_the_limit_doubles() {
        let mut memory = SofteningMemory::default();
        memory.reset(2);
        let kind = [RowKind::Normal, RowKind::Friction];
        let settings = Softening { limit: 2, shift: 0.5 };
        let pivots = [(0, Label::Free), (1, Label::Free)];
        for _ in 0..2 {
            memory.observe(settings, &kind, &pivots);
        }
        assert!(!memory.any());
        memory.observe(settings, &kind, &pivots); // third pivot: beyond 2, limit now 4
        assert_eq!(memory.shift(), [0.0, 0.5]);
        memory.observe(settings, &kind, &pivots); // fourth
        assert_eq!(memory.shift(), [0.0, 0.5]);
        memory.observe(settings, &kind, &pivots); // fifth: beyond 4
        assert_eq!((memory.shift()[1], memory.rows(), memory.largest()), (1.0, 1, 1.0));
    }
}
