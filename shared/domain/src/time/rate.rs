//! A steady beat: every so many seconds from an anchor, without drift.
//!
//! The beat is counted in real seconds, so clocks that change do not touch it. Its children lie in the zone UTC under the
//! times of day that it can fall on.

use chrono::{DateTime, Utc};

use super::ceil_second;
use super::decompose::{self, Times};
use super::firing::Firing;
use super::interval::{RateError, check_interval};
use super::launch::ChildKey;
use super::window::Window;

const DAY_SECONDS: u32 = 86_400;

/// Launches at the anchor and every `every_seconds` after it, none before it.
///
/// ```
/// use tidegate_domain::time::Rate;
///
/// let anchor = "2026-11-23T12:00:00Z".parse::<chrono::DateTime<chrono::Utc>>()?;
/// let rate = Rate::new(300, anchor)?;
/// assert_eq!(rate.upcoming(anchor, 1)[0].launch_at.to_rfc3339(), "2026-11-23T12:05:00+00:00");
/// assert_eq!(rate.last_before(anchor), None, "the beat had not begun");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    every_seconds: u32,
    anchor_s: i64,
}

impl Rate {
    /// A beat of so many seconds. Of the anchor, whole seconds count.
    ///
    /// # Errors
    /// [`RateError::Bounds`] when the interval is not within [`RATE_SECONDS`](crate::limits::RATE_SECONDS).
    pub fn new(every_seconds: u64, anchor: DateTime<Utc>) -> Result<Self, RateError> {
        let every_seconds = check_interval(every_seconds)?.get();
        Ok(Self { every_seconds, anchor_s: anchor.timestamp() })
    }

    /// It in words: `Every 5 minutes`.
    pub fn describe(&self) -> String {
        let units = [(DAY_SECONDS, "day"), (3_600, "hour"), (60, "minute")];
        let (length, unit) = units
            .into_iter()
            .find(|(length, _)| self.every_seconds.is_multiple_of(*length))
            .unwrap_or((1, "second"));
        match self.every_seconds / length {
            1 => format!("Every {unit}"),
            count => format!("Every {count} {unit}s"),
        }
    }

    /// The interval, in seconds.
    pub fn every_seconds(&self) -> u32 {
        self.every_seconds
    }

    /// The first launch, in whole seconds.
    pub fn anchor(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.anchor_s, 0).unwrap_or_default()
    }

    /// Its launches in a window, in order.
    pub fn firings(&self, window: Window) -> impl Iterator<Item = Firing> + use<> {
        let (from_s, to_s) = window.seconds();
        self.seconds_from(from_s).take_while(move |second| *second < to_s).map_while(firing)
    }

    /// Its next launches after an instant (not at it), at most `count`.
    pub fn upcoming(&self, after: DateTime<Utc>, count: usize) -> Vec<Firing> {
        self.seconds_from(after.timestamp() + 1).map_while(firing).take(count).collect()
    }

    /// The last launch before an instant; `None` when the beat had not begun.
    pub fn last_before(&self, before: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let before_s = ceil_second(before);
        let beats = (before_s - 1 - self.anchor_s).div_euclid(i64::from(self.every_seconds));
        (beats >= 0)
            .then(|| DateTime::from_timestamp(self.anchor_s + beats * i64::from(self.every_seconds), 0))
            .flatten()
    }

    fn seconds_from(&self, from_s: i64) -> impl Iterator<Item = i64> + use<> {
        let (anchor_s, every) = (self.anchor_s, i64::from(self.every_seconds));
        let beats = (from_s - anchor_s).max(0);
        let first = anchor_s + (beats + every - 1).div_euclid(every) * every;
        (0..).map(move |beat: i64| first + beat * every)
    }

    /// The children under which it lies in the index, in the zone UTC.
    pub fn children(&self) -> Vec<ChildKey> {
        decompose::decompose_times(&self.times())
    }

    /// The times of day that it falls on, now or later.
    fn times(&self) -> Times {
        // All its launches lie a multiple of this apart, day boundaries or not.
        let step = gcd(self.every_seconds, DAY_SECONDS);
        let phase = self.anchor_s.rem_euclid(i64::from(step)) as u32;
        let mut times = Times { hours: 0, minutes: 0 };
        let of_a_day = std::iter::successors(Some(phase), |second| second.checked_add(step));
        for second in of_a_day.take_while(|second| *second < DAY_SECONDS) {
            times.hours |= 1 << (second / 3_600);
            times.minutes |= 1 << (second / 60 % 60);
        }
        times
    }

    /// How many rows are read for it in a day, by scans of a minute each, per launch. Above 1 is over-selection.
    pub fn reads_per_launch(&self) -> f64 {
        let reads = decompose::reads_per_cycle(&self.children()) as f64 / decompose::CYCLE_DAYS as f64;
        reads / (f64::from(DAY_SECONDS) / f64::from(self.every_seconds))
    }
}

fn firing(second: i64) -> Option<Firing> {
    DateTime::from_timestamp(second, 0).map(Firing::plain)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
