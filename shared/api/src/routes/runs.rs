//! What came of a job: its runs, and the events of each.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::{JobId, RunId};

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Cursor, ListQuery, id_to_find};
use crate::problem::Problem;
use crate::wire::run::{EventList, EventView, RunList, RunView};

/// Lists a job's runs, the latest first. They outlive their job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs", tag = "runs", params(("job_id" = String, Path), ListQuery), responses(
    (status = 200, description = "A page of runs", body = RunList),
))]
pub(crate) async fn list_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(job): Path<String>,
    Cursor(cursor): Cursor,
) -> Result<Json<RunList>, Problem> {
    let job: JobId = id_to_find("job", &job)?;
    let given = cursor.is_some();
    let page = state.engine.runs(&client.id, &job, cursor).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list runs", &e))?;
    if page.rows.is_empty() && !given {
        let found = state.engine.job(&client.id, &job).await;
        if found.map_err(|e| Problem::of_engine("read a job", &e))?.is_none() {
            return Err(not_found("job", job.as_str()));
        }
    }
    let runs = page.rows.into_iter().map(RunView::from);
    Ok(Json(RunList { runs: runs.collect(), next_cursor: Cursor::next_of(page.next) }))
}

/// Lists the events of a run, by index. With history `failures` only those that failed are listed.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs/{run_id}/events", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path), ListQuery), responses(
    (status = 200, description = "A page of events", body = EventList),
))]
pub(crate) async fn list_events(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
    Cursor(cursor): Cursor,
) -> Result<Json<EventList>, Problem> {
    let job: JobId = id_to_find("job", &job)?;
    let run: RunId = id_to_find("run", &run)?;
    if *run.job() != job {
        return Err(not_found("run", &run.to_string()));
    }
    let after = cursor.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let page = state.engine.events(&client.id, &run, after).await;
    let page = page.map_err(|e| Problem::of_engine("list events", &e))?;
    let Some(page) = page else { return Err(not_found("run", &run.to_string())) };
    let events = page.rows.into_iter().map(EventView::from);
    Ok(Json(EventList { events: events.collect(), next_cursor: Cursor::next_of(page.next) }))
}
