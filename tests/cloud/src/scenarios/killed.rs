//! Functions that are killed between any two of their requests, and stopped at the end of their time in between. What is
//! throttled may be delivered once: an event whose sender was killed has no other delivery.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::StatusCode;
use serde_json::json;
use tidegate_domain::job::Attempts;
use tidegate_embedded::Service;

use super::herd::options;
use super::jobs::{HERD, NEIGHBOUR, two_kinds};
use super::{Report, midnight, minutes};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};
use crate::lambda::{Function, Kind};
use crate::weather::Trouble;

/// Jobs of each kind that are due at once: so many that a tick leaves parts to workers.
const JOBS: usize = 1_300;
/// Tokens of those that a policy throttles.
const TOKENS: u32 = 60;
/// Jobs that are created over the API while the master is killed.
const CREATED: usize = 12;
/// Requests of an invocation after which nobody is killed any more: none makes so many here.
const MOST_REQUESTS: u64 = 2_000;
/// How long a consumer may hold a token: what was granted by a function that was killed then comes back after this.
const LEASE_SECONDS: u32 = 600;
/// How many invocations are killed one after the other, and how long each may keep us waiting.
const KILLS: u32 = 3;
const WAIT: Duration = Duration::from_secs(120);
/// The tick that plans midnight comes a second before it: nobody is killed until so long before.
const ARMED_AHEAD: Duration = Duration::from_secs(30);
/// After the kills, every request to DynamoDB takes so much longer, for longer than from one tick to the next: functions run out
/// of time, though they begin nothing long in the second half of it.
const SLOW: Trouble = Trouble::Slow(Duration::from_millis(2_500));
const SLOW_FOR: Duration = Duration::from_secs(75);
/// The time of the functions that are killed.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Who is killed.
const VICTIMS: [(&str, Kind, Function); 4] = [
    ("ticks", Kind::Tick, Function::Emitter),
    ("parts", Kind::Part, Function::Emitter),
    ("handlers", Kind::Batch, Function::Handler),
    ("masters", Kind::Call, Function::Master),
];

/// Every kind of invocation, after each number of requests until none makes so many, three invocations running. Of a share, most
/// numbers are passed over.
pub(super) async fn anywhere(seed: u64, share: f64) -> Result<Report> {
    let mut report = Report::default();
    let step = (3.0 / share).sqrt().floor().max(1.0) as usize;
    for (name, kind, function) in VICTIMS {
        let (mut killed, mut timed_out, mut repeated, mut places) = (0, 0, 0, 0);
        // Calls and parts make few requests, ticks and batches very many.
        let step = match kind {
            Kind::Call => step.min(2),
            Kind::Part => step.min(4),
            Kind::Tick | Kind::Batch => 2 * step - 1,
        };
        for requests in (0..MOST_REQUESTS).step_by(step) {
            let found = match kind {
                Kind::Call => created_while_killed(seed, requests).await?,
                _ => killed_at(seed, (kind, function), requests).await?,
            };
            killed += found.killed;
            timed_out += found.timed_out;
            repeated += found.repeated;
            if !found.holds() {
                report.must(false, format!("{name} killed after {requests} requests: {found:?}"));
            }
            if found.killed == 0 {
                break;
            }
            places += 1;
        }
        report.must(
            killed > 0,
            format!("{name}: {killed} invocations were killed at {places} places, and nothing was lost"),
        );
        if kind != Kind::Call {
            report.must(timed_out > 0, format!("{name}: {timed_out} ran out of time in between"));
        }
        report.tell(name, format!("{repeated} events came twice"));
    }
    Ok(report)
}

/// What one region showed.
#[derive(Debug)]
struct Found {
    killed: u64,
    timed_out: u64,
    events: usize,
    events_due: usize,
    repeated: u32,
    minutes: usize,
    minutes_due: usize,
    dead: usize,
    not_allowed: usize,
}

impl Found {
    fn holds(&self) -> bool {
        self.events == self.events_due
            && self.minutes >= self.minutes_due
            && (self.dead, self.not_allowed) == (0, 0)
    }

    async fn of(
        cloud: &Cloud,
        (kind, function): (Kind, Function),
        events_due: usize,
        minutes_due: usize,
    ) -> Result<Self> {
        let (arrivals, invoked) = (cloud.arrivals.of(HERD), cloud.invoked(function));
        Ok(Self {
            killed: killed(cloud, kind),
            timed_out: invoked.timed_out,
            events: arrivals.len(),
            events_due,
            repeated: arrivals.iter().map(|arrival| arrival.times - 1).sum(),
            minutes: cloud.arrivals.count_of(NEIGHBOUR),
            minutes_due,
            dead: cloud.dead_letters().await?.len(),
            not_allowed: cloud.not_allowed().len(),
        })
    }
}

