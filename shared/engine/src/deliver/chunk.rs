//! Delivery of a chunk: events that nothing throttles.
//!
//! Order of things: has it been sent? are the jobs stored that it went ahead of? has a job changed? is it sidelined, closed, or over
//! the quota of its client? send, send the rest later, keep what happened and the mark.
//! A crash before the mark sends the chunk again under the same event ids. When what happened cannot be kept, it goes into
//! a message of its own, so that the tables can be too small for a while and no event comes twice for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::{self, History};
use tidegate_domain::limits::EVENTS_PER_CHUNK;
use tidegate_domain::occurrence::{Occurrence, SkipReason, StopReason};
use tidegate_domain::retry::{Retry, Tries};
use tidegate_domain::slots::Outcome;
use tidegate_domain::target::Target;
use tidegate_domain::time::{clamped, seconds, shifted};
use tidegate_store::Create;
use tidegate_store::dead_letters::DeadLetter;
use tidegate_store::doc::{Rest, TermsDoc};
use tidegate_store::events::{EventRow, HistoryOf, PartRow, Record};
use tidegate_store::runs::Tally;
use tracing::{error, info, warn};

use super::trouble::Troubles;
use super::wanted::{Known, unwanted_because};
use super::{Delivery, EventToSend, Sent, signs};
use crate::contents::Terms;
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, ChunkItem, Message, SentChunk, Undelivered};
use crate::{EngineError, Panicked, deadline};

/// How long what could not be kept waits at the least: who was asked too much of is given some time.
const KEPT_LATER: Duration = seconds(5);
/// And how much longer at the most, in seconds: not all chunks of a herd come back at once.
const KEPT_WITHIN_SECONDS: i64 = 60;
/// Rows of one chunk that are read or written at once.
pub(super) const ROWS_AT_ONCE: usize = 16;

/// Some events of one occurrence.
pub(super) struct Part {
    pub(super) occurrence: Occurrence,
    pub(super) from: u32,
    pub(super) to: u32,
    /// What a newer version said of them.
    rest: Rest,
}

impl Part {
    fn of(item: &ChunkItem, client: &ClientId, launch_at: DateTime<Utc>) -> Result<Self, EngineError> {
        let occurrence = item.occurrence(client, launch_at)?;
        Ok(Self { occurrence, from: item.from, to: item.to, rest: item.rest.clone() })
    }

    /// Some of its events.
    pub(super) fn cut(&self, from: u32, to: u32) -> Self {
        Self { occurrence: self.occurrence.clone(), from, to, rest: self.rest.clone() }
    }
}

/// What became of the events of a part.
struct Outcomes {
    retry: Vec<u32>,
    retry_after: Option<Duration>,
    records: Vec<Record>,
    dead: u32,
}

impl Delivery {
    /// Delivers a chunk. `received` is how often its message came.
    pub(crate) async fn deliver_chunk(&self, chunk: &Chunk, received: u32) -> Result<(), EngineError> {
        let (client, launch_at) = chunk.head()?;
        let due_at = chunk.due_at(launch_at);
        if self.queues.is_early(due_at) {
            let repeat = chunk.repeat || received > 1;
            let again = Message::Chunk(Chunk { repeat, ..chunk.clone() });
            return self.queues.dispatch(&[Outgoing::at(&client, again, due_at)]).await;
        }
        let (mut parts, mut unreadable) = (Vec::with_capacity(chunk.items.len()), Vec::new());
        for item in &chunk.items {
            match Part::of(item, &client, launch_at) {
                Ok(part) => parts.push(part),
                Err(error) => unreadable.push((item, error)),
            }
        }
        let asides = unreadable
            .iter()
            .map(|(item, error)| self.contents.set_aside_item(&client, launch_at, item, error))
            .collect();
        each_of(asides).await?;
        if (received > 1 || chunk.repeat) && self.was_delivered(chunk, &parts).await? {
            info!(chunk = chunk.id(), received, "chunk was sent before");
            return Ok(());
        }
        if chunk.ahead && !(chunk.is_noted() && self.store.are_all_stored(&chunk.id()).await?) {
            parts = self.stored(&client, parts).await?;
        }
        let as_of = DateTime::from_timestamp_millis(chunk.as_of_ms).unwrap_or_default();
        let said = self.store.recheck(&client).await?;
        let parts = self.still_wanted(&client, (as_of, said.until), parts).await?;
        let parts = self.still_relevant(parts).await?;
        let had_some = !parts.is_empty();
        let parts = self.without_sidelined(chunk, parts, &said.sidelines).await?;
        if had_some && parts.is_empty() {
            return Ok(());
        }
        let Some(parts) = self.without_held_back(chunk, parts).await? else { return Ok(()) };
        let Some(parts) = self.within_pace(chunk, parts, said.pace).await? else { return Ok(()) };
        let (parts, deliveries) = self.prepare(chunk, parts).await?;
        let sent = self.send(&deliveries).await;
        // Queues are never held back.
        let targets = deliveries.iter().map(|delivery| &delivery.terms.terms.target);
        let slow = targets.zip(&sent).filter(|(target, _)| !target.transport().is_inline);
        let signs = signs(slow, Target::address);
        self.conclude(chunk, &parts, sent).await?;
        self.note_signs(&client, signs).await;
        Ok(())
    }

