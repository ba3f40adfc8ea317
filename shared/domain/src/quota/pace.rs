//! How fast the events of a client go that nothing throttles: each has a place in time, and those of one minute are no more than its
//! quota.
//!
//! Pure: what is stored is one instant, the end of the places that were given away.

use chrono::{DateTime, Utc};

use super::{EventsPerMinute, MostWaiting};
use crate::limits::{MINUTE_SECONDS, OVER_QUOTA_SECONDS};

const MINUTE_US: i64 = MINUTE_SECONDS * 1_000_000;

/// So many events of a client go in a minute of UTC.
///
/// Invariant: of places that are given away one after the other, no minute has more than `per_minute`.
///
/// ```
/// use chrono::DateTime;
/// use tidegate_domain::quota::{EventsPace, EventsPerMinute};
///
/// let pace = EventsPace { per_minute: EventsPerMinute::new(60)?, waiting: None };
/// let now = DateTime::from_timestamp(1_800_000_030, 0).unwrap();
/// let minute_us = pace.first_us(now);
/// // The first sixty go at once, whatever second it is; the next one in the minute after.
/// assert_eq!(pace.place(minute_us, 59), minute_us + 59_000_000);
/// assert!(pace.is_due(pace.place(minute_us, 59), now) && !pace.is_due(pace.place(minute_us, 60), now));
/// # Ok::<(), tidegate_domain::bounded::OutOfBounds>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsPace {
    /// Events in a minute.
    pub per_minute: EventsPerMinute,
    /// Events that may wait for a later minute; `None`: as many as go within [`OVER_QUOTA_SECONDS`].
    pub waiting: Option<MostWaiting>,
}

impl EventsPace {
    /// The first place that may be given away: the beginning of the minute, in microseconds since the epoch.
    pub fn first_us(self, now: DateTime<Utc>) -> i64 {
        let us = now.timestamp_micros();
        us.saturating_sub(us.rem_euclid(MINUTE_US))
    }

    /// The last place at which so many events may begin: all of them are within what goes in this minute and what may wait. Where
    /// that lies before [`Self::first_us`], they never are.
    pub fn last_us(self, now: DateTime<Utc>, events: u32) -> i64 {
        let over_us = OVER_QUOTA_SECONDS.saturating_mul(1_000_000);
        let waits_us = self.waiting.map_or(over_us, |most| self.length_us(most.get()).min(over_us));
        self.first_us(now)
            .saturating_add(MINUTE_US)
            .saturating_add(waits_us)
            .saturating_sub(self.length_us(events))
    }

    /// The time that so many events take, in microseconds, rounded up.
    pub fn length_us(self, events: u32) -> i64 {
        let (minute, per_minute) = (i128::from(MINUTE_US), i128::from(self.per_minute.get()));
        let length = i128::from(events).saturating_mul(minute).saturating_add(per_minute.saturating_sub(1));
        i64::try_from(length.checked_div(per_minute).unwrap_or(i128::MAX)).unwrap_or(i64::MAX)
    }

    /// The place of the event of a number, from 0, of those that begin at a place.
    pub fn place(self, begin_us: i64, number: u32) -> i64 {
        begin_us.saturating_add(self.length_us(number))
    }

    /// Whether what has a place goes now: in this minute, or before.
    pub fn is_due(self, place_us: i64, now: DateTime<Utc>) -> bool {
        place_us < self.first_us(now).saturating_add(MINUTE_US)
    }

    /// How many events go in this minute, and how many wait for a later one, where places were given away up to an instant.
    pub fn used(self, end_us: i64, now: DateTime<Utc>) -> (u64, u64) {
        let first_us = self.first_us(now);
        let given = |us: i64| {
            let events = i128::from(us.max(0))
                .saturating_mul(self.per_minute.get().into())
                .checked_div(MINUTE_US.into());
            u64::try_from(events.unwrap_or_default()).unwrap_or(u64::MAX)
        };
        let all = given(end_us.saturating_sub(first_us));
        let in_minute = all.min(self.per_minute.get().into());
        (in_minute, all.saturating_sub(in_minute))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn pace(per_minute: u64, waiting: Option<u64>) -> EventsPace {
        let per_minute = EventsPerMinute::new(per_minute).unwrap();
        EventsPace { per_minute, waiting: waiting.map(|most| MostWaiting::new(most).unwrap()) }
    }

    #[test]
    fn no_minute_has_more_than_the_quota_however_places_are_cut() {
        let now = DateTime::from_timestamp(1_800_000_017, 0).unwrap();
        for per_minute in [1, 7, 59, 60, 61, 333, 999_999] {
            let pace = pace(per_minute, None);
            let (mut begin_us, mut minutes) = (pace.first_us(now), BTreeMap::<i64, u64>::new());
            for events in [1, 100, 3, 99, 1, 100, 100, 2] {
                for number in 0..events {
                    *minutes.entry(pace.place(begin_us, number).div_euclid(MINUTE_US)).or_default() += 1;
                }
                begin_us += pace.length_us(events);
            }
            assert!(minutes.values().all(|events| *events <= per_minute), "{per_minute}: {minutes:?}");
        }
        // All that may go does, where they are given away in one piece.
        let pace = pace(333, None);
        let in_first = (0..1_000).filter(|n| pace.is_due(pace.place(pace.first_us(now), *n), now)).count();
        assert_eq!(in_first, 333);
    }

    #[test]
    fn what_may_wait_is_bounded_by_the_quota_or_a_day() {
        let now = DateTime::from_timestamp(1_800_000_017, 0).unwrap();
        let few = pace(10, Some(5));
        let first_us = few.first_us(now);
        assert_eq!(few.last_us(now, 15), first_us);
        assert!(few.last_us(now, 16) < first_us);
        let day = pace(1, None);
        assert_eq!(day.last_us(now, 1), first_us + OVER_QUOTA_SECONDS * 1_000_000);
    }

    #[test]
    fn what_is_used_is_told_by_minute() {
        let now = DateTime::from_timestamp(1_800_000_017, 0).unwrap();
        let pace = pace(10, Some(5));
        let first_us = pace.first_us(now);
        assert_eq!(pace.used(0, now), (0, 0));
        assert_eq!(pace.used(first_us + pace.length_us(4), now), (4, 0));
        assert_eq!(pace.used(first_us + pace.length_us(13), now), (10, 3));
    }
}
