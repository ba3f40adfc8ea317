//! Runs and their events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::Unreadable;
use crate::words::words;

/// A run: one firing of a job, with its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Run {
    /// The job that it is a run of; empty in answers of earlier versions.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub job_id: String,
    /// Its id, `<job>.<revision>.<launch second>`.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.3.1790000000"))]
    pub run_id: String,
    /// When it was due, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// Its number of events.
    pub count: u32,
    /// Where it stands: `waiting` (none of its events was delivered), `running`, `finished` (all have come to their end) or
    /// `stopped` (nothing more of it is delivered, see `reason`).
    pub state: String,
    /// Events of a job without a policy that were delivered: nobody releases them, so how they ended is not known.
    pub delivered: u32,
    /// Events that their consumer released as succeeded.
    pub succeeded: u32,
    /// Events that their consumer released as failed.
    pub failed: u32,
    /// Events that were never released.
    pub expired: u32,
    /// Events that could not be delivered.
    pub dead: u32,
    /// Events that were never admitted, because the run was stopped.
    pub left_out: u32,
    /// Why nothing (more) of it is delivered: `paused`, `misfire_skipped`, `expired`, `overlap_skipped`, `line_full`, `over_quota`,
    /// `excluded`, `skipped_on_request`, `job_deleted`, `rescheduled` or `not_emittable`; of a run that had begun to wait also `cancelled` (by a call),
    /// `deadline`, `failure_limit`, `policy_deleted` or `payload_deleted` (with its job).
    pub reason: Option<String>,
    /// How many firings of the job were left out for the same reason, this one included: they share this row. Only when
    /// they are more than this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_count: Option<u32>,
    /// When the last of them was due, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub skipped_until: Option<String>,
}

/// A run that a call triggered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggeredRun {
    /// The job that it is a run of.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub job_id: String,
    /// Its id, `<job>.<revision>.<launch second>`.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.3.1790000000"))]
    pub run_id: String,
    /// When it is due, RFC 3339: now, or a few seconds ahead where the job has a launch now.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
}

/// A launch that a call left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SkippedLaunch {
    /// The job that does not make it.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub job_id: String,
    /// The job's revision that leaves it out.
    pub revision: u32,
    /// When it would have been due, RFC 3339, with the job's jitter.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
}

/// A launch of a job that is made after all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfilledLaunch {
    /// The run that it is, `<job>.<revision>.<launch second>`. A single event under a policy can be looked up once it has
    /// reached its policy, some seconds later.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.4.1790000000"))]
    pub run_id: String,
    /// When it was due, RFC 3339, with the job's jitter.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// Why it was missed, where only those were asked for; otherwise null.
    pub missed: Option<String>,
}

/// Launches of a job that a call makes after all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaunchBackfill {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub job_id: String,
    /// The job's revision that they are launches of; where none is made, the one that it has; in a dry run the next.
    pub revision: u32,
    /// Whether they are only told.
    pub dry_run: bool,
    /// The launches, in order of time: up to 480.
    pub launches: Vec<BackfilledLaunch>,
    /// The `since` to go on with; null when those are all.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub next_since: Option<String>,
}

/// What came of a run that was meant by what it has in common with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelledRun {
    /// The run.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.3.1790000000"))]
    pub run_id: String,
    /// The HTTP status that cancelling it alone would have been answered with: 200, or a refusal.
    #[cfg_attr(feature = "openapi", schema(example = 200))]
    pub status: u16,
    /// Why it was not cancelled, when it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What came of runs that were meant by what they have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelledRuns {
    /// Whether nothing was cancelled.
    pub dry_run: bool,
    /// One for each run that is meant: by the ids of their jobs, of each the latest first.
    pub results: Vec<CancelledRun>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask for those after it with, as `cursor`; null on the last. A page may have few runs, or none, and be followed by others.
    pub next_cursor: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Event))]
