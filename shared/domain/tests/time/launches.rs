//! Launches in zones: gaps, overlaps, cuts.

use chrono::Duration;
use proptest::prelude::*;
use tidegate_domain::time::{CronSpec, DstRules, Gap, Overlap, Window};

use crate::strategies::{config, length, place, placed_window, spec};
use crate::{cron, instant, launches, oracle, window, zone};

proptest! {
    #![proptest_config(config())]

    /// I6: launches equal the brute-force ones, whatever expression, zone and window.
    #[test]
    fn launches_equal_the_oracle((zone, window) in placed_window(), spec in spec()) {
        let found = spec.compiled().firings(zone, window);
        prop_assert_eq!(found, oracle::firings(&spec, zone, window), "{} in {}", spec.canonical(), zone);
    }

    /// I6: cutting a window changes nothing.
    #[test]
    fn a_cut_neither_loses_nor_repeats(place in place(), first in length(), second in length(), spec in spec()) {
        let (zone, from) = place;
        let (middle, to) = (from + first, from + first + second);
        let part = |from, to| spec.compiled().firings(zone, Window::new(from, to).unwrap());
        prop_assert_eq!(part(from, to), [part(from, middle), part(middle, to)].concat(), "{} in {}", spec.canonical(), zone);
    }

    /// The same for a window cut into minutes, as ticks do.
    #[test]
    fn ticks_add_up((zone, from) in place(), minutes in 1i64..200, spec in spec()) {
        let cron = spec.compiled();
        let end = |minute: i64| from + Duration::minutes(minute);
        let whole = cron.firings(zone, Window::new(from, end(minutes)).unwrap());
        let ticks = (0..minutes).flat_map(|m| cron.firings(zone, Window::new(end(m), end(m + 1)).unwrap()));
        prop_assert_eq!(whole, ticks.collect::<Vec<_>>(), "{} in {}", spec.canonical(), zone);
    }
}

#[test]
fn a_fixed_time_in_a_gap_moves_to_its_end() {
    let march = window("2026-03-08T06:00:00Z", "2026-03-08T09:00:00Z");
    assert_eq!(launches("30 2 * * *", "America/New_York", march), ["2026-03-08T07:00:00Z gap"]);
    assert_eq!(launches("*/30 * * * *", "America/New_York", march).len(), 6);
    assert_eq!(launches("*/30 2 * * *", "America/New_York", march), [""; 0]);
}

#[test]
fn fixed_times_that_land_together_launch_once() {
    let march = window("2026-03-08T06:00:00Z", "2026-03-08T09:00:00Z");
    let want = [
        "2026-03-08T06:00:00Z",
        "2026-03-08T06:30:00Z",
        "2026-03-08T07:00:00Z gap",
        "2026-03-08T07:30:00Z",
        "2026-03-08T08:00:00Z",
        "2026-03-08T08:30:00Z",
    ];
    assert_eq!(launches("0,30 1-4 * * *", "America/New_York", march), want);
}

#[test]
fn a_repeated_fixed_time_launches_the_first_time() {
    let november = window("2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");
    assert_eq!(launches("30 1 * * *", "America/New_York", november), ["2026-11-01T05:30:00Z overlap"]);
    let both = ["2026-11-01T05:30:00Z overlap", "2026-11-01T06:30:00Z overlap"];
    assert_eq!(launches("30 * * * *", "America/New_York", november), both);
}

/// The letter of the rule decides: an hour field that names every hour does not begin with `*`.
#[test]
fn every_hour_by_name_is_fixed_time() {
    let is_interval = |text: &str| CronSpec::parse(text).unwrap().is_interval();
    assert!(!is_interval("30 0-23/1 * * *") && is_interval("30 */1 * * *"));
    assert!(is_interval("*/10 30 2 * * *") && !is_interval("0/10 30 2 * * *"));
    let november = window("2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");
    assert_eq!(launches("30 0-23/1 * * *", "America/New_York", november), ["2026-11-01T05:30:00Z overlap"]);
}

#[test]
fn lord_howe_shifts_by_half_an_hour() {
    let october = window("2026-10-03T15:00:00Z", "2026-10-03T16:30:00Z");
    assert_eq!(launches("13 2 * * *", "Australia/Lord_Howe", october), ["2026-10-03T15:30:00Z gap"]);
    let quarter_hours = [
        "2026-10-03T15:00:00Z",
        "2026-10-03T15:15:00Z",
        "2026-10-03T15:30:00Z",
        "2026-10-03T15:45:00Z",
        "2026-10-03T16:00:00Z",
        "2026-10-03T16:15:00Z",
    ];
    assert_eq!(launches("*/15 * * * *", "Australia/Lord_Howe", october), quarter_hours);
}

/// Apia went from 29 to 31 December 2011: all of the 30th lands at the first instant of the 31st.
#[test]
fn apia_skips_a_day() {
    let change = window("2011-12-30T00:00:00Z", "2011-12-31T12:00:00Z");
    let want = ["2011-12-30T10:00:00Z gap", "2011-12-30T20:00:00Z"];
    assert_eq!(launches("0 10 * * *", "Pacific/Apia", change), want);
    assert_eq!(launches("0 10 30 * *", "Pacific/Apia", change), ["2011-12-30T10:00:00Z gap"]);
    assert_eq!(launches("0 * 30 * *", "Pacific/Apia", change), [""; 0]);
}

