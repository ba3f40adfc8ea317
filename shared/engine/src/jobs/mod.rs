//! What the API does to jobs: create, replace, pause, trigger, delete, look up.
//!
//! Accepted means durable (I8): a job, its rows in the index and the outbox row of its first launches are written
//! before the call is answered. Launches that are too near for the emitter are emitted here.

mod again;
mod backfill;
mod bulk;
mod cancel;
mod delete;
mod first;
mod one_time;
mod pause;
pub(crate) mod places;
mod skip;
mod trigger;

use std::sync::Arc;

use futures::future::BoxFuture;
use tidegate_domain::change::What;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{ExpectedSeconds, Job, Terms, Trigger, emit_from};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::rules::Rules;
use tidegate_domain::tags::Tags;
use tidegate_store::jobs::JobRow;
use tidegate_store::launch::OutboxEntry;
use tidegate_store::ticker::Watermark;
use tidegate_store::watches::Watch;
use tidegate_store::{Create, MadeLaunches, Store, Write};

use crate::author;
use crate::contents::Contents;
use crate::effect_loop::EffectLoop;
use crate::emit::Emission;
use crate::gather::Gathered;
use crate::index::Index;
use crate::queries::Queries;
use crate::random::Random;
use crate::throttle::Throttle;
use crate::tokens::Tokens;
use crate::{EngineError, Expect, Written};
pub use backfill::{Backfill, Backfilled};
pub use cancel::RunCancel;
use first::{is_out_of_reach, outbox_of};
use one_time::Look;
use places::Places;
pub use skip::LeftOut;
pub use trigger::Triggered;

/// What a client asks for: a job without its name.
///
/// ```
/// use tidegate_domain::job::{Terms, Trigger};
/// use tidegate_engine::JobDraft;
///
/// fn once(launch_at: chrono::DateTime<chrono::Utc>, terms: Terms) -> JobDraft {
///     JobDraft::new(Trigger::at(launch_at), terms)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JobDraft {
    /// When it fires.
    pub trigger: Trigger,
    /// What it says about its launches beside that.
    pub rules: Rules,
    /// What each firing delivers.
    pub terms: Terms,
    /// By which its client finds it again.
    pub tags: Tags,
    /// How long after its instant each launch is expected to be over; `None`: nobody watches.
    pub expect: Option<ExpectedSeconds>,
}

impl JobDraft {
    /// A job without special rules.
    pub fn new(trigger: Trigger, terms: Terms) -> Self {
        Self { trigger, rules: Rules::default(), terms, tags: Tags::default(), expect: None }
    }

    /// What a stored job says.
    fn of(job: &Job) -> Self {
        let Job { trigger, rules, terms, tags, expect, .. } = job.clone();
        Self { trigger, rules, terms, tags, expect }
    }

    /// Whether a stored job launches as it would: same trigger, same rules. An anchor that the client left open counts
    /// as that of the job.
    pub fn launches_as(&self, job: &Job) -> bool {
        let mut trigger = self.trigger.clone();
        keep_anchor(&job.trigger, &mut trigger);
        trigger == job.trigger && self.rules == job.rules
    }
}

/// What came of deleting a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobDelete {
    /// It is gone, and so is what it had waiting.
    Done,
    /// There is no such job.
    Absent,
    /// It has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
}

/// What is written together with a job, beside what every change writes.
#[derive(Debug, Clone, Copy, Default)]
struct Beside<'a> {
    /// Launches beside its own that are owed of it from then on.
    owed: &'a [OutboxEntry],
    /// What a call with an idempotency key makes by it.
    made: Option<&'a MadeLaunches>,
}

/// Creates, changes, deletes and finds jobs, and cancels runs.
pub struct Jobs {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) index: Arc<Index>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) effects: Arc<EffectLoop>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) emission: Arc<Emission>,
    pub(crate) queries: Arc<Queries>,
    /// Where one-time jobs are put whose ids say so.
    pub(crate) places: Places,
    /// One-time jobs that wait for the write before, to be stored together.
    pub(crate) gathered: Gathered<Job, Look>,
    /// Looks at the watermark that wait for the look before, to be one.
    pub(crate) looks: Gathered<(), Option<Watermark>>,
}

