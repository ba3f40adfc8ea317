//! Dead letters: events that did not succeed and that nothing sends again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::Unreadable;
use crate::run::FailedDelivery;
use crate::target::Target;

/// An event that did not succeed and that nothing sends again, until it is redriven, discarded or 14 days old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// The event's id: the same in every delivery, redriven ones included.
    #[cfg_attr(feature = "openapi", schema(example = "nightly.1.1795305600.7"))]
    pub event_id: String,
    /// The job.
    pub job_id: String,
    /// The run that it is of.
    pub run_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// The policy that throttled it, if one did.
    pub policy_id: Option<String>,
    /// How it ended: `dead` (its target did not take it), `expired` (nobody released it) or `failed` (its consumer said so).
    #[cfg_attr(feature = "openapi", schema(example = "dead"))]
    pub status: String,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it ended; of one that a policy throttled within about a minute.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// Why its target did not take it; null where the consumer had it.
    pub reason: Option<String>,
}

/// A page of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterList {
    /// The letters of each job by launch and index. A page may have fewer than 100, or none, and be followed by others: a call
    /// looks at 1,000 letters.
    pub dead_letters: Vec<DeadLetter>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// A dead letter with what its event carries, and where it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(bound = ""))]
pub struct DeadLetterDetail<P = Value> {
    /// The letter.
    #[serde(flatten)]
    pub dead_letter: DeadLetter,
    /// Where its event goes; null when the record of its run is over.
    pub target: Option<Target>,
    /// What it carries; null as well when that is gone with its job.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: P,
    /// Its deliveries that its target did not take, in their order.
    #[serde(default = "Vec::new")]
    pub failures: Vec<FailedDelivery>,
}

/// How many dead letters there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterCounts {
    /// How many were counted: 10,000 at the most.
    pub total: u32,
    /// Whether there are more, which were not counted.
    pub has_more: bool,
    /// By job.
    pub by_job: BTreeMap<String, u32>,
    /// By policy; events that nothing throttles are not among them.
    pub by_policy: BTreeMap<String, u32>,
    /// By status.
    pub by_status: BTreeMap<String, u32>,
    /// By reason; those without one are not among them.
    pub by_reason: BTreeMap<String, u32>,
}

crate::words::words! {
    /// What came of redriving or discarding a dead letter.
    DeadLetterStatus {
        /// Its event is sent again, or takes its place in its policy's line.
        Redriven = "redriven",
        /// It was forgotten; the record of its event stays.
        Discarded = "discarded",
        /// There is no dead letter of this event (any more).
        Absent = "absent",
        /// Its policy was deleted, so nobody may send it: make a policy of that name.
        PolicyDeleted = "policy_deleted",
        /// Its run was stopped, or the record of it is over.
        RunOver = "run_over",
        /// What it carries is gone with its job.
        PayloadGone = "payload_gone",
        /// Its launch is older than its job's relevancy window.
        TooOld = "too_old",
        /// The id is no event's.
        NoEvent = "no_event",
        /// It could not be done now: repeat the call.
        Busy = "busy",
    }
}

/// What came of one dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterResult {
    /// The event.
    pub event_id: String,
    /// What came of it.
    pub status: DeadLetterStatus,
    /// When it is sent, where it was redriven; under a policy no earlier.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub not_before: Option<String>,
}

/// What came of each dead letter of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterResults {
    /// One for each event that was named, in their order, or for each that fits.
    pub results: Vec<DeadLetterResult>,
    /// With `where`: what to go on with; null when all that fit were looked at.
    pub next_cursor: Option<String>,
    /// When redrives are paced: the `start_at` of the call that goes on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub next_start_at: Option<String>,
}
