//! Runs and events as they travel: only ever read.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::limits::{JOB_ID_BYTES, NAME_BYTES, TAG_BYTES, TARGET_URL_BYTES};
use tidegate_domain::occurrence::StopReason;
use tidegate_domain::time::Window;
use tidegate_engine::{EventRecord, EventStatus, ForecastBasis, RunDetail, RunState, RunSummary};
use tidegate_protocol as protocol;
use tidegate_store::failures::FailedDelivery;
use utoipa::{IntoParams, ToSchema};

use crate::form::Form;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::sentences;
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::instant;
use crate::wire::number::PageLimit;
use crate::wire::selection::{Said, Selection};
use crate::wire::when::{read_window, window_back};

/// Which events of a run are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// The statuses of the events to list, with commas between them: `waiting`, `in_flight`, `delivered`, `succeeded`, `failed`,
    /// `expired`, `dead`, `stopped`. Left out: all events.
    #[param(example = "failed,expired,dead")]
    status: Option<String>,
}

impl EventsQuery {
    /// The statuses that are asked for; `None` for all events.
    pub(crate) fn statuses(&self) -> Result<Option<BTreeSet<EventStatus>>, Problem> {
        let Some(text) = &self.status else { return Ok(None) };
        let named = |word: &str| {
            EventStatus::named(word).ok_or_else(|| {
                let words = EventStatus::ALL.map(EventStatus::as_str).join(", ");
                let detail =
                    format!("status has '{word}'; give one or several of {words}, with commas between them");
                Problem::of_field(Kind::MalformedRequest, "status", text.as_str(), detail)
            })
        };
        text.split(',').map(|word| named(word.trim())).collect::<Result<_, _>>().map(Some)
    }
}

/// Which runs of all jobs are asked for: those that fit all that is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Those that were due at this instant or later, in ISO 8601 with its offset; a day before `until` when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<String>,
    /// Those that were due before this instant; now when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    /// The states of the runs to list, with commas between them: `waiting`, `running`, `finished`, `stopped`. Left out: all runs.
    #[param(example = "waiting,running")]
    state: Option<String>,
    /// What the ids of their jobs begin with; no others are read. Left out: any.
    #[param(value_type = Option<String>, example = "nightly-", max_length = 200)]
    prefix: Option<Text<JOB_ID_BYTES>>,
    /// The policy that their jobs are under.
    #[param(value_type = Option<String>, max_length = 32)]
    policy_id: Option<Text<NAME_BYTES>>,
    /// Whether their jobs are paused.
    paused: Option<bool>,
    /// Where their jobs send events: a URL or an ARN, in which one '*' stands for any run of characters.
    #[param(value_type = Option<String>, example = "https://hooks.acme.example/*", max_length = 512)]
    target: Option<Text<TARGET_URL_BYTES>>,
    /// A tag that their jobs have.
    #[param(value_type = Option<String>, example = "team:books", max_length = 64)]
    tag: Option<Text<TAG_BYTES>>,
}

impl RunsQuery {
    /// What the jobs have in common whose runs are asked for.
    pub(crate) fn selection(&self) -> Result<Selection, Problem> {
        let Self { policy_id, target, tag, paused, .. } = self;
        let said = Said::of(policy_id.as_ref(), target.as_ref(), tag.as_ref(), *paused);
        Selection::of_query(self.prefix.as_ref(), said)
    }

    /// When they were due.
    pub(crate) fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        window_back(self.since.as_deref(), self.until.as_deref(), now)
    }

    /// The states that are asked for; `None` for all runs.
    pub(crate) fn states(&self) -> Result<Option<BTreeSet<RunState>>, Problem> {
        let Some(text) = &self.state else { return Ok(None) };
        let named = |word: &str| {
            RunState::named(word).ok_or_else(|| {
                let words = RunState::ALL.map(RunState::as_str).join(", ");
                let detail =
                    format!("state has '{word}'; give one or several of {words}, with commas between them");
                Problem::of_field(Kind::MalformedRequest, "state", text.as_str(), detail)
            })
        };
        text.split(',').map(|word| named(word.trim())).collect::<Result<_, _>>().map(Some)
    }
}

/// Runs that are to be cancelled: those that wait or run and fit all that is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"prefix": "nightly-", "since": "2026-12-24T00:00:00Z", "until": "2026-12-25T00:00:00Z", "dry_run": true}))]
pub(crate) struct CancelBody {
    /// What the ids of their jobs begin with; an empty text for any.
    #[schema(value_type = String)]
    prefix: Text<JOB_ID_BYTES>,
    /// Those that were due at this instant or later, in ISO 8601 with its offset.
    #[schema(format = DateTime)]
    since: String,
    /// Those that were due before this instant.
    #[schema(format = DateTime)]
    until: String,
    /// The policy that their jobs are under.
    #[schema(value_type = Option<String>)]
    policy_id: Option<Text<NAME_BYTES>>,
    /// Where their jobs send events: a URL or an ARN, in which one '*' stands for any run of characters.
    #[schema(value_type = Option<String>, example = "https://hooks.acme.example/*")]
    target: Option<Text<TARGET_URL_BYTES>>,
    /// A tag that their jobs have.
    #[schema(value_type = Option<String>, example = "team:books")]
    tag: Option<Text<TAG_BYTES>>,
    /// Only tells which runs are meant.
    #[serde(default)]
    pub(crate) dry_run: bool,
    /// The `next_cursor` of the call before; left out for the first.
    pub(crate) cursor: Option<String>,
}

