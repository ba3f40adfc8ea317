//! The compiled masks against croner.

use chrono::{DateTime, Datelike, Duration};
use croner::Direction;
use proptest::prelude::*;
use tidegate_domain::time::{CompiledCron, CronSpec, DstRules, Gap, Overlap, Window};

use crate::strategies::{config, spec};
use crate::{cron, instant, oracle, window, zone};

proptest! {
    #![proptest_config(config())]

    /// I6: the masks match exactly the seconds that croner matches.
    #[test]
    fn masks_match_what_croner_matches(spec in spec(), seconds in prop::collection::vec(0i64..4_000_000_000, 8)) {
        let oracle = oracle::croner(spec.canonical());
        for second in seconds.into_iter().flat_map(|second| [second, second / 60 * 60]) {
            let at = DateTime::from_timestamp(second, 0).unwrap();
            let found = spec.compiled().firings(chrono_tz::UTC, Window::new(at, at + Duration::seconds(1)).unwrap());
            prop_assert_eq!(!found.is_empty(), oracle::matches(&oracle, at.naive_utc()), "{} at {}", spec.canonical(), at);
        }
    }

    /// The next launches in UTC are those that croner iterates over. Years end at 2199 here.
    #[test]
    fn upcoming_is_what_croner_iterates(spec in spec(), second in 0i64..4_000_000_000) {
        let after = DateTime::from_timestamp(second, 0).unwrap();
        let has_years = oracle::has_years(spec.canonical());
        let next = spec.compiled().upcoming(chrono_tz::UTC, after, 4);
        let oracle = oracle::croner(spec.canonical());
        let iterated = oracle.iter_from(after, Direction::Forward).take(5).filter(|at| *at > after);
        let want: Vec<_> = iterated.take_while(|at| !has_years || at.year() <= 2199).take(4).collect();
        prop_assert_eq!(next.iter().map(|firing| firing.launch_at).collect::<Vec<_>>(), want, "{}", spec.canonical());
    }

    #[test]
    fn a_stored_expression_reads_back(spec in spec()) {
        let text = spec.encode();
        prop_assert!(text.len() < if text.starts_with('1') { 60 } else { 130 } && text.is_ascii(), "{text}");
        prop_assert_eq!(CompiledCron::decode(&text), Ok(*spec.compiled()));
    }

    #[test]
    fn the_canonical_text_is_the_same_expression(spec in spec()) {
        prop_assert_eq!(CronSpec::parse(spec.canonical()).map(|read| read.with_dst(spec.dst())), Ok(spec.clone()));
        prop_assert!(!spec.describe().is_empty());
    }

    #[test]
    fn no_text_breaks_the_reader_of_stored_expressions(text in "[12]?[0-9a-z.*+-]{0,40}") {
        if let Ok(read) = CompiledCron::decode(&text) {
            prop_assert_eq!(CompiledCron::decode(&read.encode()), Ok(read));
        }
    }
}

/// What rows of version 1 hold never changes.
#[test]
fn stored_expressions_are_short_and_versioned() {
    for (text, stored) in [
        ("0 3 * * *", "1c.1.8.*.*.*"),
        ("0 0 3 * * *", "1c.1.8.*.*.*"),
        ("0 0 3 * * * *", "1c.1.8.*.*.*"),
        ("* * * * *", "118.*.*.*.*.*"),
        ("0 9 L * *", "19.1.e8.*..*"),
        ("30 0 3 * * *", "2c.hra0hs.1.8.*.*.*....*.*.*.*"),
        ("* * * * * *", "230.*.*.*.*.*.*....*.*.*.*"),
        ("0 0 3 * * * 2027", "2c.1.1.8.*.*.*....13f0kjf8h3i8"),
    ] {
        assert_eq!(cron(text).encode(), stored, "{text}");
        assert_eq!(CompiledCron::decode(stored), Ok(cron(text)), "{text}");
    }
    // Every field with as many digits as it can have.
    let longest = "1-59 1-23 2-31,1W,2W,3W,30W,31W 2-12 1-6,1#1,2#2,3#3,4#4,5#5,6L,5L";
    assert!(cron(longest).encode().len() < 60, "{}", cron(longest).encode());
    let longest = format!("1-59 {longest} 1971-2199");
    assert!(cron(&longest).encode().len() < 130, "{}", cron(&longest).encode());
    assert!(size_of::<CompiledCron>() <= 80);
}

