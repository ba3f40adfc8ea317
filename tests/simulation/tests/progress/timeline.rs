//! Requests that take time: a clock that goes on only while everybody waits for a reply, and what was sent meanwhile.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tidegate_domain::clock::{Clock as _, ManualClock};
use tidegate_embedded::around;

/// How long a request is on its way, and so is its reply, in milliseconds.
const WAY_MS: i64 = 2;
/// The same for a transaction, or a batch call of SQS.
const LONG_WAY_MS: i64 = 6;

/// What waits for an instant, and what was sent.
pub struct Timeline {
    clock: Arc<ManualClock>,
    sleepers: Mutex<BTreeMap<i64, Vec<Waker>>>,
    log: Mutex<Log>,
}

/// What went over the wire.
#[derive(Debug, Default)]
pub struct Log {
    /// Requests that were served, by operation.
    pub requests: BTreeMap<String, u64>,
    /// Messages that were sent to the dispatch queue.
    pub dispatched: Vec<Dispatched>,
}

/// A message of the dispatch queue.
#[derive(Debug, Clone)]
pub struct Dispatched {
    pub body: String,
    /// When a handler sees it.
    pub visible_at: DateTime<Utc>,
}

impl Timeline {
    pub fn new(clock: Arc<ManualClock>) -> Arc<Self> {
        Arc::new(Self { clock, sleepers: Mutex::default(), log: Mutex::default() })
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<i64, Vec<Waker>>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock on to the next reply, but not beyond `until_ms`.
    pub fn go_on(&self, until_ms: i64) {
        let next = self.sleepers().keys().next().copied().unwrap_or(until_ms).min(until_ms);
        self.clock.advance_ms((next - self.now_ms()).max(0));
        let now = self.now_ms();
        let later = self.sleepers().split_off(&(now + 1));
        let due = std::mem::replace(&mut *self.sleepers(), later);
        due.into_values().flatten().for_each(Waker::wake);
    }

    async fn sleep(&self, ms: i64) {
        let end = self.now_ms() + ms;
        std::future::poll_fn(|context| {
            if self.now_ms() >= end {
                return Poll::Ready(());
            }
            self.sleepers().entry(end).or_default().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn note(&self, operation: &str, body: &[u8]) {
        let mut log = self.log();
        *log.requests.entry(operation.to_owned()).or_default() += 1;
        if operation != "SendMessageBatch" {
            return;
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        if !body["QueueUrl"].as_str().is_some_and(|url| url.ends_with("dispatch")) {
            return;
        }
        for entry in body["Entries"].as_array().into_iter().flatten() {
            let delay = chrono::Duration::seconds(entry["DelaySeconds"].as_i64().unwrap_or_default());
            log.dispatched.push(Dispatched {
                body: entry["MessageBody"].as_str().unwrap_or_default().to_owned(),
                visible_at: self.clock.now() + delay,
            });
        }
    }
}

/// An HTTP client whose requests to `inner` and their replies take their time.
pub fn slow(inner: SharedHttpClient, timeline: &Arc<Timeline>) -> SharedHttpClient {
    let timeline = Arc::clone(timeline);
    around(inner, move |inner, request| {
        let (inner, timeline) = (inner.clone(), Arc::clone(&timeline));
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
            let body = request.body().bytes().unwrap_or_default().to_vec();
            let is_long = ["TransactWriteItems", "SendMessageBatch"].contains(&&*operation);
            let way_ms = if is_long { LONG_WAY_MS } else { WAY_MS };
            timeline.sleep(way_ms).await;
            timeline.note(&operation, &body);
            let reply = inner.call(request).await;
            timeline.sleep(way_ms).await;
            reply
        })
    })
}

/// Work under way in a process, which dies when it is dropped.
pub struct Running<T> {
    work: Pin<Box<dyn Future<Output = T> + Send>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<T> Running<T> {
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Box::pin(work), woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    /// Goes on until it waits for a reply.
    pub fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, Ordering::Relaxed) {
            if let Poll::Ready(answer) = self.work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(answer);
            }
        }
        None
    }
}
