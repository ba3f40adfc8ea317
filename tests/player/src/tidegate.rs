//! Tidegate through its API and its queues, as a service beside it uses them: `tidegate local`, nothing in its process.

use std::borrow::Cow;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, SecondsFormat};
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::book::Book;
use crate::figures::now;
use crate::http::Server;

const WAIT_SECONDS: u64 = 20;
/// Loops of a consumer that nothing throttles, each of which receives ten messages at a time.
const FREE_LOOPS: usize = 8;
/// Loops beyond those that hold all tokens: somebody always waits for the next event.
const SPARE_LOOPS: usize = 3;
const DELETED_AT_ONCE: usize = 10;
/// The last part of an event's work is spent awake: the system's timers ring late.
const AWAKE: Duration = Duration::from_micros(100);

/// Where a server is, and who it belongs to.
#[derive(Deserialize)]
pub struct Address {
    api: String,
    sqs: String,
    queue: String,
    admin_key: String,
    pub pid: u32,
}

/// A registered client of a server.
#[derive(Clone)]
pub struct Tidegate(Arc<Client>);

struct Client {
    api: Server,
    sqs: Server,
    queue: String,
    /// What the API is called with.
    authorization: String,
    /// A policy throttles all jobs where there is one.
    limit: Option<usize>,
}

/// How a consumer works.
#[derive(Clone, Copy)]
pub struct Consumption {
    /// Messages of one receive, at the most.
    pub take: usize,
    /// How long each event is worked on.
    pub work: Option<Duration>,
}

/// Loops that run until they are stopped.
pub struct Consumer {
    loops: JoinSet<Result<()>>,
    running: watch::Sender<bool>,
}

#[derive(Deserialize)]
struct Received<'a> {
    #[serde(rename = "Messages", borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    #[serde(borrow)]
    body: Cow<'a, str>,
    receipt_handle: String,
}

/// What a consumer needs of an event: its number, which a batch's events have as their index, and its token.
#[derive(Deserialize)]
struct Event {
    payload: Option<Numbered>,
    index: Option<usize>,
    token: Option<String>,
}

#[derive(Deserialize)]
struct Numbered {
    n: usize,
}

impl Tidegate {
    /// Registers a client, and a policy where there is a `limit`.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn open(address: Address, limit: Option<usize>) -> Result<Self> {
        let (api, sqs) = (Server::new(&address.api)?, Server::new(&address.sqs)?);
        let authorization = bearer(&address.admin_key);
        let mut client = Client { api, sqs, queue: address.queue, authorization, limit };
        let registered: Value = client.call("/v1/clients", &json!({"client_id": "bench"})).await?;
        client.authorization = bearer(registered["api_key"].as_str().context("the new client has no key")?);
        if let Some(limit) = limit {
            let policy = json!({"policy_id": "limit", "max_in_flight": limit, "lease_seconds": 60});
            client.call("/v1/policies", &policy).await?;
        }
        Ok(Self(Arc::new(client)))
    }

    /// One call for all `numbers`, due at `at`.
    ///
    /// # Errors
    /// When one is refused.
    pub async fn create_bulk(&self, numbers: Range<usize>, at: f64) -> Result<()> {
        let jobs: Vec<Value> = numbers.map(|n| self.0.job(n, at)).collect();
        let answer = self.0.call("/v1/jobs/bulk", &json!({"jobs": jobs})).await?;
        let results = answer["results"].as_array().context("no results of a bulk call")?;
        let refused = results.iter().find(|result| result["status"] != 201);
        ensure!(refused.is_none(), "a job was refused: {refused:?}");
        Ok(())
    }

    /// One call for one job.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn create_one(&self, n: usize, at: f64) -> Result<()> {
        self.0.call("/v1/jobs", &self.0.job(n, at)).await.map(drop)
    }

    /// One job with `count` events, due now.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn create_batch(&self, count: usize) -> Result<()> {
        let mut job = self.0.flow(now());
        job["count"] = json!(count);
        self.0.call("/v1/jobs", &job).await.map(drop)
    }

    /// Begins to consume.
    pub fn consume(&self, book: &Arc<Book>, how: Consumption) -> Consumer {
        let count = self.0.limit.map_or(FREE_LOOPS, |limit| limit.div_ceil(how.take) + SPARE_LOOPS);
        let running = watch::Sender::new(true);
        let mut loops = JoinSet::new();
        for _ in 0..count {
            let (client, book, running) = (Arc::clone(&self.0), Arc::clone(book), running.subscribe());
            loops.spawn(async move { client.consume(&book, how, running).await });
        }
        Consumer { loops, running }
    }
}

