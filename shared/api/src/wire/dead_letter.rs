//! Dead letters as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_domain::ids::{EventId, IdError, JobId, PolicyId};
use tidegate_domain::limits::TOKENS_PER_CALL;
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::time::{milliseconds, shifted};
use tidegate_engine::{DeadLetterCounts, DeadLetterDetail, DeadLetterFilter, EventStatus, Redriven};
use tidegate_protocol::{self as protocol, DeadLetterStatus};
use tidegate_store::dead_letters::DeadLetter;
use utoipa::{IntoParams, ToSchema};

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{List, bounded_fields};
use crate::wire::number::{Number, PageLimit, check_given};
use crate::wire::when::read_instant;
use crate::wire::{instant, run, target};

/// Which dead letters are meant: those that fit all that is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeadLetterFilter, example = json!({"job_id": "nightly", "status": "dead"}))]
pub(crate) struct FilterBody {
    /// Of this job.
    job_id: Option<String>,
    /// Of events that this policy throttled.
    policy_id: Option<String>,
    /// That ended so: `dead`, `expired` or `failed`.
    status: Option<String>,
    /// Whose reason has this text in it.
    reason: Option<String>,
    /// That ended at this instant or later, in ISO 8601 with its offset.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// That ended before this instant.
    #[schema(format = DateTime)]
    until: Option<String>,
}

/// The query of dead letters: those that fit all that is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterQuery {
    /// The `next_cursor` of the page before; left out for the first. Not looked at where letters are counted.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out. Not looked at where letters are counted.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Of this job.
    job_id: Option<String>,
    /// Of events that this policy throttled.
    policy_id: Option<String>,
    /// That ended so: `dead`, `expired` or `failed`.
    status: Option<String>,
    /// Whose reason has this text in it.
    reason: Option<String>,
    /// That ended at this instant or later, in ISO 8601 with its offset.
    since: Option<String>,
    /// That ended before this instant.
    until: Option<String>,
}

impl DeadLetterQuery {
    /// Where the page begins and how long it is, and what fits.
    pub(crate) fn into_parts(self) -> ((Option<String>, Option<String>), FilterBody) {
        let Self { cursor, limit, job_id, policy_id, status, reason, since, until } = self;
        ((cursor, limit), FilterBody { job_id, policy_id, status, reason, since, until })
    }
}

impl FilterBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which. `within` stands before their names.
    pub(crate) fn check(&self, within: &str, errors: &mut FieldErrors) -> Option<DeadLetterFilter> {
        let field = |name: &str| format!("{within}{name}");
        let job = given(&field("job_id"), self.job_id.as_deref(), errors, str::parse::<JobId>);
        let policy = given(&field("policy_id"), self.policy_id.as_deref(), errors, str::parse::<PolicyId>);
        let status = given(&field("status"), self.status.as_deref(), errors, |text| {
            read_status(&field("status"), text)
        });
        let at = |name: &str, text: &Option<String>, errors: &mut FieldErrors| {
            given(&field(name), text.as_deref(), errors, |text| read_instant(&field(name), text))
        };
        let (since, until) = (at("since", &self.since, errors), at("until", &self.until, errors));
        Some(DeadLetterFilter {
            job: job?,
            policy: policy?,
            status: status?,
            reason: self.reason.clone(),
            since: since?,
            until: until?,
        })
    }
}

fn given<T, E: std::fmt::Display>(
    field: &str,
    text: Option<&str>,
    errors: &mut FieldErrors,
    read: impl Fn(&str) -> Result<T, E>,
) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => errors.keep(field, text, read(text)).map(Some),
    }
}

fn read_status(field: &str, text: &str) -> Result<EventStatus, String> {
    let of_letters = [EventStatus::Dead, EventStatus::Expired, EventStatus::Failed];
    let found = EventStatus::named(text).filter(|status| of_letters.contains(status));
    found.ok_or_else(|| format!("{field} '{text}' is none of a dead letter; give dead, expired or failed"))
}

/// Dead letters to be redriven: up to 100 events, or those that fit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"where": {"job_id": "nightly"}, "per_second": 5}))]
pub(crate) struct RedriveBody {
    /// 1 to 100 ids of events. In the place of `where`.
    #[schema(value_type = Option<Vec<String>>, min_items = 1)]
    event_ids: Option<List<String, TOKENS_PER_CALL>>,
    /// Which ones: `{}` for all. A call takes up to 100; go on with `next_cursor`.
    #[serde(rename = "where")]
    filter: Option<FilterBody>,
    /// The `next_cursor` of the call before; left out in the first. Only with `where`.
    cursor: Option<String>,
    /// How many are sent in a second; all at once, as far as their policies let them, when left out.
    #[schema(value_type = Option<u32>)]
    per_second: Option<Number<RedrivePace>>,
    /// None is sent before this instant, in ISO 8601 with its offset; now when left out. In a call that goes on, the
    /// `next_start_at` of the call before.
    #[schema(format = DateTime)]
    start_at: Option<String>,
}

/// Dead letters to be forgotten: up to 100 events, or those that fit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"event_ids": ["nightly.1.1795305600.7"]}))]
pub(crate) struct DiscardBody {
    /// 1 to 100 ids of events. In the place of `where`.
    #[schema(value_type = Option<Vec<String>>, min_items = 1)]
    event_ids: Option<List<String, TOKENS_PER_CALL>>,
    /// Which ones: `{}` for all. A call takes up to 100; go on with `next_cursor`.
    #[serde(rename = "where")]
    filter: Option<FilterBody>,
    /// The `next_cursor` of the call before; left out in the first. Only with `where`.
    cursor: Option<String>,
}

