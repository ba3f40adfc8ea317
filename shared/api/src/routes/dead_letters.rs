//! Dead letters: events that did not succeed and that nothing sends again. Listed, counted, looked at, redriven, discarded.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use tidegate_domain::change::{Kind as KindOfThing, What};
use tidegate_domain::ids::{ClientId, EventId, JobId};
use tidegate_engine::{DeadLetterFilter, EngineError};
use tidegate_protocol::{
    DeadLetterCounts, DeadLetterDetail, DeadLetterList, DeadLetterResult, DeadLetterResults, DeadLetterStatus,
};
use tidegate_store::clients::Client;
use tracing::warn;

use super::changes::record;
use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Body, Cursor, Paged, id_to_find};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::dead_letter::{self, Chosen, DeadLetterQuery, DiscardBody, FilterBody, RedriveBody};
use crate::wire::{instant, spoiled};

/// Lists the events of the client that did not succeed and that nothing sends again.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "dead letters", params(DeadLetterQuery), responses(
    (status = 200, description = "A page of dead letters", body = DeadLetterList),
))]
pub(crate) async fn list_dead_letters(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<DeadLetterQuery>,
) -> Result<Json<DeadLetterList>, Problem> {
    let ((cursor, limit), filter) = query.into_parts();
    let asked = Paged::read(cursor, limit.as_deref())?;
    let given = asked.after.is_some();
    let filter = checked(&filter)?;
    let page = state.engine.dead_letters().list(&client.id, &filter, asked).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list dead letters", &e))?;
    Ok(Json(DeadLetterList {
        dead_letters: page.rows.iter().map(dead_letter::view).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Counts dead letters by job, policy, status and reason: 10,000 at the most.
#[utoipa::path(get, path = "/v1/dead-letters/count", tag = "dead letters", params(DeadLetterQuery), responses(
    (status = 200, description = "How many there are", body = DeadLetterCounts),
))]
pub(crate) async fn count_dead_letters(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<DeadLetterQuery>,
) -> Result<Json<DeadLetterCounts>, Problem> {
    let (_, filter) = query.into_parts();
    let filter = checked(&filter)?;
    let counts = state.engine.dead_letters().count(&client.id, &filter).await;
    let counts = counts.map_err(|e| Problem::of_engine("count dead letters", &e))?;
    Ok(Json(dead_letter::counts_view(counts)))
}

/// Shows a dead letter with what its event carries and where it goes.
#[utoipa::path(get, path = "/v1/dead-letters/{event_id}", tag = "dead letters", params(("event_id" = String, Path)), responses(
    (status = 200, description = "The dead letter", body = DeadLetterDetail),
))]
pub(crate) async fn read_dead_letter(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Json<DeadLetterDetail<Box<RawValue>>>, Problem> {
    let id: EventId = id_to_find("event", &id)?;
    let found = state.engine.dead_letters().find(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("read a dead letter", &e))?;
    let found = found.ok_or_else(|| not_found("dead letter", &id.to_string()))?;
    Ok(Json(dead_letter::detail_view(found)))
}

/// Sends the events of dead letters again, under the limits of their policies: up to 100 by their ids, or those that fit, a
/// hundred in a call. Each keeps its id and counts its deliveries on. Repeating it is safe: an event that was sent again has no letter
/// any more, and a call for those that fit takes the next.
#[utoipa::path(post, path = "/v1/dead-letters/redrive", tag = "dead letters", request_body = RedriveBody, responses(
    (status = 200, description = "What came of each", body = DeadLetterResults),
))]
pub(crate) async fn redrive_dead_letters(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<RedriveBody>,
) -> Result<Json<DeadLetterResults>, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some((chosen, paced)) = checked else { return Err(no_body()) };
    let (named, next) = named(&state, &client.id, chosen).await?;
    let now = state.engine.clock().now();
    let due_at = |number: u32| paced.due_at(number, now);
    let events =
        (0_u32..).zip(named.iter()).filter_map(|(n, event)| Some((event.as_ref().ok()?.clone(), due_at(n))));
    let events: Vec<(EventId, DateTime<Utc>)> = events.collect();
    let answers = state.engine.dead_letters().redrive(&client.id, &events).await;
    let mut answers = events.iter().zip(answers).map(|((_, at), answer)| {
        let status = told(answer.map(dead_letter::status));
        (status, (status == DeadLetterStatus::Redriven).then(|| instant(*at)))
    });
    let count = u32::try_from(named.len()).unwrap_or(u32::MAX);
    let results: Vec<_> = named.into_iter().map(|event| result(event, || answers.next())).collect();
    record_settled(&state, &client, &results, DeadLetterStatus::Redriven, What::Redriven).await;
    let next_start_at = (next.is_some() && paced.per_second.is_some()).then(|| instant(due_at(count)));
    Ok(Json(DeadLetterResults { results, next_cursor: Cursor::next_of(next), next_start_at }))
}

