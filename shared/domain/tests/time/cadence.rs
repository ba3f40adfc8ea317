//! What all triggers have in common, and beats.

use chrono::{DateTime, Duration, Utc};
use proptest::prelude::*;
use tidegate_domain::time::{Cadence, Instants, Rate, Window};

use crate::strategies::{config, length, place, spec};
use crate::{cron, instant, window, zone};

fn rate(every_seconds: u64, anchor: &str) -> Rate {
    Rate::new(every_seconds, instant(anchor)).unwrap()
}

fn cadence() -> impl Strategy<Value = (Cadence, DateTime<Utc>)> {
    let beat = (1u64..10_000, 0i64..1_700_000_000).prop_map(|(every, anchor_s)| {
        Cadence::Rate(Rate::new(every, DateTime::from_timestamp(anchor_s, 0).unwrap()).unwrap())
    });
    let set = (place(), prop::collection::vec(0i64..100_000, 1..20)).prop_map(|((_, at), seconds)| {
        Cadence::At(Instants::new(seconds.into_iter().map(|second| at + Duration::seconds(second))).unwrap())
    });
    (place(), spec(), beat, set, 0..3).prop_map(|((zone, from), spec, beat, set, kind)| {
        let cadence = match (kind, set) {
            (0, _) => Cadence::Cron { cron: *spec.compiled(), zone },
            (1, _) => beat,
            (_, set) => set,
        };
        let from = if let Cadence::At(instants) = &cadence { instants.first() } else { from };
        (cadence, from)
    })
}

proptest! {
    #![proptest_config(config())]

    /// What a misfire rule keeps is the end of what there was.
    #[test]
    fn the_latest_are_the_tail_of_all((cadence, from) in cadence(), length in length(), count in 0usize..40) {
        let window = Window::new(from, from + length).unwrap();
        let all = cadence.firings(window);
        let tail = &all[all.len().saturating_sub(count)..];
        prop_assert_eq!(cadence.latest(window, count), tail);
    }

    /// What comes next is the head of what comes.
    #[test]
    fn upcoming_is_the_head_of_all((cadence, from) in cadence(), length in length(), count in 0usize..20, millis in 0i64..1_000) {
        let after = from + Duration::milliseconds(millis);
        let window = Window::new(after + Duration::nanoseconds(1), after + length + Duration::nanoseconds(1)).unwrap();
        let upcoming = cadence.upcoming(after, count);
        let all = cadence.firings(window);
        let within = upcoming.iter().filter(|firing| window.contains(firing.launch_at)).count();
        prop_assert_eq!(&upcoming[..within], &all[..count.min(all.len())]);
        prop_assert!(within == upcoming.len() || within == all.len());
        prop_assert!(upcoming.is_sorted_by(|a, b| a.launch_at < b.launch_at));
    }

    #[test]
    fn the_last_before_an_instant_is_the_latest(every in 1u64..100_000, anchor_s in 0i64..2_000_000, at_ms in 0i64..2_000_000_000) {
        let rate = Rate::new(every, DateTime::from_timestamp(anchor_s, 0).unwrap()).unwrap();
        let before = DateTime::from_timestamp_millis(at_ms).unwrap();
        let window = Window::new(DateTime::UNIX_EPOCH, before).unwrap();
        prop_assert_eq!(rate.last_before(before), rate.firings(window).last().map(|firing| firing.launch_at));
    }
}

#[test]
fn a_beat_does_not_drift_over_years() {
    let beat = rate(7 * 60, "2026-01-01T00:00:03Z");
    let later = beat.upcoming(instant("2066-01-01T00:00:00Z"), 2);
    let since = (later[0].launch_at - beat.anchor()).num_seconds();
    assert_eq!((since % 420, (later[1].launch_at - later[0].launch_at).num_seconds()), (0, 420));
    assert!(later[0].launch_at - instant("2066-01-01T00:00:00Z") <= Duration::seconds(420));
    // Real seconds: clocks that change do not touch it.
    let daily = rate(86_400, "2026-03-01T02:30:00Z");
    assert_eq!(daily.firings(window("2026-03-01T00:00:00Z", "2026-04-30T00:00:00Z")).count(), 60);
}

#[test]
fn a_beat_begins_at_its_anchor() {
    let beat = rate(60, "2026-06-01T10:00:30Z");
    assert_eq!(beat.firings(window("2026-06-01T09:00:00Z", "2026-06-01T10:02:30Z")).count(), 2);
    assert_eq!(beat.last_before(instant("2026-06-01T10:00:30Z")), None);
    assert_eq!(beat.last_before(instant("2026-06-01T10:00:30.5Z")), Some(beat.anchor()));
    assert_eq!(beat.upcoming(instant("2020-01-01T00:00:00Z"), 1)[0].launch_at, beat.anchor());
}

#[test]
fn a_beat_in_words() {
    for (seconds, words) in [
        (1, "Every second"),
        (90, "Every 90 seconds"),
        (60, "Every minute"),
        (300, "Every 5 minutes"),
        (5_400, "Every 90 minutes"),
        (3_600, "Every hour"),
        (172_800, "Every 2 days"),
    ] {
        assert_eq!(rate(seconds, "2026-01-01T00:00:00Z").describe(), words);
    }
}

#[test]
fn intervals_have_bounds() {
    for seconds in [0, 366 * 86_400 + 1, u64::MAX] {
        let error = Rate::new(seconds, instant("2026-01-01T00:00:00Z")).unwrap_err().to_string();
        assert!(error.contains("between 1 second and 366 days"), "{error}");
    }
}

/// Above 1 is over-selection: rows that are read when nothing launches.
#[test]
fn reads_per_launch_are_known() {
    let of_cron = |text: &str| Cadence::Cron { cron: cron(text), zone: zone("UTC") }.reads_per_launch();
    assert_eq!(of_cron("0 9 * * 1-5"), 1.0);
    assert_eq!(of_cron("*/10 * * * * *"), 1.0 / 6.0);
    assert_eq!(of_cron("0 3 * * SUN#3"), 1461.0 / 336.0);
    // As if it launched every year.
    assert_eq!(of_cron("0 0 9 1 1 * 2027"), 1.0);
    let of_rate = |seconds| Cadence::Rate(rate(seconds, "2026-01-01T00:00:00Z")).reads_per_launch();
    assert_eq!((of_rate(86_400), of_rate(300), of_rate(30)), (1.0, 1.0, 0.5));
    // A week's beat lies under its minute of the day.
    assert_eq!(of_rate(7 * 86_400), 7.0);
    assert_eq!(Cadence::At(Instants::one(instant("2026-01-01T00:00:00Z"))).reads_per_launch(), 1.0);
}

#[test]
fn instants_belong_to_rows_of_their_own() {
    let cadence = Cadence::At(Instants::one(instant("2026-01-01T00:00:00Z")));
    assert_eq!((cadence.index_zone(), cadence.children().len()), (None, 0));
    assert_eq!(cadence.upcoming(instant("2026-01-01T00:00:00Z"), 3), []);
    assert_eq!(cadence.upcoming(instant("2025-01-01T00:00:00Z"), 3).len(), 1);
}