impl Jobs {
    /// Creates a job. Without an id, a one-time job is stored as a single row that its generated id leads to. The
    /// answer is `Created`, or, where the id is taken, `Unchanged` or `Taken`.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Queue` and `ScanQueue` when our queues do not take the launches that are due; `Contended` when the job or a
    /// policy was changed by others in each of `WRITE_ROUNDS` rounds; `Panicked` when this version failed at one of its
    /// launches. The job may then exist or not: ask again with the same id.
    pub fn create<'a>(
        &'a self,
        client: &'a ClientId,
        id: Option<JobId>,
        draft: JobDraft,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(async move {
            let id = match id {
                Some(id) => id,
                None => {
                    let launch_at = draft.trigger.only_instant().filter(|_| is_plain(&draft));
                    let ids = self.one_time_ids(client, launch_at.as_slice()).await?;
                    match ids.into_iter().next() {
                        Some(id) => return self.create_one_time(self.new_job(client, id, 1, draft)).await,
                        None => JobId::generated(self.random.next_u128()),
                    }
                }
            };
            match self.put(client, id, draft, Expect::Nothing, What::Changed).await? {
                Written::Replaced(job) => Ok(Written::Created(job)),
                other => Ok(other),
            }
        })
    }

    /// Creates a job under its id, or replaces the one that has it, if what is there is as expected. When nothing is
    /// expected and something is there, the answer is `Taken`, or `Unchanged` when it says the same.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read;
    /// `Queue` and `ScanQueue` when our queues do not take the launches that are due; `Contended` when the job or a
    /// policy was changed by others in each of `WRITE_ROUNDS` rounds; `Panicked` when this version failed at one of its
    /// launches. Repeating the call is safe.
    pub fn replace<'a>(
        &'a self,
        client: &'a ClientId,
        id: JobId,
        draft: JobDraft,
        expected: impl Into<Expect>,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(self.put(client, id, draft, expected.into(), What::Changed))
    }

    /// The same as [`Self::replace`], where more is known of why it is changed than that it is.
    ///
    /// # Errors
    /// As [`Self::replace`]. Repeating the call is safe.
    pub fn replace_as<'a>(
        &'a self,
        client: &'a ClientId,
        id: JobId,
        draft: JobDraft,
        expected: impl Into<Expect>,
        what: What,
    ) -> BoxFuture<'a, Result<Written<Job>, EngineError>> {
        Box::pin(self.put(client, id, draft, expected.into(), what))
    }

    async fn put(
        &self,
        client: &ClientId,
        id: JobId,
        draft: JobDraft,
        expect: Expect,
        what: What,
    ) -> Result<Written<Job>, EngineError> {
        let mut found = None;
        if draft.trigger.only_instant().is_some()
            && is_plain(&draft)
            && !matches!(expect, Expect::Revision(_))
        {
            if expect == Expect::Anything {
                // Where there is a job, or was one, a call that dies between two writes would leave a launch of a revision
                // that never was.
                found = self.store.job(client, &id).await?;
            }
            if found.is_none() {
                let job = self.new_job(client, id.clone(), 1, draft.clone());
                if self.write_plainly(&job, false).await? == Create::Done {
                    return Ok(Written::Created(job));
                }
            }
        }
        for _ in 0..WRITE_ROUNDS {
            let seen = match found.take() {
                Some(found) => Some(found),
                None => self.store.job(client, &id).await?,
            };
            let revision = seen.as_ref().map_or(0, JobRow::revision);
            let mut job = self.new_job(client, id.clone(), revision + 1, draft.clone());
            if let Some(JobRow::Live(old)) = &seen {
                if let Some(other) = self.other_revision(old, expect).await? {
                    return Ok(Written::RevisionIs(other));
                }
                keep_what_was_left_open(old, &mut job);
            }
            match (&seen, expect) {
                (Some(JobRow::Live(old)), _) if same_content(old, &job) => {
                    // An earlier call may have died, or lost its answer, before it had done all that follows from the change.
                    self.finish_change(old).await?;
                    return Ok(Written::Unchanged(old.clone()));
                }
                (Some(JobRow::Live(old)), Expect::Nothing) => return Ok(Written::Taken(old.clone())),
                (None | Some(JobRow::Deleted { .. }), Expect::Revision(_)) => return Ok(Written::Absent),
                _ => {}
            }
            if self.write_in_step(&mut job, seen.as_ref(), Beside::default(), what).await? == Write::Done {
                return Ok(match seen {
                    Some(JobRow::Live(_)) => Written::Replaced(job),
                    _ => Written::Created(job),
                });
            }
        }
        Err(EngineError::Contended { what: "a job", rounds: WRITE_ROUNDS })
    }

    /// A job as it is going to be written, but for the places of its children.
    fn new_job(&self, client: &ClientId, id: JobId, revision: u32, draft: JobDraft) -> Job {
        let now = self.clock.now();
        let emit_from = emit_from(now);
        let JobDraft { trigger, rules, terms, tags, expect } = draft;
        let (client, children, paused, paused_because) = (client.clone(), Vec::new(), false, None);
        Job {
            client,
            id,
            revision,
            trigger,
            rules,
            paused,
            paused_because,
            terms,
            tags,
            expect,
            children,
            emit_from,
            changed_at: now,
        }
    }

    /// A one-time job in one or two plain writes, without a transaction. Only ever creates.
    async fn write_plainly(&self, job: &Job, generated: bool) -> Result<Create, EngineError> {
        let outbox = outbox_of(job, None);
        if let Some(outbox) = &outbox
            && generated
        {
            self.store.put_outbox(outbox).await?;
        }
        if outbox.is_none()
            && generated
            && let Some(look) = self.store_gathered(job).await?
        {
            if let Some(watermark) = look.filter(|_| !is_out_of_reach(job, None)) {
                self.emit_passed(job, &watermark).await?;
            }
            return Ok(Create::Done);
        }
        let created = match generated {
            true => self.store.create_one_time(job).await?,
            false if outbox.is_some() => {
                // A one-time job is made by the thousand, and is itself what is recorded of that.
                let written = self.store.write_job(job, None, outbox.as_slice(), None).await?;
                if written == Write::Done { Create::Done } else { Create::Exists }
            }
            false => self.store.create_keyed_at(job).await?,
        };
        // Nobody else has a generated id: a row that is there already is our own write, repeated by the client library.
        if created == Create::Done || generated {
            self.emit_first(job, outbox.as_ref()).await?;
        }
        Ok(created)
    }

    /// Writes a job over what was seen, with everything that belongs to a change, and with what is written `beside` it. Recorded as
    /// `what`; where nothing was, what changes nothing else creates.
    async fn write_in_step(
        &self,
        job: &mut Job,
        seen: Option<&JobRow>,
        beside: Beside<'_>,
        what: What,
    ) -> Result<Write, EngineError> {
        let old = match seen {
            Some(JobRow::Live(old)) => Some(old),
            _ => None,
        };
        job.children = self.index.places(job).await?;
        if !job.children.is_empty() {
            self.index.use_zone(job.trigger.zone()).await?;
        }
        if let Some(old) = old {
            self.contents.mark_dirty(&job.client).await?;
            self.emit_what_is_behind(old, job.changed_at).await?;
            self.tokens.recheck_packs(old).await?;
        }
        if let Some(watch) = Watch::first(job) {
            self.index.use_watches().await?;
            self.store.put_watch(&watch).await?;
        }
        let outbox = outbox_of(job, old);
        let all: Vec<OutboxEntry> = outbox.iter().chain(beside.owed).cloned().collect();
        let what = if old.is_none() && what == What::Changed { What::Created } else { what };
        let change = author::change(what, job.changed_at);
        let written = match beside.made {
            Some(made) => self.store.write_job_once(job, seen, &all, Some(&change), made).await?,
            None => self.store.write_job(job, seen, &all, Some(&change)).await?,
        };
        if written == Write::Done {
            if old.is_some() {
                self.stop_waiting_runs(job, &job.id, Some(job)).await?;
            }
            self.emit_first(job, outbox.as_ref()).await?;
        }
        Ok(written)
    }

    /// A job by its id, as it is now; `None` when there is none, or it was deleted.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    pub fn get<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<Job>, EngineError>> {
        Box::pin(self.contents.present_job(client, id))
    }
}

