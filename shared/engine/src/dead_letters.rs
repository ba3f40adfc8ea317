//! Dead letters: events that did not succeed and that nothing sends again. They are listed, counted, sent again and discarded.
//!
//! An event that is redriven keeps its id, and its deliveries count on. Under a policy it takes its place in the line; without
//! one it is a chunk of its own. Either way it comes at least once: a crash between any two steps leaves the letter, and whoever
//! redrives it again sends the same event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use serde_json::value::RawValue;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, EventId, JobId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::target::Target;
use tidegate_store::dead_letters::{DEAD_LETTER_SHARDS, DeadLetter, Waited};
use tidegate_store::doc::{Rest, TermsDoc};
use tidegate_store::failures::FailedDelivery;
use tidegate_store::runs::RunRow;
use tidegate_store::{Page, PageOf, Store, Write};
use tracing::warn;

use crate::contents::Contents;
use crate::queries::history::EventStatus;
use crate::queues::message::{Chunk, ChunkItem, Message};
use crate::queues::{Outgoing, Queues};
use crate::{EngineError, deadline};

/// Letters of one page.
const PAGE: usize = 100;
/// Letters that are read for one page at the most: a filter that fits few goes on from there.
const LOOKED_AT: usize = 1_000;
/// Letters that are counted at the most.
const COUNTED: usize = 10_000;
/// Letters that are redriven or discarded at once.
const AT_ONCE: usize = 8;

/// What clients do with dead letters.
pub struct DeadLetters {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) queues: Arc<Queues>,
}

/// Which dead letters are meant: those that fit all that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Of this job.
    pub job: Option<JobId>,
    /// Of events that this policy throttled.
    pub policy: Option<PolicyId>,
    /// That ended so.
    pub status: Option<EventStatus>,
    /// Whose reason has this text in it.
    pub reason: Option<String>,
    /// That ended at this instant or later.
    pub since: Option<DateTime<Utc>>,
    /// That ended before this instant.
    pub until: Option<DateTime<Utc>>,
}

/// A dead letter with what its event carries.
#[derive(Debug)]
pub struct DeadLetterDetail {
    /// The letter.
    pub letter: DeadLetter,
    /// Where its event goes; `None` when the record of its run is over.
    pub target: Option<Target>,
    /// What it carries; `None` when that is gone with its job, or the record of its run is over.
    pub payload: Option<Box<RawValue>>,
    /// Its deliveries that its target did not take, in their order, as far as they can be read.
    pub failures: Vec<FailedDelivery>,
}

/// How many dead letters there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterCounts {
    /// How many were counted.
    pub total: u32,
    /// Whether there are more, which were not counted.
    pub has_more: bool,
    /// By job.
    pub by_job: BTreeMap<JobId, u32>,
    /// By policy; events that nothing throttles are not among them.
    pub by_policy: BTreeMap<PolicyId, u32>,
    /// By the word of their status.
    pub by_status: BTreeMap<&'static str, u32>,
    /// By reason; those without one are not among them.
    pub by_reason: BTreeMap<String, u32>,
}

/// What came of redriving a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redriven {
    /// Its event is on its way, or takes its place in the line.
    Done,
    /// There is no such letter (any more).
    Absent,
    /// Its policy was deleted: nothing throttles it, and nothing may send it.
    PolicyDeleted,
    /// Its run was stopped, or its record is over.
    RunOver,
    /// What it carries is gone with its job.
    PayloadGone,
    /// Its launch is older than its job's relevancy window.
    TooOld,
}

impl DeadLetterFilter {
    fn fits(&self, letter: &DeadLetter) -> bool {
        let policy = letter.waited.as_ref().map(|waited| &waited.policy);
        self.job.as_ref().is_none_or(|job| letter.event.run().job() == job)
            && self.policy.as_ref().is_none_or(|wanted| policy == Some(wanted))
            && self.status.is_none_or(|status| EventStatus::from(letter.outcome) == status)
            && self
                .reason
                .as_ref()
                .is_none_or(|part| letter.reason.as_ref().is_some_and(|r| r.contains(&**part)))
            && self.since.is_none_or(|since| letter.at >= since)
            && self.until.is_none_or(|until| letter.at < until)
    }
}

