//! How long calls of the store wait that are made once more: by the engine's clock, and never the same for two.

use std::sync::Arc;
use std::time::Duration;

use tidegate_domain::clock::{Clock, Waiting};
use tidegate_store::Pause;

use crate::random::Random;

/// The longest first wait, in milliseconds; each round may wait twice as long as the one before.
const FIRST_MS: u64 = 50;
/// The longest wait, in milliseconds. All eight rounds together wait 5 seconds at the most: a function has 29 and more.
const LONGEST_MS: u64 = 1_600;

/// Waits from half of the longest to the longest of a round.
pub(crate) struct Pauses {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl Pause for Pauses {
    fn before(&self, round: u32) -> Waiting<'_> {
        let longest = longest_ms(round);
        let wait = longest / 2 + self.random.next_u64() % (longest / 2 + 1);
        let wait = chrono::Duration::from_std(Duration::from_millis(wait)).unwrap_or_default();
        self.clock.wait_until(tidegate_domain::time::shifted(self.clock.now(), wait))
    }
}

fn longest_ms(round: u32) -> u64 {
    let doubled = round.saturating_sub(2).min(16);
    FIRST_MS.saturating_mul(1 << doubled).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use tidegate_domain::limits::WRITE_ROUNDS;

    use super::*;

    #[test]
    fn rounds_wait_longer_and_longer_and_all_of_them_a_few_seconds() {
        let longest: Vec<u64> = (2..=WRITE_ROUNDS).map(longest_ms).collect();
        assert_eq!(longest, [50, 100, 200, 400, 800, 1_600, 1_600]);
        assert!(longest.iter().sum::<u64>() <= 5_000 && longest_ms(u32::MAX) == LONGEST_MS);
    }
}
