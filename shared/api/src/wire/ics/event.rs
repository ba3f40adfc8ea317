//! An event of an iCalendar file: which days or which interval its lines mean, and which of them cannot be taken.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use chrono_tz::Tz;
use ical_vcard::Contentline;
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::limits::CALENDAR_ENTRIES;
use tidegate_domain::time::{Window, parse_zone, seconds, shifted, whole_second};

use crate::problem::cut;
use crate::wire::when::{Resolved, bounded, resolve};

/// Longest text of an event that a sentence repeats, in characters.
const QUOTED_CHARACTERS: usize = 60;
/// What says when an event is beside its first day and its rule, and what to do about it.
const NOT_READ: [(&str, &str); 4] = [
    ("RDATE", "make each of its days an event of its own"),
    ("EXDATE", "make each of the days that remain an event of its own"),
    ("EXRULE", "make each of the days that remain an event of its own"),
    ("RECURRENCE-ID", "make each day of the event that it changes an event of its own"),
];

/// An event, as its lines say it.
#[derive(Default)]
pub(super) struct Event(Vec<Contentline>);

/// What is wrong with an event.
pub(super) struct Fault {
    pub(super) property: &'static str,
    pub(super) value: String,
    pub(super) message: String,
}

/// When an event is.
enum Extent {
    /// So many days from this one on.
    Days(NaiveDate, usize),
    /// Real time.
    Time(Window),
}

/// What a `DTSTART` or `DTEND` says.
enum Moment {
    Day(NaiveDate),
    Time(DateTime<Utc>),
}

/// What a `DURATION` says.
enum Length {
    Days(u32),
    Seconds(i64),
}

/// Whether a line has a name.
pub(super) fn is(line: &Contentline, name: &str) -> bool {
    line.name().eq_ignore_ascii_case(name)
}

impl Event {
    /// Adds what its next line says.
    pub(super) fn add(&mut self, line: Contentline) {
        self.0.push(line);
    }

    /// The first line of a name.
    fn find(&self, name: &str) -> Option<&Contentline> {
        self.0.iter().find(|line| is(line, name))
    }

    /// The line of a name that there may be once.
    fn only(&self, name: &'static str) -> Result<Option<&Contentline>, Fault> {
        match self.0.iter().filter(|line| is(line, name)).nth(1) {
            Some(second) => Err(fault(name, second.value(), format!("{name} is given twice; give it once"))),
            None => Ok(self.find(name)),
        }
    }

    /// Whether it does not take place.
    pub(super) fn is_cancelled(&self) -> bool {
        self.find("STATUS").is_some_and(|line| line.value().trim().eq_ignore_ascii_case("CANCELLED"))
    }

    /// What it is called in sentences.
    pub(super) fn called(&self, index: usize) -> String {
        let plain = |line: &Contentline| {
            cut(&line.value().replace("\\,", ",").replace("\\;", ";"), QUOTED_CHARACTERS)
        };
        match (self.find("SUMMARY"), self.find("UID")) {
            (Some(summary), _) => format!("event '{}'", plain(summary)),
            (None, Some(uid)) => format!("event with the UID '{}'", plain(uid)),
            (None, None) => format!("event {}", index + 1),
        }
    }

    /// Adds its days or its interval.
    pub(super) fn add_to(&self, exclusions: &mut Exclusions) -> Result<(), Fault> {
        for (name, fix) in NOT_READ {
            if let Some(line) = self.find(name) {
                return Err(fault(name, line.value(), format!("{name} is not read; {fix}")));
            }
        }
        let rule = self.only("RRULE")?;
        match (self.extent(exclusions.zone)?, rule) {
            (Extent::Time(window), None) => exclusions.intervals.push(window),
            (Extent::Days(first, number), None) => exclusions.dates.extend(first.iter_days().take(number)),
            (Extent::Days(first, number), Some(rule)) if is_each_year(rule.value(), first) => {
                let days = first.iter_days().take(number);
                // Which days follow February 28 differs from year to year.
                if days.clone().skip(1).any(|day| matches!((day.month(), day.day()), (2, 29) | (3, 1))) {
                    let message =
                        "it comes every year and lasts beyond February 28; make each day an event of its own";
                    return Err(fault("RRULE", rule.value(), message.to_owned()));
                }
                exclusions.yearly.extend(days.map(|day| (day.month() as u8, day.day() as u8)));
            }
            (_, Some(rule)) => {
                let given = cut(rule.value(), QUOTED_CHARACTERS);
                let message = format!(
                    "RRULE '{given}' is not read, only FREQ=YEARLY of an all-day event; make each of its days an event of its own"
                );
                return Err(fault("RRULE", rule.value(), message));
            }
        }
        Ok(())
    }