async fn killed_at(seed: u64, (kind, function): (Kind, Function), requests: u64) -> Result<Found> {
    let mut options = options(seed)?;
    let mut configured = function.as_deployed();
    configured.timeout = TIMEOUT;
    options.configured.insert(function, configured);
    let mut cloud = Cloud::new(options).await?;
    let (queue, throttled) = (cloud.target("herd").await?, cloud.target("throttled").await?);
    two_kinds(&cloud, JOBS, (&queue, &throttled), (TOKENS, LEASE_SECONDS, Attempts::new(1)?)).await?;
    let work = Work { takes: Duration::from_millis(100), releases_together: 10, result: None };
    let key = cloud.register(HERD).await?;
    let consumer = Consumer::start(&cloud, &throttled, &key, (6, work))?;
    cloud.start()?;
    cloud.until_instant(midnight()? - ARMED_AHEAD).await;
    cloud.kill_each(kind, requests, KILLS);
    for _ in 0..KILLS {
        let before = killed(&cloud, kind);
        if cloud.until(WAIT, |cloud| killed(cloud, kind) > before).await.is_none() {
            break;
        }
    }
    cloud.kill_each(kind, requests, 0);
    cloud.weather.trouble(Service::DynamoDb, SLOW, cloud.now(), cloud.now() + SLOW_FOR);
    // What a killed function had in hand comes again after six times its time-out.
    cloud.until_instant(midnight()? + minutes(30)).await;
    let most = consumer.most_at_once();
    ensure!(most <= TOKENS as usize, "{most} at once after {requests} requests");
    Found::of(&cloud, (kind, function), 2 * JOBS, 30).await
}

/// Invocations of this kind that were killed so far.
fn killed(cloud: &Cloud, kind: Kind) -> u64 {
    let emitter = cloud.invoked(Function::Emitter);
    match kind {
        Kind::Tick => emitter.killed_ticks,
        Kind::Part => emitter.killed_parts,
        Kind::Batch => cloud.invoked(Function::Handler).killed,
        Kind::Call => cloud.invoked(Function::Master).killed,
    }
}

/// Jobs with ids, due soon and later, throttled and not, that are asked for until they are answered.
async fn created_while_killed(seed: u64, requests: u64) -> Result<Found> {
    let mut cloud = Cloud::new(options(seed)?).await?;
    let (queue, key) = (cloud.target("herd").await?, cloud.register(HERD).await?);
    let policy = json!({"max_in_flight": CREATED, "lease_seconds": LEASE_SECONDS});
    two_kinds(&cloud, 1, (&queue, &queue), (CREATED as u32, LEASE_SECONDS, Attempts::new(1)?)).await?;
    cloud.start()?;
    let caller = cloud.caller();
    let (status, body) = caller.call("PUT", "/v1/policies/created", &key, &policy).await?;
    ensure!(status.is_success(), "{status} {body}");
    let began = cloud.now();
    for number in 0..CREATED {
        let at = began + Duration::from_secs(60 * (1 + number as u64 / 2));
        let mut job = json!({"trigger": {"at": at.to_rfc3339()}, "target": {"sqs": {"queue_url": queue}}});
        if number % 2 == 0 {
            job["policy_id"] = json!("created");
        }
        let path = format!("/v1/jobs/created-{number}");
        let mut kills = 0..KILLS;
        loop {
            if kills.next().is_some() {
                cloud.kill_after(Function::Master, requests);
            }
            let (status, body) = caller.call("PUT", &path, &key, &job).await?;
            match status {
                status if status.is_success() => break,
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => {}
                status => bail!("{path}: {status} {body}"),
            }
        }
        // None is killed that comes after the last of a job.
        cloud.kill_after(Function::Master, u64::MAX - 1);
    }
    cloud.until_instant(midnight()? + minutes(20)).await;
    for number in 0..CREATED {
        let job = format!("created-{number}").parse()?;
        let runs = cloud.engine().queries().runs(&HERD.parse()?, &job, None).await?;
        ensure!(runs.rows.len() == 1, "job {number} has {} runs", runs.rows.len());
    }
    let minutes_due = usize::try_from((cloud.now() - midnight()?).num_minutes()).context("no minutes")?;
    Found::of(&cloud, (Kind::Call, Function::Master), CREATED + 2, minutes_due).await
}
