//! One deployment in memory, for one test.

mod account;
mod consumer;
mod jobs;
mod pump;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use chrono::{DateTime, Utc};
use tidegate_domain::clock::{Clock, ManualClock, Waiting};
use tidegate_embedded::{ClientOptions, Embedded};
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{Config, Engine, Parts};
use tidegate_store::Store;

use crate::gate::{Gate, Gated};
use crate::mutants::Mutant;

pub use account::{Account, Fired, LeftOut};
pub use consumer::Received;
pub use jobs::JobSpec;
pub use pump::{Pumped, delete as pump_delete, receive as pump_receive, receive_count};

/// 21 November 2026, 12:00 UTC.
const NOON: i64 = 1_795_262_400;
/// The client of every test that needs only one.
pub const CLIENT: &str = "acme";
/// What the names of the tables begin with.
pub const PREFIX: &str = "sim";
/// The name of the queue between emission and delivery.
pub const DISPATCH: &str = "dispatch";
/// The name of the queue of the parts of large scans.
pub const SCAN: &str = "scan";
/// The name of the queue that consumers release tokens through.
pub const RELEASES: &str = "releases";

/// The clock of an engine that is alone: it is moved on when the engine waits for it.
struct Moved(Arc<ManualClock>);

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
    /// The engine of most tests.
    pub engine: Engine,
    sqs: aws_sdk_sqs::Client,
    options: ClientOptions,
    dispatch_url: String,
    scan_url: String,
    release_url: String,
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
        let store = Store::new(embedded.dynamodb_with(options), PREFIX);
        store.create_tables().await?;
        let sqs = embedded.sqs_with(options);
        let dispatch_url = create_queue(&sqs, DISPATCH).await?;
        let scan_url = create_queue(&sqs, SCAN).await?;
        let release_url = create_queue(&sqs, RELEASES).await?;
        let config = Config {
            dispatch_queue_url: dispatch_url.clone(),
            scan_queue_url: scan_url.clone(),
            release_queue_url: release_url.clone(),
            allow_private_targets,
        };
        let random = Arc::new(SeededRandom::new(1));
        let own = Arc::new(Moved(clock.clone()));
        let engine = Engine::new(Parts { store, sqs: sqs.clone(), clock: own, random, config });
        let options = options.clone();
        Ok(Self { clock, embedded, engine, sqs, options, dispatch_url, scan_url, release_url })
    }

    /// A process of its own behind a gate: an engine that remembers nothing.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn process(&self, gate: &Arc<Gate>) -> Result<Engine> {
        let missing = "failed to find a client's HTTP client";
        let plain = self.embedded.dynamodb_with(&self.options);
        let inner = plain.config().http_client().context(missing)?;
        let gated = plain.config().to_builder().http_client(Gated::new(inner, gate)).build();
        let store = Store::new(aws_sdk_dynamodb::Client::from_conf(gated), PREFIX);
        let plain = self.embedded.sqs_with(&self.options);
        let inner = plain.config().http_client().context(missing)?;
        let gated = plain.config().to_builder().http_client(Gated::new(inner, gate)).build();
        let sqs = aws_sdk_sqs::Client::from_conf(gated);
        let config = Config {
            dispatch_queue_url: self.dispatch_url.clone(),
            scan_queue_url: self.scan_url.clone(),
            release_queue_url: self.release_url.clone(),
            allow_private_targets: false,
        };
        let random = Arc::new(SeededRandom::new(2));
        Ok(Engine::new(Parts { store, sqs, clock: self.clock.clone(), random, config }))
    }

    /// The tables as a process sees them whose requests lack a clause.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn store_without(&self, clause: &'static Mutant) -> Result<Store> {
        let plain = self.embedded.dynamodb_with(&self.options);
        let inner = plain.config().http_client().context("failed to find a client's HTTP client")?;
        let config = plain.config().to_builder().http_client(clause.before(inner)).build();
        Ok(Store::new(aws_sdk_dynamodb::Client::from_conf(config), PREFIX))
    }

    /// The URL of a consumer's queue, created when it is not there.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn queue(&self, name: &str) -> Result<String> {
        create_queue(&self.sqs, name).await
    }

    /// The URL of the queue between emission and delivery.
    pub fn dispatch_url(&self) -> &str {
        &self.dispatch_url
    }

    /// The URL of the queue of the parts of large scans.
    pub fn scan_url(&self) -> &str {
        &self.scan_url
    }

    /// The URL of the queue that consumers release tokens through.
    pub fn release_url(&self) -> &str {
        &self.release_url
    }

    /// Moves the clock on.
    pub fn advance(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }
}

/// Creates a standard queue whose messages stay hidden for as long as in the template.
///
/// # Errors
/// When SQS refuses.
pub async fn create_queue(sqs: &aws_sdk_sqs::Client, name: &str) -> Result<String> {
    let visibility = aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout;
    let created = sqs.create_queue().queue_name(name).attributes(visibility, "180").send().await?;
    created.queue_url.context("failed to read the URL of a new queue")
}
