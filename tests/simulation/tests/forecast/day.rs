//! Some minutes of one kind of load, played on the engine and forecast.

use std::collections::VecDeque;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Cost;
use tidegate_domain::job::{Attempts, Payload, Trigger};
use tidegate_domain::target::Target as JobTarget;
use tidegate_domain::time::Instants;
use tidegate_embedded::Usage;
use tidegate_forecast::Cost as Forecast;
use tidegate_forecast::account::Account;
use tidegate_forecast::facts::{Created, Job, Policy, Setting, Target};
use tidegate_forecast::load::Load;
use tidegate_forecast::report::Report;
use tidegate_forecast::steps::Step;
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};
use tidegate_testkit::DISPATCH;

/// Minutes that are played, and the first in which something is due.
const MINUTES: i64 = 14;
const FIRST_MINUTE: i64 = 6;
/// What an item of a chunk takes beside its payload, in bytes.
const ITEM_BYTES: u32 = 270;
/// Bytes of a job's row beside its payload.
const ROW_BYTES: u32 = 600;
const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "Asia/Tokyo",
    "America/New_York",
    "Asia/Kolkata",
    "Europe/London",
    "Asia/Dubai",
    "Africa/Cairo",
    "America/Lima",
];

/// Jobs of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Jobs {
    number: u32,
    count: u32,
    created: Created,
    keeps_record: bool,
    apart_ms: i64,
    /// Instants of each, a minute apart.
    instants: u32,
    /// Tokens that an event takes.
    cost: u32,
    /// Bytes of its payload, when it has a large one.
    payload_bytes: usize,
    /// Whether they go to an HTTP target, whose answer releases their tokens.
    is_http: bool,
    /// Whether the first delivery of each event is its last.
    is_delivered_once: bool,
}

impl Jobs {
    /// One-time jobs under generated ids, all of one second.
    pub const fn one_time(number: u32) -> Self {
        Self {
            number,
            count: 1,
            created: Created::Generated,
            keeps_record: true,
            apart_ms: 0,
            instants: 1,
            cost: 1,
            payload_bytes: 0,
            is_http: false,
            is_delivered_once: false,
        }
    }

    /// Jobs that are there.
    pub const fn cron(number: u32) -> Self {
        Self { created: Created::Before, ..Self::one_time(number) }
    }

    pub const fn named(self) -> Self {
        Self { created: Created::Named, ..self }
    }

    /// Events of each.
    pub const fn of(self, count: u32) -> Self {
        Self { count, ..self }
    }

    pub const fn failures_only(self) -> Self {
        Self { keeps_record: false, ..self }
    }

    /// With so many instants each, a minute apart.
    pub const fn instants(self, instants: u32) -> Self {
        Self { instants, created: Created::Listed(instants), ..self }
    }

