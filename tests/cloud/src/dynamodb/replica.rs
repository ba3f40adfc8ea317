//! Eventually consistent reads: a second copy of the tables, to which every write comes after a while.
//!
//! Writes are repeated on the copy in their order, so that each finds what it found on the first: the copy is the tables as
//! they were some time ago.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use tidegate_embedded::Embedded;
use tidegate_store::Store;
use tidegate_testkit::PREFIX;
use tokio::time::Instant;

use super::request::{Kind, Wanted};
use crate::clock::VirtualClock;
use crate::reply::Answer;

/// The copy, and the writes that are on their way to it.
pub(crate) struct Replica {
    embedded: Embedded,
    copy: SharedHttpConnector,
    lag: Duration,
    on_their_way: Mutex<VecDeque<(Instant, HttpRequest)>>,
}

impl Replica {
    /// Empty tables, this much behind.
    pub(crate) async fn new(clock: VirtualClock, lag: Duration) -> anyhow::Result<Self> {
        let copy = Embedded::in_memory(Arc::new(clock))?;
        Store::new(copy.dynamodb(), PREFIX).create_tables().await?;
        Ok(Self { copy: copy.connector(), embedded: copy, lag, on_their_way: Mutex::default() })
    }

    /// Serves a request: by the copy, when it may be behind.
    pub(crate) async fn serve(
        &self,
        first: &SharedHttpConnector,
        request: HttpRequest,
        wanted: &Wanted,
    ) -> Answer {
        if wanted.kind == Kind::Read {
            if wanted.is_consistent() {
                return first.call(request).await;
            }
            loop {
                let Some(write) = self.arrived() else { break };
                drop(self.copy.call(write).await);
            }
            return self.copy.call(request).await;
        }
        self.write(first, request).await
    }

    /// Serves a write: it comes to the copy later.
    pub(crate) async fn write(&self, first: &SharedHttpConnector, request: HttpRequest) -> Answer {
        let write = request.try_clone();
        let answer = first.call(request).await;
        let at = Instant::now() + self.lag;
        if let (Ok(_), Some(write)) = (&answer, write) {
            self.locked().push_back((at, write));
        }
        answer
    }

    /// Deletes what has expired, after all writes that were made before: one of them may have made a row last longer.
    pub(crate) async fn sweep_ttl(&self) {
        loop {
            let Some((_, write)) = self.locked().pop_front() else { break };
            drop(self.copy.call(write).await);
        }
        drop(self.embedded.sweep_ttl());
    }

    fn arrived(&self) -> Option<HttpRequest> {
        let now = Instant::now();
        self.locked().pop_front_if(|(at, _)| *at <= now).map(|(_, write)| write)
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<(Instant, HttpRequest)>> {
        self.on_their_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
