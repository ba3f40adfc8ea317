//! A change of a job whose first call died, made again with the revision that it expected: refused, and what was left is done.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::{Call, Fault, FaultPlan};

use crate::world::{Answer, QUEUE, World};

/// The caller dies right after it has written a job.
struct DiesOnceWritten;

impl FaultPlan for DiesOnceWritten {
    fn on_request(&self, call: &Call) -> Fault {
        let writes_job = call.operation == "TransactWriteItems" && call.resource().ends_with("-jobs");
        if writes_job { Fault::CrashAfter } else { Fault::None }
    }
}

fn every_minute(payload: &str) -> Value {
    json!({
        "trigger": {"cron": "* * * * *", "zone": "UTC"},
        "target": {"sqs": {"queue_url": QUEUE}},
        "payload": payload,
    })
}

/// A call that changes the job `each`, at revision 2 of it.
#[derive(Clone)]
struct Change {
    method: Method,
    path: &'static str,
    body: Value,
    /// Whether it says itself which revision it expects, and needs no header for that.
    has_revision: bool,
}

impl Change {
    fn new(method: Method, path: &'static str, body: Value) -> Self {
        Self { method, path, body, has_revision: false }
    }

    fn post(path: &'static str, body: Value) -> Self {
        Self::new(Method::POST, path, body)
    }

    async fn call(&self, world: &World, key: &str) -> Answer {
        let expected = ("if-match", "\"2\"");
        let headers = [("content-type", "application/json"), expected];
        let headers = if self.has_revision { &headers[..1] } else { &headers };
        let path = format!("/v1/jobs/each{}", self.path);
        world.send(self.method.clone(), &path, Some(key), headers, &self.body.to_string()).await
    }
}

/// The minutes whose launches at revision 3 are recorded, of those that only the call that died could have emitted: later than the
/// master's own, which the next tick pays, and before the watermark.
async fn recorded(world: &World, key: &str) -> Vec<String> {
    let page = world.get("/v1/jobs/each/runs?limit=100", key).await.json;
    let rows = page["runs"].as_array().unwrap();
    let of_change = rows.iter().filter(|run| run["run_id"].as_str().unwrap().starts_with("each.3."));
    let mut runs: Vec<String> =
        of_change.map(|run| run["launch_at"].as_str().unwrap()[11..16].to_owned()).collect();
    runs.retain(|minute| ("12:06".."12:12").contains(&minute.as_str()));
    runs.sort();
    runs
}

/// The first call dies once it has written the job by a clock that is eight minutes behind, so that the watermark has passed launches
/// that are the emitter's. What is recorded of these at the end, with `again` called after that, or without.
async fn played(first: &Change, again: Option<&Change>, was_paused: bool) -> Vec<String> {
    let world = World::new().await;
    let key = world.register("acme").await;
    assert_eq!(world.put("/v1/jobs/each", &key, &every_minute("first")).await.status, StatusCode::CREATED);
    let second = match was_paused {
        true => world.post("/v1/jobs/each/pause", &key, &json!({})).await,
        false => world.put("/v1/jobs/each", &key, &every_minute("second")).await,
    };
    assert_eq!(second.json["revision"], 2, "{}", second.text);
    world.minutes(10).await;
    world.clock.advance_ms(-8 * 60_000);
    world.embedded.inject(DiesOnceWritten);
    let dead = first.call(&world, &key).await;
    world.embedded.inject_nothing();
    assert_eq!(dead.status, StatusCode::SERVICE_UNAVAILABLE, "{}", dead.text);
    world.clock.advance_ms(8 * 60_000);
    if let Some(again) = again {
        let refused = again.call(&world, &key).await;
        assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{}", refused.text);
        assert!(refused.text.contains("is at revision 3"), "{}", refused.text);
        let rows = world.everything().await;
        assert_eq!(again.call(&world, &key).await.status, StatusCode::PRECONDITION_FAILED);
        assert_eq!(world.everything().await, rows, "made a third time, it changes nothing");
    }
    world.minutes(3).await;
    recorded(&world, &key).await
}

/// What the first call left comes, and only because it was made again.
async fn finishes(first: &Change, again: &Change, was_paused: bool) {
    let told = format!("{} {}", first.method, first.path);
    assert_eq!(played(first, None, was_paused).await, [""; 0], "{told}: they came without a repeat");
    let came = played(first, Some(again), was_paused).await;
    if first.path == "/pause" {
        // One record stands for launches in a row that are left out.
        assert_eq!(came.first().map(String::as_str), Some("12:06"), "{told}: {came:?}");
        return;
    }
    assert_eq!(came, ["12:06", "12:07", "12:08", "12:09", "12:10", "12:11"], "{told}");
}

#[tokio::test]
async fn a_change_that_is_made_again_finishes_what_the_first_call_left() {
    let named = json!({"launch_at": "2026-11-21T12:40:00Z"});
    for change in [
        Change::new(Method::PUT, "", every_minute("third")),
        Change::new(Method::PATCH, "", json!({"payload": "third"})),
        Change {
            has_revision: true,
            ..Change::new(Method::PATCH, "", json!({"payload": "third", "revision": 2}))
        },
        Change::post("/skip", named),
        Change::post("/skip", json!({})),
        Change::post("/reschedule", json!({"trigger": {"cron": "* * * * *", "zone": "Europe/London"}})),
        Change::post("/rollback", json!({"revision": 1})),
        Change::post("/backfill", json!({"since": "2026-11-21T11:50:00Z", "until": "2026-11-21T11:55:00Z"})),
    ] {
        finishes(&change, &change, false).await;
    }
}

#[tokio::test]
async fn a_pause_and_a_resumption_that_are_made_again_finish_what_the_first_call_left() {
    for because in [json!({}), json!({"because": "books"})] {
        let pause = Change::post("/pause", because);
        finishes(&pause, &pause, false).await;
    }
    let resume = Change::post("/resume", json!({}));
    finishes(&resume, &resume, true).await;
}

#[tokio::test]
async fn whoever_comes_first_for_a_revision_finishes_it() {
    let change = Change::new(Method::PUT, "", every_minute("third"));
    finishes(&change, &Change::new(Method::DELETE, "", json!({})), false).await;
    finishes(&change, &Change::post("/rollback", json!({"revision": 1})), false).await;
}

#[tokio::test]
async fn times_that_cannot_be_moved_any_more_are_refused_by_their_revision_first() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut once = every_minute("once");
    once["trigger"] = json!({"at": "2026-11-21T12:03:00Z"});
    world.put("/v1/jobs/each", &key, &every_minute("first")).await;
    assert_eq!(world.put("/v1/jobs/each", &key, &once).await.json["revision"], 2);
    world.minutes(10).await;
    world.clock.advance_ms(-8 * 60_000);
    world.embedded.inject(DiesOnceWritten);
    let move_back = Change::post("/reschedule", json!({"delay_seconds": 240}));
    let dead = move_back.call(&world, &key).await;
    world.embedded.inject_nothing();
    assert_eq!(dead.status, StatusCode::SERVICE_UNAVAILABLE, "{}", dead.text);
    // The instant that it was moved to is past, and the tick that could have emitted it was before.
    world.clock.advance_ms(9 * 60_000);
    let refused = move_back.call(&world, &key).await;
    assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED, "{}", refused.text);
    world.minutes(1).await;
    let events = world.take_all(QUEUE).await;
    assert_eq!(events.iter().filter(|event| event.contains("\"each.3.")).count(), 1, "{events:?}");
}
