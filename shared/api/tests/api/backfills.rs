//! Launches of a job that are made after all: those of a window, and those that were missed.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::{Call, Fault, FaultPlan};

use crate::world::{Answer, QUEUE, World, at_job};

const JOB: &str = "/v1/jobs/tens";

async fn backfill(world: &World, key: &str, body: &Value) -> Answer {
    world.post("/v1/jobs/tens/backfill", key, body).await
}

/// Every ten minutes.
fn every_ten(count: u32, throttled: bool) -> Value {
    let mut job = json!({
        "trigger": {"cron": "*/10 * * * *", "zone": "UTC"},
        "target": {"sqs": {"queue_url": QUEUE}},
        "count": count,
    });
    if throttled {
        job["policy_id"] = json!("small");
    }
    job
}

async fn with_job(job: &Value) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    // After the launch at noon.
    world.clock.advance_ms(60_000);
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    let made = world.put(JOB, &key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    (world, key)
}

fn before_noon() -> Value {
    json!({"since": "2026-11-21T11:30:00Z", "until": "2026-11-21T12:00:00Z"})
}

fn texts(rows: &Value, field: &str) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

/// Works off everything that is delivered, and says of which runs it was.
async fn work_off(world: &World, key: &str) -> Vec<String> {
    let mut runs = Vec::new();
    loop {
        let events = world.receive().await;
        if events.is_empty() {
            return runs;
        }
        runs.extend(events.iter().map(|event| event["run_id"].as_str().unwrap().to_owned()));
        let tokens: Vec<&Value> =
            events.iter().map(|event| &event["token"]).filter(|token| token.is_string()).collect();
        if !tokens.is_empty() {
            world.post("/v1/tokens/release", key, &json!({ "tokens": tokens })).await;
        }
    }
}

#[tokio::test]
async fn all_launches_of_a_window_are_made_once_under_the_policy() {
    for (count, throttled) in [(1, false), (1, true), (4, false), (4, true)] {
        let (world, key) = with_job(&every_ten(count, throttled)).await;
        let made = backfill(&world, &key, &before_noon()).await;
        assert_eq!((made.status, &made.json["revision"]), (StatusCode::ACCEPTED, &json!(2)), "{}", made.text);
        assert_eq!(made.header("etag"), "\"2\"");
        let launches = &made.json["launches"];
        let due = ["2026-11-21T11:30:00Z", "2026-11-21T11:40:00Z", "2026-11-21T11:50:00Z"];
        assert_eq!(texts(launches, "launch_at"), due);
        assert_eq!(made.json["next_since"], Value::Null);
        let first = world.receive().await;
        if throttled {
            assert_eq!(first.len(), 3, "no more than the limit: {first:?}");
            assert_eq!(first[0]["launch_at"], due[0]);
            let tokens: Vec<&Value> = first.iter().map(|event| &event["token"]).collect();
            world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        }
        let mut runs: Vec<_> =
            first.iter().map(|event| event["run_id"].as_str().unwrap().to_owned()).collect();
        runs.extend(work_off(&world, &key).await);
        runs.sort_unstable();
        let expected: Vec<String> = texts(launches, "run_id")
            .into_iter()
            .flat_map(|run| std::iter::repeat_n(run, count as usize))
            .collect();
        assert_eq!(runs, expected, "{count} {throttled}");
        let listed = world.get("/v1/jobs/tens/runs", &key).await.json;
        let mut listed = texts(&listed["runs"], "run_id");
        listed.reverse();
        assert_eq!(listed, texts(launches, "run_id"), "{count} {throttled}");
        // Its schedule goes on.
        world.minutes(10).await;
        assert!(!world.receive().await.is_empty());
    }
}

/// A job that was paused for half an hour, and goes on.
async fn with_missed(job: &Value) -> (World, String) {
    let (world, key) = with_job(job).await;
    world.send(Method::POST, "/v1/jobs/tens/pause", Some(&key), &[], "").await;
    world.minutes(35).await;
    world.send(Method::POST, "/v1/jobs/tens/resume", Some(&key), &[], "").await;
    world.minutes(10).await;
    (world, key)
}

#[tokio::test]
async fn only_what_was_missed_is_made_and_only_once() {
    for (count, throttled) in [(1, false), (1, true), (4, true)] {
        let (world, key) = with_missed(&every_ten(count, throttled)).await;
        assert!(!work_off(&world, &key).await.is_empty(), "the launch at 12:40 was made");
        let missed =
            json!({"since": "2026-11-21T12:05:00Z", "until": "2026-11-21T12:45:00Z", "only_missed": true});
        let made = backfill(&world, &key, &missed).await;
        assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text);
        let launches = &made.json["launches"];
        // The record of all three stands at the first of them.
        let due = ["2026-11-21T12:10:00Z", "2026-11-21T12:20:00Z", "2026-11-21T12:30:00Z"];
        assert_eq!(texts(launches, "launch_at"), due, "{count} {throttled}");
        assert_eq!(texts(launches, "missed"), ["paused"; 3]);
        let mut runs = work_off(&world, &key).await;
        runs.dedup();
        assert_eq!(runs, texts(launches, "run_id"), "{count} {throttled}");
        let again = backfill(&world, &key, &missed).await;
        assert_eq!((again.status, &again.json["launches"]), (StatusCode::OK, &json!([])), "{}", again.text);
        assert_eq!(again.json["revision"], made.json["revision"], "nothing changed");
        let mut part = missed.clone();
        part["since"] = json!("2026-11-21T12:20:00Z");
        assert_eq!(backfill(&world, &key, &part).await.json["launches"], json!([]));
    }
}

