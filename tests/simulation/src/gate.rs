//! Processes that are let through request by request: a test chooses who makes the next one.
//!
//! A [`Gate`] stands in the way of a process's requests, where the SDK hands them to its HTTP client. A [`Task`] is a
//! call of that process, polled by hand. Between two requests a process only computes, so every interleaving of what
//! two processes do to the tables and queues is an interleaving of their requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use tidegate_embedded::around;

/// Polls in which a call must come to its next request.
const POLLS: u32 = 10_000;
/// Polls without anything new after which a call is known to wait at its gate.
const CALM_POLLS: u32 = 3;

type Stops = dyn Fn(&Value) -> bool + Send + Sync;

/// What stands in the way of one process's requests.
pub struct Gate {
    open: AtomicBool,
    permits: AtomicU32,
    waiting: AtomicU32,
    under_way: AtomicU32,
    events: AtomicU32,
    /// Which requests wait, by their JSON body. The others pass: they touch nothing that anybody else does.
    stops: Mutex<Arc<Stops>>,
    /// The `planned_to` that every read of the watermark is answered with; 0: the true one.
    watermark_lie_s: AtomicI64,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            open: AtomicBool::new(true),
            permits: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            events: AtomicU32::new(0),
            stops: Mutex::new(Arc::new(|_: &Value| true)),
            watermark_lie_s: AtomicI64::new(0),
        }
    }
}

impl Gate {
    /// Requests for which `stops` says no pass a closed gate. It sees the request's JSON body.
    pub fn stop_only(&self, stops: impl Fn(&Value) -> bool + Send + Sync + 'static) {
        *self.stops.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(stops);
    }

    /// From now on, this process sees the watermark where it was: what a process would see that reads it too early.
    pub fn freeze_watermark(&self, planned_to_s: i64) {
        self.watermark_lie_s.store(planned_to_s, Ordering::Relaxed);
    }

    fn is_stopped(&self, body: &Value) -> bool {
        let stops = Arc::clone(&self.stops.lock().unwrap_or_else(PoisonError::into_inner));
        stops(body)
    }

    async fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
        futures::future::poll_fn(|cx| {
            if self.open.load(Ordering::Relaxed) || self.take_permit() {
                return Poll::Ready(());
            }
            // Whoever polls by hand has no other way to find it again among the requests of one call.
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    fn take_permit(&self) -> bool {
        let less = |permits: u32| permits.checked_sub(1);
        self.permits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn answer(&self, body: &Value, mut reply: HttpResponse) -> HttpResponse {
        let lie_s = self.watermark_lie_s.load(Ordering::Relaxed);
        if lie_s == 0 || body["Key"]["pk"]["S"] != "watermark" || !body["UpdateExpression"].is_null() {
            return reply;
        }
        let Some(Ok(mut row)) = reply.body().bytes().map(serde_json::from_slice::<Value>) else {
            return reply;
        };
        row["Item"]["planned_to"]["N"] = lie_s.to_string().into();
        let text = row.to_string();
        // What says how long the body was, or what it hashed to, is no longer true.
        for header in ["content-length", "x-amz-crc32"] {
            reply.headers_mut().remove(header);
        }
        *reply.body_mut() = SdkBody::from(text);
        reply
    }
}

/// An HTTP client whose requests pass `gate` on their way to `inner`.
pub fn gated(inner: SharedHttpClient, gate: &Arc<Gate>) -> SharedHttpClient {
    let gate = Arc::clone(gate);
    around(inner, move |inner, request| {
        let (inner, gate) = (inner.clone(), Arc::clone(&gate));
        HttpConnectorFuture::new(async move {
            let body = request.body().bytes().unwrap_or_default();
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            if gate.is_stopped(&body) {
                gate.pass().await;
            }
            gate.under_way.fetch_add(1, Ordering::Relaxed);
            let reply = inner.call(request).await;
            gate.under_way.fetch_sub(1, Ordering::Relaxed);
            gate.events.fetch_add(1, Ordering::Relaxed);
            reply.map(|reply| gate.answer(&body, reply))
        })
    })
}

/// A call of a process, under way.
pub struct Task<T> {
    gate: Arc<Gate>,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    answer: Option<T>,
    begun: bool,
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("ended", &self.answer.is_some()).finish_non_exhaustive()
    }
}

impl<T> Task<T> {
    /// A call of the process behind `gate`, which is closed from now on. Nothing happens until the first step.
    pub fn new(gate: &Arc<Gate>, call: impl Future<Output = T> + Send + 'static) -> Self {
        gate.open.store(false, Ordering::Relaxed);
        Self { gate: Arc::clone(gate), future: Box::pin(call), answer: None, begun: false }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    /// Lets its next request through. Whether there was one.
    pub fn step(&mut self) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            self.go_on();
        }
        if self.is_over() {
            return false;
        }
        self.gate.permits.store(1, Ordering::Relaxed);
        self.go_on();
        true
    }

    /// Polls until it waits at its gate, or ends.
    fn go_on(&mut self) {
        let (mut seen, mut calm) = (self.gate.events.load(Ordering::Relaxed), 0);
        for _ in 0..POLLS {
            if self.is_over() {
                return;
            }
            if let Poll::Ready(answer) = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                self.answer = Some(answer);
                return;
            }
            let events = self.gate.events.load(Ordering::Relaxed);
            let waits = self.gate.permits.load(Ordering::Relaxed) == 0
                && self.gate.waiting.load(Ordering::Relaxed) > 0
                && self.gate.under_way.load(Ordering::Relaxed) == 0;
            calm = if waits && events == seen { calm + 1 } else { 0 };
            seen = events;
            if calm >= CALM_POLLS {
                return;
            }
        }
    }

    /// Lets at most so many requests through; how many there were.
    pub fn steps(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.step()).count()
    }

    /// Goes on to the end.
    pub fn finish(mut self) -> Option<T> {
        while self.step() {}
        self.gate.open.store(true, Ordering::Relaxed);
        self.answer
    }
}
