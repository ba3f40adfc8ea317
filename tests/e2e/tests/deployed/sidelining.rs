//! Jobs that are sidelined, with a policy and without one: nothing comes until they drain. Then one is triggered.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::Queue;

const PATIENCE: Duration = Duration::from_secs(90);
const LOOKS_EVERY: Duration = Duration::from_secs(2);

/// Waits until so many events of each job are set aside.
async fn until_set_aside(api: &Api, count: u64) -> Result<()> {
    let looks = async {
        loop {
            let shown = api.get("/v1/sideline").await?.expect(200)?;
            let is_all = |job: &str| shown["jobs"][job]["set_aside"] == count;
            if is_all("alone") && is_all("shared") {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.context("not all was set aside in time")?
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn sidelined_jobs_wait_until_they_drain_and_one_is_triggered() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let client = Api::register(&deployed, "sideliner").await?;
    let api = &client.api;
    let queue = Queue::create("tidegate-e2e-sideline").await?;
    let policy = json!({"policy_id": "one", "max_in_flight": 2, "lease_seconds": 60});
    api.post("/v1/policies", policy).await?.expect(201)?;
    let at = (Utc::now() + TimeDelta::seconds(8)).to_rfc3339_opts(SecondsFormat::Secs, true);
    for (job_id, policy_id) in [("alone", Value::Null), ("shared", json!("one"))] {
        let job = json!({
            "trigger": {"at": at}, "count": 3, "policy_id": policy_id,
            "target": {"sqs": {"queue_url": queue.url()}},
        });
        api.put(&format!("/v1/jobs/{job_id}"), job).await?.expect(201)?;
        let because = json!({"because": "repairs"});
        api.post(&format!("/v1/jobs/{job_id}/sideline"), because).await?.expect(200)?;
    }
    until_set_aside(api, 3).await?;
    for job_id in ["alone", "shared"] {
        let pace = json!({"per_second": 10});
        api.post(&format!("/v1/jobs/{job_id}/drain"), pace).await?.expect(200)?;
    }
    let mut came = BTreeMap::new();
    for _ in 0..6 {
        let event: Value = serde_json::from_str(&queue.next_message(PATIENCE).await?)?;
        ensure!(event["attempt"] == 1, "it was not delivered before: {event}");
        *came.entry(event["job_id"].as_str().context("no job")?.to_owned()).or_insert(0) += 1;
        if let Some(token) = event["token"].as_str() {
            api.release(token).await?;
        }
    }
    ensure!(came == BTreeMap::from([("alone".to_owned(), 3), ("shared".to_owned(), 3)]), "{came:?}");

    let triggered = api.post("/v1/jobs/shared/trigger", json!({})).await?.expect(202)?;
    for _ in 0..3 {
        let event: Value = serde_json::from_str(&queue.next_message(PATIENCE).await?)?;
        ensure!(event["run_id"] == triggered["run_id"], "{event} is not of {triggered}");
        api.release(event["token"].as_str().context("no token")?).await?;
    }
    queue.remove().await
}