#[tokio::test]
async fn a_record_of_several_that_begins_before_the_window_reaches_into_it() {
    let (world, key) = with_missed(&every_ten(1, true)).await;
    let missed =
        json!({"since": "2026-11-21T12:20:00Z", "until": "2026-11-21T12:30:00Z", "only_missed": true});
    let made = backfill(&world, &key, &missed).await;
    assert_eq!(texts(&made.json["launches"], "launch_at"), ["2026-11-21T12:20:00Z"], "{}", made.text);
}

#[tokio::test]
async fn a_dry_run_tells_what_a_call_would_make_and_changes_nothing() {
    let (world, key) = with_missed(&every_ten(1, true)).await;
    let mut body = json!({"since": "2026-11-21T12:00:00Z", "until": "2026-11-21T12:45:00Z", "dry_run": true});
    for only_missed in [false, true] {
        body["only_missed"] = json!(only_missed);
        let before = world.everything().await;
        let told = backfill(&world, &key, &body).await;
        assert_eq!((told.status, &told.json["dry_run"]), (StatusCode::OK, &json!(true)), "{}", told.text);
        assert_eq!(told.json["launches"].as_array().unwrap().len(), if only_missed { 3 } else { 5 });
        assert_eq!(world.everything().await, before);
    }
    body["dry_run"] = json!(false);
    let told = backfill(&world, &key, &body).await;
    assert_eq!(texts(&told.json["launches"], "missed"), ["paused"; 3], "{}", told.text);
}

#[tokio::test]
async fn rules_for_what_is_late_do_not_hold_what_is_made_late_on_purpose() {
    let mut job = every_ten(4, true);
    job["relevancy_seconds"] = json!(60);
    job["overlap"] = json!("skip");
    job["window"] = json!({"seconds": 300, "on_deadline": "expire"});
    let (world, key) = with_job(&job).await;
    world.send(Method::POST, "/v1/jobs/tens/pause", Some(&key), &[], "").await;
    let made = backfill(&world, &key, &before_noon()).await;
    let mut runs = work_off(&world, &key).await;
    assert_eq!(runs.len(), 12, "{runs:?}");
    runs.dedup();
    assert_eq!(runs, texts(&made.json["launches"], "run_id"));
    let shown = world.get(JOB, &key).await.json;
    assert_eq!(
        (&shown["paused"], &shown["relevancy_seconds"], &shown["overlap"]),
        (&json!(true), &json!(60), &json!("skip")),
        "the job itself is as it was"
    );
}

#[tokio::test]
async fn calendars_jitter_and_the_beginning_of_a_job_count() {
    let mut job = every_ten(1, false);
    job["jitter_seconds"] = json!(600);
    job["start_at"] = json!("2026-11-21T11:10:00Z");
    let (world, key) = with_job(&job).await;
    let interval = json!([{"from": "2026-11-21T11:30:00Z", "to": "2026-11-21T11:40:00Z"}]);
    world.put("/v1/calendars/closed", &key, &json!({ "intervals": interval })).await;
    job["calendars"] = json!(["closed"]);
    assert_eq!(world.put(JOB, &key, &job).await.status, StatusCode::OK);
    let body = json!({"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T12:00:00Z"});
    let launches = backfill(&world, &key, &body).await.json["launches"].clone();
    let of_tens = |at: &String| at[14..16].parse::<u32>().unwrap() / 10;
    let tens: Vec<u32> = texts(&launches, "launch_at").iter().map(of_tens).collect();
    assert_eq!(tens, [1, 2, 4, 5], "{launches}");
    assert!(!texts(&launches, "launch_at")[0].ends_with("10:00Z"), "the job has an offset");
    let mut runs = work_off(&world, &key).await;
    runs.sort_unstable();
    assert_eq!(runs, texts(&launches, "run_id"));
}

