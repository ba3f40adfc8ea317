//! An HTTP client in front of another, which adds up the processor time that its requests take.
//!
//! The embedded services answer within the call and in its thread, so what is added up is the stores' own work: what the
//! SDK does before and after a request is not in it. Processor time, since the machine may have other things to do.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::RuntimeComponents;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use rustix::time::{ClockId, clock_gettime};

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

/// The HTTP client.
pub(crate) struct Wire {
    inner: SharedHttpClient,
    spent: Arc<Spent>,
}

impl Wire {
    pub(crate) fn new(inner: SharedHttpClient, spent: Arc<Spent>) -> Self {
        Self { inner, spent }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        parts: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Timed { inner, spent: Arc::clone(&self.spent) })
    }
}

#[derive(Debug)]
struct Timed {
    inner: SharedHttpConnector,
    spent: Arc<Spent>,
}

impl HttpConnector for Timed {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let spent = Arc::clone(&self.spent);
        let reply = spent.timed(|| self.inner.call(request));
        HttpConnectorFuture::new(async move {
            let mut reply = pin!(reply);
            futures::future::poll_fn(|cx| spent.timed(|| reply.as_mut().poll(cx))).await
        })
    }
}
