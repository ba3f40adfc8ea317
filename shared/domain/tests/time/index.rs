//! The time index: children, their keys, what a scan reads, and who owns a launch.

use std::collections::BTreeSet;

use chrono::{Duration, Timelike, Utc};
use proptest::prelude::*;
use tidegate_domain::time::{
    AtMinute, ChildKey, CronSpec, LaunchClass, LaunchExpression, LocalWindow, Minutes, WallClock, Window,
    at_key, decompose, eligible, launches_per_cycle, reads_per_cycle,
};

use crate::strategies::{config, place, placed_window, spec};
use crate::{cron, instant, oracle, window, zone};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn keys_read_back(spec in spec()) {
        for child in decompose(spec.compiled()) {
            let (expression, minute) = (child.launch_expression().to_string(), child.sort_prefix());
            prop_assert_eq!(ChildKey::parse(&expression, &minute), Ok(child));
            prop_assert_eq!(minute.len(), 2);
        }
    }

    #[test]
    fn no_text_breaks_the_reader_of_keys(text in "(MM|MW|M|W|H)?[0-9:*any-]{0,12}", minute in ".{0,3}") {
        if let Ok(expression) = text.parse::<LaunchExpression>() {
            prop_assert_eq!(expression.to_string(), text.clone());
        }
        prop_assert!(ChildKey::parse(&text, &minute).is_err() || minute.len() == 2);
    }

    /// The instants of a window lie in its minutes, and no other minute is listed.
    #[test]
    fn at_minutes_are_those_of_the_window((_, window) in placed_window(), millis in 0i64..7_200_000) {
        let minutes: Vec<AtMinute> = window.at_minutes().collect();
        let at = window.from() + Duration::milliseconds(millis);
        if window.contains(at) {
            prop_assert!(minutes.contains(&AtMinute::of(at)));
        }
        for minute in minutes {
            prop_assert!(minute.starts_at() < window.to() && window.from() < minute.starts_at() + Duration::minutes(1));
        }
    }

    /// A tick away from an hour's edge, and from a change of the clocks, reads twelve ranges in a zone, whatever is stored.
    #[test]
    fn a_tick_reads_twelve_ranges((zone, at) in place(), minute in 0u32..58, length in 1i64..=2) {
        let from = at.with_second(0).unwrap();
        let clock = WallClock::of(zone);
        let local = from.with_timezone(&clock);
        let from = from + Duration::minutes(i64::from(minute) - i64::from(local.minute()));
        let window = Window::new(from, from + Duration::minutes(length)).unwrap();
        let hour = |at: chrono::DateTime<Utc>| at.with_timezone(&clock).naive_local().with_minute(0).unwrap();
        let edges = [from - Duration::minutes(1), from, from + Duration::minutes(length)];
        prop_assume!(edges.iter().all(|edge| hour(*edge) == hour(from) && edge.with_timezone(&clock).second() == 0));
        let wall = |at: chrono::DateTime<Utc>| at.with_timezone(&clock).naive_local();
        prop_assume!(edges.iter().all(|edge| wall(*edge) - wall(from) == *edge - from));
        prop_assert_eq!(eligible(zone, window).len(), 12);
    }
}

proptest! {
    // Each case of these takes milliseconds.
    #![proptest_config(ProptestConfig { cases: 300, ..config() })]

    /// No row is read twice in one scan.
    #[test]
    fn ranges_of_a_scan_are_disjoint((zone, window) in placed_window()) {
        let mut seen = BTreeSet::new();
        for range in eligible(zone, window) {
            let minutes = match range.minutes { Minutes::Range(minutes) => minutes.map(Some).collect(), Minutes::Any => vec![None] };
            for minute in minutes {
                prop_assert!(seen.insert((range.launch_expression, minute)), "{} {minute:?}", range.launch_expression);
            }
        }
    }

    /// A row is never read less often than its job launches.
    #[test]
    fn reads_cover_the_launches(spec in spec()) {
        let children = decompose(spec.compiled());
        let seconds = (0..60).filter(|second| {
            oracle::croner(spec.canonical()).pattern.second_match(*second).unwrap()
        });
        let reads = reads_per_cycle(&children) * seconds.count() as u64;
        // Across a century year a weekday can fall into 28 years once more often.
        let slack = if spec.canonical().split(' ').count() == 7 { reads / 100 } else { 0 };
        prop_assert!(reads + slack >= launches_per_cycle(spec.compiled()), "{}", spec.canonical());
    }
}

fn keys(text: &str) -> Vec<String> {
    decompose(&cron(text)).iter().map(ChildKey::to_string).collect()
}

