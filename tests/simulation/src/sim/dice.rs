//! The only randomness of a history, or of a round of the fuzz suite: everything follows from its seed.

use std::ops::RangeInclusive;

use tidegate_engine::random::{Random as _, SeededRandom};

/// Random choices that a seed repeats.
#[derive(Debug)]
pub struct Dice(SeededRandom);

impl Dice {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// A number below `n`; 0 for none.
    pub fn below(&self, n: u64) -> u64 {
        self.0.next_u64() % n.max(1)
    }

    /// A number of the range.
    pub fn within(&self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// True `parts` times in a thousand.
    pub fn chance(&self, parts: u64) -> bool {
        self.below(1_000) < parts
    }

    /// One of these; `None` when there are none.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }
}
