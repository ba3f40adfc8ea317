//! Event sources: the pollers that take messages from a queue of ours, call a function with them, and delete what it handled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_sqs::types::Message;
use serde_json::{Value, json};
use tidegate_testkit::queue;
use tokio::time::{Instant, sleep, sleep_until};

use super::Account;
use super::invocation::{Answer, Failed, Work};
use crate::function::Function;
use crate::limits::{
    BATCHES_OF_A_POLLER, BYTES_OF_A_POLLER, IDLE_POLLERS_PER_SECOND, MOST_POLLERS, POLL, POLL_AGAIN,
    POLLERS_AT_FIRST, POLLERS_LEFT_BY_A_THROTTLE, POLLERS_PER_MINUTE, POLLS_OF_A_POLLER,
    PROVISIONED_PER_MINUTE, THROTTLED_AGAIN,
};

/// Messages of the dispatch and release queues that are handed over together, as `template.yaml` has it.
pub(crate) const BATCH: i32 = 10;
/// The same of the scan queue.
pub(crate) const SCAN_BATCH: i32 = 1;
/// How long the dispatch and release queues hide what was received, as `template.yaml` has it.
pub(crate) const HIDDEN: Duration = Duration::from_secs(180);
/// The same of the scan queue.
pub(crate) const SCAN_HIDDEN: Duration = Duration::from_secs(330);

/// The pollers of the three queues of ours.
#[derive(Debug, Clone, Copy)]
pub struct AllPollers {
    /// Those of the dispatch queue.
    pub dispatch: Pollers,
    /// Those of the release queue.
    pub release: Pollers,
    /// Those of the scan queue.
    pub scan: Pollers,
}

impl AllPollers {
    /// As `template.yaml` has them, unless it is told otherwise: together they leave some of a new account's concurrency to
    /// the tick and the API.
    pub fn as_deployed() -> Self {
        let at_most = |maximum| Pollers::OnDemand { maximum: Some(maximum) };
        Self { dispatch: at_most(4), release: at_most(2), scan: at_most(2) }
    }

    /// As `docs/operations.md` has them for an account of 1,000 concurrent.
    pub const fn in_large_account() -> Self {
        Self {
            dispatch: Pollers::Provisioned { minimum: 20, maximum: 40 },
            release: Pollers::OnDemand { maximum: Some(50) },
            scan: Pollers::OnDemand { maximum: Some(20) },
        }
    }

    /// Without a maximum.
    pub const fn unlimited() -> Self {
        let pollers = Pollers::OnDemand { maximum: None };
        Self { dispatch: pollers, release: pollers, scan: pollers }
    }
}

/// How many batches an event source has under way at once.
#[derive(Debug, Clone, Copy)]
pub enum Pollers {
    /// From a few on, with more each minute while messages are left, up to a maximum concurrency.
    OnDemand {
        /// The maximum concurrency, when there is one.
        maximum: Option<usize>,
    },
    /// Provisioned ones.
    Provisioned {
        /// Those that are always there.
        minimum: usize,
        /// The most.
        maximum: usize,
    },
}

impl Pollers {
    /// Batches at first, batches that each second adds, and the most.
    fn bounds(self) -> (usize, usize, usize) {
        let a_second = |a_minute: usize| a_minute.div_ceil(60);
        match self {
            Self::OnDemand { maximum } => {
                let most = maximum.unwrap_or(MOST_POLLERS);
                (POLLERS_AT_FIRST.min(most), a_second(POLLERS_PER_MINUTE), most)
            }
            Self::Provisioned { minimum, maximum } => (
                minimum * BATCHES_OF_A_POLLER,
                a_second(PROVISIONED_PER_MINUTE),
                maximum * BATCHES_OF_A_POLLER,
            ),
        }
    }

    /// How long a batch of a poller waits from one poll to the next: a provisioned poller polls only so often, and takes only so
    /// many bytes.
    fn pause_after(self, messages: &[Message]) -> Duration {
        let Self::Provisioned { .. } = self else { return Duration::ZERO };
        let batches = BATCHES_OF_A_POLLER as f64;
        let bytes: usize = messages.iter().filter_map(Message::body).map(str::len).sum();
        let seconds = (batches / POLLS_OF_A_POLLER).max(batches * bytes as f64 / BYTES_OF_A_POLLER);
        Duration::from_secs_f64(seconds)
    }

