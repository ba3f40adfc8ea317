//! Instants as people write them: ISO 8601 with an offset, or a local time whose zone stands beside it.
//!
//! Deliberately absent: the clock. Whether an instant is past is for the caller to say.

use chrono::{DateTime, LocalResult, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use tidegate_domain::limits::AT_HORIZON_DAYS;
use tidegate_domain::time::{WallClock, Window, clamped, days, shifted, whole_second, within_bounds};

use crate::problem::{ECHOED_CHARACTERS, FieldErrors, Kind, Problem, cut};
use crate::wire::instant;
use crate::wire::unreadable::why_unreadable;

/// How far a wall clock can differ from UTC with a day that is skipped, in seconds: what is searched around a gap.
const REACH_SECONDS: i64 = 40 * 3_600;

const WITH_OFFSET: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M%#z", "%Y%m%dT%H%M%S%#z"];
const LOCAL: [&str; 4] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];

/// What a text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// An instant, whatever the zone.
    Instant(DateTime<Utc>),
    /// What a wall clock shows.
    Local(NaiveDateTime),
}

/// The instant that a local time of a zone stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// It happens once.
    Once(DateTime<Utc>),
    /// The clocks jump over it: the first instant after the gap.
    AfterGap(DateTime<Utc>),
    /// It happens twice: the first time.
    First(DateTime<Utc>),
}

/// Reads an instant or a local time. `name` is what the text is called in the refusal.
pub(crate) fn read(name: &str, text: &str) -> Result<Written, String> {
    let given = text.trim();
    let with_offset = DateTime::parse_from_rfc3339(given)
        .ok()
        .or_else(|| WITH_OFFSET.iter().find_map(|form| DateTime::parse_from_str(given, form).ok()));
    if let Some(at) = with_offset {
        return bounded(name, text, at.to_utc()).map(Written::Instant);
    }
    if let Some(local) = LOCAL.iter().find_map(|form| NaiveDateTime::parse_from_str(given, form).ok()) {
        // Bounded as if it were UTC, so that no zone can bring it beyond what dates can show.
        return bounded(name, text, local.and_utc()).map(|_| Written::Local(local));
    }
    Err(format!("{name} '{}' {}", cut(text, ECHOED_CHARACTERS), why_unreadable(given)))
}

/// Refuses an instant beyond the years that Tidegate works with.
pub(crate) fn bounded(name: &str, text: &str, at: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    within_bounds(name, text, at).map_err(|error| error.to_string())
}

/// Reads an instant that must carry its offset, to the second, rounded up.
pub(crate) fn read_instant(name: &str, text: &str) -> Result<DateTime<Utc>, String> {
    match read(name, text)? {
        Written::Instant(at) => Ok(whole_second(at)),
        Written::Local(_) => Err(no_offset(name, text)),
    }
}

/// Reads two instants that a stretch of time begins and ends at, in the fields `since` and `until`; `None` when they are none, and
/// then `errors` says so.
pub(crate) fn read_window((since, until): (&str, &str), errors: &mut FieldErrors) -> Option<Window> {
    let from = errors.keep("since", since, read_instant("since", since));
    let to = errors.keep("until", until, read_instant("until", until));
    errors.keep("until", until, window_between(from?, to?))
}

fn window_between(from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Window, String> {
    let refused = || format!("until {} is not after since {}; exchange them", instant(to), instant(from));
    Window::new(from, to).ok().filter(|_| from < to).ok_or_else(refused)
}

/// An instant of a query, which may be left out.
pub(crate) fn read_of_query(name: &str, text: Option<&str>) -> Result<Option<DateTime<Utc>>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let read = read_instant(name, text);
    read.map(Some).map_err(|detail| Problem::of_field(Kind::MalformedRequest, name, text, detail))
}

