//! Launches that were not over when their job expects it.

use axum::Json;
use axum::extract::State;
use tidegate_protocol::OverdueList;

use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Cursor, Paged};
use crate::problem::Problem;
use crate::wire::overdue::{OverdueQuery, view};
use crate::wire::spoiled;

/// Lists the launches of all jobs that were not over when their job's `expect` says, the latest first. Without a stretch of time, those
/// that were due in the last 24 hours. They are kept for as long as the runs of their job.
///
/// Launches are looked at each minute: one that is over by then is not among them. Nor is one that is not made as its client asked
/// (paused, excluded, left out, cancelled).
#[utoipa::path(get, path = "/v1/overdue", tag = "runs", params(OverdueQuery), responses(
    (status = 200, description = "A page of launches", body = OverdueList),
))]
pub(crate) async fn list_overdue(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<OverdueQuery>,
) -> Result<Json<OverdueList>, Problem> {
    let window = query.window(state.engine.clock().now())?;
    let page = Paged::read(query.cursor, query.limit.as_deref())?;
    let given = page.after.is_some();
    let page = state.engine.store().all_overdue(&client.id, window, page).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list overdue launches", &e))?;
    Ok(Json(OverdueList {
        launches: page.rows.into_iter().map(view).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
