//! Events that their consumer failed: found, sent again under their policy, and forgotten.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::Queue;

const PATIENCE: Duration = Duration::from_secs(60);

async fn next(queue: &Queue) -> Result<Value> {
    Ok(serde_json::from_str(&queue.next_message(PATIENCE).await?)?)
}

async fn count(api: &Api) -> Result<Value> {
    Ok(api.get("/v1/dead-letters/count").await?.expect(200)?["total"].clone())
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn what_a_consumer_failed_is_sent_again_or_forgotten() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let client = Api::register(&deployed, "redriver").await?;
    let api = &client.api;
    let queue = Queue::create("tidegate-e2e-redrive").await?;
    let policy = json!({"policy_id": "one", "max_in_flight": 2, "lease_seconds": 60});
    api.post("/v1/policies", policy).await?.expect(201)?;
    let at = (Utc::now() + TimeDelta::seconds(5)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let job = json!({
        "trigger": {"at": at}, "count": 2, "policy_id": "one", "target": {"sqs": {"queue_url": queue.url()}},
        "payload": {"to": "be redriven"},
    });
    api.put("/v1/jobs/redriven", job).await?.expect(201)?;
    let events = [next(&queue).await?, next(&queue).await?];
    let failed: Vec<Value> =
        events.iter().map(|event| json!({"token": event["token"], "outcome": "failed"})).collect();
    api.post("/v1/tokens/release", json!({ "tokens": failed })).await?.expect(200)?;
    // Nothing else is at work, so the release that ended the last event has compacted both.
    ensure!(count(api).await? == 2, "two events failed");

    let listed = api.get("/v1/dead-letters?job_id=redriven&status=failed").await?.expect(200)?;
    let event = |n: usize| listed["dead_letters"][n]["event_id"].as_str().context("no letter");
    let shown = api.get(&format!("/v1/dead-letters/{}", event(0)?)).await?.expect(200)?;
    ensure!(shown["payload"] == json!({"to": "be redriven"}), "the letter carries {}", shown["payload"]);
    let body = json!({"event_ids": [event(0)?]});
    let redriven = api.post("/v1/dead-letters/redrive", body).await?.expect(200)?;
    ensure!(redriven["results"][0]["status"] == "redriven", "{redriven}");
    let body = json!({"where": {"job_id": "redriven"}});
    let discarded = api.post("/v1/dead-letters/discard", body).await?.expect(200)?;
    ensure!(discarded["results"][0]["status"] == "discarded", "{discarded}");
    let again = next(&queue).await?;
    ensure!(again["event_id"] == event(0)? && again["attempt"] == 2, "{again}");
    api.release(again["token"].as_str().context("no token")?).await?;
    ensure!(count(api).await? == 0, "nothing is left");
    queue.remove().await
}
