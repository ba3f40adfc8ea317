//! A job that is triggered: a run of it at once, beside its schedule.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::{Call, Fault, FaultPlan};

use crate::world::{Answer, QUEUE, World, at_job, batch, cron_job};

const NIGHTLY: &str = "/v1/jobs/nightly/trigger";

async fn trigger(world: &World, key: &str, path: &str, name: Option<&str>) -> Answer {
    let headers: Vec<_> = name.map(|name| ("idempotency-key", name)).into_iter().collect();
    world.send(Method::POST, path, Some(key), &headers, "").await
}

/// A client with a job `nightly`.
async fn with_job(job: &Value) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let made = world.put("/v1/jobs/nightly", &key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    (world, key)
}

fn throttled(count: u32) -> Value {
    let mut job = batch(count);
    job["trigger"] = cron_job()["trigger"].clone();
    job
}

#[tokio::test]
async fn a_triggered_job_runs_at_once_and_its_run_is_found_by_the_answer() {
    for job in [cron_job(), throttled(1), throttled(3)] {
        let (world, key) = with_job(&job).await;
        let answer = trigger(&world, &key, NIGHTLY, None).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        assert_eq!(answer.json["launch_at"], "2026-11-21T12:00:00Z");
        let run = answer.json["run_id"].as_str().unwrap();
        assert_eq!(answer.header("location"), format!("/v1/jobs/nightly/runs/{run}"));
        if job["policy_id"].is_string() {
            let shown = world.get(answer.header("location"), &key).await;
            assert_eq!(
                (shown.status, &shown.json["state"]),
                (StatusCode::OK, &json!("waiting")),
                "{}",
                shown.text
            );
        }
        let events = world.receive().await;
        assert_eq!(events[0]["run_id"], run, "{events:?}");
        assert_eq!(events[0]["payload"], job["payload"]);
        let listed = world.get("/v1/jobs/nightly/runs", &key).await.json;
        assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed["runs"][0]["run_id"], run);
        assert_eq!(world.get(answer.header("location"), &key).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_paused_job_and_one_that_has_not_begun_run_when_they_are_triggered() {
    let mut job = cron_job();
    job["start_at"] = json!("2026-12-01T00:00:00Z");
    let (world, key) = with_job(&job).await;
    world.send(Method::POST, "/v1/jobs/nightly/pause", Some(&key), &[], "").await;
    let answer = trigger(&world, &key, NIGHTLY, None).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    assert_eq!(world.receive().await[0]["run_id"], answer.json["run_id"]);
}

#[tokio::test]
async fn two_triggers_in_one_second_are_two_runs_and_neither_takes_a_launch_of_the_schedule() {
    let mut job = cron_job();
    job["trigger"] = json!({"cron": "0 12 * * *", "zone": "UTC"});
    let (world, key) = with_job(&job).await;
    let first = trigger(&world, &key, NIGHTLY, None).await.json;
    let second = trigger(&world, &key, NIGHTLY, None).await.json;
    assert_eq!(
        (&first["launch_at"], &second["launch_at"]),
        (&json!("2026-11-21T12:00:01Z"), &json!("2026-11-21T12:00:02Z"))
    );
    world.clock.advance_ms(2_000);
    let mut runs: Vec<Value> = world.receive().await.iter().map(|event| event["run_id"].clone()).collect();
    runs.retain(|run| [&first["run_id"], &second["run_id"]].contains(&run));
    assert_eq!(runs.len(), 2, "{runs:?}");
}

#[tokio::test]
async fn a_call_that_is_made_again_with_its_key_makes_no_other_run() {
    let (world, key) = with_job(&cron_job()).await;
    let first = trigger(&world, &key, NIGHTLY, Some("one")).await;
    assert_eq!(first.header("idempotent-replayed"), "");
    world.clock.advance_ms(86_000_000);
    let again = trigger(&world, &key, NIGHTLY, Some("one")).await;
    assert_eq!((again.status, &again.text), (StatusCode::ACCEPTED, &first.text));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(world.receive().await.len(), 1);
    let other = trigger(&world, &key, NIGHTLY, Some("two")).await;
    assert_ne!(other.json["run_id"], first.json["run_id"]);
    assert_eq!(world.receive().await.len(), 1);
}

/// No queue takes a message.
struct NoQueue;

impl FaultPlan for NoQueue {
    fn on_request(&self, call: &Call) -> Fault {
        if call.operation.contains("SendMessage") { Fault::DropBefore } else { Fault::None }
    }
}

#[tokio::test]
async fn a_run_that_was_accepted_is_emitted_by_the_tick_when_the_master_cannot() {
    let (world, key) = with_job(&cron_job()).await;
    world.embedded.inject(NoQueue);
    let answer = trigger(&world, &key, NIGHTLY, None).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    world.embedded.inject_nothing();
    assert!(world.receive().await.is_empty());
    world.clock.advance_ms(61_000);
    for _ in 0..2 {
        world.engine.tick().await.unwrap();
    }
    assert_eq!(world.receive().await[0]["run_id"], answer.json["run_id"]);
    assert!(!world.everything().await.iter().any(|row| row.contains("OUTBOX|")), "the debt is paid");
}

#[tokio::test]
async fn what_cannot_be_triggered_is_refused_with_the_reason() {
    let (world, key) = with_job(&cron_job()).await;
    let absent = trigger(&world, &key, "/v1/jobs/absent/trigger", None).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND, "{}", absent.text);
    let made = world.post("/v1/jobs", &key, &at_job("2026-11-22T12:00:00Z")).await.json;
    let path = format!("/v1/jobs/{}/trigger", made["job_id"].as_str().unwrap());
    let one_time = trigger(&world, &key, &path, None).await;
    assert_eq!(one_time.status, StatusCode::CONFLICT, "{}", one_time.text);
    assert!(one_time.text.contains("not-triggered"), "{}", one_time.text);
    for name in ["", "two words", &"x".repeat(256)] {
        let refused = trigger(&world, &key, NIGHTLY, Some(name)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}: {}", refused.text);
    }
    let mut job = cron_job();
    world.put("/v1/calendars/closed", &key, &json!({"dates": ["2026-11-21"], "zone": "UTC"})).await;
    job["calendars"] = json!(["closed"]);
    job["target"] = json!({"sqs": {"queue_url": QUEUE}});
    let put = world.put("/v1/jobs/nightly", &key, &job).await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text);
    let excluded = trigger(&world, &key, NIGHTLY, None).await;
    assert_eq!(excluded.status, StatusCode::CONFLICT, "{}", excluded.text);
    assert!(excluded.text.contains("calendar"), "{}", excluded.text);
    assert!(world.receive().await.is_empty());
}