impl Consumer {
    /// Waits for `over`, unless a loop fails before it; then stops.
    ///
    /// # Errors
    /// When a loop failed.
    pub async fn consume_until(mut self, over: impl Future<Output = ()>) -> Result<()> {
        tokio::select! {
            () = over => {}
            Some(ended) = self.loops.join_next() => ended??,
        }
        self.running.send_replace(false);
        while let Some(ended) = self.loops.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Client {
    fn flow(&self, at: f64) -> Value {
        // Creates that take longer than the time ahead are late, and not refused.
        let mut job = json!({"trigger": {"at": instant(at), "past": "fire"}, "target": {"sqs": {"queue_url": self.queue}}});
        if self.limit.is_some() {
            job["policy_id"] = json!("limit");
        }
        job
    }

    fn job(&self, n: usize, at: f64) -> Value {
        let mut job = self.flow(at);
        job["payload"] = json!({"n": n});
        job
    }

    async fn call(&self, path: &str, body: &Value) -> Result<Value> {
        let header = ("authorization", self.authorization.as_str());
        let answer = self.api.post(path, "application/json", header, body.to_string().into_bytes()).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    async fn sqs(&self, action: &str, body: &Value) -> Result<Bytes> {
        let header = ("x-amz-target", action);
        self.sqs.post("/", "application/x-amz-json-1.0", header, body.to_string().into_bytes()).await
    }

    /// One loop: receives, works, releases, and deletes ten at a time while it goes on.
    async fn consume(
        self: Arc<Self>,
        book: &Book,
        how: Consumption,
        mut running: watch::Receiver<bool>,
    ) -> Result<()> {
        let receive =
            json!({"QueueUrl": self.queue, "MaxNumberOfMessages": how.take, "WaitTimeSeconds": WAIT_SECONDS});
        let (mut handles, mut deletion) = (Vec::new(), None);
        loop {
            let received = tokio::select! {
                biased;
                _ = running.wait_for(|running| !running) => break,
                received = self.sqs("AmazonSQS.ReceiveMessage", &receive) => received?,
            };
            let Received { messages } = serde_json::from_slice(&received)?;
            let mut tokens = Vec::new();
            let arrived_at = Instant::now();
            for message in &messages {
                let Event { payload, index, token } = serde_json::from_str(&message.body)?;
                book.begin(payload.map(|payload| payload.n).or(index).context("an event without a number")?)?;
                tokens.extend(token);
            }
            if let Some(work) = how.work {
                tokio::task::spawn_blocking(move || work_until(arrived_at + work)).await?;
            }
            book.end(messages.len());
            // The tokens first: the next events wait for them.
            if !tokens.is_empty() {
                self.call("/v1/tokens/release", &json!({"tokens": tokens})).await?;
            }
            handles.extend(messages.into_iter().map(|message| message.receipt_handle));
            if handles.len() < DELETED_AT_ONCE {
                continue;
            }
            ended(deletion.take()).await?;
            deletion = Some(tokio::spawn(Arc::clone(&self).delete(take(&mut handles))));
        }
        ended(deletion).await?;
        while !handles.is_empty() {
            Arc::clone(&self).delete(take(&mut handles)).await?;
        }
        Ok(())
    }

    async fn delete(self: Arc<Self>, handles: Vec<String>) -> Result<()> {
        let entry =
            |(index, handle): (usize, String)| json!({"Id": index.to_string(), "ReceiptHandle": handle});
        let entries: Vec<Value> = handles.into_iter().enumerate().map(entry).collect();
        let body = json!({"QueueUrl": self.queue, "Entries": entries});
        self.sqs("AmazonSQS.DeleteMessageBatch", &body).await.map(drop)
    }
}

async fn ended(deletion: Option<tokio::task::JoinHandle<Result<()>>>) -> Result<()> {
    match deletion {
        Some(deletion) => deletion.await?,
        None => Ok(()),
    }
}

/// The first of `handles`, as many as are deleted at once.
fn take(handles: &mut Vec<String>) -> Vec<String> {
    handles.drain(..handles.len().min(DELETED_AT_ONCE)).collect()
}

/// Works until `end`, in a thread of its own: Tokio's timers count whole milliseconds.
fn work_until(end: Instant) {
    let left = || end.saturating_duration_since(Instant::now());
    std::thread::sleep(left().saturating_sub(AWAKE));
    while !left().is_zero() {
        std::thread::yield_now();
    }
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

fn instant(at: f64) -> String {
    DateTime::from_timestamp_millis(at as i64)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}
