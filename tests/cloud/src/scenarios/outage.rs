//! Services that are away in the middle of a herd.

use anyhow::Result;
use tidegate_embedded::Service;

use super::herd::{begin, options};
use super::jobs::{HERD, NEIGHBOUR};
use super::{MADE_UP_FOR, Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::lambda::Pollers;
use crate::weather::Trouble;

/// Jobs of the full herd.
const JOBS: usize = 100_000;
/// How long everything may take that was left over, in minutes.
const CAUGHT_UP: u64 = 10;

pub(super) async fn dynamodb(seed: u64, share: f64, minutes: u64) -> Result<Report> {
    away(seed, share, minutes, &[Service::DynamoDb]).await
}

pub(super) async fn sqs(seed: u64, share: f64, minutes: u64) -> Result<Report> {
    away(seed, share, minutes, &[Service::Sqs]).await
}

pub(super) async fn both(seed: u64, share: f64, minutes: u64) -> Result<Report> {
    away(seed, share, minutes, &[Service::DynamoDb, Service::Sqs]).await
}

async fn away(seed: u64, share: f64, away_for: u64, services: &[Service]) -> Result<Report> {
    let (jobs, mut options) = (part(JOBS, share), options(seed)?);
    options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 };
    let cloud = begin(options, jobs).await?;
    // When some are delivered and some are not.
    cloud.until_instant(midnight()?).await;
    cloud.until(minutes(1), |cloud| cloud.arrivals.count_of(HERD) >= jobs / 3).await;
    let (from, before) = (cloud.now(), cloud.arrivals.count_of(HERD));
    let to = from + minutes(away_for);
    for service in services {
        cloud.weather.trouble(*service, Trouble::Gone, from, to);
    }
    cloud.until_instant(to).await;
    let mut report = Report::default();
    report.tell("delivered before", before.to_string());
    report.must(before < jobs, "some were not delivered before");
    let minutes_so_far = cloud.arrivals.count_of(NEIGHBOUR);
    let due = usize::try_from(away_for)?.min(MADE_UP_FOR) + minutes_so_far;
    let is_caught_up =
        |cloud: &Cloud| cloud.arrivals.count_of(HERD) >= jobs && cloud.arrivals.count_of(NEIGHBOUR) >= due;
    let took = cloud.until(minutes(4 * 60), is_caught_up).await;
    report.must(
        took.is_some_and(|took| took <= minutes(CAUGHT_UP)),
        format!("caught up within {CAUGHT_UP} minutes: {took:?}"),
    );
    cloud.until_instant(cloud.now() + minutes(4)).await;
    let late = report.must_arrive(&cloud, HERD, jobs);
    report.tell("came twice", late.repeated.to_string());
    report.must_miss_no_minute(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, jobs);
    Ok(report)
}
