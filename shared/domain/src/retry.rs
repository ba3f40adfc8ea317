//! Retry: whether, and when, an event is sent again that its target did not take.

use chrono::{DateTime, Duration, Utc};

use crate::bounded::bounded;
use crate::limits::{
    DEFAULT_RETRY_AGE_SECONDS, DEFAULT_RETRY_CEILING_SECONDS, DEFAULT_RETRY_WAIT_SECONDS,
    REDRIVES_PER_SECOND, RETRY_AGE_SECONDS, RETRY_WAIT_SECONDS,
};
use crate::time::{milliseconds, seconds};
use crate::unknown::Unknown;

/// What a job says about events that its target does not take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retry {
    /// How long each wait is.
    pub backoff: Backoff,
    /// For how long it is tried.
    pub max_age: RetryAge,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

/// How long an event waits before it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backoff {
    /// It is not sent again.
    None,
    /// The same wait each time.
    Fixed {
        /// How long.
        wait: RetryWait,
    },
    /// Waits with full jitter: each is drawn evenly from nothing up to a bound that doubles, so that what failed together
    /// does not come again together.
    Exponential {
        /// The bound of the first wait.
        first: RetryWait,
        /// What the bound doubles up to.
        ceiling: RetryCeiling,
    },
}

bounded! {
    /// The wait before an event is sent again, or the bound of the first one, in seconds.
    RetryWait(u32), "retry.wait_seconds", RETRY_WAIT_SECONDS, default DEFAULT_RETRY_WAIT_SECONDS
}
bounded! {
    /// What the bound of a wait doubles up to, in seconds.
    RetryCeiling(u32), "retry.ceiling_seconds", RETRY_WAIT_SECONDS, default DEFAULT_RETRY_CEILING_SECONDS
}
bounded! {
    /// For how long an event is sent again, in seconds from its first delivery that failed.
    RetryAge(u32), "retry.max_age_seconds", RETRY_AGE_SECONDS, default DEFAULT_RETRY_AGE_SECONDS
}

bounded! {
    /// How many dead letters are redriven in a second.
    RedrivePace(u32), "per_second", 1..=REDRIVES_PER_SECOND
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Exponential { first: RetryWait::default(), ceiling: RetryCeiling::default() }
    }
}

/// How often an event was delivered so far, and since when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tries {
    /// Its deliveries, those that failed included.
    pub made: u8,
    /// Those of them that its target did not take.
    pub failed: u8,
    /// When the first of those failed, in whole seconds since the epoch.
    pub since_s: i64,
}

impl Tries {
    /// Of an event whose delivery number `made` just failed, after those before it.
    #[must_use]
    pub fn after_failure(earlier: Option<Self>, made: u8, now: DateTime<Utc>) -> Self {
        let (failed, since_s) =
            earlier.map_or((0, now.timestamp()), |earlier| (earlier.failed, earlier.since_s));
        Self { made, failed: failed.saturating_add(1), since_s }
    }
}

