//! Launches of a job that are over, and which of them were missed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::calendar::OpenDays;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::{BACKFILL_LAUNCHES, UPCOMING_FIRINGS};
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::{Window, seconds, shifted, whole_second};
use tidegate_store::launch::Child;
use tidegate_store::runs::RunRow;

use super::Queries;
use crate::{EngineError, deadline};

/// Firings of a job that are looked at for one answer.
const FIRINGS_LOOKED_AT: usize = 20_000;
/// Pages of a job's runs that are read for one answer.
const PAGES_READ: usize = 10;
/// Minutes whose packs are looked through at once.
const MINUTES_AT_ONCE: usize = 16;
/// Why launches were not made that their job would have made: nobody asked for it of these launches.
const MISSED: [SkipReason; 7] = [
    SkipReason::Paused,
    SkipReason::MisfireSkipped,
    SkipReason::Expired,
    SkipReason::OverlapSkipped,
    SkipReason::LineFull,
    SkipReason::OverQuota,
    SkipReason::NotEmittable,
];

/// A launch that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastLaunch {
    /// When it was due, with its job's jitter.
    pub launch_at: DateTime<Utc>,
    /// Why it was not made, as the word of a [`SkipReason`]; `None`: it was, or that was not asked.
    pub missed: Option<String>,
}

/// Launches of a window, in order of time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PastLaunches {
    pub(crate) launches: Vec<PastLaunch>,
    /// Where to look for more; `None`: those are all.
    pub(crate) next_from: Option<DateTime<Utc>>,
}

/// A stretch of a window whose launches are looked at.
struct Stretch {
    window: Window,
    missed: Option<String>,
}

/// What the records of a window say.
#[derive(Default)]
struct Recorded {
    missed: Vec<Stretch>,
    /// Launches that were made.
    made: BTreeSet<DateTime<Utc>>,
    /// Where to look for more.
    next_from: Option<DateTime<Utc>>,
}

impl Queries {
    /// The first [`BACKFILL_LAUNCHES`] launches in a window of a job as it is now, by its trigger, its start and end and its
    /// calendars: all of them, or only those that are recorded as missed and were not made since.
    pub(crate) async fn past_launches(
        &self,
        job: &Job,
        window: Window,
        only_missed: bool,
    ) -> Result<PastLaunches, EngineError> {
        let days = self.contents.open_days(&job.client, &job.rules).await?;
        if !only_missed {
            return Ok(launches_in(job, &days, [Stretch { window, missed: None }]));
        }
        let Recorded { missed, made, next_from } = self.recorded(job, window).await?;
        let mut past = launches_in(job, &days, missed);
        past.next_from = past.next_from.or(next_from);
        past.launches.retain(|launch| !made.contains(&launch.launch_at));
        let in_packs = self.launches_in_packs(job, &past.launches).await?;
        past.launches.retain(|launch| !in_packs.contains(&launch.launch_at));
        Ok(past)
    }

    async fn recorded(&self, job: &Job, window: Window) -> Result<Recorded, EngineError> {
        let (client, id) = (&job.client, &job.id);
        let mut recorded = Recorded::default();
        // A record of several launches stands at the first of them, which may lie before the window.
        let before = format!("{:012}|", window.from().timestamp());
        for row in self.store.runs(client, id, Some(before)).await?.rows.iter().rev() {
            recorded.add(row, window);
        }
        let mut after = None;
        for _ in 0..PAGES_READ {
            deadline::check(&*self.clock)?;
            let page = self.store.runs_within(client, id, window, after.take()).await?;
            page.rows.iter().for_each(|row| recorded.add(row, window));
            after = page.next;
            if after.is_none() {
                return Ok(recorded);
            }
            recorded.next_from = page.rows.last().map(|row| shifted(row.id.launch_at(), seconds(1)));
        }
        Ok(recorded)
    }

    /// Which of the launches were made since, by events that wait or waited in packs: those have no row of their own.
    async fn launches_in_packs(
        &self,
        job: &Job,
        launches: &[PastLaunch],
    ) -> Result<BTreeSet<DateTime<Utc>>, EngineError> {
        if job.terms.policy.is_none() || job.terms.count.get() > 1 {
            return Ok(BTreeSet::new());
        }
        let minutes: BTreeMap<i64, DateTime<Utc>> = launches
            .iter()
            .map(|launch| (launch.launch_at.timestamp().div_euclid(60), launch.launch_at))
            .collect();
        let reads: Vec<_> =
            minutes.into_values().map(|minute| self.launches_in_pack(&job.client, job, minute)).collect();
        let found: Vec<_> = stream::iter(reads).buffer_unordered(MINUTES_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn launches_in_pack(
        &self,
        client: &ClientId,
        job: &Job,
        minute: DateTime<Utc>,
    ) -> Result<Vec<DateTime<Utc>>, EngineError> {
        let packs = self.store.packs_of_minute(client, minute).await?;
        let members = packs.iter().flat_map(|(_, pack)| &pack.members);
        Ok(members.filter(|member| member.job == job.id).map(|member| member.launch_at).collect())
    }
}

impl Recorded {
    fn add(&mut self, row: &RunRow, window: Window) {
        let launch_at = row.id.launch_at();
        let last = row.skipped.map_or(launch_at, |skipped| skipped.until);
        let Some(reason) = row.stopped.as_deref().filter(|_| row.started_at.is_none()) else {
            self.made.insert(launch_at);
            return;
        };
        if !MISSED.iter().any(|missed| missed.as_str() == reason) {
            return;
        }
        let (from, to) = (launch_at.max(window.from()), shifted(last, seconds(1)).min(window.to()));
        if let Ok(window) = Window::new(from, to) {
            self.missed.push(Stretch { window, missed: Some(reason.to_owned()) });
        }
    }
}

/// The first launches of a job in some stretches, in order of time, each once.
fn launches_in(job: &Job, days: &OpenDays, stretches: impl IntoIterator<Item = Stretch>) -> PastLaunches {
    let (child, zone) = (Child::of(job), job.trigger.zone());
    let offset = job.rules.jitter.offset(&job.client, &job.id);
    let mut found: BTreeMap<DateTime<Utc>, Option<String>> = BTreeMap::new();
    let mut looked_at = 0_usize;
    let past = |found: BTreeMap<_, _>, next_from| {
        let launch = |(launch_at, missed)| PastLaunch { launch_at, missed };
        PastLaunches { launches: found.into_iter().map(launch).collect(), next_from }
    };
    for Stretch { window, missed } in stretches {
        let to = shifted(window.to(), -offset);
        let mut after = shifted(whole_second(shifted(window.from(), -offset)), -seconds(1));
        'stretch: loop {
            let firings = days.upcoming(&child.cadence, after, to, UPCOMING_FIRINGS as usize);
            let Some(last) = firings.last() else { break };
            after = last.launch_at;
            let is_all = firings.len() < UPCOMING_FIRINGS as usize;
            for firing in firings {
                if firing.launch_at >= to {
                    break 'stretch;
                }
                let launch_at = shifted(firing.launch_at, offset);
                looked_at = looked_at.saturating_add(1);
                if found.len() == BACKFILL_LAUNCHES || looked_at > FIRINGS_LOOKED_AT {
                    return past(found, Some(launch_at));
                }
                if job.rules.is_within(firing.launch_at) && days.refuses(firing.launch_at, zone).is_none() {
                    found.insert(launch_at, missed.clone());
                }
            }
            if is_all {
                break;
            }
        }
    }
    past(found, None)
}
