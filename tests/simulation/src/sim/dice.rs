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

    /// One of the items of a table, which is not empty, each as often as its weight says.
    pub fn weighted<'a, T>(&self, table: &'a [(T, u64)]) -> &'a T {
        let mut left = self.below(table.iter().map(|(_, weight)| weight).sum());
        let is_drawn = |(_, weight): &&(T, u64)| match left.checked_sub(*weight) {
            Some(beyond) => {
                left = beyond;
                false
            }
            None => true,
        };
        let (item, _) = table.iter().find(is_drawn).unwrap_or(&table[0]);
        item
    }

    /// One of these; `None` when there are none.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_drawn_as_often_as_their_weights_say() {
        let (dice, mut drawn) = (Dice::new(1), [0_u32; 3]);
        for _ in 0..10_000 {
            drawn[*dice.weighted(&[(0, 7), (1, 0), (2, 3)])] += 1;
        }
        assert!((6_800..7_200).contains(&drawn[0]) && drawn[1] == 0, "{drawn:?}");
    }
}
