//! A consumer of a queue: receives events, works on several at once, releases their tokens, deletes their messages.
//!
//! A message is deleted only when the API has accepted the release of its token. Whatever goes wrong before that leaves
//! the message in the queue, and it comes again.

#[cfg(test)]
mod fake;
mod messages;
mod releaser;

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::Event;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{error, warn};

use self::messages::{Message, Queue, Received, SqsQueue};
use self::releaser::{Finished, Releaser};
use super::calls::{Boxed, Calls, backoff};
use super::heartbeats::Heartbeats;
use super::lease::Lease;
use super::limits;
use super::periodic::Periodic;
use super::recent::{Ended, Recent};
use super::worker::{EventResult, Work, Worker};
use crate::Client;

/// Works on the events of a queue until it is stopped.
///
/// The function is called with each event and its lease. When it returns `Ok`, the event's token is released as
/// `succeeded`, with the text that it returned if it did; when it returns `Err` or panics, as `failed` with the text of
/// that. Delivery is at least once: [`Event::event_id`] is the idempotency key.
///
/// ```no_run
/// use tidegate_client::{Client, Event, Lease, QueueConsumer};
///
/// async fn work(event: Event, _lease: Lease) -> Result<String, std::io::Error> {
///     Ok(format!("done with {}", event.payload))
/// }
///
/// # async fn consume(sqs: aws_sdk_sqs::Client, stop: impl Future<Output = ()>) -> Result<(), tidegate_client::Error> {
/// let client = Client::new("http://127.0.0.1:8080", "tg_acme_...")?;
/// QueueConsumer::new(&client, sqs, "http://127.0.0.1:9324/000000000000/work", work).concurrency(20).run_until(stop).await;
/// # Ok(())
/// # }
/// ```
pub struct QueueConsumer {
    calls: Arc<Calls>,
    queue: Arc<dyn Queue>,
    work: Work,
    options: Options,
}

#[derive(Debug, Clone, Copy)]
struct Options {
    concurrency: usize,
    visibility: Duration,
    wait: Duration,
    linger: Duration,
    shutdown: Duration,
    remembered_events: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: limits::CONCURRENCY,
            visibility: limits::VISIBILITY,
            wait: limits::WAIT,
            linger: limits::LINGER,
            shutdown: limits::SHUTDOWN,
            remembered_events: limits::REMEMBERED_EVENTS,
        }
    }
}

impl fmt::Debug for QueueConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConsumer").field("options", &self.options).finish_non_exhaustive()
    }
}

impl QueueConsumer {
    /// A consumer of the queue at `queue_url`. Makes no call.
    pub fn new<W, F, R, E>(
        client: &Client,
        sqs: aws_sdk_sqs::Client,
        queue_url: impl Into<String>,
        work: W,
    ) -> Self
    where
        W: Fn(Event, Lease) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: EventResult,
        E: fmt::Display,
    {
        let queue = SqsQueue { sqs, url: queue_url.into() };
        Self::with(Calls::new(client), Arc::new(queue), Work::new(work))
    }

    fn with(calls: Arc<Calls>, queue: Arc<dyn Queue>, work: Work) -> Self {
        Self { calls, queue, work, options: Options::default() }
    }

    /// How many events are worked on at once: 10 unless it is said; 0 counts as 1.
    #[must_use]
    pub fn concurrency(mut self, events: usize) -> Self {
        self.options.concurrency = events.max(1);
        self
    }

    /// How long a message stays invisible after its consumer was killed, in whole seconds: 60 unless it is said, at
    /// least 1 and at most 43,200. While its event is worked on, it is kept invisible.
    #[must_use]
    pub fn visibility(mut self, visibility: Duration) -> Self {
        self.options.visibility = visibility.clamp(limits::SHORTEST_VISIBILITY, limits::LONGEST_VISIBILITY);
        self
    }

