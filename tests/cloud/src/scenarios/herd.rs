//! Very many one-time jobs at midnight, which nothing throttles.

use std::time::Duration;

use anyhow::Result;

use super::jobs::{HERD, NEIGHBOUR, neighbour, one_times, terms};
use super::{Report, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::{Cloud, Options};
use crate::lambda::{AllPollers, Pollers, Schedule};
use crate::limits::NEW_ACCOUNT_CONCURRENCY;

/// Jobs of the full herd.
const JOBS: usize = 100_000;
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

/// A region some minutes before midnight, whose tick has a phase that is as bad as it gets.
pub(super) fn options(seed: u64) -> Result<Options> {
    let mut options = Options::new(seed, midnight()? - minutes(AHEAD));
    options.schedule = Schedule { phase: Duration::from_secs(seed % 60), ..Schedule::default() };
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
    let cloud = begin(options, jobs).await?;
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
    Ok((report, cloud, jobs))
}