/// Whether a one-time job may be stored in plain writes: nobody watches it, so nothing is written beside it.
fn is_plain(draft: &JobDraft) -> bool {
    draft.expect.is_none()
}

/// A job that is sent again stays paused, and an anchor that it leaves open stays where it was. What a newer version stored
/// of it stays too: nobody who speaks to this version can have said anything about that.
fn keep_what_was_left_open(old: &Job, new: &mut Job) {
    new.paused = old.paused;
    new.paused_because.clone_from(&old.paused_because);
    new.terms.unknown.clone_from(&old.terms.unknown);
    new.terms.flow.unknown.clone_from(&old.terms.flow.unknown);
    new.rules.unknown.clone_from(&old.rules.unknown);
    keep_anchor(&old.trigger, &mut new.trigger);
}

/// An anchor that nobody named stays where it was when it is left open again, and when the answer that showed it is sent
/// back.
fn keep_anchor(old: &Trigger, new: &mut Trigger) {
    if let (Trigger::Rate { rate: was, anchored: false }, Trigger::Rate { rate, anchored }) = (old, &*new)
        && was.every_seconds() == rate.every_seconds()
        && (!anchored || was.anchor() == rate.anchor())
    {
        old.clone_into(new);
    }
}

fn same_content(old: &Job, new: &Job) -> bool {
    old.terms == new.terms
        && old.trigger == new.trigger
        && old.rules == new.rules
        && old.tags == new.tags
        && old.expect == new.expect
}
