//! The one place where engines are put together for tests.

use std::sync::Arc;

use anyhow::{Context, Result};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tidegate_domain::clock::Clock;
use tidegate_engine::random::{Random, SeededRandom};
use tidegate_engine::{BusTarget, Config, Engine, Parts, PrivateTargets, Services, Way};
use tidegate_store::{Spread, Store};

/// What the names of the tables begin with.
pub const PREFIX: &str = "test";

/// What processes of a deployment are started with. All that are started with the same one share its clients and its
/// randomness, and nothing else: an engine remembers nothing at its start.
///
/// ```
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # use aws_smithy_runtime_api::client::http::HttpConnector as _;
/// # use chrono::DateTime;
/// # use tidegate_domain::clock::ManualClock;
/// # use tidegate_embedded::{ClientOptions, Embedded, around};
/// # use tidegate_testkit::Deployment;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Arc::new(ManualClock::new(DateTime::UNIX_EPOCH));
/// let embedded = Embedded::in_memory(clock.clone())?;
/// let deployment = Deployment::on(&embedded, &ClientOptions::without_retries()).await?;
/// let (requests, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
/// let counted = Arc::clone(&count);
/// let process = deployment.process().dynamodb_through(|http| {
///     around(http, move |inner, request| {
///         counted.fetch_add(1, Ordering::Relaxed);
///         inner.call(request)
///     })
/// })?;
/// process.start(clock).tick().await?;
/// assert!(count.load(Ordering::Relaxed) > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Process {
    dynamodb: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    way: Way,
    spread: Spread,
    random: Arc<dyn Random>,
    config: Config,
}

impl Process {
    pub(crate) fn new(
        (dynamodb, sqs): (aws_sdk_dynamodb::Client, aws_sdk_sqs::Client),
        way: Way,
        config: Config,
    ) -> Self {
        let random = Arc::new(SeededRandom::new(1));
        Self { dynamodb, sqs, way, spread: Spread::default(), random, config }
    }

    /// With ids of this randomness, in place of a seed that is always the same.
    #[must_use]
    pub fn random(self, random: impl Random) -> Self {
        Self { random: Arc::new(random), ..self }
    }

    /// With rows that are spread otherwise.
    #[must_use]
    pub fn spread(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// With HTTP targets that may lie on this machine.
    #[must_use]
    pub fn private_targets(mut self) -> Self {
        self.config.private_targets = PrivateTargets::All;
        self
    }

    /// With what goes on in policies kept.
    #[must_use]
    pub fn samples(mut self) -> Self {
        self.config.samples = true;
        self
    }

    /// With a bus that what runs and events came to is published to.
    #[must_use]
    pub fn bus(mut self, bus: BusTarget) -> Self {
        self.config.bus = bus;
        self
    }

    /// With other services of AWS that are reached so.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.config.services = services;
        self
    }

    /// With requests to the tables that go through what `before` makes of their HTTP client.
    ///
    /// # Errors
    /// When the client has no HTTP client.
    pub fn dynamodb_through(self, before: impl FnOnce(SharedHttpClient) -> SharedHttpClient) -> Result<Self> {
        let config = self.dynamodb.config();
        let http = before(config.http_client().context("a DynamoDB client has no HTTP client")?);
        let dynamodb = aws_sdk_dynamodb::Client::from_conf(config.to_builder().http_client(http).build());
        Ok(Self { dynamodb, way: Way::default(), ..self })
    }

    /// With requests to the queues that go through what `before` makes of their HTTP client.
    ///
    /// # Errors
    /// When the client has no HTTP client.
    pub fn sqs_through(self, before: impl FnOnce(SharedHttpClient) -> SharedHttpClient) -> Result<Self> {
        let config = self.sqs.config();
        let http = before(config.http_client().context("an SQS client has no HTTP client")?);
        let sqs = aws_sdk_sqs::Client::from_conf(config.to_builder().http_client(http).build());
        Ok(Self { sqs, way: Way::default(), ..self })
    }

    /// The tables as the process sees them.
    pub fn store(&self) -> Store {
        Store::new(self.dynamodb.clone(), PREFIX).with_spread(self.spread).with_way(self.way.clone())
    }

    /// Its client of the tables.
    pub fn dynamodb(&self) -> &aws_sdk_dynamodb::Client {
        &self.dynamodb
    }

    /// Its client of the queues.
    pub fn sqs(&self) -> &aws_sdk_sqs::Client {
        &self.sqs
    }

    /// An engine that remembers nothing, with its clock.
    pub fn start(&self, clock: Arc<dyn Clock>) -> Engine {
        Engine::new(Parts {
            store: self.store(),
            sqs: self.sqs.clone(),
            way: self.way.clone(),
            clock,
            random: Arc::clone(&self.random),
            config: self.config.clone(),
        })
    }
}
