//! Calendars: named lists of days and intervals on which jobs do not launch, or on which alone they do, shared by a
//! client's jobs.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc, WeekdaySet};
use chrono_tz::Tz;
use thiserror::Error;

use crate::ids::{CalendarId, ClientId};
use crate::limits::CALENDAR_ENTRIES;
use crate::occurrence::SkipReason;
use crate::rules::Rules;
use crate::time::{OnClosedDay, WallClock, Window, clamped};
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
    /// What it lists: at least one day or interval.
    pub exclusions: Exclusions,
}

/// The days and intervals of a calendar. What they mean says the job that names it: it launches on none of them, or on them
/// alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exclusions {
    /// Whose days these are, and whose clocks an early close goes by; `None`: those of the zone of the job.
    pub zone: Option<Tz>,
    /// Single days, in order once they are checked.
    pub dates: Vec<NaiveDate>,
    /// Month (1 to 12) and day (1 to 31) of days that come every year. February 29 comes in leap years only.
    pub yearly: Vec<(u8, u8)>,
    /// Days of every week.
    pub weekdays: WeekdaySet,
    /// Days that it has only from a time of day on, in order once they are checked.
    pub early_close: Vec<EarlyClose>,
    /// Stretches of real time, each without its last instant.
    pub intervals: Vec<Window>,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

/// A day of one year, or of every.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Day {
    /// A date.
    Once(NaiveDate),
    /// Month (1 to 12) and day (1 to 31). February 29 comes in leap years only.
    Yearly(u8, u8),
}

impl Day {
    /// The date that it is in a year; `None` when it does not come in it.
    pub fn in_year(self, year: i32) -> Option<NaiveDate> {
        match self {
            Self::Once(date) => Some(date).filter(|date| date.year() == year),
            Self::Yearly(month, day) => NaiveDate::from_ymd_opt(year, month.into(), day.into()),
        }
    }
}

/// A day that a calendar has only from a time on. What the clocks of the zone show counts: where it begins at 02:30 and they are
/// put back from 03:00 to 02:00, the second 02:00 lies before it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EarlyClose {
    /// The day.
    pub day: Day,
    /// The first time of that day that the calendar has.
    pub from: NaiveTime,
}

impl EarlyClose {
    fn contains(&self, day: NaiveDate, time: NaiveTime) -> bool {
        self.from <= time && self.day.in_year(day.year()) == Some(day)
    }
}

/// Why a calendar is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CalendarError {
    /// It has nothing: no day of one year, of every year or of every week, no early close, no interval.
    #[error("calendar is empty: give 'dates', 'weekdays', 'early_close' or 'intervals'")]
    Empty,
    /// It has more entries than [`CALENDAR_ENTRIES`].
    #[error("calendar has {found} entries; {CALENDAR_ENTRIES} is the most: make two calendars of it")]
    TooMany {
        /// How many days, early closes and intervals there are.
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
        self.early_close.sort_unstable();
        self.early_close.dedup();
        self.intervals.sort_unstable_by_key(|window| (window.from(), window.to()));
        self.intervals.dedup();
        match self.entries() {
            0 => Err(CalendarError::Empty),
            found if found > CALENDAR_ENTRIES => Err(CalendarError::TooMany { found }),
            _ => Ok(self),
        }
    }

    /// How many there are.
    fn entries(&self) -> usize {
        let days = self.dates.len() + self.yearly.len() + usize::from(self.weekdays.len());
        days + self.early_close.len() + self.intervals.len()
    }

    /// Whether a launch lies on one of them. `zone` is that of its job, whose days and clocks count unless the calendar has a
    /// zone of its own.
    pub fn contains(&self, launch_at: DateTime<Utc>, zone: Tz) -> bool {
        let local = clamped(launch_at).with_timezone(&WallClock::of(self.zone.unwrap_or(zone)));
        let (day, time) = (local.date_naive(), local.time());
        self.dates.binary_search(&day).is_ok()
            || self.yearly.binary_search(&(day.month() as u8, day.day() as u8)).is_ok()
            || self.weekdays.contains(day.weekday())
            || self.early_close.iter().any(|early| early.contains(day, time))
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
    /// What becomes of launches that these leave out.
    pub on_closed_day: OnClosedDay,
    /// Launches that its client leaves out, before jitter, in their order.
    pub skip: Vec<DateTime<Utc>>,
}

impl OpenDays {
    /// The days on which the rules of a job let it launch. `listed` has what a calendar lists; `None`: it is gone.
    pub fn of(rules: &Rules, listed: impl Fn(&CalendarId) -> Option<Arc<Exclusions>>) -> Self {
        let all = |ids: &[CalendarId]| ids.iter().filter_map(&listed).collect();
        let only_on = (!rules.only_on.is_empty()).then(|| all(&rules.only_on));
        let on_closed_day = rules.on_closed_day;
        Self { excluded: all(&rules.calendars), only_on, on_closed_day, skip: rules.skip.clone() }
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
    use chrono::Weekday;
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
        let many = Exclusions { dates: dates.clone(), ..Exclusions::default() };
        assert_eq!(many.checked(), Err(CalendarError::TooMany { found }));
        let most = Exclusions { dates: dates[..CALENDAR_ENTRIES - 1].to_vec(), ..Exclusions::default() };
        let weekdays = [Weekday::Sat, Weekday::Sun].into_iter().collect();
        let many = Exclusions { weekdays, ..most.clone() };
        assert_eq!(many.checked(), Err(CalendarError::TooMany { found }));
        let early_close = vec![early(Day::Yearly(12, 24), "13:00"), early(Day::Yearly(12, 31), "13:00")];
        let many = Exclusions { early_close, ..most.clone() };
        assert_eq!(many.checked(), Err(CalendarError::TooMany { found }));
        assert!(most.checked().is_ok());
    }

