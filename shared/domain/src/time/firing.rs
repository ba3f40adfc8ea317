//! The exact decision: the instants at which a compiled expression launches in a window, to the second.
//!
//! | expression | time in a gap | time that happens twice |
//! | --- | --- | --- |
//! | fixed-time: neither second, minute nor hour begins with `*` | `next_valid`: the first instant after the gap | `first` time |
//! | interval-like: any other | `skip`: never | `both` times |
//!
//! A job's own rules go before these. All of an expression's times that one gap skips, and one that names the first
//! second after it, are a single launch. The letter decides: `30 0-23/1 * * *` is fixed-time though it means hourly.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::cron::CompiledCron;
use super::dst::{Gap, Overlap};
use super::eligible::sixtieths;
use super::launch::ChildKey;
use super::local::{LocalWindow, Part, Pass};
use super::window::Window;

/// The mask of an expression that launches at second 0 only.
const ON_THE_MINUTE: u64 = 1;

/// One launch of a trigger, before the job's rules and jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Firing {
    /// When it is due, in whole seconds, before jitter.
    pub launch_at: DateTime<Utc>,
    /// What the clocks have to do with it.
    pub label: Dst,
    /// When the trigger says that it is due, where it was moved off a closed day; `None`: it was not.
    pub moved_from: Option<DateTime<Utc>>,
}

/// What a change of the clocks has to do with a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dst {
    /// Nothing: its local time happens once.
    Plain,
    /// Its local time is skipped: it was moved to the first instant after the gap.
    Gap,
    /// Its local time happens twice.
    Overlap,
}

impl Firing {
    /// One that no change of the clocks touches.
    pub(super) fn plain(launch_at: DateTime<Utc>) -> Self {
        Self { launch_at, label: Dst::Plain, moved_from: None }
    }
}

impl Dst {
    /// Its word: `gap`, `overlap`, or empty.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gap => "gap",
            Self::Overlap => "overlap",
        }
    }
}

impl CompiledCron {
    /// Every launch in a window, in order of time.
    ///
    /// Cutting a window anywhere changes nothing: the launches of its pieces are those of the whole.
    pub fn firings(&self, zone: Tz, window: Window) -> Vec<Firing> {
        let mut out = Vec::new();
        self.launches(None, &LocalWindow::new(zone, window), &mut out);
        out
    }

    /// Every launch in a window, appended to `out` in order of time.
    pub fn firings_in(&self, window: &LocalWindow, out: &mut Vec<Firing>) {
        self.launches(None, window, out);
    }

    /// The launches in a window that belong to one child of this expression.
    ///
    /// Over all children of a decomposition they are exactly [`Self::firings`], none twice.
    pub fn owned_firings(&self, child: &ChildKey, zone: Tz, window: Window) -> Vec<Firing> {
        let mut out = Vec::new();
        self.launches(Some(child), &LocalWindow::new(zone, window), &mut out);
        out
    }

    /// The same, appended to `out`, for a window that is translated once for all children of its zone.
    pub fn owned_firings_in(&self, child: &ChildKey, window: &LocalWindow, out: &mut Vec<Firing>) {
        self.launches(Some(child), window, out);
    }

    pub(super) fn launches(&self, child: Option<&ChildKey>, window: &LocalWindow, out: &mut Vec<Firing>) {
        // A landing that already has a launch, so that a fixed time right after the gap does not add a second.
        let mut landed_s = None;
        for part in window.parts() {
            let (midnight_s, label) = match part.pass {
                Pass::Once { midnight_s } => (midnight_s, Dst::Plain),
                Pass::First { midnight_s } => (midnight_s, Dst::Overlap),
                Pass::Second { midnight_s } if self.overlap() == Overlap::Both => (midnight_s, Dst::Overlap),
                Pass::Second { .. } => continue,
                Pass::Skipped { .. } if self.gap() == Gap::Skip => continue,
                Pass::Skipped { landing_s } => {
                    if landed_s != Some(landing_s)
                        && let Some(second) = self.first_second(part)
                    {
                        landed_s = Some(landing_s);
                        // The earliest skipped time stands for all of them: its child owns the launch.
                        if child.is_none_or(|child| self.owns(child, part, second)) {
                            push(out, landing_s, Dst::Gap);
                        }
                    }
                    continue;
                }
            };
            self.each_second(child, part, |second| {
                let launch_s = midnight_s + i64::from(second);
                if landed_s != Some(launch_s) {
                    push(out, launch_s, label);
                }
            });
        }
    }

    /// Calls `found` with each second of the day in a part that matches, of those that the child owns.
    pub(super) fn each_second(&self, child: Option<&ChildKey>, part: &Part, mut found: impl FnMut(u32)) {
        let (hours, minutes) = match child {
            Some(child) => (self.hours() & child.hour_mask(), self.minutes() & child.minute_mask()),
            None => (self.hours(), self.minutes()),
        };
        let on_the_minute = self.seconds() == ON_THE_MINUTE;
        let (first, end) = if on_the_minute { part.minutes() } else { part.touched_minutes() };
        if first == end || hours == 0 || minutes == 0 {
            return;
        }
        let (first_hour, last_hour) = (first / 60, (end - 1) / 60);
        let hours = hours & (u32::MAX << first_hour) & (u32::MAX >> (31 - last_hour));
        if hours == 0 || !self.matches_day(part.day) || !child.is_none_or(|child| self.owns_day(child, part))
        {
            return;
        }
        for hour in bits(hours.into()) {
            for minute in bits(minutes & sixtieths(hour, first, end)) {
                let minute = hour * 60 + minute;
                if on_the_minute {
                    found(minute * 60);
                } else {
                    let seconds = self.seconds() & sixtieths(minute, part.from_s, part.to_s);
                    bits(seconds).for_each(|second| found(minute * 60 + second));
                }
            }
        }
    }

    /// The first second of the day in a part that matches.
    fn first_second(&self, part: &Part) -> Option<u32> {
        let mut first = None;
        self.each_second(None, part, |second| {
            first.get_or_insert(second);
        });
        first
    }

    /// Whether a matching local time belongs to a child of this expression.
    fn owns(&self, child: &ChildKey, part: &Part, second: u32) -> bool {
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        child.hour_mask() >> hour & 1 == 1
            && child.minute_mask() >> minute & 1 == 1
            && self.owns_day(child, part)
    }

    /// Whether a matching day belongs to a child. When either day field suffices, a day that both match belongs to
    /// the child by day of the month; this needs no look at the other children.
    fn owns_day(&self, child: &ChildKey, part: &Part) -> bool {
        let expression = child.launch_expression();
        expression.covers_day(part.day)
            && (!self.is_either_day()
                || (!expression.is_by_weekday() || !self.matches_day_of_month(part.day))
                    && (!expression.is_by_day_of_month() || self.matches_day_of_month(part.day)))
    }
}

fn push(out: &mut Vec<Firing>, launch_s: i64, label: Dst) {
    if let Some(launch_at) = DateTime::from_timestamp(launch_s, 0) {
        out.push(Firing { launch_at, label, moved_from: None });
    }
}

/// The positions of the set bits of a mask, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        lowest
    })
}