    /// Sets aside what a chunk panicked over. Its events are handled one by one from now on, so that the one at fault stands
    /// alone; alone, it is recorded as dead.
    pub(crate) async fn set_aside_chunk(
        &self,
        chunk: &Chunk,
        panicked: &Panicked,
    ) -> Result<(), EngineError> {
        let (client, launch_at) = chunk.head()?;
        if let [item] = chunk.items.as_slice()
            && item.to.saturating_sub(item.from) == 1
        {
            let part = Part::of(item, &client, launch_at)?;
            let refused = Sent::Refused { reason: panicked.to_string() };
            return self.conclude(chunk, &[part], vec![refused]).await;
        }
        let single = |item: &ChunkItem, index: u32| {
            let items = vec![ChunkItem { from: index, to: index.saturating_add(1), ..item.clone() }];
            Outgoing::at(&client, Message::Chunk(Chunk { items, ..chunk.clone() }), launch_at)
        };
        let singles: Vec<Outgoing> = chunk
            .items
            .iter()
            .flat_map(|item| {
                (item.from..item.to).take(EVENTS_PER_CHUNK as usize).map(move |index| (item, index))
            })
            .map(|(item, index)| single(item, index))
            .collect();
        self.queues.dispatch(&singles).await
    }

    /// A chunk that is one part of a run is marked by that part's row, one whose only event was recorded by that record; any
    /// other by a row of its own.
    async fn was_delivered(&self, chunk: &Chunk, parts: &[Part]) -> Result<bool, EngineError> {
        if let Some(part) = single_part(chunk, parts) {
            let run = part.occurrence.run_id();
            return Ok(self.store.was_part_sent(&part.occurrence.client, &run, part.from).await?);
        }
        if let [part] = parts
            && part.occurrence.terms.count.get() == 1
            && let Some(row) = self.store.run(&part.occurrence.client, &part.occurrence.run_id()).await?
            && row.single.is_some_and(|single| single.attempts >= chunk.attempt)
        {
            return Ok(true);
        }
        Ok(self.store.was_sent(&chunk.id()).await?)
    }

    /// Those whose jobs were stored. Whoever was to store the others, and has not, cannot any more.
    async fn stored(&self, client: &ClientId, parts: Vec<Part>) -> Result<Vec<Part>, EngineError> {
        let ids: BTreeSet<&JobId> = parts.iter().map(|part| &part.occurrence.job).collect();
        let ids: Vec<JobId> = ids.into_iter().cloned().collect();
        let are_stored = self.store.were_stored(client, &ids.iter().collect::<Vec<_>>()).await?;
        let stored = ids.into_iter().zip(are_stored).filter_map(|(id, is_stored)| is_stored.then_some(id));
        let stored: BTreeSet<JobId> = stored.collect();
        Ok(parts.into_iter().filter(|part| stored.contains(&part.occurrence.job)).collect())
    }

