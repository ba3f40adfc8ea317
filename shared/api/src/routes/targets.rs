//! Targets: those without a policy that cannot keep up. Of the others their policies say so.

use axum::Json;
use axum::extract::State;
use tidegate_protocol::StrainedTargetList;

use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Cursor, ListQuery, Paged};
use crate::problem::Problem;
use crate::wire::{policy, spoiled};

/// Lists the targets without a policy that are closed, or were lately, since they cannot keep up.
#[utoipa::path(get, path = "/v1/targets", tag = "policies", params(ListQuery), responses(
    (status = 200, description = "A page of targets", body = StrainedTargetList),
))]
pub(crate) async fn list_targets(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Paged(asked): Paged,
) -> Result<Json<StrainedTargetList>, Problem> {
    let given = asked.after.is_some();
    let page = state.engine.store().strained_targets(&client.id, asked, state.engine.clock().now()).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list targets", &e))?;
    Ok(Json(StrainedTargetList {
        targets: page.rows.iter().map(policy::strained_target).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
