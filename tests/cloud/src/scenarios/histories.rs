//! Histories that a seed draws: jobs, policies and consumers of any kind, in an account of any kind, while services have
//! trouble, functions are killed, ticks stay away and messages come twice. What must hold, holds in all of them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Terms, Trigger};
use tidegate_embedded::Service;
use tidegate_engine::JobDraft;

use super::jobs::{HERD, named, policy, terms};
use super::{Report, midnight, minutes, part};
use crate::arrivals::Lateness;
use crate::cloud::{Cloud, Options};
use crate::consumer::{Consumer, Work};
use crate::dynamodb::TableOptions;
use crate::lambda::{Function, Pollers, Schedule};
use crate::limits::{CONCURRENCY, NEW_ACCOUNT_CONCURRENCY, UNFAIR};
use crate::sqs::QueueOptions;
use crate::weather::Trouble;

/// Histories of the full scenario.
const HISTORIES: usize = 200;
/// Longer than any trouble: what nobody released comes back only where a function was killed.
const LEASE_SECONDS: u32 = 1_800;
/// Within so many minutes from midnight on everything is due, and all trouble is over.
const DUE_WITHIN: u64 = 10;
/// Until so many minutes after midnight everything has come: a lease may have to run out twice.
const OVER_AFTER: u64 = 4 * 60;

/// Plays as many histories as the share says, each with a seed of its own.
pub(super) async fn many(seed: u64, share: f64) -> Result<Report> {
    let mut report = Report::default();
    let (mut events, mut repeated, mut killed, mut refused) = (0, 0, 0, 0);
    let histories = part(HISTORIES, share);
    for number in 0..histories as u64 {
        let drawn = History::draw(seed.wrapping_mul(1_000_000).wrapping_add(number))?;
        let own = drawn.seed;
        let found = drawn.play().await?;
        events += found.events;
        repeated += found.repeated;
        killed += found.killed;
        refused += found.refused;
        for wrong in found.wrong {
            report.must(false, format!("seed {own}: {wrong}"));
        }
    }
    report.must(events > 0, format!("{histories} histories with {events} events"));
    report.tell("came twice", repeated.to_string());
    report.tell("killed", killed.to_string());
    report.tell("requests that were throttled or met a transaction", refused.to_string());
    Ok(report)
}

/// A policy, and what waits under it; no policy for what nothing throttles.
struct Load {
    tokens: Option<u32>,
    /// How many events each of its jobs has, and when it is due.
    jobs: Vec<(u64, DateTime<Utc>)>,
    workers: usize,
    work: Work,
}

struct History {
    seed: u64,
    options: Options,
    loads: Vec<Load>,
    troubles: Vec<(Service, Trouble, DateTime<Utc>, DateTime<Utc>)>,
    /// Which function is killed, after how many requests, and when; in the order of that.
    kills: Vec<(DateTime<Utc>, Function, u64)>,
}

#[derive(Default)]
struct Found {
    events: usize,
    repeated: u32,
    killed: u64,
    refused: u64,
    /// What does not hold.
    wrong: Vec<String>,
}

/// What a seed draws.
struct Draw(fastrand::Rng);

impl Draw {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T> {
        self.0.choice(all).copied().context("nothing to choose from")
    }

    /// An instant between midnight and when everything is due.
    fn instant(&mut self) -> Result<DateTime<Utc>> {
        Ok(midnight()? + Duration::from_secs(self.0.u64(0..DUE_WITHIN * 60)))
    }

    fn load(&mut self, tokens: Option<u32>) -> Result<Load> {
        let mut jobs = Vec::new();
        for _ in 0..self.0.u32(1..=60) {
            let events = if self.0.u8(0..4) == 0 { self.0.u64(2..=300) } else { 1 };
            // Many at one instant, as people have it.
            let due_at = if self.0.bool() { midnight()? } else { self.instant()? };
            jobs.push((events, due_at));
        }
        let work = Work {
            takes: Duration::from_millis(self.one_of(&[20, 300, 2_000])?),
            releases_together: self.0.usize(1..=10),
            result: self.0.bool().then_some("done"),
        };
        Ok(Load { tokens, jobs, workers: self.0.usize(1..=12), work })
    }

    fn options(&mut self, seed: u64) -> Result<Options> {
        let mut options = Options::new(seed, midnight()? - minutes(5));
        options.concurrency = self.one_of(&[NEW_ACCOUNT_CONCURRENCY, 50, CONCURRENCY])?;
        let warm = self.one_of(&[None, Some((200.0, 600.0))])?;
        options.tables = TableOptions { warm, splits: self.0.bool(), lags: self.0.bool() };
        options.queues = QueueOptions {
            doubled: self.one_of(&[0, 20_000])?,
            overtaken: self.one_of(&[0, 200_000])?,
            unfair: self.one_of(&[0, UNFAIR])?,
            undeleted: self.one_of(&[0, 20_000])?,
        };
        options.pollers.dispatch = self.one_of(&[
            Pollers::OnDemand { maximum: None },
            Pollers::OnDemand { maximum: Some(4) },
            Pollers::Provisioned { minimum: 2, maximum: 10 },
        ])?;
        let silent_from = self.instant()?;
        let silent_to = silent_from + Duration::from_secs(self.0.u64(60..=20 * 60));
        options.schedule = Schedule {
            phase: Duration::from_secs(self.0.u64(0..60)),
            twice: self.0.u8(0..4) == 0,
            silent: (self.0.u8(0..4) == 0).then_some((silent_from, silent_to)),
        };
        Ok(options)
    }
}