    /// Skips what was paused, cancelled or rescheduled since the chunk was planned, and records why.
    async fn still_wanted(
        &self,
        client: &ClientId,
        (as_of, changed_until): (DateTime<Utc>, Option<DateTime<Utc>>),
        parts: Vec<Part>,
    ) -> Result<Vec<Part>, EngineError> {
        match changed_until {
            Some(until) if until >= as_of => {}
            _ => return Ok(parts),
        }
        let jobs = self.jobs_of(client, &parts).await?;
        let (mut wanted, mut unwanted) = (Vec::with_capacity(parts.len()), Vec::new());
        for part in parts {
            match jobs.get(&part.occurrence.job) {
                None => wanted.push(part),
                Some(Err(error)) => unwanted.push((set_aside(&part, error), part)),
                Some(Ok(known)) => match unwanted_because(&part.occurrence, known) {
                    None => wanted.push(part),
                    Some(reason) => unwanted.push((reason.as_str(), part)),
                },
            }
        }
        self.skip_all(&unwanted).await?;
        Ok(wanted)
    }

    /// What is known of the jobs of some parts; of one that cannot be read, the reason.
    async fn jobs_of(
        &self,
        client: &ClientId,
        parts: &[Part],
    ) -> Result<BTreeMap<JobId, Result<Known, EngineError>>, EngineError> {
        let ids: BTreeSet<&JobId> = parts.iter().map(|part| &part.occurrence.job).collect();
        let looks: Vec<_> = ids
            .into_iter()
            .map(async |id: &JobId| (id.clone(), self.known_in_time(client, id).await))
            .collect();
        let mut looks = stream::iter(looks).buffer_unordered(ROWS_AT_ONCE);
        let mut jobs = BTreeMap::new();
        while let Some((id, known)) = looks.next().await {
            match known {
                Err(error) if !error.is_of_one_row() => return Err(error),
                known => drop(jobs.insert(id, known)),
            }
        }
        Ok(jobs)
    }

    async fn known_in_time(&self, client: &ClientId, id: &JobId) -> Result<Known, EngineError> {
        deadline::check(&*self.clock)?;
        self.known(client, id).await
    }

