//! One-time jobs with generated ids, by the minutes of their instants.

use axum::Json;
use axum::extract::State;
use tidegate_store::PageOf;

use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Cursor, Paged};
use crate::problem::Problem;
use crate::wire::job::{JobList, view};
use crate::wire::one_time::OneTimesQuery;
use crate::wire::spoiled;

/// Lists the one-time jobs with a generated id that are due in a stretch of time, by minute: those that are to come, and those that
/// are over, for 90 days. Without a stretch, those of the next 24 hours. `GET /v1/jobs` lists all other jobs. What came of one,
/// `GET /v1/jobs/{job_id}/runs` says, and of all of them `GET /v1/runs`.
///
/// It is known in which ten minutes the client has some, and where they lie: each such place of ten minutes costs five read units, and
/// up to 64 such places are looked at for a page. It may show few jobs, or none, and have a `next_cursor`; the list ends where that is
/// null.
#[utoipa::path(get, path = "/v1/one-time-jobs", tag = "jobs", params(OneTimesQuery), responses(
    (status = 200, description = "A page of jobs", body = JobList),
))]
pub(crate) async fn list_one_time_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<OneTimesQuery>,
) -> Result<Json<JobList>, Problem> {
    let window = query.window(state.engine.clock().now())?;
    let PageOf { after, rows } = Paged::read(query.cursor, query.limit.as_deref())?;
    let after = after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let page = state.engine.queries().one_times(&client.id, window, PageOf { after, rows }).await;
    let page = page.map_err(|e| Problem::of_engine("list one-time jobs", &e))?;
    Ok(Json(JobList {
        jobs: page.rows.iter().map(|job| view(job, Vec::new())).collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
