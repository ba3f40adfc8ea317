//! Jobs that are meant by what they have in common, as they travel: in a body, and in the query of a list.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::{CLOSED_BECAUSE_BYTES, JOB_ID_BYTES, NAME_BYTES, TAG_BYTES, TARGET_URL_BYTES};
use tidegate_domain::tags::Tags;
use tidegate_engine::JobsAlike;
use utoipa::{IntoParams, ToSchema};

use crate::form::Form;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::client::pattern_fault;
use crate::wire::job_calls::check_because;
use crate::wire::number::PageLimit;
use crate::wire::when::read_of_query;

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
    /// A tag that they have.
    #[schema(value_type = Option<String>, example = "team:books")]
    tag: Option<Text<TAG_BYTES>>,
    /// Why they are paused, for those who look at them: at most 200 bytes. Only where they are to be paused.
    #[schema(value_type = Option<String>)]
    because: Option<Text<CLOSED_BECAUSE_BYTES>>,
    /// Only tells which jobs are meant.
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// The `next_cursor` of the call before; left out for the first.
    pub(crate) cursor: Option<String>,
}

bounded_fields!(SelectionBody: prefix, policy_id, target, tag, because);

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
    /// A tag that they have.
    #[param(value_type = Option<String>, example = "team:books", max_length = 64)]
    tag: Option<Text<TAG_BYTES>>,
    /// Those whose next launch that will be made is due before this instant, in ISO 8601 with its offset; not those that are paused.
    #[param(value_type = Option<String>, format = DateTime)]
    next_before: Option<String>,
}

impl JobsQuery {
    /// Before when their next launch is due; `None`: whenever it is.
    pub(crate) fn next_before(&self) -> Result<Option<DateTime<Utc>>, Problem> {
        read_of_query("next_before", self.next_before.as_deref())
    }

    /// What the jobs have in common that are asked for.
    pub(crate) fn check(&self) -> Result<Selection, Problem> {
        let Self { policy_id, target, tag, paused, .. } = self;
        let said = Said::of(policy_id.as_ref(), target.as_ref(), tag.as_ref(), *paused);
        Selection::of_query(self.prefix.as_ref(), said)
    }
}

/// What the jobs have in common.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) prefix: String,
    policy: Option<PolicyId>,
    paused: Option<bool>,
    target: Option<String>,
    tag: Option<String>,
}

/// What is said of jobs beside how their ids begin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said<'a> {
    policy_id: Option<&'a str>,
    target: Option<&'a str>,
    tag: Option<&'a str>,
    paused: Option<bool>,
}

impl<'a> Said<'a> {
    pub(crate) fn of(
        policy_id: Option<&'a Text<NAME_BYTES>>,
        target: Option<&'a Text<TARGET_URL_BYTES>>,
        tag: Option<&'a Text<TAG_BYTES>>,
        paused: Option<bool>,
    ) -> Self {
        Self {
            policy_id: policy_id.map(|text| &**text),
            target: target.map(|text| &**text),
            tag: tag.map(|text| &**text),
            paused,
        }
    }
}

impl Selection {
    /// What a query says of jobs.
    pub(crate) fn of_query(prefix: Option<&Text<JOB_ID_BYTES>>, said: Said<'_>) -> Result<Self, Problem> {
        let mut errors = FieldErrors::default();
        let prefix = prefix.map_or(Some(String::new()), |prefix| prefix.check("prefix", &mut errors));
        let selection = Self::check(prefix, said, &mut errors);
        errors.into_result(Kind::MalformedRequest)?;
        selection.ok_or_else(|| Problem::new(Kind::MalformedRequest, "the query says no jobs"))
    }

    /// Checks what is said of jobs.
    pub(crate) fn check(
        prefix: Option<String>,
        Said { policy_id, target, tag, paused }: Said<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Self> {
        if let Some(tag) = tag {
            errors.keep("tag", tag, Tags::check(tag))?;
        }
        let policy = match policy_id {
            Some(text) => errors.keep("policy_id", text, text.parse()).map(Some),
            None => Some(None),
        };
        let fault = target.and_then(|pattern| Some((pattern, pattern_fault(pattern)?)));
        if let Some((pattern, fault)) = fault {
            errors.add("target", pattern, format!("target {fault}"));
            return None;
        }
        let [target, tag] = [target, tag].map(|text| text.map(str::to_owned));
        Some(Self { prefix: prefix?, policy: policy?, paused, target, tag })
    }

    /// How the engine is told of the jobs: `is_meant` is [`Self::has`] of this selection.
    pub(crate) fn jobs<'a>(&'a self, is_meant: &'a (dyn Fn(&Job) -> bool + Sync)) -> JobsAlike<'a> {
        JobsAlike { prefix: &self.prefix, is_meant }
    }

    /// Whether every job is meant whose id begins as it must.
    pub(crate) fn has_all(&self) -> bool {
        self.policy.is_none() && self.paused.is_none() && self.target.is_none() && self.tag.is_none()
    }

    /// Whether a job whose id begins as it must is meant.
    pub(crate) fn has(&self, job: &Job) -> bool {
        self.policy.as_ref().is_none_or(|policy| job.terms.policy.as_ref() == Some(policy))
            && self.paused.is_none_or(|paused| job.paused == paused)
            && self.target.as_ref().is_none_or(|pattern| job.terms.target.is_covered_by(pattern))
            && self.tag.as_ref().is_none_or(|tag| job.tags.has(tag))
    }
}

impl Form for SelectionBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
        self.because(errors);
    }
}

impl SelectionBody {
    /// Why the jobs are paused, if that is said; `None` when it is too long, and then `errors` says so.
    pub(crate) fn because(&self, errors: &mut FieldErrors) -> Option<Option<String>> {
        check_because(self.because.as_ref(), errors)
    }

    /// What the jobs have in common; `None` when a field is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Selection> {
        let prefix = self.prefix.check("prefix", errors);
        let Self { policy_id, target, tag, paused, .. } = self;
        let said = Said::of(policy_id.as_ref(), target.as_ref(), tag.as_ref(), *paused);
        Selection::check(prefix, said, errors)
    }
}
