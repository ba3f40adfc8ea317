//! What a client is told when a run has come to its end.

use serde::{Deserialize, Serialize};

/// The body of a completion: an SQS message's text, or the body of a POST. Version 1; fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Completion {
    /// `run.completed`.
    pub r#type: String,
    /// The idempotency key: `<run>.completed`, the same each time this is sent.
    pub id: String,
    /// The id of the run.
    pub run_id: String,
    /// The name of the client's job.
    pub job_id: String,
    /// The name of the client.
    pub client_id: String,
    /// `finished`, or `stopped` when some of its events were left out.
    pub state: String,
    /// Why it was stopped, as the word of a `StopReason` or `SkipReason`; `None` when it was not.
    pub reason: Option<String>,
    /// How many events it has; the five numbers below add up to it.
    pub count: u32,
    /// Events that were released as succeeded.
    pub succeeded: u32,
    /// Events that were released as failed.
    pub failed: u32,
    /// Events that were never released.
    pub expired: u32,
    /// Events that could not be delivered.
    pub dead: u32,
    /// Events that were never admitted, because the run was stopped.
    pub left_out: u32,
    /// When it was due, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// When its first event was admitted, RFC 3339; `None` when none was.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub started_at: Option<String>,
    /// When the last outcome was counted, RFC 3339; `None` when none was.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub finished_at: Option<String>,
}
