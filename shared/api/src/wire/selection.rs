//! Jobs that are meant by what they have in common, as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::{JOB_ID_BYTES, NAME_BYTES};
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{Text, bounded_fields};

/// The jobs that are meant: those that fit all that is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"prefix": "nightly-", "policy_id": "reports", "dry_run": true}))]
pub(crate) struct SelectionBody {
    /// What their ids begin with; an empty text for any. No others are read.
    #[schema(value_type = String)]
    prefix: Text<JOB_ID_BYTES>,
    /// The policy that they are under.
    #[schema(value_type = Option<String>)]
    policy_id: Option<Text<NAME_BYTES>>,
    /// Whether they are paused.
    paused: Option<bool>,
    /// Only tells which jobs are meant.
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// The `next_cursor` of the call before; left out for the first.
    pub(crate) cursor: Option<String>,
}

bounded_fields!(SelectionBody: prefix, policy_id);

/// What the jobs have in common.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) prefix: String,
    policy: Option<PolicyId>,
    paused: Option<bool>,
}

impl Selection {
    /// Whether a job whose id begins as it must is meant.
    pub(crate) fn has(&self, job: &Job) -> bool {
        self.policy.as_ref().is_none_or(|policy| job.terms.policy.as_ref() == Some(policy))
            && self.paused.is_none_or(|paused| job.paused == paused)
    }
}

impl Form for SelectionBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl SelectionBody {
    /// What the jobs have in common; `None` when a field is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Selection> {
        let prefix = self.prefix.check("prefix", errors);
        let policy = match &self.policy_id {
            Some(text) => errors.keep("policy_id", &**text, text.parse()).map(Some),
            None => Some(None),
        };
        Some(Selection { prefix: prefix?, policy: policy?, paused: self.paused })
    }
}