#[test]
fn each_class_has_its_key() {
    for (text, want) in [
        ("30 12 3 8 *", "MM:08-03:12 30"),
        ("0 * * 8 1", "MW:08-1:* 00"),
        ("0 12 * 1 SUN#3", "MW:01-0:12 00"),
        ("5 * 15 * *", "M:15:* 05"),
        ("0 3 * * THU", "W:4:03 00"),
        ("0 3 * * *", "H:03 00"),
        ("15 * * * *", "H:* 15"),
        ("* 3 * * *", "H:03:any --"),
        ("* * * * *", "H:*:any --"),
    ] {
        assert_eq!(keys(text), [want], "{text}");
    }
    assert_eq!(decompose(&cron("0 3 * * 1"))[0].launch_expression().class(), LaunchClass::W);
}

/// Druva's example: 03:00, 06:00 and 09:00 every day are three children.
#[test]
fn a_list_of_hours_is_a_child_each() {
    assert_eq!(keys("0 3,6,9 * * *"), ["H:03 00", "H:06 00", "H:09 00"]);
}

#[test]
fn days_that_depend_on_the_month_cover_every_day_they_can_be() {
    assert_eq!(keys("0 3 L * *"), ["M:28:03 00", "M:29:03 00", "M:30:03 00", "M:31:03 00"]);
    assert_eq!(keys("0 3 L 2 *"), ["MM:02-28:03 00", "MM:02-29:03 00"]);
    assert_eq!(keys("0 3 15W * *"), ["M:14:03 00", "M:15:03 00", "M:16:03 00"]);
    assert_eq!(keys("0 3 1W * *"), ["M:01:03 00", "M:02:03 00", "M:03:03 00"]);
    assert_eq!(keys("0 3 LW * *").len(), 6);
    assert_eq!(keys("0 3 * * 5L"), ["W:5:03 00"]);
}

/// I6: the children of every day that depends on the weekday cover it in each of 28 years.
#[test]
fn the_nearest_weekday_is_covered_wherever_it_falls() {
    let cycle = LocalWindow::new(zone("UTC"), window("2001-01-01T00:00:00Z", "2029-01-01T00:00:00Z"));
    let days = (1..=31).map(|day| format!("{day}W")).chain(["L".to_owned(), "LW".to_owned()]);
    for day in days {
        for month in ["*", "2", "4", "12"] {
            let Ok(spec) = CronSpec::parse(&format!("0 3 {day} {month} *")) else { continue };
            let (mut owned, mut all) = (Vec::new(), Vec::new());
            for child in decompose(spec.compiled()) {
                spec.compiled().owned_firings_in(&child, &cycle, &mut owned);
            }
            spec.compiled().firings_in(&cycle, &mut all);
            owned.sort_unstable();
            assert_eq!(owned, all, "{}", spec.canonical());
        }
    }
}

#[test]
fn either_day_field_has_its_own_children() {
    assert_eq!(keys("0 3 1 * 1"), ["M:01:03 00", "W:1:03 00"]);
    assert_eq!(keys("0 3 1 6 1"), ["MM:06-01:03 00", "MW:06-1:03 00"]);
}

#[test]
fn the_bound_coarsens_and_never_refuses() {
    for (text, want) in [
        // The weekdays go, not the hours: 18 rows that are read at weekends too.
        ("0,30 9-17 * * 1-5", 18),
        // The hours go: they are most of the day.
        ("*/10 4-18 * * 1-5", 30),
        // The minutes go: an hour's row is read in each of them anyway.
        ("* 9-17 * * 1-5", 9),
        ("0-58 1-22 2-30 1-11 *", 22),
        ("0 3 * 9 *", 7),
    ] {
        assert_eq!(keys(text).len(), want, "{text}: {:?}", keys(text));
    }
}

#[test]
fn over_selection_is_known() {
    let over = |text: &str| reads_per_cycle(&decompose(&cron(text))) - launches_per_cycle(&cron(text));
    assert_eq!(over("0 9 * * 1-5"), 0);
    assert_eq!(over("* * * * *"), 0);
    assert_eq!(over("0 3 * 9 *"), 0);
    // The third Sunday is looked for on every Sunday: 1461 of them in 28 years, 336 of them third ones.
    assert_eq!(over("0 3 * * SUN#3"), 1461 - 336);
    // Seconds share the rows of their minute; a year counts from the first that is named.
    assert_eq!(launches_per_cycle(&cron("*/10 0 3 * * *")), 6 * launches_per_cycle(&cron("0 3 * * *")));
    assert_eq!(launches_per_cycle(&cron("0 0 3 * * * 2027")), 365);
    assert_eq!(launches_per_cycle(&cron("0 0 3 * * * 2027-2199")), 28 * 365 + 7);
    assert_eq!(launches_per_cycle(&cron("0 0 3 29 2 * 2028,2032")), 2);
}

