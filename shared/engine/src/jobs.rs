//! What the API does to jobs: create, replace, delete, look up.
//!
//! Accepted means durable (I8): a job, its rows in the index and what the master owes of its first launches are written
//! before the call is answered. Launches that are too near for the emitter are emitted here.

use chrono::{DateTime, Duration};
use tidegate_domain::ids::{ClientId, JobId, OneTimePlace, RunId};
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::limits::{AT_SHARDS, HANDOVER_SECONDS, LOOK_AHEAD_SECONDS, WRITE_ROUNDS};
use tidegate_domain::time::{AtMinute, Window};
use tidegate_store::jobs::JobRow;
use tidegate_store::launch::{Child, Owed, Timing};
use tidegate_store::ticker::Watermark;
use tidegate_store::{Create, Page, Write};
use tracing::warn;

use crate::emit::Emission;
use crate::tick::{occurrence, owed_launches};
use crate::{Engine, EngineError};

/// How long after a change what was planned before is checked before delivery, in seconds: longer than a call may take.
const UNSETTLED_SECONDS: i64 = 90;
/// A launch further away than this cannot lie behind any watermark, in seconds.
const WATERMARK_REACH_SECONDS: i64 = 7_200;

/// What came of writing a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobWrite {
    /// It is new.
    Created(Job),
    /// It took the place of its former revision.
    Replaced(Job),
    /// The same job is there already; nothing changed.
    Unchanged(Job),
    /// Another job has the id.
    Taken(Job),
    /// It was to replace another revision than there is.
    RevisionIs(u32),
    /// There is none to replace.
    Absent,
}

/// What came of deleting a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobDelete {
    /// It is gone, and so is what it had waiting.
    Done,
    /// There is none.
    Absent,
    /// It has another revision than was expected.
    RevisionIs(u32),
}

impl Engine {
    /// Creates a job. Without an id, a one-time job is stored as a single row that its generated id leads to.
    ///
    /// # Errors
    /// When the store or our queue does not answer. The job may then exist or not: ask again with the same id.
    pub async fn create_job(
        &self,
        client: &ClientId,
        id: Option<JobId>,
        trigger: Trigger,
        terms: Terms,
    ) -> Result<JobWrite, EngineError> {
        match (id, &trigger) {
            (None, Trigger::At { launch_at }) => {
                let place = OneTimePlace {
                    minute: AtMinute::of(*launch_at).starts_at().timestamp() / 60,
                    shard: (self.random().next_u64() % u64::from(AT_SHARDS)) as u32,
                };
                let id = JobId::one_time(place, self.random().next_u64());
                let job = self.new_job(client, id, 1, trigger, terms);
                self.write_plainly(&job, true).await?;
                Ok(JobWrite::Created(job))
            }
            (id, _) => {
                let id = id.unwrap_or_else(|| JobId::generated(self.random().next_u128()));
                match self.put_job(client, id, trigger, terms, Expect::Nothing).await? {
                    JobWrite::Replaced(job) => Ok(JobWrite::Created(job)),
                    other => Ok(other),
                }
            }
        }
    }

    /// Creates a job under its id, or replaces the one that has it. `expected` names the revision to replace.
    ///
    /// # Errors
    /// When the store or our queue does not answer. Repeating the call is safe.
    pub async fn replace_job(
        &self,
        client: &ClientId,
        id: JobId,
        trigger: Trigger,
        terms: Terms,
        expected: Option<u32>,
    ) -> Result<JobWrite, EngineError> {
        let expect = expected.map_or(Expect::Anything, Expect::Revision);
        self.put_job(client, id, trigger, terms, expect).await
    }

