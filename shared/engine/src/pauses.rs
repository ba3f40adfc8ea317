//! How long calls wait that are made once more, since a service was too small for them or another call was at the same rows: by
//! the engine's clock, never the same for two, and not beyond the time of the call that waits.
//!
//! Deliberately absent: writes whose condition did not hold. Somebody else's did, so they read once more and go on at once:
//! of all who meet at a row, one gets on in each round.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tidegate_domain::clock::Clock;
use tidegate_domain::time::shifted;
use tidegate_store::Pause;

use crate::deadline;
use crate::random::Random;

/// The longest first wait, in milliseconds; each round may wait twice as long as the one before.
const FIRST_MS: u64 = 50;
/// The longest wait, in milliseconds. All eight rounds together wait 5 seconds at the most: a function has 29 and more.
const LONGEST_MS: u64 = 1_600;

/// Waits from half of the longest to the longest of a round.
#[derive(Clone)]
pub(crate) struct Pauses {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl Pause for Pauses {
    fn before(&self, round: u32) -> BoxFuture<'_, bool> {
        let longest = longest_ms(round);
        let wait = longest / 2 + self.random.next_u64() % (longest / 2 + 1);
        let wait = chrono::Duration::from_std(Duration::from_millis(wait)).unwrap_or_default();
        let at = shifted(self.clock.now(), wait);
        Box::pin(async move {
            if deadline::is_over_at(at) {
                return false;
            }
            self.clock.wait_until(at).await;
            true
        })
    }
}

fn longest_ms(round: u32) -> u64 {
    let doubled = round.saturating_sub(2).min(16);
    FIRST_MS.saturating_mul(1 << doubled).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use tidegate_domain::limits::WRITE_ROUNDS;

    use chrono::DateTime;
    use tidegate_domain::clock::ManualClock;

    use super::*;
    use crate::random::SeededRandom;

    #[tokio::test]
    async fn nobody_waits_for_a_round_that_would_begin_after_the_time_of_the_call() {
        let clock = Arc::new(ManualClock::new(DateTime::UNIX_EPOCH));
        let pauses = Pauses { clock: clock.clone(), random: Arc::new(SeededRandom::new(1)) };
        let soon = shifted(clock.now(), chrono::Duration::milliseconds(60));
        let rounds = async { (pauses.before(2).await, pauses.before(4).await) };
        // 25 to 50 ms, and 100 to 200.
        assert_eq!(deadline::within(soon, rounds).await, (true, false));
        assert!(pauses.before(8).await);
    }

    #[test]
    fn rounds_wait_longer_and_longer_and_all_of_them_a_few_seconds() {
        let longest: Vec<u64> = (2..=WRITE_ROUNDS).map(longest_ms).collect();
        assert_eq!(longest, [50, 100, 200, 400, 800, 1_600, 1_600]);
        assert!(longest.iter().sum::<u64>() <= 5_000 && longest_ms(u32::MAX) == LONGEST_MS);
    }
}