/// The stretch of time of a query.
pub(crate) fn window_of_query(from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Window, Problem> {
    window_between(from, to)
        .map_err(|detail| Problem::of_field(Kind::MalformedRequest, "until", instant(to), detail))
}

/// A stretch of a query that looks back: of a day, up to now, unless it says otherwise.
pub(crate) fn window_back(
    since: Option<&str>,
    until: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Window, Problem> {
    let until = read_of_query("until", until)?.unwrap_or(whole_second(now));
    let since = read_of_query("since", since)?.unwrap_or(shifted(until, -days(1)));
    window_of_query(since, until)
}

/// The same for one that bounds what is to come: it lies within the horizon.
pub(crate) fn read_ahead(name: &str, text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let at = read_instant(name, text)?;
    within_horizon(name, text, at, now).map(|()| at)
}

/// Refuses an instant beyond the horizon.
pub(crate) fn within_horizon(
    name: &str,
    text: &str,
    at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), String> {
    if at <= shifted(now, days(AT_HORIZON_DAYS)) {
        return Ok(());
    }
    Err(format!("{name} '{text}' is {} ahead; {AT_HORIZON_DAYS} days is the most", span(at - now)))
}

/// What to say about a local time that no zone goes with.
pub(crate) fn no_offset(name: &str, text: &str) -> String {
    format!("{name} '{text}' has no offset; end it in Z for UTC or in an offset such as +01:00")
}

/// What to say about an instant that is over.
pub(crate) fn is_past(name: &str, text: &str, at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{name} '{text}' is {} ago (it is {} now)", span(now - at), instant(now))
}

/// The instant that a local time stands for. A change of the clocks hides none: there is always one.
pub(crate) fn resolve(local: NaiveDateTime, zone: Tz) -> Resolved {
    match WallClock::of(zone).from_local_datetime(&local) {
        LocalResult::Single(at) => Resolved::Once(at.to_utc()),
        LocalResult::Ambiguous(one, other) => Resolved::First(one.min(other).to_utc()),
        LocalResult::None => Resolved::AfterGap(after_gap(local, zone)),
    }
}

/// The first second at which the clocks show more than a local time that they jump over.
fn after_gap(local: NaiveDateTime, zone: Tz) -> DateTime<Utc> {
    let clock = WallClock::of(zone);
    let as_utc_s = local.and_utc().timestamp();
    let at = |second: i64| clamped(DateTime::from_timestamp(second, 0).unwrap_or_default());
    let shows_more = |second: i64| clock.from_utc_datetime(&at(second).naive_utc()).naive_local() > local;
    let (mut before_s, mut after_s) = (as_utc_s - REACH_SECONDS, as_utc_s + REACH_SECONDS);
    while after_s - before_s > 1 {
        let middle_s = before_s + (after_s - before_s) / 2;
        if shows_more(middle_s) { after_s = middle_s } else { before_s = middle_s }
    }
    at(after_s)
}

/// An instant as a zone's wall clock shows it, with its offset.
pub(crate) fn local(at: DateTime<Utc>, zone: Tz) -> String {
    clamped(at).with_timezone(&WallClock::of(zone)).to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// A length of time in its largest whole unit.
pub(crate) fn span(length: TimeDelta) -> String {
    let (number, unit) = match length.num_seconds() {
        seconds @ ..120 => (seconds, "seconds"),
        seconds @ 120..7_200 => (seconds / 60, "minutes"),
        seconds @ 7_200..172_800 => (seconds / 3_600, "hours"),
        seconds => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn the_spellings_of_iso_8601_are_read() {
        for text in [
            "2026-12-01T12:00:00Z",
            "2026-12-01 12:00:00Z",
            "2026-12-01T13:00:00+01:00",
            "2026-12-01T13:00:00+0100",
            "2026-12-01T12:00Z",
            "2026-12-01T13:00+01:00",
            "20261201T120000Z",
        ] {
            assert_eq!(read("at", text), Ok(Written::Instant(utc("2026-12-01T12:00:00Z"))), "{text}");
        }
        for text in ["2026-12-01T12:00:00", "2026-12-01 12:00:00", "2026-12-01T12:00", "2026-12-01 12:00"] {
            assert!(matches!(read("at", text), Ok(Written::Local(_))), "{text}");
            assert!(read_instant("at", text).unwrap_err().contains("has no offset"), "{text}");
        }
        for text in ["", "tomorrow", "1790000000", "2026-02-30T00:00:00Z", "2026-12-01"] {
            assert!(read("at", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_local_time_in_a_gap_is_the_first_instant_after_it_and_one_in_an_overlap_the_first() {
        let resolved = |text: &str, zone: Tz| match read("at", text) {
            Ok(Written::Local(local)) => resolve(local, zone),
            other => panic!("{other:?}"),
        };
        for (text, zone, at) in [
            ("2027-03-28T02:00", Tz::Europe__Berlin, "2027-03-28T01:00:00Z"),
            ("2027-03-28T02:59:59", Tz::Europe__Berlin, "2027-03-28T01:00:00Z"),
            ("2026-10-04T02:15", Tz::Australia__Lord_Howe, "2026-10-03T15:30:00Z"),
            ("2011-12-30T12:00", Tz::Pacific__Apia, "2011-12-30T10:00:00Z"),
        ] {
            assert_eq!(resolved(text, zone), Resolved::AfterGap(utc(at)), "{text} {zone}");
        }
        let first = resolved("2026-10-25T02:30", Tz::Europe__Berlin);
        assert_eq!(first, Resolved::First(utc("2026-10-25T00:30:00Z")));
        let by_this_release = resolved("2026-12-01T12:00", Tz::Africa__Casablanca);
        assert_eq!(by_this_release, Resolved::Once(utc("2026-12-01T12:00:00Z")));
        assert_eq!(local(utc("2026-12-01T12:00:00Z"), Tz::Africa__Casablanca), "2026-12-01T12:00:00+00:00");
        let once = resolved("2026-12-01T12:00", Tz::Asia__Kolkata);
        assert_eq!(once, Resolved::Once(utc("2026-12-01T06:30:00Z")));
    }
}