    async fn put_job(
        &self,
        client: &ClientId,
        id: JobId,
        trigger: Trigger,
        terms: Terms,
        expect: Expect,
    ) -> Result<JobWrite, EngineError> {
        if matches!(trigger, Trigger::At { .. }) && !matches!(expect, Expect::Revision(_)) {
            let job = self.new_job(client, id.clone(), 1, trigger.clone(), terms.clone());
            if self.write_plainly(&job, false).await? == Create::Done {
                return Ok(JobWrite::Created(job));
            }
        }
        for _ in 0..WRITE_ROUNDS {
            let seen = self.store().job(client, &id).await?;
            let revision = seen.as_ref().map_or(0, JobRow::revision);
            let job = self.new_job(client, id.clone(), revision + 1, trigger.clone(), terms.clone());
            match (&seen, expect) {
                (Some(JobRow::Live(old)), Expect::Revision(r)) if old.revision != r => {
                    return Ok(JobWrite::RevisionIs(old.revision));
                }
                (Some(JobRow::Live(old)), _) if same_content(old, &job) => {
                    // An earlier call may have died, or lost its answer, before it emitted the first launches.
                    self.pay_what_is_owed(old).await?;
                    self.watermark_or_first().await?;
                    return Ok(JobWrite::Unchanged(old.clone()));
                }
                (Some(JobRow::Live(old)), Expect::Nothing) => return Ok(JobWrite::Taken(old.clone())),
                (None | Some(JobRow::Deleted { .. }), Expect::Revision(_)) => return Ok(JobWrite::Absent),
                _ => {}
            }
            if self.write_in_step(&job, seen.as_ref()).await? == Write::Done {
                return Ok(match seen {
                    Some(JobRow::Live(_)) => JobWrite::Replaced(job),
                    _ => JobWrite::Created(job),
                });
            }
        }
        Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
    }

    fn new_job(&self, client: &ClientId, id: JobId, revision: u32, trigger: Trigger, terms: Terms) -> Job {
        let now = self.now();
        let ahead = i64::from(LOOK_AHEAD_SECONDS + HANDOVER_SECONDS);
        // Whole minutes, so that children of one minute agree, and whole seconds, as rows keep them.
        let emit_from_s = now.timestamp().div_euclid(60) * 60 + ahead;
        let emit_from = DateTime::from_timestamp(emit_from_s, 0).unwrap_or(now);
        Job { client: client.clone(), id, revision, trigger, terms, emit_from, changed_at: now }
    }

    /// A one-time job in one or two plain writes, without a transaction. Only ever creates.
    async fn write_plainly(&self, job: &Job, generated: bool) -> Result<Create, EngineError> {
        let owed = owed_of(job);
        if let Some(owed) = &owed
            && generated
        {
            self.store().put_owed(job, owed).await?;
        }
        let created = match generated {
            true => self.store().create_one_time(job).await?,
            false if owed.is_some() => {
                let written = self.store().write_job(job, None, owed.as_ref()).await?;
                if written == Write::Done { Create::Done } else { Create::Exists }
            }
            false => self.store().create_keyed_at(job).await?,
        };
        // Nobody else has a generated id: a row that is there already is our own write, repeated by the client library.
        if created == Create::Done || generated {
            self.emit_first(job, owed.as_ref()).await?;
        }
        Ok(created)
    }

    async fn write_in_step(&self, job: &Job, seen: Option<&JobRow>) -> Result<Write, EngineError> {
        if let Trigger::Cron { zone, .. } = &job.trigger {
            // Before the children: the emitter reads the zones before it reads them.
            self.store().add_zone(*zone).await?;
        }
        let replaces = matches!(seen, Some(JobRow::Live(_)));
        if let Some(JobRow::Live(old)) = seen {
            self.unsettle(&job.client).await?;
            self.emit_what_is_behind(old).await?;
        }
        let owed = owed_of(job);
        let written = self.store().write_job(job, seen, owed.as_ref()).await?;
        if written == Write::Done {
            if replaces {
                self.stop_waiting_runs(job, &job.id, Some(job)).await?;
            }
            self.emit_first(job, owed.as_ref()).await?;
        }
        Ok(written)
    }

    async fn unsettle(&self, client: &ClientId) -> Result<(), EngineError> {
        let until = self.now() + Duration::seconds(UNSETTLED_SECONDS);
        Ok(self.store().mark_unsettled(client, until).await?)
    }

