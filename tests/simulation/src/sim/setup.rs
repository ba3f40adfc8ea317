//! The beginning of a history: services, clients, policies, and what jobs may look like.

use std::str::FromStr as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use croner::Cron;
use tidegate_domain::clock::{Clock as _, ManualClock};
use tidegate_domain::fair::{FairBy, Lane, Pointer};
use tidegate_domain::flow::{BatchWindow, Cost, Deadline, Flow, MaxFailures, OnDeadline, Priority};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::job::{Attempts, Count, History as Kept, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::limits::MAX_COST;
use tidegate_domain::policy::{OnExpiry, PolicyTerms};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_domain::retry::{Backoff, Retry, RetryWait};
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Relevancy, Rules};
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, Instants, Rate, parse_zone};
use tidegate_embedded::{ClientOptions, Embedded, Faults};
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{Engine, Written};
use tidegate_store::{Spread, Store};
use tidegate_testkit::{Deployment, Process};

use super::Options;
use super::chaos::{Chaos, Plan, wired};
use super::clocks::{APART_MS, Clocks};
use super::coverage::CoveredFault;
use super::dice::Dice;
use super::endpoints::{self, Endpoints};
use super::letters::Operator;
use super::mix::{self, MisfireRule, Place, TriggerKind};
use super::model::{JobModel, Model, PolicyModel};
use super::processes::create_policy;
use crate::mutants::{self, Census};
use crate::world::JobSpec;

const CRONS: [&str; 7] = [
    "* * * * *",
    "*/2 * * * *",
    "1-59/3 * * * *",
    "0,30 * * * *",
    "5 12 * * *",
    "*/30 * * * * *",
    "7,41 */2 * * * *",
];
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York"];
/// How the URL of a queue ends that is not there.
pub(crate) const MISSING: &str = "missing";
/// An endpoint that no deployment may call. Others would take sockets, which no history has.
const REFUSED_URL: &str = "http://127.0.0.1:9/hook";

/// The services of a history, seen from its processes and from outside.
pub(crate) struct Stage {
    /// The true clock: the services', the consumers' and the watcher's.
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) clocks: Clocks,
    pub(crate) processes: usize,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) census: Arc<Census>,
    /// What every process is started with.
    pub(crate) site: Process,
    /// How many single events are too few for a pack.
    few: usize,
    /// The tables and queues through clients that nothing happens to: the watcher's and the consumers'.
    pub(crate) store: Store,
    pub(crate) deployment: Deployment,
    pub(crate) queue_urls: Vec<String>,
    /// Where clients are told of the ends of runs. Nobody looks there.
    callback_url: String,
    /// Draws the lanes of jobs, in a quarter of the histories; in the others nothing says `fair_by`. Dice of their own, so that
    /// the other histories are what they were before.
    lanes: Option<Dice>,
    /// In another quarter: endpoints that answer.
    pub(crate) endpoints: Option<Arc<Endpoints>>,
    /// In some of the others: who redrives what is dead.
    pub(crate) operator: Option<Operator>,
    /// By which jobs and clients are sidelined; `None`: none are.
    pub(crate) sidelines: Option<Dice>,
    _embedded: Embedded,
}

impl Stage {
    /// A process that remembers nothing.
    pub(crate) fn start(&self, process: usize) -> Engine {
        let engine = self.site.start(self.clocks.of(process));
        match &self.endpoints {
            None => engine.with_few(self.few),
            Some(endpoints) => engine.with_few_and_callee(self.few, endpoints.clone()),
        }
    }
}

