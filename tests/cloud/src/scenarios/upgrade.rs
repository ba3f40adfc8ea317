//! Versions that are deployed, and taken back, while events are under way.
//!
//! Functions are updated one after the other, as CloudFormation does it, so that both versions run side by side. What a
//! later version may do to rows and messages stands in `docs/decisions/0022-rows-that-live-long.md`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::StatusCode;
use serde_json::{Value, json};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Attempts;
use tidegate_store::tables::Table;
use tidegate_testkit::rows;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::herd::options;
use super::jobs::{HERD, NEIGHBOUR, batch, two_kinds};
use super::{Report, midnight, minutes, part};
use crate::arrivals::Lateness;
use crate::cloud::{Caller, Cloud};
use crate::consumer::{Consumer, Work};
use crate::lambda::Function;
use crate::version::{MOON, Version};

/// Jobs of each kind, and events of a batch, of the full scenario.
const JOBS: usize = 5_000;
/// How long CloudFormation takes from one function to the next.
const NEXT_FUNCTION: Duration = Duration::from_secs(7);
/// Jobs that are created over the API, one a second, and how many seconds ahead of their launch.
const CREATED: usize = 240;
const AHEAD_SECONDS: i64 = 20;
/// For how many minutes each is played after midnight.
const PLAYED: u64 = 15;

/// A version that only adds to rows is deployed over this one and taken back; then one that writes another format, over one
/// that reads it.
pub(super) async fn taken_back(seed: u64, share: f64) -> Result<Report> {
    let (mut report, mut repeated, mut of_later) = (Report::default(), 0, 0);
    for (before, after) in [(Version::This, Version::Next), (Version::Next, Version::AfterNext)] {
        let found = play(seed, part(JOBS, share), before, after).await?;
        let (came, due) = (found.events, found.due);
        report.must(found.holds(), format!("{before:?} to {after:?} and back: {came} of {due}; {found:?}"));
        repeated += found.repeated;
        of_later += found.of_later;
    }
    report.tell("came twice", repeated.to_string());
    report.tell("rows of the later versions that are left", of_later.to_string());
    Ok(report)
}

/// What one of them showed.
#[derive(Debug)]
struct Found {
    events: usize,
    due: usize,
    repeated: u32,
    /// Calls of clients that were not answered as they should be.
    refused: usize,
    minutes: usize,
    /// What the policy holds at the end, and what waits under it.
    left: (Option<u64>, Option<u64>),
    /// Events of the batch that are counted as succeeded.
    succeeded: Option<u64>,
    dead: usize,
    /// What functions asked for that their roles do not allow.
    not_allowed: BTreeSet<String>,
    most_at_once: usize,
    /// Rows that still have what only the later version knows.
    of_later: usize,
}

impl Found {
    fn holds(&self) -> bool {
        let batch = (self.due - CREATED) / 3;
        self.events == self.due
            && (self.refused, self.dead, self.left) == (0, 0, (Some(0), Some(0)))
            && self.minutes >= PLAYED as usize
            && self.succeeded == Some(batch as u64)
            && self.most_at_once <= tokens(batch) as usize
            && self.of_later > 0
            && self.not_allowed.is_empty()
    }
}

/// Tokens of the policy: few enough that there is a line for a while.
fn tokens(jobs: usize) -> u32 {
    (jobs / 100).max(3) as u32
}

async fn play(seed: u64, jobs: usize, before: Version, after: Version) -> Result<Found> {
    let mut options = options(seed)?;
    options.version = before;
    let mut cloud = Cloud::new(options).await?;
    let (plain, throttled) = (cloud.target("plain").await?, cloud.target("throttled").await?);
    let under = two_kinds(&cloud, jobs, (&plain, &throttled), (tokens(jobs), 120, Attempts::new(5)?)).await?;
    batch(&cloud, jobs, under).await?;
    let key = cloud.register(HERD).await?;
    let work = Work { takes: Duration::from_millis(200), releases_together: 10, result: Some("done") };
    let consumer = Consumer::start(&cloud, &throttled, &key, (tokens(jobs) as usize, work))?;
    cloud.start()?;

    // Midnight is planned by the new emitter, and delivered by the handlers of both.
    cloud.until_instant(midnight()? - minutes(3)).await;
    let creating = create_each_second(&cloud, &key, &plain);
    cloud.deploy(Function::Emitter, after);
    cloud.until_instant(midnight()?).await;
    for function in [Function::Handler, Function::Master] {
        sleep(NEXT_FUNCTION).await;
        cloud.deploy(function, after);
    }
    sleep(NEXT_FUNCTION).await;
    for function in [Function::Master, Function::Emitter, Function::Handler] {
        sleep(NEXT_FUNCTION).await;
        cloud.deploy(function, before);
    }
    let refused = creating.await?;
    cloud.until_instant(midnight()? + minutes(PLAYED)).await;

    let late = Lateness::of(&cloud.arrivals.of(HERD));
    let of_policy = get(&cloud, &key, "/v1/policies/small").await?;
    let runs = get(&cloud, &key, "/v1/jobs/batch/runs").await?;
    let mut of_later = 0;
    for table in Table::ALL {
        of_later +=
            rows::all(&cloud.tables(), table).await?.iter().filter(|row| row.contains_key(MOON)).count();
    }
    Ok(Found {
        events: late.events,
        due: 3 * jobs + CREATED,
        repeated: late.repeated,
        refused,
        minutes: cloud.arrivals.count_of(NEIGHBOUR),
        left: (of_policy["in_flight"].as_u64(), of_policy["waiting"].as_u64()),
        succeeded: runs["runs"][0]["succeeded"].as_u64(),
        dead: cloud.dead_letters().await?.len(),
        not_allowed: cloud.not_allowed(),
        most_at_once: consumer.most_at_once(),
        of_later,
    })
}

/// Has a client create a job each second; how many calls were refused, in the end.
fn create_each_second(cloud: &Cloud, key: &str, queue_url: &str) -> JoinHandle<usize> {
    let (caller, clock) = (cloud.caller(), cloud.clock());
    let (key, queue_url) = (key.to_owned(), queue_url.to_owned());
    tokio::spawn(async move {
        let mut refused = 0;
        for _ in 0..CREATED {
            let at = clock.now() + chrono::Duration::seconds(AHEAD_SECONDS);
            let job =
                json!({"trigger": {"at": at.to_rfc3339()}, "target": {"sqs": {"queue_url": queue_url}}});
            refused += usize::from(!is_created(&caller, &key, &job).await);
            sleep(Duration::from_secs(1)).await;
        }
        refused
    })
}

async fn is_created(caller: &Caller, key: &str, job: &Value) -> bool {
    let answer = caller.call("POST", "/v1/jobs", key, job).await;
    answer.is_ok_and(|(status, _)| status == StatusCode::CREATED)
}

async fn get(cloud: &Cloud, key: &str, path: &str) -> Result<Value> {
    let (_, body) = cloud.caller().call("GET", path, key, &Value::Null).await.context("no answer")?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::in_virtual_time;

    #[test]
    fn further_back_is_not_safe() {
        let report = in_virtual_time(async {
            let found = play(1, 50, Version::This, Version::AfterNext).await?;
            let mut report = Report::default();
            report.must(found.holds(), format!("{found:?}"));
            Ok(report)
        });
        let report = report.unwrap();
        assert!(!report.holds(), "{report}");
    }
}