    /// When it is. `zone` is that of the calendar.
    fn extent(&self, zone: Option<Tz>) -> Result<Extent, Fault> {
        let Some(start) = self.only("DTSTART")? else {
            return Err(fault(
                "DTSTART",
                "",
                "DTSTART is missing; give it, such as DTSTART;VALUE=DATE:20261225".to_owned(),
            ));
        };
        let end = self.only("DTEND")?;
        let duration = self.only("DURATION")?;
        if let (Some(_), Some(duration)) = (end, duration) {
            let message = "it has DTEND and DURATION; give one of them".to_owned();
            return Err(fault("DURATION", duration.value(), message));
        }
        let start = moment("DTSTART", start, zone)?;
        if let Some(duration) = duration {
            return extent_of(start, duration.value().trim());
        }
        let Some(line) = end else {
            return match start {
                Moment::Day(first) => Ok(Extent::Days(first, 1)),
                Moment::Time(_) => {
                    let message = "it begins at a time of day and has no end; give DTEND".to_owned();
                    Err(fault("DTEND", "", message))
                }
            };
        };
        let refuse = |message: &str| Err(fault("DTEND", line.value(), message.to_owned()));
        match (start, moment("DTEND", line, zone)?) {
            (Moment::Day(first), Moment::Day(end)) => {
                match usize::try_from(end.signed_duration_since(first).num_days()) {
                    // One day, as some programs write it.
                    Ok(0) => Ok(Extent::Days(first, 1)),
                    Ok(number) => days(first, number, "DTEND", line.value()),
                    Err(_) => refuse("DTEND lies before DTSTART; give a later end"),
                }
            }
            (Moment::Time(from), Moment::Time(to)) => interval(from, to, "DTEND", line.value()),
            _ => {
                refuse("one of DTSTART and DTEND is a day and the other a time; make both days or both times")
            }
        }
    }
}

/// When an event is that lasts so long.
fn extent_of(start: Moment, duration: &str) -> Result<Extent, Fault> {
    match (start, length(duration)) {
        (Moment::Day(first), Some(Length::Days(number @ 1..))) => {
            days(first, number.try_into().unwrap_or(usize::MAX), "DURATION", duration)
        }
        (Moment::Time(from), Some(Length::Seconds(length))) => {
            interval(from, shifted(from, seconds(length)), "DURATION", duration)
        }
        _ => {
            let message = format!(
                "DURATION '{}' is not read; give DTEND in its place",
                cut(duration, QUOTED_CHARACTERS)
            );
            Err(fault("DURATION", duration, message))
        }
    }
}

fn days(first: NaiveDate, number: usize, property: &'static str, value: &str) -> Result<Extent, Fault> {
    if number > CALENDAR_ENTRIES {
        let message =
            format!("it lasts {number} days; {CALENDAR_ENTRIES} is the most: give it times, as an interval");
        return Err(fault(property, value, message));
    }
    if let Some(last) = first.iter_days().nth(number.saturating_sub(1)) {
        bounded(property, value, last.and_time(NaiveTime::MIN).and_utc())
            .map_err(|e| fault(property, value, e))?;
    }
    Ok(Extent::Days(first, number))
}

fn interval(
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    property: &'static str,
    value: &str,
) -> Result<Extent, Fault> {
    let window = Window::new(from, to).ok().filter(|_| from < to).map(Extent::Time);
    window
        .ok_or_else(|| fault(property, value, "it does not end after it begins; give a later end".to_owned()))
}

