//! Spellings from real life: what is taken, refused with a sentence that helps, or taken with a warning, as the README of
//! the reference data says.

use proptest::prelude::*;
use tidegate_domain::time::{Expression, RateTextError, parse_interval, parse_zone};

use crate::strategies::config;

/// The canonical text of a cron expression, or the seconds of an interval.
fn read(text: &str) -> Result<String, String> {
    match Expression::parse(text) {
        Ok((_, Expression::Cron(spec))) => Ok(spec.canonical().to_owned()),
        Ok((_, Expression::Rate { every_seconds })) => Ok(format!("{every_seconds}s")),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn spellings_that_are_taken() {
    for (text, want) in [
        ("00 00 1 * *", "00 00 1 * *"),
        ("0\t3 *   * *", "0 3 * * *"),
        ("*/1 * * * *", "*/1 * * * *"),
        ("0 0-23/1 * * *", "0 0-23/1 * * *"),
        ("5/15 * * * *", "5/15 * * * *"),
        ("0 9 * * Mon-FRI", "0 9 * * MON-FRI"),
        ("0 9 * * sun,0,7", "0 9 * * SUN,0,7"),
        ("0 8-23,0-1 * * *", "0 8-23,0-1 * * *"),
        ("CRON_TZ=America/New_York 0 9 18 * * 1", "0 9 18 * * 1"),
        ("TZ=Asia/Tokyo @daily", "0 0 * * *"),
        ("cron(0 20 ? * MON-FRI *)", "0 20 * * MON-FRI"),
        ("CRON_TZ=UTC cron(0/3 * * * ? *)", "0/3 * * * *"),
        ("0 0 12 * * ?", "0 0 12 * * ?"),
        ("0/10 * * * * ?", "0/10 * * * * ?"),
        ("rate(1 hour)", "3600s"),
        ("rate(2 minutes)", "120s"),
        ("RATE(7 days)", "604800s"),
        ("@every 1h", "3600s"),
        ("@Every 1h30m", "5400s"),
        ("TZ=UTC @every 90s", "90s"),
    ] {
        assert_eq!(read(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn a_zone_in_front_is_handed_back() {
    let (zone, _) = Expression::parse("CRON_TZ=Europe/Berlin 0 9 * * *").unwrap();
    assert_eq!(zone, Some("Europe/Berlin"));
    assert_eq!(Expression::parse("0 9 * * *").unwrap().0, None);
}

#[test]
fn spellings_that_are_refused_with_a_sentence_that_helps() {
    for (text, parts) in [
        ("cron(0 2 * * *)", &["5 fields", "AWS has 6", "'0 2 * * *'"][..]),
        ("cron(0 17 8-14 * ? SUN)", &["'SUN'", "year's place"]),
        ("0 22-2 * * *", &["hour", "'22-23,0-2'"]),
        ("60 0 * * *", &["minute", "'60'", "'0'"]),
        ("0 24 * * *", &["hour", "'24'", "'0' for midnight"]),
        ("*0/10 * * * *", &["minute", "'*0/10'", "'*/n'"]),
        ("rate(5 minute)", &["'minute'", "singular", "'rate(5 minutes)'"]),
        ("rate(1 hours)", &["'rate(1 hour)'"]),
        ("H 23 * * *", &["minute", "Jenkins"]),
        ("0 0,6,12,18 * * ? *", &["'cron(0 0,6,12,18 * * ? *)'"]),
        ("@reboot", &["boot"]),
        ("@once", &["'at'"]),
        ("CRON_TZ=Europe/Berlin", &["empty"]),
        ("TZ=UTC TZ=UTC 0 9 * * *", &["a zone in front"]),
        ("0 0 L-3 * *", &["'L-3'", "'L' or a day"]),
    ] {
        let error = read(text).expect_err(text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    assert!(parse_zone("GMT+3").unwrap_err().to_string().contains("'Etc/GMT-3'"));
}

#[test]
fn spellings_that_are_taken_with_a_warning() {
    for (text, part) in [
        ("0 0 1-7 * 1", "either one"),
        ("*/45 * * * *", "uneven"),
        ("*/7 * * * *", "uneven"),
        ("*/90 * * * *", "only 0 matches"),
        ("* 0/15 * * *", "every minute of 2 hours"),
        ("0 0 10 ? * 2#1 *", "1 is Monday here and Sunday in Quartz"),
    ] {
        let (_, Expression::Cron(spec)) = Expression::parse(text).unwrap() else { panic!("{text}") };
        assert!(
            spec.warnings().iter().any(|warning| warning.contains(part)),
            "{text}: {:?}",
            spec.warnings()
        );
    }
}

#[test]
fn intervals_as_people_write_them() {
    for (text, seconds) in [
        ("5 minutes", 300),
        ("5 minute", 300),
        ("1 minute", 60),
        (" 90s ", 90),
        ("90 sec", 90),
        ("1h", 3_600),
        ("2d", 172_800),
        ("1h30m", 5_400),
        ("1 Hour 30 Minutes", 5_400),
        ("1w", 604_800),
        ("rate( 5  minutes )", 300),
        ("rate(1 day)", 86_400),
        ("@every 10s", 10),
        ("366 days", 31_622_400),
    ] {
        assert_eq!(parse_interval(text), Ok(seconds), "{text}");
    }
}

#[test]
fn what_is_no_interval_is_refused() {
    for (text, parts) in [
        ("", &["names no time", "'5 minutes'"][..]),
        ("@every", &["names no time"]),
        ("90", &["no unit", "'90s'"]),
        ("minutes", &["'minutes' where a number should be"]),
        ("1.5h", &["fraction"]),
        ("500ms", &["whole seconds"]),
        ("1 month", &["'month'", "cron expression"]),
        ("5 fortnights", &["'fortnights'"]),
        ("-5 minutes", &["'-5'"]),
        ("rate(5 minutes", &["bracket"]),
        ("rate(5)", &["a number and a unit"]),
        ("rate(five minutes)", &["'five'", "whole number"]),
        ("rate(90 seconds)", &["AWS", "'90 seconds' without"]),
        ("rate(5 moons)", &["'moons'", "AWS"]),
        ("99999999999999999999s", &["longer"]),
        ("9999999999999999 days", &["longer"]),
    ] {
        let error = parse_interval(text).expect_err(text);
        assert!(matches!(error, RateTextError::Text { .. }), "{text}: {error:?}");
        let error = error.to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
    for text in ["0 minutes", "367 days", "rate(0 minutes)"] {
        assert!(matches!(parse_interval(text), Err(RateTextError::Bounds(_))), "{text}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_text_breaks_the_reader_of_intervals(text in "\\PC{0,20}|(rate\\(|@every )?[0-9]{0,22} ?[a-zA-Z]{0,8}\\)?|([0-9]{1,4}[smhdw]){1,5}") {
        match parse_interval(&text) {
            Ok(seconds) => prop_assert!((1..=366 * 86_400).contains(&seconds)),
            Err(error) => prop_assert!(error.to_string().len() > 20, "{error}"),
        }
    }
}