impl Retry {
    /// How long an event waits before it is sent again, given how its deliveries went; `None`: it is given up. `asked_for` is
    /// what its target wants the wait to be at the least, and `draw` a random number.
    ///
    /// Invariant: the wait ends within `max_age` of the first failure; the last delivery is made at its end.
    ///
    /// ```
    /// use chrono::{DateTime, Duration};
    /// use tidegate_domain::retry::{Retry, Tries};
    ///
    /// let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    /// let failed = |times, hours_ago: i64| Tries { made: times, failed: times, since_s: now.timestamp() - hours_ago * 3_600 };
    /// let retry = Retry::default();
    /// assert!(retry.wait(failed(1, 0), None, now, 7).unwrap() <= Duration::seconds(2));
    /// assert!(retry.wait(failed(40, 23), None, now, 7).unwrap() <= Duration::hours(1));
    /// assert_eq!(retry.wait(failed(40, 24), None, now, 7), None, "an outage of a night is outlasted, not one of a day");
    /// ```
    pub fn wait(
        &self,
        tries: Tries,
        asked_for: Option<Duration>,
        now: DateTime<Utc>,
        draw: u64,
    ) -> Option<Duration> {
        let left = seconds(
            tries.since_s.saturating_add(i64::from(self.max_age.get())).saturating_sub(now.timestamp()),
        );
        if tries.made == u8::MAX || left <= Duration::zero() {
            return None;
        }
        let wait = match self.backoff {
            Backoff::None => return None,
            Backoff::Fixed { wait } => seconds(wait.get().into()),
            Backoff::Exponential { first, ceiling } => {
                let doublings = u32::from(tries.failed.saturating_sub(1)).min(u32::BITS - 1);
                let bound_s = u64::from(first.get()).saturating_mul(1 << doublings).min(ceiling.get().into());
                let drawn_ms = draw % (bound_s.saturating_mul(1_000).saturating_add(1));
                milliseconds(i64::try_from(drawn_ms).unwrap_or(i64::MAX))
            }
        };
        Some(wait.max(asked_for.unwrap_or_default()).min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn failed(times: u8, seconds_ago: i64) -> Tries {
        Tries { made: times, failed: times, since_s: now().timestamp() - seconds_ago }
    }

    fn wait(seconds: u64) -> RetryWait {
        RetryWait::new(seconds).unwrap()
    }

    #[test]
    fn waits_are_drawn_up_to_a_bound_that_doubles_up_to_the_ceiling() {
        let retry = Retry {
            backoff: Backoff::Exponential { first: wait(2), ceiling: RetryCeiling::new(600).unwrap() },
            ..Retry::default()
        };
        let longest = |times| {
            let draws = (0..2_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            draws.map(|draw| retry.wait(failed(times, 0), None, now(), draw).unwrap()).max().unwrap()
        };
        for (times, bound_s) in [(1, 2), (2, 4), (5, 32), (9, 512), (10, 600), (60, 600), (254, 600)] {
            let longest = longest(times);
            assert!(longest <= seconds(bound_s) && longest >= seconds(bound_s) / 2, "{times}: {longest}");
        }
    }

    #[test]
    fn the_last_delivery_is_made_when_the_time_is_over() {
        let retry = Retry {
            backoff: Backoff::Fixed { wait: wait(900) },
            max_age: RetryAge::new(3_600).unwrap(),
            ..Retry::default()
        };
        let waits = |seconds_ago, asked| retry.wait(failed(3, seconds_ago), asked, now(), 0);
        assert_eq!(waits(0, None), Some(seconds(900)));
        assert_eq!(waits(3_000, None), Some(seconds(600)));
        assert_eq!(waits(3_599, Some(seconds(86_400))), Some(seconds(1)));
        assert_eq!((waits(3_600, None), waits(9_000, None)), (None, None));
    }

    #[test]
    fn what_the_target_asks_for_makes_a_wait_longer_never_shorter() {
        let retry = Retry { backoff: Backoff::Fixed { wait: wait(30) }, ..Retry::default() };
        let waits = |asked: i64| retry.wait(failed(1, 0), Some(seconds(asked)), now(), 0);
        assert_eq!((waits(7), waits(7_200)), (Some(seconds(30)), Some(seconds(7_200))));
    }

    #[test]
    fn some_are_not_tried_again() {
        let never = Retry { backoff: Backoff::None, ..Retry::default() };
        assert_eq!(never.wait(failed(1, 0), Some(seconds(5)), now(), 0), None);
        assert_eq!(Retry::default().wait(failed(255, 0), None, now(), 0), None);
    }

    #[test]
    fn failures_are_counted_from_the_first_on() {
        let first = Tries::after_failure(None, 1, now());
        assert_eq!(first, Tries { made: 1, failed: 1, since_s: now().timestamp() });
        // Its lease ran out once in between, and delivery number 3 failed an hour later.
        let later = Tries::after_failure(Some(first), 3, now() + Duration::hours(1));
        assert_eq!(later, Tries { made: 3, failed: 2, since_s: first.since_s });
    }
}
