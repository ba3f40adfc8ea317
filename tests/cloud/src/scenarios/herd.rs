//! Very many one-time jobs at midnight, which nothing throttles.

use std::time::Duration;

use anyhow::Result;
use tidegate_domain::job::{Payload, Terms, Trigger};
use tidegate_engine::JobDraft;

use super::jobs::{HERD, NEIGHBOUR, named, neighbour, one_times, terms};
use super::{Report, calls, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::{Cloud, Options};
use crate::dynamodb::TableOptions;
use crate::lambda::{AllPollers, Function, Pollers, Schedule};
use crate::limits::{NEW_ACCOUNT_CONCURRENCY, UNFAIR};

/// Jobs of the full herd.
const JOBS: usize = 100_000;
/// Of a million calls that send, so many send messages that are overtaken by later ones.
const OVERTAKEN: u32 = 10_000;
/// The size of payloads that do not travel with their events.
const PAYLOAD_BYTES: usize = 1_000;
/// Jobs that a client creates over the API in a new account, one a second.
const CREATED: usize = 300;
/// Jobs of the herd of an account whose API is flooded, from when on it is, and how long.
const FLOODED_JOBS: usize = 10_000;
const FLOOD_AHEAD: Duration = Duration::from_secs(60);
const FLOOD: Duration = Duration::from_secs(15 * 60);
/// Two ticks fall into it.
const SHORTEST_FLOOD: Duration = Duration::from_secs(130);
/// Before midnight the region has run for so long.
const AHEAD: u64 = 5;

/// In an account with 1,000 concurrent and provisioned pollers.
pub(super) async fn provisioned(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 };
    must_be_prompt(options, share).await
}

async fn must_be_prompt(options: Options, share: f64) -> Result<Report> {
    let (mut report, cloud, jobs) = run(options, share, minutes(15)).await?;
    let late = Lateness::of(&cloud.arrivals.of(HERD));
    report.must(late.p99_ms <= 5_000, format!("99 of 100 at most 5 s late: {}", seconds(late.p99_ms)));
    report.must(late.repeated == 0, format!("{} came twice", late.repeated));
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// In an account with 1,000 concurrent, deployed with the set that the documents have for it.
pub(super) async fn large_account(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.pollers = AllPollers::in_large_account();
    options.configured = Function::ALL.map(|function| (function, function.in_large_account())).into();
    options.tables.warm = Some(TableOptions::WARM_IN_LARGE_ACCOUNT);
    must_be_prompt(options, share).await
}

/// In a new account.
pub(super) async fn new_account(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.concurrency = NEW_ACCOUNT_CONCURRENCY;
    options.pollers = AllPollers::as_deployed();
    let jobs = part(JOBS, share);
    let cloud = begin(options, jobs).await?;
    let creating = calls::create_each_second(&cloud, CREATED).await?;
    let (mut report, cloud) = play(cloud, jobs, minutes(180)).await?;
    calls::must_be_created(&mut report, &cloud, creating).await?;
    let latest = cloud.latest();
    report.must(
        latest.watermark <= Duration::from_secs(120),
        format!("the tick is never starved: the watermark is at most {:?} behind", latest.watermark),
    );
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// In a new account, whose API others call without end from a minute before midnight on.
pub(super) async fn flooded(seed: u64, share: f64) -> Result<Report> {
    let mut options = options(seed)?;
    options.concurrency = NEW_ACCOUNT_CONCURRENCY;
    options.pollers = AllPollers::as_deployed();
    let jobs = part(FLOODED_JOBS, share);
    let cloud = begin(options, jobs).await?;
    let lasts = FLOOD.mul_f64(share).max(SHORTEST_FLOOD);
    cloud.until_instant(midnight()? - FLOOD_AHEAD).await;
    let flood = calls::flood(&cloud).await?;
    cloud.until_instant(cloud.now() + lasts).await;
    let (answered, refused) = flood.end();
    let behind = cloud.latest();
    cloud.until_instant(cloud.now() + minutes(2)).await;
    let after = cloud.behind().await?;
    let (mut report, cloud) = play(cloud, jobs, minutes(180)).await?;
    report.tell("the flood", format!("{answered} calls were answered in {lasts:?}, {refused} were refused"));
    report.must(refused > 0, "the account had no room for some of the calls");
    report.tell("while it lasted", format!("the watermark was {:?} behind at the most", behind.watermark));
    report.must(
        after <= Duration::from_secs(120),
        format!("two minutes after it the watermark is {after:?} behind"),
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
    report.must_not_hold_the_neighbour_up(&cloud, 5_000);
    report.tell_of(&cloud, jobs);
    Ok(report)
}

/// A region some minutes before midnight, whose tick comes in the last second of each minute: what is due as the next minute
/// begins is planned a second before. Reads lag behind, messages overtake each other, and queues are not fair at once, as on
/// AWS it is.
pub(super) fn options(seed: u64) -> Result<Options> {
    let mut options = Options::new(seed, midnight()? - minutes(AHEAD));
    options.tables.lags = true;
    options.queues.overtaken = OVERTAKEN;
    options.queues.unfair = UNFAIR;
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
