//! A running Tidegate: the embedded services, the engine on them, and its loops.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_embedded::{Durability, Embedded, OpenError};
use tidegate_engine::clock::SystemClock;
use tidegate_engine::random::{Random, SystemRandom};
use tidegate_engine::{
    BusTarget, Config, Engine, EngineError, HeartbeatUrl, Parts, PrivateTargets, Services, TickReport,
};
use tidegate_store::{Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info};

use crate::consumer_queue::ConsumerQueue;
use crate::handling::{self, Handling, Inbox};
use crate::queues::{self, PREFIX, QueueError};
use crate::stop::Stop;
use crate::{tending, ticking};

/// How many loops work on parts of large scans: they keep a core busy each.
const SCANNERS: usize = 2;

/// Where a runtime keeps its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it ends with the process.
    Memory,
    /// In a folder, which belongs to one process at a time.
    Folder(PathBuf),
}

/// What a runtime is started with.
#[derive(Clone)]
pub struct Options {
    /// Where the data lies.
    pub place: Place,
    /// What an answer outlasts, where data lies in a folder.
    pub durability: Durability,
    /// What time it is. Waits are in real time and look at this clock again and again.
    pub clock: Arc<dyn Clock>,
    /// Where ids get their randomness.
    pub random: Arc<dyn Random>,
    /// Whether HTTP targets may be private addresses: this machine and the network that it is in.
    pub private_targets: PrivateTargets,
    /// What stands in for other services of AWS.
    pub services: Services,
    /// An address that is told of each tick; `None`: nobody is.
    pub heartbeat: Option<HeartbeatUrl>,
    /// Where what runs and events came to is published.
    pub bus: BusTarget,
    /// How many handlers poll the dispatch queue. They wait for HTTP targets more than they work: several per core.
    pub handlers: usize,
}

impl Options {
    /// The usual ones, with data in `place`: the machine's clock and randomness, private targets, no services of AWS, no
    /// heartbeat, no bus, eight handlers.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            durability: Durability::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            private_targets: PrivateTargets::All,
            services: Services::default(),
            heartbeat: None,
            bus: BusTarget::Off,
            handlers: 8,
        }
    }
}

/// Why a runtime did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The embedded services did not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A table is missing and cannot be created.
    #[error("failed to create the tables: {0}")]
    Tables(#[from] StoreError),
    /// A queue is missing and cannot be created.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// What a former process left cannot be taken over.
    #[error("failed to take over what the last process left: {0}")]
    TakeOver(#[from] EngineError),
}

/// The tables in a data folder, for as long as the store is there. Nothing runs on them, and no other process has the folder.
///
/// # Errors
/// [`OpenError::InUse`] when another process has the folder; otherwise when the tables cannot be opened, or one is missing
/// and cannot be created.
pub async fn tables_in(folder: &Path) -> Result<Store, StartError> {
    let embedded = Embedded::open(folder, Arc::new(SystemClock), Durability::default())?;
    let store = Store::new(embedded.dynamodb(), PREFIX);
    store.create_tables().await?;
    Ok(store)
}

/// A running Tidegate, without its API. Stops when it is dropped, and in good order with [`Runtime::stop`].
///
/// ```
/// # use tidegate_runtime::{Options, Place, Runtime};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::start(Options::new(Place::Memory)).await?;
/// assert!(runtime.engine().store().watermark().await?.is_none_or(|mark| mark.fence > 0));
/// runtime.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    embedded: Embedded,
    engine: Engine,
    stop: watch::Sender<bool>,
    loops: JoinSet<()>,
}

impl Runtime {
    /// Opens the services, takes over what the last process in this place left, and starts the loops. Needs a Tokio
    /// runtime.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another process has the folder; otherwise when the stores fail.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let Options { place, durability, clock, random, private_targets, services, heartbeat, bus, handlers } =
            options;
        let embedded = match &place {
            Place::Memory => Embedded::in_memory(Arc::clone(&clock))?,
            Place::Folder(path) => Embedded::open(path, Arc::clone(&clock), durability)?,
        };
        let store = Store::new(embedded.dynamodb(), PREFIX);
        store.create_tables().await?;
        embedded.hide_queues(queues::hidden_from_others(PREFIX));
        let sqs = embedded.sqs();
        let dispatch = queues::create_dispatch_queue(&sqs, PREFIX).await?;
        let scan_queue_url = queues::create_scan_queue(&sqs, PREFIX).await?;
        let release = queues::create_release_queue(&sqs, PREFIX).await?;
        // The folder's lock says that whoever received these is gone; nobody else has reason to read these queues.
        let mut released = embedded.release_in_flight(&dispatch.url)?;
        released += embedded.release_in_flight(&release.url)?;
        let config = Config {
            dispatch_queue_url: dispatch.url.clone(),
            scan_queue_url: scan_queue_url.clone(),
            release_queue_url: release.url.clone(),
            dead_letter_queue_url: dispatch.dead_letters_url,
            release_dead_letter_queue_url: release.dead_letters_url,
            private_targets,
            services,
            bus,
            samples: true,
        };
        let way = embedded.way();
        let parts = Parts { store, sqs: sqs.clone(), way: way.clone(), clock, random, config };
        let engine = Engine::new(parts).with_heartbeat(heartbeat);
        let taken_over = engine.emission().take_over().await?;
        if released > 0 || taken_over != TickReport::default() {
            info!(
                messages = released,
                policies = taken_over.policies_woken,
                "took over from the last process"
            );
        }

        let (stop, stopping) = watch::channel(false);
        let stopping = Stop::new(stopping);
        let mut loops = JoinSet::new();
        loops.spawn(ticking::tick_each_minute(engine.clone(), stopping.clone()));
        loops.spawn(tending::wake_policies(engine.clone(), stopping.clone()));
        loops.spawn(tending::sweep_expired(embedded.clone(), stopping.clone()));
        let inboxes = std::iter::repeat_n(&dispatch.url, handlers);
        for queue_url in inboxes.chain(std::iter::repeat_n(&scan_queue_url, SCANNERS)) {
            let inbox = Inbox::new((sqs.clone(), way.clone()), queue_url.clone(), Handling::Dispatched);
            loops.spawn(handling::handle_messages(engine.clone(), inbox, stopping.clone()));
        }
        let inbox = Inbox::new((sqs, way), release.url, Handling::Releases);
        loops.spawn(handling::handle_messages(engine.clone(), inbox, stopping));
        Ok(Self { embedded, engine, stop, loops })
    }

    /// The engine, for the API.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Creates a consumer's queue when it is missing, and returns its URL.
    ///
    /// # Errors
    /// When the queue cannot be stored.
    pub async fn create_queue(&self, queue: &ConsumerQueue) -> Result<String, QueueError> {
        queue.create(&self.embedded.sqs()).await
    }

    /// The services, for consumers in this process and to serve the queues.
    pub fn embedded(&self) -> &Embedded {
        &self.embedded
    }

    /// Stops the loops. What is in hand is finished first: a moment, or as long as HTTP targets take to answer.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.loops.join_next().await {
            if let Err(error) = ended {
                error!(%error, "a loop had died");
            }
        }
    }
}
