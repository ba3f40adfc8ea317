//! Rates as a consumer sees them: when the leases of its events began.

use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_simulation::world::Received;

use super::stage::{Stage, terms};

/// When events began, in milliseconds after `from_ms`, in order.
fn begun(events: &[Received], from_ms: i64) -> Vec<i64> {
    let lease_end = |event: &Received| event.body.lease_expires_at.as_deref().unwrap().parse().unwrap();
    let begun = |event: &Received| {
        let end: chrono::DateTime<chrono::Utc> = lease_end(event);
        end.timestamp_millis() - 60_000 - from_ms
    };
    let mut begun: Vec<i64> = events.iter().map(begun).collect();
    begun.sort_unstable();
    begun
}

/// When the events of a long batch began under a rate, whose consumer looks every `step_ms` and may release at once.
async fn begun_under(rate: RateLimit, seconds: i64, step_ms: i64, release: bool) -> Vec<i64> {
    let stage = Stage::new().await;
    stage.policy("small", terms(100).with_rate(Some(rate))).await;
    let now_ms = || stage.world.clock.now().timestamp_millis();
    let from_ms = now_ms();
    stage.job("batch", 200, "small", Flow::default()).await;
    let mut all = Vec::new();
    while now_ms() < from_ms + seconds * 1_000 {
        let events = stage.arrived().await;
        if release {
            stage.release(&events).await;
        }
        all.extend(events);
        let minute = now_ms().div_euclid(60_000);
        stage.world.clock.advance_ms(step_ms);
        if now_ms().div_euclid(60_000) != minute {
            stage.world.engine.tick().await.unwrap();
        }
    }
    begun(&all, from_ms)
}

/// Four began within the first second of a policy of two a second.
#[tokio::test]
async fn a_burst_of_one_spaces_the_events_within_a_second() {
    for release in [false, true] {
        let rate = RateLimit::new(2, Per::Second, Some(1)).unwrap();
        let begun = begun_under(rate, 10, 50, release).await;
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= 500), "{begun:?}");
        assert!((18..=20).contains(&begun.len()), "{begun:?}");
    }
}

#[tokio::test]
async fn a_burst_of_less_than_a_second_s_worth_bounds_every_interval_and_loses_nothing() {
    let rate = RateLimit::new(20, Per::Second, Some(3)).unwrap();
    let begun = begun_under(rate, 5, 10, true).await;
    for (first, from) in begun.iter().enumerate() {
        for (last, to) in begun.iter().enumerate().skip(first) {
            let most = 3 + (to - from + 1) * 20 / 1_000 + 1;
            assert!((last - first + 1) as i64 <= most, "{} in {} ms", last - first + 1, to - from);
        }
    }
    assert!(begun.len() >= 90, "{} of 100 began", begun.len());
}

#[tokio::test]
async fn half_an_event_a_second_and_one_an_hour_can_be_said() {
    let half = begun_under(RateLimit::new(30, Per::Minute, Some(1)).unwrap(), 20, 500, true).await;
    assert_eq!(half.len(), 10, "{half:?}");
    assert!(half.windows(2).all(|pair| pair[1] - pair[0] >= 2_000), "{half:?}");
    let hourly = begun_under(RateLimit::new(6, Per::Hour, None).unwrap(), 1_300, 10_000, true).await;
    assert_eq!(hourly.len(), 3, "{hourly:?}");
    assert!(hourly.windows(2).all(|pair| pair[1] - pair[0] >= 600_000), "{hourly:?}");
}