    /// Skips what is older than its job's relevancy window, and records why.
    async fn still_relevant(&self, parts: Vec<Part>) -> Result<Vec<Part>, EngineError> {
        let now = self.clock.now();
        let is_relevant =
            |Part { occurrence, .. }: &Part| !occurrence.terms.is_too_old(occurrence.launch_at, now);
        let (relevant, old): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_relevant);
        let old: Vec<_> = old.into_iter().map(|part| (SkipReason::Expired.as_str(), part)).collect();
        self.skip_all(&old).await?;
        Ok(relevant)
    }

    /// Records that parts are not delivered, each with its reason.
    pub(super) async fn skip_all(&self, parts: &[(&str, Part)]) -> Result<(), EngineError> {
        each_of(parts.iter().map(|(reason, part)| self.skip(part, reason)).collect()).await
    }

    async fn skip(&self, part: &Part, reason: &str) -> Result<(), EngineError> {
        let Occurrence { client, .. } = &part.occurrence;
        if self.store.record_skip(&part.occurrence, reason, self.clock.now()).await? == Create::Exists {
            self.store.stop_run(client, &part.occurrence.run_id(), reason).await?;
        }
        Ok(())
    }

    /// The events of the parts, in their order, without the parts whose payload is gone.
    async fn prepare(
        &self,
        chunk: &Chunk,
        parts: Vec<Part>,
    ) -> Result<(Vec<Part>, Vec<EventToSend>), EngineError> {
        let (mut kept, mut deliveries) = (Vec::with_capacity(parts.len()), Vec::new());
        let mut gone = Vec::new();
        let complete = async |part: Part| {
            let Occurrence { client, terms, .. } = &part.occurrence;
            let run = part.occurrence.run_id();
            // Nothing is sent yet: the message comes again.
            let terms = match deadline::check(&*self.clock) {
                Ok(()) => self.contents.complete_terms(client, &run, terms.clone()).await,
                Err(error) => Err(error),
            };
            (terms, part)
        };
        let mut complete = stream::iter(parts.into_iter().map(complete)).buffered(ROWS_AT_ONCE);
        while let Some((terms, part)) = complete.next().await {
            let terms: Arc<Terms> = match terms {
                Err(error) if error.is_of_one_row() => {
                    gone.push((set_aside(&part, &error), part));
                    continue;
                }
                terms => match terms? {
                    Some(terms) => Arc::new(terms),
                    None => {
                        gone.push((StopReason::PayloadGone.as_str(), part));
                        continue;
                    }
                },
            };
            let (client, run) = (&part.occurrence.client, part.occurrence.run_id());
            deliveries.extend((part.from..part.to).map(|index| EventToSend {
                client: client.clone(),
                event: run.event(index),
                attempt: chunk.attempt,
                hand_over: 1,
                lease: None,
                terms: Arc::clone(&terms),
            }));
            kept.push(part);
        }
        self.skip_all(&gone).await?;
        Ok((kept, deliveries))
    }

    /// Keeps what happened. `sent` has the events of the parts, in their order.
    async fn conclude(&self, chunk: &Chunk, parts: &[Part], sent: Vec<Sent>) -> Result<(), EngineError> {
        let now = self.clock.now();
        let (client, launch_at) = chunk.head()?;
        let tries = tries(chunk, now);
        let undelivered = undelivered(parts, tries, &sent, now);
        let events = parts.iter().flat_map(|part| (part.from..part.to).map(move |index| (part, index)));
        let events = events
            .zip(&sent)
            .map(|((part, index), sent)| (&part.occurrence, index, sent, is_retried(part, tries, now)));
        self.publish_sent(events, (chunk.attempt, now)).await;
        let delivered = sent.iter().filter(|sent| **sent == Sent::Done).count();
        let mut troubles = Troubles::default();
        let concluded = concluded((parts, tries), sent, now, &mut troubles);
        troubles.log(&client, chunk.attempt);
        let Concluded { retries, mut records } = concluded;
        let mut again = Vec::with_capacity(retries.len());
        for Retried { retry, items, retry_after, .. } in retries {
            let draw = self.random.next_u64();
            let wait = retry.wait(tries, retry_after, now, draw).unwrap_or_default();
            let not_before = shifted(now.max(launch_at), wait);
            let message = Message::Chunk(Chunk {
                attempt: chunk.attempt.saturating_add(1),
                failing_since_s: Some(tries.since_s),
                not_before_ms: Some(not_before.timestamp_millis()),
                repeat: false,
                ahead: false,
                placed: false,
                items,
                ..chunk.clone()
            });
            again.push(Outgoing::at(&client, message, not_before));
        }
        if !again.is_empty() {
            self.queues.dispatch(&again).await?;
        }
        let is_marked =
            chunk.items.len() == 1 && records.iter().any(|r| matches!(r, Record::SingleRun { .. }));
        let mark = (single_part(chunk, parts).is_none() && !is_marked).then(|| chunk.id());
        records.extend(mark.clone().map(|chunk| Record::Mark { chunk, at: now }));
        if let Err(error) = self.store.keep(&records).await {
            // Coming again, the chunk would be sent again, whatever the error: what is to be kept comes again by itself.
            warn!(%client, %error, "what became of events is kept later");
            let items = parts.iter().map(whole).collect();
            let chunk = Chunk { items, ..chunk.clone() };
            let later = shifted(now, kept_later(&chunk));
            let sent = SentChunk { chunk, at_ms: now.timestamp_millis(), mark, undelivered };
            self.queues.dispatch(&[Outgoing::at(&client, Message::Sent(sent), later)]).await?;
        }
        // Whoever fails before sends them again.
        self.count_lateness_of(chunk, (&client, launch_at), (delivered, now));
        Ok(())
    }

    /// Keeps what became of events that were sent before, unless it was kept: a letter of theirs may have been redriven or
    /// discarded since.
    pub(crate) async fn keep_sent(&self, sent: &SentChunk) -> Result<(), EngineError> {
        let (client, launch_at) = sent.chunk.head()?;
        let at = clamped(DateTime::from_timestamp_millis(sent.at_ms).unwrap_or_default());
        let mut parts = Vec::with_capacity(sent.chunk.items.len());
        for item in &sent.chunk.items {
            parts.push(Part::of(item, &client, launch_at)?);
        }
        let is_kept = match &sent.mark {
            Some(mark) => self.store.was_sent(mark).await?,
            None => self.was_delivered(&sent.chunk, &parts).await?,
        };
        if is_kept {
            return Ok(());
        }
        let events = parts.iter().map(|part| (part.to - part.from) as usize).sum();
        let mut outcomes = vec![Sent::Done; events];
        for Undelivered { place, reason } in &sent.undelivered {
            if let Some(outcome) = outcomes.get_mut(*place as usize) {
                *outcome = match reason.clone() {
                    Some(reason) => Sent::Refused { reason },
                    None => Sent::failed(String::new()),
                };
            }
        }
        // What went wrong was logged when it did.
        let mut troubles = Troubles::default();
        let mut records = concluded((&parts, tries(&sent.chunk, at)), outcomes, at, &mut troubles).records;
        records.extend(sent.mark.clone().map(|chunk| Record::Mark { chunk, at }));
        Ok(self.store.keep(&records).await?)
    }
}

