//! The consumer: takes messages from SQS, works a while on each, and releases their tokens. It is what a user's worker
//! would be, with the event id as its idempotency key, so it may be killed at any moment.
//!
//! The order is what makes that true: the arrival is noted, then the work is done, then its end is noted, then the token
//! is released, and only then is the message deleted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use aws_sdk_sqs::types::Message;
use chrono::{DateTime, Utc};
use tidegate_client::{Client, Event, Heartbeat, ReleaseStatus};
use tidegate_engine::random::{Random as _, SeededRandom};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::book::Book;
use super::display::Display;
use super::score::{Arrival, Entry};

/// Messages of one receive.
const RECEIVED_AT_ONCE: i32 = 10;
/// How long a receive waits, in seconds.
const POLL_SECONDS: i32 = 20;
/// How long the consumer rests after a call that failed.
const REST: Duration = Duration::from_millis(500);
/// How often a release is tried before it is left to the next arrival of its message.
const RELEASE_TRIES: u32 = 5;

/// How the consumer works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    average: Duration,
    lease: Duration,
}

impl Work {
    pub(super) fn around(average: Duration, lease: Duration) -> Self {
        Self { average, lease }
    }

    /// How long SQS keeps a received message from others: shorter than the lease, so that a consumer that died and came
    /// back finds its tokens alive.
    pub(super) fn visibility(self) -> Duration {
        self.lease * 2 / 3
    }

    /// How long an event takes: two to four thirds of the average, the same each time.
    fn time(self, event: &str) -> Duration {
        let seed = event.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let share = (SeededRandom::new(seed).next_u64() >> 32) as f64 / f64::from(u32::MAX);
        self.average.mul_f64(2.0 / 3.0 * (1.0 + share))
    }
}

/// The consumer.
pub(super) struct Consumer {
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    tidegate: Client,
    book: Arc<Book>,
    work: Work,
}

/// A message, read.
struct Received {
    event: Event,
    message_id: String,
    receipt: String,
}

impl Consumer {
    pub(super) fn new(
        sqs: aws_sdk_sqs::Client,
        queue_url: String,
        tidegate: Client,
        book: Arc<Book>,
        work: Work,
    ) -> Self {
        Self { sqs, queue_url, tidegate, book, work }
    }

    /// Receives until told to stop, then finishes what is in hand.
    pub(super) async fn run(self: Arc<Self>, display: Arc<Display>, mut stop: watch::Receiver<bool>) {
        let mut in_hand = JoinSet::new();
        loop {
            let messages = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                messages = self.receive() => messages,
            };
            for message in messages {
                let (consumer, display) = (Arc::clone(&self), Arc::clone(&display));
                in_hand.spawn(async move {
                    if let Err(error) = consumer.consume(message, &display).await {
                        warn!(error = format!("{error:#}"), "a message is left to come again");
                    }
                });
            }
            while in_hand.try_join_next().is_some() {}
        }
        while in_hand.join_next().await.is_some() {}
    }

    async fn receive(&self) -> Vec<Message> {
        let receive = self.sqs.receive_message().queue_url(&self.queue_url);
        match receive.max_number_of_messages(RECEIVED_AT_ONCE).wait_time_seconds(POLL_SECONDS).send().await {
            Ok(received) => received.messages.unwrap_or_default(),
            Err(error) => {
                warn!(%error, "the demo's queue gives no messages");
                tokio::time::sleep(REST).await;
                Vec::new()
            }
        }
    }

    async fn consume(&self, message: Message, display: &Display) -> anyhow::Result<()> {
        let received = Received::read(message)?;
        let (event, id) = (&received.event, received.event.event_id.clone());
        self.book.note(&received.arrival()?)?;
        let done_before = self.book.read(|score| score.events.get(&id).is_some_and(|fate| fate.finished));
        display.arrived(event, done_before);
        match &event.token {
            None => {
                self.book.note(&Entry::Finished { at_ms: now_ms(), event: id.clone() })?;
                self.book.note(&Entry::Released { at_ms: now_ms(), event: id })?;
            }
            Some(token) => {
                if !done_before {
                    if !self.work_on(event, token).await {
                        info!(event = id, "the lease had ended: the event comes again under another one");
                        return self.delete(&received.receipt).await;
                    }
                    self.book.note(&Entry::Finished { at_ms: now_ms(), event: id.clone() })?;
                    display.finished(event);
                }
                self.release(token).await?;
                self.book.note(&Entry::Released { at_ms: now_ms(), event: id })?;
            }
        }
        self.delete(&received.receipt).await
    }

    /// Works on an event; tells whether its token was held all the while.
    async fn work_on(&self, event: &Event, token: &str) -> bool {
        let mut heartbeat = Heartbeat::start(&self.tidegate, token, self.work.lease);
        tokio::select! {
            () = tokio::time::sleep(self.work.time(&event.event_id)) => true,
            () = heartbeat.lost() => false,
        }
    }

    /// Releases a token. One that is free already is as good: a former call was not answered, or the lease ran out.
    async fn release(&self, token: &str) -> anyhow::Result<()> {
        for attempt in 1.. {
            match self.tidegate.release(&[token]).await {
                Ok(answer) => {
                    let status = answer.first().map(|released| released.status);
                    return match status {
                        Some(
                            ReleaseStatus::Released
                            | ReleaseStatus::AlreadyReleased
                            | ReleaseStatus::Accepted,
                        ) => Ok(()),
                        other => anyhow::bail!("the release of {token} was answered with {other:?}"),
                    };
                }
                Err(error) if error.is_retryable() && attempt < RELEASE_TRIES => {
                    warn!(%error, attempt, "a release is tried again");
                    tokio::time::sleep(REST).await;
                }
                Err(error) => return Err(error).context("failed to release a token"),
            }
        }
        Ok(())
    }

    async fn delete(&self, receipt: &str) -> anyhow::Result<()> {
        let delete = self.sqs.delete_message().queue_url(&self.queue_url).receipt_handle(receipt);
        delete.send().await.map(drop).context("failed to delete a message")
    }
}

impl Received {
    fn read(message: Message) -> anyhow::Result<Self> {
        let body = message.body.context("a message has no body")?;
        let event = body.parse().context("a message is no event")?;
        let message_id = message.message_id.context("a message has no id")?;
        let receipt = message.receipt_handle.context("a message has no receipt handle")?;
        Ok(Self { event, message_id, receipt })
    }

    fn arrival(&self) -> anyhow::Result<Entry> {
        let event = &self.event;
        let launch_at: DateTime<Utc> = event.launch_at.parse().context("a launch instant cannot be read")?;
        Ok(Entry::Arrived(Arrival {
            at_ms: now_ms(),
            event: event.event_id.clone(),
            job: event.job_id.clone(),
            index: event.index,
            launch_ms: launch_at.timestamp_millis(),
            message: self.message_id.clone(),
            throttled: event.token.is_some(),
        }))
    }
}

fn now_ms() -> i64 {
    Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_two_to_four_thirds_of_the_average_and_the_same_each_time() {
        let work = Work::around(Duration::from_millis(1_500), Duration::from_secs(15));
        let times: Vec<_> = (0..20).map(|i| work.time(&format!("batch.1.60.{i}")).as_millis()).collect();
        assert!(times.iter().all(|ms| (1_000..=2_000).contains(ms)), "{times:?}");
        assert!(times.iter().max().unwrap() - times.iter().min().unwrap() > 300, "{times:?}");
        assert_eq!(work.time("batch.1.60.0").as_millis(), times[0]);
        assert_eq!(work.visibility(), Duration::from_secs(10));
    }
}
