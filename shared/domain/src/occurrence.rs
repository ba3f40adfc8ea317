//! An occurrence: one firing of one job. What the emitter finds and everything after it is about.

use chrono::{DateTime, Utc};

use crate::ids::{ClientId, JobId, RunId};
use crate::job::Terms;

/// One firing of a job.
///
/// Invariant: its identity is job, revision and launch instant; the rest is what that revision says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The client whose job it is.
    pub client: ClientId,
    /// The name of the job.
    pub job: JobId,
    /// The job's revision that was in force.
    pub revision: u32,
    /// When it is due, with its job's jitter, in whole seconds.
    pub launch_at: DateTime<Utc>,
    /// What it delivers; a large payload is left in the job.
    pub terms: Terms,
}

/// Why an occurrence is not delivered. Recorded with it, and shown as [`SkipReason::as_str`].
///
/// ```
/// use tidegate_domain::occurrence::{SkipReason, StopReason};
///
/// assert_eq!(SkipReason::Excluded.as_str(), "excluded");
/// assert_eq!(StopReason::Deadline.as_str(), "deadline");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// Its job is paused.
    Paused,
    /// An outage missed it, and its job's misfire rule does not make up for it.
    MisfireSkipped,
    /// It is older than its job's relevancy window.
    Expired,
    /// The run before it is not finished, and its job's overlap rule skips it.
    OverlapSkipped,
    /// Its policy's line holds as many runs as it may.
    LineFull,
    /// Its client has as many events waiting as it may, by its quotas.
    OverQuota,
    /// It lies on a day or in an interval of one of its job's calendars.
    Excluded,
    /// Its client left out this launch of the job.
    OnRequest,
    /// Its job was deleted.
    JobDeleted,
    /// Its job was changed after it was planned, and its new revision launches in its place.
    Rescheduled,
    /// It could not be made into messages: its job holds what no queue takes, or what this version cannot handle. The
    /// log says more.
    NotEmittable,
}

/// Why nothing more of a run is delivered that had begun to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// Its client cancelled it.
    Cancelled,
    /// Its window is over, and its job lets the rest expire.
    Deadline,
    /// As many of its events as `max_failures` did not succeed.
    FailureLimit,
    /// Its payload, which was too large to travel, is gone with its job.
    PayloadGone,
    /// Its policy was deleted.
    PolicyDeleted,
}

impl StopReason {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Cancelled, Self::Deadline, Self::FailureLimit, Self::PayloadGone, Self::PolicyDeleted];

    /// Its word in rows and in the API, which never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
            Self::FailureLimit => "failure_limit",
            Self::PayloadGone => "payload_deleted",
            Self::PolicyDeleted => "policy_deleted",
        }
    }
}

impl SkipReason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Paused,
        Self::MisfireSkipped,
        Self::Expired,
        Self::OverlapSkipped,
        Self::LineFull,
        Self::OverQuota,
        Self::Excluded,
        Self::OnRequest,
        Self::JobDeleted,
        Self::Rescheduled,
        Self::NotEmittable,
    ];

    /// Its word in rows and in the API, which never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::MisfireSkipped => "misfire_skipped",
            Self::Expired => "expired",
            Self::OverlapSkipped => "overlap_skipped",
            Self::LineFull => "line_full",
            Self::OverQuota => "over_quota",
            Self::Excluded => "excluded",
            Self::OnRequest => "skipped_on_request",
            Self::JobDeleted => "job_deleted",
            Self::Rescheduled => "rescheduled",
            Self::NotEmittable => "not_emittable",
        }
    }
}

impl Occurrence {
    /// The id of the run that it becomes.
    pub fn run_id(&self) -> RunId {
        RunId::new(self.job.clone(), self.revision, self.launch_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_reasons_have_each_once_and_in_their_order() {
        assert_eq!(SkipReason::ALL.map(|reason| reason as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(StopReason::ALL.map(|reason| reason as usize), [0, 1, 2, 3, 4]);
    }
}
