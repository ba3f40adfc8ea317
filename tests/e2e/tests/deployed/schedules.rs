//! A cron job without a policy, fired by the real one-minute tick.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{TimeDelta, Timelike as _};
use serde_json::json;
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::inbox::Inbox;
use tidegate_e2e::queue::Queue;
use tokio::time::timeout;

const NEXT_WITHIN: Duration = Duration::from_secs(150);

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_cron_job_fires_every_minute_on_the_minute() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "cron-user").await?.api;
    let (inbox, mut events) = Inbox::new();
    let mut queue = Queue::create("tidegate-e2e-cron").await?;
    queue.receive_into(inbox);
    let job = json!({
        "trigger": {"cron": "*/1 * * * *", "zone": "UTC"},
        "count": 1,
        "target": {"sqs": {"queue_url": queue.url()}},
        "payload": {},
    });
    api.put("/v1/jobs/every-minute", job).await?.expect(201)?;

    let mut launches = Vec::new();
    for _ in 0..2 {
        let event = timeout(NEXT_WITHIN, events.recv()).await.context("no event in time")?;
        let event = event.context("the consumer has ended")??;
        ensure!(event.launch_at.second() == 0, "not on the minute: {event:?}");
        ensure!(event.arrived_at >= event.launch_at, "early: {event:?}");
        launches.push(event.launch_at);
    }
    ensure!(launches[1] - launches[0] == TimeDelta::minutes(1), "not one minute apart: {launches:?}");

    let deleted = api.delete("/v1/jobs/every-minute").await?;
    ensure!((200..300).contains(&deleted.status), "not deleted: {deleted:?}");
    api.get("/v1/jobs/every-minute").await?.expect(404)?;
    queue.remove().await
}
