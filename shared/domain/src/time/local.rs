//! A scan window as the wall clock of one zone shows it: computed once per zone and tick, read by every child.

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use chrono_tz::Tz;

use super::transitions::{Span, spans};
use super::window::Window;

/// How far beyond the window a change of the clocks can repeat a wall-clock time of the window, in seconds: the
/// longest step back in the database is 24 hours.
const REACH_SECONDS: i64 = 25 * 3600;
const DAY_SECONDS: i64 = 86_400;

/// A window translated into a zone's wall clock, cut at local midnights and where the clocks change.
///
/// Wall-clock times that a gap skips belong to the window that holds the first instant after the gap.
#[derive(Debug, Clone)]
pub struct LocalWindow {
    zone: Tz,
    window: Window,
    parts: Vec<Part>,
}

/// A calendar day, as far as a cron expression looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 is Sunday.
    pub weekday: u8,
    /// Length of the month, in days.
    pub month_days: u8,
}

/// Wall-clock times of one day that share one meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub day: Day,
    /// First second of the day.
    pub from_s: u32,
    /// Last second of the day, exclusive.
    pub to_s: u32,
    pub pass: Pass,
}

/// How the wall-clock times of a part relate to real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// They happen once; `midnight_s` plus the second of the day is the Unix second.
    Once { midnight_s: i64 },
    /// They happen here and again later.
    First { midnight_s: i64 },
    /// They happen here for the second time.
    Second { midnight_s: i64 },
    /// They do not happen: the clocks jump over them and go on at this Unix second.
    Skipped { landing_s: i64 },
}

impl LocalWindow {
    /// Translates a window. Costs a handful of offset lookups, plus two per day of the window.
    pub fn new(zone: Tz, window: Window) -> Self {
        let (from_s, to_s) = window.seconds();
        let mut parts = Vec::new();
        if from_s < to_s {
            let spans = spans(zone, from_s - REACH_SECONDS, to_s + REACH_SECONDS);
            for (index, span) in spans.iter().enumerate() {
                if span.to_s > from_s && span.from_s < to_s {
                    let before = index.checked_sub(1).and_then(|i| spans.get(i));
                    add_span(&mut parts, (from_s, to_s), before, span, spans.get(index + 1));
                }
            }
        }
        Self { zone, window, parts }
    }

    /// The zone whose wall clock it shows the window in.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The stretch of real time that it shows.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Its parts, in the order of real time; skipped times stand right before their landing.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Adds what of a span lies in `[from_s, to_s)`, cut where wall-clock times happen twice, after the times that the
/// change at its beginning skips.
fn add_span(
    parts: &mut Vec<Part>,
    (from_s, to_s): (i64, i64),
    before: Option<&Span>,
    span: &Span,
    after: Option<&Span>,
) {
    let offset_s = span.offset_s;
    let mut repeats_to_s = i64::MIN;
    if let Some(before) = before {
        let old_wall_s = span.from_s + before.offset_s;
        if before.offset_s > offset_s {
            repeats_to_s = old_wall_s;
        } else if span.from_s >= from_s {
            let landing_s = span.from_s;
            add_days(parts, old_wall_s, span.from_s + offset_s, |_| Pass::Skipped { landing_s });
        }
    }
    let repeated_from_s = match after {
        Some(after) if after.offset_s < offset_s => span.to_s + after.offset_s,
        _ => i64::MAX,
    };
    let low_s = span.from_s.max(from_s) + offset_s;
    let high_s = span.to_s.min(to_s) + offset_s;
    let second_to_s = repeats_to_s.clamp(low_s, high_s);
    let once_to_s = repeated_from_s.clamp(second_to_s, high_s);
    let midnight = |wall_s: i64| wall_s - offset_s;
    add_days(parts, low_s, second_to_s, |wall_s| Pass::Second { midnight_s: midnight(wall_s) });
    add_days(parts, second_to_s, once_to_s, |wall_s| Pass::Once { midnight_s: midnight(wall_s) });
    add_days(parts, once_to_s, high_s, |wall_s| Pass::First { midnight_s: midnight(wall_s) });
}

/// Adds a part for each day of a stretch of wall-clock seconds; `pass` is given the wall-clock second of midnight.
fn add_days(parts: &mut Vec<Part>, mut from_s: i64, to_s: i64, pass: impl Fn(i64) -> Pass) {
    while from_s < to_s {
        let midnight_s = from_s.div_euclid(DAY_SECONDS) * DAY_SECONDS;
        let next_s = (midnight_s + DAY_SECONDS).min(to_s);
        parts.push(Part {
            day: Day::of(midnight_s),
            from_s: second_of_day(from_s - midnight_s),
            to_s: second_of_day(next_s - midnight_s),
            pass: pass(midnight_s),
        });
        from_s = next_s;
    }
}

fn second_of_day(seconds: i64) -> u32 {
    u32::try_from(seconds).unwrap_or(0)
}

impl Day {
    /// The day that begins at a wall-clock second.
    fn of(wall_s: i64) -> Self {
        let at = DateTime::<Utc>::from_timestamp(wall_s, 0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        Self::on(at.date_naive())
    }

    pub(super) fn date(self) -> Option<NaiveDate> {
        NaiveDate::from_ymd_opt(self.year, self.month.into(), self.day.into())
    }

    pub(super) fn on(date: NaiveDate) -> Self {
        let month = date.month() as u8;
        Self {
            year: date.year(),
            month,
            day: date.day() as u8,
            weekday: date.weekday().num_days_from_sunday() as u8,
            month_days: days_in_month(month, date.leap_year()),
        }
    }
}

/// The days of a year.
pub(super) fn days_of_year(year: i32) -> impl Iterator<Item = Day> {
    let first = NaiveDate::from_yo_opt(year, 1).map(Day::on);
    std::iter::successors(first, |day| {
        let weekday = (day.weekday + 1) % 7;
        match (day.day == day.month_days, day.month) {
            (false, _) => Some(Day { day: day.day + 1, weekday, ..*day }),
            (true, 12) => None,
            (true, month) => {
                let leap_year = NaiveDate::from_yo_opt(day.year, 366).is_some();
                let month_days = days_in_month(month + 1, leap_year);
                Some(Day { month: month + 1, day: 1, weekday, month_days, ..*day })
            }
        }
    })
}

/// The number of days of a month (1 to 12).
pub(super) fn days_in_month(month: u8, leap_year: bool) -> u8 {
    match month {
        2 if leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Part {
    /// The minutes of the day that begin in it, `[from, to)`.
    pub(super) fn minutes(&self) -> (u32, u32) {
        (self.from_s.div_ceil(60), self.to_s.div_ceil(60))
    }

    /// The minutes of the day of which some second lies in it, `[from, to)`.
    pub(super) fn touched_minutes(&self) -> (u32, u32) {
        (self.from_s / 60, self.to_s.div_ceil(60))
    }
}
