//! What a forecast leaves out of these jobs, in sentences: a figure that is silent about it would be wrong.

use std::collections::BTreeMap;

use tidegate_domain::occurrence::SkipReason;

use crate::dry_run::roster::{Facts, Roster};

/// What holds of every forecast.
const ALWAYS: [&str; 6] = [
    "the consumers' own calls to their queues, data transfer and the free tier are not counted",
    "metrics, alarms, the dashboard, point-in-time recovery and a customer key are not counted: docs/operations.md has their prices",
    "provisioned pollers above the minimum are not counted",
    "requests that a limit refuses are repeated, which is neither billed nor in the lateness here: where a limit is met, both are higher",
    "no delivery fails, no lease runs out or is extended, no release has a text, no job is changed; one-time jobs are created in the minute of their launch; region us-east-1, list prices",
    "priorities move events before others of their policy; its lateness is that of all of them",
];

/// Something that holds of some jobs.
type OfJobs = (&'static str, fn(&Facts) -> bool);

/// What holds of some jobs.
const OF_JOBS: [OfJobs; 3] = [
    ("a window (its events are taken as admitted as fast as tokens allow)", |facts| facts.has_window),
    ("an overlap rule, a failure limit or a callback (what those write and skip is not counted)", |facts| {
        facts.is_watched
    }),
    ("an HTTP target (it is taken to answer within 200 ms)", |facts| facts.is_http),
];

/// The sentences for these jobs.
pub(super) fn of(roster: &Roster, skipped: &BTreeMap<SkipReason, u64>) -> Vec<String> {
    let mut left_out: Vec<String> = ALWAYS.map(str::to_owned).into();
    for (what, holds) in OF_JOBS {
        let jobs = roster.jobs().iter().filter(|job| holds(&job.facts)).count();
        if jobs > 0 {
            left_out.push(format!("{jobs} jobs have {what}"));
        }
    }
    let skipped: u64 = skipped.values().sum();
    if skipped > 0 {
        left_out.push(format!(
            "{skipped} launches are skipped; a record of each, one write unit at the most, is not counted"
        ));
    }
    left_out
}
