//! What a batch can be told: payloads of its own, a paused policy, releases by message, its end, a remainder that is
//! cancelled, an endpoint whose answer is enough.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::hook::Hook;
use tidegate_e2e::inbox::Inbox;
use tidegate_e2e::queue::Queue;
use tokio::time::{sleep, timeout};

const WITHIN: Duration = Duration::from_secs(120);
/// How long a consumer watches that nothing comes.
const QUIET_FOR: Duration = Duration::from_secs(5);
const POLL_EVERY: Duration = Duration::from_millis(500);

fn soon() -> Value {
    json!({"at": (Utc::now() + TimeDelta::seconds(3)).to_rfc3339_opts(SecondsFormat::Secs, true)})
}

/// The only run of a job, once `is_so` holds for it.
async fn run_that(api: &Api, job_id: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let wait = async {
        loop {
            let runs = api.get(&format!("/v1/jobs/{job_id}/runs")).await?.expect(200)?;
            if is_so(&runs["runs"][0]) {
                return Ok::<Value, anyhow::Error>(runs["runs"][0].clone());
            }
            sleep(POLL_EVERY).await;
        }
    };
    timeout(WITHIN, wait).await.with_context(|| format!("the run of {job_id} never was so"))?
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_batch_of_lists_waits_for_its_policy_is_released_by_messages_and_tells_its_end() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "list-user").await?.api;
    let (work, done) = (Queue::create("tidegate-e2e-list").await?, Queue::create("tidegate-e2e-done").await?);
    let releases = Queue::find("-release").await?;
    api.post("/v1/policies", json!({"policy_id": "small", "max_in_flight": 2})).await?.expect(201)?;
    api.post("/v1/policies/small/pause", json!({})).await?.expect(200)?;
    let job = json!({"trigger": soon(), "policy_id": "small", "payloads": [{"n": 10}, {"n": 20}, {"n": 30}],
        "target": {"sqs": {"queue_url": work.url()}}, "on_completion": {"sqs": {"queue_url": done.url()}}});
    api.put("/v1/jobs/lists", job).await?.expect(201)?;
    let run = run_that(&api, "lists", |run| run["run_id"].is_string()).await?;
    let run_id = run["run_id"].as_str().context("a run without an id")?;
    ensure!(work.next_message(QUIET_FOR).await.is_err(), "a paused policy lets nothing through");
    let why = api.get(&format!("/v1/events/{run_id}.0/explain")).await?.expect(200)?;
    ensure!(why["policy"]["paused"] == true, "{why}");

    api.post("/v1/policies/small/resume", json!({})).await?.expect(200)?;
    let mut payloads = Vec::new();
    for _ in 0..3 {
        let event: Value = serde_json::from_str(&work.next_message(WITHIN).await?)?;
        payloads.push((event["index"].clone(), event["payload"]["n"].clone()));
        let entry = json!({"token": event["token"], "outcome": "succeeded", "result": "made"});
        releases.send(&json!({"client_id": "list-user", "tokens": [entry]}).to_string()).await?;
    }
    payloads.sort_by_key(|(index, _)| index.as_u64());
    ensure!(
        payloads == [(json!(0), json!(10)), (json!(1), json!(20)), (json!(2), json!(30))],
        "{payloads:?}"
    );
    let told: Value = serde_json::from_str(&done.next_message(WITHIN).await?)?;
    ensure!(told["run_id"] == run_id && told["state"] == "finished" && told["succeeded"] == 3, "{told}");
    let detail = api.get(&format!("/v1/jobs/lists/runs/{run_id}")).await?.expect(200)?;
    ensure!(detail["in_flight"] == 0 && detail["waiting"] == 0, "{detail}");
    work.remove().await?;
    done.remove().await
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_remainder_of_a_run_is_cancelled_and_its_holders_are_told() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "cancel-user").await?.api;
    let work = Queue::create("tidegate-e2e-cancel").await?;
    let policy = json!({"policy_id": "held", "max_in_flight": 2, "on_expiry": "hold"});
    api.post("/v1/policies", policy).await?.expect(201)?;
    let job = json!({"trigger": soon(), "policy_id": "held", "count": 1_000, "max_failures": 5,
        "target": {"sqs": {"queue_url": work.url()}}});
    api.put("/v1/jobs/large", job).await?.expect(201)?;
    work.next_message(WITHIN).await?;
    let run = run_that(&api, "large", |run| run["run_id"].is_string()).await?;
    let run_id = run["run_id"].as_str().context("a run without an id")?;
    api.post(&format!("/v1/jobs/large/runs/{run_id}/cancel"), json!({})).await?.expect(200)?;
    let holders = api.get("/v1/policies/held/holders").await?.expect(200)?;
    let tokens: Vec<&Value> =
        holders["holders"].as_array().context("no holders")?.iter().map(|h| &h["token"]).collect();
    ensure!(tokens.len() == 2, "{holders}");
    api.post("/v1/tokens/free", json!({"tokens": tokens, "redeliver": false})).await?.expect(200)?;
    let run = run_that(&api, "large", |run| run["expired"] == 2).await?;
    ensure!(run["left_out"] == 998 && run["state"] == "stopped", "{run}");
    work.remove().await
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_answer_of_an_endpoint_releases_its_token() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let client = Api::register(&deployed, "answer-user").await?;
    let (inbox, _events) = Inbox::new();
    let hook = Hook::listen(inbox.clone(), &client.webhook_secret).await?;
    let api = &client.api;
    api.post("/v1/policies", json!({"policy_id": "small", "max_in_flight": 2})).await?.expect(201)?;
    let job = json!({"trigger": soon(), "policy_id": "small", "count": 7, "cost": 2,
        "target": {"http": {"url": hook.url(), "release": "on_response"}}});
    api.put("/v1/jobs/answers", job).await?.expect(201)?;
    run_that(api, "answers", |run| run["succeeded"] == 7).await?;
    let count = inbox.count();
    ensure!(count.deliveries.len() == 7 && count.deliveries.values().all(|times| *times == 1), "{count:?}");
    Ok(())
}
