//! Exclusion calendars as they travel.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc, Weekday};
use serde::Deserialize;
use tidegate_domain::bounded::Revision;
use tidegate_domain::calendar::{Calendar, Day, EarlyClose, Exclusions};
use tidegate_domain::limits::{CALENDAR_ENTRIES, NAME_BYTES};
use tidegate_domain::time::{Window, parse_zone};
use tidegate_engine::LaunchChange;
use tidegate_protocol::{self as protocol, CalendarView, Interval};
use utoipa::{IntoParams, ToSchema};

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::instant;
use crate::wire::number::{Number, PageLimit};
use crate::wire::when::{bounded, read_instant};

/// A year with a 29 February, to read days of every year in.
const LEAP_YEAR: &str = "2028-";
/// Launches that a change of a calendar is shown by.
const SHOWN: usize = 20;

/// How the time of an early close is written.
const TIME: &str = "%H:%M";

/// A calendar as a client defines it: the days and stretches on which the jobs that name it do not launch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "dates": ["2026-12-25", "12-25"], "weekdays": ["sat", "sun"],
    "early_close": [{"date": "12-24", "from": "13:00"}], "zone": "Europe/Berlin"
}))]
pub(crate) struct CalendarBody {
    /// Its name, if it is given here too: the one in the path.
    #[schema(value_type = Option<String>)]
    pub(crate) calendar_id: Option<Text<NAME_BYTES>>,
    /// The revision that is expected, as in `If-Match`.
    #[schema(value_type = Option<u32>)]
    pub(crate) revision: Option<Number<Revision>>,
    /// Days, such as `2026-12-25`, or `12-25` for every year.
    #[serde(default)]
    dates: Vec<String>,
    /// Days of every week.
    #[serde(default)]
    weekdays: Vec<protocol::Weekday>,
    /// Days that it has only from a time on.
    #[serde(default)]
    early_close: Vec<protocol::EarlyClose>,
    /// Stretches of real time.
    #[serde(default)]
    intervals: Vec<Interval>,
    /// The IANA zone whose days these are, and whose clocks its early closes go by; that of each job when left out.
    #[schema(example = "Europe/Berlin")]
    zone: Option<String>,
}

bounded_fields!(CalendarBody: calendar_id, revision);

/// What is said of an iCalendar file beside it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PutCalendarQuery {
    /// With an iCalendar file: the IANA zone whose days its all-day events are, and by whose clocks its times without a zone go.
    #[param(example = "Europe/Berlin")]
    pub(crate) zone: Option<String>,
}

/// The same, with the page of jobs that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PreviewChangeQuery {
    /// With an iCalendar file: the IANA zone whose days its all-day events are, and by whose clocks its times without a zone go.
    #[param(example = "Europe/Berlin")]
    pub(crate) zone: Option<String>,
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
}

impl Form for CalendarBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl CalendarBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Exclusions> {
        let days = self.dates.len() + self.weekdays.len() + self.early_close.len();
        let found = days + self.intervals.len();
        // Duplicates are dropped, but not from lists without end.
        if found > 10 * CALENDAR_ENTRIES {
            let message = format!("calendar has {found} entries; {CALENDAR_ENTRIES} is the most");
            errors.add("dates", (), message);
            return None;
        }
        let zone = match &self.zone {
            Some(given) => errors.keep("zone", &**given, parse_zone(given)).map(Some),
            None => Some(None),
        };
        let (mut exclusions, mut faults) = (Exclusions::default(), Vec::new());
        for (index, text) in self.dates.iter().enumerate() {
            match read_day(text) {
                Ok(Day::Once(date)) => exclusions.dates.push(date),
                Ok(Day::Yearly(month, day)) => exclusions.yearly.push((month, day)),
                Err(message) => faults.push((format!("dates[{index}]"), text.clone(), message)),
            }
        }
        // A word that is none was refused with the form of the body.
        exclusions.weekdays = self.weekdays.iter().copied().filter_map(weekday).collect();
        for (index, early) in self.early_close.iter().enumerate() {
            match read_close(early, index) {
                Ok(close) => exclusions.early_close.push(close),
                Err(fault) => faults.push(fault),
            }
        }
        for (index, interval) in self.intervals.iter().enumerate() {
            match read_interval(interval, index) {
                Ok(window) => exclusions.intervals.push(window),
                Err(fault) => faults.push(fault),
            }
        }
        let clean = faults.is_empty();
        for (field, given, message) in faults {
            errors.add(field, given, message);
        }
        if !clean {
            return None;
        }
        exclusions.zone = zone?;
        errors.keep("dates", (), exclusions.checked())
    }
}

/// A field, what it holds, and what is wrong with it.
type Fault = (String, String, String);

