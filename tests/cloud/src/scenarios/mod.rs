//! What must hold on AWS as it is. Each scenario is a region of its own; what it found is a few findings, each held or not.

mod calls;
mod crowd;
mod herd;
mod histories;
mod jobs;
mod killed;
mod long;
mod outage;
mod poison;
mod policies;
mod restored;
mod sizes;
mod slow;
mod throttled;
mod upgrade;
mod wide;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, TimeZone as _, Utc};

use crate::arrivals::Lateness;
use crate::cloud::Cloud;
use crate::lambda::Function;
use crate::limits::{PARTITION_READS, PARTITION_WRITES};
use jobs::NEIGHBOUR;

/// Launches that an outage missed and that are made up for, unless a job says otherwise.
const MADE_UP_FOR: usize = 100;

/// A scenario, by its name. `share` is the part of its full size that is played, 1 for all of it.
struct Scenario {
    name: &'static str,
    what: &'static str,
    play: fn(u64, f64) -> Result<Report>,
    /// Whether there is no short form of it: it would take long, and another one shows nearly the same.
    only_in_full: bool,
}

const fn scenario(name: &'static str, what: &'static str, play: fn(u64, f64) -> Result<Report>) -> Scenario {
    Scenario { name, what, play, only_in_full: false }
}

impl Scenario {
    const fn only_in_full(self) -> Self {
        Self { only_in_full: true, ..self }
    }
}