/// Rules that a job names are stored beside its expression; those of version 1 say both with one flag.
#[test]
fn rules_for_the_clocks_are_stored() {
    let stored = |text: &str, gap, overlap| {
        let spec = CronSpec::parse(text).unwrap().with_dst(DstRules { gap, overlap });
        assert_eq!(CompiledCron::decode(&spec.encode()), Ok(*spec.compiled()));
        (spec.compiled().gap(), spec.compiled().overlap(), spec.encode())
    };
    let (skip, next) = (Some(Gap::Skip), Some(Gap::NextValid));
    let (first, both) = (Some(Overlap::First), Some(Overlap::Both));
    let fixed = "0 3 * * *";
    assert_eq!(stored(fixed, None, None), (Gap::NextValid, Overlap::First, "1c.1.8.*.*.*".to_owned()));
    assert_eq!(stored(fixed, skip, both), (Gap::Skip, Overlap::Both, "118.1.8.*.*.*".to_owned()));
    let (gap, overlap, text) = stored(fixed, skip, None);
    assert_eq!((gap, overlap, &text[..4]), (Gap::Skip, Overlap::First, "218."));
    let (gap, overlap, text) = stored(fixed, None, both);
    assert_eq!((gap, overlap, &text[..4]), (Gap::NextValid, Overlap::Both, "224."));
    assert_eq!(stored("* 3 * * *", next, first).2, "1c.*.8.*.*.*");
    let again = CronSpec::parse(fixed).unwrap().with_dst(DstRules { gap: skip, overlap: both });
    assert_eq!(again.with_dst(DstRules::default()), CronSpec::parse(fixed).unwrap());
}

#[test]
fn what_is_no_stored_expression_is_refused() {
    for text in [
        "",
        "1",
        "0",
        "3c.1.8",
        "2c.1.8",
        "1c",
        "1c.1",
        "1c.1.8.*.*.*.........",
        "1zz.1.8.*.*.*",
        "12o.1.8.*.*.*",
        "1c.é.8",
        "é",
        "1c.+1.8.*.*.*",
        "1c.1.8.0.*.*",
        // No second, no year, a year beyond the last.
        "2c.0.1.8.*.*.*....*.*.*.*",
        "2c.1.1.8.*.*.*",
        "2c.1.1.8.*.*.*.......*",
        "2c.1.1.8.*.*.*....*.*.*.*.1",
    ] {
        let error = CompiledCron::decode(text).unwrap_err();
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
}

/// A job whose years are over is known by it at once, and one that is far ahead is found.
#[test]
fn launches_far_ahead_and_over() {
    let next = |text: &str, after: &str| {
        let found = cron(text).upcoming(chrono_tz::UTC, instant(after), 2);
        found
            .iter()
            .map(|firing| firing.launch_at.format("%Y-%m-%dT%H:%M:%S").to_string())
            .collect::<Vec<_>>()
    };
    let now = "2026-11-21T12:00:00Z";
    assert_eq!(next("0 0 9 1 1 * 2020-2025", now), [""; 0]);
    assert_eq!(next("* * * * * * 2026", "2026-12-31T23:59:58Z"), ["2026-12-31T23:59:59"]);
    assert_eq!(next("* * * * * * 2026", "2026-12-31T23:59:59Z"), [""; 0]);
    assert_eq!(next("0 0 9 29 2 * 2027,2101,2104,2196", now), ["2104-02-29T09:00:00", "2196-02-29T09:00:00"]);
    assert_eq!(next("59 59 23 31 12 * 2199", now), ["2199-12-31T23:59:59"]);
    assert_eq!(next("0 0 29 2 +MON", "2072-03-01T00:00:00Z"), ["2112-02-29T00:00:00", "2140-02-29T00:00:00"]);
    assert_eq!(next("30 * * * * *", now), ["2026-11-21T12:00:30", "2026-11-21T12:01:30"]);
    assert_eq!(next("0 0 * * *", "2260-01-01T00:00:00Z"), ["2260-01-02T00:00:00", "2260-01-03T00:00:00"]);
    // The clocks of its only day jump over it.
    let never = CronSpec::parse("0 30 2 8 3 * 2026").unwrap();
    let never = never.with_dst(DstRules { gap: Some(Gap::Skip), overlap: None });
    assert_eq!(never.compiled().upcoming(zone("America/New_York"), instant("2026-01-01T00:00:00Z"), 1), []);
}

#[test]
fn weekdays_near_the_ends_of_a_month() {
    // 1 August 2026 is a Saturday, 31 May 2026 a Sunday, 28 February 2027 a Sunday.
    let year = window("2026-01-01T00:00:00Z", "2027-03-01T00:00:00Z");
    let days = |text: &str| {
        cron(text)
            .firings(chrono_tz::UTC, year)
            .iter()
            .map(|f| f.launch_at.format("%m-%d").to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(days("0 0 1W 8 *"), ["08-03"]);
    assert_eq!(days("0 0 31W 5 *"), ["05-29"]);
    assert_eq!(days("0 0 LW 2 *"), ["02-27", "02-26"]);
    assert_eq!(days("0 0 31W 4,5 *"), ["05-29"]);
    assert_eq!(days("0 0 * 5 5#5"), ["05-29"]);
    assert_eq!(days("0 0 L 2 *"), ["02-28", "02-28"]);
}
