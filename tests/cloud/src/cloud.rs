//! A region with Tidegate deployed to it: the production engine in functions, on services as they are, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::types::{Message, QueueAttributeName};
use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
use axum::body::Body;
use chrono::{DateTime, Utc};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::{Call, ClientOptions, Embedded, Fault, FaultPlan, Usage, around};
use tidegate_engine::{Engine, Repair, RepairOptions, RepairReport};
use tidegate_store::{KeyHash, Store};
use tidegate_testkit::{Deployment, queue};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::arrivals::Arrivals;
use crate::clock::VirtualClock;
use crate::dice::Dice;
use crate::dynamodb::{DynamoDb, Hottest, TableOptions};
use crate::lambda::event_source::{BATCH, HIDDEN, SCAN_BATCH, SCAN_HIDDEN};
use crate::lambda::{
    Account, AllPollers, Answer, Configured, EventSource, Failed, Function, Invoked, Kind, Schedule, Work,
    event_source, schedule,
};
use crate::limits::{CONCURRENCY, EXPIRED_FOR};
use crate::region::Region;
use crate::roles::Roles;
use crate::sqs::{QueueOptions, Sqs};
use crate::version::Version;
use crate::weather::Weather;

/// The hash of the admin key of every region.
static ADMIN_KEY: LazyLock<KeyHash> = LazyLock::new(|| KeyHash::of(ADMIN));
const ADMIN: &str = "the admin key of the model only";
/// How often a message of ours is received before it is a dead letter, as `template.yaml` has it.
pub(crate) const RECEIVED_AT_MOST: u32 = 1_000;
/// The attribute of a dead letter that says why.
const REASON: &str = "reason";
/// How often is looked whether something holds.
const UNTIL: Duration = Duration::from_millis(50);
/// How often the watermark is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What differs between regions.
#[derive(Debug, Clone)]
pub struct Options {
    /// What all randomness follows from.
    pub seed: u64,
    /// When it begins.
    pub began_at: DateTime<Utc>,
    /// Invocations at once, of all functions together.
    pub concurrency: usize,
    /// Functions that are not configured as in the template.
    pub configured: BTreeMap<Function, Configured>,
    /// Its tables.
    pub tables: TableOptions,
    /// Its queues.
    pub queues: QueueOptions,
    /// The pollers of its queues.
    pub pollers: AllPollers,
    /// Its ticks.
    pub schedule: Schedule,
    /// The version that is deployed as it begins.
    pub version: Version,
}

impl Options {
    /// A new deployment in an account that asked for no more than it was given, whose first tick comes within a minute.
    pub fn new(seed: u64, began_at: DateTime<Utc>) -> Self {
        Self {
            seed,
            began_at,
            concurrency: CONCURRENCY,
            configured: BTreeMap::new(),
            tables: TableOptions::default(),
            queues: QueueOptions::default(),
            pollers: AllPollers::unlimited(),
            schedule: Schedule::default(),
            version: Version::This,
        }
    }
}

/// A region, with all that runs in it. What runs ends when it is dropped.
pub struct Cloud {
    region: Arc<Region>,
    account: Arc<Account>,
    /// What arrived at the queues of consumers.
    pub arrivals: Arc<Arrivals>,
    /// What the services suffer.
    pub weather: Arc<Weather>,
    options: Options,
    running: JoinSet<()>,
    latest: Arc<Mutex<Latest>>,
}

/// A message of ours that was given up.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// What it says.
    pub text: String,
    /// Why; `None` when it came too often.
    pub reason: Option<String>,
}

impl DeadLetter {
    fn of(message: &Message) -> Self {
        let reason = message.message_attributes().and_then(|all| all.get(REASON)?.string_value());
        Self { text: message.body().unwrap_or_default().to_owned(), reason: reason.map(str::to_owned) }
    }
}

/// How far behind emission was, at its worst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latest {
    /// The watermark behind the clock.
    pub watermark: Duration,
    /// The oldest launch that nobody had looked at.
    pub launch: Duration,
}

/// What stands in for no faults: with it a transaction whose answer is lost can be repeated.
struct NoFaults;

impl FaultPlan for NoFaults {
    fn on_request(&self, _: &Call) -> Fault {
        Fault::None
    }
}

