//! How many events of a policy may begin in a second or a minute: a leaky bucket that lets a burst through.
//!
//! The state is one instant (the theoretical arrival time of GCRA), so it fits an attribute of a row and one condition.

use thiserror::Error;

use crate::limits::{RATE_BURST, RATE_EVENTS};

/// The length of time that a rate counts events in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One second.
    Second,
    /// Sixty of them.
    Minute,
}

impl Per {
    fn micros(self) -> i64 {
        match self {
            Self::Second => 1_000_000,
            Self::Minute => 60_000_000,
        }
    }
}

/// A rate of events, smooth to the second.
///
/// Invariant: in any `t` seconds no more than `bucket + rate * t` events begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    events: u32,
    per: Per,
    burst: Option<u32>,
}

/// Why a rate is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RateLimitError {
    /// `events` is 0 or beyond the limit.
    #[error("rate.events is {value}; it must lie between 1 and {RATE_EVENTS}")]
    Events {
        /// What was given.
        value: u32,
    },
    /// `burst` is 0 or beyond the limit.
    #[error("rate.burst is {value}; it must lie between 1 and {RATE_BURST}")]
    Burst {
        /// What was given.
        value: u32,
    },
}

/// What a bucket allows at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// How many events may begin.
    pub events: u32,
    /// The bucket afterwards: its theoretical arrival time, in microseconds since the epoch.
    pub arrival_us: i64,
    /// From when on another one may, in microseconds since the epoch.
    pub next_us: i64,
}

impl RateLimit {
    /// Checks a rate. Without a burst, what one second allows may begin at once.
    ///
    /// # Errors
    /// Names the number that lies outside its bounds.
    pub fn new(events: u32, per: Per, burst: Option<u32>) -> Result<Self, RateLimitError> {
        if !(1..=RATE_EVENTS).contains(&events) {
            return Err(RateLimitError::Events { value: events });
        }
        if let Some(value) = burst.filter(|burst| !(1..=RATE_BURST).contains(burst)) {
            return Err(RateLimitError::Burst { value });
        }
        Ok(Self { events, per, burst })
    }

    /// Events in its length of time.
    pub fn events(self) -> u32 {
        self.events
    }

    /// The length of time.
    pub fn per(self) -> Per {
        self.per
    }

    /// The burst that was asked for.
    pub fn burst(self) -> Option<u32> {
        self.burst
    }

    /// How far apart events are in the long run, in microseconds.
    fn interval_us(self) -> i64 {
        (self.per.micros() / i64::from(self.events)).max(1)
    }

    /// How many events may begin at once: the burst, but no less than a second's worth, since what wakes a waiting
    /// policy comes by the second.
    pub fn bucket(self) -> u32 {
        let second = u32::try_from(1_000_000 / self.interval_us()).unwrap_or(u32::MAX);
        self.burst.unwrap_or(1).max(second).max(1)
    }

    /// How many of `wanted` events may begin at `now_us`, when `arrival_us` is what the bucket came to at last.
    pub fn allow(self, arrival_us: i64, now_us: i64, wanted: u32) -> Allowed {
        let interval = self.interval_us();
        let span = i64::from(self.bucket()).saturating_mul(interval);
        // No right clock leaves it beyond: then one that was ahead has been here.
        let from = arrival_us.clamp(now_us, now_us.saturating_add(span));
        let free = (now_us.saturating_add(span) - from).max(0) / interval;
        let events = u32::try_from(free).unwrap_or(u32::MAX).min(wanted);
        let arrival_us = from.saturating_add(i64::from(events).saturating_mul(interval));
        let next_us = arrival_us.saturating_add(interval) - span;
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

    /// In any stretch, whatever the pauses between the looks.
    #[test]
    fn no_stretch_has_more_than_the_bucket_and_the_rate() {
        for (events, burst, step_us) in [(7, Some(3), 130_000), (100, None, 10_000), (3, Some(9), 777_000)] {
            let rate = RateLimit::new(events, Per::Second, burst).unwrap();
            let begun = begun(rate, step_us, 20_000_000);
            for (i, (from, _)) in begun.iter().enumerate() {
                let mut sum = 0;
                for (at, n) in &begun[i..] {
                    sum += i64::from(*n);
                    let most = i64::from(rate.bucket()) + (at - from) / rate.interval_us() + 1;
                    assert!(sum <= most, "{sum} of {most} in {} us", at - from);
                }
            }
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
