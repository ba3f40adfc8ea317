//! Launches in zones: gaps, overlaps, cuts.

use chrono::Duration;
use proptest::prelude::*;
use tidegate_domain::time::Window;

use crate::strategies::{config, length, place, placed_window, spec};
use crate::{cron, instant, launches, oracle, window, zone};

proptest! {
    #![proptest_config(config())]

    /// I6: launches equal the brute-force ones, whatever expression, zone and window.
    #[test]
    fn launches_equal_the_oracle((zone, window) in placed_window(), spec in spec()) {
        let found = spec.compiled().firings(zone, window);
        prop_assert_eq!(found, oracle::firings(spec.canonical(), zone, window), "{} in {}", spec.canonical(), zone);
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
    assert!(!cron("30 0-23/1 * * *").is_interval());
    assert!(cron("30 */1 * * *").is_interval());
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