    /// How many batches there are to be in a second, after one in which so many of those that are there were busy.
    fn wanted(self, there: usize, busy: usize, wanted: usize, was_throttled: bool) -> usize {
        let (at_first, a_second, most) = self.bounds();
        let wanted = match was_throttled {
            true => (wanted as f64 * POLLERS_LEFT_BY_A_THROTTLE) as usize,
            false if busy >= there => there + a_second,
            false if busy < wanted / 2 => wanted - IDLE_POLLERS_PER_SECOND,
            false => wanted,
        };
        wanted.clamp(at_first, most)
    }
}

/// An event source.
#[derive(Debug, Clone)]
pub struct EventSource {
    /// The queue that it polls.
    pub queue_url: String,
    /// What the queue's ARN ends in.
    pub arn_end: &'static str,
    /// The function that it calls.
    pub function: Function,
    /// Messages that it hands over together, at the most.
    pub batch: i32,
    /// How many it has under way.
    pub pollers: Pollers,
    /// How long the queue hides what was received.
    pub hidden: Duration,
}

/// What its pollers share.
struct Polling {
    account: Arc<Account>,
    source: EventSource,
    sqs: aws_sdk_sqs::Client,
    there: AtomicUsize,
    busy: AtomicUsize,
    wanted: AtomicUsize,
    throttled: AtomicUsize,
}

/// Runs an event source until it is dropped. `sqs`: what it polls with.
pub(crate) async fn run(account: Arc<Account>, sqs: aws_sdk_sqs::Client, source: EventSource) {
    let (at_first, ..) = source.pollers.bounds();
    let zero = || AtomicUsize::new(0);
    let wanted = AtomicUsize::new(at_first);
    let polling =
        Arc::new(Polling { account, source, sqs, there: zero(), busy: zero(), wanted, throttled: zero() });
    let mut pollers = tokio::task::JoinSet::new();
    loop {
        let (there, busy) = (polling.there.load(Ordering::Relaxed), polling.busy.load(Ordering::Relaxed));
        let wanted = polling.wanted.load(Ordering::Relaxed);
        let was_throttled = polling.throttled.swap(0, Ordering::Relaxed) > 0;
        let wanted = polling.source.pollers.wanted(there, busy, wanted, was_throttled);
        polling.wanted.store(wanted, Ordering::Relaxed);
        for _ in there..wanted {
            polling.there.fetch_add(1, Ordering::Relaxed);
            pollers.spawn(Arc::clone(&polling).poll());
        }
        while pollers.try_join_next().is_some() {}
        sleep(Duration::from_secs(1)).await;
    }
}

impl Polling {
    async fn poll(self: Arc<Self>) {
        while self.there.load(Ordering::Relaxed) <= self.wanted.load(Ordering::Relaxed) {
            let began = Instant::now();
            let messages = self.receive().await;
            if messages.is_empty() {
                continue;
            }
            let next_at = began + self.source.pollers.pause_after(&messages);
            self.busy.fetch_add(1, Ordering::Relaxed);
            self.hand_over(messages).await;
            self.busy.fetch_sub(1, Ordering::Relaxed);
            sleep_until(next_at).await;
        }
        self.there.fetch_sub(1, Ordering::Relaxed);
    }

    async fn receive(&self) -> Vec<Message> {
        let receive = self.sqs.receive_message().queue_url(&self.source.queue_url);
        let receive = receive
            .max_number_of_messages(self.source.batch)
            .wait_time_seconds(POLL.as_secs() as i32)
            .message_system_attribute_names(
                aws_sdk_sqs::types::MessageSystemAttributeName::ApproximateReceiveCount,
            );
        match receive.send().await {
            Ok(received) => received.messages.unwrap_or_default(),
            Err(_) => {
                sleep(POLL_AGAIN).await;
                Vec::new()
            }
        }
    }

