//! The engine: its parts, put together once per process.

use std::sync::Arc;

use futures::future::BoxFuture;
use tidegate_calls::Way;
use tidegate_domain::arn::{Arn, partition_of};
use tidegate_domain::clock::Clock;
use tidegate_domain::lateness::Lateness;
use tidegate_store::Store;

use crate::bus::Bus;
use crate::calendars::Calendars;
use crate::contents::Contents;
use crate::counters::Counter;
use crate::dead_letters::DeadLetters;
use crate::deletions::Deletions;
use crate::deliver::Delivery;
use crate::deliver::aws_call::AwsCaller;
use crate::deliver::http::{Callee, HttpTarget};
use crate::effect_loop::EffectLoop;
use crate::emit::Emission;
use crate::gather::Gathered;
use crate::handle::Handler;
use crate::heartbeat::{Heartbeat, HeartbeatUrl};
use crate::index::Index;
use crate::jobs::Jobs;
use crate::jobs::places::Places;
use crate::pauses::Pauses;
use crate::policies::Policies;
use crate::queries::Queries;
use crate::queues::{Config, Handled, Queues};
use crate::quotas::QuotaTaker;
use crate::random::Random;
use crate::regions::Regions;
use crate::samples::Samples;
use crate::secrets::Secrets;
use crate::sidelining::Sidelining;
use crate::suspension::Suspensions;
use crate::throttle::Throttle;
use crate::token_key::TokenKeys;
use crate::tokens::{Together, Tokens};
use crate::watches::Watches;
use crate::{EngineError, TickReport};

/// What an engine is made of.
#[derive(Clone)]
pub struct Parts {
    /// The tables of the deployment.
    pub store: Store,
    /// SQS, for our own queues and those of consumers.
    pub sqs: aws_sdk_sqs::Client,
    /// Which way the calls go that are made for each event.
    pub way: Way,
    /// What time it is: the engine asks nothing else.
    pub clock: Arc<dyn Clock>,
    /// Where ids, the numbers of writes, the token key and the nonces of what is encrypted get their randomness.
    pub random: Arc<dyn Random>,
    /// What differs between deployments.
    pub config: Config,
}

/// The engine. Cheap to clone.
///
/// What functions hand over is called on it; what clients ask is asked of its parts. All of them answer with a boxed future:
/// it is compiled here, once, and not in each crate that awaits it. Only a dry run, which tells an observer of its caller's, cannot.
///
/// ```
/// use tidegate_engine::{Engine, EngineError, Parts, TickReport};
///
/// async fn each_minute(parts: Parts) -> Result<TickReport, EngineError> {
///     let engine = Engine::new(parts);
///     engine.tick().await
/// }
/// ```
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
    handler: Arc<Handler>,
    queues: Arc<Queues>,
    index: Arc<Index>,
    emission: Arc<Emission>,
    tokens: Arc<Tokens>,
    jobs: Arc<Jobs>,
    policies: Arc<Policies>,
    calendars: Arc<Calendars>,
    secrets: Arc<Secrets>,
    dead_letters: Arc<DeadLetters>,
    queries: Arc<Queries>,
    quotas: Arc<QuotaTaker>,
    sidelining: Arc<Sidelining>,
    suspensions: Arc<Suspensions>,
    deletions: Arc<Deletions>,
    heartbeat: Option<Arc<Heartbeat>>,
    bus: Option<Arc<Bus>>,
    lateness: Option<Arc<Counter<Lateness>>>,
}

/// Single events of one line and minute that are too few for a pack, unless a test says otherwise.
const FEW: usize = 10;

impl Engine {
    /// Puts an engine together. Makes no call.
    pub fn new(parts: Parts) -> Self {
        Self::build(Arc::new(parts), FEW, None)
    }

    /// The same engine, which takes up to `few` single events of one line and minute for too few for a pack; 10
    /// otherwise. For tests: a small world has few.
    #[must_use]
    pub fn with_few(self, few: usize) -> Self {
        Self::build(self.parts, few, None)
    }

    /// The same as [`Self::with_few`], and somebody answers its calls to HTTP endpoints in the place of the network. For
    /// simulations.
    #[must_use]
    pub fn with_few_and_callee(self, few: usize, callee: Arc<dyn Callee>) -> Self {
        Self::build(self.parts, few, Some(callee))
    }

    /// The same engine, whose ticks tell an address that they were there, if there is one.
    #[must_use]
    pub fn with_heartbeat(self, url: Option<HeartbeatUrl>) -> Self {
        Self { heartbeat: url.map(Heartbeat::new).map(Arc::new), ..self }
    }

