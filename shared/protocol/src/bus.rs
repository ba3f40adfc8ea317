//! What is published to the bus of a deployment, for reports.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What a record of the bus is about.
    BusKind {
        /// A run, or launches that were not made.
        Run = "run",
        /// An event of a run.
        Event = "event",
    }
}

words! {
    /// What a run or an event came to.
    BusState {
        /// A run of several events, or one that waits in a line, is there.
        Launched = "launched",
        /// Launches were not made.
        Skipped = "skipped",
        /// Nothing more of a run is delivered.
        Stopped = "stopped",
        /// All events of a run have come to an end.
        Finished = "finished",
        /// A launch was not over when its job expects it to be.
        Overdue = "overdue",
        /// The target of an event has it.
        Delivered = "delivered",
        /// An event was released as succeeded.
        Succeeded = "succeeded",
        /// An event was released as failed.
        Failed = "failed",
        /// The last lease of an event ran out.
        Expired = "expired",
        /// An event is given up: its target does not take it.
        Dead = "dead",
    }
}

/// One record: an object on a line of its own. Version 1; fields are only ever added. What is not so, or not known, is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusRecord {
    /// `tidegate`: what tells it from other lines of a log.
    pub bus: String,
    /// By which repeats of a record are known: the same each time.
    pub id: String,
    /// What it is about.
    pub kind: BusKind,
    /// What that came to.
    pub state: BusState,
    /// The name of the client.
    pub client_id: String,
    /// The name of the client's job.
    pub job_id: String,
    /// The id of the run.
    pub run_id: String,
    /// The number of the event in its run, from 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub index: Option<u32>,
    /// Which delivery of the event it is of, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt: Option<u32>,
    /// The policy that throttles it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy_id: Option<String>,
    /// Why: the word of a reason, or what a target answered, cut short.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// When the run was due, RFC 3339.
    pub launch_at: String,
    /// When that was noted, RFC 3339, to the millisecond.
    pub at: String,
    /// How long after `launch_at` that is, in milliseconds.
    pub late_ms: i64,
    /// How many events the run has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u32>,
    /// How many launches were skipped, of which `launch_at` is the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub launches: Option<u32>,
    /// When the last of the launches that were skipped was due, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
    /// How many events of a finished run succeeded. This and the four below add up to `count`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub succeeded: Option<u32>,
    /// How many failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<u32>,
    /// How many were never released.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expired: Option<u32>,
    /// How many could not be delivered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dead: Option<u32>,
    /// How many were never admitted, because the run was stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_out: Option<u32>,
}
