//! A hook around the requests of an SDK client: it sees each on its way, may hold it back, change its reply or answer it.
//!
//! For tests and benchmarks that count requests by key, hold them back or repeat them. What only fails is a
//! [`FaultPlan`](crate::FaultPlan)'s.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::config::RuntimeComponents;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;

/// An HTTP client whose requests go through `hook`, which is given what stands behind it and passes them on, or not.
///
/// ```
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # use aws_smithy_runtime_api::client::http::HttpConnector as _;
/// # use chrono::Utc;
/// # use tidegate_domain::clock::ManualClock;
/// # use tidegate_embedded::{Embedded, around};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let embedded = Embedded::in_memory(Arc::new(ManualClock::new(Utc::now())))?;
/// let (sqs, requests) = (embedded.sqs(), Arc::new(AtomicU32::new(0)));
/// let count = Arc::clone(&requests);
/// let counted = around(sqs.config().http_client().ok_or("no HTTP client")?, move |inner, request| {
///     count.fetch_add(1, Ordering::Relaxed);
///     inner.call(request)
/// });
/// let sqs = aws_sdk_sqs::Client::from_conf(sqs.config().to_builder().http_client(counted).build());
/// sqs.create_queue().queue_name("jobs").send().await?;
/// assert_eq!(requests.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub fn around<H>(inner: SharedHttpClient, hook: H) -> SharedHttpClient
where
    H: Fn(&SharedHttpConnector, HttpRequest) -> HttpConnectorFuture + Send + Sync + 'static,
{
    SharedHttpClient::new(Around { inner, hook: Arc::new(hook) })
}

/// An HTTP client or a connector, and the hook before it.
struct Around<I, H> {
    inner: I,
    hook: Arc<H>,
}

impl<I, H> fmt::Debug for Around<I, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

impl<H> HttpClient for Around<SharedHttpClient, H>
where
    H: Fn(&SharedHttpConnector, HttpRequest) -> HttpConnectorFuture + Send + Sync + 'static,
{
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        parts: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Around { inner, hook: Arc::clone(&self.hook) })
    }
}

impl<H> HttpConnector for Around<SharedHttpConnector, H>
where
    H: Fn(&SharedHttpConnector, HttpRequest) -> HttpConnectorFuture + Send + Sync + 'static,
{
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        (self.hook)(&self.inner, request)
    }
}
