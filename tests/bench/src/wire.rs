//! What passes between a client of the SDK and the embedded services: the processor time that it takes, and the keys that
//! it reads and writes.
//!
//! The embedded services answer within the call and in its thread, so what is added up is the stores' own work: what the
//! SDK does before and after a request is not in it. Processor time, since the machine may have other things to do.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use rustix::time::{ClockId, clock_gettime};
use tidegate_embedded::{Embedded, around};

use crate::ledger::Ledger;

/// The processor time of this thread so far.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Processor time that was spent within requests.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    nanos: AtomicU64,
}

impl Spent {
    /// All of it so far.
    pub(crate) fn so_far(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// Runs a step of a request.
    fn timed<T>(&self, step: impl FnOnce() -> T) -> T {
        let began = processor_time();
        let out = step();
        let nanos = u64::try_from(processor_time().saturating_sub(began).as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        out
    }
}

/// The client, with the processor time of its requests added up.
pub(crate) fn timed(inner: SharedHttpClient, spent: Arc<Spent>) -> SharedHttpClient {
    around(inner, move |inner, request| {
        let spent = Arc::clone(&spent);
        let reply = spent.timed(|| inner.call(request));
        HttpConnectorFuture::new(async move {
            let mut reply = pin!(reply);
            futures::future::poll_fn(|cx| spent.timed(|| reply.as_mut().poll(cx))).await
        })
    })
}

/// The DynamoDB client, with what each key takes noted in `ledger`. Only where one thread does everything: what the meter
/// shows more after a request than before it is the request's.
pub(crate) fn noted(inner: SharedHttpClient, embedded: Embedded, ledger: Arc<Ledger>) -> SharedHttpClient {
    around(inner, move |inner, request| {
        if !ledger.is_open() {
            return inner.call(request);
        }
        let keys = Ledger::keys(&request);
        let before = embedded.meter().snapshot();
        let reply = inner.call(request);
        ledger.note(&keys, &embedded.meter().snapshot().since(&before));
        reply
    })
}
