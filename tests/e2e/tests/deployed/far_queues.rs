//! Queues elsewhere: in another account, whose policy lets Tidegate in, and in another region.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::{Queue, another_account};

const WITHIN: Duration = Duration::from_secs(60);
const FAR_REGION: &str = "eu-west-1";

fn job_to(queue_url: &str) -> Value {
    let at = (Utc::now() + TimeDelta::seconds(3)).to_rfc3339_opts(SecondsFormat::Secs, true);
    json!({"trigger": {"at": at}, "target": {"sqs": {"queue_url": queue_url}}, "payload": {"to": queue_url}})
}

async fn arrives(queue: &Queue, queue_url: &str) -> Result<()> {
    let event: Value = serde_json::from_str(&queue.next_message(WITHIN).await?)?;
    ensure!(event["payload"]["to"] == queue_url && event["attempt"] == 1, "{event}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_queue_of_another_account_takes_events_when_its_policy_says_so() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "guest").await?.api;
    let home = Queue::create("tidegate-e2e-home").await?;
    let queue = Queue::create_with(another_account()?, "tidegate-e2e-abroad").await?;
    let account = |url: &str| url.rsplit('/').nth(1).map(str::to_owned).context("a URL without an account");
    let our_account = account(home.url())?;
    ensure!(account(queue.url())? != our_account, "both are in {our_account}");

    let refused = api.put("/v1/jobs/abroad", job_to(queue.url())).await?;
    let detail = refused.body["detail"].as_str().unwrap_or_default();
    ensure!(refused.status == 422 && detail.contains("out of reach"), "{refused:?}");

    queue.admit(&our_account, &["sqs:GetQueueAttributes", "sqs:SendMessage"]).await?;
    api.put("/v1/jobs/abroad", job_to(queue.url())).await?.expect(201)?;
    arrives(&queue, queue.url()).await?;
    home.remove().await?;
    queue.remove().await
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_queue_of_another_region_takes_events() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "traveller").await?.api;
    let home = Queue::create("tidegate-e2e-near").await?;
    let queue = Queue::create_in(FAR_REGION, "tidegate-e2e-distant").await?;
    // The name that the queue has on AWS; an emulator gives it one that names no region.
    let account = home.url().rsplit('/').nth(1).context("a URL without an account")?;
    let url = format!("https://sqs.{FAR_REGION}.amazonaws.com/{account}/tidegate-e2e-distant");
    api.put("/v1/jobs/distant", job_to(&url)).await?.expect(201)?;
    arrives(&queue, &url).await?;
    home.remove().await?;
    queue.remove().await
}