/// What a line says: a day, or a time in its zone or that of the calendar.
fn moment(property: &'static str, line: &Contentline, zone: Option<Tz>) -> Result<Moment, Fault> {
    let text = line.value().trim();
    let refuse = |message: String| fault(property, text, message);
    if let Some(day) = text.len().eq(&8).then(|| NaiveDate::parse_from_str(text, "%Y%m%d").ok()).flatten() {
        let midnight = day.and_time(NaiveTime::MIN).and_utc();
        return bounded(property, text, midnight).map(|_| Moment::Day(day)).map_err(refuse);
    }
    let (local, is_utc) = text.strip_suffix('Z').map_or((text, false), |local| (local, true));
    let Ok(local) = NaiveDateTime::parse_from_str(local, "%Y%m%dT%H%M%S") else {
        let given = cut(text, QUOTED_CHARACTERS);
        return Err(refuse(format!(
            "{property} '{given}' is neither a day such as 20261225 nor a time such as 20261225T130000Z"
        )));
    };
    // Bounded as if it were UTC, so that no zone can bring it beyond what dates can show.
    let as_utc = bounded(property, text, local.and_utc()).map_err(refuse)?;
    if is_utc {
        return Ok(Moment::Time(whole_second(as_utc)));
    }
    let named = line.params().iter().find(|param| param.name().eq_ignore_ascii_case("TZID"));
    let zone = match named.and_then(|param| param.values().first()) {
        Some(name) => Some(
            parse_zone(name.as_str()).map_err(|error| refuse(format!("the TZID of {property}: {error}")))?,
        ),
        None => zone,
    };
    let Some(zone) = zone else {
        let message = format!(
            "{property} '{text}' has no zone; give the one of the calendar, such as ?zone=Europe/Berlin"
        );
        return Err(refuse(message));
    };
    let (Resolved::Once(at) | Resolved::AfterGap(at) | Resolved::First(at)) = resolve(local, zone);
    bounded(property, text, whole_second(at)).map(Moment::Time).map_err(refuse)
}

/// Reads days or weeks, or hours, minutes and seconds. Both together are none of these: how long a day is, its zone says.
fn length(text: &str) -> Option<Length> {
    let text = text.strip_prefix('+').unwrap_or(text).strip_prefix('P')?;
    if let Some(days) = text.strip_suffix('D') {
        return days.parse().ok().map(Length::Days);
    }
    if let Some(weeks) = text.strip_suffix('W') {
        return weeks.parse::<u32>().ok()?.checked_mul(7).map(Length::Days);
    }
    let (mut rest, mut total) = (text.strip_prefix('T')?, 0_i64);
    for (unit, unit_s) in [('H', 3_600), ('M', 60), ('S', 1)] {
        if let Some((number, after)) = rest.split_once(unit) {
            total += i64::from(number.parse::<u32>().ok()?) * unit_s;
            rest = after;
        }
    }
    rest.is_empty().then_some(Length::Seconds(total))
}

/// Whether a rule means the day of the year that an event begins with, and no other.
fn is_each_year(rule: &str, first: NaiveDate) -> bool {
    let (mut by_year, mut by_month, mut by_day) = (false, false, false);
    let are_plain = rule.trim().split(';').all(|part| {
        let part = part.to_ascii_uppercase();
        match part.split_once('=') {
            Some(("FREQ", "YEARLY")) => by_year = true,
            Some(("BYMONTH", month)) if month.parse() == Ok(first.month()) => by_month = true,
            Some(("BYMONTHDAY", day)) if day.parse() == Ok(first.day()) => by_day = true,
            Some(("INTERVAL", "1") | ("WKST", _)) => {}
            _ => return false,
        }
        true
    });
    // A day without its month would be that of every month.
    are_plain && by_year && (by_month || !by_day)
}

fn fault(property: &'static str, value: &str, message: String) -> Fault {
    Fault { property, value: value.to_owned(), message }
}