    /// Events that take so many tokens.
    pub const fn cost(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    /// With a payload that does not travel with its events.
    pub const fn payload(self, payload_bytes: usize) -> Self {
        Self { payload_bytes, ..self }
    }

    /// For an HTTP target.
    pub const fn http(self) -> Self {
        Self { is_http: true, ..self }
    }

    /// Whose events are delivered once.
    pub const fn once(self) -> Self {
        Self { is_delivered_once: true, ..self }
    }

    /// How far apart they are due.
    pub const fn apart_ms(self, apart_ms: i64) -> Self {
        Self { apart_ms, ..self }
    }

    /// When each is due first.
    fn launches(self, first: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        (0..i64::from(self.number)).map(move |place| first + Duration::seconds(place * self.apart_ms / 1_000))
    }

    /// The instants of one that is due first at one of them.
    fn instants_of(self, first: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        (0..i64::from(self.instants)).map(move |minute| first + Duration::minutes(minute))
    }

    /// The job of an instant, as the engine takes it.
    fn spec(self, place: usize, launch_at: DateTime<Utc>, target: &str) -> JobSpec {
        let job = match self.created {
            Created::Before => {
                let expression = launch_at.format("%S %M %H * * *").to_string();
                JobSpec::cron(&expression, "UTC", target).unwrap().named(&format!("job-{place}"))
            }
            Created::Generated | Created::Listed(_) => {
                let instants = Instants::new(self.instants_of(launch_at)).unwrap();
                JobSpec::new(Trigger::At(instants), target).unwrap()
            }
            Created::Named => JobSpec::at(launch_at, target).unwrap().named(&format!("job-{place}")),
        };
        let job = job.of(self.count.into()).unwrap();
        let job = if self.keeps_record { job } else { job.failures_only() };
        job.with(|draft| {
            if self.is_delivered_once {
                draft.terms.max_attempts = Attempts::new(1).ok();
            }
            draft.terms.flow.cost = Cost::new(self.cost.into()).unwrap();
            if self.payload_bytes > 0 {
                draft.terms.payload =
                    Payload::new(format!("\"{}\"", "x".repeat(self.payload_bytes))).unwrap();
            }
        })
    }
}

/// A policy and its consumer.
#[derive(Debug, Clone, Copy)]
pub struct Throttle {
    /// How many policies there are, under which jobs lie in turn.
    pub policies: usize,
    pub tokens: u32,
    pub together: u32,
    pub work_seconds: u32,
}

/// Where events go, and when the first are due.
struct Site {
    queue: String,
    http: String,
    first: DateTime<Utc>,
}

fn policy(number: usize) -> String {
    format!("policy-{number}")
}

/// The URL of a target that answers each call with 200.
async fn endpoint() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/hook", axum::routing::post(async || ""));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A small day.
#[derive(Debug, Clone)]
pub struct Day {
    pub jobs: Vec<Jobs>,
    pub throttle: Option<Throttle>,
    pub zones: usize,
    /// By what part the forecast may be above what is used, where consumers or tokens of several policies come together here
    /// as they do not on AWS.
    pub may_exceed: f64,
}

impl Day {
    /// What the engine consumes.
    pub async fn play(&self) -> Forecast {
        let world = World::with_loopback_targets().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        if let Some(throttle) = self.throttle {
            for number in 0..throttle.policies {
                world.policy(&policy(number), throttle.tokens, 600).await.unwrap();
            }
        }
        for (zone, number) in ZONES.iter().zip(0..self.zones) {
            let job = JobSpec::cron("59 23 29 2 *", zone, &queue).unwrap();
            world.create(job.named(&format!("rare-{number}"))).await.unwrap();
        }
        let first = world.clock.now() + Duration::minutes(FIRST_MINUTE);
        let site = Site { queue: queue.clone(), http: endpoint().await, first };
        self.create(&world, &site, |created| created == Created::Before).await;
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        world.advance(60);
        // The first tick has more to catch up than the others.
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        world.advance(60);
        let before = world.embedded.meter().snapshot();
        self.create(&world, &site, |created| created != Created::Before).await;
        let mut held = VecDeque::new();
        for _ in 1..=MINUTES {
            assert!(world.engine.tick().await.unwrap().won);
            for _ in 0..60 {
                world.pump().await.unwrap();
                self.consume(&world, &queue, &mut held).await;
                world.advance(1);
            }
        }
        assert!(held.is_empty(), "{} events are not done", held.len());
        let used = world.embedded.meter().snapshot().since(&before);
        println!("    {:?}\n    {:?}", used.capacity, used.queues);
        Forecast::tables(used.write_units(), used.read_units()).queues(requests(&used, &queue))
    }

    async fn create(&self, world: &World, site: &Site, is: fn(Created) -> bool) {
        for jobs in self.jobs.iter().filter(|jobs| is(jobs.created)) {
            for (place, launch_at) in jobs.launches(site.first).enumerate() {
                let mut job = jobs.spec(place, launch_at, &site.queue);
                if jobs.is_http {
                    let target = JobTarget::http(&site.http).unwrap();
                    job = job.with(|draft| {
                        draft.terms.target = target;
                        draft.terms.flow.release_on_response = self.throttle.is_some();
                    });
                }
                if let Some(Throttle { policies, .. }) = self.throttle {
                    job = job.under(&policy(place % policies)).unwrap();
                }
                world.create(job).await.unwrap();
            }
        }
    }

