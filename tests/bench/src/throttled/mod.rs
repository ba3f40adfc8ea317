//! Throttled batches: what share of the ideal throughput a policy reaches, and how long a free slot waits for its event.
//!
//! The consumer is an ordinary one: it long-polls its queue, starts a job for each message that comes, releases the token as
//! the job ends, and deletes messages in batches on the side. It has no limit of its own, so that the policy is the only one.
//! A job is a thread that sleeps: Tokio's timer counts whole milliseconds and would make each job a millisecond longer.

mod book;
mod consumer;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use tidegate_domain::job::Trigger;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::JobDraft;
use tidegate_runtime::Runtime;
use tidegate_testkit::queue;

use crate::{Row, client, terms};
use book::Seen;
use consumer::consume;

/// A policy, and the jobs under it.
struct Load {
    policy: &'static str,
    tokens: u32,
    work: Duration,
}

const LOADS: [Load; 2] = [
    Load { policy: "ten", tokens: 10, work: Duration::from_millis(20) },
    Load { policy: "fifty", tokens: 50, work: Duration::from_millis(100) },
];

/// Each load with `events` events, one after the other.
pub(crate) async fn run(runtime: &Runtime, events: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in &LOADS {
        rows.extend(under(runtime, load, events).await?);
    }
    Ok(rows)
}

async fn under(runtime: &Runtime, load: &Load, events: u32) -> Result<Vec<Row>> {
    let Load { policy, tokens, work } = *load;
    let (engine, sqs) = (runtime.engine().clone(), runtime.embedded().sqs());
    let queue_url = queue::create(&sqs, policy).await?;
    engine.policies().create(&client()?, policy.parse()?, PolicyTerms::new(tokens, 60)?).await?;
    let now = DateTime::from_timestamp(Utc::now().timestamp(), 0).context("no such instant")?;
    let batch = tidegate_domain::job::Terms { policy: Some(policy.parse()?), ..terms(&queue_url, events)? };
    let started = Instant::now();
    engine.jobs().create(&client()?, None, JobDraft::new(Trigger::at(now), batch)).await?;
    let seen = consume(engine, sqs, queue_url, (tokens, work), events).await?;
    let took = started.elapsed();
    Ok(figures(load, events, took, &seen))
}

fn figures(load: &Load, events: u32, took: Duration, seen: &Seen) -> Vec<Row> {
    let Load { tokens, work, .. } = *load;
    // Rounds of all tokens: the last one is not full when the events do not divide.
    let ideal = work * events.div_ceil(tokens);
    let share = 100.0 * ideal.as_secs_f64() / took.as_secs_f64();
    let named = format!("{events} events of {} ms under {tokens} tokens", work.as_millis());
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    vec![
        (
            named.clone(),
            format!(
                "{share:.1} % of the ideal {:.1} s; a job took {:.2} ms; at most {} at once; {} came twice",
                ideal.as_secs_f64(),
                ms(seen.mean_work()),
                seen.most_at_once,
                seen.repeated,
            ),
        ),
        (
            format!("{named}: from a release call to the arrival of the event that its slot went to"),
            format!(
                "{:.2} ms median, {:.2} ms p99, {:.2} ms mean",
                ms(seen.gap(50)),
                ms(seen.gap(99)),
                ms(seen.mean_gap())
            ),
        ),
    ]
}