#[test]
fn a_launch_that_both_day_fields_match_belongs_to_the_day_of_month() {
    // 1 June 2026 is a Monday.
    let june = window("2026-06-01T00:00:00Z", "2026-06-09T00:00:00Z");
    let expression = cron("0 3 1 * 1");
    let owned: Vec<(String, usize)> = decompose(&expression)
        .iter()
        .map(|child| (child.to_string(), expression.owned_firings(child, zone("UTC"), june).len()))
        .collect();
    assert_eq!(owned, [("M:01:03 00".to_owned(), 1), ("W:1:03 00".to_owned(), 1)]);
}

#[test]
fn a_launch_out_of_a_gap_belongs_to_its_skipped_time() {
    let landing = window("2026-03-08T07:00:00Z", "2026-03-08T07:01:00Z");
    let new_york = zone("America/New_York");
    let expression = cron("0,30 2-3 * * *");
    let owners: Vec<String> = decompose(&expression)
        .iter()
        .filter(|child| !expression.owned_firings(child, new_york, landing).is_empty())
        .map(ChildKey::to_string)
        .collect();
    assert_eq!(owners, ["H:02 00"]);
    let read = |key: &str, minute: &str| {
        let key = ChildKey::parse(key, minute).unwrap();
        eligible(new_york, landing).iter().any(|range| range.covers(&key))
    };
    assert!(read("H:02", "00") && read("H:02", "59") && read("H:03", "00"));
    assert!(!read("H:01", "59") && !read("H:03", "01"));
}

#[test]
fn a_tick_at_an_hours_edge_reads_both_hours() {
    let ranges = eligible(zone("Asia/Kathmandu"), window("2026-06-01T02:14:00Z", "2026-06-01T02:16:00Z"));
    // 07:59 and 08:00: five classes by hour twice, five for every hour with two separate minutes, three any-minute rows.
    assert_eq!(ranges.len(), 10 + 10 + 3);
}

/// A minute that two windows share is read in both, and each second of it belongs to one.
#[test]
fn a_minute_that_a_cut_divides_is_read_on_both_sides() {
    let expression = cron("5,30,59 7 10 * * *");
    let key = decompose(&expression)[0];
    let sides = [
        window("2026-06-01T10:06:59Z", "2026-06-01T10:07:30Z"),
        window("2026-06-01T10:07:30Z", "2026-06-01T10:07:59.5Z"),
    ];
    for (side, owned) in sides.into_iter().zip([1, 2]) {
        let covering = eligible(zone("UTC"), side).into_iter().filter(|range| range.covers(&key));
        assert_eq!((covering.count(), expression.owned_firings(&key, zone("UTC"), side).len()), (1, owned));
    }
    assert!(eligible(zone("UTC"), window("2026-06-01T10:07:30.1Z", "2026-06-01T10:07:30.9Z")).is_empty());
}

#[test]
fn an_empty_window_reads_nothing() {
    assert!(eligible(zone("UTC"), window("2026-06-01T02:14:00Z", "2026-06-01T02:14:00Z")).is_empty());
    assert_eq!(window("2026-06-01T02:14:30Z", "2026-06-01T02:14:30Z").at_minutes().count(), 0);
}

#[test]
fn at_rows_are_keyed_by_their_minute() {
    assert_eq!(at_key(instant("2026-11-21T11:25:59.999Z")), "2026-11-21T11:25");
    let minutes: Vec<String> = window("2026-11-21T23:58:30Z", "2026-11-22T00:00:00.5Z")
        .at_minutes()
        .map(|minute| minute.to_string())
        .collect();
    assert_eq!(minutes, ["2026-11-21T23:58", "2026-11-21T23:59", "2026-11-22T00:00"]);
}

#[test]
fn what_is_no_key_is_refused() {
    for text in [
        "",
        "H",
        "H:24",
        "H:3",
        "H:003",
        "X:03",
        "W:7:03",
        "W:1",
        "M:00:03",
        "M:32:*",
        "MM:13-01:03",
        "MW:01-7:03",
        "W:1:03:any",
        "H:+3",
        "H:03:all",
        "MM:08:03",
    ] {
        assert!(text.parse::<LaunchExpression>().unwrap_err().to_string().contains(text), "{text}");
    }
    for (expression, minute) in
        [("H:03", "--"), ("H:03:any", "05"), ("H:03", "60"), ("H:03", "5"), ("H:03", "")]
    {
        assert!(ChildKey::parse(expression, minute).is_err(), "{expression} {minute}");
    }
    assert_eq!(ChildKey::new("H:03".parse().unwrap(), Some(60)), None);
}
