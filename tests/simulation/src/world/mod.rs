//! One deployment in memory, for one test.

mod account;
mod consumer;
mod jobs;
mod pump;
pub mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock, ManualClock, Waiting};
use tidegate_embedded::{ClientOptions, Embedded};
use tidegate_engine::Engine;
use tidegate_engine::random::SeededRandom;
use tidegate_store::Store;
use tidegate_testkit::Deployment;

use crate::gate::{Gate, gated};
use crate::mutants::Mutant;
use crate::pace::{Pace, paced};

pub use account::{Account, Fired, Skipped};
pub use consumer::Received;
pub use jobs::JobSpec;

/// 21 November 2026, 12:00 UTC.
const NOON: i64 = 1_795_262_400;
/// The client of every test that needs only one.
pub const CLIENT: &str = "acme";

/// The clock of an engine that is alone: it is moved on when the engine waits for it.
pub(crate) struct Moved(pub(crate) Arc<ManualClock>);

impl Clock for Moved {
    fn now(&self) -> DateTime<Utc> {
        self.0.now()
    }

    fn wait_until(&self, at: DateTime<Utc>) -> Waiting<'_> {
        // To the millisecond, rounded up: never before.
        let left_us = (at - self.now()).num_microseconds().unwrap_or_default();
        self.0.advance_ms((left_us.max(0) + 999) / 1_000);
        Box::pin(std::future::ready(()))
    }
}

/// Tables, queues and an engine, with a clock that stands still until it is moved.
pub struct World {
    /// The only clock.
    pub clock: Arc<ManualClock>,
    /// The stores.
    pub embedded: Embedded,
    /// The tables and queues on them.
    pub deployment: Deployment,
    /// The engine of most tests.
    pub engine: Engine,
    /// How many other processes there were.
    processes: AtomicU64,
}

impl World {
    /// A world in which it is noon on 21 November 2026.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn new() -> Result<Self> {
        let noon = DateTime::from_timestamp(NOON, 0).context("failed to read the first instant")?;
        Self::at(noon).await
    }

    /// A world at noon, whose clients repeat a failed request twice, at once.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn with_quick_retries() -> Result<Self> {
        let retry = RetryConfig::standard().with_initial_backoff(Duration::ZERO);
        let options = ClientOptions { retry, ..ClientOptions::default() };
        let noon = DateTime::from_timestamp(NOON, 0).context("failed to read the first instant")?;
        Self::with(noon, &options, false).await
    }

    /// A world at noon whose HTTP targets may lie on this machine.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn with_loopback_targets() -> Result<Self> {
        let noon = DateTime::from_timestamp(NOON, 0).context("failed to read the first instant")?;
        Self::with(noon, &ClientOptions::without_retries(), true).await
    }

    /// A world that begins at an instant of the test's choice. No request is repeated by its client.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn at(start: DateTime<Utc>) -> Result<Self> {
        Self::with(start, &ClientOptions::without_retries(), false).await
    }

    async fn with(
        start: DateTime<Utc>,
        options: &ClientOptions,
        allow_private_targets: bool,
    ) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(start));
        let embedded = Embedded::in_memory(clock.clone())?;
        let deployment = Deployment::on(&embedded, options).await?;
        let process = match allow_private_targets {
            true => deployment.process().private_targets(),
            false => deployment.process(),
        };
        let engine = process.start(Arc::new(Moved(clock.clone())));
        Ok(Self { clock, embedded, deployment, engine, processes: AtomicU64::new(0) })
    }

    /// A process of its own behind a gate: an engine that remembers nothing.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn process(&self, gate: &Arc<Gate>) -> Result<Engine> {
        let process = self.deployment.process().random(self.dice());
        let process = process.dynamodb_through(|http| gated(http, gate))?;
        Ok(process.sqs_through(|http| gated(http, gate))?.start(self.clock.clone()))
    }

    /// A process of its own whose requests to the tables go at a pace: an engine that remembers nothing.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn paced(&self, pace: &Arc<Pace>) -> Result<Engine> {
        let process = self.deployment.process().random(self.dice());
        let process = process.dynamodb_through(|http| paced(http, pace, &self.clock))?;
        Ok(process.start(Arc::new(Moved(self.clock.clone()))))
    }

    /// The dice of one more process. No two draw the same: what a process drew says that a write is its own.
    fn dice(&self) -> SeededRandom {
        SeededRandom::new(2 + self.processes.fetch_add(1, Ordering::Relaxed))
    }

    /// The tables as a process sees them whose requests lack a clause.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn store_without(&self, clause: &'static Mutant) -> Result<Store> {
        Ok(self.deployment.process().dynamodb_through(|http| clause.before(http))?.store())
    }

    /// The URL of a consumer's queue, created when it is not there.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn queue(&self, name: &str) -> Result<String> {
        self.deployment.queue(name).await
    }

    /// Moves the clock on.
    pub fn advance(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }
}
