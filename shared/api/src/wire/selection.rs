//! Jobs that are meant by what they have in common, as they travel: in a body, and in the query of a list.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::{JOB_ID_BYTES, NAME_BYTES, TARGET_URL_BYTES};
use utoipa::{IntoParams, ToSchema};

use crate::form::Form;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::client::pattern_fault;
use crate::wire::number::PageLimit;

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
    /// Where they send their events: a URL or an ARN, in which one '*' stands for any run of characters.
    #[schema(value_type = Option<String>, example = "https://hooks.acme.example/*")]
    target: Option<Text<TARGET_URL_BYTES>>,
    /// Only tells which jobs are meant.
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// The `next_cursor` of the call before; left out for the first.
    pub(crate) cursor: Option<String>,
}

bounded_fields!(SelectionBody: prefix, policy_id, target);

/// Which jobs are asked for: those that fit all that is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// What their ids begin with; no others are read. Left out: any.
    #[param(value_type = Option<String>, example = "nightly-", max_length = 200)]
    prefix: Option<Text<JOB_ID_BYTES>>,
    /// The policy that they are under.
    #[param(value_type = Option<String>, max_length = 32)]
    policy_id: Option<Text<NAME_BYTES>>,
    /// Whether they are paused.
    paused: Option<bool>,
    /// Where they send their events: a URL or an ARN, in which one '*' stands for any run of characters.
    #[param(value_type = Option<String>, example = "https://hooks.acme.example/*", max_length = 512)]
    target: Option<Text<TARGET_URL_BYTES>>,
}

impl JobsQuery {
    /// What the jobs have in common that are asked for.
    pub(crate) fn check(&self) -> Result<Selection, Problem> {
        let mut errors = FieldErrors::default();
        let prefix =
            self.prefix.as_ref().map_or(Some(String::new()), |prefix| prefix.check("prefix", &mut errors));
        let selection = Selection::check(
            prefix,
            (self.policy_id.as_deref(), self.target.as_deref()),
            self.paused,
            &mut errors,
        );
        errors.into_result(Kind::MalformedRequest)?;
        selection.ok_or_else(|| Problem::new(Kind::MalformedRequest, "the query says no jobs"))
    }
}

/// What the jobs have in common.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) prefix: String,
    policy: Option<PolicyId>,
    paused: Option<bool>,
    target: Option<String>,
}

impl Selection {
    /// Checks what is said of jobs.
    fn check(
        prefix: Option<String>,
        (policy, target): (Option<&str>, Option<&str>),
        paused: Option<bool>,
        errors: &mut FieldErrors,
    ) -> Option<Self> {
        let policy = match policy {
            Some(text) => errors.keep("policy_id", text, text.parse()).map(Some),
            None => Some(None),
        };
        let fault = target.and_then(|pattern| Some((pattern, pattern_fault(pattern)?)));
        if let Some((pattern, fault)) = fault {
            errors.add("target", pattern, format!("target {fault}"));
            return None;
        }
        Some(Self { prefix: prefix?, policy: policy?, paused, target: target.map(str::to_owned) })
    }

    /// Whether every job is meant whose id begins as it must.
    pub(crate) fn has_all(&self) -> bool {
        self.policy.is_none() && self.paused.is_none() && self.target.is_none()
    }

    /// Whether a job whose id begins as it must is meant.
    pub(crate) fn has(&self, job: &Job) -> bool {
        self.policy.as_ref().is_none_or(|policy| job.terms.policy.as_ref() == Some(policy))
            && self.paused.is_none_or(|paused| job.paused == paused)
            && self.target.as_ref().is_none_or(|pattern| job.terms.target.is_covered_by(pattern))
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
        Selection::check(prefix, (self.policy_id.as_deref(), self.target.as_deref()), self.paused, errors)
    }
}