pub(crate) async fn stage(seed: u64, dice: &Dice, options: Options) -> Result<Stage> {
    let start = DateTime::from_timestamp(1_795_262_400 + dice.below(7_200) as i64, 0).context("no start")?;
    let clock = Arc::new(ManualClock::new(start));
    let embedded = Embedded::in_memory(clock.clone())?;
    let rate = *dice.weighted(&mix::FAULT_RATES);
    let chaos = Chaos::new(seed ^ 0x00c0_ffee, rate);
    let plain = ClientOptions::without_retries();
    let faulty = plain.clone().with_faults(Faults::new(Plan(Arc::clone(&chaos))));

    let spread = Spread {
        at_shards: *dice.weighted(&mix::AT_SHARDS),
        groups_per_part: *dice.weighted(&mix::GROUPS_PER_PART),
    };
    let deployment = Deployment::on(&embedded, &plain).await?;
    let callback_url = deployment.queue("callbacks").await?;
    let mut queue_urls = Vec::new();
    for name in ["left", "right"] {
        queue_urls.push(deployment.queue(name).await?);
    }

    let census = Arc::new(Census::default());
    let site = deployment.process_with(&embedded, &faulty).spread(spread);
    let site = site.random(SeededRandom::new(seed ^ 0x1d5)).dynamodb_through(|mut http| {
        if options.counts_clauses {
            let quiet = Arc::clone(&chaos);
            http = mutants::counting(http, &census, move |is_quiet| quiet.set_quiet(is_quiet));
        }
        if let Some(mutant) = options.mutant {
            http = mutant.before(http);
        }
        wired(http, &chaos)
    })?;
    let site = site.sqs_through(|http| wired(http, &chaos))?;
    let few = *dice.weighted(&mix::FEW);
    let offsets_ms = offsets_ms(dice);
    if offsets_ms.iter().any(|offset| *offset != offsets_ms[0]) {
        chaos.count(CoveredFault::ClocksApart);
    }
    let (processes, clocks) = (offsets_ms.len(), Clocks::new(&clock, &offsets_ms));
    let endpoints = (seed % 4 == 3).then(|| Endpoints::new(Dice::new(seed ^ 0xe4_d5), &chaos));
    let stage = Stage {
        clock,
        clocks,
        processes,
        chaos,
        census,
        site,
        few,
        store: deployment.process().spread(spread).store(),
        deployment,
        queue_urls,
        callback_url,
        lanes: (seed % 4 == 1).then(|| Dice::new(seed ^ 0x1a_e5)),
        endpoints,
        operator: matches!(seed % 8, 2 | 3 | 6).then(|| Operator::new(Dice::new(seed ^ 0x0b_5e))),
        sidelines: (seed % 4 == 1).then(|| Dice::new(seed ^ 0x51_de)),
        _embedded: embedded,
    };
    Ok(stage)
}

/// One to three processes, by how much the clock of each is ahead of the true one.
fn offsets_ms(dice: &Dice) -> Vec<i64> {
    let processes = 1 + dice.below(3);
    let apart = dice.chance(600);
    let offset = |process| match (apart, process) {
        (false, _) => 0,
        // The first two as far apart as clocks are.
        (true, 0) => -APART_MS / 2,
        (true, 1) => APART_MS / 2,
        (true, _) => dice.below(APART_MS as u64) as i64 - APART_MS / 2,
    };
    (0..processes).map(offset).collect()
}

/// Clients with their policies. In some histories nobody releases the tokens of one policy; in some every policy has one
/// token, so that its last release meets the first enqueue again and again; in some a client has a million events.
pub(crate) async fn tenants(stage: &Stage, dice: &Dice) -> Result<Model> {
    let engine = stage.start(0);
    let mut model = Model { tight: dice.chance(250), ..Model::default() };
    for _ in 0..*dice.weighted(&mix::ZONES_IN_USE) {
        model.zones.push(parse_zone(dice.pick(&ZONES).context("no zone")?)?);
    }
    for name in ["acme", "zeta"].iter().take(1 + dice.below(2) as usize) {
        let client: ClientId = name.parse()?;
        let policies = if model.tight { 1 + dice.below(2) } else { dice.below(3) };
        for policy in ["small", "other"].iter().take(policies as usize) {
            let limit = if model.tight { 1 } else { dice.within(1..=30) as u32 };
            let starved = !model.tight && dice.chance(120);
            let lease_seconds = if starved { 7_200 } else { dice.within(10..=60) as u32 };
            let (id, terms) = (policy.parse()?, policy_terms(dice, limit, lease_seconds)?);
            create_policy(&engine, &client, &id, terms).await?;
            model.policies.push(PolicyModel { starved, ..PolicyModel::new(client.clone(), id, terms) });
        }
        model.clients.push(client);
    }
    if !model.tight && dice.chance(100) {
        million_beside_ten(stage, dice, &engine, &mut model).await?;
    }
    Ok(model)
}

