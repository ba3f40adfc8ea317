//! How late the events of a client came, counted in buckets: any number of them takes as much room, and what several processes
//! counted adds up.
//!
//! Pure. An event is as late as the time between its launch and the instant at which its target had it for the first time.

use chrono::{DateTime, TimeDelta, Utc};

use crate::time::seconds;

/// The most that an event of each bucket is late, in milliseconds. Behind the last one is a bucket for what is later.
pub const BOUNDS_MS: [u64; 19] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    900_000, 3_600_000, 21_600_000, 86_400_000,
];

/// Buckets of a histogram.
const BUCKETS: usize = BOUNDS_MS.len() + 1;
/// Seconds of an hour.
const HOUR_SECONDS: i64 = 3_600;
/// What events are counted by.
pub const HOUR: TimeDelta = seconds(HOUR_SECONDS);

/// The beginning of the hour of UTC that an instant lies in.
pub fn hour_of(at: DateTime<Utc>) -> DateTime<Utc> {
    let second = at.timestamp().div_euclid(HOUR_SECONDS).saturating_mul(HOUR_SECONDS);
    DateTime::from_timestamp(second, 0).unwrap_or(at)
}

/// How many events were how late.
///
/// ```
/// use tidegate_domain::lateness::Histogram;
/// use tidegate_domain::time::milliseconds;
///
/// let mut seen = Histogram::default();
/// seen.count(milliseconds(40), 98);
/// seen.count(milliseconds(1_500), 2);
/// assert_eq!((seen.events(), seen.percentile(50), seen.percentile(99)), (100, Some(50), Some(2_000)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram([u64; BUCKETS]);

impl Histogram {
    /// What was counted before: of each bucket its bound in milliseconds, `None` for the last one, and its events. What was counted
    /// under a bound that is none any more is in the first bucket that has all of it.
    pub fn of(buckets: impl IntoIterator<Item = (Option<u64>, u64)>) -> Self {
        let mut all = Self::default();
        for (bound_ms, events) in buckets {
            all.add(bound_ms.unwrap_or(u64::MAX), events);
        }
        all
    }

    /// Counts so many events that were so late. What came early was not late.
    pub fn count(&mut self, late: TimeDelta, events: u64) {
        // Begun milliseconds count: what is late by more than a bound is not under it.
        let ms = late.num_milliseconds().saturating_add(i64::from(late.subsec_nanos() % 1_000_000 > 0));
        self.add(ms.max(0).unsigned_abs(), events);
    }

    fn add(&mut self, late_ms: u64, events: u64) {
        let bucket = BOUNDS_MS.partition_point(|bound_ms| *bound_ms < late_ms);
        if let Some(counted) = self.0.get_mut(bucket) {
            *counted = counted.saturating_add(events);
        }
    }

    /// Counts what another one did as well.
    pub fn include(&mut self, other: &Self) {
        for (counted, more) in self.0.iter_mut().zip(other.0) {
            *counted = counted.saturating_add(more);
        }
    }

    /// The buckets that have events: with their bounds in milliseconds, `None` for the last one.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = BOUNDS_MS.into_iter().map(Some).chain([None]);
        bounds.zip(self.0).filter(|(_, events)| *events > 0)
    }

    /// All events.
    pub fn events(&self) -> u64 {
        self.0.iter().fold(0, |all, events| all.saturating_add(*events))
    }

    /// Of 100 events so many are no later than this, in milliseconds: the bound of the bucket that the event of this rank is in (nearest
    /// rank). `None`: that is the last bucket, which has no bound, or there are no events.
    pub fn percentile(&self, percent: u8) -> Option<u64> {
        let rank = u128::from(self.events()).saturating_mul(u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0_u128;
        for (bound_ms, events) in self.buckets() {
            seen = seen.saturating_add(u128::from(events));
            if seen >= rank {
                return bound_ms;
            }
        }
        None
    }
}

/// How late the events of a client were: those under a policy wait for its tokens, and are counted apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Events under a policy.
    pub throttled: Histogram,
    /// Events that nothing throttles.
    pub unthrottled: Histogram,
}

impl Lateness {
    /// Counts what another one did as well.
    pub fn include(&mut self, other: &Self) {
        self.throttled.include(&other.throttled);
        self.unthrottled.include(&other.unthrottled);
    }

    /// All events.
    pub fn events(&self) -> u64 {
        self.throttled.events().saturating_add(self.unthrottled.events())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::milliseconds;

    fn of(late_ms: &[i64]) -> Histogram {
        let mut all = Histogram::default();
        late_ms.iter().for_each(|ms| all.count(milliseconds(*ms), 1));
        all
    }

    #[test]
    fn each_event_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        assert!(BOUNDS_MS.is_sorted_by(|a, b| a < b));
        for (late_ms, bound_ms) in [
            (-5, Some(10)),
            (0, Some(10)),
            (10, Some(10)),
            (11, Some(20)),
            (1_000, Some(1_000)),
            (1_001, Some(2_000)),
            (86_400_000, Some(86_400_000)),
            (86_400_001, None),
            (i64::MAX, None),
        ] {
            assert_eq!(of(&[late_ms]).buckets().collect::<Vec<_>>(), [(bound_ms, 1)], "{late_ms}");
            assert_eq!(of(&[late_ms]).percentile(100), bound_ms, "{late_ms}");
        }
        let mut seen = Histogram::default();
        seen.count(TimeDelta::nanoseconds(10_000_001), 1);
        assert_eq!(seen.percentile(50), Some(20), "it is more than 10 milliseconds");
        assert_eq!((Histogram::default().percentile(99), Histogram::default().events()), (None, 0));
    }

    #[test]
    fn what_was_counted_under_other_bounds_is_kept() {
        let read = Histogram::of([(Some(10), 3), (Some(15), 2), (Some(90_000_000), 1), (None, 4)]);
        assert_eq!(read.buckets().collect::<Vec<_>>(), [(Some(10), 3), (Some(20), 2), (None, 5)]);
        let full = Histogram::of([(Some(10), u64::MAX), (None, u64::MAX)]);
        assert_eq!((full.events(), full.percentile(50)), (u64::MAX, Some(10)));
    }

    #[test]
    fn an_hour_begins_at_its_first_second() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        assert_eq!(hour_of(at(7_199)), at(3_600));
        assert_eq!(hour_of(at(7_200)), at(7_200));
        assert_eq!(hour_of(at(-1)), at(-3_600));
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_bound_of_what_stands_there_in_a_sorted_list(
            late_ms in proptest::collection::vec(prop_oneof![0_i64..100, 0_i64..100_000, 0_i64..200_000_000], 1..200),
            percent in 1_u8..=100,
        ) {
            let seen = of(&late_ms);
            let mut sorted = late_ms.clone();
            sorted.sort_unstable();
            let rank = (sorted.len() * usize::from(percent)).div_ceil(100);
            let stands_there = sorted[rank - 1].unsigned_abs();
            let bound_ms = BOUNDS_MS.into_iter().find(|bound_ms| stands_there <= *bound_ms);
            prop_assert_eq!(seen.percentile(percent), bound_ms);
            prop_assert_eq!(seen.events(), late_ms.len() as u64);
        }

        #[test]
        fn merging_is_adding_and_the_buckets_say_all(
            one in proptest::collection::vec(0_i64..200_000_000, 0..50),
            other in proptest::collection::vec(0_i64..200_000_000, 0..50),
        ) {
            let mut merged = of(&one);
            merged.include(&of(&other));
            prop_assert_eq!(&merged, &of(&[one, other].concat()));
            prop_assert_eq!(Histogram::of(merged.buckets()), merged);
        }
    }
}
