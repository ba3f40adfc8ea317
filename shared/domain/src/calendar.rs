//! Exclusion calendars: named lists of dates and intervals on which jobs do not launch, shared by a client's jobs.

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use chrono_tz::Tz;
use thiserror::Error;

use crate::ids::{CalendarId, ClientId};
use crate::limits::CALENDAR_ENTRIES;
use crate::time::{WallClock, Window, clamped};
use crate::unknown::Unknown;

/// A calendar as it is stored.
///
/// ```
/// use chrono::{NaiveDate, TimeZone, Utc};
/// use chrono_tz::Tz;
/// use tidegate_domain::calendar::Exclusions;
///
/// let christmas = NaiveDate::from_ymd_opt(2026, 12, 25).into_iter().collect();
/// let holidays = Exclusions { dates: christmas, ..Exclusions::default() }.checked()?;
/// let eve = Utc.with_ymd_and_hms(2026, 12, 24, 23, 30, 0).unwrap();
/// assert!(!holidays.excludes(eve, Tz::UTC) && holidays.excludes(eve, Tz::Europe__Berlin));
/// # Ok::<(), tidegate_domain::calendar::CalendarError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// The client whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub id: CalendarId,
    /// Rises by one with each change; starts at 1.
    pub revision: u32,
    /// What it excludes: at least one date or interval.
    pub exclusions: Exclusions,
}

/// Dates and intervals on which nothing launches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exclusions {
    /// Whose days the dates are; `None`: those of the zone of the job.
    pub zone: Option<Tz>,
    /// Single days, in order once they are checked.
    pub dates: Vec<NaiveDate>,
    /// Month (1 to 12) and day (1 to 31) of days that come every year. February 29 comes in leap years only.
    pub yearly: Vec<(u8, u8)>,
    /// Stretches of real time, each without its last instant.
    pub intervals: Vec<Window>,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

/// Why a calendar is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// It excludes nothing: no date, no day of every year, no interval.
    #[error("calendar is empty: give 'dates', 'intervals' or both")]
    Empty,
    /// It has more dates and intervals than [`CALENDAR_ENTRIES`].
    #[error(
        "calendar has {found} dates and intervals; {CALENDAR_ENTRIES} is the most: make two calendars of it"
    )]
    TooMany {
        /// How many dates and intervals there are.
        found: usize,
    },
}

impl Exclusions {
    /// Sorts them and drops duplicates.
    ///
    /// # Errors
    /// [`CalendarError::Empty`] when there is none, [`CalendarError::TooMany`] when there are more than
    /// [`CALENDAR_ENTRIES`].
    pub fn checked(mut self) -> Result<Self, CalendarError> {
        self.dates.sort_unstable();
        self.dates.dedup();
        self.yearly.sort_unstable();
        self.yearly.dedup();
        self.intervals.sort_unstable_by_key(|window| (window.from(), window.to()));
        self.intervals.dedup();
        match self.dates.len() + self.yearly.len() + self.intervals.len() {
            0 => Err(CalendarError::Empty),
            found if found > CALENDAR_ENTRIES => Err(CalendarError::TooMany { found }),
            _ => Ok(self),
        }
    }

    /// Whether a launch is excluded. `zone` is that of its job, whose days count unless the calendar has a zone of its
    /// own.
    pub fn excludes(&self, launch_at: DateTime<Utc>, zone: Tz) -> bool {
        let day = clamped(launch_at).with_timezone(&WallClock::of(self.zone.unwrap_or(zone))).date_naive();
        self.dates.binary_search(&day).is_ok()
            || self.yearly.binary_search(&(day.month() as u8, day.day() as u8)).is_ok()
            || self.intervals.iter().any(|window| window.contains(launch_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_date_is_a_day_of_the_job_s_zone_unless_the_calendar_has_its_own() {
        let dates = vec![NaiveDate::from_ymd_opt(2026, 12, 25).unwrap()];
        let christmas = Exclusions { dates, ..Exclusions::default() }.checked().unwrap();
        let evening = instant("2026-12-24T23:30:00Z");
        assert!(christmas.excludes(evening, Tz::Europe__Berlin));
        assert!(!christmas.excludes(evening, Tz::UTC));
        let of_utc = Exclusions { zone: Some(Tz::UTC), ..christmas };
        assert!(!of_utc.excludes(evening, Tz::Europe__Berlin));
    }

    #[test]
    fn intervals_are_half_open_and_yearly_days_come_again() {
        let window = Window::new(instant("2026-01-01T10:00:00Z"), instant("2026-01-01T12:00:00Z")).unwrap();
        let both = Exclusions { yearly: vec![(2, 29)], intervals: vec![window], ..Exclusions::default() };
        let both = both.checked().unwrap();
        for (at, excluded) in [
            ("2026-01-01T09:59:59Z", false),
            ("2026-01-01T10:00:00Z", true),
            ("2026-01-01T12:00:00Z", false),
            ("2028-02-29T00:00:00Z", true),
            ("2028-02-28T23:59:59Z", false),
        ] {
            assert_eq!(both.excludes(instant(at), Tz::UTC), excluded, "{at}");
        }
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(Exclusions::default().checked(), Err(CalendarError::Empty));
        let first = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
        let dates: Vec<_> = first.iter_days().take(CALENDAR_ENTRIES + 1).collect();
        let found = dates.len();
        let many = Exclusions { dates, ..Exclusions::default() };
        assert_eq!(many.checked(), Err(CalendarError::TooMany { found }));
    }
}