const SCENARIOS: &[Scenario] = &[
    scenario(
        "herd",
        "100,000 one-time jobs at 00:00:00, cold tables, 1,000 concurrency, provisioned pollers",
        |seed, share| in_virtual_time(herd::provisioned(seed, share)),
    ),
    scenario("herd-new-account", "the same on an account with 10 concurrent", |seed, share| {
        in_virtual_time(herd::new_account(seed, share))
    }),
    scenario(
        "herd-large-account",
        "the same, deployed with the parameters of docs/operations.md for 1,000 concurrent",
        |seed, share| in_virtual_time(herd::large_account(seed, share)),
    ),
    scenario(
        "flooded-new-account",
        "a herd on an account with 10 concurrent, whose API is called without end",
        |seed, share| in_virtual_time(herd::flooded(seed, share)),
    )
    .only_in_full(),
    scenario(
        "named-herd",
        "100,000 one-time jobs with ids of their client's choice and payloads of 1 KB at 00:00:00, read from one key",
        |seed, share| in_virtual_time(herd::named_with_payloads(seed, share)),
    ),
    scenario(
        "policies",
        "10,000 throttled single events over 1,000 policies at one second",
        |seed, share| in_virtual_time(policies::many(seed, share)),
    ),
    scenario("one-policy", "100,000 throttled single events over one policy", |seed, share| {
        in_virtual_time(policies::one(seed, share))
    }),
    scenario("million", "one unthrottled job of 1,000,000 events, `history: all`", |seed, share| {
        in_virtual_time(crowd::unthrottled(seed, share))
    }),
    scenario(
        "million-throttled",
        "1,000,000 events under 1,000 tokens, 5,000 releases a second, each with a text",
        |seed, share| in_virtual_time(throttled::large(seed, share)),
    ),
    scenario(
        "short-jobs",
        "10 tokens, jobs of 20 ms, released one by one from 10 consumers",
        |seed, share| in_virtual_time(throttled::short(seed, share)),
    ),
    scenario(
        "killed",
        "tick, part workers, handlers and masters killed after each number of requests, with time-outs in between",
        |seed, share| in_virtual_time(killed::anywhere(seed, share)),
    ),
    scenario(
        "wide",
        "a run under 10,000 tokens: until all are held, and cancelled while they are",
        |seed, share| in_virtual_time(wide::cancelled(seed, share)),
    ),
    scenario(
        "slow-emission",
        "1,000 batches under 1,000 policies at one second, while each call to DynamoDB takes 1.5 s longer",
        |seed, share| in_virtual_time(slow::emission(seed, share)),
    ),
    scenario(
        "dynamodb-away-15m",
        "DynamoDB away for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::DYNAMODB_AWAY, 15)),
    ),
    scenario("dynamodb-away-3h", "DynamoDB away for 3 hours, in the middle of the herd", |seed, share| {
        in_virtual_time(outage::during(seed, share, outage::DYNAMODB_AWAY, 180))
    })
    .only_in_full(),
    scenario(
        "dynamodb-slow-15m",
        "DynamoDB 2.5 s slower for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::DYNAMODB_SLOW, 15)),
    ),
    scenario(
        "dynamodb-slow-3h",
        "DynamoDB 2.5 s slower for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::DYNAMODB_SLOW, 180)),
    )
    .only_in_full(),
    scenario(
        "dynamodb-throttled-15m",
        "DynamoDB throttles every call for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::DYNAMODB_THROTTLED, 15)),
    ),
    scenario(
        "dynamodb-throttled-3h",
        "DynamoDB throttles every call for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::DYNAMODB_THROTTLED, 180)),
    )
    .only_in_full(),
    scenario("sqs-away-15m", "SQS away for 15 minutes, in the middle of the herd", |seed, share| {
        in_virtual_time(outage::during(seed, share, outage::SQS_AWAY, 15))
    }),
    scenario("sqs-away-3h", "SQS away for 3 hours, in the middle of the herd", |seed, share| {
        in_virtual_time(outage::during(seed, share, outage::SQS_AWAY, 180))
    })
    .only_in_full(),
    scenario("sqs-slow-15m", "SQS 2.5 s slower for 15 minutes, in the middle of the herd", |seed, share| {
        in_virtual_time(outage::during(seed, share, outage::SQS_SLOW, 15))
    }),
    scenario("sqs-slow-3h", "SQS 2.5 s slower for 3 hours, in the middle of the herd", |seed, share| {
        in_virtual_time(outage::during(seed, share, outage::SQS_SLOW, 180))
    })
    .only_in_full(),
    scenario(
        "sqs-throttled-15m",
        "SQS throttles every call for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::SQS_THROTTLED, 15)),
    ),
    scenario(
        "sqs-throttled-3h",
        "SQS throttles every call for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::SQS_THROTTLED, 180)),
    )
    .only_in_full(),
    scenario(
        "both-away-15m",
        "DynamoDB and SQS away for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_AWAY, 15)),
    ),
    scenario(
        "both-away-3h",
        "DynamoDB and SQS away for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_AWAY, 180)),
    ),
    scenario(
        "both-slow-15m",
        "DynamoDB and SQS 2.5 s slower for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_SLOW, 15)),
    )
    .only_in_full(),
    scenario(
        "both-slow-3h",
        "DynamoDB and SQS 2.5 s slower for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_SLOW, 180)),
    )
    .only_in_full(),
    scenario(
        "both-throttled-15m",
        "DynamoDB and SQS throttle every call for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_THROTTLED, 15)),
    ),
    scenario(
        "both-throttled-3h",
        "DynamoDB and SQS throttle every call for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::BOTH_THROTTLED, 180)),
    )
    .only_in_full(),
    scenario(
        "lambda-away-15m",
        "Lambda invokes nothing for 15 minutes, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::Outage::Lambda, 15)),
    ),
    scenario(
        "lambda-away-3h",
        "Lambda invokes nothing for 3 hours, in the middle of the herd",
        |seed, share| in_virtual_time(outage::during(seed, share, outage::Outage::Lambda, 180)),
    )
    .only_in_full(),
    scenario(
        "long",
        "a run that lasts 40 days, and a policy that is paused for 30; expired rows are deleted",
        |seed, share| in_virtual_time(long::run(seed, share)),
    )
    // Of a shorter one no row expires. What must hold is held in the tests by `long_lived` of the simulation.
    .only_in_full(),
    scenario(
        "upgrade",
        "a version deployed in the middle of the herd and taken back; one that adds to rows, and one of another format",
        |seed, share| in_virtual_time(upgrade::taken_back(seed, share)),
    ),
    scenario(
        "restored",
        "tables restored from snapshots a second apart in the middle of the herd, and repaired",
        |seed, share| in_virtual_time(restored::repaired(seed, share)),
    ),
    scenario(
        "poison",
        "rows that cannot be read, an unknown zone, payloads that double, foreign and newer messages",
        |seed, share| in_virtual_time(poison::of_every_kind(seed, share)),
    ),
    scenario(
        "sizes",
        "the same load while one function after the other has 128 MB to 1,769 MB",
        |seed, share| in_virtual_time(sizes::compared(seed, share)),
    )
    .only_in_full(),
    scenario(
        "histories",
        "200 drawn histories: jobs and policies of any kind, troubles, kills, silence, doubled messages",
        |seed, share| in_virtual_time(histories::many(seed, share)),
    ),
];