impl DeadLetters {
    /// A page of dead letters, by job, launch and number; jobs are in no order. It may have fewer, or none, and be
    /// followed by others: a call reads 1,000 at the most.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn list<'a>(
        &'a self,
        client: &'a ClientId,
        filter: &'a DeadLetterFilter,
        page: impl Into<PageOf>,
    ) -> BoxFuture<'a, Result<Page<DeadLetter>, EngineError>> {
        let PageOf { after, rows } = page.into();
        Box::pin(self.read(client, filter, after, (rows.get().into(), LOOKED_AT)))
    }

    /// Counts dead letters, 10,000 at the most.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn count<'a>(
        &'a self,
        client: &'a ClientId,
        filter: &'a DeadLetterFilter,
    ) -> BoxFuture<'a, Result<DeadLetterCounts, EngineError>> {
        Box::pin(async move {
            let page = self.read(client, filter, None, (COUNTED, COUNTED)).await?;
            let mut counts =
                DeadLetterCounts { has_more: page.next.is_some(), ..DeadLetterCounts::default() };
            for letter in page.rows {
                counts.total = counts.total.saturating_add(1);
                let one_more = |count: &mut u32| *count = count.saturating_add(1);
                one_more(counts.by_job.entry(letter.event.run().job().clone()).or_default());
                one_more(counts.by_status.entry(EventStatus::from(letter.outcome).as_str()).or_default());
                if let Some(waited) = letter.waited {
                    one_more(counts.by_policy.entry(waited.policy).or_default());
                }
                if let Some(reason) = letter.reason {
                    one_more(counts.by_reason.entry(reason).or_default());
                }
            }
            Ok(counts)
        })
    }

    /// Up to `most` letters that fit, of up to `looked_at` that are read. `after` is a shard and a place in it.
    async fn read(
        &self,
        client: &ClientId,
        filter: &DeadLetterFilter,
        after: Option<String>,
        (most, looked_at): (usize, usize),
    ) -> Result<Page<DeadLetter>, EngineError> {
        let (mut shard, mut place) = match after.as_deref().and_then(|after| after.split_once('~')) {
            Some((shard, place)) => (
                shard.parse().unwrap_or(DEAD_LETTER_SHARDS),
                Some(place.to_owned()).filter(|p| !p.is_empty()),
            ),
            None => (0, None),
        };
        let mut all = Page::new(Vec::new(), None);
        let mut left = looked_at;
        while shard < DEAD_LETTER_SHARDS {
            deadline::check(&*self.clock)?;
            let limit = i32::try_from(left.min(most.saturating_sub(all.rows.len())).min(PAGE)).unwrap_or(1);
            let page = match &filter.job {
                Some(job) => self.store.dead_letters_of(client, job, place.take(), limit).await?,
                None => self.store.dead_letters(client, shard, place.take(), limit).await?,
            };
            left = left.saturating_sub(page.rows.len().max(1));
            all.unreadable.extend(page.unreadable);
            all.rows.extend(page.rows.into_iter().flatten().filter(|letter| filter.fits(letter)));
            place = page.next;
            if place.is_none() {
                shard = if filter.job.is_some() { DEAD_LETTER_SHARDS } else { shard.saturating_add(1) };
            }
            if (all.rows.len() >= most || left == 0) && shard < DEAD_LETTER_SHARDS {
                all.next = Some(format!("{shard}~{}", place.unwrap_or_default()));
                break;
            }
        }
        Ok(all)
    }

    /// A dead letter with what its event carries; `None` when there is none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn find<'a>(
        &'a self,
        client: &'a ClientId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<DeadLetterDetail>, EngineError>> {
        Box::pin(async move {
            let Some(letter) = self.store.dead_letter(client, event).await? else { return Ok(None) };
            let failures = self.store.failed_deliveries(client, event).await?.rows;
            let Some(run) = self.run_of(client, event).await? else {
                return Ok(Some(DeadLetterDetail { letter, target: None, payload: None, failures }));
            };
            let target = Some(run.terms.target.clone());
            let terms = self.contents.complete_terms(client, &run.id, run.terms).await?;
            let payload = terms.map(|terms| terms.payloads.for_event(event, terms.terms.count.get()));
            Ok(Some(DeadLetterDetail { letter, target, payload, failures }))
        })
    }

    async fn run_of(&self, client: &ClientId, event: &EventId) -> Result<Option<RunRow>, EngineError> {
        Ok(self.store.find_run(client, event.run()).await?)
    }

    /// Sends the events of dead letters again, under their policies' limits: each at an instant, or at once where that is past.
    /// The answers are in their order; an error stands for one letter, which is as it was. One that is named again is absent by
    /// then.
    pub fn redrive<'a>(
        &'a self,
        client: &'a ClientId,
        events: &'a [(EventId, DateTime<Utc>)],
    ) -> BoxFuture<'a, Vec<Result<Redriven, EngineError>>> {
        Box::pin(async move {
            let mut named = BTreeSet::new();
            let is_first: Vec<bool> = events.iter().map(|(event, _)| named.insert(event)).collect();
            let each = events.iter().zip(is_first).map(async |((event, at), is_first)| match is_first {
                true => self.redrive_one(client, event, *at).await,
                false => Ok((Redriven::Absent, None)),
            });
            let mut each = stream::iter(each.collect::<Vec<_>>()).buffered(AT_ONCE);
            let (mut answers, mut due) = (Vec::with_capacity(events.len()), Vec::new());
            while let Some(answer) = each.next().await {
                answers.push(answer.map(|(redriven, wake)| {
                    due.extend(wake);
                    redriven
                }));
            }
            if let Err(error) = self.queues.dispatch(&Outgoing::wakes(due)).await {
                warn!(%client, %error, "what was redriven waits for the tick");
            }
            answers
        })
    }

    /// What came of redriving one; and of an event that takes its place in a line, whose line it is, and when it is due there.
    async fn redrive_one(
        &self,
        client: &ClientId,
        event: &EventId,
        at: DateTime<Utc>,
    ) -> Result<(Redriven, Option<(PolicyRef, DateTime<Utc>)>), EngineError> {
        deadline::check(&*self.clock)?;
        let due_at = at.max(self.clock.now());
        let Some(letter) = self.store.dead_letter(client, event).await? else {
            return Ok((Redriven::Absent, None));
        };
        let Some(run) = self.run_of(client, event).await?.filter(|run| run.stopped.is_none()) else {
            return Ok((Redriven::RunOver, None));
        };
        if run.terms.is_too_old(run.id.launch_at(), due_at) {
            return Ok((Redriven::TooOld, None));
        }
        if self.contents.complete_terms(client, &run.id, run.terms.clone()).await?.is_none() {
            return Ok((Redriven::PayloadGone, None));
        }
        let Some(waited) = &letter.waited else {
            return Ok((self.redrive_alone(client, &letter, &run, due_at).await?, None));
        };
        let redriven = self.redrive_to_line(client, &letter, waited, &run, due_at).await?;
        let wake = (PolicyRef::new(client, &waited.policy), due_at);
        Ok((redriven, (redriven == Redriven::Done).then_some(wake)))
    }

    /// An event under a policy takes its place in the line.
    async fn redrive_to_line(
        &self,
        client: &ClientId,
        letter: &DeadLetter,
        waited: &Waited,
        run: &RunRow,
        due_at: DateTime<Utc>,
    ) -> Result<Redriven, EngineError> {
        let policy = &waited.policy;
        if self.store.policy(client, policy).await?.is_none() {
            return Ok(Redriven::PolicyDeleted);
        }
        let now = self.clock.now();
        // First: the tick looks after what is in the line of a policy on this list.
        self.store.touch_active(client, policy, now).await?;
        let priority = match waited.pack {
            PackId::Run(_) => run.terms.flow.priority.get(),
            PackId::Singles(id) => id.kind.rank.priority,
        };
        Ok(match self.store.redrive(client, letter, waited, (priority, due_at), now).await? {
            Write::Done => Redriven::Done,
            Write::Refused => Redriven::Absent,
        })
    }

    /// An event that nothing throttles is sent as a chunk, before its letter is forgotten.
    async fn redrive_alone(
        &self,
        client: &ClientId,
        letter: &DeadLetter,
        run: &RunRow,
        due_at: DateTime<Utc>,
    ) -> Result<Redriven, EngineError> {
        let index = letter.event.index();
        let occurrence = run.occurrence(client);
        let item = ChunkItem {
            job: occurrence.job.to_string(),
            revision: occurrence.revision,
            from: index,
            to: index.saturating_add(1),
            terms: TermsDoc::from(&occurrence.terms.to_travel()),
            rest: Rest::default(),
        };
        let chunk = Chunk {
            client: client.to_string(),
            launch_s: occurrence.launch_at.timestamp(),
            as_of_ms: self.clock.now().timestamp_millis(),
            // Whoever redrives it a second time sends the same.
            repeat: true,
            ahead: false,
            placed: false,
            attempt: letter.attempts.saturating_add(1),
            failing_since_s: None,
            not_before_ms: Some(due_at.timestamp_millis()),
            items: vec![item],
            rest: Rest::default(),
        };
        self.queues.dispatch(&[Outgoing::at(client, Message::Chunk(chunk), due_at)]).await?;
        let counts = occurrence.terms.count.get() > 1;
        Ok(match self.store.forget_redriven(client, letter, counts, self.clock.now()).await? {
            Write::Done => Redriven::Done,
            Write::Refused => Redriven::Absent,
        })
    }

    /// Forgets dead letters. The records of their events stay. The answers are in their order: whether there was one.
    pub fn discard<'a>(
        &'a self,
        client: &'a ClientId,
        events: &'a [EventId],
    ) -> BoxFuture<'a, Vec<Result<bool, EngineError>>> {
        Box::pin(async move {
            let each: Vec<_> = events.iter().map(|event| self.discard_one(client, event)).collect();
            stream::iter(each).buffered(AT_ONCE).collect().await
        })
    }

    async fn discard_one(&self, client: &ClientId, event: &EventId) -> Result<bool, EngineError> {
        deadline::check(&*self.clock)?;
        let Some(letter) = self.store.dead_letter(client, event).await? else { return Ok(false) };
        Ok(self.store.discard_dead_letter(client, &letter, self.clock.now()).await? == Write::Done)
    }
}
