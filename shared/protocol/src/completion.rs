//! What a client is told when a run has come to its end.

use serde::{Deserialize, Serialize};

/// The body of a completion: an SQS message's text, or the body of a POST. Version 1; fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// `run.completed`.
    pub r#type: String,
    /// The idempotency key: the same each time this is sent.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// The client's job.
    pub job_id: String,
    /// The client.
    pub client_id: String,
    /// `finished` or `stopped`.
    pub state: String,
    /// Why it was stopped; `None` when it finished.
    pub reason: Option<String>,
    /// How many events it has.
    pub count: u32,
    /// Released as succeeded.
    pub succeeded: u32,
    /// Released as failed.
    pub failed: u32,
    /// Never released.
    pub expired: u32,
    /// Could not be delivered.
    pub dead: u32,
    /// Never admitted, because the run was stopped.
    pub left_out: u32,
    /// When it was due, RFC 3339.
    pub launch_at: String,
    /// When its first event was admitted, RFC 3339; `None` when none was.
    pub started_at: Option<String>,
    /// When the last outcome was counted, RFC 3339; `None` when none was.
    pub finished_at: Option<String>,
}