    /// How long a receive waits for messages, in whole seconds: 10 unless it is said, and 20 at the most. A shutdown waits for
    /// it.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = wait;
        self
    }

    /// How long a release waits for others to go with it, up to 100: 20 ms unless it is said.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.options.linger = linger;
        self
    }

    /// How long a shutdown waits for what is under way: 20 seconds unless it is said.
    #[must_use]
    pub fn shutdown(mut self, shutdown: Duration) -> Self {
        self.options.shutdown = shutdown;
        self
    }

    /// Of how many events the outcomes are remembered: 10,000 unless it is said.
    #[must_use]
    pub fn remembered_events(mut self, events: usize) -> Self {
        self.options.remembered_events = events;
        self
    }

    /// Works until `stop` is ready, finishes what is under way, and returns.
    ///
    /// What is not finished within [`QueueConsumer::shutdown`] is given up: its lease is lost, its work is dropped, its
    /// token is not released, and its message becomes visible again. A queue that does not answer is asked again, for as
    /// long as it takes. When this is dropped, everything is given up at once.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let Self { calls, queue, work, options } = self;
        let heartbeats = Heartbeats::new(&calls, None);
        let recent = Arc::new(Recent::new(options.remembered_events));
        let worker = Worker { work, recent, heartbeats: Arc::clone(&heartbeats) };
        let invisible = Periodic::new();
        let (finished, releaser) = Releaser::new(&calls, &queue, options.linger);
        let (mut keeping, mut releasing) = (JoinSet::new(), JoinSet::new());
        let _beating = heartbeats.run();
        keeping.spawn(keep_invisible(Arc::clone(&queue), Arc::clone(&invisible), options.visibility));
        releasing.spawn(releaser.run());

        let running = Arc::new(Running { queue, worker, invisible, finished, options });
        let mut handling = JoinSet::new();
        let receiving = running.poll(&mut handling, pin!(stop)).await;
        running.finish(&mut handling, receiving).await;
        heartbeats.give_up();
        handling.shutdown().await;
        drop(running);
        if timeout(limits::RELEASE_GRACE, releasing.join_next()).await.is_err() {
            error!("the last releases were not answered in time: their messages stay in the queue");
        }
    }
}

async fn keep_invisible(queue: Arc<dyn Queue>, invisible: Arc<Periodic<Message>>, visibility: Duration) {
    loop {
        let (ids, messages): (Vec<u64>, Vec<Message>) = invisible.due().await.into_iter().unzip();
        queue.set_visibility(&messages, visibility).await;
        ids.into_iter().for_each(|id| invisible.again(id, visibility / 3));
    }
}

type Receive = Result<Vec<Received>, String>;

/// What the tasks of a running consumer share.
struct Running {
    queue: Arc<dyn Queue>,
    worker: Worker,
    invisible: Arc<Periodic<Message>>,
    finished: mpsc::Sender<Finished>,
    options: Options,
}

impl Running {
    /// Receives messages and begins their events, until it is to stop. Returns the receive that is on its way then.
    async fn poll<'r>(
        self: &'r Arc<Self>,
        handling: &mut JoinSet<()>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Boxed<'r, Receive>> {
        let mut failures = 0;
        loop {
            while handling.try_join_next().is_some() {}
            let room = self.options.concurrency.saturating_sub(handling.len());
            if room == 0 {
                tokio::select! {
                    biased;
                    () = &mut stop => return None,
                    _ = handling.join_next() => continue,
                }
            }
            let mut receiving = self.queue.receive(room, self.options.wait, self.options.visibility);
            let received = tokio::select! {
                biased;
                () = &mut stop => return Some(receiving),
                received = &mut receiving => received,
            };
            match received {
                Ok(received) => {
                    failures = 0;
                    for received in received {
                        handling.spawn(Arc::clone(self).handle(received));
                    }
                }
                Err(error) => {
                    failures += 1;
                    let wait = backoff(failures, 0.0);
                    error!(error, ?wait, "failed to receive messages, trying again");
                    tokio::select! {
                        biased;
                        () = &mut stop => return None,
                        () = sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Waits for what is under way, as long as a shutdown may. What is received meanwhile is visible again at once.
    async fn finish(&self, handling: &mut JoinSet<()>, receiving: Option<Boxed<'_, Receive>>) {
        let put_back = async {
            if let Some(receiving) = receiving
                && let Ok(received) = receiving.await
                && !received.is_empty()
            {
                let messages: Vec<Message> = received.into_iter().map(|received| received.message).collect();
                self.queue.set_visibility(&messages, Duration::ZERO).await;
            }
        };
        let ending =
            async { tokio::join!(put_back, async { while handling.join_next().await.is_some() {} }) };
        if timeout(self.options.shutdown, ending).await.is_err() && !handling.is_empty() {
            warn!("{} events are given up: they were not finished in time", handling.len());
        }
    }

    async fn handle(self: Arc<Self>, received: Received) {
        let Received { message, body, receive_count } = received;
        let invisible = self.invisible.add(message.clone(), self.options.visibility / 3);
        let event: Event = match body.parse() {
            Ok(event) => event,
            Err(error) => {
                error!(message_id = message.message_id, %error, "a message is left in the queue");
                return;
            }
        };
        let held = self.worker.heartbeats.start(&event);
        let ended = self.worker.work_on(event, &held.lease, receive_count > 1).await;
        let release = match (ended, held.lease.token()) {
            (Ended::Left, _) => return,
            (Ended::Known(outcome), Some(token)) => Some(outcome.release(token)),
            (Ended::Known(_), None) | (Ended::LeaseOver, _) => None,
        };
        drop(held);
        // The releaser outlives this.
        let _ = self.finished.send(Finished { release, message, _invisible: invisible }).await;
    }
}

#[cfg(test)]
mod tests;