pub struct EventRecord {
    /// Its id, `<run>.<index>`: the idempotency key of its consumer.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.3.1790000000.17"))]
    pub event_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// Where it stands: waiting, in_flight, delivered, succeeded, failed, expired, dead, or stopped: its run was stopped
    /// before it was delivered.
    pub status: String,
    /// How often delivery was tried; null while it waits, and where that is not known.
    pub attempts: Option<u32>,
    /// When it came to its end, or when its lease ends, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: Option<String>,
    /// Why it was not delivered: what its target answered, or why its run was stopped. Null when it was delivered.
    pub reason: Option<String>,
    /// What its consumer said came of it, when it released the token as succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What its consumer said went wrong, when it released the token as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A delivery that a target did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailedDelivery {
    /// Which delivery of the event it was, from 1.
    pub attempt: u32,
    /// When it had failed, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// How long the call took, in milliseconds; null where nobody measured.
    pub took_ms: Option<u32>,
    /// The status that the endpoint answered with; null when no answer came, and where there is none.
    pub status: Option<u16>,
    /// What happened.
    #[cfg_attr(feature = "openapi", schema(example = "the endpoint answered 503 Service Unavailable"))]
    pub reason: String,
    /// The first 1,024 bytes of the answer's body; null when it had none.
    pub answer: Option<String>,
}

/// The deliveries of an event that its target did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailedDeliveryList {
    /// The deliveries, in their order. None are kept of a job whose `history` is `none`.
    pub failures: Vec<FailedDelivery>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
}

/// A run with how it gets on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Events that are with their consumers now.
    pub in_flight: u32,
    /// Events that wait for a token, or, where nothing throttles, for delivery.
    pub waiting: u32,
    /// When its first event was admitted, RFC 3339; null when none was, or where that is not known.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub started_at: Option<String>,
    /// When its window ends, RFC 3339, if it has one.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub deadline: Option<String>,
    /// Events that ended per second: from when the first was admitted (without a policy: was due) until now, or until the
    /// last one ended when the run is over. Null when that cannot be said yet.
    pub rate_per_second: Option<f64>,
    /// When the last event is expected to end, RFC 3339; null when that cannot be said.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub predicted_finish_at: Option<String>,
    /// What the rate and the finish follow from.
    pub reasoning: String,
    /// The same in words for programs, in the order of the text.
    #[serde(default)]
    pub reasoning_codes: Vec<ForecastCode>,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// The runs, the latest launch first.
    pub runs: Vec<Run>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventList {
    /// The events, by index.
    pub events: Vec<EventRecord>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

words! {
    /// What the forecast of a run follows from.
    ForecastCode {
        /// Its launch is in the future.
        NotLaunched = "not_launched",
        /// So many of its events have ended in the time since its first admission.
        Speed = "speed",
        /// None of its events has ended yet.
        SpeedUnknown = "speed_unknown",
        /// So many events are left, which take so long at its speed.
        Left = "left",
        /// Its policy's rate bounds how fast events begin.
        Rate = "rate",
        /// More is in flight than its policy's limit: nothing is admitted until it is not.
        Draining = "draining",
        /// It is paced over its window.
        Paced = "paced",
        /// What its window's end finds waiting is left out.
        LeftOutAtDeadline = "left_out_at_deadline",
        /// It goes on after its window's end.
        ContinuesAfterDeadline = "continues_after_deadline",
        /// Its policy is paused.
        PolicyPaused = "policy_paused",
        /// Its policy is closed until an instant.
        PolicyClosed = "policy_closed",
        /// Its client is sidelined.
        Sidelined = "sidelined",
        /// Its policy was deleted.
        PolicyDeleted = "policy_deleted",
        /// All of its events have ended.
        Finished = "finished",
        /// It was stopped.
        Stopped = "stopped",
    }
}

/// How many runs of the jobs of a page there are, and what became of their events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCounts {
    /// How many were counted. A launch that was skipped counts as a run, also where several share a record.
    pub total: u64,
    /// By where they stand: `waiting`, `running`, `finished`, `stopped`.
    pub by_state: BTreeMap<String, u64>,
    /// By why nothing (more) of them is delivered; those without a reason are not among them.
    pub by_reason: BTreeMap<String, u64>,
    /// By job.
    pub by_job: BTreeMap<String, u64>,
    /// Their events.
    pub events: EventCounts,
    /// How many rows could not be read.
    pub unreadable: u64,
    /// Where to go on counting: those of the next page come on top. Null on the last.
    pub next_cursor: Option<String>,
}

/// Events by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventCounts {
    /// All of them.
    pub total: u64,
    /// Those that nothing throttles and that were delivered.
    pub delivered: u64,
    /// Those that their consumer released as succeeded.
    pub succeeded: u64,
    /// Those that their consumer released as failed.
    pub failed: u64,
    /// Those that were never released.
    pub expired: u64,
    /// Those that could not be delivered.
    pub dead: u64,
    /// Those that were never sent, because their run was skipped or stopped.
    pub left_out: u64,
}