/// Forgets dead letters: up to 100 by their events' ids, or those that fit, a hundred in a call. The records of the events
/// stay. Repeating it is safe: what was discarded is not there any more, and a call for those that fit takes the next.
#[utoipa::path(post, path = "/v1/dead-letters/discard", tag = "dead letters", request_body = DiscardBody, responses(
    (status = 200, description = "What came of each", body = DeadLetterResults),
))]
pub(crate) async fn discard_dead_letters(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Body(body): Body<DiscardBody>,
) -> Result<Json<DeadLetterResults>, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some(chosen) = checked else { return Err(no_body()) };
    let (named, next) = named(&state, &client.id, chosen).await?;
    let events: Vec<EventId> = named.iter().filter_map(|event| event.as_ref().ok().cloned()).collect();
    let answers = state.engine.dead_letters().discard(&client.id, &events).await;
    let status = |was_there| if was_there { DeadLetterStatus::Discarded } else { DeadLetterStatus::Absent };
    let mut answers = answers.into_iter().map(|answer| (told(answer.map(status)), None));
    let results: Vec<_> = named.into_iter().map(|event| result(event, || answers.next())).collect();
    record_settled(&state, &client, &results, DeadLetterStatus::Discarded, What::Discarded).await;
    Ok(Json(DeadLetterResults { results, next_cursor: Cursor::next_of(next), next_start_at: None }))
}

/// Records which events were settled so: by job, the event or how many.
async fn record_settled(
    state: &ApiState,
    client: &Client,
    results: &[DeadLetterResult],
    status: DeadLetterStatus,
    what: What,
) {
    let mut by_job: BTreeMap<JobId, Vec<&str>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.status == status) {
        if let Ok(event) = result.event_id.parse::<EventId>() {
            by_job.entry(event.run().job().clone()).or_default().push(&result.event_id);
        }
    }
    for (job, events) in by_job {
        let of = match events.as_slice() {
            [only] => (*only).to_owned(),
            many => format!("{} events", many.len()),
        };
        record(state, client, (KindOfThing::Job, job.as_str(), of), what).await;
    }
}

/// The filter of a query.
fn checked(filter: &FilterBody) -> Result<DeadLetterFilter, Problem> {
    let mut errors = FieldErrors::default();
    let filter = filter.check("", &mut errors);
    errors.into_result(Kind::MalformedRequest)?;
    Ok(filter.unwrap_or_default())
}

fn no_body() -> Problem {
    Problem::new(Kind::InvalidBody, "the body names no dead letters")
}

/// The events that a call is about, and where the next call goes on.
async fn named(
    state: &ApiState,
    client: &ClientId,
    chosen: Chosen,
) -> Result<(Vec<Result<EventId, String>>, Option<String>), Problem> {
    match chosen {
        Chosen::Named(events) => Ok((events, None)),
        Chosen::Fitting(filter, cursor) => {
            let cursor = Cursor::read(cursor)?;
            let given = cursor.is_some();
            let page = state.engine.dead_letters().list(client, &filter, cursor).await;
            let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list dead letters", &e))?;
            Ok((page.rows.into_iter().map(|letter| Ok(letter.event)).collect(), page.next))
        }
    }
}

fn told(answer: Result<DeadLetterStatus, EngineError>) -> DeadLetterStatus {
    answer.unwrap_or_else(|error| {
        warn!(%error, "a dead letter is left as it was");
        DeadLetterStatus::Busy
    })
}

/// The answer for one event: the next of those that were asked, or that it is none.
fn result(
    event: Result<EventId, String>,
    next: impl FnOnce() -> Option<(DeadLetterStatus, Option<String>)>,
) -> DeadLetterResult {
    match event {
        Err(event_id) => DeadLetterResult { event_id, status: DeadLetterStatus::NoEvent, not_before: None },
        Ok(event) => {
            let (status, not_before) = next().unwrap_or((DeadLetterStatus::Busy, None));
            DeadLetterResult { event_id: event.to_string(), status, not_before }
        }
    }
}
