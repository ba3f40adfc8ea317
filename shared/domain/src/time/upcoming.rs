//! The next launches of an expression, however far ahead: days are looked for on the calendar, only days that match
//! are translated into real time.

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use chrono_tz::Tz;

use super::cron::CompiledCron;
use super::days;
use super::firing::Firing;
use super::local::{Day, LocalWindow};
use super::window::Window;
use crate::bounded::bounded;
use crate::limits::{DEFAULT_FIRINGS, UPCOMING_FIRINGS};

const DAY_SECONDS: i64 = 86_400;
/// Wall clock and UTC are never farther apart, in seconds (Manila had 15:56 before 1844).
const REACH_SECONDS: i64 = 16 * 3_600;
/// The first piece of a day that is looked at, in seconds; each further one is longer. An expression that launches every
/// second has no use for a whole day.
const PIECE_SECONDS: i64 = 3_600;
/// How long to look for a launch when any year counts: every pattern of leap days and weekdays comes round in forty
/// years, also across a century year without a leap day.
const PATIENCE_DAYS: i64 = 41 * 366;

bounded! {
    /// How many firings an answer about what is to come has.
    FiringCount(u32), "count", 1..=UPCOMING_FIRINGS, default DEFAULT_FIRINGS
}

impl CompiledCron {
    /// The next launches after an instant, at most `count`; fewer when no more come: its years are over, or it has none
    /// within forty years of the last. An expression that never launches again has none.
    pub fn upcoming(&self, zone: Tz, after: DateTime<Utc>, count: usize) -> Vec<Firing> {
        let mut out = Vec::new();
        let mut from_s = after.timestamp() + 1;
        let mut patient_to_s = from_s + PATIENCE_DAYS * DAY_SECONDS;
        while out.len() < count
            && let Some(midnight_s) = self.next_day(from_s - REACH_SECONDS, patient_to_s)
        {
            let end_s = midnight_s + DAY_SECONDS + REACH_SECONDS;
            from_s = from_s.max(midnight_s - REACH_SECONDS);
            let mut piece_s = PIECE_SECONDS;
            while out.len() < count && from_s < end_s {
                let to_s = end_s.min(from_s + piece_s);
                let Some(window) = window(from_s, to_s) else { return out };
                self.firings_in(&LocalWindow::new(zone, window), &mut out);
                (from_s, piece_s) = (to_s, piece_s * 4);
            }
            if let Some(last) = out.last() {
                patient_to_s = last.launch_at.timestamp() + PATIENCE_DAYS * DAY_SECONDS;
            }
        }
        out.truncate(count);
        out
    }

    /// The wall-clock second of midnight of the first day that matches, from the day of a wall-clock second on. When any
    /// year counts, days after `patient_to_s` do not.
    fn next_day(&self, wall_s: i64, patient_to_s: i64) -> Option<i64> {
        let years = self.years();
        let mut date = DateTime::from_timestamp(wall_s, 0)?.date_naive();
        let last = DateTime::from_timestamp(patient_to_s, 0).map_or(NaiveDate::MAX, |at| at.date_naive());
        loop {
            let year = years.next(date.year())?;
            if year > date.year() {
                date = NaiveDate::from_yo_opt(year, 1)?;
            }
            if years.is_any() && date > last {
                return None;
            }
            if self.matches_day(Day::on(date)) {
                return Some(date.signed_duration_since(NaiveDate::default()).num_seconds());
            }
            date = date.checked_add_signed(days(1))?;
        }
    }
}

fn window(from_s: i64, to_s: i64) -> Option<Window> {
    Window::new(DateTime::from_timestamp(from_s, 0)?, DateTime::from_timestamp(to_s, 0)?).ok()
}
