//! Runs and events as they travel: only ever read.

use std::collections::BTreeSet;

use serde::Deserialize;
use tidegate_domain::occurrence::StopReason;
use tidegate_engine::{EventRecord, EventStatus, ForecastBasis, RunDetail, RunState, RunSummary};
use tidegate_protocol as protocol;
use tidegate_store::failures::FailedDelivery;
use utoipa::IntoParams;

use crate::problem::{Kind, Problem};
use crate::sentences;
use crate::wire::instant;
use crate::wire::number::PageLimit;

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

/// A run as it is answered.
pub(crate) fn view(run: RunSummary) -> protocol::Run {
    protocol::Run {
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
