//! Packs of single events, as clients see them: each event is a run of its job, though no row says so.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, JobId, RunId};
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::limits::{HANDOVER_SECONDS, LOOK_AHEAD_SECONDS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, Singles, SinglesId, SinglesKind};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{LeaseId, SlotGroup};
use tidegate_domain::time::{Firing, Window, days, seconds, shifted};
use tidegate_store::launch::Child;
use tidegate_store::packs::PackMember;
use tidegate_store::runs::{RunRow, launch_of_list_key, list_key, run_of_list_key};
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::EngineError;
use crate::error::readable;

/// Launches of a job whose packs are looked through for one page of its runs.
const LAUNCHES_LISTED: usize = 24;

/// How long an event is taken for under way after its launch, in seconds, when nothing tells of it.
const UNDER_WAY_SECONDS: i64 = 3_600;

/// The packs that the slot groups of a policy know.
#[derive(Debug, Default)]
pub(crate) struct Packs(BTreeMap<SinglesId, Arc<Singles>>);

impl Packs {
    /// The event that a lease of a group is of.
    pub(crate) fn event(&self, group: &SlotGroup, lease: &LeaseId) -> Option<EventId> {
        self.event_of(group.pack(lease.pack_number)?, lease.index)
    }

    /// The event of a number in a pack.
    pub(crate) fn event_of(&self, pack: &PackId, index: u32) -> Option<EventId> {
        match pack {
            PackId::Run(run) => Some(run.event(index)),
            PackId::Singles(id) => Some(self.0.get(id)?.member(index)?.run_id().event(0)),
        }
    }
}

/// No launch of a job that was never changed is earlier. An instant may lie a little in the past when its job arrives.
fn first_launch(job: &Job) -> DateTime<Utc> {
    match &job.trigger {
        Trigger::At(instants) => job.changed_at.min(instants.first()),
        _ => job.changed_at,
    }
}

