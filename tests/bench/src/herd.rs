//! The herd: many one-time jobs due at one instant, then one batch of as many events. Nothing throttles them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::{DateTime, Utc};
use tidegate_domain::job::Trigger;
use tidegate_engine::JobDraft;
use tidegate_runtime::Runtime;
use tidegate_testkit::queue;
use tokio::task::JoinSet;

use crate::{Row, client, per_second, terms};

/// Callers that create jobs side by side.
const CALLERS: u32 = 8;
/// Jobs that a caller is allowed a second for, at the least, so that all are stored before they are due.
const SLOWEST_CREATES_A_SECOND: u32 = 500;

pub(crate) async fn run(runtime: &Runtime, events: u32) -> Result<Vec<Row>> {
    let sqs = runtime.embedded().sqs();
    let queue_url = queue::create(&sqs, "herd").await?;
    let ahead_s = i64::from(10 + events / SLOWEST_CREATES_A_SECOND);
    let launch_at =
        DateTime::from_timestamp(Utc::now().timestamp() + ahead_s, 0).context("no such instant")?;

    let started = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (engine, client, terms) = (runtime.engine().clone(), client()?, terms(&queue_url, 1)?);
        let share = events / CALLERS + u32::from(caller < events % CALLERS);
        callers.spawn(async move {
            for _ in 0..share {
                engine
                    .jobs()
                    .create(&client, None, JobDraft::new(Trigger::at(launch_at), terms.clone()))
                    .await?;
            }
            Ok::<(), tidegate_engine::EngineError>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    let created = started.elapsed();
    wait_for(&sqs, &queue_url, events).await?;
    let late_ms = (Utc::now() - launch_at).num_milliseconds();

    let started = Instant::now();
    let now = DateTime::from_timestamp(Utc::now().timestamp(), 0).context("no such instant")?;
    let batch = terms(&queue_url, events)?;
    runtime.engine().jobs().create(&client()?, None, JobDraft::new(Trigger::at(now), batch)).await?;
    wait_for(&sqs, &queue_url, 2 * events).await?;
    let batch = started.elapsed();
    Ok(vec![
        (
            format!("{events} one-time jobs created by single calls, due within minutes"),
            per_second(events, created),
        ),
        (format!("the same {events}, due at one instant, all delivered"), format!("{late_ms} ms after it")),
        (
            format!("a batch of {events} events, from the call to the last delivery"),
            format!("{} ms", batch.as_millis()),
        ),
    ])
}

/// Waits until a queue holds so many messages.
async fn wait_for(sqs: &aws_sdk_sqs::Client, queue_url: &str, messages: u32) -> Result<()> {
    let wanted = QueueAttributeName::ApproximateNumberOfMessages;
    loop {
        let look =
            sqs.get_queue_attributes().queue_url(queue_url).attribute_names(wanted.clone()).send().await?;
        let held = look.attributes().and_then(|all| all.get(&wanted)).context("a queue without a count")?;
        if held.parse::<u32>()? >= messages {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
