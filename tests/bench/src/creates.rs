//! Creating one-time jobs: one by one and in bulk, through the API's router in this process; and how evenly the instants
//! of one minute are spread over partitions.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tidegate_domain::job::Trigger;
use tidegate_domain::limits::BULK_JOBS;
use tidegate_embedded::ClientOptions;
use tidegate_engine::clock::SystemClock;
use tidegate_engine::random::SystemRandom;
use tidegate_engine::{Engine, JobDraft};
use tidegate_testkit::Deployment;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::spread::{Spread, of_names, of_rows};
use crate::{Row, client, embedded, ms, per_second, terms};

/// Callers side by side.
const CALLERS: u32 = 8;

/// What a DynamoDB partition takes.
const PARTITION_WRITES_A_SECOND: f64 = 1_000.0;

pub(crate) async fn run(jobs: u32) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut rows = in_place("in a folder", Some(folder.path()), jobs).await?;
    rows.extend(in_place("in memory", None, jobs).await?);
    rows.push(spread_row(jobs, "named by their client", of_names(jobs)?, None));
    Ok(rows)
}

async fn in_place(place: &str, folder: Option<&Path>, jobs: u32) -> Result<Vec<Row>> {
    let api = Creator::open(folder).await?;
    // Single calls are a tenth as fast: a share of the jobs tells as much.
    let singles = jobs / 5;
    let launch_at = Utc::now() + chrono::Duration::days(1);
    let single = api.many(singles, 1, launch_at).await?;
    // Another minute, which nobody has written to.
    let launch_at = launch_at + chrono::Duration::days(1);
    let bulk = api.many(jobs, BULK_JOBS as u32, launch_at).await?;
    let spread = of_rows(&api.engine, launch_at).await?;
    let direct = api.past_the_api(jobs, launch_at + chrono::Duration::days(1)).await?;
    let row = |jobs, how: &str, took| {
        let what = format!("{jobs} one-time jobs, {place}, {CALLERS} callers: {how}");
        (what, format!("{} ({})", per_second(jobs, took), ms(took)))
    };
    Ok(vec![
        row(singles, "POST /v1/jobs", single),
        row(jobs, "POST /v1/jobs/bulk, 1,000 to a call", bulk),
        row(jobs, "the engine's bulk call without the API", direct),
        spread_row(jobs, "under generated ids", spread, Some(f64::from(jobs) / bulk.as_secs_f64())),
    ])
}

fn spread_row(jobs: u32, names: &str, spread: Spread, creates_a_second: Option<f64>) -> Row {
    let share = f64::from(spread.most) / f64::from(jobs.max(1));
    let measured =
        creates_a_second.map(|rate| format!("{:.0} a second at the measured rate; ", rate * share));
    let result = format!(
        "at most {} writes of one key, {:.0} on average over {}; {}a partition's 1,000 a second are reached at {:.0} creates a second",
        spread.most,
        f64::from(jobs) / f64::from(spread.partitions.max(1)),
        spread.partitions,
        measured.unwrap_or_default(),
        PARTITION_WRITES_A_SECOND / share.max(f64::EPSILON),
    );
    (format!("{jobs} instants of one minute, {names}: writes per partition key"), result)
}

/// The API over stores of its own, with one client that has a queue.
struct Creator {
    api: Api,
    engine: Engine,
    queue_url: String,
}

impl Creator {
    async fn open(folder: Option<&Path>) -> Result<Self> {
        let embedded = embedded(folder, Arc::new(SystemClock))?;
        let deployment = Deployment::on(&embedded, &ClientOptions::default()).await?;
        let queue_url = deployment.queue("jobs").await?;
        let process = deployment.process().private_targets().random(SystemRandom);
        let engine = process.start(Arc::new(SystemClock));
        engine.tick().await?;
        Ok(Self { api: Api::over(&engine).await?, engine, queue_url })
    }

    /// Creates jobs due in one minute, so many to a call; how long that took.
    async fn many(&self, jobs: u32, to_a_call: u32, launch_at: DateTime<Utc>) -> Result<Duration> {
        let mut callers = JoinSet::new();
        let began = Instant::now();
        for caller in 0..CALLERS {
            let share = jobs / CALLERS + u32::from(caller < jobs % CALLERS);
            let api = self.api.clone();
            let job = json!({
                "trigger": {"at": launch_at.to_rfc3339_opts(SecondsFormat::Secs, true)},
                "target": {"sqs": {"queue_url": self.queue_url}},
                "payload": {"a": 1},
            });
            callers.spawn(async move { create(&api, share, to_a_call, &job).await });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(began.elapsed())
    }

    /// The same by the engine's own bulk call: what the API itself takes is the difference.
    async fn past_the_api(&self, jobs: u32, launch_at: DateTime<Utc>) -> Result<Duration> {
        let launch_at = DateTime::from_timestamp(launch_at.timestamp(), 0).context("no such instant")?;
        let draft = JobDraft::new(Trigger::at(launch_at), terms(&self.queue_url, 1)?);
        let mut callers = JoinSet::new();
        let began = Instant::now();
        for caller in 0..CALLERS {
            let share = (jobs / CALLERS + u32::from(caller < jobs % CALLERS)) as usize;
            let (engine, client, draft) = (self.engine.clone(), client()?, draft.clone());
            callers.spawn(async move {
                for from in (0..share).step_by(BULK_JOBS) {
                    let drafts = vec![(None, draft.clone()); BULK_JOBS.min(share - from)];
                    for written in engine.jobs().create_all(&client, drafts).await {
                        written?;
                    }
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(began.elapsed())
    }
}

async fn create(api: &Api, jobs: u32, to_a_call: u32, job: &Value) -> Result<()> {
    let mut left = jobs;
    while left > 0 {
        let now = left.min(to_a_call);
        left -= now;
        if to_a_call == 1 {
            api.post("/v1/jobs", job).await?;
            continue;
        }
        let answer = api.post("/v1/jobs/bulk", &json!({"jobs": vec![job; now as usize]})).await?;
        let results = answer["results"].as_array().context("a bulk call without results")?;
        if results.len() != now as usize || results.iter().any(|result| result["status"] != 201) {
            bail!("a bulk call did not create all of its jobs: {}", answer["results"][0]);
        }
    }
    Ok(())
}
