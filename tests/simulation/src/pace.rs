//! A process whose requests to the tables take time by the clock, and which says how many of them were under way at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpClient};
use serde_json::Value;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::around;

/// How often a request lets others go on before it is made: those of the same call that do not wait for its reply begin then.
const YIELDS: usize = 3;

type Picks = dyn Fn(&str, &Value) -> bool + Send + Sync;

/// What is looked at of a process's requests to the tables.
pub struct Pace {
    picks: Box<Picks>,
    takes_ms: i64,
    seen: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("seen", &self.seen()).finish_non_exhaustive()
    }
}

impl Pace {
    /// Looks at the requests that `picks` says, by their operation and their JSON body.
    pub fn of(picks: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(0, picks)
    }

    /// The same, and each of them takes so long.
    pub fn slow(takes_ms: i64, picks: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Arc<Self> {
        let (seen, under_way, most) = Default::default();
        Arc::new(Self { picks: Box::new(picks), takes_ms, seen, under_way, most })
    }

    /// How many there were.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// How many of them were under way at once, at the most.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    fn begin(&self) {
        self.seen.fetch_add(1, Ordering::Relaxed);
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
    }
}

/// An HTTP client whose requests to `inner` go at a pace.
pub(crate) fn paced(inner: SharedHttpClient, pace: &Arc<Pace>, clock: &Arc<ManualClock>) -> SharedHttpClient {
    let (pace, clock) = (Arc::clone(pace), Arc::clone(clock));
    around(inner, move |inner, request| {
        let (inner, pace, clock) = (inner.clone(), Arc::clone(&pace), Arc::clone(&clock));
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
            let body = serde_json::from_slice(request.body().bytes().unwrap_or_default());
            if !(pace.picks)(&operation, &body.unwrap_or_default()) {
                return inner.call(request).await;
            }
            pace.begin();
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            clock.advance_ms(pace.takes_ms);
            let reply = inner.call(request).await;
            pace.under_way.fetch_sub(1, Ordering::Relaxed);
            reply
        })
    })
}
