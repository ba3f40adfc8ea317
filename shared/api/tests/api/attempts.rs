//! The number of deliveries of an event: in what its consumer gets, and in what its client reads.

use http::StatusCode;
use serde_json::{Value, json};

use crate::hook::Hook;
use crate::world::{World, batch};

/// A client with a policy `small`.
async fn client(world: &World, policy: &Value) -> String {
    let key = world.register("acme").await;
    assert_eq!(world.put("/v1/policies/small", &key, policy).await.status, StatusCode::CREATED);
    key
}

async fn put(world: &World, key: &str, job: &Value) {
    let made = world.put("/v1/jobs/batch", key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

async fn after(world: &World, seconds: i64) {
    world.clock.advance_ms(seconds * 1_000);
    world.dispatch().await;
}

/// The events of the only run.
async fn events(world: &World, key: &str) -> Vec<Value> {
    let run = world.get("/v1/jobs/batch/runs", key).await.json["runs"][0]["run_id"].clone();
    let path = format!("/v1/jobs/batch/runs/{}/events", run.as_str().unwrap());
    let listed = world.get(&path, key).await.json["events"].as_array().unwrap().clone();
    for event in &listed {
        let path = format!("/v1/events/{}/explain", event["event_id"].as_str().unwrap());
        let explained = world.get(&path, key).await.json;
        assert_eq!(explained["event"], *event, "one event is shown alike everywhere");
    }
    listed
}

fn shown(event: &Value) -> (&Value, &Value) {
    (&event["status"], &event["attempts"])
}

#[tokio::test]
async fn each_call_under_one_lease_counts() {
    let world = World::new().await;
    let key = client(&world, &json!({"max_in_flight": 1})).await;
    let hook = Hook::answering(&[503, 503]).await;
    put(&world, &key, &hook.throttled_job(2)).await;
    // 2 to 3 seconds, then 4 to 6.
    after(&world, 3).await;
    assert_eq!(shown(&events(&world, &key).await[0]), (&json!("in_flight"), &json!(2)));
    after(&world, 6).await;
    assert_eq!(hook.attempts(), [1, 2, 3, 1]);
    let ended = events(&world, &key).await;
    assert_eq!(shown(&ended[0]), (&json!("succeeded"), &json!(3)));
    assert_eq!(shown(&ended[1]), (&json!("succeeded"), &json!(1)));
}

#[tokio::test]
async fn a_new_lease_counts_on_and_the_last_attempt_is_the_last_call() {
    let world = World::new().await;
    let key = client(&world, &json!({"max_in_flight": 1, "lease_seconds": 10})).await;
    let hook = Hook::answering(&[503; 9]).await;
    put(&world, &key, &hook.throttled_job(1)).await;
    // The fourth call would come after 14 seconds at the least, when the lease is over.
    for seconds in [3, 6, 12] {
        after(&world, seconds).await;
    }
    assert_eq!(hook.attempts(), [1, 2, 3]);
    world.clock.advance_ms(50_000);
    world.engine.tick().await.unwrap();
    after(&world, 0).await;
    after(&world, 3).await;
    assert_eq!(hook.attempts(), [1, 2, 3, 4, 5], "max_attempts is 5");
    after(&world, 600).await;
    world.engine.tick().await.unwrap();
    after(&world, 0).await;
    assert_eq!(hook.calls().len(), 5);
    assert_eq!(shown(&events(&world, &key).await[0]), (&json!("dead"), &json!(5)));
}

#[tokio::test]
async fn an_event_that_expired_or_was_released_late_shows_its_deliveries() {
    let world = World::new().await;
    let key = client(&world, &json!({"max_in_flight": 2, "lease_seconds": 10})).await;
    let mut job = batch(2);
    job["max_attempts"] = json!(2);
    put(&world, &key, &job).await;
    world.receive().await;
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    let again = world.receive().await;
    assert_eq!((&again[0]["attempt"], &again[1]["attempt"]), (&json!(2), &json!(2)));
    let released =
        world.post("/v1/tokens/release", &key, &json!({"tokens": [&again[0]["token"]]})).await.json;
    assert_eq!(released["results"][0]["status"], "released", "{released}");
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let mut ended = events(&world, &key).await;
    ended.sort_by_key(|event| event["status"].as_str().unwrap().to_owned());
    assert_eq!(shown(&ended[0]), (&json!("expired"), &json!(2)));
    assert_eq!(shown(&ended[1]), (&json!("succeeded"), &json!(2)));
}