#[test]
fn leap_days_and_year_ends() {
    let next = |text: &str, zone_name: &str, after: &str| {
        cron(text)
            .upcoming(zone(zone_name), instant(after), 2)
            .iter()
            .map(|f| f.launch_at.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        next("0 2 29 2 *", "UTC", "2026-01-01T00:00:00Z"),
        ["2028-02-29 02:00:00 UTC", "2032-02-29 02:00:00 UTC"]
    );
    assert_eq!(next("0 0 1 1 *", "Asia/Kolkata", "2026-12-31T18:29:59Z")[0], "2026-12-31 18:30:00 UTC");
    assert_eq!(next("0 0 1 1 *", "Asia/Kolkata", "2026-12-31T18:30:00Z")[0], "2027-12-31 18:30:00 UTC");
}

#[test]
fn a_window_is_half_open_to_the_nanosecond() {
    let at = instant("2026-06-01T03:00:00Z");
    let count = |from, to| cron("0 3 * * *").firings(zone("UTC"), Window::new(from, to).unwrap()).len();
    let tick = Duration::nanoseconds(1);
    assert_eq!(count(at, at), 0);
    assert_eq!(count(at, at + tick), 1);
    assert_eq!(count(at - tick, at), 0);
    assert_eq!(count(at + tick, at + Duration::hours(1)), 0);
    assert!(Window::new(at, at - tick).unwrap_err().to_string().contains("before it begins"));
}

fn launches_with(
    text: &str,
    rules: (Option<Gap>, Option<Overlap>),
    zone_name: &str,
    window: Window,
) -> Vec<String> {
    let spec = CronSpec::parse(text).unwrap().with_dst(DstRules { gap: rules.0, overlap: rules.1 });
    let firings = spec.compiled().firings(zone(zone_name), window);
    firings.iter().map(|f| format!("{} {}", f.launch_at.format("%H:%M:%S"), f.label.as_str())).collect()
}

#[test]
fn a_job_s_own_rules_go_before_those_of_its_expression() {
    let (skip, next) = (Some(Gap::Skip), Some(Gap::NextValid));
    let (first, both) = (Some(Overlap::First), Some(Overlap::Both));
    let march = window("2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z");
    let november = window("2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");
    let in_march = |text, gap| launches_with(text, (gap, None), "America/New_York", march);
    let in_november = |text, overlap| launches_with(text, (None, overlap), "America/New_York", november);
    assert_eq!(in_march("30 2 * * *", None), ["07:00:00 gap"]);
    assert_eq!(in_march("30 2 * * *", skip), [""; 0]);
    assert_eq!(in_march("*/20 * * * *", None), ["06:40:00 ", "07:00:00 ", "07:20:00 "]);
    assert_eq!(in_march("*/20 * * * *", next), ["06:40:00 ", "07:00:00 gap", "07:20:00 "]);
    assert_eq!(in_march("7 * * * *", next), ["07:00:00 gap", "07:07:00 "]);
    assert_eq!(in_november("30 1 * * *", both), ["05:30:00 overlap", "06:30:00 overlap"]);
    assert_eq!(in_november("30 * * * *", first), ["05:30:00 overlap"]);
}

/// All seconds that one gap skips are one launch, and so is a second that names its end.
#[test]
fn seconds_in_a_gap_launch_once_at_its_end() {
    let march = window("2026-03-08T06:59:50Z", "2026-03-08T07:00:20Z");
    let at = |text, gap| launches_with(text, (gap, None), "America/New_York", march);
    assert_eq!(at("15,45 1-3 2 * * *", None), ["07:00:00 gap"]);
    assert_eq!(at("0,10 0-59 2-3 * * *", None), ["07:00:00 gap", "07:00:10 "]);
    assert_eq!(at("*/10 * * * * *", None), ["06:59:50 ", "07:00:00 ", "07:00:10 "]);
    assert_eq!(at("*/10 * * * * *", Some(Gap::NextValid)), ["06:59:50 ", "07:00:00 gap", "07:00:10 "]);
}

#[test]
fn launches_lie_on_their_second_however_a_window_cuts_their_minute() {
    let launches = |from, to| launches("5,30,59 * * * * *", "UTC", window(from, to)).len();
    assert_eq!(launches("2026-06-01T10:00:05Z", "2026-06-01T10:00:59Z"), 2);
    assert_eq!(launches("2026-06-01T10:00:06Z", "2026-06-01T10:00:30Z"), 0);
    assert_eq!(launches("2026-06-01T10:00:30Z", "2026-06-01T10:02:05.001Z"), 2 + 3 + 1);
}

#[test]
fn a_year_ends_by_the_wall_clock() {
    let turn = window("2026-12-31T00:00:00Z", "2027-01-02T00:00:00Z");
    let hours = launches("0 0 * * * * 2027", "Pacific/Kiritimati", turn);
    assert_eq!(hours[0], "2026-12-31T10:00:00Z");
    assert_eq!(launches("0 0 0,23 * * * 2026", "Pacific/Kiritimati", turn), ["2026-12-31T09:00:00Z"]);
}
