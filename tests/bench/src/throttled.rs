//! A throttled batch: 10 tokens, jobs of 20 ms, one consumer task a token; and how long a free slot waits for its event.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tidegate_domain::job::Trigger;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::{Engine, JobDraft, Outcome, Release, Released};
use tidegate_local::runtime::Runtime;
use tokio::task::JoinSet;

use crate::{Row, client, new_queue, terms};

const TOKENS: u32 = 10;
const WORK: Duration = Duration::from_millis(20);

/// `events` is rounded down to a multiple of the tokens.
pub(crate) async fn run(runtime: &Runtime, events: u32) -> Result<Vec<Row>> {
    let share = (events / TOKENS).max(1);
    let events = share * TOKENS;
    let (engine, sqs) = (runtime.engine().clone(), runtime.embedded().sqs());
    let queue_url = new_queue(&sqs, "throttled").await?;
    engine.create_policy(&client()?, "ten".parse()?, PolicyTerms::new(TOKENS, 60)?).await?;
    let now = DateTime::from_timestamp(Utc::now().timestamp(), 0).context("no such instant")?;
    let batch = tidegate_domain::job::Terms { policy: Some("ten".parse()?), ..terms(&queue_url, events)? };
    let started = Instant::now();
    engine.create_job(&client()?, None, JobDraft::new(Trigger::at(now), batch)).await?;
    let mut consumers = JoinSet::new();
    for _ in 0..TOKENS {
        consumers.spawn(consume(engine.clone(), sqs.clone(), queue_url.clone(), share));
    }
    let mut gaps = Vec::new();
    while let Some(done) = consumers.join_next().await {
        gaps.extend(done??);
    }
    let took = started.elapsed();
    gaps.sort_unstable();
    let ideal = WORK * events / TOKENS;
    let at =
        |share: usize| gaps.get(gaps.len() * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
    Ok(vec![
        (
            format!("{events} events of 20 ms under {TOKENS} tokens"),
            format!(
                "{:.0} % of the ideal {} s",
                100.0 * ideal.as_secs_f64() / took.as_secs_f64(),
                ideal.as_secs()
            ),
        ),
        (
            "from a release call to the next event in the consumer's hands".to_owned(),
            format!("{:.1} ms median, {:.1} ms p99", at(50), at(99)),
        ),
    ])
}

/// Works on `share` events, and tells how long it waited for each after its release of the last.
async fn consume(
    engine: Engine,
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    share: u32,
) -> Result<Vec<Duration>> {
    let (client, mut gaps, mut released_at) = (client()?, Vec::new(), None::<Instant>);
    for _ in 0..share {
        let receive = sqs.receive_message().queue_url(&queue_url).wait_time_seconds(20);
        let message = receive.send().await?.messages.unwrap_or_default().pop().context("no event came")?;
        gaps.extend(released_at.map(|at| at.elapsed()));
        tokio::time::sleep(WORK).await;
        let body: Value = serde_json::from_str(&message.body.unwrap_or_default())?;
        let token = body["token"].as_str().context("an event without a token")?.parse()?;
        released_at = Some(Instant::now());
        let answers = engine.release(&client, vec![Release { token, outcome: Outcome::Succeeded }]).await?;
        if answers.iter().any(|(_, answer)| *answer != Released::Released) {
            bail!("a token was not released: {answers:?}");
        }
        let receipt = message.receipt_handle.unwrap_or_default();
        sqs.delete_message().queue_url(&queue_url).receipt_handle(receipt).send().await?;
    }
    Ok(gaps)
}
