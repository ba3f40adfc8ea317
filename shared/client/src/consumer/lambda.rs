//! A consumer for a Lambda function with an SQS event source.
//!
//! The function must report batch item failures: `FunctionResponseTypes: [ReportBatchItemFailures]` of the event source.
//! Deliberately absent: the runtime. Who has one gives an invocation's event and its deadline, and sends the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tidegate_protocol::{Event, Release};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::{error, warn};

use super::calls::Calls;
use super::heartbeats::{Heartbeats, Held};
use super::lease::Lease;
use super::limits;
use super::recent::{Ended, Recent};
use super::releases::send_releases;
use super::worker::{EventResult, Work, Worker};
use crate::Client;

/// What Lambda gives a function of SQS, as far as it is read here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqsEvent {
    /// The messages.
    #[serde(rename = "Records")]
    pub records: Vec<SqsRecord>,
}

/// A message of SQS, as Lambda gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsRecord {
    /// The id of the message.
    pub message_id: String,
    /// The text of the message.
    #[serde(default)]
    pub body: String,
    /// System attributes, of which `ApproximateReceiveCount` is read.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// The answer of a function to Lambda: which messages are to come again. The others are deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsBatchResponse {
    /// One for each message that is to come again.
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// A message that is to come again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    /// The id of the message.
    pub item_identifier: String,
}

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
        let (beats, work, recent) = (Arc::clone(&heartbeats), self.work.clone(), Arc::clone(&self.recent));
        let worker = Arc::new(Worker { work, recent, heartbeats: Arc::clone(&heartbeats) });
        let mut beating = JoinSet::new();
        beating.spawn(async move { beats.run().await });
        let mut items = Vec::new();
        let mut waiting = Vec::new();
        for record in records {
            match record.body.parse::<Event>() {
                Ok(event) => {
                    let held = heartbeats.start(&event);
                    let (lease, came_before) = (held.lease.clone(), came_before(&record.attributes));
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

fn came_before(attributes: &BTreeMap<String, String>) -> bool {
    let count = attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    count.unwrap_or(1) > 1
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};
    use tokio::time::sleep;

    use super::*;
    use crate::consumer::fakes::{FakeApi, Scripted, at, body, body_with, seconds, without_token};

    type Text = Result<Option<String>, String>;

    fn consumer<F>(
        api: &Arc<FakeApi>,
        work: impl Fn(Event, Lease) -> F + Send + Sync + 'static,
    ) -> LambdaConsumer
    where
        F: Future<Output = Text> + Send + 'static,
    {
        LambdaConsumer::with(api.calls(), Work::new(work))
    }

    fn sqs_event(bodies: &[Value], receive_count: u32) -> SqsEvent {
        let records = bodies.iter().enumerate().map(|(place, body)| {
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            json!({"messageId": format!("message-{place}"), "receiptHandle": "handle", "body": body,
                "attributes": {"ApproximateReceiveCount": receive_count.to_string()}, "eventSource": "aws:sqs"})
        });
        serde_json::from_value(json!({"Records": records.collect::<Vec<_>>()})).unwrap()
    }

    /// The places of the messages that an invocation of a minute reports.
    async fn failures(consumer: &LambdaConsumer, bodies: &[Value]) -> Vec<String> {
        failures_of(consumer.handle_within(sqs_event(bodies, 1), seconds(60)).await)
    }

    fn failures_of(answer: SqsBatchResponse) -> Vec<String> {
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    fn tokens(api: &FakeApi) -> Vec<String> {
        api.released().iter().map(|entry| entry["token"].as_str().unwrap().to_owned()).collect()
    }

    async fn done(_: Event, _: Lease) -> Text {
        Ok(None)
    }

    async fn never(_: Event, _: Lease) -> Text {
        panic!("it was worked on")
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_worked_on_in_order_and_released_together() {
        let api = FakeApi::new();
        let worked_on = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&worked_on);
        let consumer = consumer(&api, move |event, _| {
            noted.lock().unwrap().push(event.index);
            async move {
                sleep(seconds(1)).await;
                match event.index {
                    1 => Err("no such shop".to_owned()),
                    2 => Ok(Some("9 rows".to_owned())),
                    _ => Ok(None),
                }
            }
        });
        assert_eq!(failures(&consumer, &[body(0), body(1), body(2)]).await, [""; 0]);
        assert_eq!(*worked_on.lock().unwrap(), [0, 1, 2]);
        assert_eq!(api.releases(), [(seconds(3), 3)]);
        assert_eq!(
            api.released(),
            [
                json!({"token": "tok.0", "outcome": "succeeded"}),
                json!({"token": "tok.1", "outcome": "failed", "error": "no such shop"}),
                json!({"token": "tok.2", "outcome": "succeeded", "result": "9 rows"}),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_is_what_lambda_reads() {
        let api = FakeApi::new();
        let consumer = consumer(&api, done);
        let deadline = SystemTime::now() + seconds(60);
        let answer = consumer.handle(sqs_event(&[json!("hello"), body(1), json!("{}")], 1), deadline).await;
        let expected =
            json!({"batchItemFailures": [{"itemIdentifier": "message-0"}, {"itemIdentifier": "message-2"}]});
        assert_eq!(
            (serde_json::to_value(answer).unwrap(), tokens(&api)),
            (expected, vec!["tok.1".to_owned()])
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_that_could_not_be_sent_is_reported_and_sent_again_without_working_again() {
        let api = FakeApi::new();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let consumer = consumer(&api, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(None) }
        });
        api.script([Scripted::Refused(401)]);
        assert_eq!(failures(&consumer, &[body(0), without_token(1)]).await, ["message-0"]);
        let again = consumer.handle_within(sqs_event(&[body(0)], 2), seconds(60)).await;
        assert_eq!(again, SqsBatchResponse::default());
        assert_eq!((count.load(Ordering::SeqCst), tokens(&api)), (2, vec!["tok.0".to_owned(); 2]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_release_is_no_failure_and_a_refused_one_is() {
        for (status, is_reported) in [
            ("already_released", false),
            ("accepted", false),
            ("reclaimed", false),
            ("unknown", false),
            ("not_yours", true),
            ("malformed", true),
            ("a later word", true),
        ] {
            let api = FakeApi::new();
            api.status("tok.0", status);
            let reported = failures(&consumer(&api, done), &[body(0), body(1)]).await;
            assert_eq!(reported, vec!["message-0"; usize::from(is_reported)], "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_without_a_token_is_reported() {
        let api = FakeApi::new();
        let consumer = consumer(&api, |_, _| async { Err("it failed".to_owned()) });
        assert_eq!(failures(&consumer, &[without_token(0)]).await, ["message-0"]);
        assert!(api.releases().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn leases_are_extended_also_of_records_that_wait_or_are_done() {
        let api = FakeApi::new();
        let consumer = consumer(&api, |_, _| async {
            sleep(seconds(25)).await;
            Ok(None)
        });
        assert_eq!(failures(&consumer, &[body(0), body(1)]).await, [""; 0]);
        let both = vec!["tok.0".to_owned(), "tok.1".to_owned()];
        assert_eq!(api.extended(), [(seconds(20), both.clone()), (seconds(40), both)]);
        assert_eq!(api.releases(), [(seconds(50), 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_whose_lease_is_over_is_neither_begun_nor_reported() {
        let api = FakeApi::new();
        api.status("tok.0", "expired");
        let consumer = consumer(&api, never);
        let late = body_with(0, json!({"lease_expires_at": at(-1)}));
        assert_eq!(failures(&consumer, &[late]).await, [""; 0]);
        let again = consumer.handle_within(sqs_event(&[body(0)], 2), seconds(60)).await;
        assert_eq!((again, tokens(&api)), (SqsBatchResponse::default(), vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_finished_is_released_before_the_time_is_over() {
        for (time, margin, works) in [(60, 5, 55), (8, 5, 6), (900, 100, 800)] {
            let api = FakeApi::new();
            let consumer = consumer(&api, |event, _| async move {
                if event.index > 0 {
                    sleep(seconds(10_000)).await;
                }
                Ok(None)
            });
            let far = json!({"lease_expires_at": at(36_000)});
            let bodies = [0, 1, 2].map(|index| body_with(index, far.clone()));
            let consumer = consumer.margin(seconds(margin));
            let answer = consumer.handle_within(sqs_event(&bodies, 1), seconds(time)).await;
            assert_eq!(failures_of(answer), ["message-1", "message-2"]);
            assert_eq!((api.releases(), tokens(&api)), (vec![(seconds(works), 1)], vec!["tok.0".to_owned()]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_release_is_not_repeated_beyond_the_time() {
        let api = FakeApi::new();
        api.script([Scripted::Refused(503); 6]);
        let consumer = consumer(&api, done);
        let answer = consumer.handle_within(sqs_event(&[body(0)], 1), seconds(4)).await;
        assert_eq!(failures_of(answer), ["message-0"]);
        // A further attempt would come when only half of the margin is left.
        let times: Vec<u128> = api.releases().into_iter().map(|(at, _)| at.as_millis()).collect();
        assert_eq!(times, [0, 500, 1_500]);
    }

    #[tokio::test(start_paused = true)]
    async fn several_records_may_be_worked_on_at_once_and_a_hundred_released() {
        let api = FakeApi::new();
        let consumer = consumer(&api, |_, _| async {
            sleep(seconds(1)).await;
            Ok(None)
        });
        let bodies: Vec<Value> = (0..101).map(body).collect();
        assert_eq!(failures(&consumer.concurrency(51), &bodies).await, [""; 0]);
        assert_eq!(api.releases(), [(seconds(2), 100), (seconds(2), 1)]);
    }
}
