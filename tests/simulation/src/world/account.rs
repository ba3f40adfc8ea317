//! What became of launches: delivered, or recorded with a reason.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::{EventId, JobId, RunId};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::PackId;
use tidegate_store::runs::RunRow;

use super::{CLIENT, World};

/// An occurrence: revision and launch instant, as Unix seconds.
pub type Fired = (u32, i64);

/// What consumers received, by job: each occurrence, and when each of its deliveries came.
///
/// Invariant: nothing in it came before its launch instant; [`Account::collect`] fails when something does.
#[derive(Debug, Default, Clone)]
pub struct Account {
    delivered: BTreeMap<JobId, BTreeMap<Fired, Vec<DateTime<Utc>>>>,
}

impl Account {
    /// Handles what our queues have, then takes what a consumer's queue has; how many events those were.
    ///
    /// # Errors
    /// When SQS refuses, a message comes again, or an event came before its time.
    pub async fn collect(&mut self, world: &World, queue_url: &str) -> Result<usize> {
        let pumped = world.pump().await?;
        ensure!(pumped.again == 0, "{} messages come again without any fault", pumped.again);
        let events = world.consume(queue_url).await?;
        let now = world.clock.now();
        for event in &events {
            let id: EventId = event.body.event_id.parse()?;
            let run = id.run();
            ensure!(run.launch_at() <= now, "event {id} came at {now}, before its time");
            let fired = (run.revision(), run.launch_at().timestamp());
            self.delivered.entry(run.job().clone()).or_default().entry(fired).or_default().push(now);
        }
        Ok(events.len())
    }

    /// The occurrences of a job that were delivered, each as often as it was, in order of revision and launch.
    ///
    /// # Errors
    /// When the name is none of a job.
    pub fn delivered(&self, job: &str) -> Result<Vec<Fired>> {
        let of_job = self.delivered.get(&job.parse::<JobId>()?).into_iter().flatten();
        Ok(of_job.flat_map(|(fired, times)| std::iter::repeat_n(*fired, times.len())).collect())
    }

    /// When the first delivery of each launch of a job came, whatever its revision: both as Unix seconds.
    ///
    /// # Errors
    /// When the name is none of a job.
    pub fn arrivals(&self, job: &str) -> Result<Vec<(i64, i64)>> {
        let of_job = self.delivered.get(&job.parse::<JobId>()?).into_iter().flatten();
        Ok(of_job.filter_map(|((_, launch_s), came)| Some((*launch_s, came.first()?.timestamp()))).collect())
    }
}

impl World {
    /// The runs of a job of [`CLIENT`], earliest first.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn runs(&self, job: &str) -> Result<Vec<RunRow>> {
        let (client, job) = (CLIENT.parse()?, job.parse()?);
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.engine.store().runs(&client, &job, after).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                rows.reverse();
                return Ok(rows);
            }
        }
    }

    /// The runs that wait in the line of a policy of [`CLIENT`], each as often as it is there.
    ///
    /// # Errors
    /// When the store refuses, or a pack of the line is gone.
    pub async fn waiting_runs(&self, policy: &str) -> Result<Vec<RunId>> {
        let (client, policy, store) = (CLIENT.parse()?, policy.parse()?, self.engine.store());
        let (mut runs, mut after) = (Vec::new(), None);
        loop {
            let page = store.line(&client, &policy, after).await?;
            for entry in page.rows {
                match entry.pack {
                    PackId::Run(run) => runs.push(run),
                    PackId::Singles(id) => {
                        let pack = store.pack(&client, &policy, id).await?.context("a pack is gone")?;
                        runs.extend(pack.members.iter().skip(entry.cursor as usize).map(Occurrence::run_id));
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(runs);
            }
        }
    }

    /// The occurrences of a job of [`CLIENT`] that were recorded as skipped, with the reason: the first of each record,
    /// the last, and how many they are.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn skipped(&self, job: &str) -> Result<Vec<Skipped>> {
        let rows = self.runs(job).await?;
        let skipped = rows.into_iter().filter_map(|row| {
            let reason = row.stopped?;
            let first_s = row.id.launch_at().timestamp();
            let (last_s, count) =
                row.skipped.map_or((first_s, 1), |skipped| (skipped.until.timestamp(), skipped.count));
            Some(Skipped { run: row.id, reason, first_s, last_s, count })
        });
        Ok(skipped.collect())
    }

    /// The reason why one launch of a job of [`CLIENT`] was skipped.
    ///
    /// # Errors
    /// When the store refuses, or no record says that it was.
    pub async fn reason(&self, job: &str, launch_s: i64) -> Result<String> {
        let records = self.skipped(job).await?;
        let of_launch =
            records.into_iter().find(|record| (record.first_s..=record.last_s).contains(&launch_s));
        of_launch.map(|record| record.reason).with_context(|| format!("no record of {job} at {launch_s}"))
    }
}

/// A record of occurrences that were skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The first of them.
    pub run: RunId,
    /// Why.
    pub reason: String,
    /// When the first was due, as Unix seconds.
    pub first_s: i64,
    /// When the last was due, as Unix seconds.
    pub last_s: i64,
    /// How many they are.
    pub count: u32,
}
