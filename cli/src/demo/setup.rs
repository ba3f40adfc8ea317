//! What the demonstration registers. Everything has a fixed name and may exist already: a demonstration that was killed
//! finds what it had, and one that was killed here goes on here.

use std::time::Duration;

use anyhow::Context as _;
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;
use tidegate_client::{
    At, Client, Error, Job, JobView, Misfire, Policy, PolicyStatus, Target, Trigger, TriggerView,
};
use tidegate_domain::limits::MISFIRE_LAUNCHES;

use super::book::Book;
use super::due::Plan;
use super::score::Entry;
use super::{BATCH_EVENTS, BATCH_JOB, CRON_JOB, LIMIT, Stage};
use crate::kept_key;

const CLIENT: &str = "demo";
/// The policy of the batch.
pub(super) const POLICY: &str = "three-at-a-time";
const QUEUE: &str = "tidegate-demo";
/// The file of the client's key in the data folder.
const KEY_FILE: &str = "demo-client-key";
/// Names that are tried for the client: one more is lost each time that the process dies before its key is kept.
const CLIENT_NAMES: u32 = 20;

/// The key of the demonstration's client, which is registered if need be.
pub(super) async fn client_key(stage: &Stage<'_>) -> anyhow::Result<String> {
    let file = stage.folder.map(|folder| folder.join(KEY_FILE));
    if let Some(key) = file.as_deref().map(kept_key::read).transpose()?.flatten() {
        return Ok(key);
    }
    let key = register(stage).await?;
    if let Some(file) = file.as_deref() {
        kept_key::keep(file, &key)?;
    }
    Ok(key)
}

async fn register(stage: &Stage<'_>) -> anyhow::Result<String> {
    let admin = Client::new(stage.api_url, stage.admin_key)?;
    for number in 1..=CLIENT_NAMES {
        let name = if number == 1 { CLIENT.to_owned() } else { format!("{CLIENT}-{number}") };
        match admin.register_client(&name, &[]).await {
            Ok(registered) => return Ok(registered.api_key),
            // Its key was shown to a process that died before it kept it.
            Err(error) if status(&error) == Some(409) => {}
            Err(error) => return Err(error).context("failed to register the demo's client"),
        }
    }
    anyhow::bail!("failed to register the demo's client: all its names are taken; use another data folder")
}

/// The queue of the consumer; returns its URL.
pub(super) async fn queue(sqs: &aws_sdk_sqs::Client, visibility: Duration) -> anyhow::Result<String> {
    let created =
        sqs.create_queue().queue_name(QUEUE).send().await.context("failed to create the demo's queue")?;
    let url = created.queue_url.unwrap_or_default();
    let visibility_seconds = visibility.as_secs().to_string();
    let set = sqs.set_queue_attributes().queue_url(&url);
    let set = set.attributes(QueueAttributeName::VisibilityTimeout, visibility_seconds).send().await;
    set.context("failed to set up the demo's queue")?;
    Ok(url)
}

/// The policy.
pub(super) async fn policy(client: &Client, lease_seconds: u32) -> anyhow::Result<()> {
    let policy = Policy { lease_seconds: Some(lease_seconds), ..Policy::new(LIMIT) };
    match client.policy(POLICY).await {
        Ok(PolicyStatus { policy: there, .. })
            if (there.max_in_flight, there.lease_seconds) == (LIMIT, lease_seconds) =>
        {
            return Ok(());
        }
        Ok(_) => {}
        Err(error) if status(&error) == Some(404) => {}
        Err(error) => return Err(error).context("failed to read the demo's policy"),
    }
    client.put_policy(POLICY, &policy, None).await.context("failed to create the demo's policy")?;
    Ok(())
}

