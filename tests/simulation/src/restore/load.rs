//! The load: jobs of every kind, ticks, pollers, and a consumer who releases what it receives.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::Trigger;
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::time::Rate;
use tidegate_domain::token::Token;
use tidegate_engine::{Engine, JobDelete, JobDraft, Outcome, Release, Released, Written};
use tidegate_store::tables::Table;
use tidegate_testkit::queue;

use super::checks;
use super::promised::{POLICIES, Promised};
use super::site::Site;
use super::snapshots::Cut;
use crate::sim::Dice;
use crate::world::{CLIENT, JobSpec, Received};

/// Rounds in which everything must come to its end, and steps of a round: an hour and a half.
const LAST_ROUNDS: u32 = 80;
const STEPS_OF_A_ROUND: u32 = 45;

/// What time it is for the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is lost of it.
    Before,
    /// After the last snapshot: nobody will know of it.
    Lost,
    /// The tables were restored.
    After,
}

/// A load under way.
pub(super) struct Load<'s> {
    site: &'s Site,
    dice: &'s Dice,
    engine: Engine,
    client: ClientId,
    phase: Phase,
    ticked_minute: i64,
    promised: Vec<Promised>,
    /// Events that arrived, without those of the lost time.
    arrived: BTreeSet<String>,
    /// Tokens that were given before the restore, and the events that they were given for.
    given: BTreeMap<Token, String>,
    /// Those of them that the restored tables know.
    held: BTreeSet<Token>,
    releases: Vec<(DateTime<Utc>, Token)>,
    jobs: u32,
}

impl<'s> Load<'s> {
    pub(super) async fn begin(site: &'s Site, dice: &'s Dice) -> Result<Self> {
        let mut load = Self {
            site,
            dice,
            engine: site.start(),
            client: CLIENT.parse()?,
            phase: Phase::Before,
            ticked_minute: 0,
            promised: Vec::new(),
            arrived: BTreeSet::new(),
            given: BTreeMap::new(),
            held: BTreeSet::new(),
            releases: Vec::new(),
            jobs: 0,
        };
        for (id, max_in_flight, lease_seconds) in POLICIES {
            let terms = PolicyTerms::new(max_in_flight, lease_seconds)?;
            load.engine.policies().create(&load.client, id.parse()?, terms).await?;
        }
        load.engine.tick().await?;
        for draft in load.standing_jobs()? {
            load.create(draft).await?;
        }
        Ok(load)
    }

    /// Jobs that fire again and again.
    fn standing_jobs(&self) -> Result<Vec<JobDraft>> {
        let (dice, url) = (self.dice, &*self.site.queue_url);
        let cron = |minutes: u64| JobSpec::cron(&format!("*/{minutes} * * * *"), "Europe/Berlin", url);
        let mut drafts = vec![cron(1)?.into_draft()];
        let large = if dice.chance(150) { 1_100 } else { dice.within(2..=230) };
        drafts.push(cron(dice.within(1..=2))?.of(large)?.into_draft());
        for (policy, events) in [("small", 2..=24), ("wide", 10..=60)] {
            let mut draft = cron(dice.within(1..=3))?.of(dice.within(events))?.under(policy)?.into_draft();
            if dice.chance(250) {
                draft.terms.flow.overlap = Overlap::BufferOne;
            }
            drafts.push(draft);
        }
        for _ in 0..dice.below(9) {
            drafts.push(cron(1)?.under("single")?.into_draft());
        }
        if dice.chance(500) {
            let rate = Rate::new(dice.within(30..=60), self.site.clock.now())?;
            let trigger = Trigger::Rate { rate, anchored: true };
            drafts.push(JobSpec::new(trigger, url)?.under("small")?.into_draft());
        }
        Ok(drafts)
    }

    async fn create(&mut self, draft: JobDraft) -> Result<()> {
        self.jobs += 1;
        // One in three has an id that says where it lies, if it launches once.
        let id = (!self.jobs.is_multiple_of(3)).then(|| format!("job-{}", self.jobs).parse()).transpose()?;
        let from = self.site.clock.now();
        let job = match self.engine.jobs().create(&self.client, id, draft).await? {
            Written::Created(job) => job,
            other => bail!("failed to create a job: {other:?}"),
        };
        let (_, is_whole) = self.site.snapshots.progress();
        if self.phase == Phase::Before && is_whole {
            self.promised.push(Promised { job, from, to: DateTime::<Utc>::MAX_UTC });
        }
        Ok(())
    }

    /// Plans the snapshots: within seconds, in any order.
    pub(super) fn cut(&self, at_once: bool) -> Result<()> {
        let now = self.site.clock.now();
        let spread_ms = if at_once { 0 } else { self.dice.within(1_000..=20_000) };
        let cut = |table| Cut {
            table,
            at: now + Duration::milliseconds(self.dice.within(0..=spread_ms) as i64),
            requests_later: if at_once { 0 } else { self.dice.below(40) },
        };
        self.site.snapshots.plan(Table::ALL.into_iter().map(cut).collect());
        Ok(())
    }

    pub(super) async fn run_until_cut(&mut self) -> Result<()> {
        for _ in 0..2_000 {
            if self.site.snapshots.progress().0 {
                return self.consume().await;
            }
            self.step().await?;
        }
        bail!("the snapshots were not taken")
    }