fn read_interval(interval: &Interval, index: usize) -> Result<Window, Fault> {
    let at = |name: &str, text: &str| {
        let refuse = |message| (format!("intervals[{index}].{name}"), text.to_owned(), message);
        read_instant(name, text).map_err(refuse)
    };
    let (from, to) = (at("from", &interval.from)?, at("to", &interval.to)?);
    if to <= from {
        let message = format!("to {} is not after from {}; give a later end", instant(to), instant(from));
        return Err((format!("intervals[{index}].to"), interval.to.clone(), message));
    }
    Window::new(from, to).map_err(|error| (format!("intervals[{index}]"), String::new(), error.to_string()))
}

fn read_close(early: &protocol::EarlyClose, index: usize) -> Result<EarlyClose, Fault> {
    let protocol::EarlyClose { date, from } = early;
    let refuse =
        |name, text: &str, message| (format!("early_close[{index}].{name}"), text.to_owned(), message);
    let day = read_day(date).map_err(|message| refuse("date", date, message))?;
    let time = from.len().eq(&5).then(|| NaiveTime::parse_from_str(from, TIME).ok()).flatten();
    let from = time.ok_or_else(|| {
        let message = format!("from '{from}' is no time of day; write 13:00");
        refuse("from", from, message)
    })?;
    Ok(EarlyClose { day, from })
}

fn read_day(text: &str) -> Result<Day, String> {
    match parse_day(text) {
        Some(Day::Once(date)) => {
            bounded("date", text, date.and_time(NaiveTime::MIN).and_utc()).map(|_| Day::Once(date))
        }
        Some(day) => Ok(day),
        None => Err(format!("date '{text}' is no day; write 2026-12-25, or 12-25 for every year")),
    }
}

fn parse_day(text: &str) -> Option<Day> {
    let day = |text: &str| text.len().eq(&10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?;
    if text.len() == 5 {
        day(&format!("{LEAP_YEAR}{text}"))?;
        let (month, day) = text.split_once('-')?;
        return Some(Day::Yearly(month.parse().ok()?, day.parse().ok()?));
    }
    day(text).map(Day::Once)
}

/// The days of the week, each as it travels.
const WEEKDAYS: [(protocol::Weekday, Weekday); 7] = [
    (protocol::Weekday::Mon, Weekday::Mon),
    (protocol::Weekday::Tue, Weekday::Tue),
    (protocol::Weekday::Wed, Weekday::Wed),
    (protocol::Weekday::Thu, Weekday::Thu),
    (protocol::Weekday::Fri, Weekday::Fri),
    (protocol::Weekday::Sat, Weekday::Sat),
    (protocol::Weekday::Sun, Weekday::Sun),
];

fn weekday(word: protocol::Weekday) -> Option<Weekday> {
    WEEKDAYS.iter().find(|(sent, _)| *sent == word).map(|(_, day)| *day)
}

/// What a job would gain and lose, as it is answered.
pub(crate) fn change_view(change: &LaunchChange) -> protocol::LaunchChange {
    let number = |launches: &[DateTime<Utc>]| u32::try_from(launches.len()).unwrap_or(u32::MAX);
    let first = |launches: &[DateTime<Utc>]| launches.iter().take(SHOWN).copied().map(instant).collect();
    protocol::LaunchChange {
        job_id: change.job.to_string(),
        gained: number(&change.gained),
        first_gained: first(&change.gained),
        lost: number(&change.lost),
        first_lost: first(&change.lost),
        compared_to: change.compared_to.map(instant),
    }
}

/// A calendar as it is answered.
pub(crate) fn view(calendar: &Calendar) -> CalendarView {
    let Exclusions { zone, dates, yearly, weekdays, early_close, intervals, unknown: _ } =
        &calendar.exclusions;
    let dates = dates.iter().map(|date| Day::Once(*date));
    let yearly = yearly.iter().map(|(month, day)| Day::Yearly(*month, *day));
    let named = |day: Day| match day {
        Day::Once(date) => date.to_string(),
        Day::Yearly(month, day) => format!("{month:02}-{day:02}"),
    };
    let weekdays = WEEKDAYS.iter().filter(|(_, day)| weekdays.contains(*day)).map(|(word, _)| *word);
    let close = |early: &EarlyClose| protocol::EarlyClose {
        date: named(early.day),
        from: early.from.format(TIME).to_string(),
    };
    let interval = |window: &Window| Interval { from: instant(window.from()), to: instant(window.to()) };
    CalendarView {
        calendar_id: calendar.id.to_string(),
        revision: calendar.revision,
        zone: zone.map(|zone| zone.name().to_owned()),
        dates: dates.chain(yearly).map(named).collect(),
        weekdays: weekdays.collect(),
        early_close: early_close.iter().map(close).collect(),
        intervals: intervals.iter().map(interval).collect(),
    }
}
