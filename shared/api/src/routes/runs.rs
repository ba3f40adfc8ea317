//! What came of a job: its runs, the events of each, and what is left of a run cancelled.

use axum::Json;
use axum::extract::{Path, State};
use tidegate_domain::ids::{JobId, RunId};
use tidegate_engine::RunCancel;
use tidegate_protocol::{EventList, RunDetail, RunList};
use tidegate_store::PageOf;
use tidegate_store::clients::Client;

use super::not_found;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Cursor, ListQuery, Paged, id_to_find};
use crate::problem::{Kind, Problem};
use crate::wire::run::{self, EventsQuery};
use crate::wire::spoiled;

/// Lists a job's runs, the latest first. They outlive their job.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs", tag = "runs", params(("job_id" = String, Path), ListQuery), responses(
    (status = 200, description = "A page of runs", body = RunList),
))]
pub(crate) async fn list_runs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path(job): Path<String>,
    Paged(asked): Paged,
) -> Result<Json<RunList>, Problem> {
    let job: JobId = id_to_find("job", &job)?;
    let given = asked.after.is_some();
    let page = state.engine.queries().runs(&client.id, &job, asked).await;
    let page = page.map_err(|e| Cursor::refusal_of_engine(given, "list runs", &e))?;
    if page.rows.is_empty() && page.unreadable.is_empty() && !given {
        let found = state.engine.jobs().get(&client.id, &job).await;
        if found.map_err(|e| Problem::of_engine("read a job", &e))?.is_none() {
            return Err(not_found("job", job.as_str()));
        }
    }
    let runs = page.rows.into_iter().map(run::view);
    Ok(Json(RunList {
        runs: runs.collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}

/// Shows a run: how far it has come, how fast it goes, and when it is expected to end.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs/{run_id}", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The run", body = RunDetail),
))]
pub(crate) async fn read_run(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
) -> Result<Json<RunDetail>, Problem> {
    let run = run_of(&job, &run)?;
    detail(&state, &client, &run).await
}

/// Cancels what is left of a run: no further event of it is admitted. Events that are with their consumers end as they
/// would. A run that was cancelled already is answered as it is.
#[utoipa::path(post, path = "/v1/jobs/{job_id}/runs/{run_id}/cancel", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The run, cancelled", body = RunDetail),
))]
pub(crate) async fn cancel_run(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
) -> Result<Json<RunDetail>, Problem> {
    let run = run_of(&job, &run)?;
    let cancelled = state.engine.jobs().cancel_run(&client.id, &run).await;
    match cancelled.map_err(|e| Problem::of_engine("cancel a run", &e))? {
        RunCancel::Done => detail(&state, &client, &run).await,
        RunCancel::Absent => Err(not_found("run", &run.to_string())),
        RunCancel::Over => {
            let view = detail(&state, &client, &run).await?;
            let Some(refusal) = run::why_not_cancelled(&view.0.run) else { return Ok(view) };
            Err(Problem::new(
                Kind::RunOver,
                format!("run '{run}' {refusal}; there is nothing left to cancel"),
            ))
        }
    }
}

async fn detail(state: &ApiState, client: &Client, run: &RunId) -> Result<Json<RunDetail>, Problem> {
    let found = state.engine.queries().run_detail(&client.id, run).await;
    let found = found.map_err(|e| Problem::of_engine("read a run", &e))?;
    found.map(|detail| Json(run::detail_view(detail))).ok_or_else(|| not_found("run", &run.to_string()))
}

/// The run of a path, which must be one of the job that the path names.
fn run_of(job: &str, run: &str) -> Result<RunId, Problem> {
    let job: JobId = id_to_find("job", job)?;
    let run: RunId = id_to_find("run", run)?;
    if *run.job() == job { Ok(run) } else { Err(not_found("run", &run.to_string())) }
}

/// Lists the events of a run, by index: all of them, or those of some statuses. A page costs what it shows, however large the
/// run is.
///
/// Events that are `failed`, `expired`, `dead` or `in_flight` are found without reading what succeeded. For other statuses up to
/// 4,096 events are looked at for each page. A page of some statuses may show few events, or none, and have a `next_cursor`: the
/// list ends where that is null.
///
/// Without a policy and with history `failures`, events that were delivered are listed without `attempts` and `at`.
#[utoipa::path(get, path = "/v1/jobs/{job_id}/runs/{run_id}/events", tag = "runs",
    params(("job_id" = String, Path), ("run_id" = String, Path), EventsQuery), responses(
    (status = 200, description = "A page of events", body = EventList),
))]
pub(crate) async fn list_events(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Path((job, run)): Path<(String, String)>,
    Asked(query): Asked<EventsQuery>,
) -> Result<Json<EventList>, Problem> {
    let run = run_of(&job, &run)?;
    let statuses = query.statuses()?;
    let PageOf { after, rows } = Paged::read(query.cursor, query.limit.as_deref())?;
    let after = after.map(|text| text.parse().map_err(|_| Cursor::unknown())).transpose()?;
    let asked = PageOf { after, rows };
    let queries = state.engine.queries();
    let page = match &statuses {
        Some(statuses) => queries.events_that_are(&client.id, &run, statuses, asked).await,
        None => queries.events(&client.id, &run, asked).await,
    };
    let page = page.map_err(|e| Problem::of_engine("list events", &e))?;
    let Some(page) = page else { return Err(not_found("run", &run.to_string())) };
    let events = page.rows.into_iter().map(run::event_view);
    Ok(Json(EventList {
        events: events.collect(),
        unreadable: spoiled::views(page.unreadable, ""),
        next_cursor: Cursor::next_of(page.next),
    }))
}