    /// Emits the launches that are too near for the emitter, and whatever its watermark has passed while we wrote.
    async fn emit_first(&self, job: &Job, owed: Option<&Owed>) -> Result<(), EngineError> {
        if let Some(owed) = owed {
            self.pay(owed, false).await?;
        }
        let reach = job.emit_from + Duration::seconds(WATERMARK_REACH_SECONDS);
        if let Trigger::At { launch_at } = &job.trigger
            && (owed.is_some() || *launch_at > reach)
        {
            return Ok(());
        }
        // Written before the watermark is read: either the emitter sees the row, or we see that it has passed.
        let Some(watermark) = self.watermark_or_first().await? else { return Ok(()) };
        if watermark.planned_to <= job.emit_from {
            return Ok(());
        }
        let Ok(window) = Window::new(job.emit_from, watermark.planned_to) else { return Ok(()) };
        warn!(job = %job.id, from = %window.from(), to = %window.to(), "the watermark passed a job while it was written");
        let behind = Owed { child: child_of(job), window, written_at: self.now() };
        match launches_in(&behind) {
            true => self.pay(&behind, true).await.map(drop),
            false => Ok(()),
        }
    }

    async fn pay_what_is_owed(&self, job: &Job) -> Result<(), EngineError> {
        match self.store().owed_of(&job.client, &job.id).await? {
            Some(owed) => self.pay(&owed, true).await.map(drop),
            None => Ok(()),
        }
    }

    /// Emits the launches of a job that are due and that nobody may have emitted yet, before its rows change: those that
    /// a master left behind, and those that an emitter which lags has still to scan.
    async fn emit_what_is_behind(&self, job: &Job) -> Result<(), EngineError> {
        self.pay_what_is_owed(job).await?;
        let now = self.now();
        let scanned_to = self.store().watermark().await?.map(|watermark| watermark.scanned_to);
        let from = job.emit_from.max(scanned_to.unwrap_or(job.emit_from));
        let Ok(window) = Window::new(from, now) else { return Ok(()) };
        let behind = Owed { child: child_of(job), window, written_at: now };
        let mut emission = Emission::new(self, now);
        for launch_at in owed_launches(&behind).into_iter().filter(|launch_at| window.contains(*launch_at)) {
            emission.push(occurrence(&behind.child, launch_at), true).await?;
        }
        emission.finish().await.map(drop)
    }

    /// The watermark. `None` when there was none: then it begins now, or a first tick that comes late would leave out
    /// what is due before it.
    async fn watermark_or_first(&self) -> Result<Option<Watermark>, EngineError> {
        let found = self.store().watermark().await?;
        if found.is_none() {
            let minute_s = self.now().timestamp().div_euclid(60) * 60;
            self.store().begin_watermark(DateTime::from_timestamp(minute_s, 0).unwrap_or_default()).await?;
        }
        Ok(found)
    }