impl Cloud {
    /// A region to which Tidegate was just deployed: nothing runs yet.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub async fn new(options: Options) -> Result<Self> {
        let clock = VirtualClock::at(options.began_at);
        let embedded = Embedded::in_memory(Arc::new(clock))?;
        embedded.inject(NoFaults);
        let deployment = Deployment::on(&embedded, &ClientOptions::without_retries()).await?;
        let (dice, weather) = (Arc::new(Dice::new(options.seed)), Arc::new(Weather::default()));
        let arrivals = Arc::new(Arrivals::default());
        let of_tables = (Arc::clone(&dice), Arc::clone(&weather));
        let dynamodb = Arc::new(DynamoDb::new(&embedded, clock, of_tables, options.tables).await?);
        let served = Arc::clone(&dynamodb);
        let past = deployment.process().dynamodb_through(|http| {
            around(http, move |inner, request| {
                let (inner, served) = (inner.clone(), Arc::clone(&served));
                HttpConnectorFuture::new(async move { served.serve_past(inner, request).await })
            })
        })?;
        let region = Region {
            clock,
            dynamodb,
            past,
            sqs: Sqs {
                clock,
                dice: Arc::clone(&dice),
                weather: Arc::clone(&weather),
                arrivals: Arc::clone(&arrivals),
                options: options.queues,
            },
            roles: Roles::of_template()?,
            seeds: Mutex::new(fastrand::Rng::with_seed(options.seed)),
            dice,
            embedded,
            deployment,
        };
        let (region, running, latest) = (Arc::new(region), JoinSet::new(), Arc::default());
        let account = functions(&region, &options);
        let cloud = Self { region, account, arrivals, weather, options, running, latest };
        cloud.give_dead_letter_queues().await?;
        Ok(cloud)
    }

    /// Has the schedule and the event sources run.
    ///
    /// # Errors
    /// When the embedded services refuse.
    pub fn start(&mut self) -> Result<()> {
        self.running.spawn(schedule::run(Arc::clone(&self.account), self.options.schedule));
        let (own, pollers) = (self.region.deployment.config(), self.options.pollers);
        let source = |queue_url: &str, arn_end, function, batch, pollers, hidden| EventSource {
            queue_url: queue_url.to_owned(),
            arn_end,
            function,
            batch,
            pollers,
            hidden,
        };
        for source in [
            source(&own.scan_queue_url, "scan", Function::Emitter, SCAN_BATCH, pollers.scan, SCAN_HIDDEN),
            source(&own.dispatch_queue_url, "dispatch", Function::Handler, BATCH, pollers.dispatch, HIDDEN),
            source(&own.release_queue_url, "release", Function::Handler, BATCH, pollers.release, HIDDEN),
        ] {
            self.running.spawn(event_source::run(Arc::clone(&self.account), self.queues()?, source));
        }
        self.running.spawn(watch(self.engine(), Arc::clone(&self.latest)));
        self.running.spawn(expire(Arc::clone(&self.region)));
        Ok(())
    }

    /// Stops everything that runs, wherever it is, as somebody does who restores tables.
    pub fn stop(&mut self) {
        self.running = JoinSet::new();
        self.account = functions(&self.region, &self.options);
    }

    /// Empties our queues, which no restore brings back.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn empty_own_queues(&self) -> Result<()> {
        for url in self.own_queues() {
            self.region.deployment.sqs.purge_queue().queue_url(url).send().await?;
        }
        Ok(())
    }

    /// What `tidegate repair` does.
    ///
    /// # Errors
    /// When it is refused, or the tables are away.
    pub async fn repair(&self, options: RepairOptions) -> Result<RepairReport> {
        Ok(Repair::new(self.region.store()?, Arc::new(self.region.clock)).run(options).await?)
    }

    /// Deploys a version of a function.
    pub fn deploy(&self, function: Function, version: Version) {
        self.account.deploy(function, version);
    }

    /// An engine past the model, whose requests take no time and no capacity: to set things up, and to look at what came of
    /// them.
    pub fn engine(&self) -> Engine {
        self.region.past.start(Arc::new(self.region.clock))
    }

    /// The clock of all that runs here.
    pub fn clock(&self) -> VirtualClock {
        self.region.clock
    }

    /// When the region began.
    pub fn began_at(&self) -> DateTime<Utc> {
        self.options.began_at
    }

    /// The tables past the model, as an engine writes and reads them.
    pub fn store(&self) -> Store {
        self.region.past.store()
    }

    /// What time it is.
    pub fn now(&self) -> DateTime<Utc> {
        self.region.clock.now()
    }

    /// The URL of a consumer's queue, created when it is not there. Its name is the one that is given, after `target-`.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn target(&self, name: &str) -> Result<String> {
        self.region.deployment.queue(&format!("target-{name}")).await
    }

    /// A client of the queues, for consumers.
    ///
    /// # Errors
    /// When the client has no HTTP client.
    pub fn queues(&self) -> Result<aws_sdk_sqs::Client> {
        self.region.queues()
    }

    /// The tables, past the model: to spoil what is in them. What is written comes to reads that lag as all writes do.
    pub fn tables(&self) -> aws_sdk_dynamodb::Client {
        self.region.past.dynamodb().clone()
    }

    /// Takes what lies in the queue of a consumer.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn take_from(&self, queue_url: &str) -> Result<Vec<String>> {
        queue::take_all(&self.region.deployment.sqs, queue_url).await
    }

    /// Sends a text to each of our own queues: dispatch, scan and release.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn send_to_own_queues(&self, text: &str) -> Result<()> {
        for url in self.own_queues() {
            self.region.deployment.sqs.send_message().queue_url(url).message_body(text).send().await?;
        }
        Ok(())
    }

    /// What calls the API as clients do.
    pub fn caller(&self) -> Caller {
        Caller(Arc::clone(&self.account))
    }

    /// Registers a client; its key.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn register(&self, client: &str) -> Result<String> {
        let registered = json!({"client_id": client, "allowed_targets": ["*"]});
        let (status, body) = self.caller().call("POST", "/v1/clients", ADMIN, &registered).await?;
        ensure!(status.is_success(), "{status} {body}");
        Ok(body["api_key"].as_str().context("a client without a key")?.to_owned())
    }

    /// Lets time pass until something holds, for so long at the most; how long that took, or `None` when it never did.
    pub async fn until(&self, limit: Duration, holds: impl Fn(&Self) -> bool) -> Option<Duration> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if holds(self) {
                return Some(began.elapsed());
            }
            sleep(UNTIL).await;
        }
        None
    }

    /// Lets time pass up to an instant.
    pub async fn until_instant(&self, at: DateTime<Utc>) {
        self.region.clock.wait_until(at).await;
    }

    /// Messages of ours that were given up.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn dead_letters(&self) -> Result<Vec<String>> {
        Ok(self.dead_letters_with_reasons().await?.into_iter().map(|dead| dead.text).collect())
    }

    /// The same, each with the reason that was given.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn dead_letters_with_reasons(&self) -> Result<Vec<DeadLetter>> {
        let (sqs, mut all) = (&self.region.deployment.sqs, Vec::new());
        for (_, dead) in self.giving_up() {
            loop {
                let receive = sqs.receive_message().queue_url(dead).max_number_of_messages(10);
                let received = receive.message_attribute_names("All").send().await?;
                let messages = received.messages.unwrap_or_default();
                if messages.is_empty() {
                    break;
                }
                all.extend(messages.iter().map(DeadLetter::of));
                queue::delete(sqs, dead, &messages).await?;
            }
        }
        Ok(all)
    }

    /// What waits in the dispatch queue. Only when nothing runs any more.
    ///
    /// # Errors
    /// When SQS refuses.
    pub async fn take_from_dispatch(&self) -> Result<Vec<String>> {
        self.take_from(&self.region.deployment.config().dispatch_queue_url).await
    }

    /// What became of a function's invocations.
    pub fn invoked(&self, function: Function) -> Invoked {
        self.account.invoked(function)
    }

    /// Requests that tables or partitions were too small for, and those that met a transaction.
    pub fn refused(&self) -> (u64, u64) {
        self.region.dynamodb.refused()
    }

    /// What functions asked for that their roles in the template do not allow.
    pub fn not_allowed(&self) -> BTreeSet<String> {
        self.region.roles.refused()
    }

    /// Lambda is away from one instant up to another: no function can be invoked.
    pub fn lambda_goes_away(&self, from: DateTime<Utc>, to: DateTime<Utc>) {
        self.account.go_away(from, to);
    }

    /// The keys that took most in a second: of write units, and of read units.
    pub fn hottest(&self) -> (Hottest, Hottest) {
        self.region.dynamodb.hottest()
    }

    /// What was consumed so far.
    pub fn usage(&self) -> Usage {
        self.region.embedded.meter().snapshot()
    }

    /// How far behind emission was at its worst.
    pub fn latest(&self) -> Latest {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the watermark is behind the clock now.
    ///
    /// # Errors
    /// When the tables are away.
    pub async fn behind(&self) -> Result<Duration> {
        let scanned_to = self.engine().queries().emission_status().await?.scanned_to;
        Ok(scanned_to.and_then(|at| (self.now() - at).to_std().ok()).unwrap_or_default())
    }

    /// Batches that were answered with some of their items left out: of writes, and of reads.
    pub fn left_out(&self) -> (u64, u64) {
        self.region.dynamodb.left_out()
    }

    /// Kills the next invocation of a function after so many of its requests.
    pub fn kill_after(&self, function: Function, requests: u64) {
        self.account.kill_after(function, requests);
    }

    /// Kills each invocation of a kind that begins from now on after so many of its requests, until so many were.
    pub fn kill_each(&self, kind: Kind, requests: u64, times: u32) {
        self.account.kill_each(kind, requests, times);
    }

    /// Our queues, by their URLs.
    fn own_queues(&self) -> [&str; 3] {
        let own = self.region.deployment.config();
        [&own.dispatch_queue_url, &own.scan_queue_url, &own.release_queue_url]
    }

    /// The queues of ours that give messages up, each with its dead letters.
    fn giving_up(&self) -> [(&str, &str); 2] {
        let own = self.region.deployment.config();
        [
            (&own.dispatch_queue_url, &own.dead_letter_queue_url),
            (&own.release_queue_url, &own.release_dead_letter_queue_url),
        ]
    }

    /// Gives our queues what the template gives them.
    async fn give_dead_letter_queues(&self) -> Result<()> {
        let sqs = &self.region.deployment.sqs;
        for (url, dead) in self.giving_up() {
            let arn =
                sqs.get_queue_attributes().queue_url(dead).attribute_names(QueueAttributeName::QueueArn);
            let arn = arn.send().await?.attributes.unwrap_or_default();
            let arn = arn.get(&QueueAttributeName::QueueArn).context("a queue without an ARN")?;
            let redrive =
                json!({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVED_AT_MOST.to_string()});
            let set = sqs.set_queue_attributes().queue_url(url);
            set.attributes(QueueAttributeName::RedrivePolicy, redrive.to_string()).send().await?;
        }
        let scan = sqs.set_queue_attributes().queue_url(self.region.deployment.scan_url());
        let scan = scan.attributes(QueueAttributeName::VisibilityTimeout, SCAN_HIDDEN.as_secs().to_string());
        scan.attributes(QueueAttributeName::MessageRetentionPeriod, "900").send().await?;
        Ok(())
    }
}

