//! What goes wrong on the way to the services, and what a watcher must look at afterwards.
//!
//! A request is held back once before it is served and once before its reply arrives, so that other work comes between
//! and its caller can die at either place. Beside that it may be refused, dropped, served with its reply lost, or (as an
//! SDK does when it loses a reply) sent a second time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, around};

use super::coverage::{Counter, CoveredFault, FaultCoverage};
use super::dice::Dice;

/// The operations that change something.
const WRITES: [&str; 10] = [
    "UpdateItem",
    "PutItem",
    "DeleteItem",
    "TransactWriteItems",
    "BatchWriteItem",
    "SendMessage",
    "SendMessageBatch",
    "DeleteMessage",
    "DeleteMessageBatch",
    "ReceiveMessage",
];

/// The sort key of a slot group, as it stands in a request.
const SLOTS: &[u8] = br#""slots""#;

/// What may go wrong in a history. Shared by all its clients.
#[derive(Debug)]
pub(crate) struct Chaos {
    dice: Dice,
    /// Faults in a thousand requests.
    rate: u64,
    quiet: AtomicBool,
    requests: AtomicU64,
    touched: Mutex<BTreeSet<String>>,
    counter: Counter,
}

impl Chaos {
    pub(crate) fn new(seed: u64, rate: u64) -> Arc<Self> {
        Arc::new(Self {
            dice: Dice::new(seed),
            rate,
            quiet: AtomicBool::new(true),
            requests: AtomicU64::new(0),
            touched: Mutex::default(),
            counter: Counter::new(),
        })
    }

    pub(crate) fn count(&self, fault: CoveredFault) {
        self.counter.count(fault);
    }

    pub(crate) fn coverage(&self) -> FaultCoverage {
        self.counter.coverage()
    }

    /// With `quiet`, nothing fails and nothing waits. Whether it was so before.
    pub(crate) fn set_quiet(&self, quiet: bool) -> bool {
        self.quiet.swap(quiet, Ordering::Relaxed)
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The partition keys of slot groups that a write was sent to since the last call.
    pub(crate) fn take_touched(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_sent_twice(&self) -> bool {
        !self.is_quiet() && self.rate > 0 && self.dice.chance(self.rate / 2 + 2)
    }

    fn note(&self, request: &HttpRequest) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let is_write = ["UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems"]
            .iter()
            .any(|name| target.ends_with(name));
        if !is_write {
            return;
        }
        let body = request.body().bytes().unwrap_or_default();
        if is_slowed(body) {
            self.count(CoveredFault::Slowed);
        }
        if !body.windows(SLOTS.len()).any(|window| window == SLOTS) {
            return;
        }
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return };
        let writes = body["TransactItems"].as_array().into_iter().flatten();
        let writes = writes.filter_map(|write| write.as_object()?.values().next()).chain([&body]);
        for write in writes {
            let key = if write["Key"].is_object() { &write["Key"] } else { &write["Item"] };
            if key["sk"]["S"] == "slots"
                && let Some(pk) = key["pk"]["S"].as_str()
            {
                self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(pk.to_owned());
            }
        }
    }
}

/// Whether a write says that a consumer cannot keep up: a step of backpressure, as `tidegate_store` has it.
fn is_slowed(body: &[u8]) -> bool {
    const ATTRIBUTE: &[u8] = b"\"backpressure\"";
    // No other document has both members in this order.
    const STEPS: &[u8] = br#"{\"n\":"#;
    const THEN: &[u8] = br#",\"at\":"#;
    let has = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
    let mut places = body.windows(STEPS.len() + 1 + THEN.len());
    has(ATTRIBUTE)
        && places.any(|window| match window.strip_prefix(STEPS) {
            Some([b'1'..=b'9', rest @ ..]) => rest == THEN,
            _ => false,
        })
}

/// The plan that the embedded services ask.
pub(crate) struct Plan(pub(crate) Arc<Chaos>);

impl FaultPlan for Plan {
    fn on_request(&self, call: &Call) -> Fault {
        let chaos = &self.0;
        if chaos.is_quiet() || !chaos.dice.chance(chaos.rate) {
            return Fault::None;
        }
        let (fault, covered) = match chaos.dice.below(4) {
            0 => (Fault::Refuse(Refusal::Throttled), CoveredFault::Throttled),
            1 => (Fault::Refuse(Refusal::Internal), CoveredFault::Internal),
            2 => (Fault::DropBefore, CoveredFault::Dropped),
            _ => (Fault::LoseReply, CoveredFault::LostReply),
        };
        if fault != Fault::LoseReply || WRITES.contains(&&*call.operation) {
            chaos.count(covered);
        }
        fault
    }
}

/// An HTTP client that holds requests back on their way to `inner`.
pub(crate) fn wired(inner: SharedHttpClient, chaos: &Arc<Chaos>) -> SharedHttpClient {
    let chaos = Arc::clone(chaos);
    around(inner, move |inner, request| {
        let (inner, chaos) = (inner.clone(), Arc::clone(&chaos));
        HttpConnectorFuture::new(async move {
            pause(&chaos).await;
            chaos.note(&request);
            if chaos.is_sent_twice()
                && let Some(again) = request.try_clone()
            {
                chaos.count(CoveredFault::SentTwice);
                let _lost = inner.call(again).await;
                pause(&chaos).await;
                chaos.note(&request);
            }
            let reply = inner.call(request).await;
            pause(&chaos).await;
            reply
        })
    })
}

/// Lets whoever polls do something else first.
pub(crate) async fn pause(chaos: &Chaos) {
    if chaos.is_quiet() {
        return;
    }
    let mut paused = false;
    futures::future::poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
