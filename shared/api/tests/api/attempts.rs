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

/// What is free and what waits in the policy.
async fn load(world: &World, key: &str) -> (Value, Value) {
    let policy = world.get("/v1/policies/small", key).await.json;
    (policy["in_flight"].clone(), policy["waiting"].clone())
}

#[tokio::test]
async fn an_event_that_failed_holds_no_token_while_it_waits_and_counts_on() {
    let world = World::new().await;
    let key = client(&world, &json!({"max_in_flight": 1})).await;
    let hook = Hook::answering(&[500]).await;
    put(&world, &key, &hook.throttled_job(2)).await;
    assert_eq!(load(&world, &key).await, (json!(0), json!(1)), "the first failed, and waits in the line");
    let listed = events(&world, &key).await;
    assert!(listed.iter().all(|event| event["status"] == "waiting"), "{listed:?}");
    let explained = world.get("/v1/events/batch.1.1795262400.0/explain", &key).await.json;
    assert_eq!(explained["because_code"], "retrying", "{explained}");
    let because = explained["because"].as_str().unwrap();
    assert!(
        because.starts_with("its target did not take it, once: it is sent again from 12:00:0"),
        "{because}"
    );
    // Its token goes to the other, within a second or two, and comes back with its answer.
    after(&world, 2).await;
    after(&world, 2).await;
    after(&world, 2).await;
    let mut attempts = hook.attempts();
    attempts.sort_by_key(Value::as_u64);
    assert_eq!(attempts, [1, 1, 2]);
    let ended = events(&world, &key).await;
    assert_eq!(shown(&ended[0]), (&json!("succeeded"), &json!(2)));
    assert_eq!(shown(&ended[1]), (&json!("succeeded"), &json!(1)));
    assert_eq!(load(&world, &key).await, (json!(0), json!(0)));
}

/// The outage of a night: `max_attempts` and `retry` are as by default.
#[tokio::test]
async fn an_endpoint_that_is_away_for_a_night_gets_its_events_with_and_without_a_policy() {
    for is_throttled in [true, false] {
        let world = World::new().await;
        let key = client(&world, &json!({"max_in_flight": 1})).await;
        let hook = Hook::answering(&[503; 1_000]).await;
        let mut job = hook.throttled_job(1);
        if !is_throttled {
            job.as_object_mut().unwrap().remove("policy_id");
            job["target"]["http"].as_object_mut().unwrap().remove("release");
        }
        put(&world, &key, &job).await;
        let night = 12 * 3_600;
        let mut passed = 0;
        while passed < night {
            after(&world, 300).await;
            world.engine.tick().await.unwrap();
            world.dispatch().await;
            passed += 300;
        }
        let calls = hook.calls().len();
        assert!((15..=80).contains(&calls), "{calls} calls in a night");
        hook.answer_well();
        for _ in 0..13 {
            after(&world, 300).await;
            world.engine.tick().await.unwrap();
            world.dispatch().await;
        }
        let ended = &events(&world, &key).await[0];
        let expected = if is_throttled { "succeeded" } else { "delivered" };
        assert_eq!(shown(ended), (&json!(expected), &json!(hook.calls().len())), "{is_throttled}");
    }
}

#[tokio::test]
async fn an_event_is_dead_when_its_time_or_its_attempts_are_over() {
    for (retry, attempts, calls) in [
        (json!({"backoff": "fixed", "wait_seconds": 100, "max_age_seconds": 250}), json!(null), 4),
        (json!({"backoff": "fixed", "wait_seconds": 100}), json!(3), 3),
        (json!({"backoff": "none"}), json!(null), 1),
        (json!({"backoff": "exponential", "wait_seconds": 1, "ceiling_seconds": 1}), json!(2), 2),
    ] {
        for is_throttled in [true, false] {
            let world = World::new().await;
            let key = client(&world, &json!({"max_in_flight": 1})).await;
            let hook = Hook::answering(&[503; 20]).await;
            let mut job = hook.throttled_job(1);
            (job["retry"], job["max_attempts"]) = (retry.clone(), attempts.clone());
            if !is_throttled {
                job.as_object_mut().unwrap().remove("policy_id");
                job["target"]["http"].as_object_mut().unwrap().remove("release");
            }
            put(&world, &key, &job).await;
            for _ in 0..20 {
                after(&world, 52).await;
            }
            assert_eq!(hook.calls().len(), calls, "{retry}, throttled: {is_throttled}");
            assert_eq!(shown(&events(&world, &key).await[0]), (&json!("dead"), &json!(calls)), "{retry}");
            assert_eq!(load(&world, &key).await, (json!(0), json!(0)));
        }
    }
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
