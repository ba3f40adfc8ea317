//! What the emitter emits, through the real engine and stores: each occurrence of random jobs exactly once, however ticks
//! fall, are missed, repeated, cut short or die at a write (I2, I3, I6).
//!
//! The pure property, over many more expressions and cuts, stands in the domain's tests. Delivery is no part of this:
//! the dispatch queue is read as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Duration, Timelike, Utc};
use chrono_tz::Tz;
use tidegate_domain::clock::{Clock as _, ManualClock};
use tidegate_domain::ids::JobId;
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Rules};
use tidegate_domain::time::{CronSpec, Instants, Rate, Window, parse_zone};
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::message::Message;
use tidegate_engine::random::{Random as _, SeededRandom};
use tidegate_engine::{JobDraft, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};

/// Zones, each with an instant at which its clocks change or its year ends.
const PLACES: [(&str, &str); 10] = [
    ("UTC", "2028-02-29T00:00:00Z"),
    ("Asia/Kathmandu", "2026-12-31T18:15:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("America/Havana", "2026-11-01T05:00:00Z"),
    ("Europe/Dublin", "2026-03-29T01:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
];
/// Jobs of one case.
const JOBS: u64 = 24;
/// How long jobs are emitted in one case, in seconds.
const SPAN_SECONDS: i64 = 5_400;

struct Dice(SeededRandom);

impl Dice {
    fn below(&self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn within(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// What happens to the requests of one tick or call.
struct Trouble {
    /// The number of the write after which its process dies.
    dies_after: AtomicI64,
    clock: Arc<ManualClock>,
    /// How long a request takes.
    ms: i64,
}

impl FaultPlan for Trouble {
    fn on_request(&self, call: &Call) -> Fault {
        self.clock.advance_ms(self.ms);
        let is_write = ["Put", "Update", "Delete", "Transact", "Batch", "Send"];
        if !is_write.iter().any(|verb| call.operation.starts_with(verb)) {
            return Fault::None;
        }
        match self.dies_after.fetch_sub(1, Ordering::Relaxed) {
            1 => Fault::CrashAfter,
            _ => Fault::None,
        }
    }
}

struct Case {
    dice: Dice,
    world: World,
    queue: String,
    place: Tz,
    troubled: bool,
    jobs: Vec<Job>,
}

impl Case {
    async fn new(seed: u64, troubled: bool) -> Self {
        let dice = Dice(SeededRandom::new(seed));
        let (zone, change) = dice.pick(&PLACES);
        let change: DateTime<Utc> = change.parse().unwrap();
        let start = change - Duration::seconds(dice.below(SPAN_SECONDS as u64) as i64);
        let world = World::at(start).await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        Self { dice, world, queue, place: parse_zone(zone).unwrap(), troubled, jobs: Vec::new() }
    }

    fn trouble(&self, percent: u64) {
        if !self.troubled {
            return;
        }
        let dies_after = if self.dice.chance(percent) { self.dice.within(1, 9) as i64 } else { i64::MAX };
        let ms = self.dice.pick(&[0, 0, 1, 40, 300]);
        let clock = self.world.clock.clone();
        self.world.embedded.inject(Trouble { dies_after: AtomicI64::new(dies_after), clock, ms });
    }

    fn cron(&self) -> Trigger {
        let (dice, zone) =
            (&self.dice, self.dice.pick(&[self.place, self.place, Tz::UTC, Tz::Asia__Kolkata]));
        let hour_now = u64::from(self.world.clock.now().with_timezone(&zone).hour());
        loop {
            let minute = match dice.below(5) {
                0 => format!("*/{}", dice.within(7, 31)),
                1 => format!("{},{}", dice.below(30), dice.within(30, 59)),
                2 => format!("{}-{}/{}", dice.below(20), dice.within(30, 59), dice.within(5, 20)),
                _ => dice.below(60).to_string(),
            };
            let hour = match dice.below(6) {
                0 => format!("{}-23/2", hour_now % 2),
                1 | 2 => ((hour_now + dice.below(3)) % 24).to_string(),
                _ => "*".to_owned(),
            };
            let days =
                dice.pick(&["* * *", "* * *", "* * *", "*/2 * *", "L * *", "* * 1-5", "* * 0,6", "1 * 0#1"]);
            let second = if dice.chance(20) { dice.pick(&["0,30 ", "17 ", "59 ", "*/20 "]) } else { "" };
            if let Ok(spec) = CronSpec::parse(&format!("{second}{minute} {hour} {days}")) {
                return Trigger::Cron { spec, zone };
            }
        }
    }

    fn trigger(&self) -> Trigger {
        let now = self.world.clock.now();
        let ahead = |seconds: u64| now + Duration::seconds(seconds as i64);
        match self.dice.below(10) {
            0..5 => self.cron(),
            5..7 => {
                let every = self.dice.pick(&[37, 90, 600, 700, 3_600]);
                let anchor = ahead(self.dice.below(every)) - Duration::seconds(self.dice.below(9_000) as i64);
                Trigger::Rate { rate: Rate::new(every, anchor).unwrap(), anchored: true }
            }
            7 => Trigger::at(ahead(self.dice.below(SPAN_SECONDS as u64))),
            _ => {
                let instants =
                    (0..self.dice.within(2, 30)).map(|_| ahead(self.dice.below(SPAN_SECONDS as u64)));
                Trigger::At(Instants::new(instants).unwrap())
            }
        }
    }

    /// Creates a job; when its process dies, its client asks again.
    async fn create(&mut self, number: u64) {
        let misfire = Misfire::All(MisfireLaunches::new(10_000).unwrap());
        let width = if self.dice.chance(25) { self.dice.within(1, 1_500) } else { 0 };
        let rules = Rules { misfire, jitter: Jitter::new(width).unwrap(), ..Rules::default() };
        let spec = JobSpec::new(self.trigger(), &self.queue).unwrap().failures_only().ruled(rules);
        let draft: JobDraft = spec.into_draft();
        let (client, id) = (CLIENT.parse().unwrap(), format!("job-{number}").parse::<JobId>().unwrap());
        self.trouble(30);
        let engine = &self.world.engine;
        if engine.jobs().create(&client, Some(id.clone()), draft.clone()).await.is_err() {
            self.world.embedded.inject_nothing();
            let again = engine.jobs().create(&client, Some(id.clone()), draft).await.unwrap();
            assert!(matches!(again, Written::Created(_) | Written::Unchanged(_)), "{again:?}");
        }
        self.world.embedded.inject_nothing();
        self.jobs.push(engine.jobs().get(&client, &id).await.unwrap().unwrap());
    }

    /// Ticks on time, late, again, and not at all.
    async fn work(&mut self) {
        let until = self.world.clock.now() + Duration::seconds(SPAN_SECONDS);
        let mut created = 0;
        while self.world.clock.now() < until {
            while created < JOBS && self.dice.chance(90) {
                self.create(created).await;
                created += 1;
            }
            self.trouble(40);
            let ticked = self.world.engine.tick().await;
            if self.dice.chance(50) {
                // Workers die as ticks do.
                let _may_fail = self.world.pump_scans().await;
            }
            self.world.embedded.inject_nothing();
            assert!(self.troubled || ticked.is_ok(), "{ticked:?}");
            let seconds = match self.dice.below(10) {
                0 => 0,
                1 => self.dice.below(60),
                2..7 => 60,
                7 | 8 => self.dice.within(61, 900),
                _ => self.dice.within(900, 2_400),
            };
            self.world.advance(seconds as i64);
        }
    }

    /// The end of the time that has been emitted to the last.
    async fn settle(&mut self) -> DateTime<Utc> {
        let end = DateTime::from_timestamp(self.world.clock.now().timestamp(), 0).unwrap();
        loop {
            self.world.advance(61);
            self.world.engine.tick().await.unwrap();
            self.world.pump_scans().await.unwrap();
            let store = self.world.engine.store();
            let watermark = store.watermark().await.unwrap().unwrap();
            let is_done = store.parts(None).await.unwrap().rows.is_empty();
            if is_done && watermark.scanned_to == watermark.planned_to && watermark.scanned_to > end {
                // Once more: the outbox has a minute of grace.
                self.world.advance(61);
                self.world.engine.tick().await.unwrap();
                self.world.pump_scans().await.unwrap();
                return end;
            }
        }
    }

    /// How often each job was emitted at each second.
    async fn emitted(&self) -> BTreeMap<String, BTreeMap<i64, u32>> {
        self.world.advance(7_200);
        let mut emitted: BTreeMap<String, BTreeMap<i64, u32>> = BTreeMap::new();
        for message in self.world.take_dispatched().await.unwrap() {
            let Message::Chunk(chunk) = message else { continue };
            for item in chunk.items {
                *emitted.entry(item.job).or_default().entry(chunk.launch_s).or_default() += 1;
            }
        }
        emitted
    }
}

/// The launches that a job must have had, jitter included.
fn launches(job: &Job, end: DateTime<Utc>) -> BTreeSet<i64> {
    let from = DateTime::from_timestamp(job.changed_at.timestamp(), 0).unwrap();
    let from = if let Trigger::At(instants) = &job.trigger { from.min(instants.first()) } else { from };
    let offset = job.rules.jitter.offset(&job.client, &job.id);
    let Ok(window) = Window::new(from, end) else { return BTreeSet::new() };
    let firings = job.trigger.cadence().firings(window);
    firings.iter().map(|firing| (firing.launch_at + offset).timestamp()).collect()
}

async fn emits_each_once(seed: u64, troubled: bool) -> usize {
    let mut case = Case::new(seed, troubled).await;
    case.work().await;
    let end = case.settle().await;
    let emitted = case.emitted().await;
    let mut total = 0;
    for job in &case.jobs {
        let expected = launches(job, end);
        total += expected.len();
        let end_s = (end + job.rules.jitter.offset(&job.client, &job.id)).timestamp();
        let found = emitted.get(job.id.as_str()).cloned().unwrap_or_default();
        let of_span = found.iter().filter(|(second, _)| **second < end_s);
        let seconds: BTreeSet<i64> = of_span.clone().map(|(second, _)| *second).collect();
        let told = || format!("seed {seed}, {}: {:?}, changed at {}", job.id, job.trigger, job.changed_at);
        let missing: Vec<_> = expected.difference(&seconds).collect();
        let extra: Vec<_> = seconds.difference(&expected).collect();
        assert!(missing.is_empty() && extra.is_empty(), "{}: missing {missing:?}, extra {extra:?}", told());
        let repeated = of_span.filter(|(_, times)| **times > 1).count();
        assert!(troubled || repeated == 0, "{}: {repeated} came twice", told());
    }
    total
}

async fn cases(seeds: std::ops::Range<u64>, troubled: bool) {
    let mut total = 0;
    for seed in seeds {
        total += emits_each_once(seed, troubled).await;
    }
    assert!(total > 1_000, "{total} occurrences");
}

#[tokio::test]
async fn each_occurrence_is_emitted_once_however_ticks_fall() {
    cases(0..20, false).await;
}

#[tokio::test]
async fn each_occurrence_is_emitted_whatever_dies() {
    cases(1_000..1_020, true).await;
}

#[tokio::test]
async fn each_occurrence_is_emitted_whatever_dies_in_other_places() {
    cases(2_000..2_020, true).await;
}