/// The two jobs, and when they are due. The batch is due in the second in which it is created.
pub(super) async fn jobs(
    client: &Client,
    queue_url: &str,
    book: &Book,
    now: fn() -> DateTime<Utc>,
) -> anyhow::Result<Plan> {
    let started_ms = now().timestamp_millis();
    let cron = match find(client, CRON_JOB).await? {
        Some(cron) => cron,
        None => {
            let job = Job::new(Trigger::cron("* * * * *", "UTC"), Target::sqs(queue_url));
            let job = job.payload(json!({"greeting": "another minute has begun"}));
            // However long the demo was stopped, its minutes are made up for.
            let job = Job { misfire: Some(Misfire::all(MISFIRE_LAUNCHES)), ..job };
            client.put_job(CRON_JOB, &job, None).await.context("failed to create the demo's cron job")?
        }
    };
    let cron_since: DateTime<Utc> =
        cron.changed_at.parse().context("failed to read when the demo's cron job was created")?;
    let seen = book.read(|score| score.batch_launch_ms.filter(|_| !score.events.is_empty()));
    let batch_launch_ms = match (find(client, BATCH_JOB).await?, seen) {
        (Some(JobView { trigger: TriggerView { at: Some(At::One(at)), .. }, .. }), _) => {
            let launch_at: DateTime<Utc> =
                at.parse().context("failed to read when the demo's batch is due")?;
            launch_at.timestamp_millis()
        }
        (Some(_), _) => anyhow::bail!("the job {BATCH_JOB} is not the demo's; use another data folder"),
        // One-time jobs are cleaned up; what they were is in the book.
        (None, Some(launch_ms)) => launch_ms,
        (None, None) => batch(client, queue_url, book, now).await?,
    };
    Ok(Plan::new(batch_launch_ms, cron_since.timestamp_millis(), started_ms))
}

async fn batch(
    client: &Client,
    queue_url: &str,
    book: &Book,
    now: fn() -> DateTime<Utc>,
) -> anyhow::Result<i64> {
    // Launch instants are whole seconds. One that begins now lies neither in the past nor in the future.
    let into_second_ms = u64::from(now().timestamp_subsec_millis());
    tokio::time::sleep(Duration::from_millis(1_001 - into_second_ms.min(1_000))).await;
    let launch_ms = now().timestamp() * 1_000;
    let launch_at = DateTime::from_timestamp_millis(launch_ms).unwrap_or_default();
    book.note(&Entry::Batch { launch_ms })?;
    let trigger = Trigger::at(launch_at.to_rfc3339_opts(SecondsFormat::Secs, true));
    let job = Job::new(trigger, Target::sqs(queue_url)).count(BATCH_EVENTS).policy(POLICY);
    let job = job.payload(json!({"greeting": "one of twenty"}));
    client.put_job(BATCH_JOB, &job, None).await.context("failed to create the demo's batch")?;
    Ok(launch_ms)
}

/// How many events of the batch did not arrive, and are known to wait: for a token, or in the queue.
pub(super) async fn waiting(client: &Client, book: &Book) -> anyhow::Result<u64> {
    let runs = client.runs(BATCH_JOB, None).await.context("failed to read the demo's runs")?;
    let Some(run) = runs.rows.first() else { return Ok(0) };
    let (mut waiting, mut cursor) = (0, None);
    loop {
        let page = client.events(BATCH_JOB, &run.run_id, cursor.as_deref()).await;
        let page = page.context("failed to read the demo's events")?;
        let waits = |status: &str| matches!(status, "waiting" | "in_flight");
        let arrived = |id: &str| book.read(|score| score.events.contains_key(id));
        let rows = page.rows.iter();
        waiting += rows.filter(|event| waits(&event.status) && !arrived(&event.event_id)).count() as u64;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(waiting);
        }
    }
}

async fn find(client: &Client, job_id: &str) -> anyhow::Result<Option<JobView>> {
    match client.job(job_id).await {
        Ok(job) => Ok(Some(job)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read the demo's job {job_id}")),
    }
}

fn status(error: &Error) -> Option<u16> {
    error.problem().map(|problem| problem.status)
}