impl Queries {
    /// A run by its id: one that has a row, that is in a pack, or whose event is under way to its line.
    pub(crate) async fn find_run(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<RunRow>, EngineError> {
        match self.store.find_run(client, run).await? {
            Some(row) => Ok(Some(row)),
            None => Ok(self.under_way(client, run).await?.as_ref().map(RunRow::waiting)),
        }
    }

    /// The occurrence of a run that no row tells of: its event was emitted, and has not arrived at its line.
    pub(crate) async fn under_way(
        &self,
        client: &ClientId,
        run: &RunId,
    ) -> Result<Option<Occurrence>, EngineError> {
        let job = self.contents.present_job(client, run.job()).await?;
        let Some(job) = job.filter(|job| job.revision == run.revision()) else { return Ok(None) };
        if self.is_recent(run.launch_at())
            && SinglesKind::fits(&job.terms)
            && self.store.was_triggered(client, run).await?
        {
            return Ok(Some(Child::of(&job).occurrence(run.launch_at())));
        }
        let offset = job.rules.jitter.offset(client, &job.id);
        let from = shifted(run.launch_at(), -offset);
        let Ok(window) = Window::new(from, shifted(from, seconds(1))) else { return Ok(None) };
        let launches = self.latest_launches(&job, window, 1).await?;
        let is_launch = launches.iter().any(|firing| job.rules.is_within(firing.launch_at));
        if !is_launch || !self.may_be_under_way(&job, run.launch_at()) {
            return Ok(None);
        }
        let is_emitted = run.launch_at() < self.emitted_to(&job).await?;
        Ok(is_emitted.then(|| Child::of(&job).occurrence(run.launch_at())))
    }

    /// The last launches of a job in a window, those among them that its calendars leave out. These are read only where they move
    /// launches.
    async fn latest_launches(
        &self,
        job: &Job,
        window: Window,
        count: usize,
    ) -> Result<Vec<Firing>, EngineError> {
        let cadence = job.trigger.cadence();
        if !job.rules.on_closed_day.moves() {
            return Ok(cadence.latest(window, count));
        }
        let days = self.contents.open_days(&job.client, &job.rules).await?;
        Ok(days.latest(&cadence, window, count))
    }

    /// Whether a launch of a job is on its way to its line, if it was emitted.
    fn may_be_under_way(&self, job: &Job, launch_at: DateTime<Utc>) -> bool {
        // What was due up to a change is the old revision's.
        let scheduled_at = shifted(launch_at, -job.rules.jitter.offset(&job.client, &job.id));
        let is_its = match job.revision {
            1 => scheduled_at >= first_launch(job),
            _ => scheduled_at > job.changed_at,
        };
        self.is_recent(launch_at) && is_its && !job.paused && SinglesKind::fits(&job.terms)
    }

    fn is_recent(&self, launch_at: DateTime<Utc>) -> bool {
        (self.clock.now() - launch_at).num_seconds() < UNDER_WAY_SECONDS
    }

    /// Up to when launches of a job were emitted.
    async fn emitted_to(&self, job: &Job) -> Result<DateTime<Utc>, EngineError> {
        let watermark = self.store.watermark().await?;
        let by_ticks = watermark.map_or(job.emit_from, |watermark| watermark.scanned_to);
        Ok(job.emit_from.max(shifted(by_ticks, job.rules.jitter.offset(&job.client, &job.id))))
    }

    /// A page of a job's runs, the latest launch first: those that have rows, and those that packs hold.
    ///
    /// No row leads from a job to its packs. They are looked for where the job's trigger launches, so the runs of a former
    /// trigger are listed only when they have rows.
    pub(crate) async fn runs_listed(
        &self,
        client: &ClientId,
        job: &JobId,
        page: PageOf,
    ) -> Result<Page<RunRow>, EngineError> {
        let (after, most) = (page.after.clone(), usize::from(page.rows.get()));
        let Page { rows, mut next, mut unreadable } = self.store.runs(client, job, page).await?;
        for row in &mut unreadable {
            if let Some(run) = run_of_list_key(job, &row.sort_key) {
                row.sort_key = run.to_string();
            }
        }
        let mut runs: BTreeMap<String, RunRow> =
            rows.into_iter().map(|row| (list_key(&row.id), row)).collect();
        // Where the page of rows ends, unless it is the last one.
        let mut first = next.as_ref().and_then(|_| runs.keys().next().cloned());
        let present = self.contents.present_job(client, job).await?;
        let (launches, is_all) = self
            .launches_listed(client, (job, present.as_ref()), (first.as_deref(), after.as_deref()))
            .await?;
        if !is_all && let Some(earliest) = launches.first() {
            first = first.max(Some(format!("{:012}|", earliest.timestamp())));
        }
        let emitted_to = match &present {
            Some(job) if !launches.is_empty() => Some(self.emitted_to(job).await?),
            _ => None,
        };
        let mut minutes = BTreeMap::new();
        for launch_at in launches {
            let minute = launch_at.timestamp().div_euclid(60);
            if let Entry::Vacant(unknown) = minutes.entry(minute) {
                unknown.insert(self.store.packs_of_minute(client, launch_at).await?);
            }
            for (policy, pack) in minutes.get(&minute).into_iter().flatten() {
                let of_job =
                    |(_, member): &(u32, &Occurrence)| member.job == *job && member.launch_at == launch_at;
                for (index, member) in (0..).zip(&pack.members).filter(of_job) {
                    let own = PackMember { policy: policy.clone(), pack: pack.id, index };
                    let run = runs.entry(list_key(&member.run_id()));
                    run.or_insert_with(|| RunRow::waiting(member)).member = Some(own);
                }
            }
            if let (Some(job), Some(emitted_to)) = (&present, emitted_to)
                && launch_at < emitted_to
                && self.may_be_under_way(job, launch_at)
            {
                let single = Child::of(job).occurrence(launch_at);
                runs.entry(list_key(&single.run_id())).or_insert_with(|| RunRow::waiting(&single));
            }
        }
        runs.retain(|key, _| {
            first.as_ref().is_none_or(|first| key >= first) && after.as_ref().is_none_or(|after| key < after)
        });
        if !is_all {
            next = runs.keys().next().cloned().or(first);
        }
        if runs.len() > most {
            while runs.len() > most {
                runs.pop_first();
            }
            next = runs.keys().next().cloned();
        }
        Ok(Page { rows: runs.into_values().rev().collect(), next, unreadable })
    }

    /// Launches of a job between two places in the list of its runs, in order of time, and whether they are all.
    async fn launches_listed(
        &self,
        client: &ClientId,
        (job, present): (&JobId, Option<&Job>),
        (first, after): (Option<&str>, Option<&str>),
    ) -> Result<(Vec<DateTime<Utc>>, bool), EngineError> {
        let Some(job) = present else {
            let shard = job.one_time_shard();
            let minute = shard.and_then(|shard| DateTime::from_timestamp(shard.minute.saturating_mul(60), 0));
            let Some(minute) = minute else { return Ok((Vec::new(), true)) };
            // Its second is not known: that of its pack is.
            let packs = self.store.packs_of_minute(client, minute).await?;
            let members = packs.iter().flat_map(|(_, pack)| &pack.members);
            return Ok((
                members.filter(|member| member.job == *job).map(|member| member.launch_at).collect(),
                true,
            ));
        };
        if job.revision == 1 && !SinglesKind::fits(&job.terms) {
            return Ok((Vec::new(), true));
        }
        let mut kept_since =
            shifted(self.clock.now(), -days(job.terms.history_days.at_least_default().get().into()));
        if job.revision == 1 {
            kept_since = kept_since.max(first_launch(job));
        }
        let from = first.and_then(launch_of_list_key).map_or(kept_since, |first| first.max(kept_since));
        let planned_to = shifted(self.clock.now(), seconds((LOOK_AHEAD_SECONDS + HANDOVER_SECONDS).into()));
        // A launch at the place itself may be of another revision.
        let upto = after.and_then(launch_of_list_key).map(|after| shifted(after, seconds(1)));
        let to = upto.map_or(planned_to, |upto| upto.min(planned_to));
        let offset = job.rules.jitter.offset(&job.client, &job.id);
        let Ok(window) = Window::new(shifted(from, -offset), shifted(to, -offset)) else {
            return Ok((Vec::new(), true));
        };
        let firings = self.latest_launches(job, window, LAUNCHES_LISTED).await?;
        let triggered = match Window::new(from, to) {
            Ok(window) => self.store.triggered(client, &job.id, window, LAUNCHES_LISTED).await?,
            Err(_) => Vec::new(),
        };
        let is_all = firings.len() < LAUNCHES_LISTED && triggered.len() < LAUNCHES_LISTED;
        let launches = firings.into_iter().filter(|firing| job.rules.is_within(firing.launch_at));
        let mut launches: BTreeSet<_> = launches.map(|firing| shifted(firing.launch_at, offset)).collect();
        launches.extend(triggered);
        // Of both, what lies further back may not be all there is.
        while launches.len() > LAUNCHES_LISTED {
            launches.pop_first();
        }
        Ok((launches.into_iter().collect(), is_all))
    }

    /// The packs that slot groups know.
    pub(crate) async fn packs_known_to(&self, groups: &[SlotGroup]) -> Result<Packs, EngineError> {
        let mut packs = Packs::default();
        for group in groups {
            for known in group.packs.values() {
                if let PackId::Singles(id) = known.pack
                    && !packs.0.contains_key(&id)
                    && let Some(pack) = readable(self.contents.pack(&PolicyRef::of(group), id).await)?
                {
                    packs.0.insert(id, pack);
                }
            }
        }
        Ok(packs)
    }
}
