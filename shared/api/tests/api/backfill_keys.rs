//! A backfill that is made again with the same `Idempotency-Key` makes nothing twice, and is told what the first one made.

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Backfill, Client};

use crate::world::{Answer, DiesAt, QUEUE, World};

fn every_ten(throttled: bool) -> Value {
    let mut job = json!({
        "trigger": {"cron": "*/10 * * * *", "zone": "UTC"},
        "target": {"sqs": {"queue_url": QUEUE}},
    });
    if throttled {
        job["policy_id"] = json!("small");
    }
    job
}

/// A job at revision 1, after the launch at noon.
async fn with_job(throttled: bool) -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.clock.advance_ms(60_000);
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 9, "lease_seconds": 3_600})).await;
    let made = world.put("/v1/jobs/tens", &key, &every_ten(throttled)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    (world, key)
}

/// A call at revision 1 of the job, with an idempotency key.
async fn backfill(world: &World, key: &str, name: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", name), ("if-match", "\"1\""), ("content-type", "application/json")];
    world.send(Method::POST, "/v1/jobs/tens/backfill", Some(key), &headers, &body.to_string()).await
}

fn before_noon() -> Value {
    json!({"since": "2026-11-21T11:30:00Z", "until": "2026-11-21T12:00:00Z"})
}

fn runs_of(answer: &Answer) -> Vec<String> {
    let launches = answer.json["launches"].as_array().unwrap_or_else(|| panic!("{}", answer.text));
    launches.iter().map(|launch| launch["run_id"].as_str().unwrap().to_owned()).collect()
}

/// The runs of what is delivered, each as often as it is.
async fn delivered(world: &World) -> Vec<String> {
    let events = world.receive().await;
    let mut runs: Vec<String> =
        events.iter().map(|event| event["run_id"].as_str().unwrap().to_owned()).collect();
    runs.sort();
    runs
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotent-replayed") == "true"
}

