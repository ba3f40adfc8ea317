//! The time index: its zones and shards, for the admin.

use axum::Json;
use axum::extract::State;
use tidegate_protocol::IndexView;

use crate::ApiState;
use crate::auth::Admin;
use crate::body::Body;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::index::{ShardsBody, view};

/// Shows which zones scans look at, and which LaunchExpressions are split into shards.
#[utoipa::path(get, path = "/v1/index", tag = "index", security(("admin_key" = [])), responses(
    (status = 200, description = "The shape of the index", body = IndexView),
))]
pub(crate) async fn read_index(State(state): State<ApiState>, _: Admin) -> Result<Json<IndexView>, Problem> {
    let shape = state.engine.index().shape().await.map_err(|e| Problem::of_engine("read the index", &e))?;
    Ok(Json(view(&shape)))
}

/// Splits a LaunchExpression of a zone into more shards, while everything runs. The number never falls: children that are
/// written from now on are spread over the shards, those that are there stay where they are.
#[utoipa::path(put, path = "/v1/index/shards", tag = "index", request_body = ShardsBody, security(("admin_key" = [])), responses(
    (status = 200, description = "The shape of the index", body = IndexView),
))]
pub(crate) async fn raise_shards(
    State(state): State<ApiState>,
    _: Admin,
    Body(body): Body<ShardsBody>,
) -> Result<Json<IndexView>, Problem> {
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let Some((zone, expression, shards)) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a split"));
    };
    let shape = state.engine.index().raise_shards(zone, &expression, shards).await;
    let shape = shape.map_err(|e| Problem::of_engine("split the index", &e))?;
    Ok(Json(view(&shape)))
}
