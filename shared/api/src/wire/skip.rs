//! Which launch of a job is left out, as it travels.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::when::read_instant;

/// A launch to be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"launch_at": "2026-12-24T09:00:00Z"}))]
pub(crate) struct SkipBody {
    /// The launch, an instant in ISO 8601 with its offset, as `GET /v1/jobs/{job_id}/upcoming` says it; the next that is made
    /// when left out.
    #[schema(format = DateTime)]
    pub(crate) launch_at: Option<String>,
}

impl Form for SkipBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl SkipBody {
    /// The launch that is named, if one is; `None` when it is no instant, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Option<DateTime<Utc>>> {
        let Some(text) = &self.launch_at else { return Some(None) };
        errors.keep("launch_at", &**text, read_instant("launch_at", text)).map(Some)
    }
}
