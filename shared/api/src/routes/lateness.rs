//! How late the events of a client came.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::ClientId;
use tidegate_protocol::ClientLateness;

use crate::ApiState;
use crate::auth::{Admin, Caller, registered};
use crate::body::Asked;
use crate::problem::Problem;
use crate::wire::lateness::view;
use crate::wire::past::PastQuery;

/// Shows how late the events of the client that asks came, by hour and in all: percentiles, apart for those under a policy and those that
/// nothing throttles. Without a stretch of time, in the last 24 hours; at most 7 days. The hours that it touches count whole. They are
/// kept for 400 days.
#[utoipa::path(get, path = "/v1/lateness", tag = "clients", params(PastQuery), responses(
    (status = 200, description = "How late they came", body = ClientLateness),
))]
pub(crate) async fn read_own_lateness(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<PastQuery>,
) -> Result<Json<ClientLateness>, Problem> {
    lateness(&state, &client.id, &query).await
}

/// Shows how late the events of a client came, by hour and in all.
#[utoipa::path(get, path = "/v1/clients/{client_id}/lateness", tag = "clients",
    params(("client_id" = String, Path), PastQuery), security(("admin_key" = [])), responses(
    (status = 200, description = "How late they came", body = ClientLateness),
))]
pub(crate) async fn read_lateness(
    State(state): State<ApiState>,
    _: Admin,
    Path(id): Path<String>,
    Asked(query): Asked<PastQuery>,
) -> Result<Json<ClientLateness>, Problem> {
    let client = registered(&state, &id).await?;
    lateness(&state, &client.id, &query).await
}

async fn lateness(
    state: &ApiState,
    client: &ClientId,
    query: &PastQuery,
) -> Result<Json<ClientLateness>, Problem> {
    let window = query.window(state.engine.clock().now())?;
    let page = state.engine.store().lateness(client, window).await;
    let page = page.map_err(|e| Problem::of_store("read how late events came", &e))?;
    Ok(Json(view(client, window, page)))
}
