//! Batches of very many policies at one second, while each call to the tables takes long: what an emission takes must be so
//! little that a tick and a worker can write it down before they are stopped.

use std::time::Duration;

use anyhow::Result;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Terms};
use tidegate_embedded::Service;

use super::herd::options;
use super::jobs::{HERD, neighbour, one_times, policy, terms};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::lambda::Function;
use crate::weather::Trouble;

/// Batches, each of two events under a policy of its own.
const BATCHES: usize = 1_000;
/// By how much each call to the tables is slower: the time-out of an attempt is far, and a full load takes over a minute.
const SLOWER: Duration = Duration::from_millis(1_500);
/// For how long, in minutes, from some minutes before midnight on.
const LASTS: u64 = 30;
/// By how much the watermark may be behind, in minutes.
const BEHIND: u64 = 3;

pub(super) async fn emission(seed: u64, share: f64) -> Result<Report> {
    // Fewer would be written down in time by anybody.
    let batches = part(BATCHES, share.max(0.4));
    let mut cloud = Cloud::new(options(seed)?).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    engine.tick().await?;
    let ids = (0..batches).map(|number| format!("policy-{number}").parse::<PolicyId>());
    let ids: Vec<PolicyId> = ids.collect::<Result<_, _>>()?;
    for id in &ids {
        policy(&engine, id, 2, 600).await?;
    }
    let two = Terms { count: Count::new(2)?, ..terms(&queue)? };
    let of = ids.iter().map(|id| Terms { policy: Some(id.clone()), ..two.clone() });
    one_times(&engine, midnight()?, of).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    let (from, to) = (cloud.now(), cloud.now() + minutes(LASTS));
    cloud.weather.trouble(Service::DynamoDb, Trouble::Slow(SLOWER), from, to);
    cloud.start()?;
    let events = 2 * batches;
    cloud.until_instant(midnight()?).await;
    let took = cloud.until(minutes(LASTS), |cloud| cloud.arrivals.count_of(HERD) >= events).await;
    let (behind, emitter) = (cloud.latest().watermark, cloud.invoked(Function::Emitter));
    let is_slow = cloud.now() < to;
    cloud.until_instant(to + minutes(5)).await;
    let mut report = Report::default();
    report.tell("took", format!("{took:?} from midnight on"));
    report.must(took.is_some() && is_slow, "all came while the tables were slow");
    report.must(
        behind <= minutes(BEHIND),
        format!("the watermark is at most {behind:?} behind, {BEHIND} minutes may be"),
    );
    report.must(emitter.timed_out == 0, format!("{} emitters ran out of time", emitter.timed_out));
    report.must_arrive(&cloud, HERD, events);
    report.must_miss_no_minute(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, events);
    Ok(report)
}
