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
fn a_slip_of_the_pen_gets_the_name_that_was_meant() {
    for (given, nearest) in [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Belin", "Europe/Berlin"),
        ("Europe\\Paris", "Europe/Paris"),
        ("Berlin", "Europe/Berlin"),
        ("New_York", "America/New_York"),
        ("new york", "America/New_York"),
        ("US/Pacfic", "US/Pacific"),
        ("Europe/Berln", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("Asia/Tokio", "Asia/Tokyo"),
        ("gmt", "GMT"),
        ("utc", "UTC"),
    ] {
        let error = parse_zone(given).unwrap_err();
        assert_eq!(error.to_string(), format!("zone '{given}' is unknown: did you mean '{nearest}'?"));
    }
}

#[test]
fn no_zone_is_guessed() {
    for given in ["Mars/Olympus", "Asia", "Qwertz", "Europe/", "XYZ", "AB", "Oral City", "Lagod/Africa"] {
        let told = parse_zone(given).unwrap_err().to_string();
        let expected =
            format!("zone '{given}' is unknown: name an IANA zone, such as 'Europe/Berlin', or 'UTC'");
        assert_eq!(told, expected);
    }
}

#[test]
fn abbreviations_and_the_zones_of_machines_get_what_to_name() {
    for (given, says) in [
        (
            "PST",
            "zone 'PST' is an abbreviation, and those are ambiguous: name the zone itself, 'America/Los_Angeles'",
        ),
        ("pdt", "'America/Los_Angeles'"),
        ("CST", "name the zone itself, 'America/Chicago', 'Asia/Shanghai' or 'America/Havana'"),
        ("IST", "'Asia/Kolkata', 'Europe/Dublin' or 'Asia/Jerusalem'"),
        ("CEST", "'Europe/Berlin' or another city of Central Europe"),
        ("est", "'America/New_York'"),
        (
            "Local",
            "is the zone of a machine, and jobs run on many: name an IANA zone, such as 'Europe/Berlin', or 'UTC'",
        ),
        ("system", "is the zone of a machine"),
        ("Pacific Standard Time", "is not an IANA zone: name an IANA zone"),
        ("Z", "write 'UTC'"),
    ] {
        let told = parse_zone(given).unwrap_err().to_string();
        assert!(told.contains(says), "{given}: {told}");
    }
}

#[test]
fn every_zone_that_is_named_for_an_abbreviation_exists() {
    for first in 'A'..='Z' {
        for rest in ["ST", "DT", "T", "EST", "EDT", "KST", "CST", "WST", "ZST", "KT", "AT", "RT", "IB", "SK"]
        {
            let Err(error) = parse_zone(&format!("{first}{rest}")) else { continue };
            let told = error.to_string();
            for name in told.split('\'').skip(3).step_by(2) {
                assert!(parse_zone(name).is_ok(), "{told}");
            }
        }
    }
}

#[test]
fn a_long_name_is_not_repeated_whole() {
    let told = parse_zone(&"x".repeat(100_000)).unwrap_err().to_string();
    assert!(told.len() < 200, "{told}");
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
