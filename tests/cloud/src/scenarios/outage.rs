//! Services that are slow, too small or away in the middle of a herd, of which some is throttled.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Terms;
use tidegate_embedded::Service;
use tokio::time::sleep;

use super::herd::{begin, options};
use super::jobs::{HERD, NEIGHBOUR, SMALL, one_times, policy, terms};
use super::{MADE_UP_FOR, Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};
use crate::lambda::Pollers;
use crate::weather::Trouble;

/// Jobs of the full herd.
const JOBS: usize = 100_000;
/// Those of it that a policy throttles.
const THROTTLED: usize = 2_000;
/// Pollers that the dispatch queue always has, for the full herd.
const PROVISIONED: usize = 20;
/// The same for a small part of it: more would only look at an empty queue.
const LEAST_PROVISIONED: usize = 4;
/// The policy's tokens.
const TOKENS: u32 = 100;
/// How long a consumer may hold a token: what it cannot release while services are away comes back.
const LEASE_SECONDS: u32 = 600;
/// How long everything may take that was left over, in minutes.
const CAUGHT_UP: u64 = 10;
/// How much longer each call takes to a service that is slow: every second attempt of the SDK is given up.
const SLOW: Trouble = Trouble::Slow(Duration::from_millis(2_500));

/// How often is looked whether enough was delivered: much comes within a moment.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What is the matter.
#[derive(Clone, Copy)]
pub(super) enum Outage {
    /// Services have the same trouble.
    Of(&'static [Service], Trouble),
    /// No function can be invoked.
    Lambda,
}

pub(super) const DYNAMODB_AWAY: Outage = Outage::Of(&[Service::DynamoDb], Trouble::Gone);
pub(super) const DYNAMODB_SLOW: Outage = Outage::Of(&[Service::DynamoDb], SLOW);
pub(super) const DYNAMODB_THROTTLED: Outage = Outage::Of(&[Service::DynamoDb], Trouble::Throttled);
pub(super) const SQS_AWAY: Outage = Outage::Of(&[Service::Sqs], Trouble::Gone);
pub(super) const SQS_SLOW: Outage = Outage::Of(&[Service::Sqs], SLOW);
pub(super) const SQS_THROTTLED: Outage = Outage::Of(&[Service::Sqs], Trouble::Throttled);
pub(super) const BOTH_AWAY: Outage = Outage::Of(&[Service::DynamoDb, Service::Sqs], Trouble::Gone);
pub(super) const BOTH_THROTTLED: Outage = Outage::Of(&[Service::DynamoDb, Service::Sqs], Trouble::Throttled);
pub(super) const BOTH_SLOW: Outage = Outage::Of(&[Service::DynamoDb, Service::Sqs], SLOW);

/// An outage that begins when some of the herd is delivered and some is not.
pub(super) async fn during(seed: u64, share: f64, outage: Outage, lasts: u64) -> Result<Report> {
    let (plain, throttled) = (part(JOBS, share), part(THROTTLED, share));
    let (jobs, mut options) = (plain + throttled, options(seed)?);
    let minimum = part(PROVISIONED, share).max(LEAST_PROVISIONED);
    options.pollers.dispatch = Pollers::Provisioned { minimum, maximum: 100 };
    let cloud = begin(options, plain).await?;
    let (id, queue): (PolicyId, _) = (SMALL.parse()?, cloud.target("throttled").await?);
    policy(&cloud.engine(), &id, TOKENS, LEASE_SECONDS).await?;
    let under = Terms { policy: Some(id.clone()), ..terms(&queue)? };
    one_times(&cloud.engine(), midnight()?, std::iter::repeat_n(under, throttled)).await?;
    let work = Work { takes: Duration::from_millis(200), releases_together: 10, result: None };
    let key = cloud.register(HERD).await?;
    let consumer = Consumer::start(&cloud, &queue, &key, (10, work))?;
    cloud.until_instant(midnight()?).await;
    let soon = midnight()? + minutes(1);
    while cloud.arrivals.count_of(HERD) < jobs / 3 && cloud.now() < soon {
        sleep(LOOK_EVERY).await;
    }
    let (from, before) = (cloud.now(), cloud.arrivals.count_of(HERD));
    let to = from + minutes(lasts);
    match outage {
        Outage::Of(services, trouble) => {
            services.iter().for_each(|service| cloud.weather.trouble(*service, trouble, from, to));
        }
        Outage::Lambda => cloud.lambda_goes_away(from, to),
    }
    cloud.until_instant(to).await;
    let mut report = Report::default();
    report.tell("delivered before, and while it lasted", {
        let meanwhile = cloud.arrivals.count_of(HERD).saturating_sub(before);
        format!("{before}, {meanwhile}")
    });
    report.must(
        before > 0 && before * 3 <= plain * 2,
        format!("{before} were delivered before, at most two of three of {plain}"),
    );
    let minutes_so_far = cloud.arrivals.count_of(NEIGHBOUR);
    let due = usize::try_from(lasts)?.min(MADE_UP_FOR) + minutes_so_far;
    // A slow service delivers some of the neighbour's minutes as they come.
    let due = due.min(usize::try_from((to - midnight()?).num_minutes())? + 1);
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
    let most = consumer.most_at_once();
    report.must(most <= TOKENS as usize, format!("the limit was kept: {most} at once"));
    let status = cloud.engine().queries().policy(&HERD.parse()?, &id).await?.context("no policy")?;
    let (held, waiting) = (status.load.in_flight, status.load.waiting);
    report.must((held, waiting) == (0, 0), format!("{held} are held and {waiting} wait at the end"));
    report.must_miss_no_minute(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, jobs);
    Ok(report)
}
