//! What follows from what was counted: who pays what, how late events come, when backlogs end, which limit is met.

use crate::cost::Cost;
use crate::counted::{Counted, MinuteLoad, PolicyLoad, SecondPeaks};
use crate::facts::Setting;
use crate::job_steps::own_steps;
use crate::load::Load;
use crate::peak::Peak;
use crate::prices::Bill;
use crate::quotas::{Use, uses};
use crate::spread::Spread;
use crate::steps::Steps;

/// A part of the whole: its events, what they take, what that costs.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Firings.
    pub firings: f64,
    /// Events.
    pub events: f64,
    /// What they take.
    pub cost: Cost,
    /// What AWS charges for it.
    pub bill: Bill,
}

/// How late events come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lateness {
    /// What half of them stay under, in seconds.
    pub median_s: f64,
    /// What 99 of 100 stay under.
    pub p99_s: f64,
    /// The latest.
    pub most_s: f64,
}

/// A policy.
#[derive(Debug, Clone)]
pub struct PolicyReport {
    /// What its events take, their jobs' own part included.
    pub part: Part,
    /// How late they come.
    pub lateness: Lateness,
    /// What was counted.
    pub load: PolicyLoad,
}

/// A forecast.
#[derive(Debug, Clone)]
pub struct Report {
    /// Everything together.
    pub total: Part,
    /// What ticks and polls take, whatever fires.
    pub idle: Part,
    /// Events that nothing throttles.
    pub unthrottled: Part,
    /// How late those come.
    pub unthrottled_lateness: Lateness,
    /// The policies, in the order of the setting.
    pub policies: Vec<PolicyReport>,
    /// The jobs, in the order of the setting.
    pub jobs: Vec<Part>,
    /// The steps that all of it consists of.
    pub steps: Steps,
    /// The busiest minute: of events, and what it takes.
    pub busiest_minutes: MinutePeaks,
    /// The busiest seconds.
    pub seconds: SecondPeaks,
    /// What is used of each limit, the one that is met first before the others.
    pub limits: Vec<Use>,
}

/// The most of everything in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MinutePeaks {
    /// Firings.
    pub firings: Peak,
    /// Events.
    pub events: Peak,
    /// Write units.
    pub write_units: Peak,
    /// Read units.
    pub read_units: Peak,
    /// Requests to SQS.
    pub sqs_requests: Peak,
    /// Invocations.
    pub lambda_requests: Peak,
    /// Releases.
    pub released: Peak,
}

impl Lateness {
    fn of(waits: &Spread) -> Self {
        Self {
            median_s: waits.percentile_ms(0.5) / 1e3,
            p99_s: waits.percentile_ms(0.99) / 1e3,
            most_s: waits.most_ms() / 1e3,
        }
    }
}

impl Report {
    /// The report of a load.
    pub fn of(load: Load<'_>, setting: &Setting) -> Self {
        let counted = load.finish();
        let limits = uses(setting, &counted);
        let prices = &setting.account.prices;
        let mut steps = counted.idle;
        steps.add_all(&counted.unthrottled);
        counted.policies.iter().for_each(|policy| steps.add_all(&policy.shared));

        let mut unthrottled = Part { cost: counted.unthrottled.cost(), ..Part::default() };
        let mut policies: Vec<Part> = counted
            .policies
            .iter()
            .map(|policy| Part { cost: policy.shared.cost(), ..Part::default() })
            .collect();
        let mut jobs = Vec::with_capacity(setting.jobs.len());
        for (job, fired) in setting.jobs.iter().zip(&counted.fired) {
            let own = own_steps(job, setting).scaled(*fired);
            steps.add_all(&own);
            let events = fired * f64::from(job.count);
            let (shared, all) = match job.policy.and_then(|place| counted.policies.get(place)) {
                Some(policy) => (policy.shared.cost(), policy.events),
                None => (counted.unthrottled.cost(), counted.unthrottled_events),
            };
            let cost = own.cost() + shared * if all > 0.0 { events / all } else { 0.0 };
            let of_whom = job.policy.and_then(|place| policies.get_mut(place)).unwrap_or(&mut unthrottled);
            of_whom.firings += fired;
            of_whom.events += events;
            of_whom.cost += own.cost();
            jobs.push(Part { firings: *fired, events, cost, bill: Bill::of(&cost, prices) });
        }
        let minutes = setting.minutes() as f64;
        let mut idle = Part { cost: counted.idle.cost(), ..Part::default() };
        idle.bill =
            Bill::of(&idle.cost, prices).with_pollers(setting.account.minimum_pollers, minutes, prices);
        unthrottled.bill = Bill::of(&unthrottled.cost, prices);
        let mut total = Part { cost: idle.cost + unthrottled.cost, ..Part::default() };
        total.bill = idle.bill + unthrottled.bill;
        for part in &mut policies {
            part.bill = Bill::of(&part.cost, prices);
            total.cost += part.cost;
            total.bill = total.bill + part.bill;
        }
        for part in policies.iter().chain([&unthrottled]) {
            total.firings += part.firings;
            total.events += part.events;
        }
        let busiest_minutes = MinutePeaks::of(setting, &counted.minutes);
        let Counted { policies: loads, seconds, unthrottled_waits, .. } = counted;
        let policies = policies.into_iter().zip(loads).map(|(part, load)| {
            let lateness = Lateness::of(&load.waits);
            PolicyReport { part, lateness, load }
        });
        Self {
            total,
            idle,
            unthrottled,
            unthrottled_lateness: Lateness::of(&unthrottled_waits),
            policies: policies.collect(),
            jobs,
            steps,
            busiest_minutes,
            seconds,
            limits,
        }
    }
}

impl Report {
    /// What is used of keys, the fullest first.
    pub fn busiest_keys(&self) -> impl Iterator<Item = &Use> {
        self.limits.iter().filter(|limit| limit.limit.starts_with("partition_"))
    }
}

impl MinutePeaks {
    fn of(setting: &Setting, minutes: &[MinuteLoad]) -> Self {
        let mut peaks = Self::default();
        let first = setting.from_s.div_euclid(60);
        for (minute, load) in (first..).zip(minutes.iter().take(setting.minutes())) {
            let at_s = minute * 60;
            peaks.firings.see(load.firings, at_s);
            peaks.events.see(load.events, at_s);
            peaks.write_units.see(load.cost.write_units, at_s);
            peaks.read_units.see(load.cost.read_units, at_s);
            peaks.sqs_requests.see(load.cost.sqs_requests, at_s);
            peaks.lambda_requests.see(load.cost.lambda_requests, at_s);
            peaks.released.see(load.released, at_s);
        }
        peaks
    }
}
