//! Triggers and rules on a deployed stack: what needs a permission or an event source that only the template grants.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{TimeDelta, Utc};
use serde_json::json;
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::inbox::Inbox;
use tidegate_e2e::queue::Queue;
use tokio::time::timeout;

const NEXT_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn launches_that_are_seconds_away_leave_at_their_second() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "soon-user").await?.api;
    let (inbox, mut events) = Inbox::new();
    let mut queue = Queue::create("tidegate-e2e-soon").await?;
    queue.receive_into(inbox);
    let at = |seconds| (Utc::now() + TimeDelta::seconds(seconds)).to_rfc3339();
    let target = json!({"sqs": {"queue_url": queue.url()}});
    let set = json!({"trigger": {"at": [at(8), at(12)]}, "target": target});
    api.put("/v1/jobs/set", set).await?.expect(201)?;
    let beat = json!({"trigger": {"rate": "5 seconds"}, "target": target});
    api.put("/v1/jobs/beat", beat).await?.expect(201)?;

    let mut launches = BTreeSet::new();
    while launches.len() < 5 {
        let event = timeout(NEXT_WITHIN, events.recv()).await.context("no event in time")?;
        let event = event.context("the consumer has ended")??;
        ensure!(event.arrived_at >= event.launch_at, "early: {event:?}");
        ensure!(launches.insert(event.event_id.clone()), "twice: {event:?}");
    }
    let of = |job: &str| launches.iter().filter(|id| id.starts_with(job)).count();
    ensure!(of("set.") >= 1 && of("beat.") >= 2, "{launches:?}");
    for job in ["set", "beat"] {
        api.delete(&format!("/v1/jobs/{job}")).await?.expect(204)?;
    }
    queue.remove().await
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn calendars_pauses_bulk_calls_and_splits_are_allowed() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "rules-user").await?.api;
    let queue = Queue::create("tidegate-e2e-rules").await?;
    let target = json!({"sqs": {"queue_url": queue.url()}});
    api.put("/v1/calendars/holidays", json!({"dates": ["12-25"]})).await?.expect(201)?;
    let nightly = json!({"trigger": {"cron": "0 3 * * *", "zone": "Europe/Berlin"}, "target": target,
        "calendars": ["holidays"], "misfire": {"rule": "latest"}});
    api.put("/v1/jobs/nightly", nightly).await?.expect(201)?;
    api.delete("/v1/calendars/holidays").await?.expect(409)?;
    let paused = api.post("/v1/jobs/nightly/pause", json!({})).await?.expect(200)?;
    ensure!(paused["paused"] == true, "{paused}");
    api.post("/v1/jobs/nightly/resume", json!({})).await?.expect(200)?;
    let upcoming = api.get("/v1/jobs/nightly/upcoming?count=2").await?.expect(200)?;
    ensure!(upcoming["upcoming"].as_array().is_some_and(|list| list.len() == 2), "{upcoming}");

    let far = (Utc::now() + TimeDelta::days(2)).to_rfc3339();
    let job = json!({"trigger": {"at": far}, "target": target});
    let bulk = api.post("/v1/jobs/bulk", json!({"jobs": [job, {"trigger": {}}, job]})).await?.expect(200)?;
    let statuses: Vec<_> =
        bulk["results"].as_array().context("no results")?.iter().map(|r| &r["status"]).collect();
    ensure!(statuses == [201, 422, 201], "{bulk}");

    let admin = api.with_key(deployed.admin_key());
    let split = json!({"zone": "Europe/Berlin", "launch_expression": "H:03", "shards": 4});
    let index = admin.put("/v1/index/shards", split).await?.expect(200)?;
    ensure!(index["split"][0]["shards"] == 4, "{index}");

    api.delete("/v1/jobs/nightly").await?.expect(204)?;
    api.delete("/v1/calendars/holidays").await?.expect(204)?;
    queue.remove().await
}

/// A part that is done already: whoever takes its message finds nothing to do, and the message goes.
#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_emitter_reads_the_scan_queue() -> Result<()> {
    let queue = Queue::find("-scan").await?;
    queue.send(r#"{"v":1,"scan":{"part":"of no scan"}}"#).await?;
    timeout(NEXT_WITHIN, queue.until_empty()).await.context("the message stays in the scan queue")?
}
