//! Zones by name.

use proptest::prelude::*;
use tidegate_domain::time::{ZoneError, parse_zone, zone_database_version};

use crate::strategies::config;

#[test]
fn names_of_the_database_are_taken() {
    for name in [
        "UTC",
        "Etc/UTC",
        "EST",
        "Europe/Berlin",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT-3",
        " Asia/Kolkata ",
    ] {
        assert_eq!(parse_zone(name).unwrap().name(), name.trim());
    }
}

#[test]
fn an_unknown_zone_gets_the_nearest_name() {
    for (given, nearest) in [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Belin", "Europe/Berlin"),
        ("Europe\\Paris", "Europe/Paris"),
        ("Berlin", "Europe/Berlin"),
        ("New_York", "America/New_York"),
        ("new york", "America/New_York"),
        ("US/Pacfic", "US/Pacific"),
        ("utc", "UTC"),
    ] {
        let error = parse_zone(given).unwrap_err();
        assert_eq!(error.to_string(), format!("zone '{given}' is unknown: did you mean '{nearest}'?"));
    }
}

#[test]
fn fixed_offsets_are_refused_with_what_to_write() {
    for (given, fix) in [
        ("GMT+3", "'Etc/GMT-3' for 3 hours ahead of UTC"),
        ("UTC-05:00", "'Etc/GMT+5' for 5 hours behind UTC"),
        ("+02:00", "'Etc/GMT-2'"),
        ("gmt+0330", "the zone of a city"),
        ("+15", "the zone of a city"),
        ("UTC+0", "write 'UTC'"),
    ] {
        let error = parse_zone(given).unwrap_err();
        assert!(matches!(&error, ZoneError::FixedOffset { .. }), "{given}: {error:?}");
        assert!(error.to_string().contains(fix), "{error}");
    }
    assert_eq!(parse_zone(" "), Err(ZoneError::Empty));
}

#[test]
fn the_database_has_a_version() {
    assert!(zone_database_version().starts_with("20"), "{}", zone_database_version());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..config() })]

    #[test]
    fn no_text_breaks_the_reader_of_zones(text in "\\PC{0,30}|(GMT|UTC)?[+-][0-9:]{0,6}") {
        if let Err(error) = parse_zone(&text) {
            prop_assert!(error.to_string().starts_with("zone "), "{error}");
        }
    }
}
