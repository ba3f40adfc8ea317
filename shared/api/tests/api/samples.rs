//! What went on in a policy, minute by minute.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_client::Client;

use crate::world::{World, batch};

const SAMPLES: &str = "/v1/policies/small/samples";

async fn with_policy() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3600})).await;
    (world, key)
}

async fn release(world: &World, key: &str, events: &[Value]) {
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    world.post("/v1/tokens/release", key, &json!({ "tokens": tokens })).await;
}

#[tokio::test]
async fn tokens_in_use_and_what_waits_are_kept_for_each_minute_in_which_something_goes_on() {
    let (world, key) = with_policy().await;
    assert_eq!(world.get(SAMPLES, &key).await.json["samples"], json!([]));
    world.put("/v1/jobs/five", &key, &batch(5)).await;
    let first = world.receive().await;
    assert_eq!(first.len(), 2);
    world.minutes(2).await;
    release(&world, &key, &first).await;
    let second = world.receive().await;
    world.minutes(1).await;
    release(&world, &key, &second).await;
    let last = world.receive().await;
    assert_eq!((second.len(), last.len()), (2, 1));
    world.minutes(1).await;
    release(&world, &key, &last).await;
    world.minutes(10).await;
    let shown = world.get(SAMPLES, &key).await;
    assert_eq!((shown.status, &shown.json["policy_id"]), (StatusCode::OK, &json!("small")), "{}", shown.text);
    let sample = |at: &str, in_flight: u32, waiting: u32, oldest_seconds: u32| {
        let at = format!("2026-11-21T{at}:00Z");
        json!({"at": at, "in_flight": in_flight, "max_in_flight": 2, "waiting": waiting, "oldest_seconds": oldest_seconds})
    };
    let kept = [
        sample("12:01", 2, 3, 60),
        sample("12:02", 2, 3, 120),
        sample("12:03", 2, 1, 180),
        sample("12:04", 1, 0, 0),
    ];
    assert_eq!(shown.json["samples"], json!(kept));
    assert_eq!(shown.json["oldest_seconds"], json!({"p50": 60, "p90": 180, "p99": 180, "max": 180}));
    assert_eq!(shown.json["in_flight"], json!({"p50": 2, "p90": 2, "p99": 2, "max": 2}));
    assert_eq!(shown.json["waiting"], json!({"p50": 1, "p90": 3, "p99": 3, "max": 3}));
    // A stretch of it, through the client library, and none of another client's.
    let acme = Client::new(world.serve().await, &*key).unwrap();
    let some = acme.policy_samples("small", "2026-11-21T12:02:00Z", "2026-11-21T12:04:00Z").await.unwrap();
    let minutes: Vec<&str> = some.samples.iter().map(|sample| &*sample.at).collect();
    assert_eq!(minutes, ["2026-11-21T12:02:00Z", "2026-11-21T12:03:00Z"]);
    let other = world.register("other").await;
    assert_eq!(world.get(SAMPLES, &other).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn six_hours_cost_a_read_unit_and_a_minute_one_write_unit() {
    let (world, key) = with_policy().await;
    let (mut plain, plain_key) = with_policy().await;
    plain.engine = plain.deployment.process().private_targets().start(plain.clock.clone());
    let mut units = Vec::new();
    for (world, key) in [(&world, &key), (&plain, &plain_key)] {
        world.put("/v1/jobs/five", key, &batch(5)).await;
        assert_eq!(world.receive().await.len(), 2);
        let before = world.embedded.meter().snapshot();
        world.minutes(59).await;
        units.push(world.embedded.meter().snapshot().since(&before).write_units());
    }
    // And one that tells what was emitted. How late the two events came was told before.
    assert_eq!(units[0] - units[1], 60.0, "write units of 59 minutes with and without samples: {units:?}");
    world.minutes(5 * 60).await;
    let before = world.embedded.meter().snapshot();
    let shown = world.get(SAMPLES, &key).await;
    let units = world.embedded.meter().snapshot().since(&before).read_units();
    // All but the minute that has just begun.
    assert_eq!(shown.json["samples"].as_array().unwrap().len(), 59 + 5 * 60 - 1);
    // The key, its client, and the rows of six hours.
    assert!(units <= 0.5 + 0.5 + 1.0, "six hours cost {units} read units");
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused() {
    let (world, key) = with_policy().await;
    for (path, status, says) in [
        ("/v1/policies/none/samples", StatusCode::NOT_FOUND, "no policy 'none'"),
        ("/v1/policies/small/samples?since=yesterday", StatusCode::BAD_REQUEST, "since"),
        (
            "/v1/policies/small/samples?since=2026-11-01T00:00:00Z&until=2026-11-09T00:00:00Z",
            StatusCode::BAD_REQUEST,
            "more than 7 days apart",
        ),
    ] {
        let refused = world.get(path, &key).await;
        assert_eq!(refused.status, status, "{}", refused.text);
        assert!(refused.text.contains(says), "{}", refused.text);
    }
}
