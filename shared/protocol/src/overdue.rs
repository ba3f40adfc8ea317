//! Launches that are expected to be over in time, and those that were not.

use serde::{Deserialize, Serialize};

use crate::Unreadable;
use crate::words::words;

/// When each launch of a job is expected to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Expected {
    /// So many seconds after its instant, 1 to 604,800: all its events have come to their end by then.
    pub within_seconds: u32,
}

words! {
    /// Where a launch stood that was expected to be over.
    OverdueState {
        /// Nothing is recorded of it: it did not start, or its delivery is still tried.
        Unrecorded = "unrecorded",
        /// It was not made, for a reason that its client did not ask for.
        Skipped = "skipped",
        /// None of its events was delivered.
        Waiting = "waiting",
        /// Some of its events were delivered, and not all have come to their end.
        Running = "running",
        /// It was stopped, for a reason that its client did not ask for.
        Stopped = "stopped",
    }
}

/// A launch that was not over when it was expected to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OverdueLaunch {
    /// The job.
    pub job_id: String,
    /// The run that it is, or would be.
    pub run_id: String,
    /// When it was due.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// How long after that it was expected to be over, in seconds.
    pub within_seconds: u32,
    /// Where it stood then. Where it stands now, its run says.
    pub state: OverdueState,
    /// Why nothing, or nothing more, of it is delivered; null where that is not so.
    pub reason: Option<String>,
    /// When that was seen.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub seen_at: String,
    /// When the client's `alerts` were told, or it was given up; null: not yet, or the client has none.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub told_at: Option<String>,
    /// Why they could not be told; null when they were.
    pub told_failure: Option<String>,
}

/// A page of launches that were not over in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OverdueList {
    /// The launches, the latest first.
    pub launches: Vec<OverdueLaunch>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

/// The body of an alert: an SQS message's text, or the body of a POST. Version 1; fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaunchOverdue {
    /// `launch.overdue`.
    pub r#type: String,
    /// The idempotency key: `<run>.overdue`, the same each time this is sent.
    pub id: String,
    /// The name of the client.
    pub client_id: String,
    /// The name of the client's job.
    pub job_id: String,
    /// The id of the run that it is, or would be.
    pub run_id: String,
    /// When it was due, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// How long after that it was expected to be over, in seconds.
    pub within_seconds: u32,
    /// Where it stood then: `unrecorded`, `skipped`, `waiting`, `running` or `stopped`.
    pub state: String,
    /// Why nothing, or nothing more, of it is delivered, as the word of a `SkipReason` or `StopReason`; `None` where that is not
    /// so.
    pub reason: Option<String>,
    /// When that was seen, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub seen_at: String,
}
