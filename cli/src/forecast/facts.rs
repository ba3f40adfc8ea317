//! From jobs and policies to what their cost depends on.

use std::collections::HashMap;

use tidegate_domain::time::{Window, ceil_second};
use tidegate_forecast::account::Account;
use tidegate_forecast::facts::{Created, Job, Policy, Setting, Target};
use tidegate_forecast::limits::HANDOVER;

use super::policies::PolicyRow;
use crate::args::ForecastArgs;
use crate::dry_run::intake::Intake;
use crate::dry_run::roster::{Listed, Roster};

/// The names of jobs and policies, each at its place in the setting.
pub(super) struct Named {
    pub(super) jobs: Vec<String>,
    pub(super) policies: Vec<String>,
}

impl Named {
    pub(super) fn new(roster: &Roster, policies: &[PolicyRow]) -> Self {
        Self {
            jobs: roster.jobs().iter().map(|job| job.id.to_string()).collect(),
            policies: policies.iter().map(|policy| policy.id.to_string()).collect(),
        }
    }
}

/// All that the forecast is made from, beside the firings.
pub(super) fn setting(
    args: &ForecastArgs,
    window: Window,
    intake: &Intake,
    (named, policies): (&Named, Vec<PolicyRow>),
    account: Account,
) -> Setting {
    let places: HashMap<&str, usize> =
        (0..).zip(&named.policies).map(|(place, id)| (id.as_str(), place)).collect();
    let mut fifos = HashMap::new();
    let jobs = intake.roster.jobs().iter().map(|listed| job(listed, &places, &mut fifos));
    Setting {
        jobs: jobs.collect(),
        policies: policies.into_iter().map(policy).collect(),
        zones: intake.zones,
        from_s: window.from().timestamp(),
        to_s: ceil_second(window.to()),
        scale: args.scale,
        created_together: f64::from(args.created_together),
        creates_per_second: args.creates_per_second,
        largest_partition: intake.occupied.largest(),
        handover_seconds: HANDOVER.as_secs_f64(),
        account,
    }
}

fn job<'a>(listed: &'a Listed, places: &HashMap<&str, usize>, fifos: &mut HashMap<&'a str, usize>) -> Job {
    let facts = &listed.facts;
    let number = fifos.len();
    let target = match (facts.is_http, &facts.fifo_url) {
        (true, _) => Target::Http,
        (false, Some(url)) => Target::Fifo(*fifos.entry(url).or_insert(number)),
        (false, None) => Target::Queue,
    };
    let created = match (facts.instants, facts.is_named) {
        (0, _) => Created::Before,
        (1, true) => Created::Named,
        (1, false) => Created::Generated,
        (instants, _) => Created::Listed(instants),
    };
    // A one-time job with a generated id is a row of its instant, and its payload travels from there with its event.
    let is_generated = created == Created::Generated;
    Job {
        policy: facts.policy.as_ref().and_then(|policy| places.get(policy.as_str())).copied(),
        count: listed.events,
        keeps_record: facts.keeps_record,
        is_packed: facts.is_packed,
        priority: facts.priority,
        cost: facts.cost,
        target,
        item_bytes: facts.item_bytes + if is_generated { facts.large_payload_bytes } else { 0 },
        row_reads: if is_generated { 0 } else { facts.row_reads },
        row_units: facts.row_units,
        body_bytes: facts.body_bytes,
        releases_itself: facts.releases_itself,
        is_delivered_once: facts.is_delivered_once,
        created,
    }
}

fn policy(row: PolicyRow) -> Policy {
    let PolicyRow { id, terms, work_seconds, released_together } = row;
    Policy {
        id: id.to_string(),
        tokens: terms.max_in_flight(),
        rate: terms.rate().map(|rate| (rate.per_second(), f64::from(rate.bucket()))),
        work_seconds,
        released_together,
    }
}
