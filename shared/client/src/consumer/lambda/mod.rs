//! A consumer for a Lambda function with an SQS event source.
//!
//! The function must report batch item failures: `FunctionResponseTypes: [ReportBatchItemFailures]` of the event source.
//! Deliberately absent: the runtime. Who has one gives an invocation's event and its deadline, and sends the answer.

mod invocation;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_protocol::{Event, Release};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::{error, warn};

pub use self::invocation::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsRecord};
use super::calls::Calls;
use super::heartbeats::{Heartbeats, Held};
use super::lease::Lease;
use super::limits;
use super::recent::{Ended, Recent};
use super::releases::send_releases;
use super::worker::{EventResult, Work, Worker};
use crate::Client;

/// Works on the events of a Lambda function's invocations. Made once for each environment; [`LambdaConsumer::handle`] is
/// called for each invocation.
///
/// Each record's event is given to the function with its lease. Their tokens are released together at the end: as
/// `succeeded` when it returned `Ok`, as `failed` when it returned `Err` or panicked.
pub struct LambdaConsumer {
    calls: Arc<Calls>,
    work: Work,
    recent: Arc<Recent>,
    concurrency: usize,
    margin: Duration,
}

impl fmt::Debug for LambdaConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LambdaConsumer");
        shown.field("concurrency", &self.concurrency).field("margin", &self.margin).finish_non_exhaustive()
    }
}

/// A record whose event is worked on, and what has come of it so far.
struct Item {
    message_id: String,
    /// Also when the work has ended: the token is released later, together with the others.
    held: Held,
    ended: Ended,
}

impl LambdaConsumer {
    /// A consumer of what [`LambdaConsumer::handle`] is given. Makes no call.
    pub fn new<W, F, R, E>(client: &Client, work: W) -> Self
    where
        W: Fn(Event, Lease) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: EventResult,
        E: fmt::Display,
    {
        Self::with(Calls::new(client), Work::new(work))
    }

    fn with(calls: Arc<Calls>, work: Work) -> Self {
        let recent = Arc::new(Recent::new(limits::REMEMBERED_EVENTS));
        Self { calls, work, recent, concurrency: limits::LAMBDA_CONCURRENCY, margin: limits::MARGIN }
    }

    /// How many records of an invocation are worked on at once: 1 unless it is said; 0 counts as 1.
    #[must_use]
    pub fn concurrency(mut self, records: usize) -> Self {
        self.concurrency = records.max(1);
        self
    }

    /// Time of an invocation that is kept for its end: 5 seconds unless it is said; a quarter of the invocation at the most.
    #[must_use]
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Of how many events an environment remembers the outcomes: 10,000 unless it is said.
    #[must_use]
    pub fn remembered_events(mut self, events: usize) -> Self {
        self.recent = Arc::new(Recent::new(events));
        self
    }

    /// Works on the records of an invocation that Lambda stops at `deadline`.
    ///
    /// A record is reported as a failure, and comes again, when it is no event, when its release could not be sent, when
    /// its event was not finished, or when its event has no token and failed. Work that failed and was released as
    /// `failed` is not reported. What is not finished when the margin begins is given up: its lease is lost, and its work
    /// is dropped.
    pub async fn handle(&self, event: SqsEvent, deadline: SystemTime) -> SqsBatchResponse {
        self.handle_within(event, deadline.duration_since(SystemTime::now()).unwrap_or_default()).await
    }

    async fn handle_within(&self, event: SqsEvent, time: Duration) -> SqsBatchResponse {
        let ends_at = Instant::now() + time;
        let margin = self.margin.min(time / 4);
        let message_ids: Vec<String> = event.records.iter().map(|record| record.message_id.clone()).collect();
        let items = self.work_on(event.records, ends_at - margin).await;
        // Half of the margin is for whatever else the function does in its end.
        let settled = self.release(items, ends_at - margin / 2).await;
        let failed = message_ids.into_iter().filter(|message_id| !settled.contains(message_id));
        let batch_item_failures =
            failed.map(|item_identifier| BatchItemFailure { item_identifier }).collect();
        SqsBatchResponse { batch_item_failures }
    }

    /// Works on the records until all are done, or until an instant: then the rest is given up. All leases are extended
    /// from the start on, also of records that wait for their turn.
    async fn work_on(&self, records: Vec<SqsRecord>, until: Instant) -> Vec<Item> {
        let heartbeats = Heartbeats::new(&self.calls, None);
        let _beating = heartbeats.run();
        let (work, recent) = (self.work.clone(), Arc::clone(&self.recent));
        let worker = Arc::new(Worker { work, recent, heartbeats: Arc::clone(&heartbeats) });
        let mut items = Vec::new();
        let mut waiting = Vec::new();
        for record in records {
            match record.body.parse::<Event>() {
                Ok(event) => {
                    let held = heartbeats.start(&event);
                    let (lease, came_before) = (held.lease.clone(), record.came_before());
                    waiting.push(Waiting { place: items.len(), event, lease, came_before });
                    items.push(Item { message_id: record.message_id, held, ended: Ended::Left });
                }
                Err(error) => {
                    error!(message_id = record.message_id, %error, "a message is reported as a failure");
                }
            }
        }
        let mut waiting = waiting.into_iter();
        let mut working = JoinSet::new();
        loop {
            while working.len() < self.concurrency
                && let Some(next) = waiting.next()
            {
                working.spawn(next.finish(Arc::clone(&worker)));
            }
            match timeout_at(until, working.join_next()).await {
                Ok(Some(Ok((place, ended)))) => items[place].ended = ended,
                Ok(Some(Err(_))) => {} // Its event is left.
                Ok(None) => break,
                Err(_) => {
                    warn!("events are given up: the invocation ends soon");
                    break;
                }
            }
        }
        heartbeats.give_up();
        working.shutdown().await;
        items
    }

    /// Releases what has an outcome. Returns the ids of the messages that need not come again.
    async fn release(&self, items: Vec<Item>, deadline: Instant) -> BTreeSet<String> {
        let mut settled = BTreeSet::new();
        let mut releases: Vec<(String, Release)> = Vec::new();
        for Item { message_id, held, ended } in items {
            match (ended, held.lease.token()) {
                (Ended::Left, _) => {}
                (Ended::Known(outcome), Some(token)) => releases.push((message_id, outcome.release(token))),
                (Ended::Known(_), None) | (Ended::LeaseOver, _) => drop(settled.insert(message_id)),
            }
        }
        for batch in releases.chunks(limits::TOKENS_PER_CALL) {
            let (message_ids, entries): (Vec<String>, Vec<Release>) = batch.iter().cloned().unzip();
            let accepted = send_releases(&self.calls, &entries, Some(deadline)).await;
            let accepted = message_ids.into_iter().zip(accepted).filter(|(_, is_accepted)| *is_accepted);
            settled.extend(accepted.map(|(message_id, _)| message_id));
        }
        settled
    }
}

/// An event that waits for its turn.
struct Waiting {
    /// Which item it is.
    place: usize,
    event: Event,
    lease: Lease,
    came_before: bool,
}

impl Waiting {
    async fn finish(self, worker: Arc<Worker>) -> (usize, Ended) {
        (self.place, worker.work_on(self.event, &self.lease, self.came_before).await)
    }
}

#[cfg(test)]
mod tests;