    fn early(day: Day, from: &str) -> EarlyClose {
        EarlyClose { day, from: from.parse().unwrap() }
    }

    #[test]
    fn days_of_every_week_are_those_of_the_zone() {
        let weekdays = [Weekday::Sat, Weekday::Sun].into_iter().collect();
        let weekends = Exclusions { weekdays, ..Exclusions::default() }.checked().unwrap();
        for (at, of_new_york, of_utc) in [
            // A Friday.
            ("2026-11-27T23:59:59Z", false, false),
            ("2026-11-28T00:00:00Z", false, true),
            ("2026-11-28T05:00:00Z", true, true),
            ("2026-11-30T04:59:59Z", true, false),
            ("2026-11-30T05:00:00Z", false, false),
        ] {
            let found = [Tz::America__New_York, Tz::UTC].map(|zone| weekends.contains(instant(at), zone));
            assert_eq!(found, [of_new_york, of_utc], "{at}");
        }
        let each = Exclusions { weekdays: WeekdaySet::ALL, ..Exclusions::default() }.checked().unwrap();
        assert!(each.contains(instant("2026-11-27T23:59:59Z"), Tz::UTC));
    }

    /// The clocks of Berlin go from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.
    #[test]
    fn an_early_close_goes_by_what_the_clocks_show() {
        let date = |text: &str| Day::Once(text.parse().unwrap());
        let early_close = vec![
            early(Day::Yearly(12, 24), "13:00"),
            early(date("2026-03-29"), "02:30"),
            early(date("2026-10-25"), "02:30"),
            early(Day::Yearly(2, 29), "00:00"),
        ];
        let closes = Exclusions { early_close, ..Exclusions::default() }.checked().unwrap();
        for (at, shown, closed) in [
            ("2026-12-24T11:59:59Z", "2026-12-24 12:59:59", false),
            ("2026-12-24T12:00:00Z", "2026-12-24 13:00:00", true),
            ("2026-12-24T22:59:59Z", "2026-12-24 23:59:59", true),
            ("2026-12-24T23:00:00Z", "2026-12-25 00:00:00", false),
            ("2027-12-24T12:00:00Z", "2027-12-24 13:00:00", true),
            ("2026-03-29T00:59:59Z", "2026-03-29 01:59:59", false),
            ("2026-03-29T01:00:00Z", "2026-03-29 03:00:00", true),
            ("2027-03-29T12:00:00Z", "2027-03-29 14:00:00", false),
            ("2026-10-25T00:30:00Z", "2026-10-25 02:30:00", true),
            ("2026-10-25T01:00:00Z", "2026-10-25 02:00:00", false),
            ("2026-10-25T01:30:00Z", "2026-10-25 02:30:00", true),
            ("2027-02-28T23:30:00Z", "2027-03-01 00:30:00", false),
            ("2028-02-28T23:30:00Z", "2028-02-29 00:30:00", true),
        ] {
            let local = instant(at).with_timezone(&WallClock::of(Tz::Europe__Berlin));
            assert_eq!(local.format("%F %T").to_string(), shown);
            assert_eq!(closes.contains(instant(at), Tz::Europe__Berlin), closed, "{shown}");
        }
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

        /// The reference reads what the clocks show as text, over a month in which they are put back by half an hour.
        #[test]
        fn a_calendar_has_the_launches_on_its_days_and_after_its_early_closes(
            weekdays in proptest::collection::btree_set(0_u8..7, 0..3),
            closes in proptest::collection::vec((0_u64..30, 0_u32..24, any::<bool>()), 0..4),
        ) {
            const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
            let zone = Tz::Australia__Lord_Howe;
            let date = |number: u64| NaiveDate::from_ymd_opt(2027, 3, 20).unwrap() + chrono::Days::new(number);
            let close = |(number, hour, yearly): &(u64, u32, bool)| {
                let date = date(*number);
                let day = if *yearly { Day::Yearly(date.month() as u8, date.day() as u8) } else { Day::Once(date) };
                EarlyClose { day, from: NaiveTime::from_hms_opt(*hour, 30, 0).unwrap() }
            };
            let days = weekdays.iter().map(|day| Weekday::try_from(*day).unwrap());
            let early_close = closes.iter().map(close).collect();
            let calendar = Exclusions { weekdays: days.collect(), early_close, ..Exclusions::default() };
            let start = instant("2027-03-19T00:00:00Z");
            for half in 0..32 * 48 {
                let at = start + chrono::TimeDelta::minutes(30 * half);
                let shown = at.with_timezone(&WallClock::of(zone)).format("%a %F %R").to_string();
                let (weekday, shown) = shown.split_once(' ').unwrap();
                let on_a_weekday = weekdays.iter().any(|day| NAMES[usize::from(*day)] == weekday);
                let closed = closes.iter().any(|(number, hour, _)| {
                    let from = format!("{} {hour:02}:30", date(*number));
                    shown[..10] == from[..10] && *shown >= *from
                });
                prop_assert_eq!(calendar.contains(at, zone), on_a_weekday || closed, "{}", shown);
            }
        }
    }
}
