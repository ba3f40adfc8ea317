//! Bulk calls as they travel: many jobs in, an answer for each out.
//!
//! Each job is read by itself, so that one of a wrong form spoils no other.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_domain::job::Job;
use tidegate_domain::limits::BULK_JOBS;
use tidegate_protocol::BulkResult;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::{FieldErrors, Problem};
use crate::wire::bounds::{List, bounded_fields};
use crate::wire::job::JobBody;

/// Jobs to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkBody {
    /// 1 to 1,000 jobs, each as it would be posted alone. The whole body may have 4 MiB.
    #[schema(value_type = Vec<JobBody>, min_items = 1)]
    pub(crate) jobs: List<Box<RawValue>, BULK_JOBS>,
}

bounded_fields!(BulkBody: jobs);

impl Form for BulkBody {
    const PARTS: Option<&'static str> = Some("jobs");

    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check_number(errors);
    }
}

impl BulkBody {
    /// Notes a list that is empty or too long.
    pub(crate) fn check_number(&self, errors: &mut FieldErrors) {
        self.jobs.check_number("jobs", "give one job or more", errors);
    }
}

/// What came of a job that is there now.
pub(crate) fn stored(status: u16, job: &Job, warnings: Vec<String>) -> BulkResult {
    let (job_id, revision) = (Some(job.id.to_string()), Some(job.revision));
    BulkResult { status, job_id, revision, warnings, detail: None, errors: Vec::new() }
}

/// What came of a job that was refused.
pub(crate) fn refused(problem: Problem) -> BulkResult {
    let (status, detail, errors) = problem.into_parts();
    let status = status.as_u16();
    BulkResult { status, job_id: None, revision: None, warnings: Vec::new(), detail: Some(detail), errors }
}