    fn build(parts: Arc<Parts>, few: usize, callee: Option<Arc<dyn Callee>>) -> Self {
        let Parts { store, sqs, way, clock, random, config } = Parts::clone(&parts);
        let pauses = Pauses { clock: Arc::clone(&clock), random: Arc::clone(&random) };
        let store = store.with_pauses(pauses.clone()).with_way(way.clone());
        let http = HttpTarget::new(config.private_targets.clone()).answered_by(callee);
        let aws = AwsCaller::new(config.services.clone());
        let keeps_samples = config.samples;
        let regions = Arc::new(Regions::new(sqs.clone(), way));
        let bus = Bus::at(&config.bus, Arc::clone(&clock), Arc::clone(&regions)).map(Arc::new);
        let store = store.with_journal(bus.as_ref().map(|bus| Arc::clone(bus.journal())));
        let queues = Arc::new(Queues::new(sqs, Arc::clone(&regions), Arc::clone(&clock), pauses, config));
        let contents = Arc::new(Contents::new(store.clone(), Arc::clone(&clock)));
        let keys = Arc::new(TokenKeys::new(store.clone(), Arc::clone(&random)));
        let secrets =
            Arc::new(Secrets::new(store.clone(), Arc::clone(&clock), Arc::clone(&random), Arc::clone(&keys)));
        let index = Arc::new(Index::new(store.clone(), Arc::clone(&clock)));
        let throttle = Arc::new(Throttle::new(
            store.clone(),
            Arc::clone(&clock),
            Arc::clone(&random),
            Arc::clone(&queues),
            Arc::clone(&contents),
        ));
        let lateness = keeps_samples.then(|| Arc::new(Counter::new(store.clone(), Arc::clone(&clock))));
        let delivery = Arc::new(Delivery {
            store: store.clone(),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            regions,
            http,
            aws,
            queues: Arc::clone(&queues),
            contents: Arc::clone(&contents),
            keys: Arc::clone(&keys),
            secrets: Arc::clone(&secrets),
            bus: bus.clone(),
            lateness: lateness.clone(),
        });
        let effects = Arc::new(EffectLoop {
            clock: Arc::clone(&clock),
            queues: Arc::clone(&queues),
            throttle: Arc::clone(&throttle),
            delivery: Arc::clone(&delivery),
            bus: bus.clone(),
        });
        let tokens = Arc::new(Tokens {
            store: store.clone(),
            clock: Arc::clone(&clock),
            queues: Arc::clone(&queues),
            contents: Arc::clone(&contents),
            keys,
            throttle: Arc::clone(&throttle),
            effects: Arc::clone(&effects),
            together: Together::default(),
        });
        let emission = Arc::new(Emission {
            store: store.clone(),
            clock: Arc::clone(&clock),
            queues: Arc::clone(&queues),
            contents: Arc::clone(&contents),
            index: Arc::clone(&index),
            throttle: Arc::clone(&throttle),
            few,
            usage: keeps_samples.then(|| Counter::new(store.clone(), Arc::clone(&clock))),
            gathered: Gathered::default(),
            bus: bus.clone(),
        });
        let queries = Arc::new(Queries {
            store: store.clone(),
            clock: Arc::clone(&clock),
            contents: Arc::clone(&contents),
            throttle: Arc::clone(&throttle),
        });
        let quotas = Arc::new(QuotaTaker { store: store.clone(), clock: Arc::clone(&clock) });
        let jobs = Arc::new(Jobs {
            store: store.clone(),
            clock: Arc::clone(&clock),
            random,
            contents: Arc::clone(&contents),
            index: Arc::clone(&index),
            throttle: Arc::clone(&throttle),
            effects: Arc::clone(&effects),
            tokens: Arc::clone(&tokens),
            emission: Arc::clone(&emission),
            queries: Arc::clone(&queries),
            places: Places::default(),
            gathered: Gathered::default(),
            looks: Gathered::default(),
        });
        let samples = keeps_samples.then(|| Samples {
            store: store.clone(),
            clock: Arc::clone(&clock),
            throttle: Arc::clone(&throttle),
        });
        let policies = Arc::new(Policies {
            store: store.clone(),
            clock: Arc::clone(&clock),
            throttle,
            effects: Arc::clone(&effects),
            tokens: Arc::clone(&tokens),
            queries: Arc::clone(&queries),
        });
        let sidelining = Arc::new(Sidelining {
            store: store.clone(),
            clock: Arc::clone(&clock),
            contents: Arc::clone(&contents),
            queues: Arc::clone(&queues),
            policies: Arc::clone(&policies),
            tokens: Arc::clone(&tokens),
        });
        let suspensions = Arc::new(Suspensions {
            store: store.clone(),
            clock: Arc::clone(&clock),
            sidelining: Arc::clone(&sidelining),
        });
        let deletions = Arc::new(Deletions {
            store: store.clone(),
            clock: Arc::clone(&clock),
            queues: Arc::clone(&queues),
            sidelining: Arc::clone(&sidelining),
        });
        let dead_letters = Arc::new(DeadLetters {
            store: store.clone(),
            clock: Arc::clone(&clock),
            contents: Arc::clone(&contents),
            queues: Arc::clone(&queues),
        });
        let watches = Arc::new(Watches {
            store: store.clone(),
            clock: Arc::clone(&clock),
            contents: Arc::clone(&contents),
            queues: Arc::clone(&queues),
            queries: Arc::clone(&queries),
        });
        let calendars = Arc::new(Calendars { store, clock, contents });
        let handler = Arc::new(Handler {
            queues: Arc::clone(&queues),
            delivery,
            effects,
            tokens: Arc::clone(&tokens),
            emission: Arc::clone(&emission),
            deletions: Arc::clone(&deletions),
            watches,
            samples,
        });
        Self {
            parts,
            handler,
            queues,
            index,
            emission,
            tokens,
            jobs,
            policies,
            calendars,
            secrets,
            dead_letters,
            queries,
            quotas,
            sidelining,
            suspensions,
            deletions,
            heartbeat: None,
            bus,
            lateness,
        }
    }

