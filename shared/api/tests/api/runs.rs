//! Runs: shown with how they get on, cancelled, and each event explained.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, World, batch};

/// A client with two tokens and a batch `batch` of ten events that is due; its key, and the events in flight.
async fn at_work(world: &World) -> (String, Vec<Value>) {
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let made = world.put("/v1/jobs/batch", &key, &batch(10)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let events = world.receive().await;
    assert_eq!(events.len(), 2);
    (key, events)
}

fn path(events: &[Value]) -> String {
    format!("/v1/jobs/batch/runs/{}", events[0]["run_id"].as_str().unwrap())
}

async fn post(world: &World, key: &str, path: &str) -> Answer {
    world.send(Method::POST, path, Some(key), &[], "").await
}

#[tokio::test]
async fn a_run_is_shown_with_how_it_gets_on() {
    let world = World::new().await;
    let (key, mut events) = at_work(&world).await;
    let run = path(&events);
    let shown = world.get(&run, &key).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
    assert_eq!((&shown.json["in_flight"], &shown.json["waiting"]), (&json!(2), &json!(8)));
    assert_eq!(
        (&shown.json["rate_per_second"], &shown.json["predicted_finish_at"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!((&shown.json["deadline"], &shown.json["left_out"]), (&Value::Null, &json!(0)));
    for _ in 0..3 {
        world.clock.advance_ms(2_000);
        let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        events = world.receive().await;
    }
    let shown = world.get(&run, &key).await.json;
    assert_eq!(
        (&shown["state"], &shown["succeeded"], &shown["waiting"]),
        (&json!("running"), &json!(6), &json!(2))
    );
    assert_eq!(shown["started_at"], "2026-11-21T12:00:00Z");
    assert!(shown["rate_per_second"].as_f64().unwrap() > 0.0, "{shown}");
    assert!(shown["predicted_finish_at"].as_str().unwrap() > "2026-11-21T12:00:06", "{shown}");
    assert!(!shown["reasoning"].as_str().unwrap().is_empty(), "{shown}");
}

#[tokio::test]
async fn a_run_under_a_window_shows_its_deadline() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let mut job = batch(10);
    job["window"] = json!({"seconds": 600});
    world.put("/v1/jobs/batch", &key, &job).await;
    let events = world.receive().await;
    let shown = world.get(&path(&events), &key).await.json;
    assert_eq!(shown["deadline"], "2026-11-21T12:10:00Z");
}

#[tokio::test]
async fn what_is_left_of_a_run_is_cancelled_and_what_is_in_flight_ends_as_it_would() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let run = path(&events);
    let cancelled = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
    assert_eq!(
        (&cancelled.json["state"], &cancelled.json["reason"]),
        (&json!("stopped"), &json!("cancelled"))
    );
    assert_eq!(cancelled.json["waiting"], 0);
    let again = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!((again.status, &again.json["reason"]), (StatusCode::OK, &json!("cancelled")));
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    let released = world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await.json;
    assert_eq!(released["results"][0]["status"], "released");
    assert!(world.receive().await.is_empty());
    let shown = world.get(&run, &key).await.json;
    assert_eq!(
        (&shown["succeeded"], &shown["left_out"], &shown["count"]),
        (&json!(2), &json!(8), &json!(10))
    );
}

#[tokio::test]
async fn a_run_that_is_over_is_not_cancelled_and_one_that_there_is_not_is_not_found() {
    let world = World::new().await;
    let (key, mut events) = at_work(&world).await;
    let run = path(&events);
    while !events.is_empty() {
        let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        events = world.receive().await;
    }
    let over = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!(over.status, StatusCode::CONFLICT, "{}", over.text);
    assert_eq!(over.json["type"], "urn:tidegate:problem:run-over");
    let detail = over.json["detail"].as_str().unwrap();
    assert!(detail.ends_with("is finished; there is nothing left to cancel"), "{detail}");
    for path in ["/v1/jobs/batch/runs/batch.9.1790000000", "/v1/jobs/other/runs/batch.1.1795262400"] {
        assert_eq!(world.get(path, &key).await.status, StatusCode::NOT_FOUND, "{path}");
        let cancelled = post(&world, &key, &format!("{path}/cancel")).await;
        assert_eq!(cancelled.status, StatusCode::NOT_FOUND, "{path}");
    }
    let other = world.register("other").await;
    assert_eq!(world.get(&run, &other).await.status, StatusCode::NOT_FOUND);
    assert_eq!(post(&world, &other, &format!("{run}/cancel")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_event_that_waits_is_told_who_holds_the_tokens_and_what_comes_before() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let run = events[0]["run_id"].as_str().unwrap();
    let explained = world.get(&format!("/v1/events/{run}.7/explain"), &key).await;
    assert_eq!(explained.status, StatusCode::OK, "{}", explained.text);
    let explained = explained.json;
    assert_eq!((&explained["event"]["status"], &explained["event"]["index"]), (&json!("waiting"), &json!(7)));
    assert_eq!(
        (&explained["events_before"], &explained["policy"]["status"]),
        (&json!(5), &json!("2 in flight, limit 2"))
    );
    let holding: Vec<&Value> =
        explained["holders"].as_array().unwrap().iter().map(|holder| &holder["event_id"]).collect();
    assert_eq!(holding.len(), 2, "{explained}");
    assert!(holding.contains(&&events[0]["event_id"]), "{explained}");
    assert!(
        explained["because"].as_str().unwrap().contains("all 2 tokens of its policy are held"),
        "{explained}"
    );
    world.send(Method::POST, "/v1/policies/small/pause", Some(&key), &[], "").await;
    let paused = world.get(&format!("/v1/events/{run}.7/explain"), &key).await.json;
    assert!(paused["because"].as_str().unwrap().contains("its policy is paused"), "{paused}");
    assert_eq!(paused["expected_at"], Value::Null);
}

#[tokio::test]
async fn an_event_in_flight_is_explained_too_and_one_that_there_is_not_is_not_found() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let id = events[0]["event_id"].as_str().unwrap();
    let explained = world.get(&format!("/v1/events/{id}/explain"), &key).await.json;
    assert_eq!(
        (&explained["event"]["status"], &explained["events_before"]),
        (&json!("in_flight"), &Value::Null)
    );
    let run = events[0]["run_id"].as_str().unwrap();
    for event in [&format!("{run}.10"), "batch.1.5.0", "nonsense"] {
        let answer = world.get(&format!("/v1/events/{event}/explain"), &key).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{event}");
    }
    let other = world.register("other").await;
    assert_eq!(world.get(&format!("/v1/events/{id}/explain"), &other).await.status, StatusCode::NOT_FOUND);
}
