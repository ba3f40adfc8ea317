//! Tables and queues of one deployment.

use anyhow::Result;
use tidegate_embedded::{ClientOptions, Embedded};
use tidegate_engine::{BusTarget, Config, PrivateTargets, Services, Way};
use tidegate_store::Store;

use crate::process::{PREFIX, Process};
use crate::queue;

/// The name of the queue between emission and delivery.
pub const DISPATCH: &str = "dispatch";
/// The name of the queue of the parts of large scans.
pub const SCAN: &str = "scan";
/// The name of the queue that consumers release tokens through.
pub const RELEASES: &str = "releases";
/// The name of the queue where messages of the first two end that will never be handled.
pub const DEAD_LETTERS: &str = "dispatch-dead-letters";
/// The name of the same for the release queue.
pub const DEAD_RELEASES: &str = "releases-dead-letters";

/// The tables and queues of one deployment, on embedded services that its world has. Processes are started on it with
/// [`Deployment::process`].
pub struct Deployment {
    /// A client of the queues that nothing stands before.
    pub sqs: aws_sdk_sqs::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    way: Way,
    config: Config,
}

impl Deployment {
    /// Creates tables and queues on these services where they are missing. Its clients behave as `clients` says.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn on(embedded: &Embedded, clients: &ClientOptions) -> Result<Self> {
        let (dynamodb, sqs) = (embedded.dynamodb_with(clients), embedded.sqs_with(clients));
        Store::new(dynamodb.clone(), PREFIX).create_tables().await?;
        let config = Config {
            dispatch_queue_url: queue::create(&sqs, DISPATCH).await?,
            scan_queue_url: queue::create(&sqs, SCAN).await?,
            release_queue_url: queue::create(&sqs, RELEASES).await?,
            dead_letter_queue_url: queue::create(&sqs, DEAD_LETTERS).await?,
            release_dead_letter_queue_url: queue::create(&sqs, DEAD_RELEASES).await?,
            private_targets: PrivateTargets::None,
            services: Services::default(),
            bus: BusTarget::Off,
            samples: false,
        };
        Ok(Self { sqs, dynamodb, way: way_of(embedded, clients), config })
    }

    /// What a process is started with that has the deployment's own clients.
    pub fn process(&self) -> Process {
        Process::new((self.dynamodb.clone(), self.sqs.clone()), self.way.clone(), self.config.clone())
    }

    /// What a process is started with whose clients are others: with faults of their own, for example.
    pub fn process_with(&self, embedded: &Embedded, clients: &ClientOptions) -> Process {
        let sdk = (embedded.dynamodb_with(clients), embedded.sqs_with(clients));
        Process::new(sdk, way_of(embedded, clients), self.config.clone())
    }

    /// The URL of a consumer's queue, created when it is not there.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn queue(&self, name: &str) -> Result<String> {
        queue::create(&self.sqs, name).await
    }

    /// What its processes are configured with: the URLs of its own queues.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The URL of the queue between emission and delivery.
    pub fn dispatch_url(&self) -> &str {
        &self.config.dispatch_queue_url
    }

    /// The URL of the queue of the parts of large scans.
    pub fn scan_url(&self) -> &str {
        &self.config.scan_queue_url
    }
}

/// Calls of clients that make no retries go straight, each as one request: they are the same, and take less time.
fn way_of(embedded: &Embedded, clients: &ClientOptions) -> Way {
    match clients.retry.max_attempts() {
        1 => embedded.way_with(clients).once(),
        _ => Way::default(),
    }
}
