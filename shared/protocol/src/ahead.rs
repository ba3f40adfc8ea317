//! What a client's jobs are going to do.

use serde::{Deserialize, Serialize};

use crate::policy::Unreadable;
use crate::words::words;

/// What jobs are going to do in a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ahead {
    /// Where the stretch begins, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// Where it ends, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub until: String,
    /// The length of a step, in seconds.
    pub step_seconds: u32,
    /// The jobs of the page that have launches in it, by their ids.
    pub jobs: Vec<JobAhead>,
    /// What is due of them in each step in which something is, in order of time.
    pub steps: Vec<StepAhead>,
    /// What is due of them under each of their policies, by the ids of the policies.
    pub policies: Vec<PolicyAhead>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask for the jobs after it with; null on the last page. What is due of them comes on top.
    pub next_cursor: Option<String>,
}

/// What a job is going to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobAhead {
    /// The job.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub job_id: String,
    /// Its policy; null for none.
    pub policy_id: Option<String>,
    /// Its launches that are made.
    pub launches: u64,
    /// Their events.
    pub events: u64,
    /// Its launches that will not be made, as things stand: it is paused, its calendars leave them out, or its client does.
    pub skipped: u64,
    /// Its first launch, made or not, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub first_launch_at: String,
    /// Its last launch that was counted, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub last_launch_at: String,
    /// Whether it has more than the 50,000 launches that are counted of a job.
    pub has_more: bool,
}

/// What is due in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepAhead {
    /// When the step begins, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// Launches that are made.
    pub launches: u64,
    /// Their events.
    pub events: u64,
}

/// What is due under a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyAhead {
    /// The policy.
    #[cfg_attr(feature = "openapi", schema(example = "reports"))]
    pub policy_id: String,
    /// Launches that are made.
    pub launches: u64,
    /// Their events.
    pub events: u64,
    /// When the step begins in which most events are due, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub most_at: String,
    /// How many.
    pub most_events: u64,
    /// Where it cannot keep up with them; null: it can, as far as can be said.
    pub strain: Option<StrainAhead>,
}

/// Where a policy cannot keep up with what is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrainAhead {
    /// What holds: `rate`, or `max_in_flight`, in which an event counts as often as it takes tokens.
    pub limited_by: LimitedBy,
    /// How many events begin in a step.
    pub events_per_step: f64,
    /// From the end of which step on events wait, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub begins_at: String,
    /// How many wait where most do.
    pub most_waiting: u64,
    /// When that is, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub most_at: String,
    /// By when none waits any more, RFC 3339; null: not by the end of the stretch.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub ends_at: Option<String>,
    /// The same in a sentence.
    pub warning: String,
}

words! {
    /// What of a policy holds events back.
    LimitedBy {
        /// Its rate.
        Rate = "rate",
        /// Its tokens.
        MaxInFlight = "max_in_flight",
    }
}