    /// Deletes a job. What it has waiting is cancelled; what is in flight keeps its tokens until they are released.
    ///
    /// # Errors
    /// When the store does not answer. Repeating the call is safe.
    pub async fn delete_job(
        &self,
        client: &ClientId,
        id: &JobId,
        expected: Option<u32>,
    ) -> Result<JobDelete, EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let one_time = id.one_time_place().is_some();
            let Some(job) = self.present_job(client, id).await? else { return Ok(JobDelete::Absent) };
            if let Some(expected) = expected
                && expected != job.revision
            {
                return Ok(JobDelete::RevisionIs(job.revision));
            }
            self.unsettle(client).await?;
            self.emit_what_is_behind(&job).await?;
            // Before the deletion: whoever repeats a call that died in between still finds the job.
            self.stop_waiting_runs(&job, id, None).await?;
            let deleted = match one_time {
                true => self.store().delete_one_time(&job).await.map(|()| Write::Done)?,
                false => self.store().delete_job(&job, self.now()).await?,
            };
            if deleted == Write::Done {
                self.stop_waiting_runs(&job, id, None).await?;
                return Ok(JobDelete::Done);
            }
        }
        Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
    }

    /// A job by its id.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn job(&self, client: &ClientId, id: &JobId) -> Result<Option<Job>, EngineError> {
        self.present_job(client, id).await
    }

    /// Stops what waits of a job: everything when it goes, what is due after the change when it is replaced.
    async fn stop_waiting_runs(
        &self,
        job: &Job,
        id: &JobId,
        replaced_by: Option<&Job>,
    ) -> Result<(), EngineError> {
        let recent = self.store().runs(&job.client, id, None).await?;
        for run in recent.rows {
            let Some(policy) = &run.terms.policy else { continue };
            let superseded = match replaced_by {
                None => true,
                Some(new) => run.id.revision() < new.revision && run.id.launch_at() > new.changed_at,
            };
            if !superseded || run.stopped.is_some() || run.tally.total() >= run.terms.count.get() {
                continue;
            }
            let reason = if replaced_by.is_some() { "rescheduled" } else { "cancelled" };
            self.stop_run(&job.client, policy, &run.id, reason).await?;
        }
        Ok(())
    }

    async fn stop_run(
        &self,
        client: &ClientId,
        policy: &tidegate_domain::ids::PolicyId,
        run: &RunId,
        reason: &str,
    ) -> Result<(), EngineError> {
        self.store().stop_run(client, run, reason).await?;
        self.forget_run(client, run);
        self.store().remove_from_line(client, policy, run).await?;
        let Some(policy) = self.store().policy(client, policy).await? else { return Ok(()) };
        let surplus = self.surplus_groups(&policy).await?;
        for number in policy.terms.group_numbers().chain(surplus) {
            let Some(group) = self.store().slot_group(&crate::admit::group_key(&policy, number)).await?
            else {
                continue;
            };
            if group.serves(run) {
                self.store().drop_range(&group).await?;
            }
        }
        Ok(())
    }

    /// A page of a client's jobs.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn jobs(&self, client: &ClientId, after: Option<String>) -> Result<Page<Job>, EngineError> {
        Ok(self.store().jobs(client, after).await?)
    }
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy)]
enum Expect {
    Nothing,
    Anything,
    Revision(u32),
}

fn same_content(old: &Job, new: &Job) -> bool {
    old.terms == new.terms
        && match (&old.trigger, &new.trigger) {
            (Trigger::At { launch_at: a }, Trigger::At { launch_at: b }) => a == b,
            (Trigger::Cron { spec: a, zone: x }, Trigger::Cron { spec: b, zone: y }) => {
                a.canonical() == b.canonical() && x == y
            }
            _ => false,
        }
}

fn child_of(job: &Job) -> Child {
    let timing = match &job.trigger {
        Trigger::Cron { spec, zone } => Timing::Cron { cron: *spec.compiled(), zone: *zone, key: None },
        Trigger::At { launch_at } => Timing::At { launch_at: *launch_at },
    };
    Child {
        client: job.client.clone(),
        job: job.id.clone(),
        revision: job.revision,
        timing,
        emit_from: job.emit_from,
        terms: job.terms.to_travel(),
    }
}

/// What the master owes of a job: its launches before `emit_from`. `None` when there are none.
fn owed_of(job: &Job) -> Option<Owed> {
    let from = match &job.trigger {
        Trigger::At { launch_at } => job.changed_at.min(*launch_at),
        Trigger::Cron { .. } => job.changed_at,
    };
    let from = DateTime::from_timestamp(from.timestamp(), 0)?;
    let window = Window::new(from, job.emit_from).ok()?;
    let owed = Owed { child: child_of(job), window, written_at: job.changed_at };
    launches_in(&owed).then_some(owed)
}

fn launches_in(owed: &Owed) -> bool {
    owed_launches(owed).iter().any(|launch_at| owed.window.contains(*launch_at))
}
