//! How many events of a policy may begin in a second, minute, hour or day: a leaky bucket that lets a burst through.
//!
//! The state is one instant (the theoretical arrival time of GCRA), so it fits an attribute of a row and one condition.

use crate::bounded::{OutOfBounds, bounded};
use crate::limits::{RATE_BURST, RATE_EVENTS};

/// The length of time that a rate counts events in. Of fixed length: a day is 24 hours, whatever the clocks of a zone
/// do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One second.
    Second,
    /// Sixty of them.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
}

impl Per {
    /// All lengths, the shortest first.
    pub const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// Its word: `second`, `minute`, `hour` or `day`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// The length of a word of [`Per::as_str`]; `None` of any other.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|per| per.as_str() == word)
    }

    /// Its length, in seconds.
    pub fn seconds(self) -> u32 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    fn micros(self) -> i64 {
        i64::from(self.seconds()) * 1_000_000
    }
}

bounded! {
    /// How many events of a rate begin in its length of time.
    RateEvents(u32), "rate.events", 1..=RATE_EVENTS
}
bounded! {
    /// How many events of a rate may begin at once after a pause.
    RateBurst(u32), "rate.burst", 1..=RATE_BURST
}

/// A rate of events: a hard cap (decision 0018).
///
/// Invariant: in any interval of length `t`, both ends included, at most `burst + rate * t` events begin, `t` counted
/// in microseconds and rounded up. With a burst of 1 no two events begin closer to each other than the rate spaces
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    events: RateEvents,
    per: Per,
    burst: Option<RateBurst>,
}

/// What a bucket allows at an instant (GCRA, the generic cell rate algorithm).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// How many events may begin.
    pub events: u32,
    /// The bucket afterwards: its theoretical arrival time, in microseconds since the epoch.
    pub arrival_us: i64,
    /// From when on another event may begin, in microseconds since the epoch.
    pub next_us: i64,
}

impl RateLimit {
    /// Checks the numbers of a rate. Without a burst, what one second allows may begin at once, and at least one event.
    ///
    /// # Errors
    /// [`OutOfBounds`] when a number lies outside its bounds, with which one.
    pub fn new(events: u32, per: Per, burst: Option<u32>) -> Result<Self, OutOfBounds> {
        let burst = burst.map(|burst| RateBurst::new(burst.into())).transpose()?;
        Ok(Self::of(RateEvents::new(events.into())?, per, burst))
    }

    /// The same of numbers that have been checked.
    pub fn of(events: RateEvents, per: Per, burst: Option<RateBurst>) -> Self {
        Self { events, per, burst }
    }

    /// Events in its length of time, 1 to 100,000.
    pub fn events(self) -> u32 {
        self.events.get()
    }

    /// The length of time.
    pub fn per(self) -> Per {
        self.per
    }

    /// The burst that was asked for, 1 to 10,000 events; `None`: what one second allows.
    pub fn burst(self) -> Option<u32> {
        self.burst.map(RateBurst::get)
    }

    /// How many events begin in a second, in the long run.
    pub fn per_second(self) -> f64 {
        f64::from(self.events()) / f64::from(self.per.seconds())
    }

    /// What one second allows, and at least one event.
    fn events_per_second(self) -> u32 {
        (self.events() / self.per.seconds()).max(1)
    }

    /// How many events may begin at once after a pause: the burst; without one, what one second allows, at least 1.
    pub fn bucket(self) -> u32 {
        self.burst().unwrap_or_else(|| self.events_per_second())
    }

    /// Whether its bucket holds less than a second's worth: wake-ups, which come by the second, do not suffice for it.
    pub fn needs_pacing(self) -> bool {
        self.bucket() < self.events_per_second()
    }

    /// How long so many events take at this rate, in microseconds, rounded up: never faster than the rate.
    fn length_us(self, events: u32) -> i64 {
        let (per, in_it) = (i128::from(self.per.micros()), i128::from(self.events()));
        let length = (i128::from(events) * per + in_it - 1) / in_it;
        i64::try_from(length).unwrap_or(i64::MAX)
    }

