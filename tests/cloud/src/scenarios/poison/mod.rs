//! What nobody can read or send: it is set aside with its reason, and nobody else is late because of it.

mod kinds;
mod told;

use std::time::Duration;

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::job::Attempts;
use tidegate_testkit::PREFIX;

use super::herd::options;
use super::jobs::{HERD, two_kinds};
use super::{Report, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::Cloud;
use kinds::Poison;

/// Jobs of each kind of those who must not notice.
const JOBS: usize = 1_000;
/// How late others may be, in milliseconds.
const LATE_MS: i64 = 5_000;
/// How much later they may be because of it, in milliseconds.
const LATER_MS: i64 = 1_000;
/// What is stored before midnight is spoilt so long before it, which the next tick plans; what is planned, so long after it.
const SPOILT_AHEAD: Duration = Duration::from_secs(30);
const SPOILT_AFTER: Duration = Duration::from_secs(30);
/// A zone that no database knows.
const ZONE: &str = "Mars/Olympus";
/// Texts that no version of ours wrote: they are dead letters at once.
const FOREIGN: [&str; 4] =
    ["not JSON", r#"{"v":1,"unknown":{}}"#, r#"{"v":1,"wake":{"client":"","policy":"?"}}"#, "[]"];
/// One that a later version wrote: it waits for that.
const NEWER: &str = r#"{"v":99,"wake":{"client":"herd","policy":"small"}}"#;

pub(super) async fn of_every_kind(seed: u64, share: f64) -> Result<Report> {
    let jobs = part(JOBS, share.max(0.05));
    let alone = begin(seed, jobs).await?;
    alone.until_instant(midnight()? + minutes(20)).await;
    let alone = Lateness::of(&alone.arrivals.of(HERD));
    let mut cloud = begin(seed, jobs).await?;
    let poison = Poison::add(&cloud, seed).await?;
    cloud.until_instant(midnight()? - SPOILT_AHEAD).await;
    let mut spoilt = poison.spoil_what_is_stored(&cloud).await?;
    invent_a_zone(&cloud).await?;
    for text in FOREIGN.iter().chain([&NEWER]) {
        cloud.send_to_own_queues(text).await?;
    }
    cloud.until_instant(midnight()? + SPOILT_AFTER).await;
    spoilt += poison.spoil_what_is_planned(&cloud).await?;
    cloud.until_instant(midnight()? + minutes(20)).await;

    let mut report = Report::default();
    report.tell("spoilt", format!("{spoilt} rows"));
    let late = report.must_arrive(&cloud, HERD, 2 * jobs);
    report.must(late.most_ms <= LATE_MS, format!("none of them later than {}", seconds(LATE_MS)));
    let alone = alone.most_ms;
    report.must(
        late.most_ms <= alone + LATER_MS,
        format!("at most {} later than without the poison, {}", seconds(LATER_MS), seconds(alone)),
    );
    report.must_miss_no_minute(&cloud);
    report.must_not_hold_the_neighbour_up(&cloud, LATER_MS);
    let latest = cloud.latest();
    report.must(
        latest.watermark <= minutes(2),
        format!("the watermark is at most {:?} behind", latest.watermark),
    );
    let not_allowed = cloud.not_allowed();
    report.must(not_allowed.is_empty(), format!("the roles do not allow {not_allowed:?}"));
    told::of_rows(&mut report, &cloud).await?;
    report.tell_of(&cloud, 2 * jobs);
    told::of_messages(&mut report, &mut cloud).await?;
    Ok(report)
}

/// A region with those who must not notice. No message is overtaken in it: whichever is, is later by more than poison may make it,
/// and chance decides which.
async fn begin(seed: u64, jobs: usize) -> Result<Cloud> {
    let mut options = options(seed)?;
    options.queues.overtaken = 0;
    let mut cloud = Cloud::new(options).await?;
    let queue = cloud.target("herd").await?;
    two_kinds(&cloud, jobs, (&queue, &queue), (jobs as u32, 600, Attempts::new(5)?)).await?;
    cloud.start()?;
    Ok(cloud)
}

/// A zone that no database knows, as a later version might have.
async fn invent_a_zone(cloud: &Cloud) -> Result<()> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = cloud.tables().update_item().table_name(format!("{PREFIX}-ticker"));
    let update = update.key("pk", text("index")).key("sk", text("-"));
    let update = update.update_expression("SET #zone = :since");
    let update = update.expression_attribute_names("#zone", format!("zone|{ZONE}"));
    update.expression_attribute_values(":since", AttributeValue::N("1".to_owned())).send().await?;
    Ok(())
}