/// The names of all scenarios, with what each plays.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCENARIOS.iter().map(|scenario| (scenario.name, scenario.what))
}

/// The names of those that have a short form.
pub fn short() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().filter(|scenario| !scenario.only_in_full).map(|scenario| scenario.name)
}

/// Plays a scenario.
///
/// # Errors
/// When there is none of this name, or the model itself fails. What does not hold is no error: the report says it.
pub fn play(name: &str, seed: u64, share: f64) -> Result<Report> {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let Some(scenario) = scenario else {
        let names: Vec<_> = all().map(|(name, _)| name).collect();
        bail!("no scenario is called '{name}': {}", names.join(", "));
    };
    (scenario.play)(seed, share).with_context(|| format!("failed to play {name} with seed {seed}"))
}

/// What a scenario found.
#[derive(Debug, Default)]
pub struct Report {
    /// What must hold, and whether it does.
    pub findings: Vec<Finding>,
    /// What is told beside it.
    pub figures: Vec<(&'static str, String)>,
}

/// Something that must hold.
#[derive(Debug)]
pub struct Finding {
    /// What.
    pub what: String,
    /// Whether it does.
    pub holds: bool,
}

impl Report {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds)
    }

    /// What is told under a name; nothing when it is not.
    pub fn figure(&self, name: &str) -> &str {
        self.figures.iter().find(|(of, _)| *of == name).map_or("", |(_, figure)| figure)
    }

    /// How much of what should be delivered was; nothing where that is not what is looked at.
    pub fn came(&self) -> &str {
        let came = self.findings.iter().find(|finding| finding.what.ends_with("events delivered"));
        came.map_or("", |finding| &finding.what)
    }

    fn must(&mut self, holds: bool, what: impl Into<String>) {
        self.findings.push(Finding { what: what.into(), holds });
    }

    fn tell(&mut self, name: &'static str, figure: impl Into<String>) {
        self.figures.push((name, figure.into()));
    }

    /// Holds what came against what should have, and tells how late it was.
    fn must_arrive(&mut self, cloud: &Cloud, client: &str, events: usize) -> Lateness {
        let lateness = Lateness::of(&cloud.arrivals.of(client));
        self.must(lateness.events == events, format!("{} of {events} events delivered", lateness.events));
        self.must(lateness.least_ms >= 0, "none early".to_owned());
        self.tell(
            "late",
            format!(
                "{} median, {} p99, {} at the most",
                seconds(lateness.median_ms),
                seconds(lateness.p99_ms),
                seconds(lateness.most_ms)
            ),
        );
        lateness
    }

    /// Holds that the neighbour's job, which fires each minute, missed none: misfires are made up for, up to the latest 100.
    fn must_miss_no_minute(&mut self, cloud: &Cloud) {
        let arrivals = cloud.arrivals.of(NEIGHBOUR);
        let minutes: BTreeSet<i64> = arrivals.iter().map(|arrival| arrival.due_at.timestamp() / 60).collect();
        let due = minutes_due(cloud);
        let missed: Vec<String> = due
            .clone()
            .filter(|minute| !minutes.contains(minute))
            .filter_map(|minute| Some(DateTime::from_timestamp(minute * 60, 0)?.format("%H:%M").to_string()))
            .collect();
        let some = missed.iter().take(5).collect::<Vec<_>>();
        self.tell("the neighbour's minutes", format!("{} came, missed {some:?}", minutes.len()));
        let due = due.count();
        let came = due - missed.len();
        self.must(
            came >= due.min(MADE_UP_FOR),
            format!("{came} of the neighbour's {due} minutes came, of which the latest {MADE_UP_FOR} must"),
        );
    }

    /// Holds that the neighbour's job, which fires each minute, was never later than so many milliseconds, nor missed one.
    fn must_not_hold_the_neighbour_up(&mut self, cloud: &Cloud, most_ms: i64) {
        let beside = Lateness::of(&cloud.arrivals.of(NEIGHBOUR));
        let due = minutes_due(cloud).count();
        self.must(
            beside.events >= due && beside.most_ms <= most_ms,
            format!(
                "the neighbour's minute job came {} times of {due}, at most {} late",
                beside.events,
                seconds(beside.most_ms)
            ),
        );
    }

    /// Holds that no key took more than a partition has, and that nothing was refused for it.
    fn must_heat_no_key(&mut self, cloud: &Cloud) {
        let (writes, reads) = cloud.hottest();
        self.must(
            writes.units <= PARTITION_WRITES && reads.units <= PARTITION_READS,
            format!(
                "no key over its limit: {} took {:.0} W in a second, {} {:.0} R",
                writes.key, writes.units, reads.key, reads.units
            ),
        );
        let (throttled, _) = cloud.refused();
        self.must(throttled == 0, format!("{throttled} requests were throttled"));
    }

    /// Holds that nothing was given up, and that no function asked for more than its role allows.
    async fn must_give_nothing_up(&mut self, cloud: &Cloud) -> Result<()> {
        let not_allowed = cloud.not_allowed();
        if !not_allowed.is_empty() {
            self.must(false, format!("the roles do not allow {not_allowed:?}"));
        }
        let dead = cloud.dead_letters().await?;
        let example = dead.first().map(|text| text.chars().take(120).collect::<String>());
        self.must(dead.is_empty(), format!("{} dead letters {}", dead.len(), example.unwrap_or_default()));
        Ok(())
    }

    /// Tells what the region did.
    fn tell_of(&mut self, cloud: &Cloud, events: usize) {
        let usage = cloud.usage();
        let per_event = |units: f64| units / events.max(1) as f64;
        self.tell(
            "units per event",
            format!("{:.2} W, {:.2} R", per_event(usage.write_units()), per_event(usage.read_units())),
        );
        self.tell("requests to SQS per event", format!("{:.2}", per_event(usage.sqs_requests() as f64)));
        let (throttled, conflicts) = cloud.refused();
        self.tell("refused", format!("{throttled} throttled, {conflicts} met a transaction"));
        let (writes, reads) = cloud.hottest();
        self.tell(
            "hottest keys",
            format!("{} {:.0} W a second, {} {:.0} R", writes.key, writes.units, reads.key, reads.units),
        );
        let latest = cloud.latest();
        self.tell("behind", format!("watermark {:?}, oldest launch {:?}", latest.watermark, latest.launch));
        for (name, function) in
            [("master", Function::Master), ("emitter", Function::Emitter), ("handler", Function::Handler)]
        {
            let of = cloud.invoked(function);
            self.tell(
                name,
                format!(
                    "{} invocations, {} cold, {} at once, {} throttled, {} timed out, {} errors, {:.1} s at the most, {:.0} GB-s",
                    of.begun, of.cold, of.at_once, of.throttled, of.timed_out, of.errors,
                    of.longest.as_secs_f64(), of.gb_seconds
                ),
            );
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, holds } in &self.findings {
            writeln!(f, "  {} {what}", if *holds { "holds:" } else { "DOES NOT HOLD:" })?;
        }
        for (name, figure) in &self.figures {
            writeln!(f, "    {name}: {figure}")?;
        }
        Ok(())
    }
}

fn seconds(ms: i64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

/// So many, of a full size.
fn part(of: usize, share: f64) -> usize {
    ((of as f64 * share) as usize).max(1)
}

/// The minutes in which the neighbour's job was due since the region began, in minutes since 1970; not those of the last minute,
/// which may be under way.
fn minutes_due(cloud: &Cloud) -> RangeInclusive<i64> {
    let minute = |at: DateTime<Utc>| at.timestamp().div_euclid(60);
    minute(cloud.began_at()) + 1..=minute(cloud.now() - minutes(1))
}

/// Midnight of a Tuesday on which no zone changes its clocks.
fn midnight() -> Result<DateTime<Utc>> {
    Utc.with_ymd_and_hms(2026, 11, 24, 0, 0, 0).single().context("no such instant")
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Plays in a runtime whose time is virtual.
fn in_virtual_time(scenario: impl Future<Output = Result<Report>>) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(scenario)
}
