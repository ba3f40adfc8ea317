//! A batch of ten under a policy of two tokens, to a queue and to an HTTP endpoint.

use anyhow::Result;
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::hook::Hook;
use tidegate_e2e::inbox::Inbox;
use tidegate_e2e::queue::Queue;
use tidegate_e2e::worker::Batch;

const COUNT: usize = 10;
const LIMIT: usize = 2;

/// Near enough that the master itself has to see to it.
const SOON: TimeDelta = TimeDelta::seconds(15);
/// Beyond the next tick.
const LATER: TimeDelta = TimeDelta::seconds(100);

async fn schedule(api: &Api, job_id: &str, due_in: TimeDelta, target: Value, payload: &Value) -> Result<()> {
    let policy = json!({"policy_id": "small", "max_in_flight": LIMIT, "lease_seconds": 60});
    api.post("/v1/policies", policy).await?.expect(201)?;
    let at = (Utc::now() + due_in).to_rfc3339_opts(SecondsFormat::Secs, true);
    let job = json!({
        "trigger": {"at": at},
        "count": COUNT,
        "policy_id": "small",
        "target": target,
        "payload": payload,
    });
    api.put(&format!("/v1/jobs/{job_id}"), job).await?.expect(201)?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_batch_to_a_queue_never_has_more_in_flight_than_its_policy_allows() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let client = Api::register(&deployed, "queue-user").await?;
    let (inbox, mut events) = Inbox::new();
    let mut queue = Queue::create("tidegate-e2e-batch").await?;
    queue.receive_into(inbox.clone());
    let payload = json!({"to": "a queue", "number": 7});
    let target = json!({"sqs": {"queue_url": queue.url()}});
    schedule(&client.api, "batch", SOON, target, &payload).await?;

    let (api, inbox) = (&client.api, &inbox);
    let batch = Batch { api, job_id: "batch", count: COUNT, limit: LIMIT, payload: &payload, inbox };
    batch.work_off(&mut events).await?;
    batch.check_the_history().await?;
    queue.remove().await
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_batch_to_an_http_endpoint_never_has_more_in_flight_than_its_policy_allows() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let client = Api::register(&deployed, "hook-user").await?;
    let (inbox, mut events) = Inbox::new();
    let hook = Hook::listen(inbox.clone(), &client.webhook_secret).await?;
    let payload = json!({"to": "an endpoint", "list": [1, 2, 3]});
    let target = json!({"http": {"url": hook.url()}});
    schedule(&client.api, "batch", LATER, target, &payload).await?;

    let (api, inbox) = (&client.api, &inbox);
    let batch = Batch { api, job_id: "batch", count: COUNT, limit: LIMIT, payload: &payload, inbox };
    batch.work_off(&mut events).await?;
    batch.check_the_history().await
}