bounded_fields!(CancelBody: prefix, policy_id, target, tag);

impl Form for CancelBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl CancelBody {
    /// The runs that are meant; `None` when a field is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<(Selection, Window)> {
        let prefix = self.prefix.check("prefix", errors);
        let said = Said::of(self.policy_id.as_ref(), self.target.as_ref(), self.tag.as_ref(), None);
        let selection = Selection::check(prefix, said, errors);
        let window = read_window((&self.since, &self.until), errors);
        Some((selection?, window?))
    }
}

/// A run as it is answered.
pub(crate) fn view(run: RunSummary) -> protocol::Run {
    protocol::Run {
        job_id: run.id.job().to_string(),
        run_id: run.id.to_string(),
        launch_at: instant(run.id.launch_at()),
        count: run.count,
        state: run.state.as_str().to_owned(),
        delivered: run.tally.delivered,
        succeeded: run.tally.succeeded,
        failed: run.tally.failed,
        expired: run.tally.expired,
        dead: run.tally.dead,
        left_out: run.tally.left_out,
        reason: run.reason,
        skipped_count: run.skipped.as_ref().map(|skipped| skipped.count),
        skipped_until: run.skipped.as_ref().map(|skipped| instant(skipped.until)),
    }
}

/// Counts a run.
pub(crate) fn count(counts: &mut protocol::RunCounts, run: &RunSummary) {
    let runs = run.skipped.as_ref().map_or(1, |skipped| u64::from(skipped.count));
    let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
    add(&mut counts.total, runs);
    add(counts.by_state.entry(run.state.as_str().to_owned()).or_default(), runs);
    add(counts.by_job.entry(run.id.job().to_string()).or_default(), runs);
    if let Some(reason) = &run.reason {
        add(counts.by_reason.entry(reason.clone()).or_default(), runs);
    }
    let (tally, events) = (&run.tally, &mut counts.events);
    let of_one = u64::from(run.count);
    add(&mut events.total, of_one.saturating_mul(runs));
    // The record of several launches tells of the events of the first.
    add(&mut events.left_out, of_one.saturating_mul(runs.saturating_sub(1)));
    for (count, more) in [
        (&mut events.delivered, tally.delivered),
        (&mut events.succeeded, tally.succeeded),
        (&mut events.failed, tally.failed),
        (&mut events.expired, tally.expired),
        (&mut events.dead, tally.dead),
        (&mut events.left_out, tally.left_out),
    ] {
        add(count, more.into());
    }
}

/// A run as it is answered by itself, with how it gets on.
pub(crate) fn detail_view(detail: RunDetail) -> protocol::RunDetail {
    protocol::RunDetail {
        in_flight: detail.in_flight,
        waiting: detail.waiting,
        started_at: detail.started_at.map(instant),
        deadline: detail.deadline.map(instant),
        rate_per_second: detail.rate_per_second.map(|rate| (rate * 1_000.0).round() / 1_000.0),
        predicted_finish_at: detail.predicted_finish_at.map(instant),
        reasoning: sentences::forecast(&detail),
        reasoning_codes: detail.basis.iter().map(ForecastBasis::code).collect(),
        run: view(detail.summary),
    }
}

/// Why a run that is over was not cancelled; `None` when it was.
pub(crate) fn why_not_cancelled(run: &protocol::Run) -> Option<String> {
    match run.reason.as_deref() {
        Some(reason) if reason == StopReason::Cancelled.as_str() => None,
        Some(reason) => Some(format!("was stopped already ({reason})")),
        None if run.state == RunState::Finished.as_str() => Some("is finished".to_owned()),
        None => Some("has no policy, so all of its events are on their way".to_owned()),
    }
}

/// An event of a run as it is answered.
pub(crate) fn event_view(event: EventRecord) -> protocol::EventRecord {
    let (result, error) = match event.status {
        EventStatus::Failed => (None, event.text),
        _ => (event.text, None),
    };
    protocol::EventRecord {
        event_id: event.id.to_string(),
        index: event.id.index(),
        status: event.status.as_str().to_owned(),
        attempts: event.attempts.map(u32::from),
        at: event.at.map(instant),
        reason: event.reason,
        result,
        error,
    }
}
/// A delivery that a target did not take.
pub(crate) fn failed_delivery(failed: &FailedDelivery) -> protocol::FailedDelivery {
    let FailedDelivery { attempt, at, took_ms, status, reason, answer } = failed;
    protocol::FailedDelivery {
        attempt: (*attempt).into(),
        at: instant(*at),
        took_ms: *took_ms,
        status: *status,
        reason: reason.clone(),
        answer: answer.clone(),
    }
}