    /// Calls the function, again and again while it is throttled, as long as the messages are hidden.
    async fn hand_over(&self, messages: Vec<Message>) {
        let until = Instant::now() + self.source.hidden;
        let event = event_of(&messages, self.source.arn_end);
        let answer = loop {
            let work = Work::Event(event.clone());
            match self.account.invoke(self.source.function, work).await {
                Err(Failed::Throttled) => self.throttled.fetch_add(1, Ordering::Relaxed),
                Ok(Answer::Event(answer)) => break answer,
                _ => return,
            };
            if Instant::now() + THROTTLED_AGAIN >= until {
                return;
            }
            sleep(THROTTLED_AGAIN).await;
        };
        let failures = answer["batchItemFailures"].as_array().into_iter().flatten();
        let failed: BTreeSet<&str> = failures.filter_map(|of| of["itemIdentifier"].as_str()).collect();
        let done: Vec<Message> = messages
            .into_iter()
            .filter(|message| !failed.contains(message.message_id().unwrap_or_default()))
            .collect();
        // What is not deleted comes again.
        drop(queue::delete(&self.sqs, &self.source.queue_url, &done).await);
    }
}

/// The event that Lambda makes of messages.
fn event_of(messages: &[Message], arn_end: &str) -> Value {
    let record = |message: &Message| {
        json!({
            "messageId": message.message_id(),
            "receiptHandle": message.receipt_handle(),
            "body": message.body(),
            "attributes": {"ApproximateReceiveCount": queue::receive_count(message).to_string()},
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:tidegate-{arn_end}"),
        })
    };
    json!({"Records": messages.iter().map(record).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds until so many batches are under way, while messages are left and nothing is throttled.
    fn seconds_until(pollers: Pollers, batches: usize) -> u32 {
        let (mut there, mut seconds) = (pollers.bounds().0, 0);
        while there < batches {
            there = pollers.wanted(there, there, there, false);
            seconds += 1;
        }
        seconds
    }

    #[test]
    fn pollers_grow_as_fast_as_lambda_says_and_no_further_than_they_may() {
        let on_demand = Pollers::OnDemand { maximum: None };
        assert_eq!(on_demand.bounds().0, 5);
        // 300 more a minute.
        assert_eq!(seconds_until(on_demand, 305), 60);
        assert_eq!(on_demand.wanted(1_250, 1_250, 1_250, false), 1_250);
        let few = Pollers::OnDemand { maximum: Some(4) };
        assert_eq!((few.bounds().0, few.wanted(4, 4, 4, false)), (4, 4));
        // Ten batches each, and 1,000 more a minute.
        let provisioned = Pollers::Provisioned { minimum: 20, maximum: 100 };
        assert_eq!((provisioned.bounds().0, seconds_until(provisioned, 1_000)), (200, 48));
        assert_eq!(provisioned.wanted(1_000, 1_000, 1_000, false), 1_000);
    }

    #[test]
    fn pollers_become_fewer_when_they_are_idle_or_throttled_and_stay_as_many_as_at_first() {
        let on_demand = Pollers::OnDemand { maximum: None };
        assert_eq!(on_demand.wanted(100, 10, 100, false), 99);
        assert_eq!(on_demand.wanted(100, 100, 100, true), 90);
        assert_eq!(on_demand.wanted(5, 0, 5, true), 5);
        assert_eq!(on_demand.wanted(100, 60, 100, false), 100);
    }

    #[test]
    fn a_provisioned_poller_polls_ten_times_and_takes_a_megabyte_a_second() {
        let provisioned = Pollers::Provisioned { minimum: 1, maximum: 1 };
        let of = |bytes: usize| vec![Message::builder().body("x".repeat(bytes)).build()];
        assert_eq!(provisioned.pause_after(&of(10)), Duration::from_secs(1));
        assert_eq!(provisioned.pause_after(&of(1024 * 1024)), Duration::from_secs(10));
        assert_eq!(Pollers::OnDemand { maximum: None }.pause_after(&of(1024 * 1024)), Duration::ZERO);
    }
}
