//! What happens in histories, and how often. In each table a weight is a share of the table's sum.
//!
//! A change of any table gives every seed another history.

use std::ops::RangeInclusive;

use tidegate_domain::flow::Overlap;

/// What a step of a history begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    TimePasses,
    ProcessDies,
    ConsumerReceives,
    PollerWorks,
    EmitterTicks,
    ConsumerActs,
    JobChanges,
    JobsComeInBulk,
    PolicyChanges,
    ClockJumps,
    LastReleaseRaces,
}

impl Step {
    /// Whether it makes a call: it does not take place when as many as may be are under way.
    pub(crate) fn is_call(self) -> bool {
        !matches!(self, Self::TimePasses | Self::ProcessDies | Self::ConsumerReceives | Self::ClockJumps)
    }
}

/// The steps of every history.
const STEPS: [(Step, u64); 9] = [
    (Step::TimePasses, 22),
    (Step::ConsumerReceives, 20),
    (Step::PollerWorks, 17),
    (Step::JobChanges, 14),
    (Step::ConsumerActs, 12),
    (Step::EmitterTicks, 8),
    (Step::PolicyChanges, 4),
    (Step::JobsComeInBulk, 1),
    (Step::ProcessDies, 3),
];
/// Beside them, in the histories whose clocks jump.
const CLOCK_JUMPS: (Step, u64) = (Step::ClockJumps, 2);
/// Beside them, in the histories whose policies have one token each.
const RACES: (Step, u64) = (Step::LastReleaseRaces, 40);

/// The steps of one history.
pub(crate) fn steps(jumps: bool, tight: bool) -> Vec<(Step, u64)> {
    let further = [jumps.then_some(CLOCK_JUMPS), tight.then_some(RACES)];
    STEPS.into_iter().chain(further.into_iter().flatten()).collect()
}

/// By how much the time goes on, in milliseconds: within a second, by a few seconds, past the next tick.
pub(crate) const WAITS_MS: [(RangeInclusive<u64>, u64); 3] =
    [(0..=899, 4), (1_000..=12_000, 5), (20_000..=80_000, 1)];

/// How often a dispatch message is handled, since SQS may deliver it more than once.
pub(crate) const HANDLED_TIMES: [(u64, u64); 3] = [(1, 88), (2, 6), (3, 6)];

/// What a consumer makes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    Releases,
    ReleasesTwice,
    ReleasesAfterLease,
    ExtendsBefore,
    ForgesBefore,
    Dies,
}

/// The habits of consumers.
pub(crate) const HABITS: [(Habit, u64); 6] = [
    (Habit::Releases, 60),
    (Habit::ReleasesTwice, 10),
    (Habit::ReleasesAfterLease, 8),
    (Habit::ExtendsBefore, 8),
    (Habit::Dies, 8),
    (Habit::ForgesBefore, 6),
];

/// What a client wants of a job that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobChange {
    Replace,
    PauseOrResume,
    Delete,
    Backfill,
}

/// The changes of jobs that can be replaced.
pub(crate) const JOB_CHANGES: [(JobChange, u64); 3] =
    [(JobChange::Replace, 49), (JobChange::PauseOrResume, 30), (JobChange::Delete, 21)];
/// The same, in the histories of every third seed: so the others stay what they were, and notice the mutants that they did.
pub(crate) const JOB_CHANGES_AND_BACKFILLS: [(JobChange, u64); 4] = [
    (JobChange::Replace, 37),
    (JobChange::PauseOrResume, 23),
    (JobChange::Delete, 15),
    (JobChange::Backfill, 25),
];
/// How long a stretch is whose launches are made after all, and how long ago it ended, in seconds.
pub(crate) const BACKFILLED: RangeInclusive<u64> = 1..=300;
pub(crate) const BACKFILLED_AGO: RangeInclusive<u64> = 0..=60;
/// The changes of one-time jobs with a generated id: they cannot be replaced.
pub(crate) const NAMELESS_CHANGES: [(JobChange, u64); 2] =
    [(JobChange::PauseOrResume, 30), (JobChange::Delete, 70)];

/// What a client wants of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyChange {
    PauseOrResume,
    Close,
    LowerLimit,
    AnyLimit,
}

/// The changes of policies that are not paused.
pub(crate) const POLICY_CHANGES: [(PolicyChange, u64); 4] = [
    (PolicyChange::PauseOrResume, 25),
    (PolicyChange::Close, 15),
    (PolicyChange::LowerLimit, 30),
    (PolicyChange::AnyLimit, 30),
];
/// The changes of paused ones.
pub(crate) const PAUSED_CHANGES: [(PolicyChange, u64); 4] = [
    (PolicyChange::PauseOrResume, 65),
    (PolicyChange::Close, 5),
    (PolicyChange::LowerLimit, 15),
    (PolicyChange::AnyLimit, 15),
];