impl History {
    fn draw(seed: u64) -> Result<Self> {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let options = draw.options(seed)?;
        let mut loads = vec![draw.load(None)?];
        for _ in 0..draw.0.usize(1..=3) {
            let tokens = draw.one_of(&[1, 3, 10, 11, 40])?;
            loads.push(draw.load(Some(tokens))?);
        }
        let mut troubles = Vec::new();
        for _ in 0..draw.0.usize(0..3) {
            let from = draw.instant()?;
            let to = from + Duration::from_secs(draw.0.u64(5..=DUE_WITHIN * 60));
            let slow = Trouble::Slow(Duration::from_millis(draw.0.u64(100..3_000)));
            let trouble = draw.one_of(&[slow, Trouble::Throttled, Trouble::Gone])?;
            troubles.push((draw.one_of(&[Service::DynamoDb, Service::Sqs])?, trouble, from, to));
        }
        let mut kills = Vec::new();
        for _ in 0..draw.0.usize(0..8) {
            let function = draw.one_of(&[Function::Emitter, Function::Handler, Function::Master])?;
            // The emitter plans two minutes ahead.
            kills.push((draw.instant()? - minutes(2), function, draw.0.u64(0..200)));
        }
        kills.sort_by_key(|(at, ..)| *at);
        Ok(Self { seed, options, loads, troubles, kills })
    }

    async fn play(self) -> Result<Found> {
        let mut cloud = Cloud::new(self.options).await?;
        let (engine, key) = (cloud.engine(), cloud.register(HERD).await?);
        engine.tick().await?;
        let (mut consumers, mut jobs) = (Vec::new(), Vec::new());
        for (number, load) in self.loads.iter().enumerate() {
            let queue = cloud.target(&format!("load-{number}")).await?;
            let id: PolicyId = format!("policy-{number}").parse()?;
            if let Some(tokens) = load.tokens {
                policy(&engine, &id, tokens, LEASE_SECONDS).await?;
            }
            for (events, due_at) in &load.jobs {
                let terms = Terms {
                    count: Count::new(*events)?,
                    policy: load.tokens.map(|_| id.clone()),
                    ..terms(&queue)?
                };
                let name = format!("job-{}", jobs.len());
                named(&engine, HERD, &name, JobDraft::new(Trigger::at(*due_at), terms)).await?;
                jobs.push((name, *events));
            }
            consumers.push(Consumer::start(&cloud, &queue, &key, (load.workers, load.work))?);
        }
        for (service, trouble, from, to) in &self.troubles {
            cloud.weather.trouble(*service, *trouble, *from, *to);
        }
        cloud.start()?;
        for (at, function, requests) in &self.kills {
            cloud.until_instant(*at).await;
            cloud.kill_after(*function, *requests);
        }
        let events: usize = jobs.iter().map(|(_, events)| *events as usize).sum();
        let over = (midnight()? + minutes(OVER_AFTER) - cloud.now()).to_std()?;
        cloud.until(over, |cloud| cloud.arrivals.count_of(HERD) >= events).await;
        // Until all are released, and counted.
        cloud.until_instant(cloud.now() + Duration::from_secs(u64::from(LEASE_SECONDS) + 300)).await;
        let mut found = Found::default();
        let late = Lateness::of(&cloud.arrivals.of(HERD));
        found.must(late.events == events, || format!("{} of {events} events delivered", late.events));
        found.must(late.least_ms >= 0, || format!("one came {} ms early", -late.least_ms));
        for (number, (load, consumer)) in self.loads.iter().zip(&consumers).enumerate() {
            let Some(tokens) = load.tokens else { continue };
            let most = consumer.most_at_once();
            found.must(most <= tokens as usize, || format!("{most} at once under {tokens} tokens"));
            let policy: PolicyId = format!("policy-{number}").parse()?;
            let status = engine.queries().policy(&HERD.parse()?, &policy).await?.context("no policy")?;
            let (held, waiting) = (status.load.in_flight, status.load.waiting);
            found
                .must((held, waiting) == (0, 0), || format!("{held} are held and {waiting} wait at the end"));
        }
        for (job, events) in &jobs {
            let runs = engine.queries().runs(&HERD.parse()?, &job.parse()?, None).await?.rows;
            let ended: Vec<u32> = runs.iter().map(|run| run.tally.delivered + run.tally.succeeded).collect();
            found.must(*ended == [*events as u32], || format!("{job} counts {ended:?} of {events} events"));
        }
        let dead = cloud.dead_letters().await?;
        found.must(dead.is_empty(), || format!("{} dead letters, {:?}", dead.len(), dead.first()));
        let not_allowed = cloud.not_allowed();
        found.must(not_allowed.is_empty(), || format!("the roles do not allow {not_allowed:?}"));
        let functions = [Function::Emitter, Function::Handler, Function::Master];
        let (throttled, met) = cloud.refused();
        Ok(Found {
            events,
            repeated: late.repeated,
            killed: functions.into_iter().map(|function| cloud.invoked(function).killed).sum(),
            refused: throttled + met,
            ..found
        })
    }
}

impl Found {
    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }
}
