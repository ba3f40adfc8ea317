//! Rates are hard caps, whatever is asked for and whenever.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use tidegate_domain::limits::{RATE_BURST, RATE_EVENTS};
use tidegate_domain::rate_limit::{Per, RateLimit};

fn per() -> impl Strategy<Value = Per> {
    prop::sample::select(Per::ALL.to_vec())
}

/// A rate; small numbers come as often as large ones.
fn rate() -> impl Strategy<Value = RateLimit> {
    let events = prop_oneof![1u32..=10, 1u32..=1_000, 1u32..=RATE_EVENTS];
    let burst = prop_oneof![
        Just(Some(1)),
        Just(None),
        (1u32..=20).prop_map(Some),
        (1u32..=RATE_BURST).prop_map(Some)
    ];
    (events, per(), burst).prop_map(|(events, per, burst)| RateLimit::new(events, per, burst).unwrap())
}

/// Pauses between looks, in microseconds, and what is wanted then.
fn looks() -> impl Strategy<Value = Vec<(i64, u32)>> {
    let pause = prop_oneof![Just(0i64), 1i64..=1_000, 1i64..=2_000_000, 1i64..=7_200_000_000];
    prop::collection::vec((pause, prop_oneof![Just(1u32), 1u32..=20, Just(u32::MAX)]), 1..60)
}

/// What began when, each look waiting for `next_us` as well when `eager` is set.
fn begun(rate: RateLimit, looks: &[(i64, u32)], eager: bool) -> Vec<(i64, u32)> {
    let (mut arrival_us, mut now_us, mut begun) = (0, 1_795_262_400_000_000, Vec::new());
    for (pause_us, wanted) in looks {
        now_us += pause_us;
        let allowed = rate.allow(arrival_us, now_us, *wanted);
        arrival_us = allowed.arrival_us;
        begun.push((now_us, allowed.events));
        if eager {
            now_us = now_us.max(allowed.next_us);
        }
    }
    begun
}

proptest! {
    /// In any interval of length t at most burst + rate * t begin.
    #[test]
    fn no_interval_has_more_than_the_burst_and_the_rate(rate in rate(), looks in looks(), eager: bool) {
        let begun = begun(rate, &looks, eager);
        let per_us = i128::from(rate.per().seconds()) * 1_000_000;
        for (first, (from_us, _)) in begun.iter().enumerate() {
            let mut sum = 0i128;
            for (at_us, events) in &begun[first..] {
                sum += i128::from(*events);
                let length_us = i128::from(at_us - from_us) + 1;
                let most = i128::from(rate.bucket()) * per_us + length_us * i128::from(rate.events());
                prop_assert!(sum * per_us <= most, "{sum} in {length_us} us of {rate:?}");
            }
        }
    }

    /// With a burst of 1, no two begin closer than the rate spaces them.
    #[test]
    fn a_burst_of_one_keeps_the_spacing(events in 1..=RATE_EVENTS, per in per(), looks in looks(), eager: bool) {
        let rate = RateLimit::new(events, per, Some(1)).unwrap();
        let begun = begun(rate, &looks, eager);
        let at: Vec<i64> = begun.iter().filter(|(_, events)| *events > 0).map(|(at, _)| *at).collect();
        prop_assert!(begun.iter().all(|(_, events)| *events <= 1));
        for pair in at.windows(2) {
            let apart = i128::from(pair[1] - pair[0]) * i128::from(events);
            prop_assert!(apart >= i128::from(per.seconds()) * 1_000_000, "{pair:?}");
        }
    }

    /// Whoever comes back when it is said, and not before, gets another one: no time is lost.
    #[test]
    fn the_next_may_begin_when_it_is_said(rate in rate(), looks in looks()) {
        let (mut arrival_us, mut now_us) = (0, 1_795_262_400_000_000);
        for (pause_us, _) in looks {
            now_us += pause_us;
            let allowed = rate.allow(arrival_us, now_us, u32::MAX);
            arrival_us = allowed.arrival_us;
            let next_us = allowed.next_us.max(now_us + 1);
            if next_us > now_us + 1 {
                prop_assert_eq!(rate.allow(arrival_us, next_us - 1, 1).events, 0);
            }
            prop_assert_eq!(rate.allow(arrival_us, next_us, 1).events, 1);
        }
    }
}
