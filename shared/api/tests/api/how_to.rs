//! The task guides: each call that they show is taken, and answered with the fields that they show.

use http::StatusCode;
use serde_json::{Value, json};

use crate::page::Page;
use crate::script::Script;
use crate::world::{QUEUE, World, at_job};

const INDEX: Page = Page(include_str!("../../../../docs/how-to/README.md"));
const WEBHOOK: Page = Page(include_str!("../../../../docs/how-to/webhook.md"));
const WEEKLY_BATCH: Page = Page(include_str!("../../../../docs/how-to/weekly-batch.md"));
const REPEAT: Page = Page(include_str!("../../../../docs/how-to/repeat-what-failed.md"));

/// A client and a guide that has the variables of all guides.
async fn begin(world: &World, page: Page) -> (String, Script<'_>) {
    let key = world.register("acme").await;
    let mut guide = Script::new(page, world, &key);
    guide.set("QUEUE", QUEUE);
    guide.set("DONE_QUEUE", QUEUE.replace("jobs", "done"));
    (key, guide)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no text '{name}' in {value}"))
}

/// The latest run of a job.
async fn run_of(world: &World, key: &str, job: &str) -> String {
    let runs = world.get(&format!("/v1/jobs/{job}/runs"), key).await.json;
    text(&runs["runs"][0], "run_id").to_owned()
}

#[test]
fn the_index_names_the_guides() {
    for guide in ["webhook.md", "weekly-batch.md", "repeat-what-failed.md"] {
        assert!(INDEX.0.contains(&format!("({guide})")), "{guide}");
    }
}

#[tokio::test]
async fn a_webhook() {
    let world = World::new().await;
    let (_, mut guide) = begin(&world, WEBHOOK).await;
    guide.steps(2).await;
    // It fires at the quarter, and nobody listens there.
    world.clock.advance_ms(15 * 60_000);
    world.engine.tick().await.unwrap();
    let runs = guide.step().await;
    assert_eq!(runs.json["runs"][0]["count"], 1, "{}", runs.text);
    guide.end();
}

#[tokio::test]
async fn a_weekly_batch() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, WEEKLY_BATCH).await;
    guide.steps(3).await;
    // The world begins at a Saturday's noon; Berlin's 22:00 is nine hours away.
    world.clock.advance_ms(9 * 3_600_000);
    world.engine.tick().await.unwrap();
    assert_eq!(world.receive().await.len(), 1, "events are spread over the window");
    guide.set("RUN", run_of(&world, &key, "weekly").await);
    guide.steps(2).await;
    let cancelled = guide.step().await;
    assert_eq!((text(&cancelled.json, "state"), text(&cancelled.json, "reason")), ("stopped", "cancelled"));
    guide.end();
}

#[tokio::test]
async fn failures_are_found_and_repeated() {
    let world = World::new().await;
    let (key, mut guide) = begin(&world, REPEAT).await;
    world.put("/v1/policies/crm", &key, &json!({"max_in_flight": 4})).await;
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["policy_id"] = json!("crm");
    job["payloads"] = json!([{"customer": 17}, {"customer": 18}, {"customer": 23}]);
    let made = world.put("/v1/jobs/sync", &key, &job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let failed: Vec<Value> = world
        .receive()
        .await
        .iter()
        .map(|event| json!({"token": event["token"], "outcome": "failed", "error": "410"}))
        .collect();
    world.post("/v1/tokens/release", &key, &json!({"tokens": failed})).await;

    let runs = guide.step().await;
    assert_eq!(runs.json["runs"][0]["failed"], 3, "{}", runs.text);
    guide.set("RUN", text(&runs.json["runs"][0], "run_id"));
    let events = guide.step().await;
    assert_eq!(text(&events.json["events"][2], "error"), "410");
    let job = guide.step().await;
    assert_eq!(job.json["payloads"][2], json!({"customer": 23}));
    guide.set("NOW", "2026-11-21T12:00:00Z");
    guide.step().await;
    guide.end();
    let payloads: Vec<Value> =
        world.receive().await.into_iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(payloads, [json!({"customer": 17}), json!({"customer": 23})]);
}
