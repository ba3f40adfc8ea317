//! Single events under policies, all due at one second.

use std::time::Duration;

use anyhow::Result;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Terms;

use super::herd::options;
use super::jobs::{HERD, neighbour, one_times, policy, terms};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};

/// How long a consumer may hold a token.
const LEASE_SECONDS: u32 = 60;
/// By how much the watermark may be behind, in minutes.
const BEHIND: u64 = 2;

/// 10,000 events over 1,000 policies.
pub(super) async fn many(seed: u64, share: f64) -> Result<Report> {
    under(seed, part(10_000, share), part(1_000, share), 2).await
}

/// 100,000 events over one policy.
pub(super) async fn one(seed: u64, share: f64) -> Result<Report> {
    under(seed, part(100_000, share), 1, 100).await
}

async fn under(seed: u64, events: usize, policies: usize, tokens: u32) -> Result<Report> {
    let mut cloud = Cloud::new(options(seed)?).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    engine.tick().await?;
    let ids: Result<Vec<PolicyId>, _> = (0..policies).map(|n| format!("policy-{n}").parse()).collect();
    let ids = ids?;
    for id in &ids {
        policy(&engine, id, tokens, LEASE_SECONDS).await?;
    }
    let plain = terms(&queue)?;
    let of = ids.iter().cycle().take(events).map(|id| Terms { policy: Some(id.clone()), ..plain.clone() });
    one_times(&engine, midnight()?, of).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    let key = cloud.register(HERD).await?;
    let work = Work { takes: Duration::from_millis(20), releases_together: 10, result: None };
    let consumer = Consumer::start(&cloud, &queue, &key, (50, work))?;
    cloud.start()?;
    cloud.until_instant(midnight()?).await;
    let took = cloud.until(minutes(180), |cloud| cloud.arrivals.count_of(HERD) >= events).await;
    cloud.until_instant(cloud.now() + minutes(3)).await;
    let mut report = Report::default();
    report.tell("took", format!("{took:?} from midnight on"));
    let late = report.must_arrive(&cloud, HERD, events);
    report.tell("came twice", late.repeated.to_string());
    let most = consumer.most_at_once();
    report.tell("in flight", format!("{most} at the most, as the consumer saw it"));
    report.must(most <= policies * tokens as usize, "the limit was kept".to_owned());
    let latest = cloud.latest();
    report.must(
        latest.watermark <= minutes(BEHIND),
        format!("the watermark is at most {:?} behind", latest.watermark),
    );
    report.must_not_hold_the_neighbour_up(&cloud, 5_000);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, events);
    Ok(report)
}