    /// What happens from now on is lost.
    pub(super) fn lose(&mut self) {
        self.phase = Phase::Lost;
    }

    /// The tables are restored: another process goes on. `held` are the tokens that they know.
    pub(super) async fn resume(&mut self, held: BTreeSet<Token>) -> Result<()> {
        self.held = held;
        self.engine = self.site.start();
        // What consumers got in the lost time they have.
        self.consume().await?;
        self.phase = Phase::After;
        Ok(())
    }

    pub(super) async fn run_for(&mut self, seconds: i64) -> Result<()> {
        let until = self.site.clock.now() + Duration::seconds(seconds);
        while self.site.clock.now() < until {
            self.step().await?;
        }
        Ok(())
    }

    pub(super) fn delivered(&self) -> usize {
        self.arrived.len()
    }

    async fn step(&mut self) -> Result<()> {
        self.site.clock.advance_ms(self.dice.within(100..=3_000) as i64);
        let minute = self.site.clock.now().timestamp().div_euclid(60);
        if minute > self.ticked_minute {
            self.ticked_minute = minute;
            self.engine.tick().await?;
        }
        for url in [self.site.deployment.scan_url(), self.site.deployment.dispatch_url()] {
            if self.dice.chance(900) {
                queue::pump(&self.engine, &self.site.deployment.sqs, url).await?;
            }
        }
        self.consume().await?;
        self.release().await?;
        if self.dice.chance(60) {
            self.engine = self.site.start();
        }
        if self.phase != Phase::After && self.dice.chance(300) {
            self.change_something().await?;
        }
        checks::within_limits(self.site).await
    }

    /// A job for one instant comes, or one goes.
    async fn change_something(&mut self) -> Result<()> {
        let (dice, now) = (self.dice, self.site.clock.now());
        if dice.chance(850) {
            let at = now + Duration::seconds(dice.within(1..=400) as i64);
            let spec = JobSpec::at(at, &self.site.queue_url)?;
            let spec = match dice.below(5) {
                0 | 1 => spec,
                2 => spec.under("single")?,
                3 => spec.of(dice.within(2..=40))?.under("small")?,
                _ => spec.of(dice.within(2..=120))?,
            };
            return self.create(spec.into_draft()).await;
        }
        let once = self.promised.iter().position(|promised| matches!(promised.job.trigger, Trigger::At(_)));
        let Some(gone) = once.filter(|_| self.phase == Phase::Before) else { return Ok(()) };
        let gone = self.promised.swap_remove(gone);
        self.engine.jobs().delete(&self.client, &gone.job.id, None).await?;
        Ok(())
    }

    async fn consume(&mut self) -> Result<()> {
        for text in queue::take_all(&self.site.deployment.sqs, &self.site.queue_url).await? {
            let event = Received::read(&text)?;
            let id = event.body.event_id.clone();
            if self.phase != Phase::Lost {
                self.arrived.insert(id.clone());
            }
            let Some(token) = event.token else { continue };
            if self.phase == Phase::After {
                let before = self.given.get(&token);
                ensure!(
                    before.is_none_or(|before| *before == id),
                    "token {token} was given before, for {before:?}"
                );
            } else {
                self.given.insert(token.clone(), id);
            }
            if self.dice.chance(940) {
                let at = self.site.clock.now() + Duration::milliseconds(self.dice.below(6_000) as i64);
                self.releases.push((at, token));
            }
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        let now = self.site.clock.now();
        let (due, later) = std::mem::take(&mut self.releases).into_iter().partition(|(at, _)| *at <= now);
        self.releases = later;
        let due: Vec<(DateTime<Utc>, Token)> = due;
        let releases: Vec<Release> =
            due.into_iter().map(|(_, token)| Release::new(token, Outcome::Succeeded)).collect();
        if releases.is_empty() {
            return Ok(());
        }
        let answers = self.engine.tokens().release(&self.client, releases).await?;
        for (token, answer) in answers {
            let is_lost =
                self.phase == Phase::After && self.given.contains_key(&token) && !self.held.contains(&token);
            ensure!(
                !(is_lost && answer == Released::Released),
                "token {token} was given in the time that is lost, and its release freed another lease"
            );
        }
        Ok(())
    }

    /// Everything that was due comes true, then jobs end, and everything comes to its end.
    pub(super) async fn end(&mut self) -> Result<()> {
        let now = self.site.clock.now();
        self.promised.iter_mut().for_each(|promised| promised.to = now);
        self.until(async |load| checks::all_came_true(load.site, &load.promised, &load.arrived).await)
            .await?;
        for place in 0..self.promised.len() {
            let job = &self.promised.get(place).context("a job is gone")?.job;
            if matches!(job.trigger, Trigger::At(_)) {
                continue;
            }
            let gone = self.engine.jobs().delete(&self.client, &job.id, None).await?;
            ensure!(gone == JobDelete::Done, "job {} is not there any more: {gone:?}", job.id);
        }
        self.until(async |load| checks::nothing_is_left(load.site).await).await
    }

    /// Goes on until something holds, or so many rounds are over.
    async fn until(&mut self, holds: impl AsyncFn(&Self) -> Result<()>) -> Result<()> {
        for _ in 0..LAST_ROUNDS {
            for _ in 0..STEPS_OF_A_ROUND {
                self.step().await?;
            }
            if holds(self).await.is_ok() {
                return Ok(());
            }
        }
        holds(self).await
    }
}