/// Why a part is not delivered of which a row cannot be read.
fn set_aside(part: &Part, error: &EngineError) -> &'static str {
    let Occurrence { client, job, .. } = &part.occurrence;
    error!(%client, %job, %error, { ROWS_SET_ASIDE } = 1_u64, "events of a chunk are set aside: their job cannot be read");
    SkipReason::NotEmittable.as_str()
}

/// Makes some writes, a few at once.
async fn each_of<F>(writes: Vec<F>) -> Result<(), EngineError>
where
    F: Future<Output = Result<(), EngineError>>,
{
    stream::iter(writes).buffer_unordered(ROWS_AT_ONCE).try_collect().await
}

/// How long what became of a chunk waits before it is kept, by its id.
fn kept_later(chunk: &Chunk) -> Duration {
    let drawn = chunk.id().get(..8).and_then(|hex| i64::from_str_radix(hex, 16).ok()).unwrap_or_default();
    seconds(KEPT_LATER.num_seconds().saturating_add(drawn % KEPT_WITHIN_SECONDS))
}

/// What follows from what became of the events of a chunk.
struct Concluded {
    /// Those that are sent again, together where their rule and their target are the same.
    retries: Vec<Retried>,
    /// What is kept.
    records: Vec<Record>,
}

/// Events that are sent again after the same wait.
struct Retried {
    target: Target,
    retry: Retry,
    items: Vec<ChunkItem>,
    retry_after: Option<Duration>,
}

/// How the events of a chunk were delivered, if its attempt has just failed.
fn tries(chunk: &Chunk, now: DateTime<Utc>) -> Tries {
    let since_s = chunk.failing_since_s.unwrap_or(now.timestamp());
    Tries { made: chunk.attempt, failed: chunk.attempt, since_s }
}

/// Puts the events of a part to those that wait as long as they: one target does not wait as long as another one asks for.
fn add_retried(retries: &mut Vec<Retried>, part: &Part, outcomes: &Outcomes) {
    let job::Terms { target, retry, .. } = &part.occurrence.terms;
    let items = ranges(&outcomes.retry).map(|(from, to)| item(part, from, to));
    let waits_alike = |other: &&mut Retried| (&other.target, &other.retry) == (target, retry);
    match retries.iter_mut().find(waits_alike) {
        Some(alike) => {
            alike.items.extend(items);
            alike.retry_after = alike.retry_after.max(outcomes.retry_after);
        }
        None => retries.push(Retried {
            target: target.clone(),
            retry: retry.clone(),
            items: items.collect(),
            retry_after: outcomes.retry_after,
        }),
    }
}

/// What follows from what became of the events of some parts. `sent` has them in their order.
fn concluded(
    (parts, tries): (&[Part], Tries),
    sent: Vec<Sent>,
    now: DateTime<Utc>,
    troubles: &mut Troubles,
) -> Concluded {
    let mut concluded = Concluded { retries: Vec::new(), records: Vec::new() };
    let mut sent = sent.into_iter();
    for part in parts {
        let of_part = sent.by_ref().take((part.to - part.from) as usize).collect();
        let outcomes = outcomes(part, tries, of_part, now, troubles);
        let retried_ranges: Vec<(u32, u32)> = ranges(&outcomes.retry).collect();
        if !retried_ranges.is_empty() {
            add_retried(&mut concluded.retries, part, &outcomes);
        }
        concluded.records.extend(outcomes.records);
        let terms = &part.occurrence.terms;
        if terms.count.get() > 1 {
            let row = PartRow {
                from: part.from,
                to: part.to,
                dead: outcomes.dead,
                retried: u32::try_from(outcomes.retry.len()).unwrap_or(u32::MAX),
                retried_ranges,
                attempt: tries.made,
                at: Some(now),
            };
            let (client, run) = (part.occurrence.client.clone(), part.occurrence.run_id());
            concluded.records.push(Record::Part {
                client,
                run,
                part: row,
                at: now,
                kept: terms.history_days,
            });
        }
    }
    concluded
}

