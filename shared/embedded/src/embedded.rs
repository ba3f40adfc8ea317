//! The way in: opens both services and hands out their clients.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use tidegate_calls::Way;
use tidegate_domain::clock::Clock;

use crate::backup::{self, Backup, BackupError};
use crate::connector::{self, ClientOptions, Seam, Services};
use crate::dynamodb::DynamoDb;
use crate::faults::{FaultPlan, Faults};
use crate::folder::{Durability, Folder};
use crate::loopback::{self, Limits};
use crate::meter::Meter;
use crate::sqs::{Failure, OwnQueues, Sqs};

/// Why the embedded services did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the data folder.
    #[error("failed to open {0}: another process is using this data folder")]
    InUse(PathBuf),
    /// The data folder cannot be created or locked.
    #[error("failed to open {0}: {1}")]
    Folder(PathBuf, #[source] std::io::Error),
    /// The tables cannot be opened.
    #[error("failed to open the embedded DynamoDB: {0}")]
    DynamoDb(#[from] dynoxide::DynoxideError),
    /// The queues cannot be opened.
    #[error("failed to open the embedded SQS: {0}")]
    Sqs(#[from] rusqlite::Error),
    /// The system gives no random numbers.
    #[error("failed to draw a seed for message ids: {0}")]
    Seed(#[from] getrandom::Error),
}

/// DynamoDB and SQS in this process. Clones are the same services; the data folder is free again once every clone and
/// every client is dropped.
///
/// ```
/// # use std::sync::Arc;
/// # use chrono::Utc;
/// # use tidegate_domain::clock::ManualClock;
/// # use tidegate_embedded::Embedded;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let embedded = Embedded::in_memory(Arc::new(ManualClock::new(Utc::now())))?;
/// let queue = embedded.sqs().create_queue().queue_name("jobs").send().await?;
/// embedded.sqs().send_message().set_queue_url(queue.queue_url).message_body("hello").send().await?;
/// assert_eq!(embedded.meter().snapshot().queue("jobs", "SendMessage").calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Embedded {
    services: Arc<Services>,
}

impl Embedded {
    /// Empty services in memory, by `clock` and without randomness: the same calls give the same ids.
    ///
    /// # Errors
    /// Only when SQLite cannot open a database in memory.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let dynamodb = DynamoDb::in_memory(Arc::clone(&clock))?;
        Ok(Self::new(dynamodb, Sqs::open(None, clock, 0)?, None))
    }

    /// The services in the data folder `dir`, created when missing and taken for this process alone. Queues go by `clock`;
    /// the TTL of tables by the machine's.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another process has the folder.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>, durability: Durability) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Folder(dir.to_owned(), error);
        let folder = Folder::take(dir).map_err(failed)?.ok_or_else(|| OpenError::InUse(dir.to_owned()))?;
        let dynamodb = DynamoDb::open(&folder.tables().map_err(failed)?, durability)?;
        let sqs = Sqs::open(Some((&folder.queues().map_err(failed)?, durability)), clock, getrandom::u64()?)?;
        Ok(Self::new(dynamodb, sqs, Some(folder)))
    }

    fn new(dynamodb: DynamoDb, sqs: Sqs, folder: Option<Folder>) -> Self {
        let faults = RwLock::default();
        Self { services: Arc::new(Services { dynamodb, sqs, meter: Meter::default(), faults, folder }) }
    }

    /// A DynamoDB client with the default options.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        self.dynamodb_with(&ClientOptions::default())
    }

    /// An SQS client with the default options.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        self.sqs_with(&ClientOptions::default())
    }

    /// A DynamoDB client with these options. Building one takes a while: keep it, clones are cheap.
    pub fn dynamodb_with(&self, options: &ClientOptions) -> aws_sdk_dynamodb::Client {
        connector::dynamodb_client(self.seam(options), options)
    }

    /// An SQS client with these options. Building one takes a while: keep it, clones are cheap.
    pub fn sqs_with(&self, options: &ClientOptions) -> aws_sdk_sqs::Client {
        connector::sqs_client(self.seam(options), options)
    }

    fn seam(&self, options: &ClientOptions) -> Seam {
        Seam::new(Arc::clone(&self.services), options.faults.clone())
    }

    /// The way of calls that go straight.
    pub fn way(&self) -> Way {
        self.way_with(&ClientOptions::default())
    }

    /// The way of calls that go straight, and meet the faults of clients with these options.
    pub fn way_with(&self, options: &ClientOptions) -> Way {
        Way::straight_to(self.connector_with(options)).handing_to(Arc::new(self.seam(options)))
    }

    /// Where the requests of clients without faults of their own end: for who has a request and no client.
    pub fn connector(&self) -> SharedHttpConnector {
        self.connector_with(&ClientOptions::default())
    }

    /// Where the requests of clients with these options end, faults included.
    pub fn connector_with(&self, options: &ClientOptions) -> SharedHttpConnector {
        SharedHttpConnector::new(self.seam(options))
    }

    /// What the requests of all clients have consumed so far.
    pub fn meter(&self) -> &Meter {
        &self.services.meter
    }

    /// Puts a fault plan in force for every client that has none of its own, those handed out before included. The handle
    /// tells of a crash and ends it.
    pub fn inject(&self, plan: impl FaultPlan) -> Faults {
        let faults = Faults::new(plan);
        *self.services.faults.write().unwrap_or_else(PoisonError::into_inner) = Some(faults.clone());
        faults
    }

    /// Ends the fault plan of [`Embedded::inject`].
    pub fn inject_nothing(&self) {
        *self.services.faults.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Copies the data folder to `to`, which must not exist, or be empty: a data folder like this one as of one instant, with all
    /// that was answered before it. Requests are served meanwhile. Blocks its thread for as long as the disk takes.
    ///
    /// # Errors
    /// When the data is in memory, `to` is not such a folder, or the disk fails. Then `to` is as it was.
    pub fn back_up(&self, to: &Path) -> Result<Backup, BackupError> {
        backup::back_up(&self.services, to)
    }

    /// Deletes the items whose TTL has passed, from every table; returns how many. AWS does this within days, so nothing
    /// may depend on when it is called. Costs no units.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sweep_ttl(&self) -> Result<usize, dynoxide::DynoxideError> {
        self.services.dynamodb.sweep_ttl()
    }

    /// Lets everyone who waits in a long poll look at the clock again: call it after moving a clock by hand. Without it they
    /// see the new time within a second.
    pub fn clock_moved(&self) {
        self.services.sqs.wake_all();
    }

    /// Makes what was received from a standard queue and not deleted visible at once; returns how many messages, none when
    /// there is no such queue. Only for a caller who knows that no receiver of the queue is alive.
    ///
    /// # Errors
    /// When the store of the queues fails.
    pub fn release_in_flight(&self, queue_url: &str) -> Result<usize, OpenError> {
        match self.services.sqs.release_in_flight(queue_url) {
            Ok(released) => Ok(released),
            Err(Failure::Refused(_)) => Ok(0),
            Err(Failure::Storage(error)) => Err(error.into()),
        }
    }

    /// Keeps these queues out of the reach of other processes, which come over HTTP. Takes the place of what was hidden before.
    pub fn hide_queues(&self, own: OwnQueues) {
        self.services.sqs.hide(own);
    }

    /// Serves the queues over HTTP on `listener` until `shutdown` resolves, to any AWS SDK that is given the address as
    /// its endpoint. From this call on queue URLs carry the listener's address; URLs given out before stay valid.
    /// Requests that arrive here are not metered and meet no faults, and do not reach the queues of
    /// [`Embedded::hide_queues`].
    ///
    /// Credentials are not checked: bind to a loopback address.
    ///
    /// # Errors
    /// When the listener has no address or the server fails.
    pub fn serve_sqs(
        &self,
        listener: tokio::net::TcpListener,
        limits: Limits,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let services = Arc::clone(&self.services);
        let address = listener.local_addr();
        if let Ok(address) = address {
            services.sqs.set_origin(format!("http://{address}"));
        }
        async move {
            address?;
            loopback::serve_sqs(services, listener, limits, shutdown).await
        }
    }
}
