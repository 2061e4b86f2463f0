//! Connected groups of bodies, numbered by their smallest member.

/// Union–find over bodies.
#[derive(Clone, Debug, Default)]
pub struct Islands {
    parent: Vec<u32>,
}

impl Islands {
    /// `n` bodies, each on its own.
    pub fn reset(&mut self, n: usize) {
        self.parent.clear();
        self.parent.extend(0..n as u32);
    }

    /// The smallest member of the group of `body`.
    pub fn root(&mut self, mut body: u32) -> u32 {
        while self.parent[body as usize] != body {
            let up = self.parent[self.parent[body as usize] as usize];
            self.parent[body as usize] = up;
            body = up;
        }
        body
    }

    /// Ties two bodies. The smaller root stays root, so the numbering does not depend on the order of ties.
    pub fn tie(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high as usize] = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_a_naive_search() {
        // xorshift: fixed seeds, no dependency
        let mut state = 0x9e37_79b9_u64;
        let mut next = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n) as u32
        };
        for _ in 0..200 {
            let n = 2 + next(40) as usize;
            let ties: Vec<(u32, u32)> = (0..next(40)).map(|_| (next(n as u64), next(n as u64))).collect();
            let mut islands = Islands::default();
            islands.reset(n);
            let mut naive: Vec<u32> = (0..n as u32).collect();
            for &(a, b) in &ties {
                islands.tie(a, b);
                let (x, y) = (naive[a as usize], naive[b as usize]);
                for label in &mut naive {
                    if *label == x || *label == y {
                        *label = x.min(y);
                    }
                }
            }
            for body in 0..n as u32 {
                assert_eq!(islands.root(body), naive[body as usize]);
            }
        }
    }
}
