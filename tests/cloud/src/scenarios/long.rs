//! What lasts longer than rows are kept: a slow run, and a line that nothing leaves for weeks.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::job::{Count, Terms, Trigger};
use tidegate_domain::policy::{OnExpiry, PolicyTerms};
use tidegate_engine::JobDraft;
use tidegate_protocol::Event;

use super::herd::options;
use super::jobs::{HERD, named, one_times, policy, policy_of, terms};
use super::{Report, midnight, minutes};
use crate::cloud::Cloud;

/// Days that the run lasts: an event a day.
const DAYS: f64 = 40.0;
/// Events of each kind that wait behind the pause.
const PAUSED: u64 = 5;
const DAY: Duration = Duration::from_secs(86_400);

/// A run of an event a day, and a policy that is paused for the first three quarters of them.
pub(super) async fn run(seed: u64, share: f64) -> Result<Report> {
    let days = ((DAYS * share) as u64).max(2);
    let mut cloud = Cloud::new(options(seed)?).await?;
    let engine = cloud.engine();
    engine.tick().await?;
    let client: ClientId = HERD.parse()?;
    let (slow, paused): (PolicyId, PolicyId) = ("slow".parse()?, "paused".parse()?);
    policy_of(&engine, HERD, &slow, PolicyTerms::new(1, 60)?.with_on_expiry(OnExpiry::Hold)).await?;
    policy(&engine, &paused, 10, 600).await?;
    engine.policies().pause(&client, &paused, true, None).await?;
    let (queue, behind) = (cloud.target("slow").await?, cloud.target("paused").await?);
    let at_midnight = |terms| Ok::<_, anyhow::Error>(JobDraft::new(Trigger::at(midnight()?), terms));
    let batch = Terms { count: Count::new(days)?, policy: Some(slow), ..terms(&queue)? };
    named(&engine, HERD, "slow", at_midnight(batch)?).await?;
    let single = Terms { policy: Some(paused.clone()), ..terms(&behind)? };
    let batch = Terms { count: Count::new(PAUSED)?, ..single.clone() };
    named(&engine, HERD, "paused", at_midnight(batch)?).await?;
    one_times(&engine, midnight()?, std::iter::repeat_n(single, PAUSED as usize)).await?;
    let key = cloud.register(HERD).await?;
    cloud.start()?;
    cloud.until_instant(midnight()?).await;
    let mut report = Report::default();
    let (mut came, mut longest) = (0, Duration::ZERO);
    for day in 0..days {
        if day == days * 3 / 4 {
            report.must(cloud.take_from(&behind).await?.is_empty(), "nothing passed while it was paused");
            let resume = format!("/v1/policies/{paused}/resume");
            let (status, body) = cloud.caller().call("POST", &resume, &key, &json!({})).await?;
            ensure!(status.is_success(), "{status} {body}");
        }
        let before = came;
        let took = cloud.until(minutes(5), |cloud| cloud.arrivals.count_of(HERD) > before).await;
        longest = longest.max(took.with_context(|| format!("no event came on day {day}"))?);
        for _ in 0..2 {
            // What was paused comes ten at a time, and is released at once.
            cloud.until_instant(cloud.now() + minutes(3)).await;
            release(&cloud, &behind, &key).await?;
        }
        // Its consumer takes a day.
        cloud.until_instant(cloud.now() + DAY).await;
        came = cloud.arrivals.count_of(HERD);
        release(&cloud, &queue, &key).await?;
    }
    cloud.until_instant(cloud.now() + minutes(3)).await;
    let lasted = (cloud.now() - midnight()?).num_days();
    report.tell(
        "lasted",
        format!("{lasted} days; the next event came {longest:?} after a release at the most"),
    );
    let (events, came) = (days + 2 * PAUSED, cloud.arrivals.count_of(HERD) as u64);
    report.must(came == events, format!("{came} of {events} events delivered"));
    for (job, events) in [("slow", days), ("paused", PAUSED)] {
        let runs = engine.queries().runs(&client, &job.parse()?, None).await?.rows;
        let succeeded: u64 = runs.iter().map(|run| u64::from(run.tally.succeeded)).sum();
        let total: u64 = runs.iter().map(|run| u64::from(run.tally.total())).sum();
        report.must(
            (succeeded, total) == (events, events),
            format!("{job} is counted to its end: {succeeded} succeeded, {total} in all, of {events}"),
        );
    }
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, events as usize);
    Ok(report)
}

/// Releases all that lies in a queue.
async fn release(cloud: &Cloud, queue_url: &str, key: &str) -> Result<()> {
    let texts = cloud.take_from(queue_url).await?;
    let events = texts.iter().filter_map(|text| text.parse::<Event>().ok());
    let tokens: Vec<String> = events.filter_map(|event| event.token).collect();
    if !tokens.is_empty() {
        cloud.caller().call("POST", "/v1/tokens/release", key, &json!({"tokens": tokens})).await?;
    }
    Ok(())
}
