//! Events: those of all jobs by where they stand, why one is where it is, and what its target answered.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::EventId;
use tidegate_protocol::{EventList, Explanation, FailedDeliveryList};
use tidegate_store::PageOf;

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Cursor, Paged, id_to_find};
use crate::problem::Problem;
use crate::wire::standing::{EventsQuery, Sought};
use crate::wire::{dead_letter, explain, run, spoiled};

/// Lists the events of all jobs that stand somewhere. Those that are `waiting` or `in_flight` are listed by policy, from its slot groups
/// and its line: what is in flight by slot group, what waits in the order in which it is admitted, due or not. Those that are `failed`,
/// `expired` or `dead` are listed from the dead letters, by job. Those that were delivered and succeeded are kept by run: `GET /v1/runs`
/// finds it.
///
/// A page costs what it shows; where an event moves while pages are read, it may be shown twice, or not at all. A bounded number of rows
/// is looked at for each: it may show few events, or none, and have a `next_cursor`; the list ends where that is null. Single events
/// that are not due, and have little company, are in no line before they are: their jobs say when they are due. So is what no policy
/// throttles.
#[utoipa::path(get, path = "/v1/events", tag = "runs", params(EventsQuery), responses(
    (status = 200, description = "A page of events", body = EventList),
))]
pub(crate) async fn list_all_events(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<EventsQuery>,
) -> Result<Json<EventList>, Problem> {
    let sought = query.sought()?;
    let asked = Paged::read(query.cursor, query.limit.as_deref())?;
    let given = asked.after.is_some();
    let (events, unreadable, next) = match sought {
        Sought::Under(policy, wanted) => {
            let after = asked.after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
            let page = PageOf { after, rows: asked.rows };
            let found = state.engine.queries().events_under(&client.id, &policy, wanted, page).await;
            let found = found.map_err(|e| Cursor::refusal_of_engine(given, "list events", &e))?;
            let page = found.ok_or_else(|| not_found("policy", policy.as_str()))?;
            (page.rows.into_iter().map(run::event_view).collect(), page.unreadable, page.next)
        }
        Sought::DeadLetters(filter) => {
            let page = state.engine.dead_letters().list(&client.id, &filter, asked).await;
            let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list events", &e))?;
            (page.rows.iter().map(dead_letter::event_view).collect(), page.unreadable, page.next)
        }
    };
    let (unreadable, next_cursor) = (spoiled::views(unreadable, ""), Cursor::next_of(next));
    Ok(Json(EventList { events, unreadable, next_cursor }))
}

/// Says why an event is where it is: who holds the tokens, its place in line, and when its turn is expected.
#[utoipa::path(get, path = "/v1/events/{event_id}/explain", tag = "runs", params(("event_id" = String, Path)), responses(
    (status = 200, description = "Why it is where it is", body = Explanation),
))]
pub(crate) async fn explain_event(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Json<Explanation>, Problem> {
    let id: EventId = id_to_find("event", &id)?;
    let found = state.engine.queries().explain(&client.id, &id).await;
    let found = found.map_err(|e| Problem::of_engine("explain an event", &e))?;
    let key = state.engine.tokens().key().await.map_err(|e| Problem::of_engine("sign tokens", &e))?;
    found
        .map(|explanation| Json(explain::view(explanation, &key)))
        .ok_or_else(|| not_found("event", &id.to_string()))
}

/// Lists the deliveries of an event that its target did not take: when, and what it answered. They are kept as long as its run.
#[utoipa::path(get, path = "/v1/events/{event_id}/failures", tag = "runs", params(("event_id" = String, Path)), responses(
    (status = 200, description = "The deliveries that failed", body = FailedDeliveryList),
))]
pub(crate) async fn list_failures(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(id): Path<String>,
) -> Result<Json<FailedDeliveryList>, Problem> {
    let id: EventId = id_to_find("event", &id)?;
    let page = state.engine.store().failed_deliveries(&client.id, &id).await;
    let page = page.map_err(|e| Problem::of_store("list failed deliveries", &e))?;
    let failures = page.rows.iter().map(run::failed_delivery).collect();
    Ok(Json(FailedDeliveryList { failures, unreadable: spoiled::views(page.unreadable, "") }))
}
