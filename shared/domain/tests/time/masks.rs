//! The compiled masks against croner.

use chrono::{DateTime, Duration};
use croner::Direction;
use proptest::prelude::*;
use tidegate_domain::time::{CompiledCron, CronSpec, Window};

use crate::strategies::{config, spec};
use crate::{cron, oracle, window};

proptest! {
    #![proptest_config(config())]

    /// I6: the masks match exactly the minutes that croner matches.
    #[test]
    fn masks_match_what_croner_matches(spec in spec(), minutes in prop::collection::vec(0i64..45_000_000, 8)) {
        let oracle = oracle::croner(spec.canonical());
        for minute in minutes {
            let at = DateTime::from_timestamp(minute * 60, 0).unwrap();
            let found = spec.compiled().firings(chrono_tz::UTC, Window::new(at, at + Duration::minutes(1)).unwrap());
            prop_assert_eq!(!found.is_empty(), oracle::matches(&oracle, at.naive_utc()), "{} at {}", spec.canonical(), at);
        }
    }

    /// The next launches in UTC are those that croner iterates over.
    #[test]
    fn upcoming_is_what_croner_iterates(spec in spec(), minute in 0i64..45_000_000) {
        let after = DateTime::from_timestamp(minute * 60, 0).unwrap();
        let next = spec.compiled().upcoming(chrono_tz::UTC, after, 4);
        let want: Vec<_> = oracle::croner(spec.canonical()).iter_from(after, Direction::Forward).take(5).filter(|at| *at > after).take(4).collect();
        prop_assert_eq!(next.iter().map(|firing| firing.launch_at).collect::<Vec<_>>(), want, "{}", spec.canonical());
    }

    #[test]
    fn a_stored_expression_reads_back(spec in spec()) {
        let text = spec.encode();
        prop_assert!(text.len() < 60 && text.is_ascii(), "{text}");
        prop_assert_eq!(CompiledCron::decode(&text), Ok(*spec.compiled()));
    }

    #[test]
    fn the_canonical_text_is_the_same_expression(spec in spec()) {
        prop_assert_eq!(CronSpec::parse(spec.canonical()), Ok(spec.clone()));
        prop_assert!(!spec.describe().is_empty());
    }

    #[test]
    fn no_text_breaks_the_reader_of_stored_expressions(text in "1?[0-9a-z.*+-]{0,40}") {
        if let Ok(read) = CompiledCron::decode(&text) {
            prop_assert_eq!(CompiledCron::decode(&read.encode()), Ok(read));
        }
    }
}

#[test]
fn stored_expressions_are_short_and_versioned() {
    for (text, stored) in
        [("0 3 * * *", "1c.1.8.*.*.*"), ("* * * * *", "118.*.*.*.*.*"), ("0 9 L * *", "19.1.e8.*..*")]
    {
        assert_eq!(cron(text).encode(), stored, "{text}");
    }
    // Every field with as many digits as it can have.
    let longest = "1-59 1-23 2-31,1W,2W,3W,30W,31W 2-12 1-6,1#1,2#2,3#3,4#4,5#5,6L,5L";
    assert!(cron(longest).encode().len() < 60, "{}", cron(longest).encode());
}

#[test]
fn what_is_no_stored_expression_is_refused() {
    for text in [
        "",
        "1",
        "0",
        "2c.1.8",
        "1c",
        "1c.1",
        "1c.1.8.*.*.*.........",
        "1zz.1.8.*.*.*",
        "1c.é.8",
        "1c.+1.8.*.*.*",
        "1c.1.8.0.*.*",
    ] {
        let error = CompiledCron::decode(text).unwrap_err();
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
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
