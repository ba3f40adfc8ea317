//! Very many one-time jobs at midnight, which nothing throttles.

use std::time::Duration;

use anyhow::Result;
use tidegate_domain::job::{Payload, Terms, Trigger};
use tidegate_engine::JobDraft;

use super::jobs::{HERD, NEIGHBOUR, named, neighbour, one_times, terms};
use super::{Report, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::{Cloud, Options};
use crate::lambda::{AllPollers, Pollers, Schedule};
use crate::limits::NEW_ACCOUNT_CONCURRENCY;

/// Jobs of the full herd.
const JOBS: usize = 100_000;
/// Of a million calls that send, so many send messages that are overtaken by later ones.
const OVERTAKEN: u32 = 10_000;
/// The size of payloads that do not travel with their events.
const PAYLOAD_BYTES: usize = 1_000;
/// Before midnight the region has run for so long.
const AHEAD: u64 = 5;

/// In an account with 1,000 concurrent and provisioned pollers.
pub(super) async fn provisioned(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 };
    let (mut report, cloud, jobs) = run(options, share, minutes(15)).await?;
    let late = Lateness::of(&cloud.arrivals.of(HERD));
    report.must(late.p99_ms <= 5_000, format!("99 of 100 at most 5 s late: {}", seconds(late.p99_ms)));
    report.must(late.repeated == 0, format!("{} came twice", late.repeated));
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// In a new account.
pub(super) async fn new_account(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.concurrency = NEW_ACCOUNT_CONCURRENCY;
    options.pollers = AllPollers::as_deployed();
    let (mut report, cloud, jobs) = run(options, share, minutes(180)).await?;
    let latest = cloud.latest();
    report.must(
        latest.watermark <= Duration::from_secs(120),
        format!("the tick is never starved: the watermark is at most {:?} behind", latest.watermark),
    );
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// Jobs that are read from their client's key as they are delivered: that key's limit is how fast it goes.
pub(super) async fn named_with_payloads(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 };
    let jobs = part(JOBS, share);
    let cloud = begin(options, 0).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    let payload = Payload::new(serde_json::to_string(&"x".repeat(PAYLOAD_BYTES))?)?;
    let terms = Terms { payload, ..terms(&queue)? };
    for number in 0..jobs {
        let draft = JobDraft::new(Trigger::at(midnight()?), terms.clone());
        named(&engine, HERD, &format!("job-{number}"), draft).await?;
    }
    let (mut report, cloud) = play(cloud, jobs, minutes(60)).await?;
    let beside = Lateness::of(&cloud.arrivals.of(NEIGHBOUR));
    report.must(
        beside.most_ms <= 5_000,
        format!("the neighbour's minute job is at most {} late", seconds(beside.most_ms)),
    );
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// A region some minutes before midnight, whose tick comes in the last second of each minute: what is due as the next minute
/// begins is planned a second before. Reads lag behind, and messages overtake each other, as on AWS they do.
pub(super) fn options(seed: u64) -> Result<Options> {
    let mut options = Options::new(seed, midnight()? - minutes(AHEAD));
    options.tables.lags = true;
    options.queues.overtaken = OVERTAKEN;
    options.schedule = Schedule { phase: Duration::from_secs(59), ..Schedule::default() };
    Ok(options)
}

/// A herd before midnight, and the neighbour's job.
pub(super) async fn begin(options: Options, jobs: usize) -> Result<Cloud> {
    let mut cloud = Cloud::new(options).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    // The first tick says from where on there are any.
    engine.tick().await?;
    let terms = terms(&queue)?;
    one_times(&engine, midnight()?, std::iter::repeat_n(terms, jobs)).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    cloud.start()?;
    Ok(cloud)
}

/// Plays until all came, and a minute more.
async fn run(options: Options, share: f64, limit: Duration) -> Result<(Report, Cloud, usize)> {
    let jobs = part(JOBS, share);
    let (report, cloud) = play(begin(options, jobs).await?, jobs, limit).await?;
    Ok((report, cloud, jobs))
}

async fn play(cloud: Cloud, jobs: usize, limit: Duration) -> Result<(Report, Cloud)> {
    let mut report = Report::default();
    cloud.until_instant(midnight()?).await;
    let took = cloud.until(limit, |cloud| cloud.arrivals.count_of(HERD) >= jobs).await;
    report.tell("took", format!("{took:?} from midnight on"));
    cloud.until_instant(cloud.now() + minutes(4)).await;
    report.must_arrive(&cloud, HERD, jobs);
    let beside = Lateness::of(&cloud.arrivals.of(NEIGHBOUR));
    report.tell(
        "the neighbour's minute job",
        format!("{} events, {} at the most late", beside.events, seconds(beside.most_ms)),
    );
    report.must_give_nothing_up(&cloud).await?;
    Ok((report, cloud))
}
