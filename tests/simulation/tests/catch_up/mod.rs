//! What becomes of launches that are not made, that are late, or that are to be made at a second: nothing is lost
//! without a record, nothing comes twice, nothing comes early (I2, I3, I6).

mod outages;
mod resent;
mod seconds;
mod skipped;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Trigger;
use tidegate_domain::time::{CronSpec, Instants, Rate, Window, parse_zone};
use tidegate_simulation::World;
use tidegate_simulation::world::{Account, JobSpec};

/// A world with one consumer and its account.
struct Site {
    world: World,
    queue: String,
    account: Account,
}

impl Site {
    /// A site at noon whose first tick is done.
    async fn new() -> Self {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        Self { world, queue, account: Account::default() }
    }

    fn now(&self) -> DateTime<Utc> {
        self.world.clock.now()
    }

    fn ahead(&self, seconds: i64) -> DateTime<Utc> {
        self.now() + Duration::seconds(seconds)
    }

    fn job(&self, trigger: Trigger, name: &str) -> JobSpec {
        JobSpec::new(trigger, &self.queue).unwrap().named(name)
    }

    async fn create(&self, job: JobSpec) {
        self.world.create(job).await.unwrap();
    }

    async fn collect(&mut self) {
        self.account.collect(&self.world, &self.queue).await.unwrap();
    }

    async fn tick(&mut self) {
        self.world.engine.tick().await.unwrap();
        self.collect().await;
    }

    /// Minutes as they should be: a tick in each.
    async fn minutes(&mut self, minutes: u32) {
        for _ in 0..minutes {
            self.world.advance(60);
            self.tick().await;
        }
    }

    /// When a job launched, as seconds since noon; one that was delivered twice is there twice.
    fn delivered(&self, job: &str) -> Vec<i64> {
        let fired = self.account.delivered(job).unwrap();
        let mut seconds: Vec<i64> = fired.into_iter().map(|(_, launch_s)| launch_s - NOON).collect();
        seconds.sort_unstable();
        seconds
    }

    /// What was skipped of a job: first and last as seconds since noon, how many, and why.
    async fn skipped(&self, job: &str) -> Vec<(i64, i64, u32, String)> {
        let records = self.world.skipped(job).await.unwrap();
        records.into_iter().map(|r| (r.first_s - NOON, r.last_s - NOON, r.count, r.reason)).collect()
    }

    /// Fails unless each launch of a job from noon to now was delivered once or is in one record. Returns how many were
    /// skipped, by reason.
    async fn settled(&self, job: &str, trigger: &Trigger) -> Vec<(String, u32)> {
        let window = Window::new(at_second(0), self.ahead(1)).unwrap();
        let firings = trigger.cadence().firings(window);
        let (delivered, records) = (self.delivered(job), self.skipped(job).await);
        let mut by_reason = std::collections::BTreeMap::new();
        for (first_s, last_s, count, reason) in &records {
            let in_range = |at: i64| (*first_s..=*last_s).contains(&at);
            let covered = firings.iter().filter(|f| in_range(f.launch_at.timestamp() - NOON)).count();
            assert_eq!(covered as u32, *count, "{job}: a record of {first_s} to {last_s}");
            *by_reason.entry(reason.clone()).or_insert(0) += count;
        }
        for firing in &firings {
            let at = firing.launch_at.timestamp() - NOON;
            let times = delivered.iter().filter(|second| **second == at).count()
                + records.iter().filter(|(first_s, last_s, ..)| (*first_s..=*last_s).contains(&at)).count();
            assert_eq!(times, 1, "{job} at {at}: {delivered:?} and {records:?}");
        }
        assert_eq!(delivered.len() + by_reason.values().sum::<u32>() as usize, firings.len(), "{job}");
        by_reason.into_iter().collect()
    }
}

/// Noon of 21 November 2026, at which worlds begin.
const NOON: i64 = 1_795_262_400;

fn at_second(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(NOON + second, 0).unwrap()
}

fn cron(expression: &str) -> Trigger {
    Trigger::Cron { spec: CronSpec::parse(expression).unwrap(), zone: parse_zone("UTC").unwrap() }
}

fn rate(every_seconds: u64, anchor_s: i64) -> Trigger {
    Trigger::Rate { rate: Rate::new(every_seconds, at_second(anchor_s)).unwrap(), anchored: true }
}

fn instants(seconds: impl IntoIterator<Item = i64>) -> Trigger {
    Trigger::At(Instants::new(seconds.into_iter().map(at_second)).unwrap())
}