    /// How many of `wanted` events may begin at `now_us`, when `arrival_us` is what the bucket came to at last, 0 at
    /// first; both in microseconds since the epoch. Takes nothing: whoever lets them begin stores the new `arrival_us`.
    pub fn allow(self, arrival_us: i64, now_us: i64, wanted: u32) -> Allowed {
        let full_us = now_us.saturating_add(self.length_us(self.bucket()));
        // No right clock leaves it beyond: then one that was ahead has been here.
        let from = arrival_us.clamp(now_us, full_us);
        let room = i128::from(full_us.saturating_sub(from)) * i128::from(self.events());
        let free = room / i128::from(self.per.micros());
        let events = u32::try_from(free).unwrap_or(u32::MAX).min(wanted).min(self.bucket());
        let arrival_us = from.saturating_add(self.length_us(events));
        let next_us =
            arrival_us.saturating_add(self.length_us(1)).saturating_sub(self.length_us(self.bucket()));
        Allowed { events, arrival_us, next_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(rate: RateLimit, step_us: i64, to_us: i64) -> Vec<(i64, u32)> {
        let (mut arrival_us, mut begun) = (0, Vec::new());
        for now_us in (0..to_us).step_by(usize::try_from(step_us).unwrap()) {
            let allowed = rate.allow(arrival_us, now_us, u32::MAX);
            arrival_us = allowed.arrival_us;
            begun.push((now_us, allowed.events));
        }
        begun
    }

    #[test]
    fn a_bucket_lets_its_burst_through_and_then_the_rate() {
        let rate = RateLimit::new(10, Per::Second, Some(25)).unwrap();
        let by_second: Vec<u32> = begun(rate, 1_000_000, 5_000_000).iter().map(|(_, n)| *n).collect();
        assert_eq!(by_second, [25, 10, 10, 10, 10]);
        let slow = RateLimit::new(6, Per::Minute, None).unwrap();
        let by_second: u32 = begun(slow, 1_000_000, 60_000_000).iter().map(|(_, n)| n).sum();
        assert_eq!((slow.bucket(), by_second), (1, 6));
    }

    #[test]
    fn half_an_event_a_second_is_thirty_a_minute() {
        let rate = RateLimit::new(30, Per::Minute, Some(1)).unwrap();
        let at = |from: &[(i64, u32)]| -> Vec<i64> {
            from.iter().filter(|(_, n)| *n > 0).map(|(at, _)| at / 1_000_000).collect()
        };
        assert_eq!(at(&begun(rate, 1_000_000, 10_000_000)), [0, 2, 4, 6, 8]);
        let hourly = RateLimit::new(2, Per::Hour, None).unwrap();
        assert_eq!(at(&begun(hourly, 60_000_000, 7_200_000_000)), [0, 1_800, 3_600, 5_400]);
        let daily = RateLimit::new(3, Per::Day, Some(2)).unwrap();
        let first_day: u32 = begun(daily, 60_000_000, 86_400_000_000).iter().map(|(_, n)| n).sum();
        assert_eq!(first_day, 4);
    }

    #[test]
    fn a_burst_of_one_spaces_events_evenly_and_less_than_a_second_s_worth_needs_pacing() {
        let rate = RateLimit::new(2, Per::Second, Some(1)).unwrap();
        let begun = begun(rate, 10_000, 2_000_000);
        let at: Vec<i64> = begun.iter().filter(|(_, n)| *n > 0).map(|(at, _)| *at).collect();
        assert_eq!(at, [0, 500_000, 1_000_000, 1_500_000]);
        assert!(rate.needs_pacing());
        for (events, per, burst) in
            [(2, Per::Second, None), (2, Per::Second, Some(2)), (60, Per::Minute, Some(1))]
        {
            assert!(
                !RateLimit::new(events, per, burst).unwrap().needs_pacing(),
                "{events} {per:?} {burst:?}"
            );
        }
    }

    #[test]
    fn it_says_when_the_next_may_begin() {
        let rate = RateLimit::new(2, Per::Second, Some(2)).unwrap();
        let first = rate.allow(0, 10_000_000, 5);
        assert_eq!((first.events, first.next_us), (2, 10_500_000));
        assert_eq!(rate.allow(first.arrival_us, first.next_us - 1, 5).events, 0);
        assert_eq!(rate.allow(first.arrival_us, first.next_us, 5).events, 1);
    }

    #[test]
    fn a_clock_that_was_an_hour_ahead_uses_up_no_more_than_the_bucket() {
        let rate = RateLimit::new(2, Per::Second, None).unwrap();
        let ahead = rate.allow(0, 3_600_000_000, 5);
        let back = rate.allow(ahead.arrival_us, 1_000_000, 5);
        assert_eq!((back.events, back.next_us), (0, 1_500_000));
    }

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let says = |events, burst| RateLimit::new(events, Per::Second, burst).unwrap_err().to_string();
        assert_eq!(says(0, None), "rate.events is 0; it must lie between 1 and 100000");
        assert_eq!(says(1, Some(0)), "rate.burst is 0; it must lie between 1 and 10000");
    }
}