/// Which events of some parts were not delivered, by their places among all of them.
fn undelivered(parts: &[Part], tries: Tries, sent: &[Sent], now: DateTime<Utc>) -> Vec<Undelivered> {
    let attempts_left = parts
        .iter()
        .flat_map(|part| std::iter::repeat_n(is_retried(part, tries, now), (part.to - part.from) as usize));
    let places = (0..).zip(sent.iter().zip(attempts_left));
    let undelivered = places.filter_map(|(place, (sent, again))| match sent {
        Sent::Done => None,
        Sent::Failed { .. } if again => Some(Undelivered { place, reason: None }),
        Sent::Failed { reason, .. } | Sent::Refused { reason } => {
            Some(Undelivered { place, reason: Some(reason.clone()) })
        }
    });
    undelivered.collect()
}

/// The part that is the whole first attempt of a chunk, when it is one of several of its run.
fn single_part<'p>(chunk: &Chunk, parts: &'p [Part]) -> Option<&'p Part> {
    match parts {
        [part] if chunk.attempt == 1 && part.occurrence.terms.count.get() > 1 => Some(part),
        _ => None,
    }
}

/// Whether events of a part are sent again that failed.
fn is_retried(part: &Part, tries: Tries, now: DateTime<Utc>) -> bool {
    part.occurrence.terms.retry_in(tries, None, now, 0).is_some()
}

fn outcomes(
    part: &Part,
    tries: Tries,
    sent: Vec<Sent>,
    now: DateTime<Utc>,
    troubles: &mut Troubles,
) -> Outcomes {
    let (terms, attempt) = (&part.occurrence.terms, tries.made);
    let (single, keep_all) = (terms.count.get() == 1, terms.history == History::All);
    let mut outcomes = Outcomes { retry: Vec::new(), retry_after: None, records: Vec::new(), dead: 0 };
    for (index, sent) in (part.from..part.to).zip(sent) {
        let reason = match sent {
            Sent::Done => None,
            Sent::Failed { retry_after, reason, .. } if is_retried(part, tries, now) => {
                troubles.retried(&part.occurrence.run_id().event(index), terms, &reason);
                outcomes.retry.push(index);
                outcomes.retry_after = outcomes.retry_after.max(retry_after);
                continue;
            }
            Sent::Failed { reason, .. } | Sent::Refused { reason } => {
                troubles.dead(&part.occurrence.run_id().event(index), terms, &reason);
                Some(reason)
            }
        };
        let delivered = reason.is_none();
        outcomes.dead += u32::from(!delivered);
        if let Some(reason) = &reason {
            let event = part.occurrence.run_id().event(index);
            let reason = Some(reason.clone());
            let letter = DeadLetter {
                event,
                outcome: Outcome::Dead,
                attempts: attempt,
                at: now,
                reason,
                waited: None,
            };
            let (client, kept) = (part.occurrence.client.clone(), terms.history_days);
            outcomes.records.push(Record::DeadLetter { client, letter, kept });
        }
        if single && (keep_all || !delivered) {
            let tally =
                Tally { delivered: u32::from(delivered), dead: u32::from(!delivered), ..Tally::default() };
            outcomes.records.push(Record::SingleRun {
                occurrence: Box::new(part.occurrence.clone()),
                tally,
                attempts: attempt,
                reason,
                at: now,
            });
        } else if !delivered && terms.history != History::None {
            let event = EventRow { index, delivered, attempts: attempt, at: now, reason };
            let (client, run) = (part.occurrence.client.clone(), part.occurrence.run_id());
            let (of, kept) = (HistoryOf::Run(run), terms.history_days);
            outcomes.records.push(Record::Event { client, of, event, kept });
        }
    }
    outcomes
}

/// All events of a part.
pub(super) fn whole(part: &Part) -> ChunkItem {
    item(part, part.from, part.to)
}

fn item(part: &Part, from: u32, to: u32) -> ChunkItem {
    let Occurrence { job, revision, terms, .. } = &part.occurrence;
    let (job, terms, rest) = (job.to_string(), TermsDoc::from(terms), part.rest.clone());
    ChunkItem { job, revision: *revision, from, to, terms, rest }
}

/// Sorted indexes as half-open ranges.
fn ranges(indexes: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    indexes.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, run.last()? + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]).collect::<Vec<_>>(), [(0, 3), (5, 6), (7, 9)]);
        assert_eq!(ranges(&[]).count(), 0);
    }
}