    /// The clock that the engine goes by, as it was given.
    pub fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// Why nothing can be sent to what an ARN stands for, and what to do about it; `None` when it can, as far as anybody knows
    /// without asking.
    pub fn why_out_of_reach(&self, arn: &Arn) -> Option<String> {
        let home = self.parts.sqs.config().region().map(|region| partition_of(region.as_ref()));
        let of_it = partition_of(arn.region());
        match home {
            Some(home) if home != of_it && self.parts.config.services.is_on_aws() => Some(format!(
                "it is in the partition {of_it}, where no role of this deployment is known, which is in {home}"
            )),
            _ => self.parts.config.services.why_out_of_reach(arn),
        }
    }

    /// The tables, as they were given.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// A minute begins: plans from the watermark to now and the look-ahead, publishes the outbox of dead masters, wakes
    /// the active policies.
    ///
    /// Repeating it, or running two at once, emits nothing twice: the one that does not win the watermark does nothing.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the watermark or the shape of the
    /// index cannot be read; `Queue` and `ScanQueue` when our queues do not take messages; `Panicked` when this version
    /// failed at it. The next tick then goes on from where this one came. A row of a client that cannot be read is no
    /// error: it is counted in the report.
    pub fn tick(&self) -> BoxFuture<'_, Result<TickReport, EngineError>> {
        Box::pin(async move {
            let ticked = self.emission.tick().await;
            self.publish().await;
            if let Some(heartbeat) = &self.heartbeat {
                heartbeat.tell(ticked.as_ref().err(), self.clock().now()).await;
            }
            ticked
        })
    }

    /// Handles a message of the dispatch or scan queue. `received` is how often it came, from 1: from 2 on it may be a
    /// repeat, and what was sent is looked up.
    pub fn handle<'a>(&'a self, body: &'a str, received: u32) -> BoxFuture<'a, Handled> {
        Box::pin(async move {
            let handled = self.handler.handle(body, received).await;
            self.publish().await;
            handled
        })
    }

    /// Handles messages of the dispatch or scan queue that were received together. `messages` are their texts, with how
    /// often each came, from 1; the answers are in their order. One that cannot be read or handled stops no other.
    pub fn handle_all<'a>(&'a self, messages: &'a [(&'a str, u32)]) -> BoxFuture<'a, Vec<Handled>> {
        Box::pin(async move {
            let handled = self.handler.handle_all(messages).await;
            self.publish().await;
            handled
        })
    }

    /// Handles messages of the release queue together, as [`Self::handle_all`] those of the dispatch queue: texts with
    /// how often each came, from 1, and answers in their order.
    pub fn handle_releases<'a>(&'a self, bodies: &'a [(&'a str, u32)]) -> BoxFuture<'a, Vec<Handled>> {
        Box::pin(async move {
            let handled = self.tokens.handle_releases(bodies).await;
            self.publish().await;
            handled
        })
    }

    /// Publishes what runs and events came to by the calls before, where the deployment has a bus, and tells the tables how late
    /// events came, where it is time. Ticks and messages do so themselves; whoever calls the parts of the engine does it then. It
    /// takes a few seconds at the most, and never fails.
    pub fn publish(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(bus) = &self.bus {
                bus.publish().await;
            }
            if let Some(lateness) = &self.lateness {
                lateness.tell().await;
            }
        })
    }

    /// The queues that the engine sends to.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The time index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What makes messages and rows of launches.
    pub fn emission(&self) -> &Emission {
        &self.emission
    }

    /// What consumers and operators do with tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// What clients do with jobs and runs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// What clients do with policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What clients do with calendars.
    pub fn calendars(&self) -> &Calendars {
        &self.calendars
    }

    /// What clients do with their secrets.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// What clients do with dead letters.
    pub fn dead_letters(&self) -> &DeadLetters {
        &self.dead_letters
    }

    /// What clients and admins do to hold deliveries.
    pub fn sidelining(&self) -> &Sidelining {
        &self.sidelining
    }

    /// What admins do to stop clients.
    pub fn suspensions(&self) -> &Suspensions {
        &self.suspensions
    }

    /// What admins do to take clients away.
    pub fn deletions(&self) -> &Deletions {
        &self.deletions
    }

    /// What clients take of their quotas.
    pub fn quotas(&self) -> &QuotaTaker {
        &self.quotas
    }

    /// What clients ask, and what changes nothing.
    pub fn queries(&self) -> &Queries {
        &self.queries
    }
}
