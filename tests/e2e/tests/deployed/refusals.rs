//! Bad input, through the deployed API: each refusal has its status and a sentence, and leaves nothing behind.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tidegate_e2e::api::{Answer, Api};
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::Queue;

fn job(change: impl FnOnce(&mut Value)) -> Value {
    let mut job = json!({
        "trigger": {"cron": "0 3 * * *", "zone": "Europe/London"},
        "count": 1,
        "target": {"http": {"url": "http://127.0.0.1:9/hook"}},
        "payload": {},
    });
    change(&mut job);
    job
}

fn is_refusal(answer: &Answer, status: u16, mentions: &str) -> Result<()> {
    ensure!(answer.status == status, "wanted {status}: {answer:?}");
    ensure!(answer.content_type == "application/problem+json", "not a problem document: {answer:?}");
    ensure!(answer.body["status"] == status, "the body has another status: {answer:?}");
    let detail = answer.body["detail"].as_str().unwrap_or("");
    ensure!(detail.contains(mentions), "the detail does not mention {mentions:?}: {answer:?}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn the_deployed_api_is_healthy_and_asks_for_a_key() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let nobody = Api::without_key(&deployed)?;
    nobody.get("/v1/health").await?.expect(200)?;
    is_refusal(&nobody.get("/v1/jobs").await?, 401, "Authorization")?;
    is_refusal(&nobody.with_key("tg_nobody_wrong").get("/v1/jobs").await?, 401, "key")?;
    let intruder = nobody.with_key("not the admin key");
    is_refusal(&intruder.post("/v1/clients", json!({"client_id": "eve"})).await?, 401, "admin key")
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_client_may_name_no_target_until_the_admin_says_which() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let admin = Api::without_key(&deployed)?.with_key(deployed.admin_key());
    let unsaid = admin.post("/v1/clients", json!({"client_id": "unsaid"})).await?.expect(201)?;
    ensure!(unsaid["allowed_targets"] == json!([]), "registered without a list: {unsaid}");
    let api = admin.with_key(unsaid["api_key"].as_str().context("a new client gets no key")?);
    is_refusal(&api.put("/v1/jobs/hook", job(|_| {})).await?, 403, "allowed_targets are none")
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_bad_job_is_refused_and_not_half_written() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "careless").await?.api;
    let bad = [
        (job(|job| job["trigger"]["zone"] = json!("Europe/Atlantis")), "Europe/Atlantis"),
        (job(|job| job["trigger"]["cron"] = json!("0 0 31 2 *")), "0 0 31 2 *"),
        (job(|job| job["trigger"]["cron"] = json!("0 25 * * *")), "'25' is outside 0-23"),
        (job(|job| job["count"] = json!(0)), "count"),
        (job(|job| job["policy_id"] = json!("absent")), "absent"),
        (job(|job| job["payload"] = json!("x".repeat(65 * 1024))), "payload"),
        (job(|job| job["target"] = json!({"sqs": {"queue_url": no_queue()}})), "no-such-queue"),
    ];
    for (body, mentions) in bad {
        is_refusal(&api.put("/v1/jobs/bad", body).await?, 422, mentions)?;
    }
    let cut_off = api.call(Method::PUT, "/v1/jobs/bad", Some("{\"trigger\": ".to_owned())).await?;
    is_refusal(&cut_off, 400, "not JSON")?;
    is_refusal(&api.get("/v1/jobs/bad").await?, 404, "")
}

/// Where a queue of this deployment would be, if there were one of this name.
fn no_queue() -> String {
    let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap_or_default();
    format!("{}/000000000000/no-such-queue", endpoint.trim_end_matches('/'))
}

/// The stack's parameters allow every queue here: only the tag keeps this one apart.
#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_queue_of_another_stack_is_refused_when_a_job_names_it() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let api = Api::register(&deployed, "trespasser").await?.api;
    let queue = Queue::create_of_stack("tidegate-e2e-other", "another").await?;
    let target = json!({"sqs": {"queue_url": queue.url()}});
    let answer = api.put("/v1/jobs/foreign", job(|job| job["target"] = target)).await?;
    queue.remove().await?;
    is_refusal(&answer, 422, "out of reach")?;
    ensure!(answer.body.to_string().contains("target.sqs.queue_url"), "the field is not named: {answer:?}");
    is_refusal(&api.get("/v1/jobs/foreign").await?, 404, "")
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_client_cannot_see_or_release_what_is_anothers() -> Result<()> {
    let deployed = Deployed::from_environment()?;
    let owner = Api::register(&deployed, "owner").await?.api;
    let other = Api::register(&deployed, "other").await?.api;
    owner.put("/v1/jobs/private", job(|_| ())).await?.expect(201)?;
    is_refusal(&other.get("/v1/jobs/private").await?, 404, "")?;
    is_refusal(&other.delete("/v1/jobs/private").await?, 404, "")?;
    owner.get("/v1/jobs/private").await?.expect(200)?;
    let released = other.post("/v1/tokens/release", json!({"tokens": ["no token"]})).await?.expect(200)?;
    ensure!(released["results"][0]["status"] == "malformed", "got {released}");
    Ok(())
}