bounded_fields!(RedriveBody: event_ids, per_second);
bounded_fields!(DiscardBody: event_ids);

/// The dead letters that a call is about.
#[derive(Debug)]
pub(crate) enum Chosen {
    /// Those of these events; of a text that is no event's id, the text.
    Named(Vec<Result<EventId, String>>),
    /// Those that fit, from a place in the list on.
    Fitting(Box<DeadLetterFilter>, Option<String>),
}

/// When the events of a call are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paced {
    pub(crate) start_at: Option<DateTime<Utc>>,
    pub(crate) per_second: Option<RedrivePace>,
}

impl Paced {
    /// When event number `number` of the call is sent, from 0.
    pub(crate) fn due_at(&self, number: u32, now: DateTime<Utc>) -> DateTime<Utc> {
        let after_ms = self.per_second.map_or(0, |pace| {
            i64::from(number).saturating_mul(1_000).checked_div(pace.get().into()).unwrap_or_default()
        });
        shifted(self.start_at.unwrap_or(now).max(now), milliseconds(after_ms))
    }
}

impl Form for RedriveBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl Form for DiscardBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl RedriveBody {
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<(Chosen, Paced)> {
        let per_second = check_given(self.per_second, errors);
        let start_at =
            given("start_at", self.start_at.as_deref(), errors, |text| read_instant("start_at", text));
        let chosen = chosen(self.event_ids, self.filter, self.cursor, errors);
        Some((chosen?, Paced { start_at: start_at?, per_second: per_second? }))
    }
}

impl DiscardBody {
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<Chosen> {
        chosen(self.event_ids, self.filter, self.cursor, errors)
    }
}

fn chosen(
    events: Option<List<String, TOKENS_PER_CALL>>,
    filter: Option<FilterBody>,
    cursor: Option<String>,
    errors: &mut FieldErrors,
) -> Option<Chosen> {
    match (events, filter) {
        (Some(events), None) if events.is_empty() => {
            errors.add("event_ids", (), "event_ids has none; name 1 to 100 events");
            None
        }
        (Some(_), None) if cursor.is_some() => {
            errors.add("cursor", (), "cursor goes with 'where' only; leave it out");
            None
        }
        (Some(events), None) => {
            let read = |text: &String| text.parse().map_err(|_: IdError| text.clone());
            Some(Chosen::Named(events.iter().map(read).collect()))
        }
        (None, Some(filter)) => Some(Chosen::Fitting(Box::new(filter.check("where.", errors)?), cursor)),
        (None, None) => {
            let message =
                "the body names no events: give 'event_ids', or 'where', which is {} for all dead letters";
            errors.add("event_ids", (), message);
            None
        }
        (Some(_), Some(_)) => {
            errors.add("where", (), "the body has both 'event_ids' and 'where'; give one");
            None
        }
    }
}

/// A dead letter as it is answered.
pub(crate) fn view(letter: &DeadLetter) -> protocol::DeadLetter {
    let (event, run) = (&letter.event, letter.event.run());
    protocol::DeadLetter {
        event_id: event.to_string(),
        job_id: run.job().to_string(),
        run_id: run.to_string(),
        index: event.index(),
        policy_id: letter.waited.as_ref().map(|waited| waited.policy.to_string()),
        status: EventStatus::from(letter.outcome).as_str().to_owned(),
        attempts: letter.attempts.into(),
        at: instant(letter.at),
        reason: letter.reason.clone(),
    }
}

/// The event of a dead letter, as it is answered.
pub(crate) fn event_view(letter: &DeadLetter) -> protocol::EventRecord {
    protocol::EventRecord {
        event_id: letter.event.to_string(),
        index: letter.event.index(),
        status: EventStatus::from(letter.outcome).as_str().to_owned(),
        attempts: Some(letter.attempts.into()),
        at: Some(instant(letter.at)),
        reason: letter.reason.clone(),
        result: None,
        error: None,
    }
}

/// A dead letter with what its event carries, as it is answered.
pub(crate) fn detail_view(detail: DeadLetterDetail) -> protocol::DeadLetterDetail<Box<RawValue>> {
    protocol::DeadLetterDetail {
        dead_letter: view(&detail.letter),
        target: detail.target.as_ref().map(|to| target::view(to, false)),
        payload: detail.payload.unwrap_or_default(),
        failures: detail.failures.iter().map(run::failed_delivery).collect(),
    }
}

/// Counts as they are answered.
pub(crate) fn counts_view(counts: DeadLetterCounts) -> protocol::DeadLetterCounts {
    let DeadLetterCounts { total, has_more, by_job, by_policy, by_status, by_reason } = counts;
    protocol::DeadLetterCounts {
        total,
        has_more,
        by_job: by_job.into_iter().map(|(job, count)| (job.to_string(), count)).collect(),
        by_policy: by_policy.into_iter().map(|(policy, count)| (policy.to_string(), count)).collect(),
        by_status: by_status.into_iter().map(|(status, count)| (status.to_owned(), count)).collect(),
        by_reason,
    }
}

/// What came of redriving, as it is answered.
pub(crate) fn status(redriven: Redriven) -> DeadLetterStatus {
    match redriven {
        Redriven::Done => DeadLetterStatus::Redriven,
        Redriven::Absent => DeadLetterStatus::Absent,
        Redriven::PolicyDeleted => DeadLetterStatus::PolicyDeleted,
        Redriven::RunOver => DeadLetterStatus::RunOver,
        Redriven::PayloadGone => DeadLetterStatus::PayloadGone,
        Redriven::TooOld => DeadLetterStatus::TooOld,
    }
}
