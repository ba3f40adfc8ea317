//! The consumer: a few more worker threads than tokens, and a task that deletes in batches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message};
use serde_json::Value;
use tidegate_domain::token::{SignedToken, Token};
use tidegate_engine::{Engine, Outcome, Release, Released};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::book::{Book, Seen};
use crate::client;

/// Workers beyond the tokens: someone always waits for the next event, while others still release.
const SPARE_WORKERS: u32 = 3;
/// How long a receive waits: the most that SQS allows.
const POLL_SECONDS: i32 = 20;
/// Messages of one delete: the most that SQS allows.
const BATCH: usize = 10;
/// The last part of a job is spent awake: the system's timers ring late.
const AWAKE: Duration = Duration::from_micros(300);

/// A consumer of one queue.
#[derive(Clone)]
struct Consumer {
    engine: Engine,
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    work: Duration,
    events: u32,
    book: Arc<Mutex<Book>>,
    /// Whether all events are released.
    over: watch::Sender<bool>,
    /// The receipts of messages that are done with.
    done: UnboundedSender<String>,
}

/// Works on `events` different events of a queue, `work` on each.
pub(super) async fn consume(
    engine: Engine,
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    (tokens, work): (u32, Duration),
    events: u32,
) -> Result<Seen> {
    let (done, receipts) = unbounded_channel();
    let (book, over) = (Arc::new(Mutex::new(Book::default())), watch::Sender::new(false));
    let (deleting, queue) = (sqs.clone(), queue_url.clone());
    let consumer = Consumer { engine, sqs, queue_url, work, events, book: Arc::clone(&book), over, done };
    let mut threads = JoinSet::new();
    for _ in 0..tokens + SPARE_WORKERS {
        let (worker, tokio) = (consumer.clone(), Handle::current());
        threads.spawn_blocking(move || {
            let ended = worker.work_on_all(&tokio);
            // The first failure ends the others too.
            worker.over.send_replace(true);
            ended
        });
    }
    drop(consumer);
    delete_in_batches(&deleting, &queue, receipts).await?;
    while let Some(ended) = threads.join_next().await {
        ended??;
    }
    Ok(std::mem::take(&mut *locked(&book)).seen())
}

impl Consumer {
    /// One worker: receives an event, works on it, releases its token, and so on.
    fn work_on_all(&self, tokio: &Handle) -> Result<()> {
        while let Some(message) = tokio.block_on(self.receive())? {
            let arrived_at = Instant::now();
            let body: Value = serde_json::from_str(&message.body.unwrap_or_default())?;
            let signed: SignedToken = body["token"].as_str().context("an event without a token")?.parse()?;
            let token = signed.token;
            if locked(&self.book).begin(&token, arrived_at) {
                be_busy_until(arrived_at + self.work);
                locked(&self.book).end(&token, arrived_at);
                tokio.block_on(self.release(token))?;
            }
            self.done.send(message.receipt_handle.context("a message without a receipt")?)?;
        }
        Ok(())
    }

    /// The next message; `None` when there will be none.
    async fn receive(&self) -> Result<Option<Message>> {
        let mut over = self.over.subscribe();
        loop {
            let receive = self.sqs.receive_message().queue_url(&self.queue_url);
            let receive = receive.wait_time_seconds(POLL_SECONDS);
            let received = tokio::select! {
                biased;
                _ = over.wait_for(|over| *over) => return Ok(None),
                received = receive.send() => received?,
            };
            if let Some(message) = received.messages.unwrap_or_default().pop() {
                return Ok(Some(message));
            }
            let book = locked(&self.book);
            if book.is_nobody_busy() {
                let (released, events) = (book.released(), self.events);
                bail!("no event came for {POLL_SECONDS} seconds: {released} of {events} were released");
            }
        }
    }

    async fn release(&self, token: Token) -> Result<()> {
        let release = vec![Release::new(token, Outcome::Succeeded)];
        let answers = self.engine.tokens().release(&client()?, release).await?;
        if answers.iter().any(|(_, answer)| *answer != Released::Released) {
            bail!("a token was not released: {answers:?}");
        }
        if locked(&self.book).note_release() == self.events {
            self.over.send_replace(true);
        }
        Ok(())
    }
}

/// Deletes what is done with, together what comes together, until no worker is left.
async fn delete_in_batches(
    sqs: &aws_sdk_sqs::Client,
    queue_url: &str,
    mut receipts: UnboundedReceiver<String>,
) -> Result<()> {
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        if receipts.recv_many(&mut batch, BATCH).await == 0 {
            return Ok(());
        }
        let entries = batch.into_iter().enumerate().map(|(id, receipt)| {
            DeleteMessageBatchRequestEntry::builder().id(id.to_string()).receipt_handle(receipt).build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        sqs.delete_message_batch().queue_url(queue_url).set_entries(Some(entries)).send().await?;
    }
}

/// A job that ends on time.
fn be_busy_until(end: Instant) {
    let left = || end.saturating_duration_since(Instant::now());
    std::thread::sleep(left().saturating_sub(AWAKE));
    while !left().is_zero() {
        std::thread::yield_now();
    }
}

fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
