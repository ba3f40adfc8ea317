//! A deployment whose tables can be restored.

use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::DateTime;
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::{ClientOptions, Embedded};
use tidegate_engine::Engine;
use tidegate_engine::random::SeededRandom;
use tidegate_store::Store;
use tidegate_testkit::{Deployment, Process};

use super::snapshots::Snapshots;
use crate::world::Moved;

/// 21 November 2026, 12:00 UTC.
const NOON: i64 = 1_795_262_400;

/// A deployment, and what stands before its tables.
pub(super) struct Site {
    pub(super) clock: Arc<ManualClock>,
    pub(super) deployment: Deployment,
    pub(super) queue_url: String,
    pub(super) snapshots: Arc<Snapshots>,
    process: Process,
}

impl Site {
    pub(super) async fn new(seed: u64) -> Result<Self> {
        let noon = DateTime::from_timestamp(NOON, 0).context("failed to read the first instant")?;
        let clock = Arc::new(ManualClock::new(noon));
        let embedded = Embedded::in_memory(clock.clone())?;
        let deployment = Deployment::on(&embedded, &ClientOptions::without_retries()).await?;
        let queue_url = deployment.queue("jobs").await?;
        let snapshots =
            Snapshots::new(clock.clone(), embedded.dynamodb_with(&ClientOptions::without_retries()));
        let process = deployment.process().random(SeededRandom::new(seed));
        let process = process.dynamodb_through(|http| snapshots.before(http))?;
        Ok(Self { clock, deployment, queue_url, snapshots, process })
    }

    /// An engine that remembers nothing. Few single events wait in packs, so that both ways are taken.
    pub(super) fn start(&self) -> Engine {
        self.process.start(Arc::new(Moved(self.clock.clone()))).with_few(3)
    }

    pub(super) fn store(&self) -> Store {
        self.process.store()
    }

    pub(super) fn advance_seconds(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }

    /// Whoever makes requests dies after so many.
    pub(super) fn kill_after(&self, requests: u64) {
        self.snapshots.serve(Some(requests + 1));
    }

    pub(super) fn revive(&self) {
        self.snapshots.serve(None);
    }

    /// Restores the tables, and empties our own queues if `purges`.
    pub(super) async fn restore(&self, purges: bool) -> Result<()> {
        self.snapshots.restore().await?;
        if purges {
            let sqs = &self.deployment.sqs;
            for url in [self.deployment.dispatch_url(), self.deployment.scan_url()] {
                sqs.purge_queue().queue_url(url).send().await?;
            }
        }
        Ok(())
    }
}
