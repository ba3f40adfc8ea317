//! An occurrence: one firing of one job. What the emitter finds and everything after it is about.

use chrono::{DateTime, Utc};

use crate::ids::{ClientId, JobId, RunId};
use crate::job::Terms;

/// One firing of a job.
///
/// Invariant: its identity is job, revision and launch instant; the rest is what that revision says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Whose job it is.
    pub client: ClientId,
    /// The job.
    pub job: JobId,
    /// The job's revision that was in force.
    pub revision: u32,
    /// When it is due.
    pub launch_at: DateTime<Utc>,
    /// What it delivers; a large payload is left in the job.
    pub terms: Terms,
}

impl Occurrence {
    /// The id of the run that it becomes.
    pub fn run_id(&self) -> RunId {
        RunId::new(self.job.clone(), self.revision, self.launch_at)
    }
}
