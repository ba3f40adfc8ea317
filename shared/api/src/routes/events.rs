//! Single events: why one is where it is, and what its target answered.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::EventId;
use tidegate_protocol::{Explanation, FailedDeliveryList};

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::id_to_find;
use crate::problem::Problem;
use crate::wire::{explain, run, spoiled};

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