/// A client with a run of a million events, and another with one of ten. Nobody changes either job.
async fn million_beside_ten(stage: &Stage, dice: &Dice, engine: &Engine, model: &mut Model) -> Result<()> {
    let url = stage.queue_urls.first().context("no queue")?;
    for (client, name, count, limit) in [("whale", "million", 1_000_000, 5), ("acme", "ten", 10, 2)] {
        let (client, policy): (ClientId, PolicyId) = (client.parse()?, name.parse()?);
        let terms = PolicyTerms::new(dice.within(1..=limit) as u32, 60)?;
        create_policy(engine, &client, &policy, terms).await?;
        let endless = count > 10;
        model.policies.push(PolicyModel { endless, ..PolicyModel::new(client.clone(), policy, terms) });
        let launch_at = stage.clock.now() + Duration::seconds(dice.within(5..=60) as i64);
        let launch_at = DateTime::from_timestamp(launch_at.timestamp(), 0).unwrap_or(launch_at);
        let spec = JobSpec::at(launch_at, url)?.of(count)?.under(name)?;
        let written = engine.jobs().create(&client, Some(name.parse()?), spec.into_draft()).await?;
        let Written::Created(job) = written else { bail!("failed to create the job of {count} events") };
        let mut job_model = JobModel::new(client, Some(job.id.clone()));
        job_model.told(Some(job));
        job_model.kept = true;
        model.jobs.push(job_model);
    }
    Ok(())
}

/// When a client may want something, with its cron expression.
pub(crate) fn trigger(
    dice: &Dice,
    zones: &[Tz],
    now: DateTime<Utc>,
    once: bool,
) -> Result<(Trigger, Option<Cron>)> {
    let kind = if once { TriggerKind::Instant } else { *dice.weighted(&mix::TRIGGERS) };
    let trigger = match kind {
        TriggerKind::Instant => Trigger::at(instant(dice, now).max(now - Duration::seconds(1))),
        TriggerKind::Instants => {
            let instants = (0..dice.within(2..=9)).map(|_| instant(dice, now));
            Trigger::At(Instants::new(instants)?)
        }
        TriggerKind::Rate => {
            let every = dice.within(20..=200);
            let anchored = dice.chance(500);
            let anchor = if anchored { instant(dice, now) } else { now + Duration::seconds(every as i64) };
            Trigger::Rate { rate: Rate::new(every, anchor)?, anchored }
        }
        TriggerKind::Cron => {
            let cron = dice.pick(&CRONS).context("no expression")?;
            let zone = *dice.pick(zones).context("no zone")?;
            let trigger = Trigger::Cron { spec: CronSpec::parse(cron)?, zone };
            return Ok((trigger, Some(Cron::from_str(cron)?)));
        }
    };
    Ok((trigger, None))
}

/// An instant from now on.
fn instant(dice: &Dice, now: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = dice.within(dice.weighted(&mix::AHEAD_SECONDS).clone());
    DateTime::from_timestamp(now.timestamp() + ahead as i64, 0).unwrap_or(now)
}

/// What a client may say about the launches. Most say nothing.
pub(crate) fn rules(dice: &Dice, now: DateTime<Utc>) -> Result<Rules> {
    let ahead = |seconds: u64| DateTime::from_timestamp(now.timestamp() + seconds as i64, 0);
    let mut rules = Rules::default();
    match dice.weighted(&mix::MISFIRES) {
        MisfireRule::Nothing => {}
        MisfireRule::Skip => rules.misfire = Misfire::Skip,
        MisfireRule::Latest => rules.misfire = Misfire::Latest,
        MisfireRule::SomeOf => rules.misfire = Misfire::All(MisfireLaunches::new(dice.within(1..=4))?),
    }
    if dice.chance(120) {
        rules.jitter = Jitter::new(dice.within(1..=120))?;
    }
    if dice.chance(100) {
        rules.start_at = ahead(dice.below(90));
    }
    if dice.chance(100) {
        rules.end_at = ahead(dice.within(100..=600));
    }
    Ok(rules)
}

