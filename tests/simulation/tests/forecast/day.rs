//! Some minutes of one kind of load, played on the engine and forecast.

use std::collections::VecDeque;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::Usage;
use tidegate_forecast::Cost;
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
const POLICY: &str = "mail";
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
}

impl Jobs {
    /// One-time jobs under generated ids, all of one second.
    pub const fn one_time(number: u32) -> Self {
        Self { number, count: 1, created: Created::Generated, keeps_record: true, apart_ms: 0 }
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

    /// How far apart they are due.
    pub const fn apart_ms(self, apart_ms: i64) -> Self {
        Self { apart_ms, ..self }
    }

    fn launches(self, first: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        (0..i64::from(self.number)).map(move |place| first + Duration::seconds(place * self.apart_ms / 1_000))
    }
}

/// A policy and its consumer.
#[derive(Debug, Clone, Copy)]
pub struct Throttle {
    pub tokens: u32,
    pub together: u32,
    pub work_seconds: u32,
}

/// A small day.
#[derive(Debug, Clone)]
pub struct Day {
    pub jobs: Vec<Jobs>,
    pub throttle: Option<Throttle>,
    pub zones: usize,
}

impl Day {
    /// What the engine consumes.
    pub async fn play(&self) -> Cost {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        if let Some(throttle) = self.throttle {
            world.policy(POLICY, throttle.tokens, 600).await.unwrap();
        }
        for (zone, number) in ZONES.iter().zip(0..self.zones) {
            let job = JobSpec::cron("59 23 29 2 *", zone, &queue).unwrap();
            world.create(job.named(&format!("rare-{number}"))).await.unwrap();
        }
        let first = world.clock.now() + Duration::minutes(FIRST_MINUTE);
        self.create(&world, &queue, first, Created::Before).await;
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        world.advance(60);
        // The first tick has more to catch up than the others.
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        world.advance(60);
        let before = world.embedded.meter().snapshot();
        for created in [Created::Generated, Created::Named] {
            self.create(&world, &queue, first, created).await;
        }
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
        Cost::tables(used.write_units(), used.read_units()).queues(requests(&used, &queue))
    }

    async fn create(&self, world: &World, queue: &str, first: DateTime<Utc>, created: Created) {
        for jobs in self.jobs.iter().filter(|jobs| jobs.created == created) {
            for (place, launch_at) in jobs.launches(first).enumerate() {
                let job = match created {
                    Created::Before => {
                        let expression = launch_at.format("%S %M %H * * *").to_string();
                        JobSpec::cron(&expression, "UTC", queue).unwrap().named(&format!("job-{place}"))
                    }
                    Created::Generated => JobSpec::at(launch_at, queue).unwrap(),
                    Created::Named => JobSpec::at(launch_at, queue).unwrap().named(&format!("job-{place}")),
                };
                let job = job.of(jobs.count.into()).unwrap();
                let job = if jobs.keeps_record { job } else { job.failures_only() };
                let job = if self.throttle.is_some() { job.under(POLICY).unwrap() } else { job };
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
            assert!(held.len() <= throttle.tokens as usize, "{} are in flight", held.len());
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
    pub fn forecast(&self) -> Cost {
        let jobs =
            self.jobs.iter().flat_map(|jobs| std::iter::repeat_n(self.facts(*jobs), jobs.number as usize));
        let policies = self.throttle.iter().map(|throttle| Policy {
            id: POLICY.to_owned(),
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
        let launches = self.jobs.iter().flat_map(|jobs| jobs.launches(first));
        let mut launches: Vec<(i64, usize)> =
            launches.enumerate().map(|(place, at)| (at.timestamp(), place)).collect();
        launches.sort_unstable();
        launches.iter().for_each(|(second, place)| load.fire(*second, *place));
        let report = Report::of(load, &setting);
        for (step, count) in report.steps.counted() {
            println!("    {step:?}: {count:.1}");
        }
        // The consumer's world has no pollers, and its first tick comes before anything is counted.
        let idle = Step::PolledMinute.cost() * MINUTES as f64;
        let total = report.total.cost;
        Cost { sqs_requests: total.sqs_requests - idle.sqs_requests, ..total }
    }

    fn facts(&self, jobs: Jobs) -> Job {
        Job {
            policy: self.throttle.map(|_| 0),
            count: jobs.count,
            keeps_record: jobs.keeps_record,
            is_packed: self.throttle.is_some() && jobs.count == 1,
            priority: 5,
            cost: 1,
            target: Target::Queue,
            item_bytes: ITEM_BYTES,
            row_reads: 0,
            created: jobs.created,
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
