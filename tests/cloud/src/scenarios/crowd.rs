//! One job of very many events, which nothing throttles.

use anyhow::Result;
use tidegate_domain::job::{Count, Terms};

use super::herd::options;
use super::jobs::{HERD, neighbour, one_times, terms};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;

/// Events of the full run.
const EVENTS: usize = 1_000_000;

pub(super) async fn unthrottled(seed: u64, share: f64) -> Result<Report> {
    let events = part(EVENTS, share);
    let mut cloud = Cloud::new(options(seed)?).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    engine.tick().await?;
    let of_many = Terms { count: Count::new(events as u64)?, ..terms(&queue)? };
    one_times(&engine, midnight()?, std::iter::once(of_many)).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    cloud.start()?;
    cloud.until_instant(midnight()?).await;
    let took = cloud.until(minutes(120), |cloud| cloud.arrivals.count_of(HERD) >= events).await;
    cloud.until_instant(cloud.now() + minutes(4)).await;
    let mut report = Report::default();
    report.tell("took", format!("{took:?} from midnight on"));
    let late = report.must_arrive(&cloud, HERD, events);
    report.must(late.repeated == 0, format!("each sent once: {} came twice", late.repeated));
    report.must_heat_no_key(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, events);
    Ok(report)
}
