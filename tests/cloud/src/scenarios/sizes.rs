//! What the memory of functions buys: it comes with a share of a processor. The sizes in `template.yaml` follow from this.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Terms;
use tokio::time::Instant;

use super::herd::options;
use super::jobs::{HERD, SMALL, batch, policy, terms};
use super::{Report, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};
use crate::lambda::{Configured, Function, Pollers};

/// One-time jobs that nothing throttles, and events of a batch under a policy, of the full scenario.
const EVENTS: usize = 20_000;
/// Jobs of one bulk call.
const AT_ONCE: usize = 1_000;
const TOKENS: u32 = 500;
/// Sizes in MB, up to that of a whole processor.
const SIZES: [(&str, u32); 5] =
    [("128 MB", 128), ("256 MB", 256), ("512 MB", 512), ("1,024 MB", 1_024), ("1,769 MB", 1_769)];

/// The same load while one function after the other has each size, and the others are as they are deployed.
pub(super) async fn compared(seed: u64, share: f64) -> Result<Report> {
    let mut report = Report::default();
    let events = part(EVENTS, share);
    for (name, memory_mb) in SIZES {
        let mut told = Vec::new();
        for function in Function::ALL {
            let configured = Configured { memory_mb, ..function.as_deployed() };
            told.push(one(&mut report, seed, events, (function, configured)).await?);
        }
        report.tell(name, told.join("; "));
    }
    Ok(report)
}

/// What the load took of one function that has a size of its own.
async fn one(
    report: &mut Report,
    seed: u64,
    events: usize,
    (function, configured): (Function, Configured),
) -> Result<String> {
    let mut options = options(seed)?;
    options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 };
    options.configured.insert(function, configured);
    let mut cloud = Cloud::new(options).await?;
    cloud.engine().tick().await?;
    let key = cloud.register(HERD).await?;
    let call = create(&cloud, &key, events).await?;
    let consumer = throttle(&cloud, &key, events).await?;
    cloud.start()?;
    let took = cloud.until(minutes(60), |cloud| cloud.arrivals.count_of(HERD) >= 2 * events).await;
    let arrivals = cloud.arrivals.of(HERD);
    let (batch, herd): (Vec<_>, Vec<_>) = arrivals.into_iter().partition(|arrival| arrival.job == "batch");
    let (batch, herd) = (Lateness::of(&batch), Lateness::of(&herd));
    report.must(
        took.is_some() && consumer.most_at_once() <= TOKENS as usize,
        format!(
            "{function:?} of {} MB: {} and {} of {events} events each",
            configured.memory_mb, herd.events, batch.events
        ),
    );
    Ok(format!(
        "{function:?}: herd {} p99, batch {} at the most, a bulk call {call:?}, {:.1} GB-s",
        seconds(herd.p99_ms),
        seconds(batch.most_ms),
        cloud.invoked(function).gb_seconds
    ))
}

/// Creates the herd over the API; how long the last call took.
async fn create(cloud: &Cloud, key: &str, jobs: usize) -> Result<Duration> {
    let queue = cloud.target("herd").await?;
    let job = json!({"trigger": {"at": midnight()?.to_rfc3339()}, "target": {"sqs": {"queue_url": queue}}});
    let (mut left, mut took) = (jobs, Duration::ZERO);
    while left > 0 {
        let some = left.min(AT_ONCE);
        let began = Instant::now();
        let body = json!({"jobs": vec![&job; some]});
        let (status, answer) = cloud.caller().call("POST", "/v1/jobs/bulk", key, &body).await?;
        ensure!(status.is_success(), "{status} {answer}");
        (left, took) = (left - some, began.elapsed());
    }
    Ok(took)
}

/// Stores the batch, and starts who consumes it.
async fn throttle(cloud: &Cloud, key: &str, events: usize) -> Result<Consumer> {
    let queue = cloud.target("throttled").await?;
    let id: PolicyId = SMALL.parse()?;
    policy(&cloud.engine(), &id, TOKENS, 120).await?;
    batch(cloud, events, Terms { policy: Some(id), ..terms(&queue)? }).await?;
    let work = Work { takes: Duration::from_millis(200), releases_together: 10, result: None };
    Consumer::start(cloud, &queue, key, (TOKENS as usize / 5, work))
}