#[tokio::test]
async fn a_call_that_is_made_again_is_told_what_the_first_one_made_whatever_the_job_is_by_then() {
    let (world, key) = with_job(false).await;
    let first = backfill(&world, &key, "night", &before_noon()).await;
    assert_eq!((first.status, is_replayed(&first)), (StatusCode::ACCEPTED, false), "{}", first.text);
    assert_eq!(delivered(&world).await, runs_of(&first));
    for changed in [false, true] {
        if changed {
            let mut job = every_ten(false);
            job["trigger"]["cron"] = json!("*/15 * * * *");
            assert_eq!(world.put("/v1/jobs/tens", &key, &job).await.json["revision"], 3);
        }
        let rows = world.everything().await;
        let again = backfill(&world, &key, "night", &before_noon()).await;
        assert_eq!((again.status, is_replayed(&again)), (StatusCode::ACCEPTED, true), "{}", again.text);
        assert_eq!((&again.json, again.header("etag")), (&first.json, "\"2\""));
        assert_eq!(world.everything().await, rows, "nothing is written");
        assert!(delivered(&world).await.is_empty());
    }
    let mut other = before_noon();
    other["only_missed"] = json!(true);
    let refused = backfill(&world, &key, "night", &other).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert_eq!(refused.json["type"], "urn:tidegate:problem:already-made");
    // By another name it is another call, which is refused by its revision.
    let late = backfill(&world, &key, "other", &before_noon()).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED, "{}", late.text);
    let absent = world.delete("/v1/jobs/tens", &key).await;
    assert_eq!(absent.status, StatusCode::NO_CONTENT);
    assert_eq!(backfill(&world, &key, "night", &before_noon()).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn why_launches_were_missed_and_where_to_go_on_is_told_again() {
    let (world, key) = with_job(false).await;
    world.post("/v1/jobs/tens/pause", &key, &json!({})).await;
    world.minutes(35).await;
    world.post("/v1/jobs/tens/resume", &key, &json!({})).await;
    world.minutes(10).await;
    world.receive().await;
    let client = Client::new(world.serve().await, &key).unwrap();
    let missed = Backfill::missed("2026-11-21T12:05:00Z", "2026-11-21T12:45:00Z");
    let first = client.backfill_job_once("missed", "tens", &missed).await.unwrap();
    assert_eq!((first.launches.len(), first.launches[0].missed.as_deref()), (3, Some("paused")));
    assert_eq!(delivered(&world).await.len(), 3);
    assert_eq!(client.backfill_job_once("missed", "tens", &missed).await.unwrap(), first);
    let week = Backfill::all("2026-11-14T12:00:00Z", "2026-11-21T12:00:00Z");
    let first = client.backfill_job_once("week", "tens", &week).await.unwrap();
    assert_eq!((first.launches.len(), first.next_since.is_some()), (480, true));
    assert_eq!(client.backfill_job_once("week", "tens", &week).await.unwrap(), first);
    assert_eq!(delivered(&world).await.len(), 480);
}

#[tokio::test]
async fn what_makes_nothing_leaves_the_key_to_the_call_that_does() {
    let (world, key) = with_job(false).await;
    let rows = world.everything().await;
    let mut dry = before_noon();
    dry["dry_run"] = json!(true);
    let between = json!({"since": "2026-11-21T11:31:00Z", "until": "2026-11-21T11:39:00Z"});
    for body in [&dry, &between] {
        let told = backfill(&world, &key, "night", body).await;
        assert_eq!((told.status, is_replayed(&told)), (StatusCode::OK, false), "{}", told.text);
    }
    assert_eq!(world.everything().await, rows);
    let made = backfill(&world, &key, "night", &before_noon()).await;
    assert_eq!((made.status, is_replayed(&made)), (StatusCode::ACCEPTED, false), "{}", made.text);
    // The keys of each job are its own.
    world.put("/v1/jobs/others", &key, &every_ten(false)).await;
    let headers = [("idempotency-key", "night"), ("content-type", "application/json")];
    let body = before_noon().to_string();
    let other = world.send(Method::POST, "/v1/jobs/others/backfill", Some(&key), &headers, &body).await;
    assert_eq!((other.status, is_replayed(&other)), (StatusCode::ACCEPTED, false), "{}", other.text);
}

#[tokio::test]
async fn of_sixty_four_calls_at_once_one_makes_launches() {
    for throttled in [false, true] {
        let (world, key) = with_job(throttled).await;
        let body = before_noon();
        let answers = join_all((0..64).map(|_| backfill(&world, &key, "night", &body))).await;
        assert!(answers.iter().all(|answer| answer.status == StatusCode::ACCEPTED), "{}", answers[0].text);
        assert!(answers.iter().all(|answer| answer.json == answers[0].json));
        assert_eq!(answers.iter().filter(|answer| !is_replayed(answer)).count(), 1);
        assert_eq!(delivered(&world).await, runs_of(&answers[0]), "each once");
        assert_eq!(world.get("/v1/jobs/tens", &key).await.json["revision"], 2);
    }
}

#[tokio::test]
async fn a_call_that_dies_anywhere_and_is_made_again_makes_its_launches_once() {
    for throttled in [false, true] {
        for at in 0.. {
            let (world, key) = with_job(throttled).await;
            let faults = world.embedded.inject(DiesAt::after(at));
            let first = backfill(&world, &key, "night", &before_noon()).await;
            let is_over = !faults.is_crashed();
            world.embedded.inject_nothing();
            let again = backfill(&world, &key, "night", &before_noon()).await;
            assert_eq!(again.status, StatusCode::ACCEPTED, "died at {at}: {}", again.text);
            let mut runs = delivered(&world).await;
            world.clock.advance_ms(61_000);
            for _ in 0..2 {
                world.engine.tick().await.unwrap();
            }
            runs.extend(delivered(&world).await);
            runs.sort();
            if throttled {
                // What was sent right before the call died is sent again by the tick, as the same delivery under the same token.
                runs.dedup();
            }
            assert_eq!(runs_of(&again).len(), 3);
            assert_eq!(runs, runs_of(&again), "died at {at}");
            let job = world.get("/v1/jobs/tens", &key).await.json;
            assert_eq!(job["revision"], 2, "died at {at}");
            assert!(!world.everything().await.iter().any(|row| row.contains("OUTBOX|")), "died at {at}");
            if is_over {
                assert_eq!(first.json, again.json);
                assert!(at > 8, "it made {at} requests");
                break;
            }
        }
    }
}