/// The functions of a region, of which none has begun.
fn functions(region: &Arc<Region>, options: &Options) -> Arc<Account> {
    let admin = ADMIN_KEY.as_str();
    let account = Account::new(Arc::clone(region), admin, options.concurrency, options.configured.clone());
    for function in Function::ALL {
        account.deploy(function, options.version);
    }
    Arc::new(account)
}

/// Calls the API through the function's URL. Clones call the same one.
#[derive(Clone)]
pub struct Caller(Arc<Account>);

impl Caller {
    /// Calls the API: the status, 429 when the function could not begin, and 502 when it did not end; and the body.
    ///
    /// # Errors
    /// When the request cannot be made.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value)> {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))?;
        let called = self.0.invoke(Function::Master, Work::Call(Box::new(request))).await;
        Ok(match called {
            Ok(Answer::Call(status, body)) => (status, body),
            Err(Failed::Throttled) => (StatusCode::TOO_MANY_REQUESTS, Value::Null),
            _ => (StatusCode::BAD_GATEWAY, Value::Null),
        })
    }
}

/// Deletes what has expired: some of it at once, some of it long after.
async fn expire(region: Arc<Region>) {
    loop {
        sleep(EXPIRED_FOR).await;
        drop(region.embedded.sweep_ttl());
        region.dynamodb.sweep_copy().await;
    }
}

/// Looks at the watermark now and then.
async fn watch(engine: Engine, latest: Arc<Mutex<Latest>>) {
    loop {
        sleep(LOOK_EVERY).await;
        let Ok(status) = engine.queries().emission_status().await else { continue };
        let behind = |at: Option<DateTime<Utc>>| {
            at.and_then(|at| (engine.clock().now() - at).to_std().ok()).unwrap_or_default()
        };
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.watermark = latest.watermark.max(behind(status.scanned_to));
        latest.launch = latest.launch.max(behind(status.late_since));
    }
}
