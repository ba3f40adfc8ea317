//! Events of all jobs by where they stand.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_client::{Client, EventsWanted};

use crate::hook::Hook;
use crate::world::{QUEUE, World};

const WAITING: &str = "/v1/events?status=waiting&policy_id=small";
const IN_FLIGHT: &str = "/v1/events?status=in_flight&policy_id=small";

/// Half an hour of a job of single events and a job of batches under a policy of two tokens: two events are in flight, seven wait.
async fn crowded() -> (World, String) {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.clock.advance_ms(60_000);
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2, "lease_seconds": 3_600})).await;
    for (id, cron, count) in [("a-singles", "*/10 * * * *", 1), ("b-batches", "*/15 * * * *", 3)] {
        let job = json!({
            "trigger": {"cron": cron, "zone": "UTC"}, "count": count, "policy_id": "small",
            "target": {"sqs": {"queue_url": QUEUE}},
        });
        let made = world.put(&format!("/v1/jobs/{id}"), &key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    world.minutes(30).await;
    (world, key)
}

/// The ids of all pages of a list.
async fn listed(world: &World, key: &str, path: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..50 {
        let page = world.get(&format!("{path}{next}"), key).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        found.extend(ids(&page.json));
        match page.json["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return found,
        }
    }
    panic!("{path} does not end: {found:?}");
}

fn ids(page: &Value) -> Vec<String> {
    let of = |event: &Value| event["event_id"].as_str().unwrap().to_owned();
    page["events"].as_array().unwrap().iter().map(of).collect()
}

fn launch_of(event: &str) -> i64 {
    event.split('.').nth(2).unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_waits_and_what_is_in_flight_under_a_policy_is_listed_whatever_its_job() {
    let (world, key) = crowded().await;
    let waiting = listed(&world, &key, WAITING).await;
    let in_flight = listed(&world, &key, IN_FLIGHT).await;
    assert_eq!((in_flight.len(), waiting.len()), (2, 7), "{in_flight:?} {waiting:?}");
    let all: BTreeSet<&String> = waiting.iter().chain(&in_flight).collect();
    assert_eq!(all.len(), 9, "each once");
    assert_eq!(all.iter().filter(|id| id.starts_with("a-singles.")).count(), 3);
    // The line is in order of time.
    assert!(waiting.iter().map(|id| launch_of(id)).is_sorted(), "{waiting:?}");
    for limit in [1, 2, 3, 5] {
        assert_eq!(listed(&world, &key, &format!("{WAITING}&limit={limit}")).await, waiting, "{limit}");
        assert_eq!(listed(&world, &key, &format!("{IN_FLIGHT}&limit={limit}")).await, in_flight, "{limit}");
    }
    // A stretch of time begins with its first instant and ends before its last.
    let half_past = listed(&world, &key, &format!("{WAITING}&since=2026-11-21T12:30:00Z&limit=1")).await;
    assert_eq!(half_past.len(), 4, "a single event and a batch: {half_past:?}");
    let before = listed(&world, &key, &format!("{WAITING}&until=2026-11-21T12:30:00Z")).await;
    assert_eq!([before, half_past].concat(), waiting);
    // What is in flight says whose it is, and until when.
    let shown = world.get(IN_FLIGHT, &key).await.json["events"][0].clone();
    assert_eq!((&shown["status"], &shown["attempts"]), (&json!("in_flight"), &json!(1)), "{shown}");
    assert!(shown["at"].is_string());
}

#[tokio::test]
async fn a_list_goes_on_rightly_while_events_leave_it() {
    let (world, key) = crowded().await;
    let waiting = listed(&world, &key, WAITING).await;
    let first = world.get(&format!("{WAITING}&limit=3"), &key).await.json;
    let mut shown = ids(&first);
    let cursor = first["next_cursor"].as_str().unwrap();
    // Two events end, and the next two are admitted.
    let held = world.receive().await;
    let tokens: Vec<&Value> = held.iter().map(|event| &event["token"]).collect();
    assert_eq!(
        world.post("/v1/tokens/release", &key, &json!({"tokens": tokens})).await.status,
        StatusCode::OK
    );
    world.dispatch().await;
    assert_eq!(listed(&world, &key, WAITING).await, waiting[2..]);
    let mut next = Some(cursor.to_owned());
    while let Some(cursor) = next {
        let page = world.get(&format!("{WAITING}&limit=3&cursor={cursor}"), &key).await.json;
        shown.extend(ids(&page));
        next = page["next_cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(shown, waiting, "none twice, and none that still waits is passed over");
}

#[tokio::test]
async fn what_did_not_succeed_is_listed_from_the_dead_letters() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let hook = Hook::answering(&[410, 200, 410]).await;
    world.put("/v1/jobs/batch", &key, &hook.job(3)).await;
    world.minutes(2).await;
    let letters = world.get("/v1/dead-letters", &key).await.json;
    let dead = world.get("/v1/events?status=dead", &key).await.json;
    assert_eq!(dead["events"].as_array().unwrap().len(), 2, "{dead}");
    for (event, letter) in
        dead["events"].as_array().unwrap().iter().zip(letters["dead_letters"].as_array().unwrap())
    {
        for field in ["event_id", "index", "status", "attempts", "at", "reason"] {
            assert_eq!(event[field], letter[field], "{field}");
        }
    }
    assert!(listed(&world, &key, "/v1/events?status=failed&limit=1").await.is_empty());
    let client = Client::new(world.serve().await, key).unwrap();
    assert_eq!(client.events_across(&EventsWanted::that_are("dead"), None).await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn what_is_not_listed_across_jobs_is_refused_with_where_to_look() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    for (query, field, says) in [
        ("status=succeeded", "status", "GET /v1/jobs/{job_id}/runs/{run_id}/events?status=succeeded"),
        ("status=delivered&policy_id=small", "status", "GET /v1/runs"),
        ("status=gone", "status", "give waiting, in_flight, failed, expired or dead"),
        ("status=waiting", "policy_id", "name one as policy_id"),
        ("status=in_flight&policy_id=a%20b", "policy_id", "a b"),
        ("status=dead&since=tomorrow", "since", "tomorrow"),
    ] {
        let refused = world.get(&format!("/v1/events?{query}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], field, "{query}: {}", refused.text);
        assert!(refused.text.contains(says), "{query}: {}", refused.text);
    }
    let none = world.get("/v1/events?status=waiting&policy_id=nobody", &key).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND, "{}", none.text);
    for cursor in ["x", "Zw", "bA8"] {
        let refused = world.get(&format!("{IN_FLIGHT}&cursor={cursor}"), &key).await;
        assert_ne!(refused.status, StatusCode::INTERNAL_SERVER_ERROR, "{cursor}: {}", refused.text);
    }
}
