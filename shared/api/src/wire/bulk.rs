//! Bulk calls as they travel: many jobs in, an answer for each out.
//!
//! Each job is read by itself, so that one of a wrong form spoils no other.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_domain::limits::BULK_JOBS;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::{FieldError, FieldErrors, Problem};
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

/// What came of one job of a bulk call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResult {
    /// The HTTP status that the job would have been answered with alone: 201 created, 200 there already, or a refusal.
    #[schema(example = 201)]
    pub(crate) status: u16,
    /// The job's name, when it is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<String>,
    /// The job's revision, when it is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<u32>,
    /// What may not be as meant, though it was taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// What is wrong and what to do about it, when it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// Each field that is wrong, when it was refused for its fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<FieldError>,
}

impl BulkResult {
    /// A job that is there now.
    pub(crate) fn there(status: u16, job_id: String, revision: u32, warnings: Vec<String>) -> Self {
        let (job_id, revision) = (Some(job_id), Some(revision));
        Self { status, job_id, revision, warnings, detail: None, errors: Vec::new() }
    }
}

impl From<Problem> for BulkResult {
    fn from(problem: Problem) -> Self {
        let (status, detail, errors) = problem.into_parts();
        let status = status.as_u16();
        Self { status, job_id: None, revision: None, warnings: Vec::new(), detail: Some(detail), errors }
    }
}

/// What came of each job, in the order of the call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResults {
    /// One for each job of the call.
    pub(crate) results: Vec<BulkResult>,
}