    /// Takes what there is; releases what has been worked on for long enough, again until nothing comes.
    async fn consume(&self, world: &World, queue: &str, held: &mut VecDeque<(DateTime<Utc>, Received)>) {
        loop {
            let now = world.clock.now();
            let received = world.consume(queue).await.unwrap();
            let Some(throttle) = self.throttle else { return };
            let done_at = now + Duration::seconds(throttle.work_seconds.into());
            held.extend(received.into_iter().map(|event| (done_at, event)));
            assert!(
                held.len() <= throttle.tokens as usize * throttle.policies,
                "{} are in flight",
                held.len()
            );
            let mut done = Vec::new();
            while done.len() < throttle.together as usize {
                let ready = held.iter().take_while(|(at, _)| *at <= now).count();
                // Queues keep no order: what is released together lies in any slot groups.
                let Some((_, event)) =
                    ready.checked_sub(1).and_then(|last| held.remove(done.len() * 37 % (last + 1)))
                else {
                    break;
                };
                done.push(event);
            }
            if done.is_empty() {
                return;
            }
            world.release(&done).await.unwrap();
        }
    }

    /// What is forecast of it.
    pub fn forecast(&self) -> Forecast {
        let jobs =
            self.jobs.iter().flat_map(|jobs| (0..jobs.number as usize).map(|place| self.facts(*jobs, place)));
        let policies = self
            .throttle
            .iter()
            .flat_map(|throttle| (0..throttle.policies).map(move |number| (number, throttle)));
        let policies = policies.map(|(number, throttle)| Policy {
            id: policy(number),
            tokens: throttle.tokens,
            rate: None,
            work_seconds: throttle.work_seconds.into(),
            released_together: throttle.together,
        });
        let setting = Setting {
            jobs: jobs.collect(),
            policies: policies.collect(),
            zones: self.zones + usize::from(self.jobs.iter().any(|jobs| jobs.created == Created::Before)),
            from_s: 60,
            to_s: 60 * (MINUTES + 1),
            scale: 1.0,
            created_together: 1.0,
            creates_per_second: None,
            largest_partition: None,
            // Consumers hand over at once here.
            handover_seconds: 0.0,
            account: Account::default(),
        };
        let mut load = Load::new(&setting);
        let first = DateTime::from_timestamp(FIRST_MINUTE * 60, 0).unwrap();
        let launches = self.jobs.iter().flat_map(|jobs| jobs.launches(first).map(|at| (*jobs, at)));
        let mut launches: Vec<(i64, usize)> = launches
            .enumerate()
            .flat_map(|(place, (jobs, at))| {
                let instants: Vec<_> = jobs.instants_of(at).map(|at| (at.timestamp(), place)).collect();
                instants
            })
            .collect();
        launches.sort_unstable();
        launches.iter().for_each(|(second, place)| load.fire(*second, *place));
        let report = Report::of(load, &setting);
        for (step, count) in report.steps.counted() {
            println!("    {step:?}: {count:.1}");
        }
        // The consumer's world has no pollers, and its first tick comes before anything is counted.
        let idle = Step::PolledMinute.cost() * MINUTES as f64;
        let total = report.total.cost;
        Forecast { sqs_requests: total.sqs_requests - idle.sqs_requests, ..total }
    }

    fn facts(&self, jobs: Jobs, place: usize) -> Job {
        let payload = jobs.payload_bytes as u32;
        let is_generated = jobs.created == Created::Generated;
        Job {
            policy: self.throttle.map(|throttle| place % throttle.policies),
            cost: jobs.cost,
            target: if jobs.is_http { Target::Http } else { Target::Queue },
            item_bytes: ITEM_BYTES + if is_generated { payload } else { 0 },
            row_reads: if payload > 400 && !is_generated { (payload + ROW_BYTES).div_ceil(4_096) } else { 0 },
            row_units: (payload + ROW_BYTES).div_ceil(1_024),
            releases_itself: jobs.is_http,
            is_delivered_once: jobs.is_delivered_once,
            count: jobs.count,
            keeps_record: jobs.keeps_record,
            is_packed: self.throttle.is_some() && jobs.count == 1,
            created: jobs.created,
            ..Job::default()
        }
    }
}

/// What is sent, and for each call that deletes messages of ours one that received them: receives that found nothing are those
/// of the test.
fn requests(used: &Usage, _queue: &str) -> f64 {
    let sent = used.sqs_requests_where(|_, operation| operation.starts_with("SendMessage"));
    let deleted =
        used.sqs_requests_where(|queue, operation| queue == DISPATCH && operation.starts_with("Delete"));
    (sent + 2 * deleted) as f64
}
