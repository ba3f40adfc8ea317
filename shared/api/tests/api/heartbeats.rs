//! The heartbeat of a job: an address that each of its runs calls when it has come to its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use http::{Method, StatusCode, Uri};
use serde_json::{Value, json};
use tidegate_protocol::Completion;
use tokio::net::TcpListener;

use crate::world::{QUEUE, World, batch, cron_job};

/// A check on loopback: the calls that it got, and the statuses that it answers with before 200.
#[derive(Clone)]
struct Check {
    url: String,
    calls: Arc<Mutex<Vec<(String, Completion)>>>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl Check {
    async fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/beat?key=1", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(statuses.iter().copied().collect()));
        let check = Self { url, calls: Arc::default(), answers };
        let routes = Router::new().route("/{*path}", axum::routing::post(pinged)).with_state(check.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        check
    }

    /// The paths that were called since it was asked last, with the events that had succeeded.
    fn pings(&self) -> Vec<(String, u32)> {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.into_iter().map(|(path, run)| (path, run.succeeded)).collect()
    }
}

async fn pinged(State(check): State<Check>, uri: Uri, body: String) -> StatusCode {
    let run: Completion = serde_json::from_str(&body).unwrap();
    assert_eq!(run.r#type, "run.completed");
    check.calls.lock().unwrap().push((uri.to_string(), run));
    let answer = check.answers.lock().unwrap().pop_front();
    answer.map_or(StatusCode::OK, |status| StatusCode::from_u16(status).unwrap())
}

async fn acme() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 5, "lease_seconds": 3600})).await;
    (world, key)
}

/// A batch for noon with a heartbeat.
fn beating(check: &Check, count: u32) -> Value {
    let mut job = batch(count);
    job["heartbeat_url"] = json!(check.url);
    job
}

async fn put(world: &World, key: &str, id: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{id}"), key, job).await;
    assert!(made.status.is_success(), "{}", made.text);
    assert_eq!(made.json["heartbeat_url"], job["heartbeat_url"], "{}", made.text);
}

/// Runs a job whose events end so, in their order.
async fn run(world: &World, key: &str, id: &str, job: &Value, outcomes: &[&str]) {
    put(world, key, id, job).await;
    let events = world.receive().await;
    assert_eq!(events.len(), outcomes.len());
    for (event, outcome) in events.iter().zip(outcomes) {
        let body = json!({"tokens": [{"token": event["token"], "outcome": outcome}]});
        let released = world.post("/v1/tokens/release", key, &body).await;
        assert_eq!(released.status, StatusCode::OK, "{}", released.text);
    }
    world.dispatch().await;
}

fn well(succeeded: u32) -> (String, u32) {
    ("/beat?key=1".to_owned(), succeeded)
}

fn failed(succeeded: u32) -> (String, u32) {
    ("/beat/fail?key=1".to_owned(), succeeded)
}

#[tokio::test]
async fn a_run_tells_that_it_ended_well_and_that_it_did_not() {
    let (world, key) = acme().await;
    let check = Check::answering(&[]).await;
    run(&world, &key, "well", &beating(&check, 2), &["succeeded", "succeeded"]).await;
    assert_eq!(check.pings(), [well(2)]);
    run(&world, &key, "single", &beating(&check, 1), &["succeeded"]).await;
    assert_eq!(check.pings(), [well(1)]);
    run(&world, &key, "badly", &beating(&check, 2), &["succeeded", "failed"]).await;
    assert_eq!(check.pings(), [failed(1)]);
    put(&world, &key, "stopped", &beating(&check, 9)).await;
    let events = world.receive().await;
    let cancelled = world.post("/v1/jobs/stopped/runs/stopped.1.1795262400/cancel", &key, &json!({})).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
    world.minutes(2).await;
    assert_eq!(check.pings(), [failed(5)], "all that were delivered succeeded, and not all were");
    // Nothing is told twice.
    world.minutes(5).await;
    assert_eq!(check.pings(), []);
}

#[tokio::test]
async fn a_check_that_is_away_is_told_later() {
    let (world, key) = acme().await;
    let check = Check::answering(&[500, 503]).await;
    run(&world, &key, "well", &beating(&check, 1), &["succeeded"]).await;
    assert_eq!(check.pings(), [well(1)]);
    world.minutes(10).await;
    assert_eq!(check.pings(), [well(1), well(1)], "until it takes it, and no longer");
}

#[tokio::test]
async fn a_heartbeat_and_a_completion_are_told_each_by_itself() {
    let (world, key) = acme().await;
    let check = Check::answering(&[500]).await;
    let done = QUEUE.replace("jobs", "done");
    let mut job = beating(&check, 2);
    job["on_completion"] = json!({"sqs": {"queue_url": done}});
    run(&world, &key, "both", &job, &["succeeded", "succeeded"]).await;
    world.minutes(10).await;
    assert_eq!(check.pings(), [well(2), well(2)]);
    let told = world.take_all(&done).await;
    assert_eq!(told.len(), 1, "{told:?}");
    let completion: Completion = serde_json::from_str(&told[0]).unwrap();
    assert_eq!((&*completion.state, completion.succeeded), ("finished", 2));
}

#[tokio::test]
async fn a_client_names_only_what_it_may_call() {
    let (world, _) = acme().await;
    let body = json!({"client_id": "strict", "allowed_targets": ["https://ours.example/*", QUEUE]});
    let key = world.post("/v1/clients", &world.admin_key, &body).await.json["api_key"].clone();
    let key = key.as_str().unwrap();
    world.put("/v1/policies/small", key, &json!({"max_in_flight": 5, "lease_seconds": 60})).await;
    let mut job = cron_job();
    job["policy_id"] = json!("small");
    job["heartbeat_url"] = json!("https://hc-ping.com/uuid");
    let refused = world.put("/v1/jobs/nightly", key, &job).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "heartbeat_url", "{}", refused.text);
    job["heartbeat_url"] = json!("https://ours.example/beat");
    put(&world, key, "nightly", &job).await;
    for wrong in ["ours.example/beat", "ftp://ours.example/beat"] {
        job["heartbeat_url"] = json!(wrong);
        let refused = world.put("/v1/jobs/nightly", key, &job).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "heartbeat_url", "{}", refused.text);
    }
    let json_body = [("content-type", "application/json")];
    for (patch, shown) in [
        (r#"{"priority": 3}"#, json!("https://ours.example/beat")),
        (r#"{"heartbeat_url": "https://ours.example/other"}"#, json!("https://ours.example/other")),
        (r#"{"heartbeat_url": null}"#, Value::Null),
    ] {
        let patched = world.send(Method::PATCH, "/v1/jobs/nightly", Some(key), &json_body, patch).await;
        assert_eq!(patched.json["heartbeat_url"], shown, "{}", patched.text);
    }
}