pub(crate) fn terms(dice: &Dice, model: &Model, client: &ClientId, stage: &Stage) -> Result<Terms> {
    let policies: Vec<&PolicyModel> = model.policies.iter().filter(|p| p.client == *client).collect();
    let policy = if dice.chance(700) { dice.pick(&policies) } else { None };
    let count = if model.tight { mix::TIGHT_EVENTS } else { dice.weighted(&mix::EVENTS).clone() };
    let count = dice.within(count);
    let size = if dice.chance(200) { 900 } else { 3 };
    let target = target(dice, stage)?;
    // What nobody takes holds its token for as long as it is tried: few, or a history never comes to an end.
    let (count, attempts) = if is_poison(&target) { (1, 2) } else { (count, 4) };
    let is_throttled = policy.is_some();
    let release_on_response = endpoints::releases(target.address());
    Ok(Terms {
        count: Count::new(count)?,
        policy: policy.map(|policy| policy.id.clone()),
        target,
        payload: Payload::new(format!("\"{}\"", "x".repeat(size)))?,
        history: if dice.chance(500) { Kept::All } else { Kept::Failures },
        history_days: HistoryDays::DEFAULT,
        relevancy: if dice.chance(150) { Some(Relevancy::new(dice.within(20..=400))?) } else { None },
        max_attempts: Some(Attempts::new(dice.within(1..=attempts))?),
        retry: retry(dice)?,
        flow: match is_throttled {
            true => Flow { release_on_response, ..flow(dice, stage)? },
            false => Flow::default(),
        },
        unknown: Default::default(),
    })
}

/// When what a target does not take is sent again: some at once, some after a wait, some never.
fn retry(dice: &Dice) -> Result<Retry> {
    let backoff = match dice.below(4) {
        0 => Backoff::None,
        1 => Backoff::Fixed { wait: RetryWait::new(dice.within(1..=20))? },
        _ => Backoff::default(),
    };
    Ok(Retry { backoff, ..Retry::default() })
}

/// How the events go through their policy. Most say nothing of it.
fn flow(dice: &Dice, stage: &Stage) -> Result<Flow> {
    let mut flow = Flow::default();
    if dice.chance(200) {
        flow.cost = Cost::new(dice.within(1..=MAX_COST.into()))?;
    }
    if dice.chance(200) {
        flow.priority = Priority::new(dice.below(10))?;
    }
    flow.fair_by = stage.lanes.as_ref().map(fair_by).transpose()?.flatten();
    flow.overlap = *dice.weighted(&mix::OVERLAPS);
    if dice.chance(150) {
        flow.window = Some(BatchWindow {
            deadline: Deadline::after(dice.within(10..=240))?,
            on_deadline: if dice.chance(500) { OnDeadline::Expire } else { OnDeadline::Continue },
            paced: dice.chance(300),
        });
    }
    if dice.chance(100) {
        flow.max_failures = Some(MaxFailures::new(dice.within(1..=5))?);
    }
    if dice.chance(150) {
        flow.on_completion = Some(Target::sqs(&stage.callback_url)?);
    }
    Ok(flow)
}

/// One of a few lanes, or none.
fn fair_by(lanes: &Dice) -> Result<Option<FairBy>> {
    let lane = Lane::of(&lanes.below(4).to_string());
    Ok(if lanes.chance(750) { Some(FairBy { pointer: Pointer::new("/customer")?, lane }) } else { None })
}

/// What a policy says beside its numbers. Most say nothing.
fn policy_terms(dice: &Dice, limit: u32, lease_seconds: u32) -> Result<PolicyTerms> {
    let mut terms = PolicyTerms::new(limit, lease_seconds)?;
    if dice.chance(100) {
        terms = terms.with_on_expiry(OnExpiry::Hold);
    }
    if dice.chance(100) {
        let (events, per) = match dice.chance(500) {
            true => (dice.within(5..=50), Per::Second),
            false => (dice.within(300..=1_200), Per::Minute),
        };
        let burst = dice.chance(500).then(|| dice.within(1..=10) as u32);
        terms = terms.with_rate(Some(RateLimit::new(events as u32, per, burst)?));
    }
    Ok(terms)
}

/// Where events go. Some of those places take none, ever.
fn target(dice: &Dice, stage: &Stage) -> Result<Target> {
    let url = dice.pick(&stage.queue_urls).context("no queue")?;
    Ok(match dice.weighted(&mix::PLACES) {
        Place::Queue => match stage.endpoints.as_ref().and_then(|endpoints| endpoints.draw_url()) {
            Some(url) => Target::http(url)?,
            None => Target::sqs(url)?,
        },
        Place::MissingQueue => Target::sqs(&format!("{url}-{MISSING}"))?,
        Place::RefusedEndpoint => Target::http(REFUSED_URL)?,
    })
}

/// Whether nothing that goes there can arrive, before the queues are there that are missing.
pub(crate) fn is_poison(target: &Target) -> bool {
    is_refused(target) || target.address().ends_with(MISSING)
}

/// Whether nothing that goes there can ever arrive.
pub(crate) fn is_refused(target: &Target) -> bool {
    target.address() == REFUSED_URL
}
