//! Runs and events as they travel: only ever read.

use serde::Serialize;
use tidegate_domain::occurrence::StopReason;
use tidegate_engine::{EventRecord, EventStatus, RunDetail, RunState, RunSummary};
use utoipa::ToSchema;

use crate::wire::instant;
use crate::wire::spoiled::UnreadableView;

/// A run: one firing of a job, with its progress.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView {
    /// Its name: job, revision and launch second.
    #[schema(example = "nightly.3.1790000000")]
    run_id: String,
    /// When it was due.
    #[schema(format = DateTime)]
    launch_at: String,
    /// Its number of events.
    count: u32,
    /// Where it stands: `waiting` (none of its events was delivered), `running`, `finished` (all have come to their end) or
    /// `stopped` (nothing more of it is delivered, see `reason`).
    #[schema(value_type = String)]
    state: &'static str,
    /// Events of a job without a policy that were delivered: nobody releases them, so how they ended is not known.
    delivered: u32,
    /// Events that their consumer released as succeeded.
    succeeded: u32,
    /// Events that their consumer released as failed.
    failed: u32,
    /// Events that were never released.
    expired: u32,
    /// Events that could not be delivered.
    dead: u32,
    /// Events that were never admitted, because the run was stopped.
    left_out: u32,
    /// Why nothing (more) of it is delivered: `paused`, `misfire_skipped`, `expired`, `overlap_skipped`, `line_full`,
    /// `excluded`, `job_deleted`, `rescheduled` or `not_emittable`; of a run that had begun to wait also `cancelled` (by a call),
    /// `deadline`, `failure_limit`, `policy_deleted` or `payload_deleted` (with its job).
    reason: Option<String>,
    /// How many firings of the job were left out for the same reason, this one included: they share this row. Only when
    /// they are more than this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_count: Option<u32>,
    /// When the last of them was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    skipped_until: Option<String>,
}

impl From<RunSummary> for RunView {
    fn from(run: RunSummary) -> Self {
        Self {
            run_id: run.id.to_string(),
            launch_at: instant(run.id.launch_at()),
            count: run.count,
            state: run.state.as_str(),
            delivered: run.tally.delivered,
            succeeded: run.tally.succeeded,
            failed: run.tally.failed,
            expired: run.tally.expired,
            dead: run.tally.dead,
            left_out: run.tally.left_out,
            reason: run.reason,
            skipped_count: run.skipped.as_ref().map(|skipped| skipped.count),
            skipped_until: run.skipped.as_ref().map(|skipped| instant(skipped.until)),
        }
    }
}

/// A run with how it gets on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunDetail)]
pub(crate) struct RunDetailView {
    #[serde(flatten)]
    run: RunView,
    /// Events that are with their consumers now.
    in_flight: u32,
    /// Events that wait for a token.
    waiting: u32,
    /// When its first event was admitted; null when none was, or where that is not known.
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// When its window ends, if it has one.
    #[schema(format = DateTime)]
    deadline: Option<String>,
    /// Events that ended per second: from when the first was admitted (without a policy: was due) until now, or until the
    /// last one ended when the run is over. Null when that cannot be said yet.
    rate_per_second: Option<f64>,
    /// When the last event is expected to end; null when that cannot be said.
    #[schema(format = DateTime)]
    predicted_finish_at: Option<String>,
    /// What the rate and the finish follow from.
    reasoning: String,
}

impl RunDetailView {
    /// Why a run that is over was not cancelled; `None` when it was.
    pub(crate) fn why_not_cancelled(&self) -> Option<String> {
        match self.run.reason.as_deref() {
            Some(reason) if reason == StopReason::Cancelled.as_str() => None,
            Some(reason) => Some(format!("was stopped already ({reason})")),
            None if self.run.state == RunState::Finished.as_str() => Some("is finished".to_owned()),
            None => Some("has no policy, so all of its events are on their way".to_owned()),
        }
    }
}

impl From<RunDetail> for RunDetailView {
    fn from(detail: RunDetail) -> Self {
        Self {
            run: detail.summary.into(),
            in_flight: detail.in_flight,
            waiting: detail.waiting,
            started_at: detail.started_at.map(instant),
            deadline: detail.deadline.map(instant),
            rate_per_second: detail.rate_per_second.map(|rate| (rate * 1_000.0).round() / 1_000.0),
            predicted_finish_at: detail.predicted_finish_at.map(instant),
            reasoning: detail.reasoning,
        }
    }
}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    /// The runs, the latest launch first.
    pub(crate) runs: Vec<RunView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<UnreadableView>,
    /// What to ask the next page with; null on the last.
    pub(crate) next_cursor: Option<String>,
}

/// An event of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    /// Its name: run and index. The idempotency key of its consumer.
    #[schema(example = "nightly.3.1790000000.17")]
    event_id: String,
    /// Its number in the run, from 0.
    index: u32,
    /// Where it stands: waiting, in_flight, delivered, succeeded, failed, expired, dead, or stopped: its run was stopped
    /// before it was delivered.
    #[schema(value_type = String)]
    status: &'static str,
    /// How often delivery was tried; null while it waits, and where that is not known.
    attempts: Option<u8>,
    /// When it came to its end, or when its lease ends.
    #[schema(format = DateTime)]
    at: Option<String>,
    /// Why it was not delivered: what its target answered, or why its run was stopped. Null when it was delivered.
    reason: Option<String>,
    /// What its consumer said came of it, when it released the token as succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// What its consumer said went wrong, when it released the token as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<EventRecord> for EventView {
    fn from(event: EventRecord) -> Self {
        let (result, error) = match event.status {
            EventStatus::Failed => (None, event.text),
            _ => (event.text, None),
        };
        Self {
            event_id: event.id.to_string(),
            index: event.id.index(),
            status: event.status.as_str(),
            attempts: event.attempts,
            at: event.at.map(instant),
            reason: event.reason,
            result,
            error,
        }
    }
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    /// The events, by index.
    pub(crate) events: Vec<EventView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<UnreadableView>,
    /// What to ask the next page with; null on the last.
    pub(crate) next_cursor: Option<String>,
}