/// For how long a policy is closed, in seconds.
pub(crate) const CLOSED_FOR: RangeInclusive<u64> = 1..=90;

/// What a job is triggered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TriggerKind {
    Instant,
    Instants,
    Rate,
    Cron,
}

/// In how many time zones the cron jobs of a history are. Each costs every tick a dozen reads.
pub(crate) const ZONES_IN_USE: [(usize, u64); 3] = [(1, 6), (2, 3), (3, 1)];

/// How many one-time jobs come in one call.
pub(crate) const IN_BULK: RangeInclusive<u64> = 2..=4;

/// The triggers of jobs that may be triggered by anything.
pub(crate) const TRIGGERS: [(TriggerKind, u64); 4] = [
    (TriggerKind::Instant, 45),
    (TriggerKind::Cron, 33),
    (TriggerKind::Instants, 11),
    (TriggerKind::Rate, 11),
];

/// How far ahead an instant lies, in seconds. The later ones are the emitter's alone.
pub(crate) const AHEAD_SECONDS: [(RangeInclusive<u64>, u64); 2] = [(0..=299, 8), (300..=420, 2)];

/// How many events a job has.
pub(crate) const EVENTS: [(RangeInclusive<u64>, u64); 4] =
    [(1..=1, 1), (2..=5, 1), (5..=30, 1), (20..=120, 1)];
/// The same, where every policy has one token.
pub(crate) const TIGHT_EVENTS: RangeInclusive<u64> = 1..=3;

/// Where events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queue,
    MissingQueue,
    RefusedEndpoint,
}

/// The places that events go to.
pub(crate) const PLACES: [(Place, u64); 3] =
    [(Place::Queue, 88), (Place::MissingQueue, 9), (Place::RefusedEndpoint, 3)];

/// How many of a thousand jobs that would go to a queue go to an endpoint, in the histories that have some.
pub(crate) const ENDPOINTS: u64 = 600;

/// What an endpoint makes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Taken,
    /// It took the call, and nobody hears so.
    TakenAndLost,
    Unreachable,
    Fails,
    Busy,
    BusyFor,
    Refuses,
}

/// What endpoints make of calls.
pub(crate) const ANSWERS: [(Answer, u64); 7] = [
    (Answer::Taken, 70),
    (Answer::TakenAndLost, 6),
    (Answer::Unreachable, 6),
    (Answer::Fails, 6),
    (Answer::Busy, 4),
    (Answer::BusyFor, 4),
    (Answer::Refuses, 4),
];
/// For how long they ask to be left alone, in seconds.
pub(crate) const BUSY_FOR: RangeInclusive<u64> = 1..=40;

/// In how many of a thousand steps the operator of a history looks at dead letters, how many it takes, in how many of a thousand
/// cases it discards them, and after how many seconds they are sent again otherwise.
pub(crate) const OPERATES: u64 = 60;
pub(crate) const LETTERS: RangeInclusive<u64> = 1..=6;
pub(crate) const DISCARDS: u64 = 150;
pub(crate) const REDRIVEN_AFTER: RangeInclusive<u64> = 0..=45;

/// In how many of a thousand steps something is sidelined or drained, in how many of a thousand cases it is a whole client, and in
/// how many it is sidelined; how many events drain in a second otherwise.
pub(crate) const SIDELINES: u64 = 60;
pub(crate) const WHOLE_CLIENT: u64 = 150;
pub(crate) const HOLDS: u64 = 400;
pub(crate) const PACE: RangeInclusive<u64> = 1..=50;

/// What a job says about launches that an outage missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MisfireRule {
    Nothing,
    Skip,
    Latest,
    SomeOf,
}

/// The rules for missed launches.
pub(crate) const MISFIRES: [(MisfireRule, u64); 4] =
    [(MisfireRule::Nothing, 7), (MisfireRule::Skip, 1), (MisfireRule::Latest, 1), (MisfireRule::SomeOf, 1)];

/// The rules for runs that meet an older one of their job.
pub(crate) const OVERLAPS: [(Overlap, u64); 3] =
    [(Overlap::Allow, 8), (Overlap::Skip, 1), (Overlap::BufferOne, 1)];

/// How many single events of one line and minute travel in messages, in one history: more wait in packs.
pub(crate) const FEW: [(usize, u64); 3] = [(0, 2), (2, 1), (10, 2)];

/// How many partitions instants lie in, in one history. A tick reads all of them, so most have few.
pub(crate) const AT_SHARDS: [(u32, u64); 3] = [(1, 2), (3, 6), (64, 1)];

/// How many slot groups share a part of a large run, in one history: no policy of a history has 32.
pub(crate) const GROUPS_PER_PART: [(u32, u64); 2] = [(1, 2), (32, 3)];

/// How many of a thousand requests meet a fault, in one history.
pub(crate) const FAULT_RATES: [(u64, u64); 5] = [(0, 1), (5, 1), (20, 1), (60, 1), (120, 1)];