#[tokio::test]
async fn a_long_window_is_made_in_several_calls() {
    let (world, key) = with_job(&every_ten(1, false)).await;
    let mut since = json!("2026-11-14T12:00:00Z");
    let mut made = Vec::new();
    for expected in [480, 480, 48] {
        let body = json!({"since": since, "until": "2026-11-21T12:00:00Z"});
        let answer = backfill(&world, &key, &body).await.json;
        let launches = texts(&answer["launches"], "launch_at");
        assert_eq!(launches.len(), expected);
        made.extend(launches);
        since = answer["next_since"].clone();
    }
    assert_eq!((since, made.len()), (Value::Null, 7 * 144));
    assert!(made.is_sorted());
    made.dedup();
    assert_eq!(made.len(), 7 * 144);
    assert_eq!(work_off(&world, &key).await.len(), 7 * 144);
}

/// No queue takes a message.
struct NoQueue;

impl FaultPlan for NoQueue {
    fn on_request(&self, call: &Call) -> Fault {
        if call.operation.contains("SendMessage") { Fault::DropBefore } else { Fault::None }
    }
}

#[tokio::test]
async fn what_was_accepted_is_emitted_by_the_tick_when_the_master_cannot() {
    let (world, key) = with_job(&every_ten(1, false)).await;
    world.embedded.inject(NoQueue);
    let body = json!({"since": "2026-11-21T00:00:00Z", "until": "2026-11-21T12:00:00Z"});
    let made = backfill(&world, &key, &body).await;
    assert_eq!(made.status, StatusCode::ACCEPTED, "{}", made.text);
    world.embedded.inject_nothing();
    assert!(world.receive().await.is_empty());
    world.clock.advance_ms(61_000);
    for _ in 0..2 {
        world.engine.tick().await.unwrap();
    }
    let mut runs = work_off(&world, &key).await;
    runs.retain(|run| texts(&made.json["launches"], "run_id").contains(run));
    runs.sort_unstable();
    assert_eq!(runs, texts(&made.json["launches"], "run_id"));
    assert!(!world.everything().await.iter().any(|row| row.contains("OUTBOX|")), "the debts are paid");
}

#[tokio::test]
async fn two_calls_of_one_window_that_the_tick_pays_are_both_paid() {
    let (world, key) = with_job(&every_ten(1, false)).await;
    world.embedded.inject(NoQueue);
    let first = backfill(&world, &key, &before_noon()).await.json;
    let second = backfill(&world, &key, &before_noon()).await.json;
    world.embedded.inject_nothing();
    world.clock.advance_ms(61_000);
    for _ in 0..2 {
        world.engine.tick().await.unwrap();
    }
    let mut runs = work_off(&world, &key).await;
    runs.sort_unstable();
    let expected = [texts(&first["launches"], "run_id"), texts(&second["launches"], "run_id")].concat();
    assert_eq!(runs, expected);
}

#[tokio::test]
async fn what_cannot_be_made_after_all_is_said_and_changes_nothing() {
    let (world, key) = with_job(&every_ten(1, false)).await;
    let once = world.post("/v1/jobs", &key, &at_job("2026-11-22T12:00:00Z")).await.json;
    let once = format!("/v1/jobs/{}/backfill", once["job_id"].as_str().unwrap());
    let before = world.everything().await;
    for (since, until, field, words) in [
        ("2026-11-21T11:00:00Z", "2026-11-21T12:01:01Z", "until", "is ahead"),
        ("2026-11-21T11:00:00Z", "2026-11-21T11:00:00Z", "until", "is not after since"),
        ("2025-11-01T11:00:00Z", "2026-11-21T11:00:00Z", "since", "more than 366 days ago"),
        ("2026-11-21T11:00:00", "2026-11-21T11:30:00Z", "since", "has no offset"),
        ("yesterday", "2026-11-21T11:30:00Z", "since", "yesterday"),
    ] {
        let refused = backfill(&world, &key, &json!({"since": since, "until": until})).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{}", refused.text);
        assert!(refused.json["errors"][0]["message"].as_str().unwrap().contains(words), "{}", refused.text);
    }
    let missing = backfill(&world, &key, &json!({"until": "2026-11-21T11:30:00Z"})).await;
    assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", missing.text);
    let absent = world.post("/v1/jobs/absent/backfill", &key, &before_noon()).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND, "{}", absent.text);
    let one_time = world.post(&once, &key, &before_noon()).await;
    assert_eq!(one_time.status, StatusCode::CONFLICT, "{}", one_time.text);
    let headers = [("content-type", "application/json"), ("if-match", "\"7\"")];
    let body = before_noon().to_string();
    let other = world.send(Method::POST, "/v1/jobs/tens/backfill", Some(&key), &headers, &body).await;
    assert_eq!(other.status, StatusCode::PRECONDITION_FAILED, "{}", other.text);
    let none = json!({"since": "2026-11-21T11:31:00Z", "until": "2026-11-21T11:39:00Z"});
    let nothing = backfill(&world, &key, &none).await;
    assert_eq!((nothing.status, &nothing.json["revision"]), (StatusCode::OK, &json!(1)), "{}", nothing.text);
    assert_eq!(world.everything().await, before);
}
