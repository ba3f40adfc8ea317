//! Many jobs in one call. Each has an answer of its own; one that fails stops no other.
//!
//! Futures of single jobs stand in lists of up to a thousand: what they await is boxed, so that the lists stay small.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_store::launch::Child;

use super::first::{is_out_of_reach, outbox_of};
use super::{JobDraft, Jobs, is_plain};
use crate::{EngineError, Written, deadline};

/// Jobs that are written at once.
pub(super) const WRITES_AT_ONCE: usize = 16;
/// One-time jobs that are stored in one go, before the watermark is looked at for all of them.
const ONE_TIMES_AT_ONCE: usize = 100;

impl Jobs {
    /// Creates jobs as [`Self::create`] does, with the answers in the order of the jobs; each fails by itself, with an
    /// error of [`Self::create`]. One-time jobs without an id that are not due soon share their requests: 25 rows to a
    /// write (what `BatchWriteItem` takes). Of those that are due soon, single events of one instant share their messages.
    pub fn create_all<'a>(
        &'a self,
        client: &'a ClientId,
        drafts: Vec<(Option<JobId>, JobDraft)>,
    ) -> BoxFuture<'a, Vec<Result<Written<Job>, EngineError>>> {
        Box::pin(async move {
            let (mut batched, mut ahead, mut near) = (Vec::new(), Vec::new(), Vec::new());
            let mut others = Vec::new();
            let (mut nameless, mut instants) = (Vec::new(), Vec::new());
            for (index, (id, draft)) in drafts.into_iter().enumerate() {
                match (id, draft.trigger.only_instant()) {
                    (None, Some(launch_at)) if is_plain(&draft) => {
                        nameless.push((index, draft));
                        instants.push(launch_at);
                    }
                    (id, _) => others.push((index, id, draft)),
                }
            }
            match self.one_time_ids(client, &instants).await {
                Ok(ids) => {
                    for ((index, draft), id) in nameless.into_iter().zip(ids) {
                        let job = self.new_job(client, id, 1, draft);
                        match self.goes_ahead(&job) {
                            Some(launch_at) => ahead.push((index, launch_at, job)),
                            None if outbox_of(&job, None).is_some() => near.push((index, job)),
                            None => batched.push((index, job)),
                        }
                    }
                }
                // Each is told by itself what is the matter.
                Err(_) => others.extend(nameless.into_iter().map(|(index, draft)| (index, None, draft))),
            }
            let mut answers: Vec<(usize, Result<Written<Job>, EngineError>)> = Vec::new();
            let batches: Vec<_> =
                batched.chunks(ONE_TIMES_AT_ONCE).map(|batch| self.create_one_times(batch)).collect();
            for batch in stream::iter(batches).buffered(WRITES_AT_ONCE).collect::<Vec<_>>().await {
                answers.extend(batch);
            }
            answers.extend(self.create_ahead(ahead).await);
            let near: Vec<_> = near.into_iter().map(|(index, job)| self.create_alone(index, job)).collect();
            answers.extend(stream::iter(near).buffer_unordered(WRITES_AT_ONCE).collect::<Vec<_>>().await);
            let others = others.into_iter().map(|(index, id, draft)| async move {
                let created = async {
                    deadline::check(&*self.clock)?;
                    self.create(client, id, draft).await
                };
                (index, created.await)
            });
            let others: Vec<_> = others.collect();
            answers.extend(stream::iter(others).buffer_unordered(WRITES_AT_ONCE).collect::<Vec<_>>().await);
            answers.sort_unstable_by_key(|(index, _)| *index);
            answers.into_iter().map(|(_, answer)| answer).collect()
        })
    }

    /// Stores one-time jobs whose events go ahead of them, those of one instant, and of one line, in messages of many.
    async fn create_ahead(
        &self,
        jobs: Vec<(usize, DateTime<Utc>, Job)>,
    ) -> Vec<(usize, Result<Written<Job>, EngineError>)> {
        let events = jobs.iter().map(|(_, launch_at, job)| Child::of(job).occurrence(*launch_at));
        let events: Vec<_> = events.collect();
        let sent = self.emission.send_ahead(&events).await;
        let is_sent = sent.is_ok();
        let (shared, alone): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|(_, launch_at, job)| is_sent && self.has_time(job, *launch_at));
        let stores: Vec<_> =
            shared.chunks(ONE_TIMES_AT_ONCE).map(|batch| self.store_sent_together(batch)).collect();
        let stores = stream::iter(stores).buffer_unordered(WRITES_AT_ONCE).collect::<Vec<_>>().await;
        let mut answers: Vec<_> = stores.into_iter().flatten().collect();
        let stores = alone.into_iter().map(|(index, _, job)| self.create_ahead_alone((index, job), is_sent));
        let stores: Vec<_> = stores.collect();
        answers.extend(stream::iter(stores).buffer_unordered(WRITES_AT_ONCE).collect::<Vec<_>>().await);
        let stored = answers.iter().filter_map(|(_, answer)| match answer {
            Ok(Written::Created(job)) => Some(job.id.as_str()),
            _ => None,
        });
        let is_in_time = |launch_at| !self.is_late(launch_at);
        self.emission.note_stored(&sent.unwrap_or_default(), &stored.collect(), is_in_time).await;
        answers
    }

    /// Stores jobs whose events are under way, in writes that they share.
    async fn store_sent_together(
        &self,
        batch: &[(usize, DateTime<Utc>, Job)],
    ) -> Vec<(usize, Result<Written<Job>, EngineError>)> {
        let jobs: Vec<Job> = batch.iter().map(|(_, _, job)| job.clone()).collect();
        let is_stored = self.store.create_one_times(&jobs).await.is_ok();
        let each = batch.iter().cloned().map(|(index, launch_at, job)| async move {
            match is_stored {
                true => {
                    let sent = match self.is_late(launch_at) {
                        true => Box::pin(self.send_again(&job, launch_at)).await,
                        false => Ok(()),
                    };
                    (index, sent.map(|()| Written::Created(job)))
                }
                // Some may be stored, some not.
                false => Box::pin(self.create_ahead_alone((index, job), true)).await,
            }
        });
        let each: Vec<_> = each.collect();
        stream::iter(each).buffer_unordered(WRITES_AT_ONCE).collect().await
    }

    /// Stores a job whose event is under way, if it was sent, and otherwise creates it under another id.
    async fn create_ahead_alone(
        &self,
        (index, mut job): (usize, Job),
        is_sent: bool,
    ) -> (usize, Result<Written<Job>, EngineError>) {
        if is_sent {
            match Box::pin(self.store_sent_alone(&job)).await {
                Ok(true) => return (index, Ok(Written::Created(job))),
                Ok(false) => {}
                Err(error) => return (index, Err(error)),
            }
        }
        // Some may be under way: they find no job under the former ids.
        job.id = self.other_id(&job.id);
        self.create_alone(index, job).await
    }

    async fn create_one_times(
        &self,
        batch: &[(usize, Job)],
    ) -> Vec<(usize, Result<Written<Job>, EngineError>)> {
        let jobs: Vec<Job> = batch.iter().map(|(_, job)| job.clone()).collect();
        if self.store_one_times(&jobs).await.is_ok() {
            let created = |(index, _): &(usize, Job), job| (*index, Ok(Written::Created(job)));
            return batch.iter().zip(jobs).map(|(of, job)| created(of, job)).collect();
        }
        // Some may be stored, some not: each is written by itself under the same id, which changes nothing for the former.
        let creates = batch.iter().zip(jobs).map(|((index, _), job)| self.create_alone(*index, job));
        let creates: Vec<_> = creates.collect();
        stream::iter(creates).buffer_unordered(WRITES_AT_ONCE).collect().await
    }

    async fn create_alone(&self, index: usize, job: Job) -> (usize, Result<Written<Job>, EngineError>) {
        let created = async {
            deadline::check(&*self.clock)?;
            Box::pin(self.create_one_time(job)).await
        };
        (index, created.await)
    }

    async fn store_one_times(&self, jobs: &[Job]) -> Result<(), EngineError> {
        let Some(watermark) = self.store_and_look(jobs).await? else { return Ok(()) };
        let near = jobs.iter().filter(|job| !is_out_of_reach(job, None));
        let emits: Vec<_> = near.map(|job| self.emit_passed(job, &watermark)).collect();
        stream::iter(emits).buffer_unordered(WRITES_AT_ONCE).try_collect().await
    }
}
