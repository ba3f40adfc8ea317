//! The beginning of a history: services, clients, policies, and what jobs may look like.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::{Attempts, Count, History as Kept, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Relevancy, Rules};
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, Instants, Rate, parse_zone};
use tidegate_engine::clock::ManualClock;
use tidegate_engine::random::SeededRandom;
use tidegate_local::{ClientOptions, Embedded, Faults};
use tidegate_store::Store;

use super::chaos::{Chaos, Plan, Wire};
use super::dice::Dice;
use super::model::{Model, PolicyModel};
use super::processes::{Site, create_policy};
use crate::world::{DISPATCH, PREFIX, SCAN, create_queue};

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

/// The services of a history, seen from its processes and from outside.
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) site: Site,
    /// Clients that nothing happens to: the watcher's and the consumers'.
    pub(crate) store: Store,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) queue_urls: Vec<String>,
    _embedded: Embedded,
}

pub(crate) async fn stage(seed: u64, dice: &Dice) -> Result<Stage> {
    let start = DateTime::from_timestamp(1_795_262_400 + dice.below(7_200) as i64, 0).context("no start")?;
    let clock = Arc::new(ManualClock::new(start));
    let embedded = Embedded::in_memory(clock.clone())?;
    let rate = [0, 5, 20, 60, 120][dice.below(5) as usize];
    let chaos = Chaos::new(seed ^ 0x00c0_ffee, rate);
    let plain = ClientOptions::without_retries();
    let faulty = plain.clone().with_faults(Faults::new(Plan(Arc::clone(&chaos))));

    let (dynamodb, sqs) = (embedded.dynamodb_with(&plain), embedded.sqs_with(&plain));
    let store = Store::new(dynamodb, PREFIX);
    store.create_tables().await?;
    let dispatch_url = create_queue(&sqs, DISPATCH).await?;
    let scan_url = create_queue(&sqs, SCAN).await?;
    let mut queue_urls = Vec::new();
    for name in ["left", "right"] {
        queue_urls.push(create_queue(&sqs, name).await?);
    }

    let site_dynamodb = embedded.dynamodb_with(&faulty);
    let inner = site_dynamodb.config().http_client().context("a client without an HTTP client")?;
    let wired = site_dynamodb.config().to_builder().http_client(Wire::new(inner, Arc::clone(&chaos))).build();
    let site_store = Store::new(aws_sdk_dynamodb::Client::from_conf(wired), PREFIX);
    let site_sqs = embedded.sqs_with(&faulty);
    let inner = site_sqs.config().http_client().context("a client without an HTTP client")?;
    let wired = site_sqs.config().to_builder().http_client(Wire::new(inner, Arc::clone(&chaos))).build();
    let site = Site {
        store: site_store,
        sqs: aws_sdk_sqs::Client::from_conf(wired),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(seed ^ 0x1d5)),
        dispatch_url,
        scan_url,
    };
    Ok(Stage { clock, chaos, site, store, sqs, queue_urls, _embedded: embedded })
}

/// Clients with their policies. In some histories nobody releases the tokens of one policy.
pub(crate) async fn tenants(stage: &Stage, dice: &Dice) -> Result<Model> {
    let engine = stage.site.start();
    let mut model = Model::default();
    for name in ["acme", "zeta"].iter().take(1 + dice.below(2) as usize) {
        let client: ClientId = name.parse()?;
        for policy in ["small", "other"].iter().take(dice.below(3) as usize) {
            let limit = dice.within(1..=30) as u32;
            let hogged = dice.chance(120);
            let lease_seconds = if hogged { 7_200 } else { dice.within(5..=60) as u32 };
            let id = policy.parse()?;
            create_policy(&engine, &client, &id, PolicyTerms::new(limit, lease_seconds)?).await?;
            model.policies.push(PolicyModel::new(client.clone(), id, limit, lease_seconds, hogged));
        }
        model.clients.push(client);
    }
    Ok(model)
}

/// Something that a client may want.
pub(crate) fn trigger(dice: &Dice, now: DateTime<Utc>, once: bool) -> Result<Trigger> {
    if once || dice.chance(450) {
        return Ok(Trigger::at(instant(dice, now).max(now - Duration::seconds(1))));
    }
    if dice.chance(200) {
        let instants = (0..dice.within(2..=9)).map(|_| instant(dice, now));
        return Ok(Trigger::At(Instants::new(instants)?));
    }
    if dice.chance(250) {
        let every = dice.within(20..=200);
        let anchored = dice.chance(500);
        let anchor = if anchored { instant(dice, now) } else { now + Duration::seconds(every as i64) };
        return Ok(Trigger::Rate { rate: Rate::new(every, anchor)?, anchored });
    }
    let cron = dice.pick(&CRONS).context("no expression")?;
    let zone = dice.pick(&ZONES).context("no zone")?;
    Ok(Trigger::Cron { spec: CronSpec::parse(cron)?, zone: parse_zone(zone)? })
}

/// An instant from now on. The later ones are the emitter's alone.
fn instant(dice: &Dice, now: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = if dice.chance(800) { dice.below(300) } else { dice.within(300..=700) };
    DateTime::from_timestamp(now.timestamp() + ahead as i64, 0).unwrap_or(now)
}

/// What a client may say about the launches. Most say nothing.
pub(crate) fn rules(dice: &Dice, now: DateTime<Utc>) -> Result<Rules> {
    let ahead = |seconds: u64| DateTime::from_timestamp(now.timestamp() + seconds as i64, 0);
    let mut rules = Rules::default();
    match dice.below(10) {
        0 => rules.misfire = Misfire::Skip,
        1 => rules.misfire = Misfire::Latest,
        2 => rules.misfire = Misfire::All(MisfireLaunches::new(dice.within(1..=4))?),
        _ => {}
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
    let count = match dice.below(4) {
        0 => 1,
        1 => dice.within(2..=5),
        2 => dice.within(5..=30),
        _ => dice.within(20..=120),
    };
    let size = if dice.chance(200) { 900 } else { 3 };
    Ok(Terms {
        count: Count::new(count)?,
        policy: policy.map(|policy| policy.id.clone()),
        target: Target::sqs(dice.pick(&stage.queue_urls).context("no queue")?)?,
        payload: Payload::new(format!("\"{}\"", "x".repeat(size)))?,
        history: if dice.chance(500) { Kept::All } else { Kept::Failures },
        relevancy: if dice.chance(150) { Some(Relevancy::new(dice.within(20..=400))?) } else { None },
        max_attempts: Attempts::new(dice.within(1..=4))?,
    })
}
