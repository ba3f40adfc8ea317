//! Calendars: named lists of dates and intervals on which jobs do not launch, or on which alone they do, shared by a
//! client's jobs.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use chrono_tz::Tz;
use thiserror::Error;

use crate::ids::{CalendarId, ClientId};
use crate::limits::CALENDAR_ENTRIES;
use crate::occurrence::SkipReason;
use crate::rules::Rules;
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
/// assert!(!holidays.contains(eve, Tz::UTC) && holidays.contains(eve, Tz::Europe__Berlin));
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
    /// What it lists: at least one date or interval.
    pub exclusions: Exclusions,
}

/// The dates and intervals of a calendar. What they mean says the job that names it: it launches on none of them, or on them
/// alone.
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

    /// Whether a launch lies on one of them. `zone` is that of its job, whose days count unless the calendar has a zone of
    /// its own.
    pub fn contains(&self, launch_at: DateTime<Utc>, zone: Tz) -> bool {
        let day = clamped(launch_at).with_timezone(&WallClock::of(self.zone.unwrap_or(zone))).date_naive();
        self.dates.binary_search(&day).is_ok()
            || self.yearly.binary_search(&(day.month() as u8, day.day() as u8)).is_ok()
            || self.intervals.iter().any(|window| window.contains(launch_at))
    }
}

/// When a job may launch, by the calendars that it names as they are now, and by the launches that its client leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenDays {
    /// It launches on none of them. A calendar that is gone is left out: it excludes nothing.
    pub excluded: Vec<Arc<Exclusions>>,
    /// It launches on these alone; `None`: the job names none, and launches on any. A calendar that is gone is left out: it
    /// has no day, so that a job all of whose are gone does not launch.
    pub only_on: Option<Vec<Arc<Exclusions>>>,
    /// Launches that its client leaves out, before jitter, in their order.
    pub skip: Vec<DateTime<Utc>>,
}

impl OpenDays {
    /// The days on which the rules of a job let it launch. `listed` has what a calendar lists; `None`: it is gone.
    pub fn of(rules: &Rules, listed: impl Fn(&CalendarId) -> Option<Arc<Exclusions>>) -> Self {
        let all = |ids: &[CalendarId]| ids.iter().filter_map(&listed).collect();
        let only_on = (!rules.only_on.is_empty()).then(|| all(&rules.only_on));
        Self { excluded: all(&rules.calendars), only_on, skip: rules.skip.clone() }
    }

    /// Why a launch, before jitter, is not made; `None`: it is. `zone` is that of its job.
    pub fn refuses(&self, launch_at: DateTime<Utc>, zone: Tz) -> Option<SkipReason> {
        if self.skip.binary_search(&launch_at).is_ok() {
            return Some(SkipReason::OnRequest);
        }
        self.excludes(launch_at, zone).then_some(SkipReason::Excluded)
    }

    /// Whether the calendars leave out a launch, before jitter: it lies on an excluded day, or outside of the days on which alone its
    /// job launches. `zone` is that of its job.
    pub fn excludes(&self, launch_at: DateTime<Utc>, zone: Tz) -> bool {
        let lies_on = |calendar: &Arc<Exclusions>| calendar.contains(launch_at, zone);
        self.excluded.iter().any(lies_on)
            || self.only_on.as_ref().is_some_and(|only| !only.iter().any(lies_on))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instant(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_date_is_a_day_of_the_job_s_zone_unless_the_calendar_has_its_own() {
        let dates = vec![NaiveDate::from_ymd_opt(2026, 12, 25).unwrap()];
        let christmas = Exclusions { dates, ..Exclusions::default() }.checked().unwrap();
        let evening = instant("2026-12-24T23:30:00Z");
        assert!(christmas.contains(evening, Tz::Europe__Berlin));
        assert!(!christmas.contains(evening, Tz::UTC));
        let of_utc = Exclusions { zone: Some(Tz::UTC), ..christmas };
        assert!(!of_utc.contains(evening, Tz::Europe__Berlin));
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
            assert_eq!(both.contains(instant(at), Tz::UTC), excluded, "{at}");
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

    fn listing(dates: &[NaiveDate]) -> Arc<Exclusions> {
        Arc::new(Exclusions { dates: dates.to_vec(), ..Exclusions::default() })
    }

    #[test]
    fn no_calendar_leaves_all_days_and_one_that_is_gone_leaves_none() {
        let at = instant("2026-12-25T12:00:00Z");
        assert!(!OpenDays::default().excludes(at, Tz::UTC));
        let gone = OpenDays { only_on: Some(Vec::new()), ..OpenDays::default() };
        assert!(gone.excludes(at, Tz::UTC));
    }

    #[test]
    fn what_its_client_leaves_out_is_said_before_what_its_calendars_do() {
        let [first, second] = ["2026-12-24T12:00:00Z", "2026-12-25T12:00:00Z"].map(instant);
        let rules = Rules { skip: vec![first], ..Rules::default() };
        let listed = listing(&[second.date_naive()]);
        let open = OpenDays { excluded: vec![listed], ..OpenDays::of(&rules, |_| None) };
        let refused =
            [first, second, second + chrono::TimeDelta::days(1)].map(|at| open.refuses(at, Tz::UTC));
        assert_eq!(refused, [Some(SkipReason::OnRequest), Some(SkipReason::Excluded), None]);
    }

    proptest! {
        /// The reference writes out every hour of every listed day.
        #[test]
        fn a_launch_is_made_on_the_listed_days_that_are_not_excluded(
            excluded in proptest::collection::vec(proptest::collection::btree_set(0_u32..8, 0..4), 0..3),
            only_on in proptest::option::of(proptest::collection::vec(proptest::collection::btree_set(0_u32..8, 0..6), 0..3)),
        ) {
            let zone = Tz::America__New_York;
            // The clocks change on November 1.
            let day = |number: &u32| NaiveDate::from_ymd_opt(2026, 10, 28).unwrap() + chrono::Days::new((*number).into());
            let calendars = |lists: &[std::collections::BTreeSet<u32>]| -> Vec<_> {
                lists.iter().map(|list| listing(&list.iter().map(day).collect::<Vec<_>>())).collect()
            };
            let only = only_on.as_deref().map(calendars);
            let open = OpenDays { excluded: calendars(&excluded), only_on: only, ..OpenDays::default() };
            let start = instant("2026-10-27T00:00:00Z");
            for hour in 0..11 * 24 {
                let at = start + chrono::TimeDelta::hours(hour);
                let local = at.with_timezone(&zone).format("%F").to_string();
                let lists = |lists: &[std::collections::BTreeSet<u32>]| {
                    lists.iter().flatten().any(|number| day(number).to_string() == local)
                };
                let made = !lists(&excluded) && only_on.as_deref().is_none_or(lists);
                prop_assert_eq!(open.excludes(at, zone), !made, "{}", local);
            }
        }
    }
}
