//! How long single calls of the API take while others are made: create, upsert, release, list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, Utc};
use http::Method;
use serde_json::{Value, json};
use tidegate_runtime::Runtime;
use tidegate_testkit::queue;
use tokio::task::JoinSet;

use crate::Row;
use crate::api::Api;

/// Callers side by side.
const CALLERS: u32 = 8;
const POLICY: &str = "latency";
/// A lease that outlasts the benchmark, in seconds.
const LEASE_SECONDS: u32 = 43_200;
/// Until when all events must be there.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the calls of each kind took.
type Times = BTreeMap<&'static str, Vec<Duration>>;

/// Each kind of call `calls` times, in turns, by [`CALLERS`].
pub(crate) async fn run(runtime: &Runtime, calls: u32) -> Result<Vec<Row>> {
    let api = Api::over(runtime.engine()).await?;
    let sqs = runtime.embedded().sqs();
    let queue_url = queue::create(&sqs, POLICY).await?;
    let policy = json!({"policy_id": POLICY, "max_in_flight": calls, "lease_seconds": LEASE_SECONDS});
    api.post("/v1/policies", &policy).await?;
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let batch = json!({
        "trigger": {"at": now, "past": "fire"}, "count": calls, "policy_id": POLICY,
        "target": {"sqs": {"queue_url": queue_url}},
    });
    api.post("/v1/jobs", &batch).await?;
    let (mut tokens, began) = (Vec::new(), Instant::now());
    while tokens.len() < calls as usize {
        ensure!(began.elapsed() < PATIENCE, "{} of {calls} events came", tokens.len());
        for text in queue::take_all(&sqs, &queue_url).await? {
            let event: Value = serde_json::from_str(&text)?;
            tokens.push(event["token"].as_str().context("an event without a token")?.to_owned());
        }
    }

    let (tokens, mut callers) = (Arc::new(tokens), JoinSet::new());
    for caller in 0..CALLERS {
        let (api, queue_url, tokens) = (api.clone(), queue_url.clone(), Arc::clone(&tokens));
        callers.spawn(async move {
            let mut times = Times::new();
            for (number, token) in tokens.iter().enumerate().skip(caller as usize).step_by(CALLERS as usize) {
                take_turns(&api, &queue_url, (caller, number, token), &mut times).await?;
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Times::new();
    while let Some(done) = callers.join_next().await {
        for (what, took) in done?? {
            times.entry(what).or_default().extend(took);
        }
    }
    Ok(times.into_iter().map(|(what, took)| row(what, took)).collect())
}

/// A call of each kind.
async fn take_turns(
    api: &Api,
    queue_url: &str,
    (caller, number, token): (u32, usize, &str),
    times: &mut Times,
) -> Result<()> {
    let at = (Utc::now() + chrono::Duration::days(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let job = |trigger: Value| json!({"trigger": trigger, "target": {"sqs": {"queue_url": queue_url}}, "payload": {"number": number}});
    let one_time = job(json!({"at": at}));
    timed(times, "POST /v1/jobs, a one-time job of tomorrow", api.post("/v1/jobs", &one_time)).await?;
    // A hundred of each caller's own, put again and again with another payload.
    let path = format!("/v1/jobs/job-{caller}-{}", number / CALLERS as usize % 100);
    let cron = job(json!({"cron": "0 3 * * *"}));
    timed(times, "PUT /v1/jobs/{job_id}, of every day", api.call(Method::PUT, &path, Some(&cron))).await?;
    let release = json!({"tokens": [token]});
    timed(times, "POST /v1/tokens/release, one token", api.post("/v1/tokens/release", &release)).await?;
    timed(times, "GET /v1/jobs, a page of 100", api.call(Method::GET, "/v1/jobs", None)).await
}

async fn timed(
    times: &mut Times,
    what: &'static str,
    call: impl Future<Output = Result<Value>>,
) -> Result<()> {
    let began = Instant::now();
    call.await?;
    times.entry(what).or_default().push(began.elapsed());
    Ok(())
}

fn row(what: &str, mut took: Vec<Duration>) -> Row {
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 100).or(took.last()).copied().unwrap_or_default();
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    let result = format!("{:.2} ms p50, {:.2} ms p99", ms(at(50)), ms(at(99)));
    (format!("{} calls, {CALLERS} callers that take turns: {what}", took.len()), result)
}
